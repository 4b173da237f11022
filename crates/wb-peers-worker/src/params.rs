//! The parameters of `peers`: which file, which of its cells, and how each is measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Bytes, Nanos};
use wb_peers::selection::SelectIgnore;
use wb_peers::{CustomScenario, SelectionFlags};
use wb_results::Scenario;
use wb_stats::MIN_SAMPLES_FOR_TRANSIENT;
use wb_test::InvalidParams;

/// How a cell of a matrix of implementations is measured
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct PeersParams {
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
    /// Time limit of an iteration, without its `duration`
    pub(super) iteration_limit: Nanos,
    /// Transfer for a fixed time, once in each direction per sample, in place of fixed sizes
    #[schemars(extend("minimum" = 1_000_000_000, "x-default" = "none: its bytes end a transfer"))]
    pub(super) duration: Option<Nanos>,
    /// Start of such a transfer that is cut off
    #[schemars(extend("x-default" = "as much as is not steady yet"))]
    pub(super) omit: Option<Nanos>,
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
    pub(super) fn program(self) -> &'static str {
        match self {
            Self::Podman => "podman",
            Self::Docker => "docker",
        }
    }

    pub(super) fn package(self) -> &'static str {
        match self {
            Self::Podman => "podman",
            Self::Docker => "docker.io",
        }
    }
}

/// Parameters that select among the cells, and are no part of them.
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

impl Default for PeersParams {
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
            // On loopback, 16 MiB are over in few milliseconds.
            upload_bytes: Bytes(32 << 20),
            download_bytes: Bytes(32 << 20),
            latency_iterations: 100,
            iteration_limit: Nanos(60_000_000_000),
            duration: None,
            omit: None,
            ready_limit: Nanos(30_000_000_000),
            dialer_cpus: Vec::new(),
            listener_cpus: Vec::new(),
            container_engine: ContainerEngine::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScenarioRun {
    pub(super) scenario: Scenario,
    pub(super) amount: Amount,
    pub(super) iterations: u32,
}

/// What ends a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Amount {
    Bytes {
        /// From the dialer to the listener.
        send: u64,
        /// From the listener to the dialer.
        receive: u64,
    },
    /// In the direction of the scenario.
    Time(FixedTime),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FixedTime {
    pub(super) duration: Nanos,
    /// Start that is cut off; `None` cuts off the part that is not steady yet.
    pub(super) omit: Option<Nanos>,
}

/// Intervals of a transfer: twice as many as show where it becomes steady, as some programs report several together.
const INTERVALS: u64 = 2 * MIN_SAMPLES_FOR_TRANSIENT as u64;

impl FixedTime {
    /// The time between two reports of a dialer.
    pub(super) fn interval(&self) -> Nanos {
        Nanos(self.duration.0 / INTERVALS)
    }
}

impl ScenarioRun {
    pub(super) fn custom(scenario: &CustomScenario) -> Self {
        let amount = Amount::Bytes { send: scenario.send.0, receive: scenario.receive.0 };
        Self { scenario: scenario.scenario(), amount, iterations: scenario.iterations }
    }

    /// A transfer of a fraction of the bytes, which must take less time; none for a latency or a fixed time.
    pub(super) fn probe(&self) -> Option<Self> {
        let fraction = |bytes: u64| bytes.div_ceil(PROBE_DIVISOR);
        let Self { scenario, amount: Amount::Bytes { send, receive }, .. } = self else { return None };
        scenario.is_rate().then(|| Self {
            scenario: scenario.clone(),
            amount: Amount::Bytes { send: fraction(*send), receive: fraction(*receive) },
            iterations: PROBE_ITERATIONS,
        })
    }

    /// Bytes of an iteration to and from the listener; 0 if the time ends it.
    pub(super) fn sizes(&self) -> (u64, u64) {
        match self.amount {
            Amount::Bytes { send, receive } => (send, receive),
            Amount::Time(_) => (0, 0),
        }
    }

    /// Bytes of all iterations, sent and received.
    pub(super) fn total_sizes(&self) -> (u64, u64) {
        let (send, receive) = self.sizes();
        let iterations = u64::from(self.iterations);
        (send.saturating_mul(iterations), receive.saturating_mul(iterations))
    }

    /// Bytes of an iteration, in both directions; 0 if the time ends it.
    pub(super) fn bytes(&self) -> u64 {
        let (send, receive) = self.sizes();
        send.saturating_add(receive)
    }

    /// The time limit of an iteration, where a transfer of fixed bytes has this one.
    pub(super) fn iteration_limit(&self, of_bytes: Nanos) -> Nanos {
        Nanos(of_bytes.0.saturating_add(self.fixed_time().map_or(0, |time| time.duration.0)))
    }

