//! Names of files, from names that may be anything.

use std::collections::BTreeSet;

/// Those that are taken.
#[derive(Default)]
pub(super) struct FileNames(BTreeSet<String>);

/// A name of a file with its ending must not be longer than 255 bytes.
const MAX_LEN: usize = 200;

impl FileNames {
    /// A name of parts, for one file alone. What could mean something to a shell or a file system becomes `_`.
    pub(super) fn unique_name(&mut self, parts: &[&str]) -> String {
        let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' };
        let joined: String = parts.join("-").chars().map(safe).take(MAX_LEN).collect();
        let name = joined.trim_start_matches(['.', '-']);
        let numbered = |number: usize| if number == 1 { name.to_owned() } else { format!("{name}~{number}") };
        // Names that differ in case alone are one file to some systems.
        let free = (1..).map(numbered).find(|name| self.0.insert(name.to_lowercase()));
        free.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_out_of_the_folder_or_is_taken_twice() {
        let mut names = FileNames::default();
        assert_eq!(names.unique_name(&["Localhost", "fio", "iops"]), "Localhost-fio-iops");
        assert_eq!(names.unique_name(&["..", "/etc", "pass wd"]), "_etc-pass_wd");
        assert_eq!(names.unique_name(&["localhost", "fio", "iops"]), "localhost-fio-iops~2");
        assert_eq!(names.unique_name(&[&"é".repeat(300)]).len(), MAX_LEN);
    }
}
