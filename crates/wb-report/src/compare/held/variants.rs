//! A table for each case: every variant, how it stands to the first, and why no more was measured.

use wb_compare::ab::State;
use wb_compare::statistical::Verdict;
use wb_compare::variants::{Question, VariantTold, Variants, VariantsOfCase};
use wb_model::counted;

use super::{Section, title};
use crate::text::{Align, Cell, Table, Tone};
use crate::words::NONE;

pub(super) fn sections(told: &Variants) -> Vec<Section> {
    let of_case = |case: &VariantsOfCase| {
        let heads = [
            ("variant", Align::Left),
            ("samples", Align::Right),
            ("disturbed", Align::Right),
            ("median", Align::Right),
            ("ratio", Align::Right),
            ("interval", Align::Right),
            ("verdict", Align::Left),
        ];
        let mut table = Table::new(&heads);
        case.variants.iter().for_each(|variant| table.row(row(variant, &told.question)));
        let shortfalls = case.variants.iter().filter_map(|told| Some((told.name.clone(), told.shortfall.clone()?)));
        let warnings = case.duplicates.iter().map(|duplicate| ("warning".to_owned(), duplicate.to_string()));
        Section {
            title: title(&case.case, &told.question).to_owned(),
            about: None,
            tables: vec![table],
            remarks: warnings.chain(shortfalls).collect(),
            end: Some(ended(case, told)),
        }
    };
    told.cases.iter().map(of_case).collect()
}

fn row(variant: &VariantTold, question: &Question) -> Vec<Cell> {
    let standing = variant.standing;
    let number = |value: f64| format!("{value:.3}");
    let interval = |low: f64, high: f64| format!("{low:.3} – {high:.3}");
    let verdict = match standing {
        None => Cell::toned("the first", Tone::Quiet),
        Some(_) if variant.samples == 0 => Cell::toned("not measured", Tone::Bad),
        Some(standing) => Cell::toned(standing.verdict.as_str(), tone(standing.verdict)),
    };
    let ci = standing.and_then(|standing| standing.ci).map(|ci| interval(ci.low, ci.high));
    vec![
        variant.variant.as_str().into(),
        variant.samples.to_string().into(),
        variant.disturbed.map_or(NONE.to_owned(), |disturbed| disturbed.to_string()).into(),
        variant.median.map_or(NONE.to_owned(), |median| question.unit.figure(median).to_string()).into(),
        standing.and_then(|standing| standing.ratio).map_or(NONE.to_owned(), number).into(),
        ci.unwrap_or_else(|| NONE.to_owned()).into(),
        verdict,
    ]
}

fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Improved => Tone::Good,
        Verdict::Equivalent => Tone::Plain,
        Verdict::Inconclusive | Verdict::Differs => Tone::Doubtful,
        Verdict::Regressed | Verdict::Invalid | Verdict::Missing | Verdict::Incomparable => Tone::Bad,
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
