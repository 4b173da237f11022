//! A cell of a matrix: two endpoints, and what they are to use.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use async_trait::async_trait;
use wb_model::{Facts, Metric, Nanos, Param, ParamValue, Params, Placement, Requirement, Sha256, Topology};
use wb_peers::{
    CustomScenario, Dialect, EndpointCommand, Expectations, ExpectedFailure, FigureCheck, Launch, Matrix, Payload,
};
use wb_plan::CatalogCell;
use wb_results::Scenario;
use wb_test::shared_params::decode;
use wb_test::test::{AnyPrepared, NamedFile};
use wb_test::{
    Artefacts, Attempt, Failure, InvalidParams, Measurement, Rejection, SharedParams, Test, TestCell, WorkerContext,
};

use super::matrix_file::{
    CEILING_OF, CELL_NAME, CHECKS, COMPARED_WITH, COUNTED_BY, DIALER, IS_BASELINE, LISTENER, PAYLOAD, SCENARIOS,
};
use super::params::{PeersParams, ScenarioRun};
use super::{Peers, container, engine, sample, study};

/// Bytes per second of an endpoint, for the estimate of a sample's time.
const ESTIMATED_RATE: f64 = 400e6;
/// Seconds that the processes of a sample take to start and to end, for the estimate.
const ESTIMATED_OVERHEAD: f64 = 1.0;

pub(super) struct PeersCell {
    test: Arc<Peers>,
    pub(super) params: PeersParams,
    shared: SharedParams,
    /// Id of the endpoint that opens connections.
    pub(super) dialer: String,
    /// Id of the endpoint that accepts connections.
    pub(super) listener: String,
    pub(super) name: String,
    /// What both are to use, by axis.
    pub(super) values: BTreeMap<String, String>,
    /// Those that both endpoints can measure.
    standard_scenarios: Vec<Scenario>,
    /// Those of the file that both endpoints can measure.
    custom_scenarios: Vec<CustomScenario>,
    pub(super) checks: Vec<FigureCheck>,
    /// Whether the counts of the listener are exact.
    pub(super) has_listener_counts: bool,
    /// What becomes of the payload on its way.
    pub(super) payload: Payload,
}

pub(super) enum CellLaunch {
    /// The network engine of this program.
    Engine,
    Processes(Box<ProcessLaunch>),
}

pub(super) struct ProcessLaunch {
    pub(super) dialect: Dialect,
    pub(super) dialer: EndpointCommand,
    pub(super) listener: EndpointCommand,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Dialer,
    Listener,
}

impl ProcessLaunch {
    fn uses_containers(&self) -> bool {
        self.dialer.container.is_some() || self.listener.container.is_some()
    }
}

