//! View of the experiment `ab` or `calibrate` for the page.

use minijinja::Value;
use serde::Serialize;
use wb_model::CommonUnit;
use wb_results::experiment::{CalibrationExperiment, Experiment, VariantCase, VariantExperiment, VariantSummary};

use super::components::{FigureTable, NamedText, named_text};
use crate::chart::RatioBars;
use crate::compare::experiment::{CaseSection, calibration, describe_criterion, variants};
use crate::text::{Table, Tone};

#[derive(Serialize)]
pub(super) struct ExperimentView {
    criterion: NamedText,
    cases: Vec<CaseView>,
}

#[derive(Serialize)]
struct CaseView {
    title: String,
    about: Option<String>,
    variants: Vec<VariantsView>,
    tables: Vec<FigureTable>,
    remarks: Vec<NamedText>,
    end: Option<String>,
}

#[derive(Serialize)]
struct VariantsView {
    /// The metric, if the case has several.
    metric: Option<String>,
    rows: Vec<VariantRow>,
    axis: Value,
}

#[derive(Serialize)]
struct VariantRow {
    name: String,
    samples: usize,
    median: String,
    ratio: String,
    interval: String,
    p_value: String,
    bar: Option<Value>,
    verdict: &'static str,
    kind: &'static str,
    symbol: &'static str,
}

impl ExperimentView {
    pub(super) fn new(experiment: &Experiment) -> Self {
        let cases = match experiment {
            Experiment::Variants(variants) => variant_cases(variants),
            Experiment::Calibration(calibration) => calibration_cases(calibration),
        };
        let (metric, criterion) = describe_criterion(experiment);
        Self { criterion: named_text(metric, criterion), cases }
    }
}

fn variant_cases(experiment: &VariantExperiment) -> Vec<CaseView> {
    let sections = variants::sections(experiment, false);
    let view = |(case, section): (&[VariantCase], CaseSection)| CaseView {
        variants: case.iter().map(|one| VariantsView::new(one, experiment, case.len() > 1)).collect(),
        ..CaseView::new(section, Vec::new())
    };
    experiment.by_case().zip(sections).map(view).collect()
}

fn calibration_cases(calibration: &CalibrationExperiment) -> Vec<CaseView> {
    let view = |section: CaseSection| {
        let tables = section.tables.iter().map(|table| figure_table(&section.title, table)).collect();
        CaseView::new(section, tables)
    };
    calibration::sections(calibration).into_iter().map(view).collect()
}

impl CaseView {
    fn new(section: CaseSection, tables: Vec<FigureTable>) -> Self {
        Self {
            title: section.title,
            about: section.about,
            variants: Vec::new(),
            tables,
            remarks: section.remarks.iter().map(|(name, text)| named_text(name, text)).collect(),
            end: section.end,
        }
    }
}

impl VariantsView {
    fn new(case: &VariantCase, experiment: &VariantExperiment, is_named: bool) -> Self {
        let metric = experiment.metric(case);
        let threshold = experiment.criterion.threshold / 100.0;
        let bars = RatioBars::new(threshold, case.variants.iter().filter_map(variants::ratio));
        let unit = variants::common_unit(case, &metric);
        let rows = case.variants.iter().map(|variant| VariantRow::new(variant, &unit, &bars));
        Self {
            metric: is_named.then(|| variants::describe_metric(&metric)),
            rows: rows.collect(),
            axis: Value::from_safe_string(bars.axis()),
        }
    }
}

impl VariantRow {
    fn new(variant: &VariantSummary, unit: &CommonUnit<'_>, bars: &RatioBars) -> Self {
        let [median, ratio, interval, p_value] = variants::format_figures(variant, unit);
        let (verdict, tone) = variants::verdict(variant);
        let (kind, symbol) = tone_symbol(tone);
        let estimate = variants::ratio(variant);
        let is_drawn = variant.result.is_none() || estimate.is_some();
        let description = format!("ratio {ratio}, interval {interval}, {verdict}");
        Self {
            name: variant.name.clone(),
            samples: variant.samples,
            median,
            ratio,
            interval,
            p_value,
            bar: is_drawn.then(|| Value::from_safe_string(bars.bar(estimate, &description))),
            verdict,
            kind,
            symbol,
        }
    }
}

fn tone_symbol(tone: Tone) -> (&'static str, &'static str) {
    match tone {
        Tone::Good => ("good", "▲"),
        Tone::Plain | Tone::Strong => ("", "="),
        Tone::Doubtful => ("doubtful", "?"),
        Tone::Bad => ("bad", "▼"),
        Tone::Quiet => ("none", "○"),
    }
}

fn figure_table(title: &str, table: &Table) -> FigureTable {
    let (heads, rows) = table.raw_texts();
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let row = |row: Vec<&str>| Some((row.first()?.to_string(), owned(&row[1..])));
    let rows = rows.into_iter().filter_map(row).collect();
    FigureTable { title: title.to_owned(), over: None, heads: owned(&heads), rows }
}
