//! Filters: patterns with aliases and negations, expanded.

use wb_diagnostics::{Suggestion, suggest};

use super::pattern::{Pattern, split};
use crate::matrix::{Matrix, Suite};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    #[error("unknown alias `~{name}`")]
    UnknownAlias { name: String, suggestion: Option<Suggestion>, available: Vec<String> },
    #[error("alias `~{}` names itself: {}", names[0], names.join(" -> "))]
    AliasCycle {
        /// The aliases on the way, with the first one again at the end.
        names: Vec<String>,
    },
    #[error("unknown axis `{name}`: expected one of {}", available.join(", "))]
    UnknownAxis { name: String, suggestion: Option<Suggestion>, available: Vec<String> },
    #[error("invalid pattern `{pattern}`: {reason}")]
    InvalidPattern { pattern: String, reason: String },
    /// A filter of the file itself that names no cell.
    #[error("invalid {of} of `{cells}`: no cell of the matrix has such a name")]
    NoSuchCell {
        /// What the file defines with the filter: `check`, `expected failure`.
        of: &'static str,
        cells: String,
    },
}

impl SelectionError {
    pub(super) fn unknown_axis(name: &str, matrix: &Matrix) -> Self {
        let available: Vec<String> = matrix.axes.iter().map(|axis| axis.0.clone()).collect();
        Self::UnknownAxis { name: name.to_owned(), suggestion: suggest(name, &available), available }
    }

    pub fn help(&self) -> String {
        match self {
            Self::UnknownAlias { suggestion: Some(suggestion), .. }
            | Self::UnknownAxis { suggestion: Some(suggestion), .. } => suggestion.to_string(),
            Self::UnknownAlias { available, .. } if available.is_empty() => "the file has no aliases".to_owned(),
            Self::UnknownAlias { available, .. } => format!("the file's aliases are {}", available.join(", ")),
            Self::UnknownAxis { .. } => "the axes are those of the file".to_owned(),
            Self::NoSuchCell { .. } => "`weighbridge peers list FILE` lists the names".to_owned(),
            Self::AliasCycle { .. } => "remove one of these references from the file".to_owned(),
            Self::InvalidPattern { .. } => {
                "a pattern is a part of a name, `glob:…`, `re:…` or `~ALIAS`; `!` before it negates it".to_owned()
            }
        }
    }
}

/// An expanded filter. One without patterns matches nothing.
#[derive(Debug, Clone)]
pub struct Filter(Vec<ExpandedPattern>);

#[derive(Debug, Clone)]
struct ExpandedPattern {
    pattern: Pattern,
    /// The pattern as written, with the alias that it comes from.
    origin: String,
}

impl Filter {
    /// Expands a filter: `a|b` matches what contains `a` or `b`, `~x` what the alias matches, `!p` each id of the
    /// universe that does not match `p`, `!~x` each that matches nothing of the alias. In a matrix of test-plans, `!~x`
    /// in the value of an alias is a text, as in the later of its commits. Without patterns, a filter matches nothing.
    pub fn expand(text: &str, matrix: &Matrix, universe: &[&str]) -> Result<Self, SelectionError> {
        let mut patterns = Vec::new();
        let mut expansion = Expansion { matrix, universe, path: Vec::new() };
        for part in split(text) {
            for pattern in expansion.expand(part.trim())? {
                let own = part.trim();
                let origin = match &pattern {
                    Pattern::Substring(found) if found != own => format!("{found} ({own})"),
                    _ => own.to_owned(),
                };
                patterns.push(ExpandedPattern { pattern, origin });
            }
        }
        Ok(Self(patterns))
    }

    /// The first pattern that matches a text, as written.
    pub fn find(&self, text: &str) -> Option<&str> {
        self.0.iter().find(|expanded| expanded.pattern.matches(text)).map(|expanded| expanded.origin.as_str())
    }
}

struct Expansion<'a> {
    matrix: &'a Matrix,
    universe: &'a [&'a str],
    /// The aliases that are being expanded.
    path: Vec<String>,
}

