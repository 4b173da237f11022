//! What is wrong with a definition is told with its place, and no definition makes the reader panic.

use std::collections::BTreeMap;
use std::path::Path;

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

/// What is told of the plain definition with one thing changed.
fn error_message(from: &str, to: &str) -> String {
    assert!(PLAIN.contains(from), "{from}");
    parse(&PLAIN.replacen(from, to, 1)).unwrap_err().to_string()
}

#[test]
fn a_plain_definition_declares_what_it_says() {
    let test = parse(PLAIN).unwrap();
    let declaration = test.declaration();
    assert_eq!((declaration.name.as_str(), declaration.version, declaration.scope), ("plain", 1, Scope::Sample));
    assert_eq!(declaration.param("n").unwrap().default, Some(ParamValue::Integer(1)));
    assert!(declaration.param("cpus").is_some());
    let metrics = test.metrics(&defaults(&declaration));
    assert_eq!((metrics[0].class, metrics[0].primary), (Class::Throughput, true));
}

#[test]
fn what_is_wrong_is_told_with_its_place_and_the_way_out() {
    for (from, to, message) in [
        ("command =", "comand =", "x.toml:4:1: there is no field `comand` here: did you mean `command`?"),
        ("{n}", "{nn}", "x.toml:4:11: there is no placeholder `{nn}`: did you mean `n`?"),
        ("{work}", "'", "x.toml:4:11: `tool --n {n} '` has a quote that is not closed"),
        ("tool --n {n} {work}", "", "x.toml:4:11: a command has at least its program"),
        ("command =", "runner = \"x\"\ncommand =", "x.toml:4:10: a test has a `command` or a `runner`: remove one"),
        (
            "name = \"plain\"",
            "name = \"pl ain\"",
            "x.toml:1:8: `pl ain` is not a name: letters, digits, `_`, `.` and `-` are allowed",
        ),
        ("\"integer\"", "\"interger\"", "x.toml:8:8: there is no value `interger` here: did you mean `integer`?"),
        ("default = 1", "default = \"x\"", "x.toml:9:11: `n` cannot have this default: `x` is not a whole number"),
        (
            "default = 1\n",
            "",
            "x.toml:6:8: `n` has no value where none is given: add `default`, or `resolved` if the machine decides",
        ),
        (
            "default = 1",
            "default = 1\nresolved = \"cpus\"",
            "x.toml:10:12: `n` has a default already: remove one of the two",
        ),
        (
            "default = 1",
            "resolved = \"memory\"",
            "x.toml:9:12: `n` cannot be decided by that: its kind must be `bytes`",
        ),
        ("\"n\"", "\"tools\"", "x.toml:6:8: `tools` has another meaning in plans: choose another name"),
        ("\"n\"", "\"cpus\"", "x.toml:6:8: every test has a parameter `cpus` already: choose another name"),
        ("\"n\"", "\"work\"", "x.toml:6:8: `{work}` has another meaning in commands: choose another name"),
        ("help = \"how many\"", "help = \"\"", "x.toml:7:8: `n` has no help"),
        ("primary = true\n", "", "x.toml:11:8: no metric is primary: mark the one that decides with `primary = true`"),
        (
            "from = \"rate\"\n",
            "",
            "x.toml:11:8: nothing says where `rate` is read from: add `regex`, `json`, or `from` with elapsed, rate, cpu-time or max-rss",
        ),
        ("from = \"rate\"", "regex = '(x'", "x.toml:15:9: this is no regular expression: unclosed group"),
        (
            "from = \"rate\"",
            "regex = 'x'",
            "x.toml:15:9: the figure is what the one group captures: put it into `(…)`, or into `(?<value>…)` where there are several groups",
        ),
        ("from = \"rate\"", "json = 'x'", "x.toml:15:8: a JSON path starts with `/`: as in `/end/0/bytes`"),
        (" {work}", "", "x.toml:11:8: this is work per second, and the command takes no `{work}`"),
        (" {work}", " {work} {seconds}", "x.toml:1:8: the command takes both `{work}` and `{seconds}`: choose one"),
        (
            "{work}\"",
            "{work}\"\ncleanup = [\"rm {sample}/x\"]",
            "x.toml:5:12: `{sample}` is not known yet here: only the measured command and files of a sample have it",
        ),
    ] {
        assert_eq!(error_message(from, to), message);
    }
}

