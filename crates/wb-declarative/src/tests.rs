//! Tests of the definition parser: errors with positions, and robustness against invalid input.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use wb_agent::Capture;
use wb_model::facts::Cpu;
use wb_model::{Bytes, Class, Facts, ParamValue, Params, Scope};

use super::params::defaults;
use super::*;

const PLAIN: &str = r#"name = "plain"
summary = "a plain test"
version = 1
command = "tool --n {n} {work}"
[[param]]
name = "n"
help = "how many"
kind = "integer"
default = 1
[[metric]]
name = "rate"
class = "throughput"
unit = "ops/s"
primary = true
from = "rate"
"#;

fn parse(text: &str) -> Result<DeclarativeTest, DefinitionError> {
    DeclarativeTest::parse("x.toml", text, None)
}

/// The cell of a test with these parameters.
fn cell(test: DeclarativeTest, params: &Params) -> Box<dyn TestCell> {
    Arc::new(test).cell(params).unwrap()
}

/// The cell of a test with the default values of its parameters.
fn default_cell(test: DeclarativeTest) -> Box<dyn TestCell> {
    let params = defaults(&test.declaration());
    cell(test, &params)
}

/// Error message for the plain definition with one replacement.
fn error_message(from: &str, to: &str) -> String {
    assert!(PLAIN.contains(from), "{from}");
    parse(&PLAIN.replacen(from, to, 1)).unwrap_err().to_string()
}

#[test]
fn a_plain_definition_is_parsed() {
    let test = parse(PLAIN).unwrap();
    let declaration = test.declaration();
    assert_eq!((declaration.name.as_str(), declaration.version, declaration.scope), ("plain", 1, Scope::Sample));
    assert_eq!(declaration.param("n").unwrap().default, Some(ParamValue::Integer(1)));
    assert!(declaration.param("cpus").is_some());
    let metrics = default_cell(test).metrics();
    assert_eq!((metrics[0].class, metrics[0].primary), (Class::Throughput, true));
}

