//! What `$name` in a profile stands for.

use std::collections::BTreeMap;

/// The values of a profile's variables: those given come first, then the environment's.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    given: BTreeMap<String, String>,
    environment: bool,
}

impl Variables {
    /// None but those that are [given](Self::set).
    pub fn new() -> Self {
        Self::default()
    }

    /// Those of the environment.
    pub fn from_environment() -> Self {
        Self { environment: true, ..Self::default() }
    }

    /// Gives one a value.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.given.insert(name.into(), value.into());
        self
    }

    /// The value of one, unless it is unset or empty.
    pub fn get(&self, name: &str) -> Option<String> {
        let given = self.given.get(name).cloned();
        given.or_else(|| self.environment.then(|| std::env::var(name).ok()).flatten()).filter(|value| !value.is_empty())
    }

    /// The names that were given.
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

/// How many bytes at the start of `text` can be a variable's name.
pub(super) fn name_length(text: &str) -> usize {
    text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count()
}
