//! For each case how often its samples, dealt out to two sides, were said to differ, what would have been seen, and where
//! the noise comes from.

use wb_compare::calibrate::{Design, DesignResult};
use wb_compare::experiment::{CalibrationCase, CalibrationExperiment};
use wb_model::pluralize;
use wb_stats::{Proportion, VarianceComponents};

use super::{CaseSection, title};
use crate::phrasing::NO_VALUE;
use crate::text::{Align, Table, TableCell};

pub(crate) fn sections(told: &CalibrationExperiment) -> Vec<CaseSection> {
    let of_case = |case: &CalibrationCase| {
        let about = format!(
            "{} in {} of {}, {} of them disturbed{}",
            pluralize(case.calibration.samples, "sample"),
            pluralize(case.runs, "run"),
            pluralize(case.boots, "boot"),
            case.calibration.disturbed,
            if told.added.is_empty() { String::new() } else { format!("; added last: {}", told.added.join(", ")) },
        );
        CaseSection {
            title: title(&case.case, &told.question),
            about: Some(about),
            tables: vec![rates_table(case, told.samples_per_side), noise_table(case)],
            remarks: case.shortfalls.iter().map(|(run, why)| (run.clone(), why.clone())).collect(),
            end: too_few_samples_note(case, told.samples_per_side),
        }
    };
    told.cases.iter().map(of_case).collect()
}

fn rates_table(case: &CalibrationCase, each: usize) -> Table {
    let mut table = Table::new(&[
        (&format!("against itself, {each} samples a side"), Align::Left),
        ("comparisons", Align::Right),
        ("differ beyond chance", Align::Right),
        ("beyond the threshold", Align::Right),
        ("seen in 80 % from", Align::Right),
    ]);
    for order in &case.calibration.designs {
        table.row(order_row(order));
    }
    table
}

/// Where comparisons of so few samples can tell nothing.
fn too_few_samples_note(case: &CalibrationCase, each: usize) -> Option<String> {
    let is_blind = |of: &DesignResult| of.beyond_chance.is_some() && of.detectable_percent.is_none();
    let blind = case.calibration.designs.iter().any(is_blind);
    blind.then(|| format!("{NO_VALUE}: {each} samples a side are too few to tell anything; --samples gives it more"))
}

fn order_row(of: &DesignResult) -> Vec<TableCell> {
    let name = match of.design {
        Design::Blocked => "blocked, AAAA BBBB",
        Design::Interleaved => "interleaved, ABBA",
        Design::Runs => "a run against the next",
    };
    let share = |share: Option<Proportion>| {
        share.map_or(NO_VALUE.to_owned(), |share| {
            let percent = |share: f64| share * 100.0;
            let Proportion { interval, .. } = share;
            format!("{:.1} % ({:.1} – {:.1})", percent(share.fraction()), percent(interval.low), percent(interval.high))
        })
    };
    let comparisons = of.beyond_chance.map_or(0, |share| share.total);
    vec![
        name.into(),
        comparisons.to_string().into(),
        // Where nothing could have been caught, that nothing was says nothing.
        share(of.beyond_chance.filter(|_| of.detectable_percent.is_some())).into(),
        share(of.verdicts.filter(|_| of.detectable_percent.is_some())).into(),
        of.detectable_percent.map_or(NO_VALUE.to_owned(), |percent| format!("{percent:.1} %")).into(),
    ]
}

fn noise_table(case: &CalibrationCase) -> Table {
    let mut table =
        Table::new(&[("noise comes from", Align::Left), ("all samples", Align::Right), ("undisturbed", Align::Right)]);
    let (all, quiet) = (case.calibration.variance_components, case.calibration.undisturbed_variance_components);
    let percent = |share: Option<f64>| share.map_or(NO_VALUE.to_owned(), |share| format!("{:.2} %", share * 100.0));
    let each = |VarianceComponents { samples, runs, boots }: VarianceComponents| [samples, runs, boots];
    for ((name, all), quiet) in
        ["sample to sample", "run to run", "boot to boot"].iter().zip(each(all)).zip(each(quiet))
    {
        table.row(vec![(*name).into(), percent(all).into(), percent(quiet).into()]);
    }
    table
}
