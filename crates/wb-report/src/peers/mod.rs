//! Results of a matrix of implementations: the files of libp2p's performance suites, and a report of our own.
//!
//! [`MatrixResults`] is what a measured matrix consists of. [`mod@yaml`], [`mod@markdown`] and [`mod@page`] write
//! `results.yaml`, `results.md` and `results.html` in the suites' shape, [`charts`] draws heat maps and box plots,
//! [`result_files`] renders all of them.

pub mod charts;
mod display;
mod markdown;
mod page;
mod results;
mod statistics;
mod tables;
mod yaml;

pub use markdown::markdown;
pub use page::page;
pub use results::{BaselineScope, CellFilter, CellStatus, MatrixCell, MatrixMetadata, MatrixResults, ScenarioSamples};
pub use statistics::BoxStatistics;
pub use wb_results::Scenario;
pub use yaml::yaml;

use crate::chart::PngError;
use crate::page::PageError;

#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    #[error(transparent)]
    Page(#[from] PageError),
    #[error(transparent)]
    Png(#[from] PngError),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultFile {
    pub name: String,
    pub content: Vec<u8>,
}

/// Renders all files of a matrix: the suites' three, and each chart as SVG and PNG. Charts without figures are left
/// out. Fails if a chart is too large.
pub fn result_files(results: &MatrixResults) -> Result<Vec<ResultFile>, RenderError> {
    let text = |name: &str, content: String| ResultFile { name: name.to_owned(), content: content.into_bytes() };
    let mut files = vec![
        text("results.yaml", yaml(results)),
        text("results.md", markdown(results)),
        text("results.html", page(results)?),
    ];
    for plot in charts::plots(results) {
        let svg = plot.svg();
        files.push(ResultFile { name: format!("{}.png", plot.name), content: crate::chart::png(&svg)? });
        files.push(text(&format!("{}.svg", plot.name), svg));
    }
    Ok(files)
}
