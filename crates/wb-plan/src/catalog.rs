//! What a plan must know of the tests there are.

use std::collections::BTreeMap;

use wb_model::{Declaration, Facts, Nanos, ParamValue, Params, Requirement, Topology};
use wb_stats::SamplingRule;

/// Where a plan looks up tests.
pub trait Catalog {
    /// The declaration of the test of this name.
    fn declaration(&self, test: &str) -> Option<&Declaration>;

    /// The names of all tests.
    fn names(&self) -> Vec<&str>;

    /// The programs that a cell of these parameters needs on its worker.
    fn requires(&self, test: &str, params: &Params) -> Vec<Requirement>;

    /// Whether this program itself runs a test.
    fn is_native(&self, test: &str) -> bool;

    /// The proper name of a knob, which may be given by a short one.
    fn knob(&self, name: &str) -> Option<&'static str>;

    /// The proper names of all knobs.
    fn knobs(&self) -> Vec<&'static str>;

    /// Values, by parameter, that follow from the machine where none was given; several make an axis.
    fn resolve(&self, test: &str, given: &Params, facts: &Facts) -> BTreeMap<String, Vec<ParamValue>>;

    /// Why a cell of these parameters cannot be measured on such a machine.
    fn unsupported(&self, test: &str, params: &Params, facts: &Facts) -> Option<String>;

    /// How many sides a cell of these parameters has.
    fn topology(&self, test: &str, params: &Params) -> Topology;

    /// The sampling rule that the test's own parameters ask for.
    fn rule(&self, test: &str, params: &Params) -> Option<SamplingRule>;

    /// How long one sample takes when its work is calibrated to `min_time`.
    fn estimate(&self, test: &str, params: &Params, min_time: Nanos) -> Nanos;

    /// How much longer the first sample of a cell takes, which finds out how much work each does.
    fn calibration_time(&self, _test: &str, _params: &Params, _min_time: Nanos) -> Nanos {
        Nanos(0)
    }

    /// Whether the estimate is of this test; otherwise nothing says how long a sample takes.
    fn is_estimated(&self, _test: &str, _params: &Params) -> bool {
        true
    }
}
