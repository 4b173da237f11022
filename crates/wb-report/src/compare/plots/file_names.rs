//! Generates safe and unique file names from arbitrary names.

use std::collections::BTreeSet;

/// The file names in use, in lower case.
#[derive(Default)]
pub(super) struct FileNames(BTreeSet<String>);

/// Maximum length of a name; with its extension it must not exceed 255 bytes.
const MAX_LEN: usize = 200;

impl FileNames {
    /// Generates a unique name from parts. Characters that are special to shells or file systems become `_`.
    pub(super) fn unique_name(&mut self, parts: &[&str]) -> String {
        let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' };
        let joined: String = parts.join("-").chars().map(safe).take(MAX_LEN).collect();
        let name = joined.trim_start_matches(['.', '-']);
        let numbered = |number: usize| if number == 1 { name.to_owned() } else { format!("{name}~{number}") };
        // Some file systems are case-insensitive.
        let unique = (1..).map(numbered).find(|name| self.0.insert(name.to_lowercase()));
        unique.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_and_unique() {
        let mut names = FileNames::default();
        assert_eq!(names.unique_name(&["Localhost", "fio", "iops"]), "Localhost-fio-iops");
        assert_eq!(names.unique_name(&["..", "/etc", "pass wd"]), "_etc-pass_wd");
        assert_eq!(names.unique_name(&["localhost", "fio", "iops"]), "localhost-fio-iops~2");
        assert_eq!(names.unique_name(&[&"é".repeat(300)]).len(), MAX_LEN);
    }
}
