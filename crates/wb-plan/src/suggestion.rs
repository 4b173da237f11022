//! Spelling suggestions ("did you mean").

/// The candidate most similar to `given`, if one is similar enough.
///
/// Similar is a Damerau–Levenshtein distance of at most a third of the length, or one name being a prefix of the other.
pub fn suggest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_ascii_lowercase();
    let distance = |candidate: &str| strsim::damerau_levenshtein(&given, &candidate.to_ascii_lowercase());
    let has_prefix = |candidate: &str| given.len() >= 2 && candidate.starts_with(given.as_str());
    candidates
        .into_iter()
        .map(|candidate| (if has_prefix(candidate) { 0 } else { distance(candidate) }, candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().max(given.len()).div_ceil(3))
        // Two different one-letter names have nothing in common.
        .filter(|(distance, candidate)| *distance < candidate.len().max(given.len()))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The suggestion for an unknown name among those that a message of serde expects; `None` for any other message.
pub fn suggest_expected(message: &str) -> Option<&str> {
    let (_, given, expected) = parse_unknown_name(message)?;
    suggest(given, expected)
}

/// Parses serde's "unknown field `min-tme`, expected one of `min-time`, …" into kind, given name and expected names.
pub(crate) fn parse_unknown_name(message: &str) -> Option<(&'static str, &str, Vec<&str>)> {
    let (kind, rest) = [("key", "unknown field "), ("value", "unknown variant ")]
        .into_iter()
        .find_map(|(kind, start)| Some((kind, message.strip_prefix(start)?)))?;
    let mut names = rest.split('`').skip(1).step_by(2);
    Some((kind, names.next()?, names.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_finds_its_candidate() {
        let names = ["block-sizes", "iodepth", "himeno", "rw"];
        assert_eq!(suggest("blok-sizes", names), Some("block-sizes"));
        assert_eq!(suggest("himneo", names), Some("himeno"));
        assert_eq!(suggest("iodep", names), Some("iodepth"));
        assert_eq!(suggest("zebra", names), None);
        assert_eq!(suggest("z", ["a", "b"]), None);
        assert_eq!(suggest("A", ["a", "b"]), Some("a"));
    }

    #[test]
    fn names_expected_by_serde_are_suggested() {
        let message = |given: &str| format!("unknown field `{given}`, expected one of `summary`, `sets`, `knobs`");
        assert_eq!(suggest_expected(&message("sumary")), Some("summary"));
        assert_eq!(suggest_expected(&message("zebra")), None);
        assert_eq!(suggest_expected("missing field `is`"), None);
    }
}
