//! Comparisons as comma-separated values.

use wb_compare::Outcome;

use crate::csv::written;

const CHECKS: [&str; 20] = [
    "id",
    "statistic",
    "primary",
    "direction",
    "src",
    "dst",
    "raw_percent",
    "score_percent",
    "tolerance_percent",
    "status",
    "verdict",
    "ratio",
    "low",
    "high",
    "confidence",
    "p",
    "n_src",
    "n_dst",
    "decided_by",
    "decided",
];

/// One row per check.
pub fn checks(outcome: &Outcome) -> String {
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let rows = outcome.checks.iter().map(|check| {
        let found = check.statistics.as_ref();
        let interval = found.and_then(|found| found.ci);
        let count = |side: usize| found.map_or(String::new(), |found| found.n[side].to_string());
        vec![
            check.id.clone(),
            check.statistic.to_string(),
            check.primary.to_string(),
            check.direction.to_string(),
            number(check.src),
            number(check.dst),
            number(check.raw),
            number(check.score),
            check.tolerance.to_string(),
            check.status.to_string(),
            found.map_or(String::new(), |found| found.verdict.as_str().to_owned()),
            number(found.and_then(|found| found.ratio)),
            number(interval.map(|interval| interval.low)),
            number(interval.map(|interval| interval.high)),
            number(interval.map(|interval| interval.confidence)),
            number(found.and_then(|found| found.p)),
            count(0),
            count(1),
            check.decided_by.as_str().to_owned(),
            check.decided.as_str().to_owned(),
        ]
    });
    written(&CHECKS, rows)
}

const GROUPS: [&str; 6] = ["id", "members", "score_percent", "tolerance_percent", "status", "decides"];

/// One row per group.
pub fn groups(outcome: &Outcome) -> String {
    let rows = outcome.groups.iter().map(|group| {
        let (members, decides) = (group.members.to_string(), group.decides.to_string());
        let (score, tolerance) = (group.score.to_string(), group.tolerance.to_string());
        vec![group.id.clone(), members, score, tolerance, group.status.to_string(), decides]
    });
    written(&GROUPS, rows)
}
