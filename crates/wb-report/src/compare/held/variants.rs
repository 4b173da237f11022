//! A table for each case: every variant, how it stands to the first, and why no more was measured.

use wb_compare::ab::State;
use wb_compare::statistical::Verdict;
use wb_compare::variants::{Question, VariantTold, Variants, VariantsOfCase};
use wb_model::counted;

use super::ruler::Ruler;
use super::{Section, title};
use crate::chart::Ratio;
use crate::text::{Align, Cell, Table, Tone};
use crate::words::NONE;

/// A section for each case; `drawn` adds a column in which the ratios are drawn on one scale.
pub(crate) fn sections(told: &Variants, drawn: bool) -> Vec<Section> {
    let of_case = |case: &VariantsOfCase| Section {
        title: title(&case.case, &told.question),
        about: None,
        tables: vec![table(case, &told.question, drawn)],
        remarks: remarks(case),
        end: Some(ended(case, told)),
    };
    told.cases.iter().map(of_case).collect()
}

fn table(case: &VariantsOfCase, question: &Question, drawn: bool) -> Table {
    let ruler = Ruler::new(case.variants.iter().filter_map(ratio)).filter(|_| drawn);
    let scale = ruler.as_ref().map(Ruler::head);
    // Without any the column is not worth its width.
    let with_disturbed = case.variants.iter().any(|variant| variant.disturbed.is_some_and(|count| count > 0));
    let mut heads = vec![("variant", Align::Left), ("samples", Align::Right)];
    heads.extend(with_disturbed.then_some(("disturbed", Align::Right)));
    heads.extend([("median", Align::Right), ("ratio", Align::Right), ("interval", Align::Right)]);
    heads.push(("verdict", Align::Left));
    heads.extend(scale.as_deref().map(|scale| (scale, Align::Left)));
    let mut table = Table::new(&heads);
    for variant in &case.variants {
        let (word, tone) = verdict(variant);
        let disturbed = || variant.disturbed.map_or_else(|| NONE.to_owned(), |disturbed| disturbed.to_string());
        let mut row: Vec<Cell> = vec![variant.variant.as_str().into(), variant.samples.to_string().into()];
        row.extend(with_disturbed.then(|| disturbed().into()));
        row.extend(figures(variant, question).map(Cell::from));
        row.push(Cell::toned(word, tone));
        row.extend(ruler.as_ref().map(|ruler| Cell::from(line(ruler, variant))));
        table.row(row);
    }
    table
}

/// A variant's place on the scale; nothing where it has a standing without a ratio.
fn line(ruler: &Ruler, variant: &VariantTold) -> String {
    match (variant.standing, ratio(variant)) {
        (Some(_), None) => String::new(),
        (_, ratio) => ruler.line(ratio),
    }
}

/// A variant's ratio to the first.
pub(crate) fn ratio(variant: &VariantTold) -> Option<Ratio> {
    let standing = variant.standing?;
    Some(Ratio { estimate: standing.ratio?, interval: standing.ci.map(|ci| (ci.low, ci.high)) })
}

/// Median, ratio and its interval.
pub(crate) fn figures(variant: &VariantTold, question: &Question) -> [String; 3] {
    let none = || NONE.to_owned();
    let of = ratio(variant);
    let interval = of.and_then(|ratio| ratio.interval).map(|(low, high)| format!("{low:.3} – {high:.3}"));
    [
        variant.median.map_or_else(none, |median| question.unit.figure(median).to_string()),
        of.map_or_else(none, |ratio| format!("{:.3}", ratio.estimate)),
        interval.unwrap_or_else(none),
    ]
}

/// How a variant stands to the first, in a word, and how that is to be seen.
pub(crate) fn verdict(variant: &VariantTold) -> (&'static str, Tone) {
    match variant.standing {
        None => ("the first", Tone::Quiet),
        Some(_) if variant.samples == 0 => ("not measured", Tone::Bad),
        Some(standing) => (standing.verdict.as_str(), tone(standing.verdict)),
    }
}

/// Warnings of variants that measured the same, and the variants that have fewer samples than required, and why.
pub(crate) fn remarks(case: &VariantsOfCase) -> Vec<(String, String)> {
    let warnings = case.duplicates.iter().map(|duplicate| ("warning".to_owned(), duplicate.to_string()));
    let short = case.variants.iter().filter_map(|variant| Some((variant.name.clone(), variant.shortfall.clone()?)));
    warnings.chain(short).collect()
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
    let uncounted = case.measured_blocks.filter(|measured| *measured > case.blocks);
    match case.state {
        State::GoOn if let Some(measured) = uncounted => {
            format!(
                "not decided: {} of at most {} measured, {} counted",
                counted(measured, "block"),
                told.max_blocks,
                case.blocks
            )
        }
        State::Decided => format!("decided after {blocks}"),
        State::AtLimit => format!("{blocks}, the most that were allowed: --max-blocks raises it in a new folder"),
        State::GoOn => format!("{blocks} of at most {}: not decided", told.max_blocks),
    }
}
