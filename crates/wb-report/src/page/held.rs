//! The comparison within a run of `ab` or `calibrate`, on a page.

use minijinja::Value;
use serde::Serialize;
use wb_compare::variants::{Calibrated, Held, Question, VariantTold, Variants, VariantsOfCase};

use super::pieces::{Pair, pair};
use crate::chart::RatioBars;
use crate::compare::held::{Section, asked, calibrated, variants};
use crate::text::{Table, Tone};

/// The cases of the comparison, and the question.
#[derive(Serialize)]
pub(super) struct HeldView {
    asked: Pair,
    cases: Vec<CaseView>,
}

#[derive(Serialize)]
struct CaseView {
    title: String,
    about: Option<String>,
    variants: Option<VariantsView>,
    tables: Vec<FiguresView>,
    remarks: Vec<Pair>,
    end: Option<String>,
}

/// The variants of a case, their ratios drawn on one scale.
#[derive(Serialize)]
struct VariantsView {
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
    bar: Option<Value>,
    verdict: &'static str,
    kind: &'static str,
    symbol: &'static str,
}

/// What the template needs of a table; the first column names the rows.
#[derive(Serialize)]
struct FiguresView {
    title: String,
    heads: Vec<String>,
    rows: Vec<(String, Vec<String>)>,
}

impl HeldView {
    pub(super) fn new(held: &Held) -> Self {
        let (cases, (metric, asked)) = match held {
            Held::Variants(variants) => (of_variants(variants), asked(&variants.question)),
            Held::Calibrated(calibrated) => (of_calibrated(calibrated), asked(&calibrated.question)),
        };
        Self { asked: pair(metric, asked), cases }
    }
}

fn of_variants(experiment: &Variants) -> Vec<CaseView> {
    let sections = variants::sections(experiment, false);
    let view = |(case, section): (&VariantsOfCase, Section)| CaseView {
        variants: Some(VariantsView::new(case, &experiment.question)),
        ..CaseView::new(section, Vec::new())
    };
    experiment.cases.iter().zip(sections).map(view).collect()
}

fn of_calibrated(calibration: &Calibrated) -> Vec<CaseView> {
    let view = |section: Section| {
        let tables = section.tables.iter().map(|table| FiguresView::new(&section.title, table)).collect();
        CaseView::new(section, tables)
    };
    calibrated::sections(calibration).into_iter().map(view).collect()
}

impl CaseView {
    fn new(section: Section, tables: Vec<FiguresView>) -> Self {
        Self {
            title: section.title,
            about: section.about,
            variants: None,
            tables,
            remarks: section.remarks.iter().map(|(name, text)| pair(name, text)).collect(),
            end: section.end,
        }
    }
}

impl VariantsView {
    fn new(case: &VariantsOfCase, question: &Question) -> Self {
        let bars = RatioBars::new(question.threshold / 100.0, case.variants.iter().filter_map(variants::ratio));
        let rows = case.variants.iter().map(|variant| VariantRow::new(variant, question, &bars));
        Self { rows: rows.collect(), axis: Value::from_safe_string(bars.axis()) }
    }
}

impl VariantRow {
    fn new(variant: &VariantTold, question: &Question, bars: &RatioBars) -> Self {
        let [median, ratio, interval] = variants::figures(variant, question);
        let (verdict, tone) = variants::verdict(variant);
        let (kind, symbol) = look(tone);
        let of = variants::ratio(variant);
        let is_drawn = variant.standing.is_none() || of.is_some();
        let description = format!("ratio {ratio}, interval {interval}, {verdict}");
        Self {
            name: variant.variant.clone(),
            samples: variant.samples,
            median,
            ratio,
            interval,
            bar: is_drawn.then(|| Value::from_safe_string(bars.bar(of, &description))),
            verdict,
            kind,
            symbol,
        }
    }
}

/// The class and the symbol of a verdict: two carriers of meaning beside the word.
fn look(tone: Tone) -> (&'static str, &'static str) {
    match tone {
        Tone::Good => ("good", "▲"),
        Tone::Plain | Tone::Strong => ("", "="),
        Tone::Doubtful => ("doubtful", "?"),
        Tone::Bad => ("bad", "▼"),
        Tone::Quiet => ("none", "○"),
    }
}

impl FiguresView {
    fn new(title: &str, table: &Table) -> Self {
        let (heads, rows) = table.texts();
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let row = |row: Vec<&str>| Some((row.first()?.to_string(), owned(&row[1..])));
        Self { title: title.to_owned(), heads: owned(&heads), rows: rows.into_iter().filter_map(row).collect() }
    }
}
