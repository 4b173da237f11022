//! The interface through which a plan looks up tests and knobs.

use std::collections::BTreeMap;

use wb_model::{Declaration, Facts, Nanos, ParamValue, Params, Requirement, Topology};
use wb_stats::SamplingRule;

/// The available tests and knobs.
pub trait Catalog {
    /// The declaration of a test.
    fn declaration(&self, test: &str) -> Option<&Declaration>;

    /// The names of all tests.
    fn names(&self) -> Vec<&str>;

    /// The programs that a cell with these parameters needs on its worker.
    fn requires(&self, test: &str, params: &Params) -> Vec<Requirement>;

    /// Whether a test is run by Weighbridge itself.
    fn is_native(&self, test: &str) -> bool;

    /// The canonical name of a knob, which may be given by an alias.
    fn knob(&self, name: &str) -> Option<&'static str>;

    /// The canonical names of all knobs.
    fn knobs(&self) -> Vec<&'static str>;

    /// Values that the machine determines for parameters not given, by parameter; several values make an axis.
    fn resolve(&self, test: &str, given: &Params, facts: &Facts) -> BTreeMap<String, Vec<ParamValue>>;

    /// Why a cell with these parameters cannot be measured on such a machine; `None` if it can.
    fn unsupported(&self, test: &str, params: &Params, facts: &Facts) -> Option<String>;

    /// The topology of a cell with these parameters: a single worker, or a client and its servers.
    fn topology(&self, test: &str, params: &Params) -> Topology;

    /// The sampling rule that the test's own parameters request.
    fn rule(&self, test: &str, params: &Params) -> Option<SamplingRule>;

    /// The estimated time of one sample whose work is calibrated to `min_time`.
    fn estimate(&self, test: &str, params: &Params, min_time: Nanos) -> Nanos;

    /// The additional time of a cell's first sample, which calibrates the work of each sample.
    fn calibration_time(&self, _test: &str, _params: &Params, _min_time: Nanos) -> Nanos {
        Nanos(0)
    }

    /// Whether the estimate is specific to this test; otherwise the time of a sample is unknown.
    fn is_estimated(&self, _test: &str, _params: &Params) -> bool {
        true
    }
}