impl Expansion<'_> {
    fn expand(&mut self, pattern: &str) -> Result<Vec<Pattern>, SelectionError> {
        if let Some(negated) = pattern.strip_prefix('!') {
            if negated.starts_with('!') {
                let reason = "expected one `!` at most".to_owned();
                return Err(SelectionError::InvalidPattern { pattern: pattern.to_owned(), reason });
            }
            let excluded = self.expand(negated)?;
            let rest = self.universe.iter().filter(|id| !excluded.iter().any(|pattern| pattern.matches(id)));
            return Ok(rest.map(|id| Pattern::Substring((*id).to_owned())).collect());
        }
        let Some(name) = pattern.strip_prefix('~') else { return Ok(vec![Pattern::parse(pattern)?]) };
        let available = &self.matrix.aliases.0;
        let value = available.get(name).ok_or_else(|| SelectionError::UnknownAlias {
            name: name.to_owned(),
            suggestion: suggest(name, available.keys()),
            available: available.keys().cloned().collect(),
        })?;
        if let Some(start) = self.path.iter().position(|other| other == name) {
            let mut names = self.path[start..].to_vec();
            names.push(name.to_owned());
            return Err(SelectionError::AliasCycle { names });
        }
        self.path.push(name.to_owned());
        let mut patterns = Vec::new();
        for part in split(value).into_iter().map(str::trim) {
            if self.matrix.suite == Suite::TestPlans && part.starts_with("!~") {
                patterns.push(Pattern::Substring(part.to_owned()));
            } else {
                patterns.extend(self.expand(part)?);
            }
        }
        self.path.pop();
        Ok(patterns)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::matrix::Aliases;

    const IDS: [&str; 4] = ["rust-v1", "go-v1", "go-v2", "js"];

    fn matrix(suite: Suite, aliases: &[(&str, &str)]) -> Matrix {
        let aliases = aliases.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let (axes, rules, endpoints, baselines) = Default::default();
        Matrix {
            suite,
            axes,
            rules,
            endpoints,
            baselines,
            aliases: Aliases(aliases),
            scenarios: Vec::new(),
            checks: Vec::new(),
            expected_failures: Vec::new(),
            root: String::new(),
        }
    }

    fn matched(filter: &str, matrix: &Matrix) -> Vec<&'static str> {
        let filter = Filter::expand(filter, matrix, &IDS).expect("valid");
        IDS.into_iter().filter(|id| filter.find(id).is_some()).collect()
    }

    #[test]
    fn aliases_are_followed_and_negated() {
        let aliases = [("go", "go-v1|go-v2"), ("native", "~go|rust"), ("other", "!~native"), ("all", "v|js")];
        let (own, test_plans) = (matrix(Suite::Weighbridge, &aliases), matrix(Suite::TestPlans, &aliases));
        for matrix in [&own, &test_plans] {
            assert_eq!(matched("~native", matrix), ["rust-v1", "go-v1", "go-v2"]);
            assert_eq!(matched("!~native", matrix), ["js"]);
            assert_eq!(matched("!go", matrix), ["rust-v1", "js"]);
            assert_eq!(matched("!~all", matrix), [""; 0]);
        }
        assert_eq!(matched("~other|rust", &own), ["rust-v1", "js"]);
        assert_eq!(matched("~other|rust", &test_plans), ["rust-v1"]);
    }

    #[test]
    fn a_match_names_the_pattern_and_its_alias() {
        let matrix = matrix(Suite::Weighbridge, &[("go", "go-v1|go-v2")]);
        let filter = Filter::expand("js|~go", &matrix, &IDS).expect("valid");
        assert_eq!((filter.find("js"), filter.find("go-v2 x js")), (Some("js"), Some("js")));
        assert_eq!(filter.find("go-v2"), Some("go-v2 (~go)"));
    }

    #[test]
    fn unknown_aliases_and_cycles_are_errors() {
        let matrix = matrix(Suite::Weighbridge, &[("a", "~b"), ("b", "x|~c"), ("c", "!~a"), ("rust", "r")]);
        let error = |filter: &str| Filter::expand(filter, &matrix, &IDS).expect_err(filter);
        assert_eq!(error("~a").to_string(), "alias `~a` names itself: a -> b -> c -> a");
        let misspelt = error("js|!~rusty");
        assert_eq!(
            (misspelt.to_string(), misspelt.help()),
            ("unknown alias `~rusty`".into(), "did you mean `rust`?".into())
        );
        assert!(error("").to_string().starts_with("invalid pattern ``"));
        assert_eq!(error("!!go").to_string(), "invalid pattern `!!go`: expected one `!` at most");
    }

    proptest! {
        #[test]
        fn a_filter_and_its_negation_share_no_id(part in "[a-z0-9-]{1,4}") {
            let none = matrix(Suite::Weighbridge, &[]);
            let (own, other) = (matched(&part, &none), matched(&format!("!{part}"), &none));
            prop_assert!(other.iter().all(|id| !own.contains(id)));
            prop_assert!(!own.is_empty() || !other.is_empty());
        }

        #[test]
        fn any_text_is_a_filter_or_an_error(text in ".{0,40}") {
            let matrix = matrix(Suite::Weighbridge, &[("a", "~b|!x"), ("b", "go")]);
            // Whatever the result: it must not panic.
            let _ = Filter::expand(&text, &matrix, &IDS);
        }
    }
}
