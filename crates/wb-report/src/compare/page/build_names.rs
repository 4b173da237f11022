//! Names of builds, short enough for columns and charts.

/// Each name without what all begin with, where that is long; what is left begins after a separator.
pub(super) fn shorten_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let names: Vec<&str> = names.into_iter().collect();
    let common = names.iter().copied().reduce(common_prefix).unwrap_or_default();
    let cut = common.rfind(['_', '-', '.', '/', ' ']).map_or(0, |at| at + 1);
    let shortened = |name: &str| format!("…{}", &name[cut..]);
    let worth_it = names.len() > 1 && cut >= MIN_CUT && names.iter().all(|name| name.len() > cut);
    names.into_iter().map(|name| if worth_it { shortened(name) } else { name.to_owned() }).collect()
}

/// So many bytes are worth an ellipsis.
const MIN_CUT: usize = 7;

fn common_prefix<'a>(one: &'a str, other: &'a str) -> &'a str {
    let end = one.char_indices().zip(other.chars()).find(|((_, a), b)| a != b).map(|((at, _), _)| at);
    &one[..end.unwrap_or(one.len().min(other.len()))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_begin_with_is_left_out_where_it_is_long() {
        let names = ["result_20200726_080654", "result_20200726_091827"];
        assert_eq!(shorten_names(names), ["…080654", "…091827"]);
        assert_eq!(shorten_names(["build-01", "build-02"]), ["build-01", "build-02"]);
        assert_eq!(shorten_names(["nightly-é-1", "nightly-é-2"]), ["…1", "…2"]);
        assert_eq!(shorten_names(["nightly-a", "nightly-"]), ["nightly-a", "nightly-"]);
        assert_eq!(shorten_names(["only_one_of_them"]), ["only_one_of_them"]);
        assert!(shorten_names([]).is_empty());
    }
}
