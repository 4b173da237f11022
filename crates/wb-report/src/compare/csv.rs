//! Writes comparisons as comma-separated values, in tidy form.

use std::collections::BTreeSet;

use wb_compare::Builds;
use wb_compare::build::{Build, DEFINING_PARAMS, METRIC_UNIT, MetricIndex};
use wb_model::Unit;
use wb_results::comparison::{
    AspectSummary, Certainty, CheckId, CheckResult, ComparisonResult, ConfidenceInterval, FailureSummary, FinalVerdict,
    IdFormat, NegligibleRatios, Statistic, TestPValues,
};

use super::figures::describe_error;
use crate::csv::{CellColumns, CellFields, SharedUnits, scale_figure, to_csv};

/// The last columns of a comparison within one run: the names of both sides of a check.
const SIDE_COLUMNS: [&str; 2] = ["reference", "judged"];

const CHECK_COLUMNS: [&str; 38] = [
    "statistic",
    "primary",
    "direction",
    "before",
    "after",
    "difference_percent",
    "score_percent",
    "tolerance_percent",
    "status",
    "verdict",
    "aspect",
    "ratio",
    "low",
    "high",
    "confidence",
    "runs_low",
    "runs_high",
    "negligible_low",
    "negligible_high",
    "p_value",
    "median_ratio",
    "value_difference",
    "value_low",
    "value_high",
    "value_runs_low",
    "value_runs_high",
    "n_before",
    "n_after",
    "runs_before",
    "runs_after",
    "disturbed_before",
    "disturbed_after",
    "failed_before",
    "failed_after",
    "attempts_before",
    "attempts_after",
    "decided_by",
    "final_verdict",
];

const REASON: &str = "reason";

const ASPECT_COLUMNS: [&str; 23] = [
    "statistic",
    "primary",
    "direction",
    "aspect",
    "quantity",
    "estimate",
    "low",
    "high",
    "confidence",
    "widened_low",
    "widened_high",
    "runs_low",
    "runs_high",
    "negligible_low",
    "negligible_high",
    "p_samples",
    "check_p_samples",
    "adjusted_p_samples",
    "p_runs",
    "check_p_runs",
    "adjusted_p_runs",
    "certainty",
    "verdict_alone",
];

const SAMPLE_COLUMNS: [&str; 5] = ["side", "build", "run", "sample", "value"];

const GROUP_COLUMNS: [&str; 12] = [
    "id",
    "members",
    "score_percent",
    "improvement_percent",
    "tolerance_percent",
    "status",
    "decides",
    "final_verdict",
    "interval_low",
    "interval_high",
    "median_percent",
    "dominant",
];

/// A comparison as the contents of CSV files.
#[derive(Debug)]
pub struct ComparisonCsv {
    /// One row per error of the first and the last build (verdict `error`, its text as the reason), then one per check.
    pub checks: String,
    /// One row per aspect of each check that statistics compared: the shift, the mean, the tail, and failed attempts.
    pub aspects: String,
    pub samples: String,
    pub groups: String,
}

pub fn csv(outcome: &ComparisonResult, builds: &Builds) -> ComparisonCsv {
    let table = TidyTable::new(outcome, builds);
    ComparisonCsv {
        checks: table.checks(),
        aspects: table.aspects(),
        samples: table.samples(),
        groups: groups(outcome),
    }
}

/// The columns and units that all rows of a comparison share.
struct TidyTable<'a> {
    outcome: &'a ComparisonResult,
    builds: &'a Builds,
    columns: CellColumns,
    units: SharedUnits,
}

impl<'a> TidyTable<'a> {
    fn new(outcome: &'a ComparisonResult, builds: &'a Builds) -> Self {
        let readings = builds.rows().flat_map(|row| builds.list().iter().flat_map(move |build| build.readings(row)));
        let sets = readings.map(|reading| reading.params);
        let names = sets.flat_map(|set| builds.params(set).map(|(name, _)| name).collect::<Vec<_>>());
        let names: BTreeSet<String> = names.filter(|name| !DEFINING_PARAMS.contains(name)).map(str::to_owned).collect();
        let of_row = |row: MetricIndex| {
            let metric = metric_name(&builds.id(row, Statistic::Mean)).0;
            let figure = move |build: &Build| {
                let value = build.value(row, Statistic::Mean).number().unwrap_or_default();
                Some((metric.clone(), own_unit(builds, build, row)?, value))
            };
            builds.list().iter().filter_map(figure)
        };
        let figures = builds.rows().flat_map(of_row);
        Self { outcome, builds, columns: CellColumns::new(names), units: SharedUnits::new(figures) }
    }

