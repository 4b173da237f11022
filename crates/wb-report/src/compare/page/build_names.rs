//! Shortens names of builds for columns and charts.

/// Removes a long common prefix of all names, up to a separator.
pub(super) fn shorten_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let names: Vec<&str> = names.into_iter().collect();
    let common = names.iter().copied().reduce(common_prefix).unwrap_or_default();
    let cut = common.rfind(['_', '-', '.', '/', ' ']).map_or(0, |separator| separator + 1);
    let shortened = |name: &str| format!("…{}", &name[cut..]);
    let is_shortened = names.len() > 1 && cut >= MIN_CUT && names.iter().all(|name| name.len() > cut);
    names.into_iter().map(|name| if is_shortened { shortened(name) } else { name.to_owned() }).collect()
}

/// Minimum length of a prefix in bytes to be replaced by an ellipsis.
const MIN_CUT: usize = 7;

fn common_prefix<'a>(left: &'a str, right: &'a str) -> &'a str {
    let end = left.char_indices().zip(right.chars()).find(|((_, a), b)| a != b).map(|((index, _), _)| index);
    &left[..end.unwrap_or(left.len().min(right.len()))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_common_prefix_is_removed() {
        let names = ["result_20200726_080654", "result_20200726_091827"];
        assert_eq!(shorten_names(names), ["…080654", "…091827"]);
        assert_eq!(shorten_names(["build-01", "build-02"]), ["build-01", "build-02"]);
        assert_eq!(shorten_names(["nightly-é-1", "nightly-é-2"]), ["…1", "…2"]);
        assert_eq!(shorten_names(["nightly-a", "nightly-"]), ["nightly-a", "nightly-"]);
        assert_eq!(shorten_names(["only_one_of_them"]), ["only_one_of_them"]);
        assert!(shorten_names([]).is_empty());
    }
}
