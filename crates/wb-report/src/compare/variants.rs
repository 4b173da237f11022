//! Variants that were held against each other, and a system that was held against itself.

use wb_compare::ab::State;
use wb_compare::calibrate::{OfOrder, Order};
use wb_compare::statistical::Verdict;
use wb_compare::variants::{Calibrated, CalibratedCase, Question, VariantTold, Variants, VariantsOfCase};
use wb_model::counted;
use wb_stats::{Share, Sources};

use crate::text::{Align, Cell, Style, Table, Tone};
use crate::words::NONE;

/// What a case without axes is called.
const NO_AXES: &str = "-";

/// A table for each case: every variant, how it stands to the first, and why no more was measured.
pub fn variants_text(told: &Variants, style: Style) -> String {
    let question = &told.question;
    let of_case = |case: &VariantsOfCase| {
        let heads = [
            ("variant", Align::Left),
            ("samples", Align::Right),
            ("median", Align::Right),
            ("ratio", Align::Right),
            ("interval", Align::Right),
            ("verdict", Align::Left),
        ];
        let mut table = Table::new(&heads);
        for variant in &case.variants {
            table.row(row(variant, question));
        }
        let shortfalls = case.variants.iter().filter_map(|variant| Some((&variant.name, variant.shortfall.as_ref()?)));
        let remarks: String = shortfalls.map(|(name, why)| style.remark(name, why)).collect();
        let title = title(&case.case, question);
        style.section(title) + &table.draw(style) + &remarks + &style.indented(0, &ended(case, told))
    };
    told.cases.iter().map(of_case).collect::<String>() + &asked(question, style)
}

/// A case, or the test where it has no axes.
fn title<'a>(case: &'a str, question: &'a Question) -> &'a str {
    if case == NO_AXES { &question.test } else { case }
}

fn row(variant: &VariantTold, question: &Question) -> Vec<Cell> {
    let standing = variant.standing;
    let number = |value: f64| format!("{value:.3}");
    let interval = |low: f64, high: f64| format!("{low:.3} – {high:.3}");
    let verdict = match standing {
        None => Cell::toned("the first", Tone::Quiet),
        Some(_) if variant.samples == 0 => Cell::toned("not measured", Tone::Bad),
        Some(standing) => Cell::toned(word(standing.verdict), tone(standing.verdict)),
    };
    let ci = standing.and_then(|standing| standing.ci).map(|ci| interval(ci.low, ci.high));
    vec![
        variant.variant.as_str().into(),
        variant.samples.to_string().into(),
        variant.median.map_or(NONE.to_owned(), |median| question.unit.figure(median).to_string()).into(),
        standing.and_then(|standing| standing.ratio).map_or(NONE.to_owned(), number).into(),
        ci.unwrap_or_else(|| NONE.to_owned()).into(),
        verdict,
    ]
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Improved => "improved",
        Verdict::Regressed => "regressed",
        Verdict::Equivalent => "equivalent",
        Verdict::Differs => "differs",
        Verdict::Inconclusive => "inconclusive",
        Verdict::Invalid => "invalid",
        Verdict::Missing => "missing",
    }
}

fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Improved => Tone::Good,
        Verdict::Equivalent => Tone::Plain,
        Verdict::Inconclusive | Verdict::Differs => Tone::Doubtful,
        Verdict::Regressed | Verdict::Invalid | Verdict::Missing => Tone::Bad,
    }
}

fn ended(case: &VariantsOfCase, told: &Variants) -> String {
    let blocks = counted(case.blocks, "block");
    match case.state {
        State::Decided => format!("decided after {blocks}"),
        State::AtLimit => format!("{blocks}, the most that were allowed: --max-blocks raises it in a new folder"),
        State::GoOn => format!("{blocks} of at most {}: not decided", told.max_blocks),
    }
}

/// What was asked.
fn asked(question: &Question, style: Style) -> String {
    let Question { metric, direction, threshold, error_rate, .. } = question;
    let better = match direction {
        wb_model::Direction::Higher => "higher is better",
        wb_model::Direction::Lower => "lower is better",
        wb_model::Direction::Neither => "neither way is better",
    };
    String::from("\n")
        + &style.remark(
            metric,
        &format!(
            "{better}; differences below {threshold} % do not matter; at most {error_rate} % of what is the same is said to differ"
        ),
    )
}

/// For each case how often its samples, dealt out to two sides, were said to differ, what would have been seen, and where
/// the noise comes from.
pub fn calibrated_text(told: &Calibrated, style: Style) -> String {
    let of_case = |case: &CalibratedCase| {
        let title = title(&case.case, &told.question);
        let about = format!(
            "{} in {} of {}, {} of them disturbed",
            counted(case.calibration.samples, "sample"),
            counted(case.runs, "run"),
            counted(case.boots, "boot"),
            case.calibration.disturbed,
        );
        style.section(title)
            + &style.indented(0, &about)
            + &rates(case, told.samples_each).draw(style)
            + &noise(case).draw(style)
    };
    told.cases.iter().map(of_case).collect::<String>() + &asked(&told.question, style)
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
        share(of.beyond_chance).into(),
        share(of.verdicts).into(),
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
