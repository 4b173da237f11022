//! Calibration tables: per case the false-positive rate of its samples split into two sides, the detectable difference,
//! and the components of variance.

use wb_model::pluralize;
use wb_results::experiment::{CalibrationCase, CalibrationExperiment, Design, DesignResult};
use wb_stats::{Proportion, VarianceComponents};

use super::variants::describe_metric;
use super::{CaseSection, title};
use crate::phrasing::NO_VALUE;
use crate::text::{Align, Table, TableCell};

pub(crate) fn sections(calibration: &CalibrationExperiment) -> Vec<CaseSection> {
    let of_case = |metrics: &[CalibrationCase]| {
        // A single metric is named below the tables.
        let is_named = metrics.len() > 1;
        metrics.iter().map(|case| section(calibration, case, is_named)).collect::<Vec<_>>()
    };
    calibration.by_case().flat_map(of_case).collect()
}

fn section(calibration: &CalibrationExperiment, case: &CalibrationCase, is_named: bool) -> CaseSection {
    let about = format!(
        "{} in {} of {}, {} of them disturbed{}",
        pluralize(case.calibration.samples, "sample"),
        pluralize(case.runs, "run"),
        pluralize(case.boots, "boot"),
        case.calibration.disturbed,
        if calibration.added.is_empty() {
            String::new()
        } else {
            format!("; added last: {}", calibration.added.join(", "))
        },
    );
    let title = title(&case.case, &calibration.criterion);
    let metric = || describe_metric(&calibration.metric(case));
    CaseSection {
        title: if is_named { format!("{title}: {}", metric()) } else { title },
        about: Some(about),
        tables: vec![rates_table(case, calibration.samples_per_side), noise_table(case)],
        remarks: case.shortfalls.iter().map(|(run, reason)| (run.clone(), reason.clone())).collect(),
        end: too_few_samples_note(case, calibration.samples_per_side),
    }
}

fn rates_table(case: &CalibrationCase, each: usize) -> Table {
    let mut table = Table::new(&[
        (&format!("against itself, {each} samples a side"), Align::Left),
        ("differ beyond chance", Align::Right),
        ("and beyond the threshold", Align::Right),
        ("detected in 80 % from", Align::Right),
    ]);
    for order in &case.calibration.designs {
        table.row(order_row(order));
    }
    table
}

fn too_few_samples_note(case: &CalibrationCase, each: usize) -> Option<String> {
    let is_blind = |row: &DesignResult| row.beyond_chance.is_some() && row.detectable_percent.is_none();
    let blind = case.calibration.designs.iter().any(is_blind);
    blind.then(|| format!("{NO_VALUE}: {each} samples a side are too few to detect any difference; raise --samples"))
}

fn order_row(row: &DesignResult) -> Vec<TableCell> {
    let name = match row.design {
        Design::Blocked => "blocked, AAAA BBBB",
        Design::Interleaved => "interleaved, ABBA",
        Design::Runs => "a run against the next",
    };
    // The rate of so few comparisons is known within its interval alone.
    let count = |share: Option<Proportion>| {
        share.map_or(NO_VALUE.to_owned(), |Proportion { count, total, interval }| {
            format!("{count} of {total} ({:.1} – {:.1} %)", interval.low * 100.0, interval.high * 100.0)
        })
    };
    vec![
        name.into(),
        // Without any detectable difference, a rate of zero is meaningless.
        count(row.beyond_chance.filter(|_| row.detectable_percent.is_some())).into(),
        count(row.verdicts.filter(|_| row.detectable_percent.is_some())).into(),
        row.detectable_percent.map_or(NO_VALUE.to_owned(), |percent| format!("{percent:.1} %")).into(),
    ]
}

fn noise_table(case: &CalibrationCase) -> Table {
    let mut table =
        Table::new(&[("source of noise", Align::Left), ("all samples", Align::Right), ("undisturbed", Align::Right)]);
    let (all, undisturbed) = (case.calibration.variance_components, case.calibration.undisturbed_variance_components);
    let percent = |share: Option<f64>| share.map_or(NO_VALUE.to_owned(), |share| format!("{:.2} %", share * 100.0));
    let each = |VarianceComponents { samples, runs, boots }: VarianceComponents| [samples, runs, boots];
    for ((name, all), undisturbed) in
        ["sample to sample", "run to run", "boot to boot"].iter().zip(each(all)).zip(each(undisturbed))
    {
        table.row(vec![(*name).into(), percent(all).into(), percent(undisturbed).into()]);
    }
    table
}
