//! The nearest right spelling of a wrong one.

/// The candidate that is most like `given`, if one is like enough to be meant.
///
/// Likeness is Damerau–Levenshtein's distance against a third of the length, or one being the start of the other.
pub fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_ascii_lowercase();
    let distance = |candidate: &str| strsim::damerau_levenshtein(&given, &candidate.to_ascii_lowercase());
    let started = |candidate: &str| given.len() >= 2 && candidate.starts_with(given.as_str());
    candidates
        .into_iter()
        .map(|candidate| (if started(candidate) { 0 } else { distance(candidate) }, candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().max(given.len()).div_ceil(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_mistake_finds_its_word() {
        let names = ["block-sizes", "iodepth", "himeno", "rw"];
        assert_eq!(nearest("blok-sizes", names), Some("block-sizes"));
        assert_eq!(nearest("himneo", names), Some("himeno"));
        assert_eq!(nearest("iodep", names), Some("iodepth"));
        assert_eq!(nearest("zebra", names), None);
    }
}