fn texts(value: &ParamValue) -> Vec<String> {
    match value {
        ParamValue::List(values) => values.iter().map(ToString::to_string).collect(),
        param => vec![param.to_string()],
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn parse_param<T: FromStr<Err: std::fmt::Display>>(name: &str, text: &str) -> Result<T, InvalidParams> {
    text.parse().map_err(|error: T::Err| InvalidParams::One { name: name.to_owned(), reason: error.to_string() })
}

impl PeersCell {
    pub(super) fn new(test: Arc<Peers>, params: &Params) -> Result<Self, InvalidParams> {
        let (own, shared) = SharedParams::split(params)?;
        let declared = Param::from_schema::<PeersParams>();
        let is_declared = |name: &str| declared.iter().any(|param| param.name == name);
        let (own, mut matrix): (Params, Params) = own.into_iter().partition(|(name, _)| is_declared(name));
        let mut take = |name: &str| matrix.remove(name).map(|value| value.to_string()).unwrap_or_default();
        let [dialer, listener, name] = [DIALER, LISTENER, CELL_NAME].map(&mut take);
        // For reports, not for the measurement.
        for param in [IS_BASELINE, CEILING_OF, COMPARED_WITH] {
            matrix.remove(param);
        }
        let has_listener_counts = matrix.remove(COUNTED_BY).is_none();
        let payload = matrix.remove(PAYLOAD).map(|payload| parse_param(PAYLOAD, &payload.to_string())).transpose()?;
        let (standard_scenarios, custom_scenarios) = match matrix.remove(SCENARIOS) {
            Some(listed) => {
                let texts = texts(&listed);
                let is_named = |scenario: &Scenario| texts.iter().any(|name| name == scenario.name());
                let custom = texts.iter().filter(|text| text.contains('=')).map(|text| parse_param(SCENARIOS, text));
                (Scenario::STANDARD.into_iter().filter(is_named).collect(), custom.collect::<Result<_, _>>()?)
            }
            None => (Scenario::STANDARD.to_vec(), Vec::new()),
        };
        let checks = matrix.remove(CHECKS).map(|checks| texts(&checks)).unwrap_or_default();
        let checks = checks.iter().map(|text| parse_param(CHECKS, text)).collect::<Result<_, _>>()?;
        let values = matrix.into_iter().map(|(axis, value)| (axis, value.to_string())).collect();
        let params: PeersParams = decode(&own)?;
        params.check()?;
        Ok(Self {
            test,
            params,
            shared,
            dialer,
            listener,
            name,
            values,
            standard_scenarios,
            custom_scenarios,
            checks,
            has_listener_counts,
            payload: payload.unwrap_or_default(),
        })
    }

    pub(super) fn scenario_runs(&self) -> Vec<ScenarioRun> {
        let standard = self.params.scenarios().into_iter();
        let standard = standard.filter(|run| self.standard_scenarios.contains(&run.scenario));
        standard.chain(self.custom_scenarios.iter().map(ScenarioRun::custom)).collect()
    }

    /// Whether a container engine can apply the placement: CPUs and memory nodes, nothing else.
    fn is_placement_of_containers(&self) -> bool {
        let Placement { cpus, memory_nodes, .. } = self.shared.placement.clone();
        self.shared.placement == Placement { cpus, memory_nodes, ..Placement::default() }
    }

    fn matrix(&self) -> Result<Arc<Matrix>, String> {
        self.test.files.matrix(&self.params.matrix_file).map_err(|error| error.to_string())
    }

    /// The folder that programs of the endpoints are relative to.
    pub(super) fn folder(&self) -> PathBuf {
        let path = self.test.files.path(&self.params.matrix_file);
        // The parent of a bare name is empty. What cannot be made absolute is reported with the program that is missing.
        let path = std::path::absolute(&path).unwrap_or(path);
        path.parent().map(Path::to_owned).unwrap_or_default()
    }

    pub(super) fn launch(&self) -> Result<CellLaunch, String> {
        let matrix = self.matrix()?;
        let [dialer, listener] = [&self.dialer, &self.listener].map(|id| self.endpoint_launch(&matrix, id));
        let (dialer, listener) = (dialer?, listener?);
        match (dialer.dialect, listener.dialect) {
            (Dialect::Engine, Dialect::Engine) => Ok(CellLaunch::Engine),
            (one, other) if one != other => Err("the endpoints have different dialects".to_owned()),
            (dialect, _) => {
                let missing =
                    |id: &str, what: &str| format!("`{}` does not say how `{id}` {what}", self.params.matrix_file);
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
        let endpoint = endpoint.ok_or_else(|| format!("no such endpoint in `{}`: `{id}`", self.params.matrix_file))?;
        endpoint
            .launch
            .clone()
            .ok_or_else(|| format!("`{}` does not say how `{id}` is started", self.params.matrix_file))
    }

    /// Why transfers of a fixed time are not possible, if they are requested.
    fn without_duration(&self) -> Option<String> {
        self.params.duration?;
        let matrix = self.matrix().ok()?;
        let launches = [&self.dialer, &self.listener].map(|id| (id, self.endpoint_launch(&matrix, id)));
        let lacks = |(id, launch): (_, Result<Launch, _>)| {
            launch.ok().filter(|launch| !launch.duration).map(|launch| (id, launch))
        };
        let (id, launch) = launches.into_iter().find_map(lacks)?;
        Some(match launch.dialect {
            Dialect::Weighbridge => format!(
                "`{id}` has no `duration = true` in `{}`: without `duration`, fixed bytes are transferred",
                self.params.matrix_file
            ),
            Dialect::Engine | Dialect::TestPlans | Dialect::UnifiedTesting => {
                format!("`{id}` transfers fixed bytes alone, like all of its dialect: measure it without `duration`")
            }
        })
    }

    /// The program of a command: as it is, or relative to the folder of the peers file.
    pub(super) fn program(&self, program: &str) -> String {
        if program.contains('/') { self.folder().join(program).display().to_string() } else { program.to_owned() }
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
        let own = [&launch.dialer, &launch.listener].into_iter().filter_map(|command| command.program());
        let mut required: Vec<Requirement> = own.map(|program| requirement(&self.program(&program), "")).collect();
        let engine = self.params.container_engine;
        if launch.uses_containers() {
            let program = requirement(engine.program(), engine.package());
            required.push(program.with_feature(container::working_engine(engine)));
        }
        if launch.dialect.is_suite() {
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
            Ok(CellLaunch::Processes(launch)) if launch.uses_containers() && !self.is_placement_of_containers() => {
                Some("huge-pages and aslr cannot be set for containers".to_owned())
            }
            Ok(_) => None,
        };
        let cpus = self.params.dialer_cpus.iter().chain(&self.params.listener_cpus);
        let missing_cpu = || cpus.into_iter().find(|cpu| facts.cpus.iter().all(|existing| existing.id != **cpu));
        let nothing = || self.scenario_runs().is_empty().then(|| "nothing to measure: no iterations".to_owned());
        self.shared
            .unsupported(facts)
            .or(launched)
            .or_else(|| self.without_duration())
            .or_else(nothing)
            .or_else(|| missing_cpu().map(|cpu| format!("no such CPU on this worker: {cpu}")))
    }

    fn topology(&self) -> Topology {
        Topology::ClientServer { servers: 1 }
    }

    fn estimate(&self, _: Nanos) -> Nanos {
        let scenarios = self.scenario_runs();
        let seconds = scenarios.iter().map(|run| {
            let of_iteration = match run.fixed_time() {
                Some(time) => time.duration.seconds(),
                None => run.bytes() as f64 / ESTIMATED_RATE,
            };
            of_iteration * f64::from(run.iterations)
        });
        Nanos::from_seconds(ESTIMATED_OVERHEAD + seconds.sum::<f64>())
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
        vec![NamedFile {
            path: self.params.matrix_file.clone(),
            location: self.test.files.path(&self.params.matrix_file),
        }]
    }

    fn source_hashes(&self) -> BTreeMap<String, String> {
        // Whatever prevents it makes the cell unsupported.
        let Ok(CellLaunch::Processes(launch)) = self.launch() else { return BTreeMap::new() };
        let mut hashes = BTreeMap::new();
        for (side, command) in [(DIALER, &launch.dialer), (LISTENER, &launch.listener)] {
            // Other arguments look like paths, too: those that cannot be read as files are not hashed.
            let hash = |path: &String| File::open(self.folder().join(path)).and_then(Sha256::of_reader).ok();
            let files = command.file_arguments().into_iter().filter_map(|path| Some((hash(&path)?, path)));
            let files: Vec<(Sha256, String)> = files.collect();
            let program = command.program().filter(|program| program.contains('/'));
            // Where a file is does not define anything: a snapshot has it elsewhere. Its content does, and has a hash.
            let definition = command.definition(|text| {
                let is_file = files.iter().map(|(_, path)| path).chain(&program).any(|path| path == text);
                if is_file { file_name(text).to_owned() } else { text.to_owned() }
            });
            hashes.insert(format!("{side} definition sha256"), Sha256::digest(definition.as_bytes()).to_string());
            for (index, (sha256, path)) in files.iter().enumerate() {
                let earlier = files[..index].iter().filter(|(_, other)| file_name(other) == file_name(path)).count();
                let number = if earlier == 0 { String::new() } else { format!(" {}", earlier + 1) };
                hashes.insert(format!("{side} {}{number} sha256", file_name(path)), sha256.to_string());
            }
        }
        hashes
    }

    fn sets_duration(&self) -> bool {
        true
    }

    fn shortening(&self) -> Option<&'static str> {
        Some(match self.params.duration {
            Some(_) => "lower `duration`",
            None => "lower the iterations or bytes of its scenarios",
        })
    }

    fn expected_failure(&self) -> Option<ExpectedFailure> {
        // The filters were checked when the cells were selected; the file may have been changed or removed since.
        let matrix = self.matrix().ok()?;
        Expectations::new(&matrix).ok()?.expected_failure(&self.name).cloned()
    }

    fn metrics(&self) -> Vec<Metric> {
        study::metrics(self.scenario_runs().iter().map(|run| &run.scenario), self.params.duration.is_some())
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
