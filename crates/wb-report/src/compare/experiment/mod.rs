//! What was held against what in a run: variants of a test, or a system against itself.

pub(crate) mod calibration;
mod ratio_scale;
pub(crate) mod variants;

use wb_compare::experiment::{Criterion, Experiment};
use wb_model::unescape_lossy;

use crate::text::{Style, Table};

/// What a case without axes is called.
const EMPTY_CASE: &str = "-";

/// What is told of one case.
pub(crate) struct CaseSection {
    pub(crate) title: String,
    pub(crate) about: Option<String>,
    pub(crate) tables: Vec<Table>,
    /// Names, and what is to be said of each.
    pub(crate) remarks: Vec<(String, String)>,
    pub(crate) end: Option<String>,
}

/// A section for each case, and what was asked. Ratios are drawn where the tables have room for it.
fn sections(held: &Experiment, style: Style) -> (Vec<CaseSection>, (&str, String)) {
    match held {
        Experiment::Variants(told) => {
            let drawn = variants::sections(told, true);
            let fits = drawn.iter().flat_map(|section| &section.tables).all(|table| table.fits(style));
            (if fits { drawn } else { variants::sections(told, false) }, describe_criterion(&told.criterion))
        }
        Experiment::Calibration(told) => (calibration::sections(told), describe_criterion(&told.question)),
    }
}

/// What came of `ab` or `calibrate`, for a terminal.
pub fn experiment_text(held: &Experiment, style: Style) -> String {
    let (sections, (metric, asked)) = sections(held, style);
    let text = |section: &CaseSection| {
        let line = |text: &Option<String>| text.as_ref().map_or(String::new(), |text| style.indent(0, text));
        let tables: String = section.tables.iter().map(|table| table.draw(style)).collect();
        let remarks: String = section.remarks.iter().map(|(name, text)| style.remark(name, text)).collect();
        style.heading(&section.title) + &line(&section.about) + &tables + &remarks + &line(&section.end)
    };
    sections.iter().map(text).collect::<String>() + "\n" + &style.remark(metric, &asked)
}

/// A case as people read it, or the test where it has no axes.
fn title(case: &str, question: &Criterion) -> String {
    if case == EMPTY_CASE { question.test.clone() } else { unescape_lossy(case) }
}

/// The metric, and what was asked of it.
pub(crate) fn describe_criterion(question: &Criterion) -> (&str, String) {
    let Criterion { metric, direction, threshold, error_rate, .. } = question;
    let better = match direction {
        wb_model::Direction::Higher => "higher is better",
        wb_model::Direction::Lower => "lower is better",
        wb_model::Direction::Neither => "neither way is better",
    };
    let threshold = format!("differences below {threshold} % do not matter");
    (metric, format!("{better}; {threshold}; at most {error_rate} % of what is the same is said to differ"))
}
