//! Spelling suggestions.

/// The candidate most similar to `given`, if at most a third of its letters differ.
pub(super) fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_ascii_lowercase();
    let distance = |candidate: &str| strsim::damerau_levenshtein(&given, &candidate.to_ascii_lowercase());
    candidates
        .into_iter()
        // Names of very different length are never similar, and a comparison takes time quadratic in the length.
        .filter(|candidate| candidate.len().abs_diff(given.len()) <= candidate.len().div_ceil(3))
        .map(|candidate| (distance(candidate), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().div_ceil(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