    fn checks(&self) -> String {
        let columns = self.check_columns();
        let header = self.header(&columns);
        let errors = self.outcome.errors().map(|(build, location, text)| {
            let fields = CellFields { cell: location.to_owned(), ..CellFields::default() };
            let of_check = CHECK_COLUMNS.map(|column| match column {
                "statistic" | "final_verdict" => "error".to_owned(),
                "primary" => true.to_string(),
                _ => String::new(),
            });
            let reason = describe_error(&build, text);
            let row = self.columns.row(fields, |_| String::new()).into_iter().chain(of_check).chain([reason]);
            row.chain(self.side_names(None)).collect()
        });
        let checks = self.outcome.checks.iter().map(|check| {
            let Some((id, row)) = self.find(check) else { return self.unnamed_row(check) };
            let sides = self.sides().map(|build| match check.statistic {
                Statistic::Mean => self.unit(build?, row),
                Statistic::Stddev => Some((1.0, "%".to_owned())),
            });
            let unit = sides.iter().flatten().next().map(|(_, name)| name.clone()).unwrap_or_default();
            // A side in another kind of unit is not comparable, and has no figure in this one.
            let divisors = sides.map(|side| match side {
                Some((divisor, name)) => (name == unit).then_some(divisor),
                None => Some(1.0),
            });
            let leading = self.columns.row(cell_fields(&id, unit), |name| self.param_of_sides(row, name));
            self.check_row(leading, check, divisors)
        });
        to_csv(header, errors.chain(checks))
    }

    /// The header of a file: the leading columns, which all files share, and these.
    fn header(&self, columns: &[&str]) -> Vec<String> {
        self.columns.header(columns, &[&self.check_columns(), &ASPECT_COLUMNS, &SAMPLE_COLUMNS])
    }

