//! Resolves flags to a request: tests, sampling and selection, from which plans are made.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use wb_diagnostics::DiagnosticCollector;
use wb_model::secrets::{mask_argument, mask_arguments};
use wb_model::{Aslr, HugePages, ParamValue};
use wb_plan::request::{SpannedValue, ValueForm};
use wb_plan::{Catalog, Request, Sampling, Selection, SpannedParam, builtin, file, spec};
use wb_session::definitions::registry_for;
use wb_session::hosts::requested_profiles;
use wb_session::{EventSink, MeasureRequest};
use wb_test::Registry;

use crate::cli::variants::SingleTestFlags;
use crate::cli::{AttemptFlags, CellFlags, MeasurementFlags, PlacementFlags, SamplingFlags};
use crate::error::Error;

pub(crate) fn resolve_request(what: &MeasurementFlags, events: &EventSink) -> Result<MeasureRequest, Error> {
    if what.plan.is_none() && what.tests.is_empty() {
        return Err(Error::Usage {
            what: "missing test or plan".to_owned(),
            help: "name a test (`weighbridge list` shows all) or a plan: `--plan quick`".to_owned(),
        });
    }
    let plan = what.plan.as_deref().map(read_plan).transpose()?.unwrap_or_default();
    let mut names: Vec<String> = plan.name.clone().into_iter().collect();
    let mut requests = Vec::new();
    let mut mistakes = DiagnosticCollector::default();
    for test in &what.tests {
        requests.extend(mistakes.ok(spec::parse(test)));
        names.push(test.clone());
    }
    if let Err(all) = mistakes.finish() {
        let names: Vec<&str> = what.tests.iter().filter_map(|test| test.split(':').next()).collect();
        // If the definitions cannot be read, it is unknown which words are tests, and only the mistakes are reported.
        if let Ok(registry) = registry_for(&names, &what.tests_d, plan.tests_d.as_deref(), events) {
            refuse_list_words(&names, &registry)?;
        }
        return Err(all.into());
    }
    build_request(mask_arguments(names).join(" "), plan, requests, &what.cells, &what.tests_d, events)
}

/// The request of a matrix of implementations. Only the sampling settings of the plan apply.
pub(crate) fn resolve_matrix(
    request: Request,
    plan: Option<&str>,
    flags: &CellFlags,
    events: &EventSink,
) -> Result<MeasureRequest, Error> {
    let sampling = plan.map(read_plan).transpose()?.unwrap_or_default().sampling;
    let name = mask_argument(&request.source.text);
    build_request(name, LoadedPlan { sampling, ..LoadedPlan::default() }, vec![request], flags, &[], events)
}

fn build_request(
    name: String,
    plan: LoadedPlan,
    tests: Vec<Request>,
    flags: &CellFlags,
    tests_d: &[PathBuf],
    events: &EventSink,
) -> Result<MeasureRequest, Error> {
    let mut requests = plan.requests;
    requests.extend(tests);
    let mut sampling = plan.sampling;
    apply_sampling(&flags.sampling, &mut sampling)?;
    for request in &mut requests {
        apply_placement(&flags.placement, request);
        request.tools.extend(flags.sampling.attempt.tools.iter().cloned());
    }
    let tests: Vec<&str> = requests.iter().map(|request| request.test.as_str()).collect();
    // An error in the profiles themselves is reported when they are applied.
    let profiles = requested_profiles(&flags.hosts).unwrap_or_default();
    let of_profiles = profiles.iter().flat_map(|named| named.profile.tests.iter().flatten());
    let of_profiles = of_profiles.filter_map(|test| test.split(':').next()).filter(|test| *test != "$@");
    let requested: Vec<&str> = tests.iter().copied().chain(of_profiles).collect();
    let registry = registry_for(&requested, tests_d, plan.tests_d.as_deref(), events)?;
    if let Some(test) = tests.iter().find(|test| is_plan(test, &registry)) {
        return Err(Error::Usage {
            what: format!("expected a test, but `{test}` is a plan"),
            help: format!("write `--plan {test}`"),
        });
    }
    refuse_list_words(&tests, &registry)?;
    requests.iter_mut().for_each(|request| prefer_sample_flags(&flags.sampling, request, &registry));
    Ok(MeasureRequest {
        name,
        text: plan.text,
        publish: plan.publish,
        requests,
        sampling,
        selection: Selection::new(&flags.selection.select, &flags.selection.ignore)?,
        registry,
    })
}

