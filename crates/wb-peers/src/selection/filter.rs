//! Filters: patterns with aliases and negations, expanded.

use wb_diagnostics::{Suggestion, suggest};

use super::pattern::{Pattern, split};
use crate::matrix::{Aliases, Matrix};

/// Why a selection is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// An alias that the file does not have.
    #[error("unknown alias `~{name}`")]
    UnknownAlias {
        /// Its name.
        name: String,
        /// A similar one.
        suggestion: Option<Suggestion>,
        /// Those that the file has.
        known: Vec<String>,
    },
    /// An alias whose value leads back to itself.
    #[error("alias `~{}` names itself: {}", names[0], names.join(" -> "))]
    AliasCycle {
        /// The aliases on the way, with the first one again at the end.
        names: Vec<String>,
    },
    /// An axis that the matrix does not have.
    #[error("unknown axis `{name}`: expected one of {}", known.join(", "))]
    UnknownAxis {
        /// Its name.
        name: String,
        /// A similar one.
        suggestion: Option<Suggestion>,
        /// Those of the matrix.
        known: Vec<String>,
    },
    /// A pattern that is none.
    #[error("invalid pattern `{pattern}`: {reason}")]
    InvalidPattern {
        /// The pattern.
        pattern: String,
        /// What is expected.
        reason: String,
    },
}

impl SelectionError {
    pub(super) fn unknown_axis(name: &str, matrix: &Matrix) -> Self {
        let known: Vec<String> = matrix.axes.iter().map(|axis| axis.0.clone()).collect();
        Self::UnknownAxis { name: name.to_owned(), suggestion: suggest(name, &known), known }
    }

    /// The way out.
    pub fn help(&self) -> String {
        match self {
            Self::UnknownAlias { suggestion: Some(suggestion), .. }
            | Self::UnknownAxis { suggestion: Some(suggestion), .. } => suggestion.to_string(),
            Self::UnknownAlias { known, .. } if known.is_empty() => "the file has no aliases".to_owned(),
            Self::UnknownAlias { known, .. } => format!("the file's aliases are {}", known.join(", ")),
            Self::UnknownAxis { .. } => "the axes are those of the file".to_owned(),
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
    /// universe that does not match `p`, `!~x` each that matches nothing of the alias.
    ///
    /// # Errors
    /// If an alias is unknown or names itself, or a pattern is invalid.
    pub fn expand(text: &str, aliases: &Aliases, universe: &[&str]) -> Result<Self, SelectionError> {
        let mut patterns = Vec::new();
        let mut expansion = Expansion { aliases, universe, path: Vec::new() };
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
    aliases: &'a Aliases,
    universe: &'a [&'a str],
    /// The aliases that are being expanded.
    path: Vec<String>,
}

impl Expansion<'_> {
    fn expand(&mut self, pattern: &str) -> Result<Vec<Pattern>, SelectionError> {
        if let Some(negated) = pattern.strip_prefix('!') {
            let excluded = self.expand(negated)?;
            let rest = self.universe.iter().filter(|id| !excluded.iter().any(|pattern| pattern.matches(id)));
            return Ok(rest.map(|id| Pattern::Substring((*id).to_owned())).collect());
        }
        let Some(name) = pattern.strip_prefix('~') else { return Ok(vec![Pattern::parse(pattern)?]) };
        let known = &self.aliases.0;
        let value = known.get(name).ok_or_else(|| SelectionError::UnknownAlias {
            name: name.to_owned(),
            suggestion: suggest(name, known.keys()),
            known: known.keys().cloned().collect(),
        })?;
        if let Some(start) = self.path.iter().position(|other| other == name) {
            let mut names = self.path[start..].to_vec();
            names.push(name.to_owned());
            return Err(SelectionError::AliasCycle { names });
        }
        self.path.push(name.to_owned());
        let mut patterns = Vec::new();
        for part in split(value) {
            patterns.extend(self.expand(part.trim())?);
        }
        self.path.pop();
        Ok(patterns)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const IDS: [&str; 4] = ["rust-v1", "go-v1", "go-v2", "js"];

    fn aliases(entries: &[(&str, &str)]) -> Aliases {
        Aliases(entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    fn matched(filter: &str, aliases: &Aliases) -> Vec<&'static str> {
        let filter = Filter::expand(filter, aliases, &IDS).expect("valid");
        IDS.into_iter().filter(|id| filter.find(id).is_some()).collect()
    }

    #[test]
    fn aliases_are_followed_and_negated() {
        let aliases = aliases(&[("go", "go-v1|go-v2"), ("native", "~go|rust"), ("other", "!~native"), ("all", "v|js")]);
        assert_eq!(matched("~native", &aliases), ["rust-v1", "go-v1", "go-v2"]);
        assert_eq!(matched("!~native", &aliases), ["js"]);
        assert_eq!(matched("~other|rust", &aliases), ["rust-v1", "js"]);
        assert_eq!(matched("!go", &aliases), ["rust-v1", "js"]);
        assert_eq!(matched("!!go", &aliases), ["go-v1", "go-v2"]);
        assert_eq!(matched("!~all", &aliases), [""; 0]);
    }

    #[test]
    fn a_match_names_the_pattern_and_its_alias() {
        let aliases = aliases(&[("go", "go-v1|go-v2")]);
        let filter = Filter::expand("js|~go", &aliases, &IDS).expect("valid");
        assert_eq!((filter.find("js"), filter.find("go-v2 x js")), (Some("js"), Some("js")));
        assert_eq!(filter.find("go-v2"), Some("go-v2 (~go)"));
    }

    #[test]
    fn unknown_aliases_and_cycles_are_errors() {
        let aliases = aliases(&[("a", "~b"), ("b", "x|~c"), ("c", "!~a"), ("rust", "r")]);
        let error = |filter: &str| Filter::expand(filter, &aliases, &IDS).expect_err(filter);
        assert_eq!(error("~a").to_string(), "alias `~a` names itself: a -> b -> c -> a");
        let unknown = error("js|!~rusty");
        assert_eq!(
            (unknown.to_string(), unknown.help()),
            ("unknown alias `~rusty`".into(), "did you mean `rust`?".into())
        );
        assert!(error("").to_string().starts_with("invalid pattern ``"));
    }

    proptest! {
        #[test]
        fn a_filter_and_its_negation_share_no_id(part in "[a-z0-9-]{1,4}") {
            let none = Aliases::default();
            let (own, other) = (matched(&part, &none), matched(&format!("!{part}"), &none));
            // Ids are matched as parts of a text, so an id that contains another one is matched with it.
            prop_assert!(other.iter().all(|id| !own.contains(id)) || own.is_empty());
            prop_assert!(!own.is_empty() || !other.is_empty());
        }

        #[test]
        fn any_text_is_a_filter_or_an_error(text in ".{0,40}") {
            let aliases = aliases(&[("a", "~b|!x"), ("b", "go")]);
            // Whatever the result: it must not panic.
            let _ = Filter::expand(&text, &aliases, &IDS);
        }
    }
}
