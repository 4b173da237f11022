//! The definition of a matrix: axes, endpoints, rules and aliases.

use std::collections::BTreeMap;

use crate::check::FigureCheck;
use crate::launch::{Dialect, Launch};
use wb_results::Scenario;

use crate::scenario::CustomScenario;

/// A matrix of implementations.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    pub suite: Suite,
    /// Common properties of the two endpoints of a cell, such as a transport; in the order of names and of nesting.
    pub axes: Vec<Axis>,
    pub rules: Vec<Rule>,
    /// In the order of the file.
    pub endpoints: Vec<Endpoint>,
    /// Implementations that show which figures are possible; measured only with each other.
    pub baselines: Vec<Endpoint>,
    pub aliases: Aliases,
    /// Scenarios that are measured in addition to uploads, downloads and round trips.
    pub scenarios: Vec<CustomScenario>,
    pub checks: Vec<FigureCheck>,
    pub expected_failures: Vec<ExpectedFailure>,
    /// The folder in which endpoints are built, relative to the peers file.
    pub root: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedFailure {
    /// A filter on the names of cells.
    pub cells: String,
    pub reason: String,
    /// The last day on which they are expected to fail, `YYYY-MM-DD`.
    pub until: String,
}

/// Whose rules a matrix follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suite {
    /// The whole product; filters work on names.
    Weighbridge,
    /// libp2p/test-plans (`impls.yaml`): the whole product; test filters select by id, ignore by name, and leave
    /// baselines alone.
    TestPlans,
    /// libp2p/unified-testing (`images.yaml`): only pairs of an endpoint with itself, unless the full matrix is
    /// requested; filters work on names.
    UnifiedTesting,
}

/// A dimension of a matrix: its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Axis(pub String);

/// An implementation of a protocol, which can be at either end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Unique in the matrix.
    pub id: String,
    pub version: Option<String>,
    /// Endpoints are paired only if their protocol is the same.
    pub protocol: Option<String>,
    /// The values of each axis of the matrix, in order of preference.
    pub supports: Vec<Vec<String>>,
    pub scenarios: Vec<Scenario>,
    /// The worker on which its listeners run; `None`: the worker of the run.
    pub server: Option<String>,
    /// For a baseline: the cells for which it is an upper bound. `None`: all cells.
    pub ceiling: Option<AxisValues>,
    /// For a baseline: further cells beside which it is shown; they may be faster.
    pub comparison: Option<AxisValues>,
    /// `None` if the file does not say how it is built and started.
    pub launch: Option<Launch>,
}

/// Indices of axes, each with the values allowed on it. A cell matches if each of these axes has an allowed value.
pub type AxisValues = Vec<(usize, Vec<String>)>;

impl Endpoint {
    /// Whether it can open connections; assumed if the file does not say how it is started.
    pub fn can_dial(&self) -> bool {
        self.launch.as_ref().is_none_or(|launch| launch.dialect == Dialect::Engine || launch.dialer.is_some())
    }

    /// Whether it can accept connections; assumed if the file does not say how it is started.
    pub fn can_listen(&self) -> bool {
        self.launch.as_ref().is_none_or(|launch| launch.dialect == Dialect::Engine || launch.listener.is_some())
    }
}

/// Axes that do not apply where other axes have certain values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub when: AxisValues,
    /// Indices of the axes that do not apply then; each comes after those of `when`.
    pub drop: Vec<usize>,
}

/// Names of patterns, for filters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aliases(pub BTreeMap<String, String>);

impl Matrix {
    pub fn axis(&self, name: &str) -> Option<usize> {
        self.axes.iter().position(|axis| axis.0 == name)
    }

    /// All values of an axis that any endpoint supports, sorted.
    pub fn values(&self, axis: usize) -> Vec<&str> {
        let mut values: Vec<&str> =
            self.endpoints.iter().flat_map(|endpoint| &endpoint.supports[axis]).map(String::as_str).collect();
        values.sort_unstable();
        values.dedup();
        values
    }
}
