//! The page of a comparison: one file that needs no network, can be read without scripts and is better with.
//!
//! Without scripts: the builds, how many checks came to what, every primary check that failed in any build, the groups,
//! charts and environments. With them the table has every check, from [`data`], with filters, the reason for each cell
//! and its history. Text from outside is escaped by the template engine, or where markup is written here ([`markup`]),
//! by the same function.
//!
//! Start with [`html`] and [`view`].

mod box_plots;
mod build_names;
mod builds;
mod counts;
mod data;
mod display_unit;
mod environment;
mod figures;
mod groups;
mod links;
mod markup;
mod models;
mod rows;
mod trends;
mod verdict_style;
mod view;

use wb_compare::ComparisonResult;
use wb_compare::comparison::BuildHistory;

use crate::page::PageError;
use crate::page::document::Document;

const DOCUMENT: Document<'_> = Document {
    template: include_str!("../../../templates/comparison.html"),
    styles: &[include_str!("../../../templates/comparison.css")],
    scripts: &[
        include_str!("script/data.js"),
        include_str!("script/words.js"),
        include_str!("../../chart/history.js"),
        include_str!("script/why.js"),
        include_str!("script/filter.js"),
        include_str!("script/table.js"),
        include_str!("script/keys.js"),
        include_str!("script/start.js"),
    ],
};

/// What goes onto the page beside the comparison.
#[derive(Debug, Clone, Copy)]
pub struct PageOptions<'a> {
    /// Whether charts are drawn.
    pub charts: bool,
    /// Whether the environments of the builds are shown.
    pub environments: bool,
    /// What was odd about the builds, a sentence each.
    pub notes: &'a [String],
    /// Whether what got better fails as well.
    pub fail_on_gain: bool,
}

/// The page of a comparison; `history` is of the same builds as `outcome`.
///
/// Errors: a template that does not fit, which is a fault of this program.
pub fn html(
    outcome: &ComparisonResult,
    history: &BuildHistory<'_>,
    options: &PageOptions<'_>,
) -> Result<String, PageError> {
    DOCUMENT.render(view::ComparisonPage::new(outcome, history, options))
}