/// Makes sampling flags override a test's own stopping rule, such as fio's, unless the test sets the rule explicitly.
fn prefer_sample_flags(flags: &SamplingFlags, request: &mut Request, registry: &Registry) {
    const TEST_RULE_PARAMS: [&str; 3] = ["samples", "max-stddev", "max-failures"];
    let has_flags = flags.samples.or(flags.min_samples).or(flags.max_samples).is_some() || flags.precision.is_some();
    let has_rule = registry.declaration(&request.test).is_some_and(|test| test.param(TEST_RULE_PARAMS[0]).is_some());
    let sets_rule = request.params.iter().any(|given| TEST_RULE_PARAMS.contains(&given.name.as_str()));
    if has_flags && has_rule && !sets_rule {
        let value = SpannedValue::one(ParamValue::Integer(0), 0..0);
        request.params.push(SpannedParam { name: TEST_RULE_PARAMS[0].to_owned(), name_span: 0..0, value });
    }
}

/// Refuses arguments that are parsed as tests but were probably meant for the list of the flag before them.
fn refuse_list_words(tests: &[&str], registry: &Registry) -> Result<(), Error> {
    let unknown = tests.iter().find(|test| registry.declaration(test).is_none());
    let Some((test, (flag, value, word))) =
        unknown.and_then(|test| Some((test, word_after_list(std::env::args_os(), test)?)))
    else {
        return Ok(());
    };
    Err(Error::Usage {
        what: format!("unknown test `{test}`: the word after `{flag} {value}` is read as a test"),
        help: format!("separate the values of {flag} with commas, or repeat the flag: `{flag} {value},{word}`"),
    })
}

/// Finds a test name right after the value of a flag that takes a list. Returns the flag, its value and the word.
fn word_after_list(words: impl Iterator<Item = OsString>, test: &str) -> Option<(String, String, String)> {
    const LISTS: [&str; 2] = ["--hosts", "--profiles"];
    // Such a word is valid, or the parser would have refused it.
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let names_test = |word: &str| word.split(':').next() == Some(test);
    // Several words may follow the flag; those before this one were meant for the list as well.
    let (index, word) = words.iter().enumerate().skip(2).find(|(_, word)| names_test(word))?;
    let flag = words[..index].iter().rposition(|word| word.starts_with('-'))?;
    let value = words[flag + 1..index].join(",");
    let is_list = LISTS.contains(&words[flag].as_str()) && !value.is_empty();
    is_list.then(|| (words[flag].clone(), value, word.clone()))
}

fn is_plan(test: &str, registry: &Registry) -> bool {
    let is_file = test.ends_with(".toml") && Path::new(test).is_file();
    registry.declaration(test).is_none() && (is_file || builtin::text(test).is_some())
}

/// A loaded plan; empty if none is requested.
#[derive(Default)]
struct LoadedPlan {
    name: Option<String>,
    text: Option<String>,
    publish: Option<String>,
    requests: Vec<Request>,
    sampling: Sampling,
    /// The folder with test definitions beside the plan.
    tests_d: Option<PathBuf>,
}

fn read_plan(plan: &str) -> Result<LoadedPlan, Error> {
    let path = Path::new(plan);
    let is_file = path.is_file() || plan.contains('/') || plan.ends_with(".toml");
    let (text, tests_d) = if is_file {
        let bytes = std::fs::read(path).map_err(Error::file("read", path))?;
        (file::decode_utf8(plan, bytes)?, path.parent().map(|folder| Path::new(".").join(folder).join("tests.d")))
    } else {
        let text = builtin::text(plan).ok_or_else(|| Error::Usage {
            what: format!("unknown plan `{plan}`"),
            help: format!("expected a TOML file or one of {}", builtin::names().collect::<Vec<_>>().join(", ")),
        })?;
        (text.to_owned(), None)
    };
    let file::PlanFile { name, sampling, requests, publish, .. } = file::parse(plan, &text)?;
    Ok(LoadedPlan { name: Some(name), text: Some(text), publish, requests, sampling, tests_d })
}

