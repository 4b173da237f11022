//! What was held against what in a run: variants of a test, or a system against itself.

pub(crate) mod calibrated;
mod ruler;
pub(crate) mod variants;

use wb_compare::variants::{Held, Question};
use wb_model::unescaped;

use crate::text::{Style, Table};

/// What a case without axes is called.
const NO_AXES: &str = "-";

/// What is told of one case.
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) about: Option<String>,
    pub(crate) tables: Vec<Table>,
    /// Names, and what is to be said of each.
    pub(crate) remarks: Vec<(String, String)>,
    pub(crate) end: Option<String>,
}

/// A section for each case, and what was asked. Ratios are drawn where the tables have room for it.
fn sections(held: &Held, style: Style) -> (Vec<Section>, (&str, String)) {
    match held {
        Held::Variants(told) => {
            let drawn = variants::sections(told, true);
            let fits = drawn.iter().flat_map(|section| &section.tables).all(|table| table.fits(style));
            (if fits { drawn } else { variants::sections(told, false) }, asked(&told.question))
        }
        Held::Calibrated(told) => (calibrated::sections(told), asked(&told.question)),
    }
}

/// What came of `ab` or `calibrate`, for a terminal.
pub fn held_text(held: &Held, style: Style) -> String {
    let (sections, (metric, asked)) = sections(held, style);
    let text = |section: &Section| {
        let line = |text: &Option<String>| text.as_ref().map_or(String::new(), |text| style.indented(0, text));
        let tables: String = section.tables.iter().map(|table| table.draw(style)).collect();
        let remarks: String = section.remarks.iter().map(|(name, text)| style.remark(name, text)).collect();
        style.section(&section.title) + &line(&section.about) + &tables + &remarks + &line(&section.end)
    };
    sections.iter().map(text).collect::<String>() + "\n" + &style.remark(metric, &asked)
}

/// A case as people read it, or the test where it has no axes.
fn title(case: &str, question: &Question) -> String {
    if case == NO_AXES { question.test.clone() } else { unescaped(case) }
}

/// The metric, and what was asked of it.
pub(crate) fn asked(question: &Question) -> (&str, String) {
    let Question { metric, direction, threshold, error_rate, .. } = question;
    let better = match direction {
        wb_model::Direction::Higher => "higher is better",
        wb_model::Direction::Lower => "lower is better",
        wb_model::Direction::Neither => "neither way is better",
    };
    let threshold = format!("differences below {threshold} % do not matter");
    (metric, format!("{better}; {threshold}; at most {error_rate} % of what is the same is said to differ"))
}