#[test]
fn errors_have_a_position_and_help() {
    for (from, to, message) in [
        ("command =", "comand =", "x.toml:4:1: unknown field `comand`: did you mean `command`?"),
        ("{n}", "{nn}", "x.toml:4:11: unknown placeholder `{nn}`: did you mean `n`?"),
        ("{work}", "'", "x.toml:4:11: unclosed quote in `tool --n {n} '`"),
        ("tool --n {n} {work}", "", "x.toml:4:11: empty command"),
        (
            "command =",
            "runner = \"x\"\ncommand =",
            "x.toml:4:10: `command` and `runner` are mutually exclusive: remove one",
        ),
        (
            "name = \"plain\"",
            "name = \"pl ain\"",
            "x.toml:1:8: invalid name `pl ain`: expected letters, digits, `_`, `.` and `-`",
        ),
        ("\"integer\"", "\"interger\"", "x.toml:8:8: unknown value `interger`: did you mean `integer`?"),
        (
            "default = 1",
            "default = \"x\"",
            "x.toml:9:11: invalid default of parameter `n`: invalid value `x`: expected a whole number",
        ),
        (
            "default = 1\n",
            "",
            "x.toml:6:8: missing default of parameter `n`: add `default`, or `resolved` if it depends on the machine",
        ),
        (
            "default = 1",
            "default = 1\nresolved = \"cpus\"",
            "x.toml:10:12: `default` and `resolved` of parameter `n` are mutually exclusive: remove one",
        ),
        (
            "default = 1",
            "resolved = \"memory\"",
            "x.toml:9:12: invalid `resolved` of parameter `n`: it requires `kind = \"bytes\"`",
        ),
        ("\"n\"", "\"tools\"", "x.toml:6:8: name `tools` is reserved in plans: choose another name"),
        ("\"n\"", "\"cpus\"", "x.toml:6:8: name `cpus` is a parameter of every test: choose another name"),
        ("\"n\"", "\"work\"", "x.toml:6:8: name `work` is a built-in placeholder: choose another name"),
        ("help = \"how many\"", "help = \"\"", "x.toml:7:8: missing help of parameter `n`"),
        (
            "primary = true\n",
            "",
            "x.toml:11:8: missing primary metric: mark each metric that decides with `primary = true`",
        ),
        (
            "from = \"rate\"\n",
            "",
            "x.toml:11:8: missing source of metric `rate`: add `regex`, `json`, or `from` with elapsed, rate, cpu-time or max-rss",
        ),
        ("from = \"rate\"", "regex = '(x'", "x.toml:15:9: invalid regular expression: unclosed group"),
        (
            "from = \"rate\"",
            "regex = 'x'",
            "x.toml:15:9: missing capture group of the value: use `(…)`, or `(?<value>…)` with several groups",
        ),
        ("from = \"rate\"", "json = 'x'", "x.toml:15:8: invalid JSON path: expected a path such as `/end/0/bytes`"),
        (" {work}", "", "x.toml:11:8: `from = \"rate\"` requires `{work}` in the command"),
        (
            "from = \"rate\"",
            "from = \"rate\"\nper-work = true",
            "x.toml:11:8: `from = \"rate\"` is related to the work already: remove `per-work`",
        ),
        (
            "from = \"rate\"",
            "from = \"elapsed\"",
            "x.toml:11:8: `rate` depends on the amount of work, which differs between runs: add `per-work = true`: the time \
             of one unit of work; or use `from = \"rate\"`",
        ),
        (
            "from = \"rate\"",
            "from = \"cpu-time\"",
            "x.toml:11:8: `rate` depends on the amount of work, which differs between runs: add `per-work = true`: the time \
             of one unit of work; or use `from = \"rate\"`",
        ),
        (" {work}", " {work} {seconds}", "x.toml:1:8: `{work}` and `{seconds}` are mutually exclusive: remove one"),
        (
            "{work}\"",
            "{work}\"\ncleanup = [\"rm {sample-folder}/x\"]",
            "x.toml:5:12: placeholder `{sample-folder}` is not available here: it is available only in the \
             measured command and in files of a sample",
        ),
    ] {
        assert_eq!(error_message(from, to), message);
    }
    let without_work = PLAIN.replace(" {work}", "").replace("from = \"rate\"", "from = \"elapsed\"");
    assert!(parse(&without_work).is_ok());
    let per_work = parse(&format!("{without_work}per-work = true\n")).unwrap_err().to_string();
    assert_eq!(per_work, "x.toml:11:8: `per-work` requires `{work}` in the command");
}

#[test]
fn standard_output_is_kept_if_it_is_used_and_otherwise_hashed() {
    let stdout = |text: &str| parse(text).unwrap().definition.stdout;
    let reads = PLAIN.replace("from = \"rate\"", "regex = '(x)'");
    let checks = format!("{PLAIN}[[check]]\ndescription = \"it holds\"\nmust = 'x'\n");
    let with = |text: &str, capture: &str| text.replacen("version = 1", &format!("version = 1\nstdout = {capture}"), 1);
    for (text, capture, of_probe) in [
        (PLAIN.to_owned(), Capture::Hash, Capture::Hash),
        (reads.clone(), Capture::Keep, Capture::Hash),
        (checks, Capture::Keep, Capture::Hash),
        (with(PLAIN, "\"keep\""), Capture::Keep, Capture::Hash),
        (with(PLAIN, "\"discard\""), Capture::Discard, Capture::Discard),
        (with(&reads, "\"keep\""), Capture::Keep, Capture::Hash),
    ] {
        let stdout = stdout(&text);
        assert_eq!(
            (stdout.capture_for(sample_output::RUN_NAME), stdout.capture_for(sample_output::PROBE_NAME)),
            (capture, of_probe),
            "{text}"
        );
    }
    let message = |text: String| parse(&text).unwrap_err().to_string();
    assert_eq!(
        message(with(&reads, "\"hash\"")),
        "x.toml:4:10: a metric, a check or `same-output` requires that standard output is kept: remove `stdout`, or use a `file`"
    );
    assert_eq!(
        message(
            with(PLAIN, "\"keep\"")
                .replace("command = \"tool --n {n} {work}\"", "runner = \"tool\"")
                .replace("from = \"rate\"\n", "")
        ),
        "x.toml:4:10: standard output of a runner is always kept: remove `stdout`"
    );
    assert_eq!(message(with(PLAIN, "\"kep\"")), "x.toml:4:10: unknown value `kep`: did you mean `keep`?");
}

