//! For each case how often its samples, dealt out to two sides, were said to differ, what would have been seen, and where
//! the noise comes from.

use wb_compare::calibrate::{OfOrder, Order};
use wb_compare::variants::{Calibrated, CalibratedCase};
use wb_model::counted;
use wb_stats::{Share, Sources};

use super::{Section, title};
use crate::text::{Align, Cell, Table};
use crate::words::NONE;

pub(crate) fn sections(told: &Calibrated) -> Vec<Section> {
    let of_case = |case: &CalibratedCase| {
        let about = format!(
            "{} in {} of {}, {} of them disturbed{}",
            counted(case.calibration.samples, "sample"),
            counted(case.runs, "run"),
            counted(case.boots, "boot"),
            case.calibration.disturbed,
            if told.added.is_empty() { String::new() } else { format!("; added last: {}", told.added.join(", ")) },
        );
        Section {
            title: title(&case.case, &told.question),
            about: Some(about),
            tables: vec![rates(case, told.samples_each), noise(case)],
            remarks: case.shortfalls.iter().map(|(run, why)| (run.clone(), why.clone())).collect(),
            end: too_few(case, told.samples_each),
        }
    };
    told.cases.iter().map(of_case).collect()
}

fn rates(case: &CalibratedCase, each: usize) -> Table {
    let mut table = Table::new(&[
        (&format!("against itself, {each} samples a side"), Align::Left),
        ("comparisons", Align::Right),
        ("differ beyond chance", Align::Right),
        ("beyond the threshold", Align::Right),
        ("seen in 80 % from", Align::Right),
    ]);
    for order in &case.calibration.orders {
        table.row(of_order(order));
    }
    table
}

/// Where comparisons of so few samples can tell nothing.
fn too_few(case: &CalibratedCase, each: usize) -> Option<String> {
    let is_blind = |of: &OfOrder| of.beyond_chance.is_some() && of.caught.is_none();
    let blind = case.calibration.orders.iter().any(is_blind);
    blind.then(|| format!("{NONE}: {each} samples a side are too few to tell anything; --samples gives it more"))
}

fn of_order(of: &OfOrder) -> Vec<Cell> {
    let name = match of.order {
        Order::Blocked => "blocked, AAAA BBBB",
        Order::Interleaved => "interleaved, ABBA",
        Order::Runs => "a run against the next",
    };
    let share = |share: Option<Share>| {
        share.map_or(NONE.to_owned(), |share| {
            let percent = |share: f64| share * 100.0;
            let Share { interval, .. } = share;
            format!("{:.1} % ({:.1} – {:.1})", percent(share.share()), percent(interval.low), percent(interval.high))
        })
    };
    let comparisons = of.beyond_chance.map_or(0, |share| share.of);
    vec![
        name.into(),
        comparisons.to_string().into(),
        // Where nothing could have been caught, that nothing was says nothing.
        share(of.beyond_chance.filter(|_| of.caught.is_some())).into(),
        share(of.verdicts.filter(|_| of.caught.is_some())).into(),
        of.caught.map_or(NONE.to_owned(), |percent| format!("{percent:.1} %")).into(),
    ]
}

fn noise(case: &CalibratedCase) -> Table {
    let mut table =
        Table::new(&[("noise comes from", Align::Left), ("all samples", Align::Right), ("undisturbed", Align::Right)]);
    let (all, quiet) = (case.calibration.sources, case.calibration.undisturbed);
    let percent = |share: Option<f64>| share.map_or(NONE.to_owned(), |share| format!("{:.2} %", share * 100.0));
    let each = |Sources { samples, runs, boots }: Sources| [samples, runs, boots];
    for ((name, all), quiet) in
        ["sample to sample", "run to run", "boot to boot"].iter().zip(each(all)).zip(each(quiet))
    {
        table.row(vec![(*name).into(), percent(all).into(), percent(quiet).into()]);
    }
    table
}
