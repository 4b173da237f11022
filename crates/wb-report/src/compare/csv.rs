//! Writes comparisons as comma-separated values.

use wb_compare::ComparisonResult;

use super::figures::describe_error;
use crate::csv::to_csv;

/// Columns of a comparison within one run: the names of both sides.
const SIDE_COLUMNS: &str = ",reference,judged";

const CHECK_COLUMNS: &str = "id,statistic,primary,direction,before,after,difference_percent,score_percent,tolerance_percent,status,verdict,ratio,low,high,confidence,p_value,n_before,n_after,disturbed_before,disturbed_after,reason,decided_by,final_verdict,unit,aspect,runs_low,runs_high,runs_before,runs_after,median_ratio";

/// Writes one row per error of the first and the last build, whose decision is `error` and whose reason is its text,
/// then one row per check. Within one run, the names of both sides follow.
pub fn checks(outcome: &ComparisonResult) -> String {
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let rows = outcome.checks.iter().map(|check| {
        let statistics = check.statistics.as_ref();
        let interval = statistics.and_then(|statistics| statistics.interval);
        let count =
            |side: usize| statistics.map_or(String::new(), |statistics| statistics.counts.samples[side].to_string());
        let runs_interval = statistics.and_then(|statistics| statistics.runs_interval);
        let runs = |side: usize| statistics.map_or(String::new(), |it| it.counts.runs[side].to_string());
        let disturbed = |side: usize| {
            statistics
                .and_then(|statistics| statistics.disturbed[side])
                .map_or(String::new(), |count| count.to_string())
        };
        let fields = [
            check.id.clone(),
            check.statistic.to_string(),
            check.primary.to_string(),
            check.direction.to_string(),
            number(check.before),
            number(check.after),
            number(check.difference),
            number(check.score),
            check.tolerance.to_string(),
            check.status.to_string(),
            statistics.map_or(String::new(), |statistics| statistics.verdict.as_str().to_owned()),
            number(statistics.and_then(|statistics| statistics.ratio)),
            number(interval.map(|interval| interval.low)),
            number(interval.map(|interval| interval.high)),
            number(interval.map(|interval| interval.confidence)),
            number(statistics.and_then(|statistics| statistics.p_value)),
            count(0),
            count(1),
            disturbed(0),
            disturbed(1),
            check.reason.clone().unwrap_or_default(),
            check.decided_by.as_str().to_owned(),
            check.final_verdict.as_str().to_owned(),
            check.value_unit.as_ref().map(ToString::to_string).unwrap_or_default(),
            statistics.and_then(|statistics| statistics.aspect).map_or(String::new(), |aspect| aspect.to_string()),
            number(runs_interval.map(|interval| interval.low)),
            number(runs_interval.map(|interval| interval.high)),
            runs(0),
            runs(1),
            number(statistics.and_then(|statistics| statistics.median_ratio)),
        ];
        fields.into_iter().chain(check.sides.clone().into_iter().flatten()).collect()
    });
    let columns = match outcome.within_run {
        Some(_) => CHECK_COLUMNS.to_owned() + SIDE_COLUMNS,
        None => CHECK_COLUMNS.to_owned(),
    };
    let errors = outcome.errors().map(|(build, location, text)| {
        let field = |column: &str| match column {
            "id" => location.to_owned(),
            "statistic" | "final_verdict" => "error".to_owned(),
            "primary" => true.to_string(),
            "reason" => describe_error(build, text),
            _ => String::new(),
        };
        columns.split(',').map(field).collect()
    });
    to_csv(&columns, errors.chain(rows))
}

const GROUP_COLUMNS: &str = "id,members,score_percent,tolerance_percent,status,decides";

/// Writes one row per group.
pub fn groups(outcome: &ComparisonResult) -> String {
    let rows = outcome.groups.iter().map(|group| {
        let (members, decides) = (group.members.to_string(), group.decides.to_string());
        let (score, tolerance) = (group.score.to_string(), group.tolerance.to_string());
        vec![group.id.clone(), members, score, tolerance, group.status.to_string(), decides]
    });
    to_csv(GROUP_COLUMNS, rows)
}