    fn check_columns(&self) -> Vec<&'static str> {
        let sides = self.outcome.within_run.iter().flat_map(|_| SIDE_COLUMNS);
        CHECK_COLUMNS.into_iter().chain([REASON]).chain(sides).collect()
    }

    fn check_row(&self, leading: Vec<String>, check: &CheckResult, divisors: [Option<f64>; 2]) -> Vec<String> {
        let reason = check.reason.clone().unwrap_or_default();
        let row = leading.into_iter().chain(check_fields(check, divisors)).chain([reason]);
        row.chain(self.side_names(check.sides.as_ref())).collect()
    }

    /// The names of both sides within one run, which errors do not have.
    fn side_names(&self, names: Option<&[String; 2]>) -> Vec<String> {
        match self.outcome.within_run {
            Some(_) => names.cloned().unwrap_or_default().into(),
            None => Vec::new(),
        }
    }

    fn unnamed_row(&self, check: &CheckResult) -> Vec<String> {
        self.check_row(self.unnamed_leading(check), check, [Some(1.0); 2])
    }

    fn unnamed_leading(&self, check: &CheckResult) -> Vec<String> {
        let fields = CellFields { cell: check.id.clone(), ..CellFields::default() };
        self.columns.row(fields, |_| String::new())
    }

    fn aspects(&self) -> String {
        let sides = self.outcome.within_run.iter().flat_map(|_| SIDE_COLUMNS);
        let columns: Vec<&str> = ASPECT_COLUMNS.into_iter().chain(sides).collect();
        let header = self.header(&columns);
        let rows = self.outcome.checks.iter().flat_map(|check| {
            let found = self.find(check);
            let unit =
                found.as_ref().and_then(|(_, row)| self.sides().into_iter().find_map(|build| self.unit(build?, *row)));
            let (divisor, unit) = unit.unwrap_or((1.0, String::new()));
            // Ratios and shares have no unit.
            let leading = |has_unit: bool| match &found {
                Some((id, row)) => {
                    let unit = if has_unit { unit.clone() } else { String::new() };
                    self.columns.row(cell_fields(id, unit), |name| self.param_of_sides(*row, name))
                }
                None => self.unnamed_leading(check),
            };
            let rows = aspect_rows(check, divisor).into_iter().map(|row| {
                let leading = leading(row.quantity == DIFFERENCE_OF_VALUES);
                let row = leading.into_iter().chain(row.fields(check));
                row.chain(self.side_names(check.sides.as_ref())).collect::<Vec<String>>()
            });
            rows.collect::<Vec<_>>()
        });
        to_csv(header, rows)
    }

    fn samples(&self) -> String {
        let header = self.header(&SAMPLE_COLUMNS);
        let last = self.builds.list().len().saturating_sub(1);
        let rows = self.builds.rows().flat_map(|row| {
            let id = self.builds.id(row, Statistic::Mean);
            self.builds.list().iter().enumerate().flat_map(move |(index, build)| {
                let side = if index == 0 {
                    "before"
                } else if index == last {
                    "after"
                } else {
                    "between"
                };
                let (divisor, unit) = self.unit(build, row).unwrap_or((1.0, String::new()));
                let leading = self.columns.row(cell_fields(&id, unit), |name| {
                    param(self.builds, build, row, name).unwrap_or_default().to_owned()
                });
                let samples = build.runs.iter().flat_map(move |run| {
                    let path = run.path.display().to_string();
                    run.samples(row).iter().enumerate().map(move |(number, value)| (path.clone(), number, *value))
                });
                samples.map(move |(run, number, value)| {
                    let value = scale_figure(value, divisor).to_string();
                    let of_sample = [side.to_owned(), build.name.clone(), run, number.to_string(), value];
                    leading.iter().cloned().chain(of_sample).collect()
                })
            })
        });
        to_csv(header, rows)
    }

    fn find<'c>(&self, check: &'c CheckResult) -> Option<(CheckId<'c>, MetricIndex)> {
        let id = CheckId::parse(&check.id).ok()?;
        let row = self.builds.find(&id)?;
        Some((id, row))
    }

    fn sides(&self) -> [Option<&'a Build>; 2] {
        [self.builds.list().first(), self.builds.list().last()]
    }

    /// The divisor of a build's figures of a metric, and the name of the common unit; `None` without a known unit.
    fn unit(&self, build: &Build, row: MetricIndex) -> Option<(f64, String)> {
        let own = own_unit(self.builds, build, row)?;
        let metric = metric_name(&self.builds.id(row, Statistic::Mean)).0;
        self.units.of(&metric, &own).map(|unit| (unit.divisor, unit.name.clone()))
    }

    /// The value of a parameter in the first build and in the last: `60 → 61` if they differ.
    fn param_of_sides(&self, row: MetricIndex, name: &str) -> String {
        match self.sides().map(|build| param(self.builds, build?, row, name)) {
            [Some(before), Some(after)] if before != after => format!("{before} → {after}"),
            [before, after] => before.or(after).unwrap_or_default().to_owned(),
        }
    }
}

fn own_unit(builds: &Builds, build: &Build, row: MetricIndex) -> Option<Unit> {
    param(builds, build, row, METRIC_UNIT).map(Unit::new)
}

fn param<'a>(builds: &'a Builds, build: &Build, row: MetricIndex, name: &str) -> Option<&'a str> {
    let set = build.readings(row).next()?.params;
    builds.params(set).find(|(other, _)| *other == name).map(|(_, value)| value)
}

/// The metric with its class, and its worker.
fn metric_name(id: &CheckId<'_>) -> (String, String) {
    let (name, worker) = match id.id_format {
        IdFormat::Weighbridge => id.metric.split_once('@').unwrap_or((id.metric, "")),
        IdFormat::RunPerf => (id.metric, ""),
    };
    (format!("{}/{name}", id.class), worker.to_owned())
}

