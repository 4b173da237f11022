//! The parameters of `peers`: which file, which of its cells, and how each is measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Bytes, Nanos};
use wb_peers::selection::SelectIgnore;
use wb_peers::{CustomScenario, Scenario, SelectionFlags};

/// How a cell of a matrix of implementations is measured
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Params {
    /// Peers file, which defines the matrix; relative to the plan, or an absolute path
    #[schemars(extend("x-aliases" = ["file"]))]
    pub(super) matrix_file: String,
    /// Keep matching tests; a filter as in docs/peers.md, like all that follow
    pub(super) test_select: String,
    /// Drop matching tests
    pub(super) test_ignore: String,
    /// Keep matching baselines
    pub(super) baseline_select: String,
    /// Drop matching baselines
    pub(super) baseline_ignore: String,
    /// Keep tests whose endpoints both match
    pub(super) impl_select: String,
    /// Drop tests of which an endpoint matches
    pub(super) impl_ignore: String,
    /// Keep tests with a matching value of an axis, AXIS=FILTER each
    pub(super) axis_select: Vec<String>,
    /// Drop tests with a matching value of an axis, AXIS=FILTER each
    pub(super) axis_ignore: Vec<String>,
    /// Pair every endpoint with every other, even in suites that pair each only with itself
    pub(super) full_matrix_test: bool,
    /// Uploads and downloads per sample; 0: none
    #[schemars(extend("maximum" = 100_000))]
    pub(super) iterations: u32,
    /// Size of an upload; 0: no uploads
    pub(super) upload_bytes: Bytes,
    /// Size of a download; 0: no downloads
    pub(super) download_bytes: Bytes,
    /// Round trips of one byte per sample; 0: none
    #[schemars(extend("maximum" = 1_000_000))]
    pub(super) latency_iterations: u32,
    /// Time limit of an iteration
    pub(super) iteration_limit: Nanos,
    /// Duration that endpoints are given as `{duration}` or DURATION; those of the suites ignore it
    pub(super) duration: Nanos,
    /// Time limit for a listener to accept connections
    pub(super) ready_limit: Nanos,
    /// CPUs of the dialer; empty: the first half of the CPUs
    pub(super) dialer_cpus: Vec<u32>,
    /// CPUs of the listener; empty: the second half of the CPUs
    pub(super) listener_cpus: Vec<u32>,
    /// Program that runs the containers of endpoints that are images
    pub(super) container_engine: ContainerEngine,
}

/// A program that runs containers
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ContainerEngine {
    /// Podman
    #[default]
    Podman,
    /// Docker, whose daemon must run
    Docker,
}

impl ContainerEngine {
    /// The name of its program.
    pub(super) fn program(self) -> &'static str {
        match self {
            Self::Podman => "podman",
            Self::Docker => "docker",
        }
    }

    /// The Debian package with it.
    pub(super) fn package(self) -> &'static str {
        match self {
            Self::Podman => "podman",
            Self::Docker => "docker.io",
        }
    }
}

/// The parameters that select among the cells, and are no part of them.
pub(super) const SELECTION_PARAMS: [&str; 9] = [
    "test-select",
    "test-ignore",
    "baseline-select",
    "baseline-ignore",
    "impl-select",
    "impl-ignore",
    "axis-select",
    "axis-ignore",
    "full-matrix-test",
];

impl Default for Params {
    fn default() -> Self {
        Self {
            matrix_file: String::new(),
            test_select: String::new(),
            test_ignore: String::new(),
            baseline_select: String::new(),
            baseline_ignore: String::new(),
            impl_select: String::new(),
            impl_ignore: String::new(),
            axis_select: Vec::new(),
            axis_ignore: Vec::new(),
            full_matrix_test: false,
            iterations: 10,
            upload_bytes: Bytes(32 << 20),
            download_bytes: Bytes(32 << 20),
            latency_iterations: 100,
            iteration_limit: Nanos(60_000_000_000),
            duration: Nanos(20_000_000_000),
            ready_limit: Nanos(30_000_000_000),
            dialer_cpus: Vec::new(),
            listener_cpus: Vec::new(),
            container_engine: ContainerEngine::default(),
        }
    }
}

/// A scenario that is measured: what its iterations transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScenarioRun {
    pub(super) scenario: Scenario,
    /// Bytes from the dialer to the listener.
    pub(super) send: u64,
    /// Bytes from the listener to the dialer.
    pub(super) receive: u64,
    pub(super) iterations: u32,
}

