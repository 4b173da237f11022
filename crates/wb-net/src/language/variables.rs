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

    /// The variables of the environment.
    pub fn from_environment() -> Self {
        Self { environment: true, ..Self::default() }
    }

    /// Sets a variable.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.given.insert(name.into(), value.into());
        self
    }

    /// The value of a variable, unless it is unset or empty.
    pub fn get(&self, name: &str) -> Option<String> {
        let value = self.given.get(name).cloned();
        value.or_else(|| self.environment.then(|| std::env::var(name).ok()).flatten()).filter(|value| !value.is_empty())
    }

    /// The names of the variables that were set.
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
