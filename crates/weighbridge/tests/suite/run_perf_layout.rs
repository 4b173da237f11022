//! Runs in run-perf's layout: what its programs read of them, and what is compared with its own builds.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::compare::{samples_around, write_build};
use crate::lab::{CommandResult, Lab};

/// A program of run-perf, where `scripts/setup test` has installed it; `None`, with a message, where it is not.
fn program_of_run_perf(name: &str) -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/run-perf/bin").join(name);
    if program.is_file() {
        return Some(program);
    }
    wb_test_skip::skip!("no run-perf in target/run-perf: `scripts/setup test` installs it");
    None
}

/// The options of a short measurement.
const SHORT: &str = "--samples 2 --warm-up 0 --retakes 0 --min-time 20ms";

/// A lab with a test that always fails, and a run of it and of others in `R`, written to `L`.
fn measured() -> Lab {
    let lab = Lab::new();
    lab.define_script("broken", "exit 3");
    let tests = "steady:kind=[a,b] steady:kind=c,id=named himeno:grid=XS,threads=1 broken";
    lab.weighbridge(&format!("run {SHORT} --metadata build=7 --into R --layout run-perf=L -- {tests}")).expect_code(3);
    lab
}

/// The files of a folder, without hidden ones.
fn files(folder: &Path) -> BTreeSet<String> {
    let all = Command::new("find").args([".", "-type", "f", "-not", "-path", "*/.*/*"]).current_dir(folder).output();
    String::from_utf8(all.unwrap().stdout)
        .unwrap()
        .lines()
        .map(|line| line.trim_start_matches("./").to_owned())
        .collect()
}

