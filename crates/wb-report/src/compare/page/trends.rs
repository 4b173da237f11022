//! Trend charts of each test of each profile over the builds.

use std::collections::BTreeMap;

use minijinja::Value;
use serde::Serialize;
use wb_compare::comparison::BuildHistory;
use wb_results::comparison::{Statistic, Totals};
use wb_stats::{Samples, Summary};

use super::box_plots::axis_range;
use super::counts::{legend, parts};
use crate::chart::{self, CountRow, TrendChart, TrendColumn};
use crate::page::components::IdGenerator;

#[derive(Serialize)]
pub(super) struct TestTrends {
    tests: Vec<TestTrend>,
    legend: Vec<(Value, &'static str)>,
    shown: usize,
    all: usize,
}

#[derive(Serialize)]
struct TestTrend {
    profile: String,
    test: String,
    checks: usize,
    chart: Value,
}

/// Maximum number of charts; tests with the most checks have one.
const MAX_CHARTS: usize = 60;
const WIDTH: f64 = 326.0;

/// Profile and test, with their checks of primary means.
type TestChecks<'a> = ((&'a str, &'a str), Vec<usize>);

/// Builds the charts of primary means; `None` for fewer than three builds.
pub(super) fn build_trends(history: &BuildHistory<'_>, names: &[String], ids: &mut IdGenerator) -> Option<TestTrends> {
    if names.len() < 3 {
        return None;
    }
    let mut tests: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (index, check) in history.tolerances.checks.iter().enumerate() {
        if check.primary && check.statistic == Statistic::Mean {
            let id = history.tolerances.id(index);
            tests.entry((id.profile, id.test)).or_default().push(index);
        }
    }
    let mut tests: Vec<TestChecks<'_>> = tests.into_iter().collect();
    let all = tests.len();
    tests.sort_by_key(|(_, checks)| std::cmp::Reverse(checks.len()));
    tests.truncate(MAX_CHARTS);
    tests.sort();
    let mut totals: Vec<Totals> = Vec::new();
    let mut charts: Vec<TestTrend> = Vec::new();
    for ((profile, test), checks) in &tests {
        let counted: Vec<Totals> =
            (1..names.len()).map(|index| history.totals_of(checks.iter().copied(), index)).collect();
        let trend = build_chart(history, names, format!("{profile}/{test}"), checks, &counted);
        let chart = Value::from_safe_string(chart::inline(&trend, WIDTH, &ids.next()));
        let [profile, test] = [profile, test].map(|name| (*name).to_owned());
        charts.push(TestTrend { profile, test, checks: checks.len(), chart });
        totals.extend(counted);
    }
    let legend = legend(totals.iter()).into_iter().map(|(key, name)| (Value::from_safe_string(key), name)).collect();
    (all > 0).then_some(TestTrends { tests: charts, legend, shown: tests.len(), all })
}

fn build_chart(
    history: &BuildHistory<'_>,
    names: &[String],
    title: String,
    checks: &[usize],
    counted: &[Totals],
) -> TrendChart {
    let column = |(index, totals): (usize, &Totals)| {
        let gains: Vec<f64> = checks.iter().filter_map(|check| history.gain(*check, index)).collect();
        let summary = Samples::new(&gains).ok().map(|samples| Summary::of_unordered(&samples));
        TrendColumn { summary, counts: CountRow { label: names[index].clone(), parts: parts(totals) } }
    };
    let columns: Vec<TrendColumn> = (1..).zip(counted).map(column).collect();
    let span = axis_range(columns.iter().filter_map(|column| column.summary.as_ref()));
    TrendChart {
        title: format!("improvements of {title} over the builds"),
        columns,
        span,
        tolerance: history.tolerances.options.tolerance,
    }
}