#[test]
fn standard_output_is_kept_where_it_is_read_and_hashed_elsewhere() {
    let stdout = |text: &str| parse(text).unwrap().definition.stdout;
    let reads = PLAIN.replace("from = \"rate\"", "regex = '(x)'");
    let checks = format!("{PLAIN}[[check]]\nsays = \"it holds\"\nmust = 'x'\n");
    let with = |text: &str, given: &str| text.replacen("version = 1", &format!("version = 1\nstdout = {given}"), 1);
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
        "x.toml:4:10: a metric, a check or `same-output` reads standard output, which has to be kept then: remove `stdout`, or read a `file`"
    );
    assert_eq!(
        message(
            with(PLAIN, "\"keep\"")
                .replace("command = \"tool --n {n} {work}\"", "runner = \"tool\"")
                .replace("from = \"rate\"\n", "")
        ),
        "x.toml:4:10: what a runner writes to standard output is always kept: remove `stdout`"
    );
    assert_eq!(message(with(PLAIN, "\"kep\"")), "x.toml:4:10: there is no value `kep` here: did you mean `keep`?");
}

#[test]
fn checks_name_metrics_that_are_there_and_bounds_that_are_recorded() {
    let with = |check: &str| parse(&format!("{PLAIN}[[check]]\nsays = \"it holds\"\n{check}")).map(|_| ());
    assert!(with("metric = \"rate\"\nmin = \"{n}\"\nmax = \"{work}\"").is_ok());
    let told = |check: &str| with(check).unwrap_err().to_string();
    assert!(told("metric = \"rat\"\nmin = 1").ends_with("there is no metric `rat`: did you mean `rate`?"));
    assert!(told("metric = \"rate\"").contains("this check has no bound"));
    assert!(told("metric = \"rate\"\nmin = \"{port}\"").contains("not recorded with the sample"));
    assert!(told("must = 'x'\nmust-not = 'y'").contains("write two checks"));
    assert!(told("file = \"../x\"\nmust = 'x'").contains("is not a file of the sample's folder"));
}

/// The output that has to be the same, of a sample of the plain definition with this said of it.
fn same_output(said: &str, process: &serde_json::Value, stdout: &str) -> BTreeMap<String, String> {
    let circumstances = r#"{"definition":"","duration-source":{"by":"work","work":8,"probe":null}}"#;
    let folder = crate::testing::artefact_folder(&[
        ("provenance.json", circumstances),
        ("run.process.json", &process.to_string()),
        ("run.stdout", stdout),
    ]);
    let test = parse(&PLAIN.replacen("[[param]]", &format!("same-output = {said}\n[[param]]"), 1)).unwrap();
    let measured = test.study(&defaults(&test.declaration()), &crate::Artefacts::new(folder.path())).unwrap();
    measured.outputs
}

#[test]
fn output_that_is_the_same_in_every_sample_is_noted_by_its_hash_or_its_text() {
    let usage = wb_sys::process::ResourceUsage::default();
    let mut process = serde_json::json!({ "elapsed-seconds": 1.0, "usage": usage });
    let of = |said: &str, process: &serde_json::Value| same_output(said, process, "seconds 1.5\nsum 7f\n");
    let noted = |output: &str| BTreeMap::from([("standard output of work 8".to_owned(), output.to_owned())]);
    assert_eq!(of("'^sum .*$'", &process), noted("`sum 7f`"));
    assert_eq!(of("true", &process), BTreeMap::new(), "the hash was not recorded");
    process["stdout-sha256"] = "ab12".into();
    process["stdout-bytes"] = 19.into();
    assert_eq!(of("true", &process), noted("19 B with SHA-256 ab12"));
    assert_eq!(of("false", &process), BTreeMap::new());
}

