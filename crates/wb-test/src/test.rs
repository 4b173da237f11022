//! Object-safe traits of tests and cells. Tests in Rust implement [`TypedTest`](crate::TypedTest) instead.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use wb_diagnostics::Diagnostic;
use wb_model::{Case, Declaration, Facts, Metric, MetricKey, ParamValue, Params};
use wb_peers::ExpectedFailure;
use wb_plan::{CatalogCell, CellMatrix};
use wb_results::Conclusion;
use wb_stats::Estimate;

use crate::{Artefacts, Attempt, Failure, InvalidParams, Measurement, Rejection, SharedParams, WorkerContext};

/// How to shorten the samples of a test whose work is calibrated.
pub const LOWER_MIN_TIME: &str = "lower --min-time";
/// How to shorten the samples of a test with pbench's parameter for their duration.
pub const LOWER_RUNTIME: &str = "lower `runtime`";

/// A test, built-in, declarative or imported.
pub trait Test: Send + Sync {
    fn name(&self) -> &str;

    fn declaration(&self) -> Declaration;

    /// Text that defines the test, for the record of a run; `None` if the test comes with the program.
    fn definition(&self) -> Option<&str> {
        None
    }

    /// Default values that depend on the machine, by parameter; several values make an axis, and none leaves the
    /// parameter out.
    fn resolve(&self, _given: &Params, _facts: &Facts) -> BTreeMap<String, Vec<ParamValue>> {
        BTreeMap::new()
    }

    /// Cells of the test's matrix; `None` if they are the product of the parameters. Fails if the matrix, or the
    /// selection among its cells, is invalid.
    fn matrix(&self, _given: &Params) -> Result<Option<CellMatrix>, Diagnostic> {
        Ok(None)
    }

    /// `params` are the effective parameters in canonical form, including those of every test.
    fn cell(self: Arc<Self>, params: &Params) -> Result<Box<dyn TestCell>, InvalidParams>;

    /// Format of the files from which samples are imported; `None` if the test can be measured.
    fn import_format(&self) -> Option<&str> {
        None
    }

    /// Whether the agent's program itself is the workload.
    fn is_native(&self) -> bool {
        false
    }

    /// Derives conclusions from the evaluated cells of one plan entry.
    fn solve(&self, _cells: &[EvaluatedCell<'_>]) -> Vec<Conclusion> {
        Vec::new()
    }
}

/// A cell of a test: takes samples with its parameters, and evaluates them.
#[async_trait]
pub trait TestCell: CatalogCell + Send + Sync {
    fn test(&self) -> &dyn Test;

    fn shared_params(&self) -> &SharedParams;

    /// Files on this machine that the definition refers to; a run copies them.
    fn files(&self) -> Vec<NamedFile> {
        Vec::new()
    }

    /// SHA-256 of everything except the parameters that defines the cell: `definition sha256` of the text, and
    /// `file PATH sha256` of each file as it is now. Empty for a test that comes with the program.
    fn source_hashes(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Whether the parameters determine the duration of a sample, so that `min-time` does not apply.
    fn sets_duration(&self) -> bool {
        false
    }

    /// How a user makes samples shorter, as an imperative; `None` if nothing does.
    fn shortening(&self) -> Option<&'static str> {
        Some(LOWER_MIN_TIME)
    }

    fn build_inputs(&self) -> BuildInputs {
        BuildInputs::default()
    }

    fn expected_failure(&self) -> Option<ExpectedFailure> {
        None
    }

    /// A cell converges, and is judged, by each of the primary metrics.
    fn metrics(&self) -> Vec<Metric>;

    /// Builds the programs without further preparation; returns their SHA-256 by name, none if there are no programs.
    /// Fails also if the build does not create each of them.
    async fn build(&self, _context: &WorkerContext) -> Result<BTreeMap<String, String>, Failure> {
        Ok(BTreeMap::new())
    }

    async fn prepare(&self, context: &WorkerContext) -> Result<AnyPrepared, Failure>;

    /// Takes one sample and records its artefacts.
    async fn sample(&self, prepared: &mut AnyPrepared, attempt: &mut Attempt) -> Result<(), Failure>;

    /// Removes what was prepared, and checks what can be checked only then.
    async fn cleanup(&self, prepared: AnyPrepared, context: &WorkerContext) -> Result<(), Failure>;

    fn study(&self, artefacts: &Artefacts) -> Result<Measurement, Rejection>;
}

/// Prepared state of any test.
pub type AnyPrepared = Box<dyn Any + Send>;

/// A file on this machine that the definition of a test refers to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedFile {
    /// As in the definition.
    pub path: String,
    pub location: PathBuf,
}

/// Inputs that affect only the build of a test's programs: cells that differ only in them measure the same if the built
/// programs are identical.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BuildInputs {
    pub params: BTreeSet<String>,
    /// Programs on the worker, such as compilers.
    pub programs: BTreeSet<String>,
}

/// A cell with its medians and curves, as input of [`Test::solve`].
#[derive(Debug, Clone)]
pub struct EvaluatedCell<'a> {
    pub case: &'a Case,
    pub params: &'a Params,
    /// With their confidence intervals.
    pub medians: BTreeMap<MetricKey, Estimate>,
    /// Counted values by round. A round has one sample of each cell of a test.
    pub values_by_round: BTreeMap<MetricKey, BTreeMap<u32, f64>>,
    /// Medians over samples.
    pub curves: Vec<CellCurve>,
}

impl EvaluatedCell<'_> {
    /// Correlation of a metric's median with that of another cell.
    pub fn median_correlation(&self, other: &Self, metric: &MetricKey) -> f64 {
        let [own, others] = [self, other].map(|cell| cell.values_by_round.get(metric));
        own.zip(others).map_or(0.0, |(own, others)| wb_stats::median_correlation(own, others))
    }
}

/// Title, and lines by name, each with points in ascending order of x.
pub type CellCurve = (String, Vec<(String, Vec<CurvePoint>)>);

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurvePoint {
    pub x: f64,
    /// Median of the samples.
    pub y: f64,
    /// Interval that contains the middle 80 % of the samples; none for a single sample.
    pub spread: Option<(f64, f64)>,
}