fn apply_sampling(flags: &SamplingFlags, sampling: &mut Sampling) -> Result<(), Error> {
    let exactly = flags.samples;
    sampling.min_samples = exactly.or(flags.min_samples).unwrap_or(sampling.min_samples);
    sampling.max_samples = exactly.or(flags.max_samples).unwrap_or(sampling.max_samples);
    if flags.min_samples.is_some() && flags.max_samples.is_none() {
        sampling.max_samples = sampling.max_samples.max(sampling.min_samples);
    }
    if flags.max_samples.is_some() && flags.min_samples.is_none() {
        sampling.min_samples = sampling.min_samples.min(sampling.max_samples);
    }
    sampling.precision = flags.precision.unwrap_or(sampling.precision);
    sampling.budget = flags.budget.or(sampling.budget);
    sampling.retakes = flags.retakes.or(exactly.map(|_| 0)).unwrap_or(sampling.retakes);
    sampling.order = flags.order.unwrap_or(sampling.order);
    apply_attempts(&flags.attempt, sampling)
}

fn apply_attempts(flags: &AttemptFlags, sampling: &mut Sampling) -> Result<(), Error> {
    sampling.min_time = flags.min_time.unwrap_or(sampling.min_time);
    sampling.warm_up = flags.warm_up.unwrap_or(sampling.warm_up);
    sampling.limit = flags.limit.or(sampling.limit);
    sampling.attempts = flags.attempts.unwrap_or(sampling.attempts);
    sampling.seed = flags.seed.or(sampling.seed);
    match sampling.validate() {
        None => Ok(()),
        Some(fault) => {
            Err(Error::Usage { what: fault.message, help: "`weighbridge run --help` describes each option".to_owned() })
        }
    }
}

/// Resolves the flags of a command that measures a single test, without retakes of disturbed samples.
pub(crate) fn resolve_single_test(flags: &SingleTestFlags, events: &EventSink) -> Result<MeasureRequest, Error> {
    let mut request = spec::parse(&flags.test)?;
    let mut sampling = Sampling { retakes: 0, ..Sampling::default() };
    apply_attempts(&flags.attempt, &mut sampling)?;
    apply_placement(&flags.placement, &mut request);
    request.tools.extend(flags.attempt.tools.iter().cloned());
    let registry = registry_for(&[&request.test], &flags.tests_d, None, events)?;
    Ok(MeasureRequest {
        name: mask_argument(&flags.test),
        text: None,
        publish: None,
        requests: vec![request],
        sampling,
        selection: Selection::default(),
        registry,
    })
}

/// Applies placement flags to a test that does not set them itself.
fn apply_placement(flags: &PlacementFlags, request: &mut Request) {
    request.programs.extend(flags.program.iter().cloned());
    let numbers = |numbers: &[u32]| {
        let all = numbers.iter().map(|number| SpannedValue::one(ParamValue::Integer(i64::from(*number)), 0..0));
        SpannedValue { form: ValueForm::List(all.collect()), span: 0..0 }
    };
    let word = |word: &str| SpannedValue::one(ParamValue::Text(word.to_owned()), 0..0);
    let huge_pages = flags.huge_pages.map(|policy| match policy {
        HugePages::Inherit => word("inherit"),
        HugePages::Always => word("always"),
        HugePages::Try => word("try"),
        HugePages::Never => word("never"),
    });
    let aslr = if flags.no_aslr { Some(Aslr::Off) } else { None };
    let requested = [
        ("cpus", flags.cpus.as_ref().map(|cpus| numbers(&cpus.0))),
        ("memory-nodes", flags.memory_nodes.as_ref().map(|nodes| numbers(&nodes.0))),
        ("huge-pages", huge_pages),
        ("aslr", aslr.map(|_| word("off"))),
    ];
    for (name, value) in requested {
        let Some(value) = value.filter(|_| request.params.iter().all(|given| given.name != name)) else { continue };
        request.params.push(SpannedParam { name: name.to_owned(), name_span: 0..0, value });
    }
}
