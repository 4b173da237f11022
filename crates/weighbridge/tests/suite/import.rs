//! `import`: results of other programs.

use std::path::Path;

use crate::lab::Lab;

/// Path of an example of results.
fn example(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../wb-import/tests/data").join(name).display().to_string()
}

#[test]
fn imported_results_can_be_read_by_every_command() {
    let lab = Lab::new();
    let files: Vec<String> =
        ["pbench.json", "fio.json", "fio-normal-json+.txt", "iperf3-udp.json", "hyperfine.json"].map(example).into();
    let ran = lab.weighbridge(&format!("import -o R --metadata build=8 {}", files.join(" "))).expect_code(0);
    ran.expect_stderr("hyperfine.json: hyperfine, 2 cells, 14 samples\n");
    for line in ["summary R", "format R", "study R", "solve R", "report R --html R/report.html --csv R/figures"] {
        let ran = lab.weighbridge(line).expect_code(0);
        assert!(!ran.err.contains("warning"), "{line}: {}", ran.err);
    }
    let page = lab.read("R/report.html");
    assert!(page.contains("hyperfine") && page.contains("6.1.0-9-amd64"));
    assert!(!lab.weighbridge("format R").out.contains("hunter2"));
    lab.weighbridge(&format!("import -o R {}", files.join(" "))).expect_code(4).expect_stderr("nothing to do");
}

#[test]
fn imported_runs_are_compared_in_the_right_direction() {
    let lab = Lab::new();
    let text = std::fs::read_to_string(example("hyperfine.json")).unwrap();
    let mut slower: serde_json::Value = serde_json::from_str(&text).unwrap();
    for result in slower["results"].as_array_mut().unwrap() {
        for time in result["times"].as_array_mut().unwrap() {
            *time = (time.as_f64().unwrap() * 1.2).into();
        }
    }
    lab.write("slower.json", &slower.to_string());
    assert_eq!(lab.weighbridge(&format!("import -o old {}", example("hyperfine.json"))).code, 0);
    lab.weighbridge("import -o new slower.json").expect_code(0);
    lab.weighbridge("compare old new --trust-single-run").expect_code(2);
    lab.weighbridge("compare new old --trust-single-run").expect_code(0);
    lab.weighbridge("compare old old").expect_code(0);
}

#[test]
fn files_that_cannot_be_imported_are_skipped_with_a_warning() {
    let lab = Lab::new();
    lab.write("in/bad.json", "{\"fio version\": \"fio-3.33\", \"jobs\": [");
    std::fs::copy(example("fio.json"), lab.path("in/good.json")).unwrap();
    let ran = lab.weighbridge("import -o R in").expect_code(3);
    let warning = "warning: in/bad.json: invalid fio results: line 1, column 37: EOF while parsing a list; skipped";
    ran.expect_stderr(warning);
    let strict = lab.weighbridge("import --strict -o S in").expect_code(1);
    assert!(strict.err.starts_with("error: in/bad.json: invalid fio results"), "{}", strict.err);
    assert!(!lab.path("S").exists());
    let alone = lab.weighbridge("import -o S in/bad.json nowhere.json").expect_code(3);
    alone.expect_stderr("error: nothing could be imported\nhelp: supported formats: pbench, fio,");
    let failed = lab.weighbridge(&format!("import -o F {}", example("google-benchmark.json"))).expect_code(3);
    failed.expect_stdout("BM_Open: no such file");
}

#[test]
fn run_perf_errors_are_imported_and_non_numeric_serials_with_a_flag() {
    let lab = Lab::new();
    for attempt in ["0", "1", "2"] {
        lab.write(&format!("b/Tuned/fio/{attempt}/__error0__/exception"), "the guest did not boot");
    }
    lab.write("b/Tuned/fio/odd/result.json", &std::fs::read_to_string(example("pbench.json")).unwrap());
    std::fs::copy(example("hyperfine.json"), lab.path("b/hf.json")).unwrap();
    lab.write("b/RUNPERF_METADATA", "build:1");
    let ran = lab.weighbridge("import -o R b").expect_code(3);
    assert_eq!(ran.out.matches("failed: crashed (the guest did not boot)").count(), 3, "{}", ran.out);
    ran.expect_stderr("note: skipped 1 result under a non-numeric serial");
    lab.weighbridge("import -o R b").expect_code(4);
    lab.weighbridge("import -o R --include-incorrect b").expect_code(0).expect_stdout("iteration=read-4KiB");
}

#[test]
fn invalid_arguments_are_refused() {
    let lab = Lab::new();
    let shadow = lab.weighbridge(&format!("import -o R --test fio {}", example("fio.json"))).expect_code(1);
    assert!(shadow.err.starts_with("error: invalid test name `fio` for imported results"), "{}", shadow.err);
    let format = lab.weighbridge(&format!("import -o R --format xml {}", example("fio.json"))).expect_code(1);
    format.expect_stderr("unknown format `xml`: expected one of pbench, fio, iperf3,");
    std::fs::create_dir(lab.path("empty")).unwrap();
    lab.weighbridge("import -o R empty").expect_code(4);
    lab.write("letters/mine.txt", "mine");
    let foreign = lab.weighbridge(&format!("import -o letters {}", example("fio.json"))).expect_code(1);
    foreign.expect_stderr("is not a run folder");
}
