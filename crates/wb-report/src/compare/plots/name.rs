//! Names of files, from names that may be anything.

use std::collections::BTreeSet;

/// Those that are taken.
#[derive(Default)]
pub(super) struct Names(BTreeSet<String>);

/// A name of a file with its ending must not be longer than 255 bytes.
const LONGEST: usize = 200;

impl Names {
    /// A name of parts, for one file alone. What could mean something to a shell or a file system becomes `_`.
    pub(super) fn file(&mut self, parts: &[&str]) -> String {
        let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' };
        let joined: String = parts.join("-").chars().map(safe).take(LONGEST).collect();
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
        let mut names = Names::default();
        assert_eq!(names.file(&["Localhost", "fio", "iops"]), "Localhost-fio-iops");
        assert_eq!(names.file(&["..", "/etc", "pass wd"]), "_etc-pass_wd");
        assert_eq!(names.file(&["localhost", "fio", "iops"]), "localhost-fio-iops~2");
        assert_eq!(names.file(&[&"é".repeat(300)]).len(), LONGEST);
    }
}
