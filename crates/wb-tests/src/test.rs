//! The traits of a test: [`TypedTest`] for its implementation in Rust, [`Test`] for its execution, with parameters by
//! name and value.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wb_model::{
    AttemptSetup, Case, Declaration, Facts, Metric, MetricKey, Nanos, Param, ParamValue, Params, Placement,
    Requirement, Scope, TestName, Topology,
};
use wb_stats::SamplingRule;

use crate::{Artefacts, Attempt, Conclusion, Failure, Measurement, Rejection, WorkerContext};

/// A file on this machine that the definition of a test refers to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedFile {
    /// Its path, as in the definition.
    pub path: String,
    /// Its resolved location.
    pub location: PathBuf,
}

/// Metadata of a test written in Rust, without its parameters.
#[derive(Debug, Clone)]
pub struct TestInfo {
    /// Its name.
    pub name: &'static str,
    /// What it measures, in one line.
    pub summary: &'static str,
    /// Increased whenever it starts to measure differently.
    pub version: u32,
    /// Lifetime of what it prepares.
    pub scope: Scope,
}

/// A test written in Rust.
#[async_trait]
pub trait TypedTest: Send + Sync + 'static {
    /// Its parameters: their JSON Schema declares them, their `Default` has the default values.
    type Params: DeserializeOwned + Serialize + JsonSchema + Default + Send + Sync;

    /// State that is prepared once and passed to each sample.
    type Prepared: Send + 'static;

    /// Its metadata.
    fn info(&self) -> TestInfo;

    /// Programs it needs on its worker.
    fn requires(&self, _params: &Self::Params) -> Vec<Requirement> {
        Vec::new()
    }

    /// Default values that depend on the machine, by parameter; several values make an axis.
    fn resolve(&self, _given: &Params, _facts: &Facts) -> BTreeMap<String, Vec<ParamValue>> {
        BTreeMap::new()
    }

    /// Reason why a cell cannot be measured on this machine, if any.
    fn unsupported(&self, _params: &Self::Params, _placement: &Placement, _facts: &Facts) -> Option<String> {
        None
    }

    /// The sampling rule that its own parameters request, if any.
    fn rule(&self, _params: &Self::Params) -> Option<SamplingRule> {
        None
    }

    /// Estimated duration of one sample.
    fn estimate(&self, _params: &Self::Params, min_time: Nanos) -> Nanos {
        min_time
    }

    /// Whether its parameters determine the duration of a sample, so that `min-time` does not apply.
    fn sets_duration(&self, _params: &Self::Params) -> bool {
        false
    }

    /// Number of sides: one, or a client and its servers.
    fn sides(&self, _params: &Self::Params) -> Topology {
        Topology::Single
    }

    /// Its metrics; exactly one is primary.
    fn metrics(&self, params: &Self::Params) -> Vec<Metric>;

    /// Prepares what samples need.
    async fn prepare(&self, params: &Self::Params, context: &WorkerContext) -> Result<Self::Prepared, Failure>;

    /// Takes one sample and records its artefacts.
    async fn sample(
        &self,
        params: &Self::Params,
        prepared: &mut Self::Prepared,
        attempt: &mut Attempt,
    ) -> Result<(), Failure>;

    /// Removes what was prepared, and checks what can be checked only then.
    async fn cleanup(
        &self,
        _params: &Self::Params,
        _prepared: Self::Prepared,
        _context: &WorkerContext,
    ) -> Result<(), Failure> {
        Ok(())
    }

    /// Extracts the values from a sample's artefacts.
    fn study(&self, params: &Self::Params, artefacts: &Artefacts) -> Result<Measurement, Rejection>;

    /// Derives conclusions from the studied cells of one plan entry.
    fn solve(&self, _cells: &[StudiedCell<'_>]) -> Vec<Conclusion> {
        Vec::new()
    }
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
pub struct StudiedCell<'a> {
    /// Its case.
    pub case: &'a Case,
    /// Its effective parameters.
    pub params: &'a Params,
    /// The medians of its metrics.
    pub medians: BTreeMap<MetricKey, f64>,
    /// Its curves, medians over samples.
    pub curves: Vec<CellCurve>,
}

