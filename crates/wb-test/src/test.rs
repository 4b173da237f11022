//! The traits of a test and of its cells, whatever the type of its parameters. Tests in Rust implement
//! [`TypedTest`](crate::TypedTest) instead.

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

    /// The text that defines it, unless the test comes with the program; a run records it.
    fn definition(&self) -> Option<&str> {
        None
    }

    /// Default values that depend on the machine, by parameter; several values make an axis, and none leaves the parameter
    /// out.
    fn resolve(&self, _given: &Params, _facts: &Facts) -> BTreeMap<String, Vec<ParamValue>> {
        BTreeMap::new()
    }

    /// The cells that its matrix defines; `None` if they are the product of its parameters.
    ///
    /// # Errors
    /// If the matrix, or the selection among its cells, is invalid.
    fn matrix(&self, _given: &Params) -> Result<Option<CellMatrix>, Diagnostic> {
        Ok(None)
    }

    /// Its cell with these effective parameters: in canonical form, and with those that every test has.
    ///
    /// # Errors
    /// If a parameter cannot be decoded.
    fn cell(self: Arc<Self>, params: &Params) -> Result<Box<dyn TestCell>, InvalidParams>;

    /// The format of the files from which its samples are imported; `None` if it can be measured.
    fn import_format(&self) -> Option<&str> {
        None
    }

    /// Whether its workload is the agent's program itself.
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

    /// Its placement, setup and knobs.
    fn shared_params(&self) -> &SharedParams;

    /// Files on this machine that the definition of its test refers to; a run copies them.
    fn files(&self) -> Vec<NamedFile> {
        Vec::new()
    }

    /// SHA-256 of what defines it beside its parameters, by name: `definition sha256` of the text, and
    /// `file PATH sha256` of each of its files as it is now. Empty for a test that comes with the program.
    fn source_hashes(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Whether its parameters determine the duration of a sample, so that `min-time` does not apply.
    fn sets_duration(&self) -> bool {
        false
    }

    /// How a user makes its samples shorter, as an imperative; `None` if nothing does.
    fn shortening(&self) -> Option<&'static str> {
        Some(LOWER_MIN_TIME)
    }

    /// Inputs that affect only the build of its programs, if it builds any.
    fn build_inputs(&self) -> BuildInputs {
        BuildInputs::default()
    }

    /// Why it is known to fail, if it is.
    fn expected_failure(&self) -> Option<ExpectedFailure> {
        None
    }

    /// Its metrics. Primary metrics decide: a cell converges, and is judged, by each of them.
    fn metrics(&self) -> Vec<Metric>;

    /// Builds its programs without further preparation; returns their SHA-256 by name. Empty if it builds none.
    ///
    /// # Errors
    /// If a command of the build fails, or does not create one of the programs.
    async fn build(&self, _context: &WorkerContext) -> Result<BTreeMap<String, String>, Failure> {
        Ok(BTreeMap::new())
    }

    /// Prepares what samples need.
    async fn prepare(&self, context: &WorkerContext) -> Result<AnyPrepared, Failure>;

    /// Takes one sample and records its artefacts.
    async fn sample(&self, prepared: &mut AnyPrepared, attempt: &mut Attempt) -> Result<(), Failure>;

    /// Removes what was prepared, and checks what can be checked only then.
    async fn cleanup(&self, prepared: AnyPrepared, context: &WorkerContext) -> Result<(), Failure>;

    /// Extracts the values from a sample's artefacts.
    fn study(&self, artefacts: &Artefacts) -> Result<Measurement, Rejection>;
}

/// Prepared state of any test.
pub type AnyPrepared = Box<dyn Any + Send>;

/// A file on this machine that the definition of a test refers to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedFile {
    /// Its path, as in the definition.
    pub path: String,
    pub location: PathBuf,
}

/// Inputs that affect only the build of a test's programs: two cells that differ only in them measure the same if the
/// built programs are identical.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BuildInputs {
    /// Parameters, by name.
    pub params: BTreeSet<String>,
    /// Programs on the worker, such as compilers.
    pub programs: BTreeSet<String>,
}

/// A cell with its medians and curves, as input of [`Test::solve`].
#[derive(Debug, Clone)]
pub struct EvaluatedCell<'a> {
    pub case: &'a Case,
    /// Its effective parameters.
    pub params: &'a Params,
    /// The medians of its metrics, with their intervals.
    pub medians: BTreeMap<MetricKey, Estimate>,
    /// The counted values of its metrics by round. A round has one sample of each cell of a test.
    pub values_by_round: BTreeMap<MetricKey, BTreeMap<u32, f64>>,
    /// Its curves, medians over samples.
    pub curves: Vec<CellCurve>,
}

impl EvaluatedCell<'_> {
    /// The correlation of the median of a metric with that of another cell.
    pub fn median_correlation(&self, other: &Self, metric: &MetricKey) -> f64 {
        let [own, others] = [self, other].map(|cell| cell.values_by_round.get(metric));
        own.zip(others).map_or(0.0, |(own, others)| wb_stats::median_correlation(own, others))
    }
}

/// A curve of an evaluated cell: its title, and lines by name, each with points in ascending order of x.
pub type CellCurve = (String, Vec<(String, Vec<CurvePoint>)>);

/// A point of a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurvePoint {
    /// Position on the horizontal axis.
    pub x: f64,
    /// The median of the samples.
    pub y: f64,
    /// Interval that contains the middle 80 % of the samples; none for a single sample.
    pub spread: Option<(f64, f64)>,
}