#[test]
fn checks_require_existing_metrics_and_recorded_bounds() {
    let with = |check: &str| parse(&format!("{PLAIN}[[check]]\ndescription = \"it holds\"\n{check}")).map(|_| ());
    assert!(with("metric = \"rate\"\nmin = \"{n}\"\nmax = \"{work}\"").is_ok());
    let error = |check: &str| with(check).unwrap_err().to_string();
    assert!(error("metric = \"rat\"\nmin = 1").ends_with("unknown metric `rat`: did you mean `rate`?"));
    assert!(error("metric = \"rate\"").contains("the check has no bound"));
    assert!(error("metric = \"rate\"\nmin = \"{port}\"").contains("not recorded with the sample"));
    assert!(error("must = 'x'\nmust-not = 'y'").contains("write two checks"));
    assert!(error("file = \"../x\"\nmust = 'x'").contains("invalid path `../x`"));
}

/// Recorded output of a sample of the plain definition with this setting of `same-output`.
fn same_output(setting: &str, process: &serde_json::Value, stdout: &str) -> BTreeMap<String, String> {
    let provenance = r#"{"definition":"","duration-source":{"by":"work","work":8,"probe":null}}"#;
    let folder = wb_test_artefacts::artefact_folder(&[
        ("provenance.json", provenance),
        ("run.process.json", &process.to_string()),
        ("run.stdout", stdout),
    ]);
    let test = parse(&PLAIN.replacen("[[param]]", &format!("same-output = {setting}\n[[param]]"), 1)).unwrap();
    let measurement = default_cell(test).study(&wb_test::Artefacts::new(folder.path())).unwrap();
    measurement.outputs
}

#[test]
fn same_output_is_recorded_by_hash_or_text() {
    let usage = wb_sys::process::ResourceUsage::default();
    let mut process = serde_json::json!({ "elapsed-seconds": 1.0, "usage": usage });
    let output = |setting: &str, process: &serde_json::Value| same_output(setting, process, "seconds 1.5\nsum 7f\n");
    let expected = |output: &str| BTreeMap::from([("standard output of work 8".to_owned(), output.to_owned())]);
    assert_eq!(output("'^sum .*$'", &process), expected("`sum 7f`"));
    assert_eq!(output("true", &process), BTreeMap::new(), "the hash was not recorded");
    process["stdout-sha256"] = "ab12".into();
    process["stdout-bytes"] = 19.into();
    assert_eq!(output("true", &process), expected("19 B with SHA-256 ab12"));
    assert_eq!(output("false", &process), BTreeMap::new());
}

