//! Renders the HTML page of a run: one self-contained file, readable without scripts.
//!
//! A page is a view (strings and rendered charts) in a template. The template engine escapes all texts; only charts are
//! inserted as markup, and they escape their texts themselves. [`document`] and [`components`] are shared by all pages.

mod cell;
pub(crate) mod components;
pub(crate) mod document;
mod experiment;
mod extras;
mod group;
mod metric_charts;
mod view;

pub use document::PageError;
pub use extras::{ReproduceCommand, RunExtras, TelemetrySeries};

use wb_results::Study;

const DOCUMENT: document::Document<'_> = document::Document {
    template: include_str!("../../templates/run.html"),
    styles: &[],
    scripts: &[include_str!("../../templates/run.js")],
};

pub fn html(study: &Study, extras: &RunExtras) -> Result<String, PageError> {
    DOCUMENT.render(view::RunPage::new(study, extras))
}
