//! Measurements with no other program to compare with, with bounds of their own where there is a goal.

use crate::document::DocumentRow;
use serde::Serialize;
use std::fmt;
use wb_stats::Samples;

pub(crate) struct Benchmark<'a> {
    pub(crate) name: &'static str,
    measure: Box<MeasureFn<'a>>,
}

type MeasureFn<'a> = dyn FnOnce() -> Result<Vec<BenchFigure>, String> + 'a;

#[derive(Serialize)]
pub(crate) struct BenchFigure {
    label: String,
    value: f64,
    unit: &'static str,
    bound: Option<FigureBound>,
    /// The range of the repetitions whose median the figure is.
    range: Option<FigureRange>,
}

#[derive(Serialize)]
struct FigureRange {
    min: f64,
    max: f64,
    count: usize,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FigureBound {
    AtLeast(f64),
    Below(f64),
    /// At most this far from zero, to either side.
    Within(f64),
}

#[derive(Serialize)]
pub(crate) struct BenchmarkResult {
    name: &'static str,
    outcome: Result<Vec<BenchFigure>, String>,
}

impl<'a> Benchmark<'a> {
    pub(crate) fn new(name: &'static str, measure: impl FnOnce() -> Result<Vec<BenchFigure>, String> + 'a) -> Self {
        Self { name, measure: Box::new(measure) }
    }

    pub(crate) fn run(self) -> BenchmarkResult {
        BenchmarkResult { name: self.name, outcome: (self.measure)() }
    }
}

impl BenchmarkResult {
    /// The figures as rows; none if they could not be measured.
    pub(crate) fn rows(&self) -> Vec<DocumentRow> {
        let row = |figure: &BenchFigure| DocumentRow {
            name: format!("{}: {}", self.name, figure.label),
            result: figure.to_string(),
            verdict: figure.verdict(),
            repetitions: figure.range.as_ref().map_or_else(String::new, |range| format!("{} times", range.count)),
        };
        self.outcome.iter().flatten().map(row).collect()
    }
}

impl BenchFigure {
    /// What is required and whether it is met; empty if nothing is required.
    fn verdict(&self) -> String {
        self.bound.map_or_else(String::new, |bound| {
            let verdict = if bound.is_met(self.value) { "ok" } else { "missed" };
            format!("required {bound} {}: {verdict}", self.unit)
        })
    }

    pub(crate) fn new(what: impl Into<String>, value: f64, unit: &'static str, bound: Option<FigureBound>) -> Self {
        Self { label: what.into(), value, unit, bound, range: None }
    }

    /// The median of repetitions, with their range. Fails if there are none.
    pub(crate) fn median(
        label: impl Into<String>,
        values: &[f64],
        unit: &'static str,
        bound: Option<FigureBound>,
    ) -> Result<Self, String> {
        let values = Samples::new(values).map_err(|error| error.to_string())?;
        let range = FigureRange { min: values.min(), max: values.max(), count: values.count() };
        Ok(Self { range: Some(range), ..Self::new(label, values.median(), unit, bound) })
    }
}

impl FigureBound {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::Below(limit) => value < limit,
            Self::Within(limit) => value.abs() <= limit,
        }
    }
}

impl fmt::Display for FigureBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, "at least {least}"),
            Self::Below(limit) => write!(f, "below {limit}"),
            Self::Within(limit) => write!(f, "within ±{limit}"),
        }
    }
}

impl fmt::Display for BenchFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} {}", self.value, self.unit)?;
        match &self.range {
            Some(FigureRange { min, max, count }) => write!(f, " (median of {count}, {min:.2} to {max:.2})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for BenchmarkResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name;
        let figures = match &self.outcome {
            Ok(figures) => figures,
            Err(reason) => return write!(f, "{name}: SKIPPED: {reason}"),
        };
        let lines = figures.iter().map(|figure| {
            let separator = if figure.bound.is_some() { ", " } else { "" };
            format!("{name}: {} {figure}{separator}{}", figure.label, figure.verdict())
        });
        f.write_str(&lines.collect::<Vec<_>>().join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_is_compared_with_its_bound() {
        let figures = || {
            Ok(vec![
                BenchFigure::new("share", 89.99, "%", Some(FigureBound::AtLeast(90.0))),
                BenchFigure::new("memory", 39.5, "MB", Some(FigureBound::Below(40.0))),
                BenchFigure::new("time", 1.0, "s", None),
                BenchFigure::median("delay", &[3.0, 1.0, 2.0], "ms", None)?,
                BenchFigure::new("gap", -1.25, "ms", Some(FigureBound::Within(1.0))),
            ])
        };
        assert_eq!(
            Benchmark::new("row", figures).run().to_string(),
            "row: share 89.99 %, required at least 90 %: missed\nrow: memory 39.50 MB, required below 40 MB: ok\nrow: time 1.00 s\n\
             row: delay 2.00 ms (median of 3, 1.00 to 3.00)\nrow: gap -1.25 ms, required within ±1 ms: missed"
        );
        let skipped = Benchmark::new("row", || Err("no program".into())).run();
        assert_eq!(skipped.to_string(), "row: SKIPPED: no program");
    }
}