fn cell_fields(id: &CheckId<'_>, unit: String) -> CellFields {
    let (metric, worker) = metric_name(id);
    CellFields {
        cell: format!("{}/{}/{}{}{}", id.profile, id.test, id.serial, id.id_format.before_case(), id.case),
        profile: id.profile.to_owned(),
        test: id.test.to_owned(),
        serial: id.serial.to_owned(),
        metric,
        unit,
        worker,
    }
}

fn check_fields(check: &CheckResult, [before, after]: [Option<f64>; 2]) -> [String; CHECK_COLUMNS.len()] {
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let figure = |value: Option<f64>, divisor: Option<f64>| {
        number(value.zip(divisor).map(|(value, by)| scale_figure(value, by)))
    };
    let count = |value: Option<usize>| value.map_or(String::new(), |value| value.to_string());
    let statistics = check.statistics.as_ref();
    let interval = statistics.and_then(|it| it.interval);
    let runs_interval = statistics.and_then(|it| it.runs_interval);
    let negligible = statistics.and_then(|it| it.negligible);
    let of_values = statistics.and_then(|it| it.value_difference);
    let values = |value: Option<f64>| figure(value, before.or(after));
    let samples = |side: usize| count(statistics.map(|it| it.counts.samples[side]));
    let runs = |side: usize| count(statistics.map(|it| it.counts.runs[side]));
    let disturbed = |side: usize| count(statistics.and_then(|it| it.disturbed[side]));
    let failed = |side: usize| count(statistics.map(|it| it.failures[side].failed as usize));
    let attempts = |side: usize| count(statistics.map(|it| it.failures[side].attempts as usize));
    [
        check.statistic.to_string(),
        check.primary.to_string(),
        check.direction.to_string(),
        figure(check.before, before),
        figure(check.after, after),
        number(check.difference),
        number(check.score),
        check.tolerance.to_string(),
        check.status.as_str().to_owned(),
        statistics.map_or(String::new(), |it| it.verdict.as_str().to_owned()),
        statistics.and_then(|it| it.aspect).map_or(String::new(), |aspect| aspect.to_string()),
        number(statistics.and_then(|it| it.ratio)),
        number(interval.map(|interval| interval.low)),
        number(interval.map(|interval| interval.high)),
        number(interval.map(|interval| interval.confidence)),
        number(runs_interval.map(|interval| interval.low)),
        number(runs_interval.map(|interval| interval.high)),
        number(negligible.map(|negligible| negligible.low)),
        number(negligible.map(|negligible| negligible.high)),
        number(statistics.and_then(|it| it.p_value)),
        number(statistics.and_then(|it| it.median_ratio)),
        values(of_values.map(|it| it.estimate)),
        values(of_values.and_then(|it| it.interval).map(|interval| interval.low)),
        values(of_values.and_then(|it| it.interval).map(|interval| interval.high)),
        values(of_values.and_then(|it| it.runs_interval).map(|interval| interval.low)),
        values(of_values.and_then(|it| it.runs_interval).map(|interval| interval.high)),
        samples(0),
        samples(1),
        runs(0),
        runs(1),
        disturbed(0),
        disturbed(1),
        failed(0),
        failed(1),
        attempts(0),
        attempts(1),
        check.decided_by.as_str().to_owned(),
        check.final_verdict.as_str().to_owned(),
    ]
}

/// The quantity of an aspect that has a difference in the unit of its values instead of a ratio.
const DIFFERENCE_OF_VALUES: &str = "difference of values";

/// The rows of a check's aspects, and of its failed attempts if any. Values are divided by `divisor`.
fn aspect_rows(check: &CheckResult, divisor: f64) -> Vec<AspectRow> {
    let Some(statistics) = &check.statistics else { return Vec::new() };
    let aspects = statistics.aspects.iter().map(|aspect| AspectRow::of_aspect(aspect, statistics.negligible, divisor));
    let failures =
        statistics.failure_rates.map(|failures| AspectRow::of_failures(failures, check, statistics.failures_rose));
    aspects.chain(failures).collect()
}

