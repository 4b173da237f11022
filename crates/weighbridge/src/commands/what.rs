//! From flags to a plan: which tests there are, what was asked for, and on what machine.

use std::path::{Path, PathBuf};

use wb_agent::Worker;
use wb_model::{Aslr, Facts, HugePages, ProfileName, Value};
use wb_plan::request::{Form, Written};
use wb_plan::{Given, Plan, Request, Sampling, Selection, builtin, file, spec};
use wb_tests::Registry;

use crate::cli::{PlacementFlags, SamplingFlags, What};
use crate::error::Error;

/// What was asked for.
pub(crate) struct Asked {
    /// The plan's name, or the tests as they were typed.
    pub(crate) name: String,
    /// The plan's text, where it came from a file.
    pub(crate) text: Option<String>,
    /// The tests.
    pub(crate) requests: Vec<Request>,
    /// How samples are taken.
    pub(crate) sampling: Sampling,
    /// Which cells are meant.
    pub(crate) selection: Selection,
    /// The tests there are.
    pub(crate) registry: Registry,
}

/// Reads what was asked for.
pub(crate) fn asked(what: &What) -> Result<Asked, Error> {
    let mut requests = Vec::new();
    let mut sampling = Sampling::default();
    let mut names = Vec::new();
    let mut text = None;
    let mut beside_plan = None;
    if let Some(plan) = &what.plan {
        let (plan, written) = read_plan(plan)?;
        beside_plan = plan.1;
        names.push(plan.0.name.clone());
        requests.extend(plan.0.requests);
        sampling = plan.0.sampling;
        text = written;
    }
    for test in &what.tests {
        requests.push(spec::parse(test)?);
        names.push(test.clone());
    }
    apply_sampling(&what.sampling, &mut sampling)?;
    for request in &mut requests {
        apply_placement(&what.placement, request);
        request.tools.extend(what.tools.iter().cloned());
    }
    Ok(Asked {
        name: names.join(" "),
        text,
        requests,
        sampling,
        selection: Selection::new(&what.select, &what.ignore)?,
        registry: registry(&what.tests_d, beside_plan.as_deref())?,
    })
}

type ReadPlan = (file::PlanFile, Option<PathBuf>);

/// A plan by its file or its name, and its text.
fn read_plan(plan: &str) -> Result<(ReadPlan, Option<String>), Error> {
    let path = Path::new(plan);
    let is_file = path.is_file() || plan.contains('/') || plan.ends_with(".toml");
    if !is_file {
        let unknown = || Error::Usage {
            what: format!("there is no plan `{plan}`"),
            help: format!("name a TOML file, or one of {}", builtin::names().collect::<Vec<_>>().join(", ")),
        };
        let found = builtin::plan(plan).ok_or_else(unknown)??;
        return Ok(((found, None), builtin::text(plan).map(str::to_owned)));
    }
    let text = std::fs::read_to_string(path).map_err(|source| Error::File { path: plan.to_owned(), source })?;
    let beside = path.parent().map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    Ok(((file::parse(plan, &text)?, beside.map(|folder| folder.join("tests.d"))), Some(text)))
}

/// The tests there are: built in, shipped, the user's, and those beside the plan.
pub(crate) fn registry(tests_d: &[PathBuf], beside_plan: Option<&Path>) -> Result<Registry, Error> {
    let own = std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config")))
        .map(|config| config.join("weighbridge/tests.d"));
    let optional = own.into_iter().chain(beside_plan.map(Path::to_owned)).filter(|folder| folder.is_dir());
    let mut registry = Registry::built_in();
    for folder in optional.chain(tests_d.iter().cloned()) {
        registry.add_folder(&folder).map_err(|error| Error::Usage {
            what: error.to_string(),
            help: "mend or remove the file; docs/tests.md says what it may hold".to_owned(),
        })?;
    }
    Ok(registry)
}

