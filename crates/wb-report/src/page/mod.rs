//! The page of a run: one file that needs no network, can be read without scripts and is better with.
//!
//! A page is a view (strings, and charts already drawn) put into templates. Every text is escaped by the template
//! engine; only charts come as markup, and they escape what they are given. [`document`] and [`pieces`] are not about
//! runs and serve any page of this program.

mod cell;
pub(crate) mod components;
pub(crate) mod document;
mod experiment;
mod extras;
mod group;
mod view;

pub use document::PageError;
pub use extras::{ReproduceCommand, RunExtras, TelemetrySeries};

use wb_study::result::Study;

const DOCUMENT: document::Document<'_> = document::Document {
    template: include_str!("../../templates/run.html"),
    styles: &[],
    scripts: &[include_str!("../../templates/run.js")],
};

/// The page of a study, with what the run folder has beside it.
pub fn html(study: &Study, extras: &RunExtras) -> Result<String, PageError> {
    DOCUMENT.render(view::RunPage::new(study, extras))
}
