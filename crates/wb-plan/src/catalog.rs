//! The interface through which a plan looks up tests and knobs.

use std::collections::BTreeMap;

use wb_diagnostics::Diagnostic;
use wb_model::{Declaration, Facts, Metric, Nanos, ParamValue, Params, Requirement, Topology};
use wb_stats::SamplingRule;

/// The available tests and knobs.
pub trait Catalog {
    fn declaration(&self, test: &str) -> Option<&Declaration>;

    fn names(&self) -> Vec<&str>;

    /// Whether a test is run by Weighbridge itself.
    fn is_native(&self, test: &str) -> bool;

    /// The canonical name of a knob, which may be given by an alias.
    fn knob(&self, name: &str) -> Option<&'static str>;

    fn knobs(&self) -> Vec<&'static str>;

    /// Checks the value of a knob, which may have a target, as far as it is valid or invalid on every machine.
    fn check_knob(&self, _knob: &str, _value: &str) -> Result<(), String> {
        Ok(())
    }

    /// Values that the machine determines for parameters not given, by parameter; several values make an axis.
    fn resolve(&self, test: &str, given: &Params, facts: &Facts) -> BTreeMap<String, Vec<ParamValue>>;

    /// The cells of a test that is defined by a matrix; `None` if its cells are the product of its parameters. Fails if
    /// the matrix, or the selection among its cells, is invalid.
    fn matrix(&self, _test: &str, _given: &Params) -> Result<Option<CellMatrix>, Diagnostic> {
        Ok(None)
    }

    /// The metrics of a test with these parameters; empty if they are invalid, or the test is unknown.
    fn metrics(&self, test: &str, params: &Params) -> Vec<Metric>;

    /// The cell of a test with these parameters; `None` if the test is unknown.
    fn cell(&self, test: &str, params: &Params) -> Option<Box<dyn CatalogCell>>;
}

/// A cell of an available test: what its parameters mean for a plan.
pub trait CatalogCell {
    /// The programs that it needs on its worker.
    fn requires(&self) -> Vec<Requirement> {
        Vec::new()
    }

    /// Why the cell cannot be measured on such a machine; `None` if it can.
    fn unsupported(&self, facts: &Facts) -> Option<String>;

    fn topology(&self) -> Topology {
        Topology::Single
    }

    /// The stopping rule that the test's own parameters request.
    fn rule(&self) -> Option<SamplingRule> {
        None
    }

    /// The estimated time of one sample whose work is calibrated to `min_time`.
    fn estimate(&self, min_time: Nanos) -> Nanos {
        min_time
    }

    /// The additional time of the first sample, which calibrates the work of each sample.
    fn calibration_time(&self, _min_time: Nanos) -> Nanos {
        Nanos(0)
    }

    /// Whether the estimate is specific to the test; otherwise the time of a sample is unknown.
    fn is_estimated(&self) -> bool {
        true
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct CellMatrix {
    /// Parameters that determine which cells there are, and are not part of them.
    pub selection_params: Vec<&'static str>,
    /// In the order in which they are to be listed.
    pub cells: Vec<MatrixCell>,
}

/// A cell of a matrix. Each combination of the test's other axes makes a cell of the plan.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MatrixCell {
    /// The name in the matrix, which selects it like the name of the plan's cell.
    pub name: String,
    /// Parameters that identify the cell.
    pub axes: Params,
    /// Parameters that follow from the cell.
    pub params: Params,
    /// The worker that serves, unless the test names others.
    pub server: Option<String>,
}
