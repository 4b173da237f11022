//! Definitions that are compiled into the program, from the project's folder `tests.d`.

use super::DeclarativeTest;

macro_rules! definitions {
    ($($name:literal),* $(,)?) => {
        [$(BuiltinDefinition { file: $name, text: include_str!(concat!("../../../tests.d/", $name)) }),*]
    };
}

#[derive(Clone, Copy)]
pub struct BuiltinDefinition {
    file: &'static str,
    text: &'static str,
}

pub(crate) const DEFINITIONS: [BuiltinDefinition; 11] = definitions![
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

pub fn builtin_definitions() -> impl Iterator<Item = BuiltinDefinition> {
    DEFINITIONS.into_iter()
}

impl BuiltinDefinition {
    /// Name of the test, which is that of the file.
    pub fn test_name(&self) -> &'static str {
        self.file.trim_end_matches(".toml")
    }

    pub fn parse(&self) -> DeclarativeTest {
        // A unit test parses all of them.
        DeclarativeTest::parse(self.file, self.text, None).unwrap_or_else(|error| unreachable!("{error}"))
    }
}

#[cfg(test)]
pub(super) fn text(index: usize) -> &'static str {
    DEFINITIONS[index].text
}

#[cfg(test)]
mod tests {
    use super::*;
    use wb_test::Test;

    #[test]
    fn every_built_in_definition_is_valid_and_named_like_its_file() {
        for definition in DEFINITIONS {
            let test = DeclarativeTest::parse(definition.file, definition.text, None);
            let declaration = test.unwrap_or_else(|error| panic!("{error}")).declaration();
            assert_eq!(declaration.name.as_str(), definition.test_name());
            assert!(!declaration.requires.is_empty(), "{}", definition.file);
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
        assert_eq!(files, DEFINITIONS.map(|definition| definition.file));
    }
}
