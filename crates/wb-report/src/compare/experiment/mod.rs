//! Tables of the experiments `ab` (variants of a test) and `calibrate` (a system against itself).

pub(crate) mod calibration;
mod ratio_scale;
pub(crate) mod variants;

use wb_model::{Direction, MetricKey, unescape_lossy};
use wb_results::experiment::{Criterion, Experiment, VariantExperiment};

use super::threshold_range::format_threshold;
use crate::text::{Style, Table};

/// The name of a case without axes.
const EMPTY_CASE: &str = "-";

pub(crate) struct CaseSection {
    pub(crate) title: String,
    pub(crate) about: Option<String>,
    pub(crate) tables: Vec<Table>,
    pub(crate) remarks: Vec<(String, String)>,
    pub(crate) end: Option<String>,
}

/// Creates a section for each case. Ratios are drawn to scale if the tables are not too wide for it.
fn sections(experiment: &Experiment, style: Style) -> Vec<CaseSection> {
    match experiment {
        Experiment::Variants(variants) => {
            let with_scale = variants::sections(variants, true);
            let fits = with_scale.iter().flat_map(|section| &section.tables).all(|table| table.fits(style));
            if fits { with_scale } else { variants::sections(variants, false) }
        }
        Experiment::Calibration(calibration) => calibration::sections(calibration),
    }
}

pub fn experiment_text(experiment: &Experiment, style: Style) -> String {
    let (metric, criterion) = describe_criterion(experiment);
    let text = |section: &CaseSection| {
        let line = |text: &Option<String>| text.as_ref().map_or(String::new(), |text| style.indent(0, text));
        let tables: String = section.tables.iter().map(|table| table.draw(style)).collect();
        let remarks: String = section.remarks.iter().map(|(name, text)| style.remark(name, text)).collect();
        style.heading(&section.title) + &line(&section.about) + &tables + &remarks + &line(&section.end)
    };
    let text = sections(experiment, style).iter().map(text).collect::<String>();
    let note = describe_other_metrics(experiment.criterion()).map_or_else(String::new, |it| style.remark("note", &it));
    text + "\n" + &style.remark(&metric, &criterion) + &note
}

/// Which metric decides, and which do not, if a test has several primary ones.
fn describe_other_metrics(Criterion { metric, other_metrics, .. }: &Criterion) -> Option<String> {
    (!other_metrics.is_empty()).then(|| format!("only {metric} is judged, not {}", join(other_metrics)))
}

/// The unescaped name of a case, or of the test if the case has no axes.
fn title(case: &str, criterion: &Criterion) -> String {
    if case == EMPTY_CASE { criterion.test.clone() } else { unescape_lossy(case) }
}

pub(crate) fn describe_criterion(experiment: &Experiment) -> (String, String) {
    let Criterion { metric, direction, threshold, error_rate, .. } = experiment.criterion();
    let threshold = format!("differences within {} do not matter", format_threshold(*threshold));
    let error_rate = match experiment {
        Experiment::Variants(VariantExperiment { family: Some(family), .. }) if *family > 1 => format!(
            "p corrected for {family} comparisons (Benjamini–Hochberg), false discovery rate at most {error_rate} %"
        ),
        Experiment::Variants(_) => format!("false-positive rate at most {error_rate} %"),
        // What the rate is has been measured, and is in the tables.
        Experiment::Calibration(_) => {
            format!("sides differ beyond chance at p ≤ {error_rate} %; intervals of their numbers at 95 % confidence")
        }
    };
    match &experiment.metrics()[..] {
        // Their tables have the directions.
        metrics @ [_, _, ..] => (join(metrics), format!("{threshold}; {error_rate}")),
        _ => (metric.to_string(), format!("{}; {threshold}; {error_rate}", describe_direction(*direction))),
    }
}

fn join(metrics: &[MetricKey]) -> String {
    metrics.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn describe_direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Higher => "higher is better",
        Direction::Lower => "lower is better",
        Direction::Neither => "neither way is better",
    }
}