/// A curve of a studied cell: its title, and lines by name, each with points in ascending order of x.
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

/// Prepared state of any test.
pub type AnyPrepared = Box<dyn Any + Send>;

/// Any test, whatever the type of its parameters. Parameters are the effective ones of a cell: in canonical form, and
/// with those of the placement.
#[async_trait]
pub trait Test: Send + Sync {
    /// Its declaration.
    fn declaration(&self) -> Declaration;
    /// The text that defines it, unless the test comes with the program; a run records it.
    fn definition(&self) -> Option<&str> {
        None
    }
    /// Files on this machine that its definition refers to for a cell with these parameters; a run copies them.
    fn files(&self, _params: &Params) -> Vec<NamedFile> {
        Vec::new()
    }
    /// SHA-256 of what defines a cell beside its parameters, by name: `definition sha256` of the text, and
    /// `file PATH sha256` of each of its files as it is now. Empty for a test that comes with the program.
    fn source_hashes(&self, _params: &Params) -> BTreeMap<String, String> {
        BTreeMap::new()
    }
    /// Programs it needs on its worker.
    fn requires(&self, params: &Params) -> Vec<Requirement>;
    /// See [`TypedTest::resolve`].
    fn resolve(&self, given: &Params, facts: &Facts) -> BTreeMap<String, Vec<ParamValue>>;
    /// See [`TypedTest::unsupported`].
    fn unsupported(&self, params: &Params, facts: &Facts) -> Option<String>;
    /// See [`TypedTest::rule`].
    fn rule(&self, params: &Params) -> Option<SamplingRule>;
    /// See [`TypedTest::estimate`].
    fn estimate(&self, params: &Params, min_time: Nanos) -> Nanos;
    /// Extra time of the first sample, which calibrates the amount of work.
    fn calibration_time(&self, _params: &Params, _min_time: Nanos) -> Nanos {
        Nanos(0)
    }
    /// Whether the test can estimate the duration of a sample.
    fn is_estimated(&self, _params: &Params) -> bool {
        true
    }
    /// See [`TypedTest::sets_duration`].
    fn sets_duration(&self, _params: &Params) -> bool {
        false
    }
    /// Inputs that affect only the build of its programs, if it builds any.
    fn build_inputs(&self, _params: &Params) -> BuildInputs {
        BuildInputs::default()
    }
    /// See [`TypedTest::sides`].
    fn sides(&self, _params: &Params) -> Topology {
        Topology::Single
    }
    /// See [`TypedTest::metrics`].
    fn metrics(&self, params: &Params) -> Vec<Metric>;
    /// Builds its programs without further preparation; returns their SHA-256 by name. Empty if it builds none.
    ///
    /// # Errors
    /// If a command of the build fails, or does not create one of the programs.
    async fn build(&self, _params: &Params, _context: &WorkerContext) -> Result<BTreeMap<String, String>, Failure> {
        Ok(BTreeMap::new())
    }
    /// See [`TypedTest::prepare`].
    async fn prepare(&self, params: &Params, context: &WorkerContext) -> Result<AnyPrepared, Failure>;
    /// See [`TypedTest::sample`].
    async fn sample(&self, params: &Params, prepared: &mut AnyPrepared, attempt: &mut Attempt) -> Result<(), Failure>;
    /// See [`TypedTest::cleanup`].
    async fn cleanup(&self, params: &Params, prepared: AnyPrepared, context: &WorkerContext) -> Result<(), Failure>;
    /// See [`TypedTest::study`].
    fn study(&self, params: &Params, artefacts: &Artefacts) -> Result<Measurement, Rejection>;
    /// See [`TypedTest::solve`].
    fn solve(&self, cells: &[StudiedCell<'_>]) -> Vec<Conclusion>;
}

/// Prefix of parameters that are knobs of the machine, set while a sample is taken: `knobs.thp-enabled`.
pub use wb_plan::{KNOBS, SIDES, WORKERS};

/// The knobs that effective parameters request, by name.
pub fn requested_knobs(params: &Params) -> BTreeMap<String, String> {
    params.iter().filter_map(|(name, value)| Some((name.strip_prefix(KNOBS)?.to_owned(), value.to_string()))).collect()
}

/// The parameters that every test has: placement and surroundings of its processes.
pub fn shared_params() -> Vec<Param> {
    let help = |name: &str| match name {
        "cpus" => "CPUs that the measured processes may run on; empty: all",
        "memory-nodes" => "NUMA nodes that their memory must come from; empty: any",
        "huge-pages" => "transparent huge pages of the measured processes",
        _ => "address-space randomisation of the measured processes",
    };
    let defaults = serde_json::json!({ "cpus": [], "memory-nodes": [], "huge-pages": "inherit", "aslr": "inherit" });
    let mut params = Param::from_schema::<Placement>();
    for param in &mut params {
        param.help = help(&param.name).to_owned();
        param.default = serde_json::from_value(defaults[&param.name].clone()).ok();
    }
    let help = |name: &str| match name {
        "env" => "environment variables of the test's processes, each `NAME=VALUE`",
        _ => "a command line for sh, run before each attempt; it has to succeed",
    };
    // They have no default, so that cells that were defined without them keep their identity.
    params.extend(Param::from_schema::<AttemptSetup>().into_iter().map(|param| {
        let help = help(&param.name).to_owned();
        Param { default: None, help, ..param }
    }));
    params
}

/// The placement that effective parameters request.
pub fn requested_placement(params: &Params) -> Result<Placement, String> {
    decode_params(&select_params::<Placement>(params))
}

/// The surroundings that effective parameters request.
pub fn requested_surroundings(params: &Params) -> Result<AttemptSetup, String> {
    decode_params(&select_params::<AttemptSetup>(params))
}

/// Selects the parameters that a type declares.
fn select_params<T: JsonSchema>(params: &Params) -> Params {
    let names: Vec<String> = Param::from_schema::<T>().into_iter().map(|param| param.name).collect();
    params.iter().filter(|(name, _)| names.contains(name)).map(|(n, v)| (n.clone(), v.clone())).collect()
}

/// Reason why the placement that effective parameters request is not possible on a machine, if any.
pub(crate) fn unsupported_placement(params: &Params, facts: &Facts) -> Result<Option<String>, String> {
    let placement = requested_placement(params)?;
    if let Err(why) = requested_surroundings(params).and_then(|surroundings| surroundings.variables()) {
        return Ok(Some(why));
    }
    if let Some(cpu) = placement.cpus.iter().find(|cpu| facts.cpus.iter().all(|existing| existing.id != **cpu)) {
        return Ok(Some(format!("no such CPU on this worker: {cpu}")));
    }
    let is_unknown = |node: &&u32| facts.nodes.iter().all(|existing| existing.id != **node);
    Ok(placement.memory_nodes.iter().find(is_unknown).map(|node| format!("no such NUMA node on this worker: {node}")))
}

/// Decodes a test's own parameters, without those that every test has.
fn decode_own_params<P: DeserializeOwned>(params: &Params) -> Result<P, String> {
    let shared: Vec<String> = shared_params().into_iter().map(|param| param.name).collect();
    let is_of_plan = |name: &str| name.starts_with(KNOBS) || [WORKERS, SIDES].contains(&name);
    let is_own = |name: &String| !shared.contains(name) && !is_of_plan(name);
    let own: Params = params.iter().filter(|(name, _)| is_own(name)).map(|(n, v)| (n.clone(), v.clone())).collect();
    decode_params(&own)
}

/// Deserializes parameters into their type; the error names the parameter at fault.
fn decode_params<P: DeserializeOwned>(params: &Params) -> Result<P, String> {
    let decode = |params: &Params| -> Result<P, String> {
        let json = serde_json::to_value(params).map_err(|error| error.to_string())?;
        serde_json::from_value(json).map_err(|error| error.to_string())
    };
    decode(params).map_err(|why| {
        let is_wrong = |(name, value): &(&String, &ParamValue)| {
            decode(&Params::from([((*name).clone(), (*value).clone())])).is_err()
        };
        params.iter().find(is_wrong).map_or(why.clone(), |(name, _)| format!("`{name}`: {why}"))
    })
}

#[async_trait]
impl<T: TypedTest> Test for T {
    fn declaration(&self) -> Declaration {
        let TestInfo { name, summary, version, scope } = self.info();
        let mut params = Param::from_schema::<T::Params>();
        params.extend(shared_params());
        Declaration {
            // A unit test of the registry checks the names of built-in tests.
            name: TestName::new(name).unwrap_or_else(|_| unreachable!("`{name}` is a valid name")),
            summary: summary.to_owned(),
            version,
            params,
            scope,
            requires: TypedTest::requires(self, &T::Params::default()),
        }
    }

    fn requires(&self, params: &Params) -> Vec<Requirement> {
        decode_own_params(params).map(|params| TypedTest::requires(self, &params)).unwrap_or_default()
    }

    fn resolve(&self, given: &Params, facts: &Facts) -> BTreeMap<String, Vec<ParamValue>> {
        TypedTest::resolve(self, given, facts)
    }

    fn unsupported(&self, params: &Params, facts: &Facts) -> Option<String> {
        let reason = || {
            if let Some(why) = unsupported_placement(params, facts)? {
                return Ok(Some(why));
            }
            Ok(TypedTest::unsupported(self, &decode_own_params(params)?, &requested_placement(params)?, facts))
        };
        reason().unwrap_or_else(Some)
    }

    fn rule(&self, params: &Params) -> Option<SamplingRule> {
        decode_own_params(params).ok().and_then(|params| TypedTest::rule(self, &params))
    }

    fn estimate(&self, params: &Params, min_time: Nanos) -> Nanos {
        decode_own_params(params).map_or(min_time, |params| TypedTest::estimate(self, &params, min_time))
    }

    fn sets_duration(&self, params: &Params) -> bool {
        decode_own_params(params).is_ok_and(|params| TypedTest::sets_duration(self, &params))
    }

    fn sides(&self, params: &Params) -> Topology {
        decode_own_params(params).map_or(Topology::Single, |params| TypedTest::sides(self, &params))
    }

    fn metrics(&self, params: &Params) -> Vec<Metric> {
        decode_own_params(params).map(|params| TypedTest::metrics(self, &params)).unwrap_or_default()
    }

    async fn prepare(&self, params: &Params, context: &WorkerContext) -> Result<AnyPrepared, Failure> {
        let params = decode_own_params(params).map_err(Failure::refused)?;
        Ok(Box::new(TypedTest::prepare(self, &params, context).await?))
    }

    async fn sample(&self, params: &Params, prepared: &mut AnyPrepared, attempt: &mut Attempt) -> Result<(), Failure> {
        let params = decode_own_params(params).map_err(Failure::refused)?;
        let prepared =
            prepared.downcast_mut().ok_or_else(|| Failure::refused("prepared state belongs to another test"))?;
        TypedTest::sample(self, &params, prepared, attempt).await
    }

    async fn cleanup(&self, params: &Params, prepared: AnyPrepared, context: &WorkerContext) -> Result<(), Failure> {
        let params = decode_own_params(params).map_err(Failure::refused)?;
        let prepared = prepared.downcast().map_err(|_| Failure::refused("prepared state belongs to another test"))?;
        TypedTest::cleanup(self, &params, *prepared, context).await
    }

    fn study(&self, params: &Params, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
        let params = decode_own_params(params).map_err(Rejection::output)?;
        TypedTest::study(self, &params, artefacts)
    }

    fn solve(&self, cells: &[StudiedCell<'_>]) -> Vec<Conclusion> {
        TypedTest::solve(self, cells)
    }
}