#[test]
fn same_output_requires_a_match_and_a_command() {
    let with = |setting: &str| PLAIN.replacen("[[param]]", &format!("same-output = {setting}\n[[param]]"), 1);
    let error = |text: &str| parse(text).unwrap_err().to_string();
    assert!(error(&with("'('")).contains("x.toml:5:15: invalid regular expression"), "{}", error(&with("'('")));
    assert!(error(&with("3")).contains("expected true, false, or a regular expression"), "{}", error(&with("3")));
    let runner = with("true").replace("command = \"tool --n {n} {work}\"", "runner = \"tool\"");
    let runner = runner.replace("from = \"rate\"\n", "");
    assert!(error(&runner).contains("the output of a runner differs between samples"), "{}", error(&runner));
    let folder = wb_test_artefacts::artefact_folder(&[
        ("provenance.json", r#"{"definition":"","duration-source":{"by":"work","work":8,"probe":null}}"#),
        ("run.process.json", &process(1.0)),
        ("run.stdout", "nothing of it"),
    ]);
    let test = parse(&with("'^sum'")).unwrap();
    let rejection = default_cell(test).study(&wb_test::Artefacts::new(folder.path())).unwrap_err();
    assert_eq!(rejection.to_string(), "output: standard output does not match `^sum` of same-output");
}

#[test]
fn same_output_determines_the_capture_of_standard_output() {
    let parse_with = |extra: &str| {
        let definition = "name = \"x\"\nsummary = \"x\"\nversion = 1\ncommand = [\"true\"]\n".to_owned() + extra;
        let metric =
            "[[metric]]\nname = \"t\"\nclass = \"latency\"\nunit = \"s\"\nprimary = true\nfrom = \"elapsed\"\n";
        parse(&(definition + metric))
    };
    let capture = |extra: &str| {
        parse_with(extra)
            .unwrap_or_else(|error| panic!("{error}"))
            .definition
            .stdout
            .capture_for(sample_output::RUN_NAME)
    };
    assert_eq!(capture("same-output = '^sum'\n"), Capture::Keep);
    assert_eq!(capture("same-output = true\n"), Capture::Hash);
    let error = |extra: &str| parse_with(extra).unwrap_err().to_string();
    let hashed = error("same-output = '^sum'\nstdout = \"hash\"\n");
    assert!(hashed.contains("x.toml:6:10: a metric, a check or `same-output` requires"), "{hashed}");
    let discarded = error("same-output = true\nstdout = \"discard\"\n");
    assert!(discarded.contains("x.toml:6:10: `same-output` requires the hash of standard output"), "{discarded}");
}

#[test]
fn build_inputs_exclude_whatever_else_is_used() {
    let built_in = |name: &str| builtin_definitions().find(|one| one.test_name() == name).unwrap().parse();
    let inputs_of = |cell: Box<dyn TestCell>| {
        let inputs = cell.build_inputs();
        (inputs.params.into_iter().collect::<Vec<_>>(), inputs.programs.into_iter().collect::<Vec<_>>())
    };
    let both = |program: &str| (vec!["cc".to_owned(), "flags".to_owned()], vec![program.to_owned()]);
    assert_eq!(inputs_of(default_cell(built_in("compile-c"))), both("gcc"));
    let by_path = Params::from([("cc".to_owned(), ParamValue::Text("/opt/gcc/bin/gcc".into()))]);
    assert_eq!(inputs_of(cell(built_in("compile-c"), &by_path)), both("/opt/gcc/bin/gcc"));
    let openssl = default_cell(built_in("openssl-speed"));
    assert_eq!(openssl.build_inputs(), wb_test::BuildInputs::default(), "nothing is built");
    // Parameters and programs of the measured command do not affect only the build.
    let text = PLAIN.replace(
        "[[param]]",
        "requires = [{ program = \"maker\", package = \"\" }, { program = \"tool\", package = \"\" }]\n\
         build = { commands = [\"maker {n}\", \"tool x\"], programs = [\"x\"] }\n[[param]]",
    );
    assert_eq!(inputs_of(default_cell(parse(&text).unwrap())), (vec![], vec!["maker".to_owned()]));
}

#[test]
fn machine_defaults_respect_the_placement() {
    let text = PLAIN.replace("default = 1", "resolved = \"one-and-cores\"\naxis = true");
    let test = parse(&text).unwrap();
    let cpu = |id, core| Cpu { id, core, package: 0, node: 0 };
    let facts = Facts { cpus: vec![cpu(0, 0), cpu(1, 0), cpu(2, 1), cpu(3, 1)], ..Facts::default() };
    let values = |given: &Params| test.resolve(given, &facts)["n"].clone();
    assert_eq!(values(&Params::new()), [ParamValue::Integer(1), ParamValue::Integer(2)]);
    let only = ParamValue::List(vec![ParamValue::Integer(2), ParamValue::Integer(3)]);
    assert_eq!(values(&Params::from([("cpus".to_owned(), only)])), [ParamValue::Integer(1)]);
    let sized = PLAIN.replace("\"integer\"\ndefault = 1", "\"bytes\"\nresolved = \"memory\"\nfactor = 0.25");
    let facts = Facts { memory: Bytes(16 << 30), ..Facts::default() };
    assert_eq!(parse(&sized).unwrap().resolve(&Params::new(), &facts)["n"], [ParamValue::Text("4g".into())]);
}

#[test]
fn a_default_from_an_unknown_property_is_none() {
    for property in ["memory", "memory-available", "last-level-cache"] {
        let resolved = format!("\"bytes\"\nresolved = \"{property}\"");
        let test = Arc::new(parse(&PLAIN.replace("\"integer\"\ndefault = 1", &resolved)).unwrap());
        assert_eq!(test.resolve(&Params::new(), &Facts::default()), BTreeMap::new(), "{property}");
        let reason = |params: Params| test.clone().cell(&params).unwrap().unsupported(&Facts::default());
        assert!(reason(Params::new()).is_some_and(|reason| reason.starts_with("`n` has no default here, ")));
        assert_eq!(reason(Params::from([("n".to_owned(), ParamValue::Text("4k".into()))])), None);
    }
}

#[test]
fn duplicate_and_invalid_definitions_are_skipped_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("b.toml", PLAIN);
    write("notes.txt", "no definition");
    assert!(crate::add_folder(&mut wb_test::Registry::default(), folder.path()).unwrap().is_empty());
    write("a.toml", "name = 3\n");
    write("c.toml", PLAIN);
    let mut registry = wb_test::Registry::default();
    let [invalid, duplicate] = &crate::add_folder(&mut registry, folder.path()).unwrap()[..] else {
        panic!("two errors")
    };
    assert!(invalid.to_string().contains("a.toml:1:8: invalid value `3`: expected a string"), "{invalid}");
    assert!(
        duplicate
            .to_string()
            .ends_with("both define the test `plain`: rename the test in one of them, or remove one file"),
        "{duplicate}"
    );
    let error = crate::add_folder(&mut registry, &folder.path().join("nosuch")).unwrap_err().to_string();
    assert!(error.contains("nosuch`: No such file"), "{error}");
    assert!(registry.test("plain").is_some());
}