struct AspectRow {
    name: &'static str,
    /// What the estimate and its intervals are: a ratio or a difference.
    quantity: &'static str,
    estimate: Option<f64>,
    /// By the samples, widened, and with the noise between runs.
    intervals: [Option<ConfidenceInterval>; 3],
    negligible: Option<NegligibleRatios>,
    /// By the samples, and with the noise between runs.
    p_values: [Option<TestPValues>; 2],
    certainty: Certainty,
    verdict: FinalVerdict,
}

impl AspectRow {
    fn of_aspect(aspect: &AspectSummary, negligible: Option<NegligibleRatios>, divisor: f64) -> Self {
        let scaled = |interval: ConfidenceInterval| ConfidenceInterval {
            low: scale_figure(interval.low, divisor),
            high: scale_figure(interval.high, divisor),
            ..interval
        };
        let (quantity, estimate, intervals) = match aspect.value_difference {
            Some(it) => (
                DIFFERENCE_OF_VALUES,
                Some(scale_figure(it.estimate, divisor)),
                [it.interval, it.widened_interval, it.runs_interval].map(|interval| interval.map(scaled)),
            ),
            None => ("ratio", aspect.ratio, [aspect.interval, aspect.widened_interval, aspect.runs_interval]),
        };
        Self {
            name: aspect.aspect.as_str(),
            quantity,
            estimate,
            intervals,
            // Ratios.
            negligible: negligible.filter(|_| aspect.value_difference.is_none()),
            p_values: [aspect.p_by_samples, Some(aspect.p_by_runs)],
            certainty: aspect.certainty,
            verdict: aspect.alone,
        }
    }

    fn of_failures(failures: FailureSummary, check: &CheckResult, rose: bool) -> Self {
        Self {
            name: "failures",
            quantity: "difference of shares",
            estimate: Some(failures.difference),
            intervals: [Some(failures.interval), None, None],
            negligible: None,
            p_values: [Some(failures.p_value); 2],
            certainty: if rose { Certainty::Runs } else { Certainty::None },
            verdict: match (rose, &check.sides) {
                (false, _) => FinalVerdict::Inconclusive,
                (true, None) => FinalVerdict::Regressed,
                (true, Some(_)) => FinalVerdict::Worse,
            },
        }
    }

    fn fields(&self, check: &CheckResult) -> Vec<String> {
        let certainty = match self.certainty {
            Certainty::None => "none",
            Certainty::Samples => "samples",
            Certainty::Runs => "runs",
        };
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let ends = |index: usize| {
            [self.intervals[index].map(|it| it.low), self.intervals[index].map(|it| it.high)].map(number)
        };
        let p_values =
            self.p_values.iter().flat_map(|p| [p.map(|p| p.alone), p.map(|p| p.in_check), p.map(|p| p.in_family)]);
        [check.statistic.to_string(), check.primary.to_string(), check.direction.to_string()]
            .into_iter()
            .chain([self.name.to_owned(), self.quantity.to_owned(), number(self.estimate)])
            .chain(ends(0))
            .chain([number(self.intervals[0].map(|it| it.confidence))])
            .chain([ends(1), ends(2)].into_iter().flatten())
            .chain([self.negligible.map(|it| it.low), self.negligible.map(|it| it.high)].map(number))
            .chain(p_values.map(number))
            .chain([certainty.to_owned(), self.verdict.as_str().to_owned()])
            .collect()
    }
}

fn groups(outcome: &ComparisonResult) -> String {
    let rows = outcome.groups.iter().map(|group| {
        let (members, decides) = (group.members.to_string(), group.decides.to_string());
        let (score, tolerance) = (group.score.to_string(), group.tolerance.to_string());
        let improvement = group.improvement.map_or_else(String::new, |improvement| improvement.to_string());
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let dominant = group.dominant.as_ref().map_or_else(String::new, |member| member.id.clone());
        vec![
            group.id.clone(),
            members,
            score,
            improvement,
            tolerance,
            group.status.to_string(),
            decides,
            group.final_verdict.as_str().to_owned(),
            number(group.interval.map(|interval| interval.low)),
            number(group.interval.map(|interval| interval.high)),
            number(group.median),
            dominant,
        ]
    });
    to_csv(GROUP_COLUMNS, rows)
}
