//! The texts of findings: two findings are of the same kind if they differ only in their figures.

use std::ops::Range;

/// The prefix of a finding about another run that measured on the same machine during a sample; a description of that
/// run follows.
pub const OTHER_RUN: &str = "another run measured on this machine at the same time: ";

/// The kind of a finding, by which findings of different cells are grouped: its text without figures. Findings about
/// other runs are all of one kind.
pub fn finding_kind(finding: &str) -> String {
    let text = match finding.find(OTHER_RUN) {
        Some(position) => &finding[..position + OTHER_RUN.len()],
        None => {
            finding.rsplit_once(" (in ").filter(|(_, end)| end.ends_with(" samples)")).map_or(finding, |(text, _)| text)
        }
    };
    without_figures(text)
}

/// The text of a finding without its figures.
pub fn without_figures(finding: &str) -> String {
    let figures = figures(finding);
    let is_figure = |position: usize| figures.iter().any(|figure| figure.contains(&position));
    finding.char_indices().filter(|(position, _)| !is_figure(*position)).map(|(_, c)| c).collect()
}

/// What precedes a number that is in no range: a name, or a value that all samples of a cell have.
const NUMBERED: [&str; 3] = ["sample ", "process ", "exactly "];

/// One text for findings of one kind, with the range of each figure that differs: `swapped 5 to 9 pages`. `None` if
/// they have other names, so that there is no range.
pub fn with_ranges(findings: &[&str]) -> Option<String> {
    let [first, others @ ..] = findings else { return None };
    if first.contains(OTHER_RUN) {
        return None;
    }
    let split = |finding: &'_ str| {
        finding.rsplit_once(" (in ").filter(|(_, end)| end.ends_with(" samples)")).map(|it| it.0.len())
    };
    // Those that all samples of a cell have, beside others.
    if findings.iter().any(|finding| split(finding).is_none())
        && findings.iter().any(|finding| split(finding).is_some())
    {
        let texts: Vec<&str> =
            findings.iter().map(|finding| &finding[..split(finding).unwrap_or(finding.len())]).collect();
        let counts: Vec<&str> = findings.iter().filter_map(|finding| Some(&finding[split(finding)?..])).collect();
        let fewest = counts.into_iter().min_by(|one, other| first_figure(one).total_cmp(&first_figure(other)))?;
        return Some(with_ranges(&texts)? + &fewest.replacen("(in ", "(in at least ", 1));
    }
    let ranges = figures(first);
    let of_others: Vec<(&str, Vec<Range<usize>>)> = others.iter().map(|other| (*other, figures(other))).collect();
    if of_others.iter().any(|(_, figures)| figures.len() != ranges.len()) {
        return None;
    }
    let (mut text, mut end) = (String::new(), 0);
    for (index, figure) in ranges.into_iter().enumerate() {
        let before = &first[end..figure.start];
        let mut values: Vec<&str> = of_others.iter().map(|(other, figures)| &other[figures[index].clone()]).collect();
        values.push(&first[figure.clone()]);
        let number = |value: &&str| value.trim_end_matches('.').parse::<f64>();
        let mut numbers: Vec<(f64, &str)> =
            values.iter().filter_map(|value| Some((number(value).ok()?, *value))).collect();
        let is_same = values.iter().all(|value| *value == values[0]);
        let is_name = NUMBERED.iter().any(|word| before.ends_with(word)) || before.ends_with(['-', '−', ':', '/']);
        if !is_same && (is_name || numbers.len() != values.len()) {
            return None;
        }
        numbers.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        text += before;
        match (is_same, &numbers[..]) {
            (false, [(low, lowest), .., (high, highest)]) if low < high => {
                text += &format!("{} to {highest}", lowest.trim_end_matches('.'));
            }
            _ => text += values[0],
        }
        end = figure.end;
    }
    Some(text + &first[end..])
}

/// The first figure of a finding; 0 without one.
pub fn first_figure(finding: &str) -> f64 {
    let first = figures(finding).into_iter().next();
    first.and_then(|figure| finding[figure].trim_end_matches('.').parse().ok()).unwrap_or(0.0)
}

/// The figures of a finding: its numbers, without those that are names. A number is a name in backticks, as the exit
/// status in "exit status `3`", and in a word that begins with a letter: `p99`, `sda1`.
fn figures(finding: &str) -> Vec<Range<usize>> {
    let mut figures: Vec<Range<usize>> = Vec::new();
    let (mut is_quoted, mut is_word) = (false, false);
    for (position, c) in finding.char_indices() {
        let is_part = c.is_ascii_digit() || c == '.';
        match figures.last_mut() {
            _ if c == '`' => is_quoted = !is_quoted,
            _ if is_quoted || is_word || !is_part => {}
            Some(last) if last.end == position => last.end += 1,
            _ if c.is_ascii_digit() => figures.push(position..position + 1),
            _ => {}
        }
        is_word = c.is_alphabetic() || c == '_' || (is_word && (is_part || c == '-'));
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_of_one_kind_have_the_range_of_their_figures() {
        for (findings, expected) in [
            (&["swapped 5 pages", "swapped 9 pages", "swapped 7 pages"][..], Some("swapped 5 to 9 pages")),
            (&["r = 0.52, p = 0.0012.", "r = 0.48, p = 0.0012."], Some("r = 0.48 to 0.52, p = 0.0012.")),
            (&["p99 of 3 ms", "p99 of 3.0 ms"], Some("p99 of 3.0 ms")),
            (
                &["lost 5 (in 2 of 6 samples)", "lost 3 (in 4 of 6 samples)"],
                Some("lost 3 to 5 (in 2 to 4 of 6 samples)"),
            ),
            (&["lost 5 (in 2 of 6 samples)", "lost 3"], Some("lost 3 to 5 (in at least 2 of 6 samples)")),
            (&["alone"], Some("alone")),
            // Numbers that are names, dates, addresses and signs.
            (&["sample 3 is invalid", "sample 5 is invalid"], None),
            (&["since 2026-01-02", "since 2026-01-03"], None),
            (&["at 10.0.0.1", "at 10.0.0.2"], None),
            (&["changed by -5 %", "changed by -3 %"], None),
            (&["is exactly 5 in all 8", "is exactly 6 in all 8"], None),
        ] {
            assert_eq!(with_ranges(findings).as_deref(), expected, "{findings:?}");
        }
        let run = |n: u32| format!("{OTHER_RUN}: anna@desk (process {n} there)");
        assert_eq!(with_ranges(&[&run(1), &run(2)]), None);
    }
}