#[test]
fn output_that_is_to_be_the_same_is_found_in_each_sample_and_is_of_a_command() {
    let with = |said: &str| PLAIN.replacen("[[param]]", &format!("same-output = {said}\n[[param]]"), 1);
    let told = |text: &str| parse(text).unwrap_err().to_string();
    assert!(told(&with("'('")).contains("x.toml:5:15: this is no regular expression"), "{}", told(&with("'('")));
    assert!(told(&with("3")).contains("expected true, false, or a regular expression"), "{}", told(&with("3")));
    let runner = with("true").replace("command = \"tool --n {n} {work}\"", "runner = \"tool\"");
    let runner = runner.replace("from = \"rate\"\n", "");
    assert!(told(&runner).contains("the output of a runner is its events"), "{}", told(&runner));
    let folder = crate::testing::artefact_folder(&[
        ("provenance.json", r#"{"definition":"","duration-source":{"by":"work","work":8,"probe":null}}"#),
        ("run.process.json", &process(1.0)),
        ("run.stdout", "nothing of it"),
    ]);
    let test = parse(&with("'^sum'")).unwrap();
    let rejected = test.study(&defaults(&test.declaration()), &crate::Artefacts::new(folder.path())).unwrap_err();
    assert_eq!(rejected.to_string(), "output: standard output does not match `^sum` of same-output");
}

#[test]
fn output_that_is_to_be_the_same_is_recorded_as_far_as_it_takes() {
    let with = |more: &str| {
        let definition = "name = \"x\"\nsummary = \"x\"\nversion = 1\ncommand = [\"true\"]\n".to_owned() + more;
        let metric =
            "[[metric]]\nname = \"t\"\nclass = \"latency\"\nunit = \"s\"\nprimary = true\nfrom = \"elapsed\"\n";
        parse(&(definition + metric))
    };
    let capture = |more: &str| {
        with(more).unwrap_or_else(|error| panic!("{error}")).definition.stdout.capture_for(sample_output::RUN_NAME)
    };
    assert_eq!(capture("same-output = '^sum'\n"), Capture::Keep);
    assert_eq!(capture("same-output = true\n"), Capture::Hash);
    let error = |more: &str| with(more).unwrap_err().to_string();
    let hashed = error("same-output = '^sum'\nstdout = \"hash\"\n");
    assert!(hashed.contains("x.toml:6:10: a metric, a check or `same-output` reads standard output"), "{hashed}");
    let discarded = error("same-output = true\nstdout = \"discard\"\n");
    assert!(discarded.contains("x.toml:6:10: `same-output` compares standard output by its hash"), "{discarded}");
}

#[test]
fn what_only_a_build_depends_on_is_told_from_the_rest() {
    let shipped = |name: &str| builtin_tests().find(|test| test.declaration().name.as_str() == name).unwrap();
    let of = |test: &DeclarativeTest, params: &Params| {
        let inputs = test.build_inputs(params);
        (inputs.params.into_iter().collect::<Vec<_>>(), inputs.programs.into_iter().collect::<Vec<_>>())
    };
    let compile = shipped("compile-c");
    let params = defaults(&compile.declaration());
    let both = |program: &str| (vec!["cc".to_owned(), "flags".to_owned()], vec![program.to_owned()]);
    assert_eq!(of(&compile, &params), both("gcc"));
    let by_path = Params::from([("cc".to_owned(), ParamValue::Text("/opt/gcc/bin/gcc".into()))]);
    assert_eq!(of(&compile, &by_path), both("/opt/gcc/bin/gcc"));
    let openssl = shipped("openssl-speed");
    assert_eq!(
        openssl.build_inputs(&defaults(&openssl.declaration())),
        crate::BuildInputs::default(),
        "nothing is built"
    );
    // What the measured command takes or calls is no matter of the build alone.
    let text = PLAIN.replace(
        "[[param]]",
        "requires = [{ program = \"maker\", package = \"\" }, { program = \"tool\", package = \"\" }]\n\
         build = { commands = [\"maker {n}\", \"tool x\"], programs = [\"x\"] }\n[[param]]",
    );
    let test = parse(&text).unwrap();
    assert_eq!(of(&test, &defaults(&test.declaration())), (vec![], vec!["maker".to_owned()]));
}

#[test]
fn the_machine_decides_within_the_placement() {
    let text = PLAIN.replace("default = 1", "resolved = \"one-and-cores\"\naxis = true");
    let test = parse(&text).unwrap();
    let cpu = |id, core| Cpu { id, core, package: 0, node: 0 };
    let facts = Facts { cpus: vec![cpu(0, 0), cpu(1, 0), cpu(2, 1), cpu(3, 1)], ..Facts::default() };
    let values = |given: &Params| test.resolve(given, &facts)["n"].clone();
    assert_eq!(values(&Params::new()), [ParamValue::Integer(1), ParamValue::Integer(2)]);
    let only = ParamValue::List(vec![ParamValue::Integer(2), ParamValue::Integer(3)]);
    assert_eq!(values(&Params::from([("cpus".to_owned(), only)])), [ParamValue::Integer(1)]);
    let sized = PLAIN.replace("\"integer\"\ndefault = 1", "\"bytes\"\nresolved = \"memory\"\ntimes = 0.25");
    let facts = Facts { memory: Bytes(16 << 30), ..Facts::default() };
    assert_eq!(parse(&sized).unwrap().resolve(&Params::new(), &facts)["n"], [ParamValue::Text("4g".into())]);
}

#[test]
fn what_a_folder_defines_twice_or_wrongly_is_passed_over_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("a.toml", PLAIN);
    write("notes.txt", "no definition");
    let mut registry = crate::Registry::default();
    let mut passed_over =
        |folder: &Path| registry.add_folder(folder).map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(passed_over(folder.path()).unwrap(), [""; 0]);
    write("b.toml", PLAIN);
    let told = passed_over(folder.path()).unwrap();
    assert!(told[0].ends_with("both define the test `plain`: rename one, or remove it"), "{told:?}");
    write("b.toml", "name = 3\n");
    let told = passed_over(folder.path()).unwrap();
    assert!(told[0].contains("b.toml:1:8: invalid value `3`: expected a text"), "{told:?}");
    let error = passed_over(&folder.path().join("nosuch")).unwrap_err().to_string();
    assert!(error.contains("nosuch` cannot be read: No such file"), "{error}");
    assert!(registry.test("plain").is_some());
}

