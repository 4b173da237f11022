//! The nearest right spelling of a wrong one.

/// The candidate that is most like `given`, if one is like enough to be meant.
///
/// Likeness is Damerau–Levenshtein's distance against a third of the length, or one being the start of the other.
pub fn suggest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_ascii_lowercase();
    let distance = |candidate: &str| strsim::damerau_levenshtein(&given, &candidate.to_ascii_lowercase());
    let started = |candidate: &str| given.len() >= 2 && candidate.starts_with(given.as_str());
    candidates
        .into_iter()
        .map(|candidate| (if started(candidate) { 0 } else { distance(candidate) }, candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().max(given.len()).div_ceil(3))
        // Another name of one letter has nothing in common with this one.
        .filter(|(distance, candidate)| *distance < candidate.len().max(given.len()))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// What is most like an unknown name among those that serde says it expects; none where a message is about something
/// else.
pub fn suggest_expected(message: &str) -> Option<&str> {
    let (_, given, known) = parse_unknown_name(message)?;
    suggest(given, known)
}

/// Reads "unknown field `min-tme`, expected one of `min-time`, …", as serde words it.
pub(crate) fn parse_unknown_name(message: &str) -> Option<(&'static str, &str, Vec<&str>)> {
    let (what, rest) = [("key", "unknown field "), ("value", "unknown variant ")]
        .into_iter()
        .find_map(|(what, start)| Some((what, message.strip_prefix(start)?)))?;
    let mut names = rest.split('`').skip(1).step_by(2);
    Some((what, names.next()?, names.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_mistake_finds_its_word() {
        let names = ["block-sizes", "iodepth", "himeno", "rw"];
        assert_eq!(suggest("blok-sizes", names), Some("block-sizes"));
        assert_eq!(suggest("himneo", names), Some("himeno"));
        assert_eq!(suggest("iodep", names), Some("iodepth"));
        assert_eq!(suggest("zebra", names), None);
        assert_eq!(suggest("z", ["a", "b"]), None);
        assert_eq!(suggest("A", ["a", "b"]), Some("a"));
    }

    #[test]
    fn what_serde_expects_is_searched_too() {
        let near = |given: &str| format!("unknown field `{given}`, expected one of `summary`, `sets`, `knobs`");
        assert_eq!(suggest_expected(&near("sumary")), Some("summary"));
        assert_eq!(suggest_expected(&near("zebra")), None);
        assert_eq!(suggest_expected("missing field `is`"), None);
    }
}
