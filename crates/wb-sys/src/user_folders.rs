//! The folders of this program below the user's, by the XDG Base Directory Specification.

use std::ffi::OsString;
use std::path::PathBuf;

const PROGRAM: &str = "weighbridge";

/// The absolute path in an environment variable; others are ignored, as the specification demands.
pub fn variable(name: &str) -> Option<PathBuf> {
    absolute(std::env::var_os(name))
}

/// `${XDG_CONFIG_HOME:-~/.config}/weighbridge`. Like the other folders `None` if neither variable is an absolute path.
pub fn config() -> Option<PathBuf> {
    folder(std::env::var_os, "XDG_CONFIG_HOME", ".config")
}

/// The folder of data that can be created again: `${XDG_CACHE_HOME:-~/.cache}/weighbridge`.
pub fn cache() -> Option<PathBuf> {
    folder(std::env::var_os, "XDG_CACHE_HOME", ".cache")
}

/// The folder of data that persists but is not worth a backup: `${XDG_STATE_HOME:-~/.local/state}/weighbridge`.
pub fn state() -> Option<PathBuf> {
    folder(std::env::var_os, "XDG_STATE_HOME", ".local/state")
}

fn folder(
    variable: impl Fn(&'static str) -> Option<OsString>,
    name: &'static str,
    below_home: &str,
) -> Option<PathBuf> {
    let default = || Some(absolute(variable("HOME"))?.join(below_home));
    Some(absolute(variable(name)).or_else(default)?.join(PROGRAM))
}

fn absolute(value: Option<OsString>) -> Option<PathBuf> {
    value.map(PathBuf::from).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_that_of_its_variable_or_below_home() {
        let cache = |folders: &[(&str, &str)]| {
            let value = |name: &str| folders.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
            folder(value, "XDG_CACHE_HOME", ".cache")
        };
        assert_eq!(cache(&[("XDG_CACHE_HOME", "/c"), ("HOME", "/h")]), Some("/c/weighbridge".into()));
        assert_eq!(cache(&[("HOME", "/h")]), Some("/h/.cache/weighbridge".into()));
        assert_eq!(cache(&[("XDG_CACHE_HOME", ""), ("HOME", "/h")]), Some("/h/.cache/weighbridge".into()));
        assert_eq!(cache(&[("XDG_CACHE_HOME", "c"), ("HOME", "h")]), None);
        assert_eq!(cache(&[]), None);
    }
}
