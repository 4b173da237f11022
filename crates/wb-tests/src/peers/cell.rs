//! A cell of a matrix: two endpoints, and what they are to use.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use wb_model::{Facts, Metric, Nanos, Param, ParamValue, Params as Given, Requirement, Sha256, Topology};
use wb_peers::{Dialect, EndpointCommand, Expectations, ExpectedFailure, Launch, Matrix, Scenario};
use wb_plan::CatalogCell;

use super::matrix_file::{CELL_NAME, COUNTED_BY, DIALER, IS_BASELINE, LISTENER, SCENARIOS};
use super::params::{Params, ScenarioRun};
use super::{Peers, engine, sample, study};
use crate::shared_params::decode;
use crate::test::{AnyPrepared, NamedFile};
use crate::{
    Artefacts, Attempt, Failure, InvalidParams, Measurement, Rejection, SharedParams, Test, TestCell, WorkerContext,
};

/// Bytes per second of an endpoint, for the estimate of a sample's time.
const ESTIMATED_RATE: f64 = 400e6;
/// Seconds that the processes of a sample take to start and to end, for the estimate.
const ESTIMATED_OVERHEAD: f64 = 1.0;

/// A cell of a matrix of implementations.
pub(super) struct PeersCell {
    test: Arc<Peers>,
    pub(super) params: Params,
    shared: SharedParams,
    /// Id of the endpoint that opens connections.
    pub(super) dialer: String,
    /// Id of the endpoint that accepts them.
    pub(super) listener: String,
    /// Its name in the matrix.
    pub(super) name: String,
    /// What both are to use, by axis.
    pub(super) values: BTreeMap<String, String>,
    /// What both can measure.
    scenarios: Vec<Scenario>,
    /// Whether the counts of the listener are exact.
    pub(super) has_listener_counts: bool,
}

/// How both sides of a cell are started.
pub(super) enum CellLaunch {
    /// By the network engine of this program.
    Engine,
    /// By commands of the peers file.
    Processes(Box<ProcessLaunch>),
}

/// The commands of a cell.
pub(super) struct ProcessLaunch {
    pub(super) dialect: Dialect,
    pub(super) dialer: EndpointCommand,
    pub(super) listener: EndpointCommand,
}

/// One side of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Dialer,
    Listener,
}

impl PeersCell {
    pub(super) fn new(test: Arc<Peers>, params: &Given) -> Result<Self, InvalidParams> {
        let (own, shared) = SharedParams::split(params)?;
        let declared = Param::from_schema::<Params>();
        let is_declared = |name: &str| declared.iter().any(|param| param.name == name);
        let (own, mut matrix): (Given, Given) = own.into_iter().partition(|(name, _)| is_declared(name));
        let mut take = |name: &str| matrix.remove(name).map(|value| value.to_string()).unwrap_or_default();
        let [dialer, listener, name] = [DIALER, LISTENER, CELL_NAME].map(&mut take);
        // For reports, not for the measurement.
        matrix.remove(IS_BASELINE);
        let has_listener_counts = matrix.remove(COUNTED_BY).is_none();
        let scenarios = match matrix.remove(SCENARIOS) {
            Some(ParamValue::List(names)) => {
                let is_named = |scenario: &Scenario| names.iter().any(|name| name.to_string() == scenario.name());
                Scenario::ALL.into_iter().filter(is_named).collect()
            }
            _ => Scenario::ALL.to_vec(),
        };
        let values = matrix.into_iter().map(|(axis, value)| (axis, value.to_string())).collect();
        Ok(Self { test, params: decode(&own)?, shared, dialer, listener, name, values, scenarios, has_listener_counts })
    }

    /// What is measured, in order.
    pub(super) fn scenario_runs(&self) -> Vec<ScenarioRun> {
        let all = self.params.scenarios().into_iter();
        all.filter(|run| self.scenarios.contains(&run.name)).collect()
    }

    fn matrix(&self) -> Result<Arc<Matrix>, String> {
        self.test.files.matrix(&self.params.file).map_err(|error| error.to_string())
    }

    /// The folder that programs of the endpoints are relative to.
    pub(super) fn folder(&self) -> PathBuf {
        let path = self.test.files.path(&self.params.file);
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        // A folder that does not exist is reported with the program that is missing in it.
        std::path::absolute(&folder).unwrap_or(folder)
    }

    /// How both sides are started.
    pub(super) fn launch(&self) -> Result<CellLaunch, String> {
        let matrix = self.matrix()?;
        let [dialer, listener] = [&self.dialer, &self.listener].map(|id| self.endpoint_launch(&matrix, id));
        let (dialer, listener) = (dialer?, listener?);
        match (dialer.dialect, listener.dialect) {
            (Dialect::Engine, Dialect::Engine) => Ok(CellLaunch::Engine),
            (one, other) if one != other => Err("the endpoints have different dialects".to_owned()),
            (dialect, _) => {
                let missing = |id: &str, what: &str| format!("`{}` does not say how `{id}` {what}", self.params.file);
                Ok(CellLaunch::Processes(Box::new(ProcessLaunch {
                    dialect,
                    dialer: dialer.dialer.ok_or_else(|| missing(&self.dialer, "opens connections (`dialer`)"))?,
                    listener: listener.listener.ok_or_else(|| missing(&self.listener, "accepts them (`listener`)"))?,
                })))
            }
        }
    }

