//! Figures that stand alone, each against a limit of its own.

use serde::Serialize;
use std::fmt;

/// Some figures that are taken together.
pub(crate) struct LimitCheck<'a> {
    pub(crate) name: &'static str,
    measure: Box<MeasureFn<'a>>,
}

/// Takes the figures, or says why there are none.
type MeasureFn<'a> = dyn FnOnce() -> Result<Vec<BenchFigure>, String> + 'a;

/// One figure.
#[derive(Serialize)]
pub(crate) struct BenchFigure {
    what: String,
    value: f64,
    unit: &'static str,
    bound: Option<FigureBound>,
}

/// What a figure must keep to.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FigureBound {
    AtLeast(f64),
    Below(f64),
    /// So far from zero at most, to either side.
    Within(f64),
}

/// Figures that have been taken.
#[derive(Serialize)]
pub(crate) struct LimitResult {
    name: &'static str,
    outcome: Result<Vec<BenchFigure>, String>,
}

impl<'a> LimitCheck<'a> {
    pub(crate) fn new(name: &'static str, take: impl FnOnce() -> Result<Vec<BenchFigure>, String> + 'a) -> Self {
        Self { name, measure: Box::new(take) }
    }

    pub(crate) fn run(self) -> LimitResult {
        LimitResult { name: self.name, outcome: (self.measure)() }
    }
}

impl BenchFigure {
    pub(crate) fn new(what: impl Into<String>, value: f64, unit: &'static str, bound: Option<FigureBound>) -> Self {
        Self { what: what.into(), value, unit, bound }
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

impl fmt::Display for LimitResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name;
        let figures = match &self.outcome {
            Ok(figures) => figures,
            Err(why) => return write!(f, "{name}: SKIPPED: {why}"),
        };
        let lines = figures.iter().map(|BenchFigure { what, value, unit, bound }| match bound {
            Some(bound) => {
                let verdict = if bound.is_met(*value) { "ok" } else { "short" };
                format!("{name}: {what} {value:.2} {unit}, wanted {bound} {unit}: {verdict}")
            }
            None => format!("{name}: {what} {value:.2} {unit}"),
        });
        f.write_str(&lines.collect::<Vec<_>>().join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_is_held_against_its_bound() {
        let figures = || {
            Ok(vec![
                BenchFigure::new("share", 89.99, "%", Some(FigureBound::AtLeast(90.0))),
                BenchFigure::new("memory", 39.5, "MB", Some(FigureBound::Below(40.0))),
                BenchFigure::new("time", 1.0, "s", None),
                BenchFigure::new("gap", -1.25, "ms", Some(FigureBound::Within(1.0))),
            ])
        };
        assert_eq!(
            LimitCheck::new("row", figures).run().to_string(),
            "row: share 89.99 %, wanted at least 90 %: short\nrow: memory 39.50 MB, wanted below 40 MB: ok\nrow: time 1.00 s\n\
             row: gap -1.25 ms, wanted within ±1 ms: short"
        );
        let none = LimitCheck::new("row", || Err("no program".into())).run();
        assert_eq!(none.to_string(), "row: SKIPPED: no program");
    }
}
