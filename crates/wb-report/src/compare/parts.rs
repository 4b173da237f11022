//! A sentence for each part of a run that is worse or better than the reference, and one for all the others.

use wb_model::pluralize;
use wb_results::comparison::{CheckResult, FinalVerdict, WithinRunSummary};

use super::failures::has_undecisive_failures;
use super::figures::magnitude;
use super::headline::{count_checks, describe_sides};

const MAX_PARTS: usize = 4;

/// How a part compares with the reference, the most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PartRank {
    Worse,
    Better,
    /// Different, not compared, or with other failures than the reference.
    Doubtful,
    Harmless,
}

struct Part<'a> {
    name: &'a str,
    /// In the plan.
    position: usize,
    rank: PartRank,
    /// The largest difference.
    size: f64,
    checks: Vec<&'a CheckResult>,
}

impl<'a> Part<'a> {
    fn new(position: usize, name: &'a str, primary: &[&'a CheckResult]) -> Self {
        let is_of_part = |check: &&CheckResult| check.sides.as_ref().is_some_and(|[_, of]| of == name);
        let checks: Vec<&CheckResult> = primary.iter().copied().filter(is_of_part).collect();
        let rank = checks.iter().map(|check| rank(check)).min().unwrap_or(PartRank::Harmless);
        let of_rank = checks.iter().filter(|check| self::rank(check) == rank);
        let size = of_rank.map(|check| magnitude(check)).fold(0.0, f64::max);
        Self { name, position, rank, size, checks }
    }
}

fn rank(check: &CheckResult) -> PartRank {
    match check.final_verdict {
        worse if worse.is_worse() => PartRank::Worse,
        better if better.is_better() => PartRank::Better,
        FinalVerdict::Unconfirmed
        | FinalVerdict::Differs
        | FinalVerdict::Missing
        | FinalVerdict::Invalid
        | FinalVerdict::Incomparable => PartRank::Doubtful,
        _ => {
            if has_undecisive_failures(check) {
                PartRank::Doubtful
            } else {
                PartRank::Harmless
            }
        }
    }
}

/// Describes worse parts first, then better ones. If there are many, only those with the largest differences have a
/// sentence, and harmless ones have none.
pub(super) fn describe_parts(
    within_run: &WithinRunSummary,
    primary: &[&CheckResult],
    name: impl Fn(&str) -> String,
    check_name: impl Fn(&str) -> String,
) -> String {
    let parts = within_run.judged.iter().enumerate();
    let mut parts: Vec<Part<'_>> = parts.map(|(position, name)| Part::new(position, name, primary)).collect();
    parts.sort_by(|one, other| one.rank.cmp(&other.rank).then(other.size.total_cmp(&one.size)));
    let described = match parts.len() {
        few @ ..=MAX_PARTS => few,
        _ => parts.iter().take(MAX_PARTS).filter(|part| part.rank != PartRank::Harmless).count(),
    };
    let others = parts.split_off(described);
    parts.sort_by_key(|part| (part.rank, part.position));
    let reference = name(&within_run.reference);
    let sentence = |part: &Part<'_>| describe_sides([reference.clone(), name(part.name)], &part.checks, &check_name);
    let mut sentences: Vec<String> = parts.iter().map(sentence).collect();
    if !others.is_empty() {
        let checks: Vec<&CheckResult> = others.iter().flat_map(|part| &part.checks).copied().collect();
        let who = match (described, others.len()) {
            (0, parts) => format!("the {parts} parts beside the reference"),
            (_, 1) => "The other part".to_owned(),
            (_, parts) => format!("The other {parts} parts"),
        };
        let total = pluralize(checks.len(), "check");
        sentences.push(format!("{who}: {total}, {}", count_checks(checks.into_iter(), &check_name)));
    }
    format!("within one run, {}", sentences.join(". "))
}
