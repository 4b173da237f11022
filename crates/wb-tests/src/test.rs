//! What a test is: typed for those who write one in Rust, by name and values for those who run it.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wb_model::{
    AttemptSetup, Case, Declaration, Facts, Metric, Nanos, Param, ParamValue, Params, Placement, Requirement, Scope,
    TestName, Topology,
};
use wb_stats::SamplingRule;

use crate::{Artefacts, Attempt, Conclusion, Failure, Measurement, Rejection, WorkerContext};

/// A file on this machine that the definition of a test names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedFile {
    /// Its path, as the definition has it.
    pub path: String,
    /// Where it lies.
    pub location: PathBuf,
}

/// What a test written in Rust says of itself beside its parameters.
#[derive(Debug, Clone)]
pub struct TestInfo {
    /// Its name.
    pub name: &'static str,
    /// What it measures, in a line.
    pub summary: &'static str,
    /// Raised when it starts to measure differently.
    pub version: u32,
    /// How long what it prepares stays alive.
    pub scope: Scope,
}

/// A test written in Rust.
#[async_trait]
pub trait TypedTest: Send + Sync + 'static {
    /// Its parameters; their JSON Schema is their declaration, their `Default` the defaults.
    type Params: DeserializeOwned + Serialize + JsonSchema + Default + Send + Sync;

    /// What it prepares and keeps.
    type Prepared: Send + 'static;

    /// What it says of itself.
    fn info(&self) -> TestInfo;

    /// Programs it needs on its worker.
    fn requires(&self, _params: &Self::Params) -> Vec<Requirement> {
        Vec::new()
    }

    /// Values, by parameter, that follow from the machine where none was given; several make an axis.
    fn resolve(&self, _given: &Params, _facts: &Facts) -> BTreeMap<String, Vec<ParamValue>> {
        BTreeMap::new()
    }

    /// Reason why a cell cannot be measured on this machine, if any.
    fn unsupported(&self, _params: &Self::Params, _placement: &Placement, _facts: &Facts) -> Option<String> {
        None
    }

    /// The sampling rule that its own parameters ask for.
    fn rule(&self, _params: &Self::Params) -> Option<SamplingRule> {
        None
    }

    /// How long one sample takes, about.
    fn estimate(&self, _params: &Self::Params, min_time: Nanos) -> Nanos {
        min_time
    }

    /// Whether its parameters say how long a sample takes, so that `min-time` does not apply.
    fn sets_duration(&self, _params: &Self::Params) -> bool {
        false
    }

    /// How many sides it has.
    fn sides(&self, _params: &Self::Params) -> Topology {
        Topology::Single
    }

    /// What it measures; exactly one metric is primary.
    fn metrics(&self, params: &Self::Params) -> Vec<Metric>;

    /// Makes ready what samples need.
    async fn prepare(&self, params: &Self::Params, site: &WorkerContext) -> Result<Self::Prepared, Failure>;

    /// Takes one sample and keeps what it leaves as artefacts.
    async fn sample(
        &self,
        params: &Self::Params,
        prepared: &mut Self::Prepared,
        attempt: &mut Attempt,
    ) -> Result<(), Failure>;

    /// Takes down what was prepared, and checks on the way what only then can be checked.
    async fn cleanup(
        &self,
        _params: &Self::Params,
        _prepared: Self::Prepared,
        _site: &WorkerContext,
    ) -> Result<(), Failure> {
        Ok(())
    }

    /// Reads the values out of a sample's artefacts.
    fn study(&self, params: &Self::Params, artefacts: &Artefacts) -> Result<Measurement, Rejection>;

    /// Concludes from the studied cells of one plan entry.
    fn solve(&self, _cells: &[StudiedCell<'_>]) -> Vec<Conclusion> {
        Vec::new()
    }
}

/// What the building of a test's programs depends on, and nothing else of the test: two cells that differ in it alone
/// measure the same where what was built is the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BuildInputs {
    /// Parameters, by name.
    pub params: BTreeSet<String>,
    /// Programs on the worker, such as compilers.
    pub programs: BTreeSet<String>,
}

/// A studied cell, as far as conclusions need it.
#[derive(Debug, Clone)]
pub struct StudiedCell<'a> {
    /// Its case.
    pub case: &'a Case,
    /// Its effective parameters.
    pub params: &'a Params,
    /// The medians of its metrics, by `CLASS/METRIC`.
    pub medians: BTreeMap<String, f64>,
    /// Its curves, medians over samples.
    pub curves: Vec<CellCurve>,
}