/// The plain definition as a runner, or with more of a metric and a check.
fn study_plain(text: &str, source: &str, stdout: &str) -> wb_test::Measurement {
    let provenance = format!("{{\"definition\":\"\",\"duration-source\":{source}}}");
    let folder = wb_test_artefacts::artefact_folder(&[
        ("provenance.json", &provenance),
        ("run.process.json", &process(1.0)),
        ("run.stdout", stdout),
    ]);
    default_cell(parse(text).unwrap()).study(&wb_test::Artefacts::new(folder.path())).unwrap()
}

// Work of 0 in 0 s passed the check of the effort.
#[test]
fn a_runner_that_did_no_work_is_invalid() {
    let text = PLAIN.replace("command = \"tool --n {n} {work}\"", "runner = \"tool\"").replace("from = \"rate\"\n", "");
    for (work, is_valid) in [
        (r#""amount":0,"seconds":0"#, false),
        (r#""amount":0"#, false),
        (r#""amount":0,"seconds":1"#, false),
        (r#""amount":5,"seconds":0"#, false),
        (r#""amount":5"#, true),
        (r#""amount":5,"seconds":1"#, true),
    ] {
        let output = format!(
            "{}\n{{\"event\":\"probe\",\"amount\":0,\"seconds\":0}}\n{{\"event\":\"work\",{work}}}\n{}\n{}\n",
            r#"{"event":"hello","protocol":1}"#,
            r#"{"event":"metric","class":"throughput","name":"rate","value":5,"unit":"ops/s"}"#,
            r#"{"event":"done"}"#
        );
        let validity = study_plain(&text, r#"{"by":"runner"}"#, &output).validity;
        assert_eq!(validity == wb_model::Validity::Valid, is_valid, "{work}: {validity}");
    }
}

// It passed without a word.
#[test]
fn a_check_of_a_missing_optional_metric_is_a_finding() {
    let metric = "[[metric]]\nname = \"n\"\nclass = \"resource\"\nunit = \"\"\noptional = true\nregex = 'n=(\\S+)'\n";
    let check = "[[check]]\ndescription = \"it holds\"\nmetric = ";
    let source = r#"{"by":"work","work":8,"probe":null}"#;
    let not_checked = "not checked: it holds: the sample has no resource/n";
    for check in [
        format!("{check}\"n\"\nequals = 3\n"),
        format!("{check}\"n\"\nper = \"rate\"\nmax = 3\n"),
        format!("{check}\"rate\"\nper = \"n\"\nmax = 3\n"),
    ] {
        let study = |stdout: &str| study_plain(&format!("{PLAIN}{metric}{check}"), source, stdout);
        let measurement = study("x\n");
        assert_eq!(measurement.validity, wb_model::Validity::Valid, "{check}");
        assert!(measurement.findings.iter().any(|finding| finding == not_checked), "{:?}", measurement.findings);
        assert!(!study("n=3\n").findings.iter().any(|finding| finding.contains("not checked")), "{check}");
    }
}

/// Calls all methods of a definition that need no worker.
fn exercise(test: DeclarativeTest) {
    let declaration = test.declaration();
    let mut params = defaults(&declaration);
    for (name, values) in test.resolve(&params, &Facts::default()) {
        params.extend(values.into_iter().next().map(|value| (name, value)));
    }
    let bindings = Bindings { params: &params, builtins: BTreeMap::new() };
    for command in test.definition.build.iter().chain(&test.definition.setup) {
        let _ = command.fill(&bindings);
    }
    let cell = cell(test, &params);
    let _ = (cell.metrics(), cell.requires(), cell.unsupported(&Facts::default()));
    let _ = cell.study(&wb_test::Artefacts::new(Path::new("/nosuch")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_damaged_definition_panics(index in 0..builtin::DEFINITIONS.len(), cuts in prop::collection::vec((0usize..6000, 0usize..30, ".{0,3}"), 1..4)) {
        let mut text: Vec<char> = builtin::text(index).chars().collect();
        for (position, length, replacement) in cuts {
            let position = position % text.len().max(1);
            let end = (position + length).min(text.len());
            text.splice(position..end, replacement.chars());
        }
        if let Ok(test) = parse(&text.into_iter().collect::<String>()) {
            exercise(test);
        }
    }

    #[test]
    fn no_lines_of_definitions_in_another_order_panic(lines in prop::collection::vec((0..builtin::DEFINITIONS.len(), 0usize..200), 0..60)) {
        let texts: Vec<Vec<&str>> = (0..builtin::DEFINITIONS.len()).map(|index| builtin::text(index).lines().collect()).collect();
        let text: Vec<&str> = lines.iter().map(|(index, line)| texts[*index][line % texts[*index].len()]).collect();
        if let Ok(test) = parse(&text.join("\n")) {
            exercise(test);
        }
    }

    #[test]
    fn no_text_panics(text: String) {
        let _ = parse(&text);
    }

    #[test]
    fn no_output_of_a_tool_panics_or_counts_by_chance(output in "[ -~\n]{0,200}") {
        let folder = wb_test_artefacts::artefact_folder(&[
            ("provenance.json", r#"{"definition":"","duration-source":{"by":"time","seconds":1.0}}"#),
            ("run.process.json", &process(1.0)),
            ("run.stdout", &output),
        ]);
        let artefacts = wb_test::Artefacts::new(folder.path());
        for test in builtin_definitions().map(|definition| definition.parse()) {
            let cell = default_cell(test);
            let measurement = wb_test::evaluate::evaluate(cell.as_ref(), &cell.metrics(), &artefacts);
            prop_assert_ne!(measurement.validity, wb_model::Validity::Valid);
        }
    }
}

/// Record of a process that ran `seconds` seconds.
fn process(seconds: f64) -> String {
    let usage = wb_sys::process::ResourceUsage::default();
    serde_json::json!({ "elapsed-seconds": seconds, "usage": usage }).to_string()
}
