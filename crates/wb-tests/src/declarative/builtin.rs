//! Definitions that are compiled into the program, from the project's folder `tests.d`.

use super::DeclarativeTest;

macro_rules! definitions {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../../tests.d/", $name)))),*]
    };
}

/// File name and text of each built-in definition.
const DEFINITIONS: [(&str, &str); 11] = definitions![
    "7z.toml",
    "compile-c.toml",
    "himeno-c.toml",
    "hpcc.toml",
    "iperf3.toml",
    "openssl-speed.toml",
    "ramspeed-c.toml",
    "sockperf.toml",
    "stress-ng.toml",
    "sysbench-cpu.toml",
    "sysbench-memory.toml",
];

/// The tests of the built-in definitions.
pub fn builtin_tests() -> impl Iterator<Item = DeclarativeTest> {
    DEFINITIONS.into_iter().map(|(name, text)| {
        // A unit test parses all of them.
        DeclarativeTest::parse(name, text, None).unwrap_or_else(|error| unreachable!("{error}"))
    })
}

/// Text of a built-in definition.
#[cfg(test)]
pub(super) fn text(index: usize) -> &'static str {
    DEFINITIONS[index].1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Test;

    #[test]
    fn every_built_in_definition_is_valid_and_named_like_its_file() {
        for (file, text) in DEFINITIONS {
            let test = DeclarativeTest::parse(file, text, None).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(format!("{}.toml", test.declaration().name), file);
            assert!(!test.declaration().requires.is_empty(), "{file}");
        }
    }

    #[test]
    fn every_file_of_the_folder_is_built_in() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests.d");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|name| name.ends_with(".toml"))
            .collect();
        files.sort();
        assert_eq!(files, DEFINITIONS.map(|(name, _)| name));
    }
}