fn apply_sampling(flags: &SamplingFlags, sampling: &mut Sampling) -> Result<(), Error> {
    let exactly = flags.samples;
    sampling.min_time = flags.min_time.unwrap_or(sampling.min_time);
    sampling.min_samples = exactly.or(flags.min_samples).unwrap_or(sampling.min_samples);
    sampling.max_samples = exactly.or(flags.max_samples).unwrap_or(sampling.max_samples);
    if flags.min_samples.is_some() && flags.max_samples.is_none() {
        sampling.max_samples = sampling.max_samples.max(sampling.min_samples);
    }
    if flags.max_samples.is_some() && flags.min_samples.is_none() {
        sampling.min_samples = sampling.min_samples.min(sampling.max_samples);
    }
    sampling.precision = flags.precision.unwrap_or(sampling.precision);
    sampling.warm_up = flags.warm_up.unwrap_or(sampling.warm_up);
    sampling.budget = flags.budget.unwrap_or(sampling.budget);
    sampling.limit = flags.limit.or(sampling.limit);
    sampling.attempts = flags.attempts.unwrap_or(sampling.attempts);
    sampling.retakes = flags.retakes.unwrap_or(sampling.retakes);
    sampling.order = flags.order.unwrap_or(sampling.order);
    sampling.seed = flags.seed.or(sampling.seed);
    match sampling.fault() {
        None => Ok(()),
        Some(fault) => {
            Err(Error::Usage { what: fault.what, help: "`weighbridge run --help` explains the limits".to_owned() })
        }
    }
}

/// The placement that flags ask for, for a test that says nothing of it itself.
fn apply_placement(flags: &PlacementFlags, request: &mut Request) {
    let numbers = |numbers: &[u32]| {
        let all = numbers.iter().map(|number| Written::one(Value::Integer(i64::from(*number)), 0..0));
        Written { form: Form::Many(all.collect()), at: 0..0 }
    };
    let word = |word: &str| Written::one(Value::Text(word.to_owned()), 0..0);
    let huge_pages = flags.huge_pages.map(|policy| match policy {
        HugePages::Inherit => word("inherit"),
        HugePages::Always => word("always"),
        HugePages::Never => word("never"),
    });
    let aslr = if flags.no_aslr { Some(Aslr::Off) } else { None };
    let asked = [
        ("cpus", flags.cpus.as_ref().map(|cpus| numbers(&cpus.0))),
        ("memory-nodes", flags.memory_nodes.as_ref().map(|nodes| numbers(&nodes.0))),
        ("huge-pages", huge_pages),
        ("aslr", aslr.map(|_| word("off"))),
    ];
    for (name, value) in asked {
        let Some(value) = value.filter(|_| request.given.iter().all(|given| given.name != name)) else { continue };
        request.given.push(Given { name: name.to_owned(), name_at: 0..0, value });
    }
}

impl Asked {
    /// The cells that follow on such a machine.
    pub(crate) fn plan(&self, facts: Option<&Facts>) -> Result<Plan, Error> {
        let profile = ProfileName::localhost();
        let plan = wb_plan::expand(&self.requests, &self.sampling, &self.registry, facts, &profile, &self.selection)?;
        if plan.cells.is_empty() {
            return Err(self.nothing(&plan));
        }
        Ok(plan)
    }

    fn nothing(&self, plan: &Plan) -> Error {
        let globs = self.selection.selecting().iter().map(|glob| format!("`{glob}`")).collect::<Vec<_>>().join(", ");
        let what = match (globs.as_str(), plan.left_out.len()) {
            (_, 0) => "the plan has no test".to_owned(),
            ("", _) => "every cell is ignored".to_owned(),
            (globs, _) => format!("no cell matches {globs}"),
        };
        let without =
            format!("`weighbridge plan {}` without --select and --ignore lists all {}", self.name, plan.left_out.len());
        Error::Nothing { what, help: without }
    }
}

/// This machine as a worker.
pub(crate) async fn local() -> Result<(Worker, Facts), Error> {
    let worker = Worker::local(&super::this_program()?).await?;
    let facts = worker.facts().await?;
    Ok((worker, facts))
}