#[test]
fn a_run_is_written_beside_its_folder_in_run_perfs_layout() {
    let lab = measured();
    let written: Vec<String> = files(&lab.path("L")).into_iter().collect();
    insta::assert_snapshot!(written.join("\n"), @r"
    Localhost/broken/0000/__error0__/details
    Localhost/broken/0000/__error0__/exception
    Localhost/broken/0000/__error0__/traceback
    Localhost/himeno/0000/result.json
    Localhost/named/0000/result.json
    Localhost/steady/0000/result.json
    RUNPERF_METADATA
    ");
    let result = lab.read_json("L/Localhost/steady/0000/result.json");
    assert_eq!(result[0]["iteration_name"], "kind=a");
    assert_eq!(result[1]["iteration_number"], 2);
    let all = &result[0]["iteration_data"]["throughput"]["figure"][0];
    assert_eq!((&all["client_hostname"], &all["mean"], &all["stddevpct"]), (&"all".into(), &97.0.into(), &0.0.into()));
    assert_eq!(all["samples"].as_array().unwrap().len(), 2);
    assert_eq!(result[0]["iteration_data"]["parameters"]["benchmark"][0]["primary_metric"], "figure");
    let metadata = lab.read("L/RUNPERF_METADATA");
    for line in [
        "build:7\n",
        "distro:Unknown\n",
        "runperf_version:weighbridge ",
        "runperf_cmd:",
        "environment_profile_Localhost:[{",
    ] {
        assert!(metadata.contains(line), "{line}: {metadata}");
    }
    assert!(lab.read("L/Localhost/broken/0000/__error0__/exception").starts_with("failed ("));

    // The folder is compared like the run, by both methods of reading.
    let equal = lab.weighbridge("compare-perf L L").expect_code(2);
    equal.expect_stdout("`L` failed: failed (");
    lab.weighbridge("compare R R").expect_code(3);
}

#[test]
fn extending_a_run_writes_the_folder_again_and_nothing_else_is_replaced() {
    let lab = Lab::new();
    let allow = lab.path("allow").display().to_string();
    lab.define_script("once-broken", &format!("test -e {allow} || exit 3; echo figure: 97"));
    let run = |into: &str, layout: &str, tests: &str| {
        lab.weighbridge(&format!("run {SHORT} --into {into} --layout run-perf={layout} -- {tests}"))
    };
    run("R", "L", "steady once-broken").expect_code(3);
    assert!(lab.path("L/Localhost/once-broken/0000/__error0__").is_dir());
    lab.write("allow", "");
    run("R", "L", "steady once-broken steady:kind=b").expect_code(0);
    assert!(!lab.path("L/Localhost/once-broken/0000/__error0__").exists(), "it has been measured since");
    assert!(lab.path("L/Localhost/once-broken/0000/result.json").is_file());
    assert!(lab.path("L/Localhost/steady/0001/result.json").is_file());

    // Another run's folder, a run, and files of the user are refused before anything is measured.
    lab.write("mine/notes.txt", "x");
    for folder in ["L", "R", "mine"] {
        let before = files(&lab.path(folder));
        let refused = run("other", folder, "steady").expect_code(1);
        refused.expect_stderr("is not empty: expected a new folder, or one that was written from this run");
        assert_eq!(files(&lab.path(folder)), before, "{folder}");
        assert!(!lab.path("other").exists(), "{}", refused.transcript());
    }
    let invalid = lab.weighbridge("run steady --layout pbench=L").expect_code(1);
    invalid.expect_stderr("expected `run-perf=DIR`");
}

#[test]
fn run_perf_measures_into_its_own_layout_unless_the_other_is_requested() {
    let lab = Lab::new();
    let ran = lab.weighbridge("run-perf --output out/1 -- steady").expect_code(0);
    ran.expect_stderr("weighbridge run --into out/1/.weighbridge --layout 'run-perf=out/1' -- steady");
    assert!(lab.path("out/1/Localhost/steady/0000/result.json").is_file());
    assert!(lab.path("out/1/.weighbridge/journal.jsonl").is_file());
    // Resuming it is possible, and changes nothing.
    lab.weighbridge("run-perf --output out/1 -- steady").expect_code(4);
    lab.weighbridge("run-perf --layout weighbridge --output out/2 -- steady").expect_code(0);
    assert!(lab.path("out/2/journal.jsonl").is_file());
    let refused = lab.weighbridge("run-perf --output out/2 -- steady").expect_code(1);
    refused.expect_stderr("`run-perf --layout weighbridge` resumes it");
    lab.weighbridge("compare-perf out/1 out/1").expect_code(0);
    lab.weighbridge("summary out/1").expect_code(1).expect_stderr("its run is in the folder `.weighbridge` in it");
    lab.weighbridge("summary out/1/.weighbridge").expect_code(0);

    // What is measured again from a snapshot writes no folder of the first machine.
    lab.weighbridge("snapshot out/1/.weighbridge -o s.tar.gz").expect_code(0);
    lab.weighbridge("unpack s.tar.gz").expect_code(0);
    crate::archive::rerun(&lab, "s", &[]).expect_code(0);
    assert!(!lab.path("s/out").exists());
}

/// The checks that decide, in the CSV file of a comparison or of run-perf's analysis.
fn checks(csv: &str) -> BTreeSet<String> {
    let ids = csv.lines().skip(1).filter_map(|line| line.split(',').next());
    ids.filter(|id| !id.ends_with(".error")).map(str::to_owned).collect()
}

#[test]
fn run_perfs_own_programs_read_what_is_written() {
    let Some(compare_perf) = program_of_run_perf("compare-perf") else { return };
    let lab = measured();
    let run = |program: &Path, line: &str| -> CommandResult {
        lab.run_command(Command::new(program).args(line.split_whitespace()).current_dir(lab.path("")))
    };
    // A second build, of the same tests.
    let tests = "steady:kind=[a,b] steady:kind=c,id=named himeno:grid=XS,threads=1 broken";
    lab.weighbridge(&format!("run {SHORT} --into R2 --layout run-perf=L2 -- {tests}")).expect_code(3);
    let analyze_perf = compare_perf.with_file_name("analyze-perf");
    run(&analyze_perf, "-c run-perf.csv -l model.json -t 4 -- L L2").expect_code(0);
    lab.weighbridge("analyze-perf -c ours.csv -- L L2").expect_code(0);
    // A case without axes has a comma in no name here but that of himeno.
    let expected = lab.read("run-perf.csv");
    for id in [
        "Localhost/steady/0000:./kind=b/throughput/figure.mean",
        "Localhost/named/0000:./kind=c/throughput/figure.stddev",
    ] {
        assert!(checks(&expected).contains(id) && checks(&lab.read("ours.csv")).contains(id), "{id}: {expected}");
    }
    // The model applies by the identifiers, here and there, and the test cases have the same names.
    let names = |xml: &str| -> BTreeSet<String> {
        let cases = xml.lines().filter(|line| line.contains("<testcase ") && !line.contains('*'));
        let attribute =
            |line: &str, name: &str| line.split(&format!(" {name}=\"")).nth(1)?.split('"').next().map(str::to_owned);
        cases
            .filter_map(|line| Some(format!("{} {}", attribute(line, "classname")?, attribute(line, "name")?)))
            .collect()
    };
    run(&compare_perf, "-t 1000 -s 1000 -l model.json --xunit run-perf.xml -- L L2").expect_code(0);
    lab.weighbridge("compare-perf -t 1000 -s 1000 -l model.json --xunit ours.xml -v -- L L2")
        .expect_code(2)
        .expect_stdout("model 0");
    let (expected, ours) = (names(&lab.read("run-perf.xml")), names(&lab.read("ours.xml")));
    assert!(
        expected.iter().any(|name| name.ends_with("ERROR/ERROR ERROR.error")) && expected.len() > 6,
        "{expected:?}"
    );
    assert_eq!(ours, expected);
    // What is missing fails there and here.
    std::fs::remove_dir_all(lab.path("L2/Localhost/named")).unwrap();
    run(&compare_perf, "-t 1000 -s 1000 -- L L2").expect_code(2).expect_stderr("Not present in target results");
    run(&compare_perf.with_file_name("diff-perf"), "L L2 L").expect_code(1);
    run(&compare_perf.with_file_name("strip-run-perf"), "L stripped").expect_code(0);
    run(&compare_perf, "L stripped").expect_code(0);
}

#[test]
fn missing_checks_and_errors_fail_compare_perf_and_gains_do_not() {
    let lab = Lab::new();
    for (name, level) in [("old", 1000.0), ("same", 1000.0), ("faster", 1500.0), ("slower", 500.0)] {
        write_build(&lab, name, &samples_around(level));
    }
    let code = |line: &str| lab.weighbridge(line).code;
    assert_eq!(
        [code("compare-perf old same"), code("compare-perf old faster"), code("compare-perf old slower")],
        [0, 0, 2]
    );
    // A test of the first build alone.
    lab.write("more/RUNPERF_METADATA", "build:1\n");
    crate::lab::copy_folder(&lab.path("old"), &lab.path("more"));
    crate::lab::copy_folder(&lab.path("old/Localhost"), &lab.path("more/Other"));
    assert_eq!([code("compare-perf more old"), code("compare --method tolerance more old")], [2, 3]);
    assert_eq!(code("compare --method tolerance --fail-on missing more old"), 2);
    // Nothing but missing checks.
    crate::lab::copy_folder(&lab.path("old/Localhost"), &lab.path("renamed/Other"));
    assert_eq!([code("compare-perf old renamed"), code("compare --method tolerance old renamed")], [2, 4]);
    // New ones are no fault of the last build.
    assert_eq!(code("compare-perf old more"), 0);
    lab.write("same/Localhost/fio/0000/__error0__/exception", "no disk\n");
    assert_eq!([code("compare-perf old same"), code("compare --method tolerance old same")], [2, 3]);
    let page = lab.weighbridge("compare-perf --html page.html --xunit r.xml old same").expect_code(2);
    assert!(
        lab.read("page.html").contains("2, something is missing, invalid, incomparable or ended in an error"),
        "{}",
        page.transcript()
    );
    let xml = lab.read("r.xml");
    for case in [
        r#"classname="Localhost/fio/0000:./read-4k/throughput" name="iops_sec.mean""#,
        r#"classname="Localhost/fio/0000:./ERROR/ERROR" name="ERROR.error""#,
        r#"classname="Localhost/*/*:./*-*/*" name="*.mean""#,
    ] {
        assert!(xml.contains(case), "{case}: {xml}");
    }
    // The names of a Weighbridge run are its own.
    lab.weighbridge(&format!("run {SHORT} --into W steady")).expect_code(0);
    lab.weighbridge("compare W W --method tolerance --junit w.xml").expect_code(0);
    let own = r#"classname="Localhost.steady" name="Localhost/steady/0000:kind=a/throughput/figure#mean""#;
    assert!(lab.read("w.xml").contains(own), "{}", lab.read("w.xml"));
}
