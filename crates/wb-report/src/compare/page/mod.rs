//! Renders the HTML page of a comparison: one self-contained file, readable without scripts.
//!
//! Without scripts it shows charts, every primary check that changed in any build, findings, groups, builds and
//! environments. With scripts the table has every check, from [`data`], with filters, and the reason and the history of
//! each cell. Untrusted text is escaped by the template engine, and in [`markup`] by the same function.
//!
//! Start with [`html`] and [`view`].

mod box_plots;
mod build_names;
mod builds;
mod check_table;
mod counts;
mod data;
mod differences;
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

use wb_compare::comparison::{BuildHistory, FailOn};
use wb_results::comparison::ComparisonResult;

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

#[derive(Debug, Clone, Copy)]
pub struct PageOptions<'a> {
    pub charts: bool,
    pub environments: bool,
    /// Remarks about the builds, one sentence each.
    pub notes: &'a [String],
    /// The thresholds, tolerances and assumptions of the comparison.
    pub criteria: &'a [String],
    /// Which verdicts count as failures.
    pub fail_on: FailOn,
}

/// Renders the page of a comparison; `history` is of the same builds as `outcome`.
pub fn html(
    outcome: &ComparisonResult,
    history: &BuildHistory<'_>,
    options: &PageOptions<'_>,
) -> Result<String, PageError> {
    DOCUMENT.render(view::ComparisonPage::new(outcome, history, options))
}
