//! The variables of a profile, `$name`.

use std::collections::BTreeMap;

/// The values of variables: values that were set take precedence over the environment.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    given: BTreeMap<String, String>,
    environment: bool,
}

impl Variables {
    /// No variables but those that are [set](Self::set).
    pub fn new() -> Self {
        Self::default()
    }

    pub fn from_environment() -> Self {
        Self { environment: true, ..Self::default() }
    }

    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.given.insert(name.into(), value.into());
        self
    }

    /// The value of a variable: one that was set, which may be empty, or a non-empty one of the environment.
    pub fn get(&self, name: &str) -> Option<String> {
        let of_environment = || self.environment.then(|| std::env::var(name).ok()).flatten();
        self.given.get(name).cloned().or_else(|| of_environment().filter(|value| !value.is_empty()))
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.given.keys().map(String::as_str)
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Variables {
    fn from_iter<T: IntoIterator<Item = (N, V)>>(pairs: T) -> Self {
        let given = pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { given, environment: false }
    }
}

/// Length in bytes of the variable name at the start of `text`.
pub(super) fn name_length(text: &str) -> usize {
    text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count()
}
