//! peers: a matrix of implementations of a protocol, each pair measured over what both support.
//!
//! Start with [`matrix_file`] (from a peers file to the cells of a plan) and [`params`]; then [`sample`] runs both sides
//! of a cell, [`output`] parses what they print, and [`study`] evaluates it, with its gates.

#![forbid(unsafe_code)]

mod ceiling;
mod cell;
mod container;
mod effort;
mod endpoint;
mod engine;
mod failure;
mod figures;
mod findings;
mod fixed_time;
mod gates;
mod matrix_file;
mod output;
mod params;
mod sample;
mod study;
mod suite;
mod timing;
mod traffic;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wb_diagnostics::Diagnostic;
use wb_model::{Declaration, Facts, Param, ParamValue, Params, Scope, TestName};
use wb_plan::CellMatrix;

use cell::PeersCell;
use matrix_file::MatrixFiles;
use wb_test::{InvalidParams, SharedParams, Test, TestCell};

pub use figures::{IterationValues, ScenarioValues};
pub use matrix_file::{CEILING_OF, CELL_NAME, COMPARED_WITH, DIALER, IS_BASELINE, LISTENER};
pub use params::PeersParams;

pub const NAME: &str = wb_plan::PEERS;

/// The test of matrices of implementations.
#[derive(Debug, Default)]
pub struct Peers {
    files: MatrixFiles,
}

impl Peers {
    /// Creates the test with a folder that relative paths of peers files refer to.
    pub fn with_folder(folder: &Path) -> Self {
        Self { files: MatrixFiles::new(PathBuf::from(folder)) }
    }
}

impl Test for Peers {
    fn name(&self) -> &str {
        NAME
    }

    fn declaration(&self) -> Declaration {
        let mut params = Param::from_schema::<PeersParams>();
        params.extend(SharedParams::declarations());
        Declaration {
            // A unit test of the registry checks the names of built-in tests.
            name: TestName::new(NAME).unwrap_or_else(|_| unreachable!("`{NAME}` is a valid name")),
            summary: "every pair of implementations of a protocol, over every protocol stack that both support"
                .to_owned(),
            version: 1,
            params,
            scope: Scope::Sample,
            requires: Vec::new(),
        }
    }

    fn resolve(&self, given: &Params, _: &Facts) -> BTreeMap<String, Vec<ParamValue>> {
        if given.contains_key("duration") {
            // They describe transfers of fixed bytes.
            ["iterations", "upload-bytes", "download-bytes"].map(|name| (name.to_owned(), Vec::new())).into()
        } else {
            BTreeMap::new()
        }
    }

    fn matrix(&self, given: &Params) -> Result<Option<CellMatrix>, Diagnostic> {
        self.files.cells(given).map(Some)
    }

    fn cell(self: Arc<Self>, params: &Params) -> Result<Box<dyn TestCell>, InvalidParams> {
        Ok(Box::new(PeersCell::new(self, params)?))
    }
}
