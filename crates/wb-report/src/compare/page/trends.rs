//! Each test of each profile over the builds.

use std::collections::BTreeMap;

use minijinja::Value;
use serde::Serialize;
use wb_compare::Statistic;
use wb_compare::outcome::{History, Totals};
use wb_stats::{Samples, Summary};

use super::boxes::span;
use super::counts::{legend, parts};
use crate::chart::{self, CountRow, Trend, TrendColumn};
use crate::page::pieces::Ids;

/// The charts, in the order of profiles and tests.
#[derive(Serialize)]
pub(super) struct Trends {
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

/// So many charts are drawn: those with the most checks.
const SHOWN: usize = 60;
const WIDTH: f64 = 326.0;

/// Profile and test, and the primary means of both.
type Test<'a> = ((&'a str, &'a str), Vec<usize>);

/// Of primary means; none of two builds, which are no series.
pub(super) fn trends(history: &History<'_>, names: &[String], ids: &mut Ids) -> Option<Trends> {
    if names.len() < 3 {
        return None;
    }
    let mut tests: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (at, check) in history.tolerances.checks.iter().enumerate() {
        if check.primary && check.statistic == Statistic::Mean {
            let id = history.tolerances.id(at);
            tests.entry((id.profile, id.test)).or_default().push(at);
        }
    }
    let mut tests: Vec<Test<'_>> = tests.into_iter().collect();
    let all = tests.len();
    tests.sort_by_key(|(_, checks)| std::cmp::Reverse(checks.len()));
    tests.truncate(SHOWN);
    tests.sort();
    let mut totals: Vec<Totals> = Vec::new();
    let mut drawn: Vec<TestTrend> = Vec::new();
    for ((profile, test), checks) in &tests {
        let counted: Vec<Totals> = (1..names.len()).map(|at| history.totals_of(checks.iter().copied(), at)).collect();
        let trend = trend(history, names, format!("{profile}/{test}"), checks, &counted);
        let chart = Value::from_safe_string(chart::inline(&trend, WIDTH, &ids.next()));
        let [profile, test] = [profile, test].map(|name| (*name).to_owned());
        drawn.push(TestTrend { profile, test, checks: checks.len(), chart });
        totals.extend(counted);
    }
    let legend = legend(totals.iter()).into_iter().map(|(key, name)| (Value::from_safe_string(key), name)).collect();
    (all > 0).then_some(Trends { tests: drawn, legend, shown: tests.len(), all })
}

fn trend(history: &History<'_>, names: &[String], title: String, checks: &[usize], counted: &[Totals]) -> Trend {
    let column = |(at, totals): (usize, &Totals)| {
        let gains: Vec<f64> = checks.iter().filter_map(|check| history.gain(*check, at)).collect();
        let summary = Samples::new(&gains).ok().map(|samples| Summary::of(&samples));
        TrendColumn { summary, counts: CountRow { label: names[at].clone(), parts: parts(totals) } }
    };
    let columns: Vec<TrendColumn> = (1..).zip(counted).map(column).collect();
    let span = span(columns.iter().filter_map(|column| column.summary.as_ref()));
    Trend {
        title: format!("gains of {title} over the builds"),
        columns,
        span,
        tolerance: history.tolerances.options.tolerance,
    }
}