/// Whatever can be asked of a definition without a worker.
fn exercise(test: &DeclarativeTest) {
    let declaration = test.declaration();
    let mut params = defaults(&declaration);
    for (name, values) in test.resolve(&params, &Facts::default()) {
        params.extend(values.into_iter().next().map(|value| (name, value)));
    }
    let _ = (test.metrics(&params), test.requires(&params), test.unsupported(&params, &Facts::default()));
    let _ = test.study(&params, &crate::Artefacts::new(Path::new("/nosuch")));
    let bindings = Bindings { params: &params, builtins: BTreeMap::new() };
    for command in test.definition.build.iter().chain(&test.definition.setup) {
        let _ = command.fill(&bindings);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_damaged_definition_panics(which in 0usize..9, cuts in prop::collection::vec((0usize..6000, 0usize..30, ".{0,3}"), 1..4)) {
        let mut text: Vec<char> = builtin::text(which).chars().collect();
        for (at, length, with) in cuts {
            let at = at % text.len().max(1);
            let end = (at + length).min(text.len());
            text.splice(at..end, with.chars());
        }
        if let Ok(test) = parse(&text.into_iter().collect::<String>()) {
            exercise(&test);
        }
    }

    #[test]
    fn no_lines_of_definitions_in_another_order_panic(lines in prop::collection::vec((0usize..9, 0usize..200), 0..60)) {
        let texts: Vec<Vec<&str>> = (0..9).map(|which| builtin::text(which).lines().collect()).collect();
        let text: Vec<&str> = lines.iter().map(|(which, line)| texts[*which][line % texts[*which].len()]).collect();
        if let Ok(test) = parse(&text.join("\n")) {
            exercise(&test);
        }
    }

    #[test]
    fn no_text_panics(text: String) {
        let _ = parse(&text);
    }

    #[test]
    fn no_output_of_a_tool_panics_or_counts_by_chance(output in "[ -~\n]{0,200}") {
        let folder = crate::testing::artefact_folder(&[
            ("provenance.json", r#"{"definition":"","duration-source":{"by":"time","seconds":1.0}}"#),
            ("run.process.json", &process(1.0)),
            ("run.stdout", &output),
        ]);
        let artefacts = crate::Artefacts::new(folder.path());
        for test in builtin_tests() {
            let params = defaults(&test.declaration());
            let measured = crate::evaluate::evaluate(&test, &params, &artefacts);
            prop_assert_ne!(measured.validity, wb_model::Validity::Valid);
        }
    }
}

/// How a process ran that took so many seconds.
fn process(seconds: f64) -> String {
    let usage = wb_sys::process::ResourceUsage::default();
    serde_json::json!({ "elapsed-seconds": seconds, "usage": usage }).to_string()
}
