//! The nearest right spelling of a wrong one.

/// The candidate that is most like `given`, if one is like enough to be meant: a third of its letters may differ.
pub(super) fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_ascii_lowercase();
    let distance = |candidate: &str| strsim::damerau_levenshtein(&given, &candidate.to_ascii_lowercase());
    candidates
        .into_iter()
        // Far longer names are never meant, and comparing them would take the square of their length.
        .filter(|candidate| candidate.len().abs_diff(given.len()) <= candidate.len().div_ceil(3))
        .map(|candidate| (distance(candidate), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().div_ceil(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