impl ScenarioRun {
    /// A scenario of the peers file.
    pub(super) fn custom(scenario: &CustomScenario) -> Self {
        let (send, receive, iterations) = (scenario.send.0, scenario.receive.0, scenario.iterations);
        Self { scenario: scenario.scenario(), send, receive, iterations }
    }

    /// A transfer of a fraction of the bytes, which must take less time; none for a latency.
    pub(super) fn probe(&self) -> Option<Self> {
        let fraction = |bytes: u64| bytes.div_ceil(PROBE_DIVISOR);
        let Self { scenario, send, receive, .. } = self;
        scenario.is_rate().then(|| Self {
            scenario: scenario.clone(),
            send: fraction(*send),
            receive: fraction(*receive),
            iterations: PROBE_ITERATIONS,
        })
    }

    /// Bytes of an iteration, in both directions.
    pub(super) fn bytes(&self) -> u64 {
        self.send.saturating_add(self.receive)
    }
}

/// A probe transfers this fraction of the bytes.
pub(super) const PROBE_DIVISOR: u64 = 8;

/// Iterations of a probe, of which the shortest counts.
const PROBE_ITERATIONS: u32 = 3;

impl Params {
    /// What is measured of the standard scenarios, in order.
    pub(super) fn scenarios(&self) -> Vec<ScenarioRun> {
        let (up, down) = (self.upload_bytes.0, self.download_bytes.0);
        let all = [
            ScenarioRun { scenario: Scenario::Upload, send: up, receive: 0, iterations: self.iterations },
            ScenarioRun { scenario: Scenario::Download, send: 0, receive: down, iterations: self.iterations },
            ScenarioRun { scenario: Scenario::Latency, send: 1, receive: 1, iterations: self.latency_iterations },
        ];
        all.into_iter().filter(|run| run.iterations > 0 && run.bytes() > 0).collect()
    }

    /// The selection among the cells.
    ///
    /// # Errors
    /// If a filter of an axis names none.
    pub(super) fn selection(&self) -> Result<SelectionFlags, String> {
        let filter = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let both = |select: &str, ignore: &str| SelectIgnore { select: filter(select), ignore: filter(ignore) };
        let axis = |text: &String, is_ignore: bool| match text.split_once('=').filter(|(axis, _)| !axis.is_empty()) {
            Some((axis, text)) if is_ignore => Ok((axis.to_owned(), both("", text))),
            Some((axis, text)) => Ok((axis.to_owned(), both(text, ""))),
            None => Err(format!("invalid axis filter `{text}`: expected AXIS=FILTER")),
        };
        let select = self.axis_select.iter().map(|text| axis(text, false));
        let ignore = self.axis_ignore.iter().map(|text| axis(text, true));
        Ok(SelectionFlags {
            test: both(&self.test_select, &self.test_ignore),
            baseline: both(&self.baseline_select, &self.baseline_ignore),
            implementation: both(&self.impl_select, &self.impl_ignore),
            axes: select.chain(ignore).collect::<Result<_, _>>()?,
            full_matrix: self.full_matrix_test,
        })
    }
}

#[cfg(test)]
mod tests {
    use wb_model::Param;

    use super::*;

    #[test]
    fn parameters_that_select_are_declared() {
        let declared: Vec<String> = Param::from_schema::<Params>().into_iter().map(|param| param.name).collect();
        assert!(SELECTION_PARAMS.iter().all(|name| declared.iter().any(|declared| declared == name)), "{declared:?}");
    }

    #[test]
    fn a_scenario_without_iterations_or_bytes_is_not_measured() {
        let names =
            |params: Params| params.scenarios().iter().map(|one| one.scenario.name().to_owned()).collect::<Vec<_>>();
        assert_eq!(names(Params::default()), ["upload", "download", "latency"]);
        assert_eq!(names(Params { iterations: 0, ..Params::default() }), ["latency"]);
        assert_eq!(names(Params { upload_bytes: Bytes(0), latency_iterations: 0, ..Params::default() }), ["download"]);
    }

    #[test]
    fn a_probe_transfers_a_fraction() {
        let scenarios = Params::default().scenarios();
        let [upload, _, latency] = &scenarios[..] else { panic!() };
        let probe = upload.probe().unwrap();
        assert_eq!((probe.send, probe.receive, probe.iterations), (4 << 20, 0, PROBE_ITERATIONS));
        assert_eq!(latency.probe(), None);
    }
}
