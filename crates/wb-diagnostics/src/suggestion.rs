use std::fmt;

/// A known name that is similar to an unknown one; displayed as ``did you mean `NAME`?``.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion(String);

impl Suggestion {
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    pub fn name(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Suggestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "did you mean `{}`?", self.0)
    }
}

/// The candidate most similar to `given`, if one is similar enough, regardless of case: at a Damerau–Levenshtein
/// distance of at most a third of the longer name, or beginning with `given`. The longer name counts, so that a
/// superfluous letter is no worse than a missing one.
pub fn suggest<S: AsRef<str>>(given: &str, candidates: impl IntoIterator<Item = S>) -> Option<Suggestion> {
    let given = given.to_ascii_lowercase();
    let nearest = candidates
        .into_iter()
        .filter_map(|candidate| Some((distance(&given, &candidate.as_ref().to_ascii_lowercase())?, candidate)))
        .min_by_key(|(distance, _)| *distance);
    nearest.map(|(_, candidate)| Suggestion::new(candidate.as_ref()))
}

/// The distance of a candidate from a name, both in lower case; `None` if they are not similar.
fn distance(given: &str, candidate: &str) -> Option<usize> {
    if given.len() >= 2 && candidate.starts_with(given) {
        return Some(0);
    }
    let longer = candidate.len().max(given.len());
    let limit = longer.div_ceil(3);
    // Texts of very different length are never similar, and a comparison takes time quadratic in the length.
    if given.chars().count().abs_diff(candidate.chars().count()) > limit {
        return None;
    }
    let distance = strsim::damerau_levenshtein(given, candidate);
    // Two different one-letter names have nothing in common.
    (distance <= limit && distance < longer).then_some(distance)
}

pub fn help_with_suggestion(suggestion: Option<&Suggestion>, help: &str) -> String {
    suggestion.map_or_else(|| help.to_owned(), |suggestion| format!("{suggestion} {help}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_finds_its_candidate() {
        let names = ["block-sizes", "iodepth", "himeno", "rw"];
        let nearest = |given: &str, names: &[&str]| suggest(given, names).map(|near| near.name().to_owned());
        let found = |name: &str| Some(name.to_owned());
        assert_eq!(nearest("blok-sizes", &names), found("block-sizes"));
        assert_eq!(nearest("himneo", &names), found("himeno"));
        assert_eq!(nearest("iodep", &names), found("iodepth"));
        assert_eq!(nearest("rww", &names), found("rw"));
        assert_eq!(nearest("tuned", &["Localhost", "TunedHost"]), found("TunedHost"));
        assert_eq!(nearest("zebra", &names), None);
        assert_eq!(nearest("z", &["a", "b"]), None);
        assert_eq!(nearest("A", &["a", "b"]), found("a"));
        assert_eq!(nearest(&"rw".repeat(1 << 20), &names), None);
    }

    #[test]
    fn help_begins_with_the_suggestion() {
        let help = |given| help_with_suggestion(suggest(given, ["latency"]).as_ref(), "expected one of latency");
        assert_eq!(help("latncy"), "did you mean `latency`? expected one of latency");
        assert_eq!(help("zebra"), "expected one of latency");
    }
}
