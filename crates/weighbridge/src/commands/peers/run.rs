//! `weighbridge peers run`: measures the cells of a matrix.

use std::collections::BTreeMap;

use wb_diagnostics::SourceText;
use wb_model::{Bytes, MATRIX_FILE, ParamValue};
use wb_peers_worker::NAME;
use wb_plan::request::{SpannedValue, ValueForm};
use wb_plan::{Request, RequestCriteria, SpannedParam};
use wb_record::RunFolder;
use wb_session::{SessionError, describe_empty_selection};

use super::inputs::record_inputs;
use super::nothing_selected;
use crate::cli::RUN_PREFIX;
use crate::cli::peers::{MatrixFlags, PeersRunArgs, WorkloadFlags};
use crate::commands::run::{MeasureOutput, measure};
use crate::commands::selection::resolve_matrix;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

/// Uploads and downloads of libp2p's suites.
const SUITE_ITERATIONS: u32 = 10;
/// Size of their uploads and downloads.
const SUITE_BYTES: Bytes = Bytes(1 << 30);
/// Their round trips.
const SUITE_LATENCY_ITERATIONS: u32 = 100;

pub(super) fn run(args: &PeersRunArgs, console: &Console) -> Result<Exit, Error> {
    let events = console.events();
    let request = resolve_matrix(matrix_request(args), args.plan.as_deref(), &args.cells, &events)?;
    let session = args.run_folder.session_options(RUN_PREFIX, &args.cells.hosts, &args.preparation);
    let recorder = |run: &RunFolder| record_inputs(run, &args.file);
    let output = MeasureOutput { json: args.json, ..MeasureOutput::default() };
    measure(&request, &session, Some(&recorder), &output, console).map_err(|error| match error {
        Error::Session(SessionError::EmptyPlan { patterns, skipped: 0, .. }) if patterns.is_empty() => {
            nothing_selected()
        }
        // The name of the plan is this command, which `plan` does not take.
        Error::Session(SessionError::EmptyPlan { patterns, skipped, .. }) if skipped > 0 => Error::NothingToDo {
            what: describe_empty_selection(&patterns),
            help: format!("`weighbridge peers list {}` lists all cells", args.file.display()),
        },
        other => other,
    })
}

fn matrix_request(args: &PeersRunArgs) -> Request {
    let file = args.file.display().to_string();
    let params = [(MATRIX_FILE, text(&file))].into_iter();
    let params = params.chain(workload_params(&args.workload)).chain(selection_params(&args.selection));
    let given = params.map(|(name, form)| SpannedParam {
        name: name.to_owned(),
        name_span: 0..0,
        value: SpannedValue { form, span: 0..0 },
    });
    let words = format!("{NAME} run {file}");
    Request {
        source: SourceText::new("command line", &words),
        test: NAME.to_owned(),
        test_span: words.len() - file.len()..words.len(),
        id: None,
        params: given.collect(),
        stages: Vec::new(),
        tools: Vec::new(),
        criteria: RequestCriteria::default(),
        programs: BTreeMap::new(),
        default_on: None,
    }
}

fn text(text: &str) -> ValueForm {
    ValueForm::Single(ParamValue::Text(text.to_owned()))
}

fn workload_params(flags: &WorkloadFlags) -> Vec<(&'static str, ValueForm)> {
    let of_suite = |suite: u32| flags.as_suite.then_some(suite);
    let number = |number: u32| ValueForm::Single(ParamValue::Integer(number.into()));
    let bytes =
        |bytes: Option<Bytes>| bytes.or(flags.as_suite.then_some(SUITE_BYTES)).map(|bytes| text(&bytes.to_string()));
    let all = [
        ("iterations", flags.iterations.or(of_suite(SUITE_ITERATIONS)).map(number)),
        ("upload-bytes", bytes(flags.upload_bytes)),
        ("download-bytes", bytes(flags.download_bytes)),
        ("latency-iterations", flags.latency_iterations.or(of_suite(SUITE_LATENCY_ITERATIONS)).map(number)),
        ("iteration-limit", flags.iteration_limit.map(|limit| text(&limit.to_string()))),
        ("duration", flags.duration.map(|duration| text(&duration.to_string()))),
        ("omit", flags.omit.map(|omit| text(&omit.to_string()))),
        ("container-engine", flags.container_engine.as_deref().map(text)),
        ("client", flags.dialer_on.as_deref().map(text)),
        ("server", flags.listener_on.as_deref().map(text)),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn selection_params(flags: &MatrixFlags) -> Vec<(&'static str, ValueForm)> {
    let selection = flags.to_selection();
    let list = |of: Vec<String>| {
        let values = of.into_iter().map(|value| SpannedValue::one(ParamValue::Text(value), 0..0));
        Some(ValueForm::List(values.collect())).filter(|form| *form != ValueForm::List(Vec::new()))
    };
    let single = |filter: Option<String>| filter.as_deref().map(text);
    let axis_filters = |of: fn(&wb_peers::selection::SelectIgnore) -> Option<&String>| {
        let filters = selection.axes.iter().filter_map(|(axis, filter)| Some(format!("{axis}={}", of(filter)?)));
        list(filters.collect())
    };
    let axis_select = axis_filters(|filter| filter.select.as_ref());
    let axis_ignore = axis_filters(|filter| filter.ignore.as_ref());
    let full = selection.full_matrix.then_some(ValueForm::Single(ParamValue::Bool(true)));
    let all = [
        ("test-select", single(selection.test.select)),
        ("test-ignore", single(selection.test.ignore)),
        ("baseline-select", single(selection.baseline.select)),
        ("baseline-ignore", single(selection.baseline.ignore)),
        ("impl-select", single(selection.implementation.select)),
        ("impl-ignore", single(selection.implementation.ignore)),
        ("axis-select", axis_select),
        ("axis-ignore", axis_ignore),
        ("full-matrix-test", full),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}
