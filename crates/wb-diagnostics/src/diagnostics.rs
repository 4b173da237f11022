//! Several errors, found in one pass over a text.

use std::fmt;

use crate::Diagnostic;

/// One or more errors, in the order in which they were found.
#[derive(Debug, Clone)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    pub fn as_slice(&self) -> &[Diagnostic] {
        &self.0
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Self(vec![diagnostic])
    }
}

impl std::error::Error for Diagnostics {}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages: Vec<&str> = self.0.iter().map(Diagnostic::message).collect();
        f.write_str(&messages.join("; "))
    }
}

/// The number of errors that are collected: nobody reads more, and each is compared with those before it.
const MAX_ERRORS: usize = 100;

/// Collects the errors of several independent steps, up to a hundred with a note that there are more.
#[derive(Debug, Default)]
pub struct DiagnosticCollector(Vec<Diagnostic>);

impl DiagnosticCollector {
    /// The value of a step; `None` if it failed, and its errors are collected.
    pub fn ok<T, E: Into<Diagnostics>>(&mut self, result: Result<T, E>) -> Option<T> {
        result.map_err(|errors| self.push(errors)).ok()
    }

    /// Collects errors, without duplicates: an error in a key of a file is found once for each part that uses the key.
    pub fn push(&mut self, errors: impl Into<Diagnostics>) {
        for error in errors.into().0 {
            if self.0.len() > MAX_ERRORS || self.0.iter().any(|earlier| earlier.is_same(&error)) {
                continue;
            }
            self.0.push(match self.0.len() {
                MAX_ERRORS => Diagnostic::new(format!("more than {MAX_ERRORS} errors: the others are not shown")),
                _ => error,
            });
        }
    }

    /// Fails with all collected errors, if any.
    pub fn finish(self) -> Result<(), Diagnostics> {
        if self.0.is_empty() { Ok(()) } else { Err(Diagnostics(self.0)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SourceText;

    #[test]
    fn errors_are_collected_in_order_without_duplicates() {
        let source = SourceText::new("p.toml", "a b");
        let mut errors = DiagnosticCollector::default();
        for (span, message) in [(2..3, "second"), (0..1, "first"), (2..3, "second"), (0..1, "second")] {
            errors.push(Diagnostic::at(&source, span, message, "here"));
        }
        assert_eq!(errors.finish().unwrap_err().to_string(), "second; first; second");
        assert!(DiagnosticCollector::default().finish().is_ok());
    }

    // 16,000 errors of one text took 49 s.
    #[test]
    fn errors_that_are_not_collected_are_mentioned_once() {
        let collect = |count: usize| {
            let mut errors = DiagnosticCollector::default();
            (0..count).for_each(|number| errors.push(Diagnostic::new(format!("error {number}"))));
            errors.finish().unwrap_err().as_slice().iter().map(|error| error.message().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(collect(100).last().unwrap(), "error 99");
        for count in [101, 300] {
            let messages = collect(count);
            let last = messages.last().map(String::as_str);
            assert_eq!((messages.len(), last), (101, Some("more than 100 errors: the others are not shown")));
        }
    }
}