    pub(super) fn fixed_time(&self) -> Option<FixedTime> {
        match self.amount {
            Amount::Bytes { .. } => None,
            Amount::Time(time) => Some(time),
        }
    }
}

/// A probe transfers this fraction of the bytes.
pub(super) const PROBE_DIVISOR: u64 = 8;

/// Iterations of a probe, of which the shortest counts.
const PROBE_ITERATIONS: u32 = 3;

impl PeersParams {
    /// The standard scenarios, in order.
    pub(super) fn scenarios(&self) -> Vec<ScenarioRun> {
        let transfer = |scenario, send, receive| {
            let (amount, iterations) = match self.duration {
                Some(duration) => (Amount::Time(FixedTime { duration, omit: self.omit }), 1),
                None => (Amount::Bytes { send, receive }, self.iterations),
            };
            (send + receive > 0).then_some(ScenarioRun { scenario, amount, iterations })
        };
        let latency = Amount::Bytes { send: 1, receive: 1 };
        let all = [
            transfer(Scenario::Upload, self.upload_bytes.0, 0),
            transfer(Scenario::Download, 0, self.download_bytes.0),
            Some(ScenarioRun { scenario: Scenario::Latency, amount: latency, iterations: self.latency_iterations }),
        ];
        all.into_iter().flatten().filter(|run| run.iterations > 0).collect()
    }

    /// Fails if a parameter has no meaning beside the others.
    pub(super) fn check(&self) -> Result<(), InvalidParams> {
        let invalid = |name: &str, reason: String| Err(InvalidParams::One { name: name.to_owned(), reason });
        let Some(duration) = self.duration else {
            return match self.omit {
                Some(_) => invalid("omit", "expected it with `duration` alone".to_owned()),
                None => Ok(()),
            };
        };
        let default = Self::default();
        if let Some(omit) = self.omit.filter(|omit| omit.0 >= duration.0) {
            return invalid("omit", format!("invalid value {omit}: expected less than the `duration` {duration}"));
        }
        if self.iterations != default.iterations {
            let reason =
                "a sample has one transfer of a fixed time in each direction: remove `iterations` or `duration`";
            return invalid("iterations", reason.to_owned());
        }
        let sizes = [
            ("upload-bytes", self.upload_bytes, default.upload_bytes),
            ("download-bytes", self.download_bytes, default.download_bytes),
        ];
        match sizes.into_iter().find(|(_, size, default)| size.0 != 0 && size != default) {
            Some((name, ..)) => {
                invalid(name, "a transfer of a fixed time has no size: expected 0, for none".to_owned())
            }
            None => Ok(()),
        }
    }

    /// The selection among the cells. Fails if a filter of an axis names none.
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
        let declared: Vec<String> = Param::from_schema::<PeersParams>().into_iter().map(|param| param.name).collect();
        assert!(SELECTION_PARAMS.iter().all(|name| declared.iter().any(|declared| declared == name)), "{declared:?}");
    }

    // The product ended the program.
    #[test]
    fn sizes_of_all_iterations_saturate() {
        let amount = Amount::Bytes { send: u64::MAX / 2, receive: 1 };
        let run = ScenarioRun { scenario: Scenario::Upload, amount, iterations: 3 };
        assert_eq!(run.total_sizes(), (u64::MAX, 3));
    }

    #[test]
    fn a_scenario_without_iterations_or_bytes_is_not_measured() {
        let names = |params: PeersParams| {
            params.scenarios().iter().map(|one| one.scenario.name().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(PeersParams::default()), ["upload", "download", "latency"]);
        assert_eq!(names(PeersParams { iterations: 0, ..PeersParams::default() }), ["latency"]);
        assert_eq!(
            names(PeersParams { upload_bytes: Bytes(0), latency_iterations: 0, ..PeersParams::default() }),
            ["download"]
        );
    }

    #[test]
    fn a_probe_transfers_a_fraction() {
        let scenarios = PeersParams::default().scenarios();
        let [upload, _, latency] = &scenarios[..] else { panic!() };
        let probe = upload.probe().unwrap();
        assert_eq!(probe.amount, Amount::Bytes { send: 4 << 20, receive: 0 });
        assert_eq!(probe.iterations, PROBE_ITERATIONS);
        assert_eq!(latency.probe(), None);
    }

    #[test]
    fn a_fixed_time_replaces_sizes_and_iterations() {
        let fixed = PeersParams { duration: Some(Nanos(2_000_000_000)), ..PeersParams::default() };
        let [upload, download, latency] = &fixed.scenarios()[..] else { panic!() };
        assert_eq!((upload.iterations, upload.probe()), (1, None));
        assert_eq!(download.fixed_time().unwrap().interval(), Nanos(10_000_000));
        assert_eq!((latency.fixed_time(), latency.iterations), (None, 100));
        let down = PeersParams { upload_bytes: Bytes(0), latency_iterations: 0, ..fixed.clone() };
        assert_eq!(down.scenarios().len(), 1);
        assert_eq!((fixed.check(), down.check()), (Ok(()), Ok(())));
        for (wrong, name) in [
            (PeersParams { iterations: 3, ..fixed.clone() }, "iterations"),
            (PeersParams { upload_bytes: Bytes(1), ..fixed.clone() }, "upload-bytes"),
            (PeersParams { omit: fixed.duration, ..fixed.clone() }, "omit"),
            (PeersParams { omit: fixed.duration, ..PeersParams::default() }, "omit"),
        ] {
            assert!(wrong.check().unwrap_err().to_string().starts_with(&format!("`{name}`")), "{wrong:?}");
        }
    }
}