/// A curve of a studied cell: lines by name, each with points of x ascending.
pub type CellCurve = (String, Vec<(String, Vec<CurvePoint>)>);

/// A point of a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurvePoint {
    /// Along.
    pub x: f64,
    /// The median of the samples.
    pub y: f64,
    /// Between which values the middle 80 % of the samples lie; none of a single sample.
    pub spread: Option<(f64, f64)>,
}

/// What a test prepared, whatever it is.
pub type AnyPrepared = Box<dyn Any + Send>;

/// Any test. Parameters are the effective ones of a cell: in canonical form, and with those of the placement.
#[async_trait]
pub trait Test: Send + Sync {
    /// What it says of itself.
    fn declaration(&self) -> Declaration;
    /// The text that defines it, where that does not come with the program: a run keeps it.
    fn definition(&self) -> Option<&str> {
        None
    }
    /// The files on this machine that its definition names, for a cell with these parameters: a run copies them.
    fn files(&self, _params: &Params) -> Vec<NamedFile> {
        Vec::new()
    }
    /// The SHA-256 of what defines a cell with these parameters beside them, by name: `definition sha256` of its text, and
    /// `file PATH sha256` of each of its files as it is at this moment. Empty where all of that comes with the program.
    fn source_hashes(&self, _params: &Params) -> BTreeMap<String, String> {
        BTreeMap::new()
    }
    /// Programs it needs on its worker.
    fn requires(&self, params: &Params) -> Vec<Requirement>;
    /// See [`Measure::resolve`].
    fn resolve(&self, given: &Params, facts: &Facts) -> BTreeMap<String, Vec<ParamValue>>;
    /// See [`Measure::unsupported`].
    fn unsupported(&self, params: &Params, facts: &Facts) -> Option<String>;
    /// See [`Measure::rule`].
    fn rule(&self, params: &Params) -> Option<SamplingRule>;
    /// See [`Measure::estimate`].
    fn estimate(&self, params: &Params, min_time: Nanos) -> Nanos;
    /// Extra time of the first sample, which calibrates the amount of work.
    fn calibration_time(&self, _params: &Params, _min_time: Nanos) -> Nanos {
        Nanos(0)
    }
    /// Whether the estimate is of this test; otherwise nothing says how long a sample takes.
    fn is_estimated(&self, _params: &Params) -> bool {
        true
    }
    /// See [`Measure::sets_duration`].
    fn sets_duration(&self, _params: &Params) -> bool {
        false
    }
    /// What only the building of its programs depends on, where it builds any.
    fn build_inputs(&self, _params: &Params) -> BuildInputs {
        BuildInputs::default()
    }
    /// See [`Measure::sides`].
    fn sides(&self, _params: &Params) -> Topology {
        Topology::Single
    }
    /// See [`Measure::metrics`].
    fn metrics(&self, params: &Params) -> Vec<Metric>;
    /// Builds its programs, and nothing else of what it prepares: their SHA-256, by name. Empty where it builds none.
    ///
    /// # Errors
    /// When a command of the build fails, or does not make one of the programs.
    async fn build(&self, _params: &Params, _site: &WorkerContext) -> Result<BTreeMap<String, String>, Failure> {
        Ok(BTreeMap::new())
    }
    /// See [`Measure::prepare`].
    async fn prepare(&self, params: &Params, site: &WorkerContext) -> Result<AnyPrepared, Failure>;
    /// See [`Measure::sample`].
    async fn sample(&self, params: &Params, prepared: &mut AnyPrepared, attempt: &mut Attempt) -> Result<(), Failure>;
    /// See [`Measure::cleanup`].
    async fn cleanup(&self, params: &Params, prepared: AnyPrepared, site: &WorkerContext) -> Result<(), Failure>;
    /// See [`Measure::study`].
    fn study(&self, params: &Params, artefacts: &Artefacts) -> Result<Measurement, Rejection>;
    /// See [`Measure::solve`].
    fn solve(&self, cells: &[StudiedCell<'_>]) -> Vec<Conclusion>;
}

/// With this begin the parameters that are knobs of the machine, set while a sample is taken: `knobs.thp-enabled`.
pub use wb_plan::{KNOBS, SIDES, WORKERS};

/// The knobs that effective parameters ask for, by name.
pub fn requested_knobs(params: &Params) -> BTreeMap<String, String> {
    params.iter().filter_map(|(name, value)| Some((name.strip_prefix(KNOBS)?.to_owned(), value.to_string()))).collect()
}

/// The parameters that every test has: where and how its processes run, and what they find around them.
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
    // None has them unless they are given, so that they make no difference to what was defined without.
    params.extend(Param::from_schema::<AttemptSetup>().into_iter().map(|param| {
        let help = help(&param.name).to_owned();
        Param { default: None, help, ..param }
    }));
    params
}

/// The placement that effective parameters ask for.
pub fn requested_placement(params: &Params) -> Result<Placement, String> {
    decode_params(&select_params::<Placement>(params))
}

/// The surroundings that effective parameters ask for.
pub fn requested_surroundings(params: &Params) -> Result<AttemptSetup, String> {
    decode_params(&select_params::<AttemptSetup>(params))
}

/// Those of the parameters that a type has.
fn select_params<T: JsonSchema>(params: &Params) -> Params {
    let names: Vec<String> = Param::from_schema::<T>().into_iter().map(|param| param.name).collect();
    params.iter().filter(|(name, _)| names.contains(name)).map(|(n, v)| (n.clone(), v.clone())).collect()
}

/// Why processes cannot be placed as effective parameters ask for on such a machine.
pub(crate) fn unsupported_placement(params: &Params, facts: &Facts) -> Result<Option<String>, String> {
    let placement = requested_placement(params)?;
    if let Err(why) = requested_surroundings(params).and_then(|surroundings| surroundings.variables()) {
        return Ok(Some(why));
    }
    if let Some(cpu) = placement.cpus.iter().find(|cpu| facts.cpus.iter().all(|known| known.id != **cpu)) {
        return Ok(Some(format!("there is no CPU {cpu} here")));
    }
    let is_unknown = |node: &&u32| facts.nodes.iter().all(|known| known.id != **node);
    Ok(placement.memory_nodes.iter().find(is_unknown).map(|node| format!("there is no NUMA node {node} here")))
}

/// A test's own parameters, without those that every test has, as its type.
fn decode_own_params<P: DeserializeOwned>(params: &Params) -> Result<P, String> {
    let shared: Vec<String> = shared_params().into_iter().map(|param| param.name).collect();
    let of_plan = |name: &str| name.starts_with(KNOBS) || [WORKERS, SIDES].contains(&name);
    let is_own = |name: &String| !shared.contains(name) && !of_plan(name);
    let chosen: Params = params.iter().filter(|(name, _)| is_own(name)).map(|(n, v)| (n.clone(), v.clone())).collect();
    decode_params(&chosen)
}

/// Deserializes parameters into their type; the error names the parameter at fault.
fn decode_params<P: DeserializeOwned>(params: &Params) -> Result<P, String> {
    let read = |params: &Params| -> Result<P, String> {
        let json = serde_json::to_value(params).map_err(|error| error.to_string())?;
        serde_json::from_value(json).map_err(|error| error.to_string())
    };
    read(params).map_err(|why| {
        let is_wrong = |(name, value): &(&String, &ParamValue)| {
            read(&Params::from([((*name).clone(), (*value).clone())])).is_err()
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
            // The names of built-in tests are checked by a test of the registry.
            name: TestName::new(name).unwrap_or_else(|_| unreachable!("`{name}` is a name")),
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

    async fn prepare(&self, params: &Params, site: &WorkerContext) -> Result<AnyPrepared, Failure> {
        let params = decode_own_params(params).map_err(Failure::refused)?;
        Ok(Box::new(TypedTest::prepare(self, &params, site).await?))
    }

    async fn sample(&self, params: &Params, prepared: &mut AnyPrepared, attempt: &mut Attempt) -> Result<(), Failure> {
        let params = decode_own_params(params).map_err(Failure::refused)?;
        let prepared = prepared.downcast_mut().ok_or_else(|| Failure::refused("prepared by another test"))?;
        TypedTest::sample(self, &params, prepared, attempt).await
    }

    async fn cleanup(&self, params: &Params, prepared: AnyPrepared, site: &WorkerContext) -> Result<(), Failure> {
        let params = decode_own_params(params).map_err(Failure::refused)?;
        let prepared = prepared.downcast().map_err(|_| Failure::refused("prepared by another test"))?;
        TypedTest::cleanup(self, &params, *prepared, site).await
    }

    fn study(&self, params: &Params, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
        let params = decode_own_params(params).map_err(Rejection::output)?;
        TypedTest::study(self, &params, artefacts)
    }

    fn solve(&self, cells: &[StudiedCell<'_>]) -> Vec<Conclusion> {
        TypedTest::solve(self, cells)
    }
}