    fn endpoint_launch(&self, matrix: &Matrix, id: &str) -> Result<Launch, String> {
        let mut all = matrix.baselines.iter().chain(&matrix.endpoints);
        let endpoint = all.find(|endpoint| endpoint.id == *id);
        let endpoint = endpoint.ok_or_else(|| format!("no such endpoint in `{}`: `{id}`", self.params.file))?;
        endpoint.launch.clone().ok_or_else(|| format!("`{}` does not say how `{id}` is started", self.params.file))
    }

    /// The program of a command: as it is, or relative to the folder of the peers file.
    pub(super) fn program(&self, program: &str) -> String {
        match program.contains('/') {
            true => self.folder().join(program).display().to_string(),
            false => program.to_owned(),
        }
    }
}

impl CatalogCell for PeersCell {
    fn requires(&self) -> Vec<Requirement> {
        // Whatever prevents it makes the cell unsupported.
        let Ok(CellLaunch::Processes(launch)) = self.launch() else { return Vec::new() };
        let requirement = |program: &str, package: &str| Requirement {
            program: program.to_owned(),
            package: package.to_owned(),
            version: Vec::new(),
            feature: None,
        };
        let own = [launch.dialer, launch.listener].into_iter().filter_map(|command| command.program());
        let mut required: Vec<Requirement> = own.map(|program| requirement(&self.program(&program), "")).collect();
        if launch.dialect != Dialect::Weighbridge {
            required.push(requirement("redis-server", "redis-server"));
            required.push(requirement("redis-cli", "redis-tools"));
        }
        required
    }

    fn unsupported(&self, facts: &Facts) -> Option<String> {
        let launched = match self.launch() {
            Err(reason) => Some(reason),
            Ok(CellLaunch::Engine) if engine::protocol(self).is_none() => {
                Some("the engine has no such transport: expected tcp, tls or quic".to_owned())
            }
            Ok(_) => None,
        };
        let cpus = self.params.dialer_cpus.iter().chain(&self.params.listener_cpus);
        let missing_cpu = || cpus.into_iter().find(|cpu| facts.cpus.iter().all(|existing| existing.id != **cpu));
        let nothing = || self.scenario_runs().is_empty().then(|| "nothing to measure: no iterations".to_owned());
        self.shared
            .unsupported(facts)
            .or(launched)
            .or_else(nothing)
            .or_else(|| missing_cpu().map(|cpu| format!("no such CPU on this worker: {cpu}")))
    }

    fn topology(&self) -> Topology {
        Topology::ClientServer { servers: 1 }
    }

    fn estimate(&self, _: Nanos) -> Nanos {
        let scenarios = self.scenario_runs();
        let bytes =
            scenarios.iter().map(|one| (one.send + one.receive) as f64 * f64::from(one.iterations)).sum::<f64>();
        Nanos::from_seconds(ESTIMATED_OVERHEAD + bytes / ESTIMATED_RATE)
    }
}

#[async_trait]
impl TestCell for PeersCell {
    fn test(&self) -> &dyn Test {
        self.test.as_ref()
    }

    fn shared_params(&self) -> &SharedParams {
        &self.shared
    }

    fn files(&self) -> Vec<NamedFile> {
        vec![NamedFile { path: self.params.file.clone(), location: self.test.files.path(&self.params.file) }]
    }

    fn source_hashes(&self) -> BTreeMap<String, String> {
        // Whatever prevents it makes the cell unsupported.
        let Ok(CellLaunch::Processes(launch)) = self.launch() else { return BTreeMap::new() };
        let sides = [(DIALER, &launch.dialer), (LISTENER, &launch.listener)];
        let hash = |command: &EndpointCommand| Sha256::of(command.definition().as_bytes()).to_string();
        sides.map(|(side, command)| (format!("{side} definition sha256"), hash(command))).into()
    }

    fn sets_duration(&self) -> bool {
        true
    }

    fn expected_failure(&self) -> Option<ExpectedFailure> {
        // The filters were checked when the cells were selected; the file may have been changed or removed since.
        let matrix = self.matrix().ok()?;
        Expectations::new(&matrix).ok()?.of(&self.name).cloned()
    }

    fn metrics(&self) -> Vec<Metric> {
        study::metrics(&self.scenario_runs())
    }

    async fn prepare(&self, _: &WorkerContext) -> Result<AnyPrepared, Failure> {
        Ok(Box::new(()))
    }

    async fn sample(&self, _: &mut AnyPrepared, attempt: &mut Attempt) -> Result<(), Failure> {
        sample::take(self, attempt).await
    }

    async fn cleanup(&self, _: AnyPrepared, _: &WorkerContext) -> Result<(), Failure> {
        Ok(())
    }

    fn study(&self, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
        study::study(self, artefacts)
    }
}
