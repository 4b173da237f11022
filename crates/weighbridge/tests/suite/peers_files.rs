//! What a peers file defines beside its endpoints: scenarios, checks, servers, and what baselines are shown beside.

use crate::lab::Lab;
use crate::peers_run::{QUICK, assert_round_trip, matrix, median, quick_twice, script_matrix};
use crate::ssh;

#[test]
fn scenarios_of_a_file_are_measured_beside_the_others() {
    let lab = Lab::new();
    let scenarios = r#"
[[scenarios]]
id = "echo"
send = "2m"
receive = "2m"
iterations = 3

[[scenarios]]
id = "query"
send = 200
receive = "16k"
iterations = 20
measure = "latency"
"#;
    lab.write("peers.toml", &format!("{}{scenarios}", matrix(&["good"])));
    lab.weighbridge(&format!("peers run peers.toml --transport-select tcp --into R {}", quick_twice())).expect_code(0);
    let cell = lab.weighbridge("summary R --json").json()["cells"][0].clone();
    assert!(median(&cell, "echo") > 1e6, "{cell:#}");
    assert!((0.0..150.0).contains(&median(&cell, "echo-of-ceiling")), "{cell:#}");
    assert_round_trip(&cell, "query");
    lab.weighbridge("peers report R").expect_code(0);
    let results = lab.read("R/peers-report/results.yaml");
    assert!(results.contains("    scenarios:\n      echo:\n        iterations: 6\n"), "{results}");
    assert!(results.contains("      query:\n        iterations: 40\n"), "{results}");
    assert!(lab.read("R/peers-report/results.md").contains("### Query (ms)"));
    assert!(lab.path("R/peers-report/boxplot-echo.svg").is_file());
    // Another number of iterations is another measurement.
    let changed = scenarios.replace("iterations = 3", "iterations = 2");
    lab.write("peers.toml", &format!("{}{changed}", matrix(&["good"])));
    let ran = lab.weighbridge(&format!("peers run peers.toml --transport-select tcp --into R {QUICK}"));
    assert_eq!(ran.code, 1, "{}", ran.transcript());
}

#[test]
fn figures_outside_of_the_bounds_of_a_check_are_invalid() {
    for (check, figures) in [
        ("metric = \"throughput/upload\"\nmin = 1e15", "throughput/upload: "),
        ("metric = \"latency/round-trip\"\nmax = 1\ngate = \"answer\"", "latency/round-trip: "),
    ] {
        let lab = Lab::new();
        lab.write("peers.toml", &format!("{}[[checks]]\ncells = \"(tcp, none)\"\n{check}\n", matrix(&["good"])));
        lab.weighbridge(&format!("peers run peers.toml --into R {QUICK}")).expect_code(3);
        let cells = lab.weighbridge("summary R --json").json()["cells"].clone();
        let validity = |index: usize| cells[index]["attempts"][0]["validity"].clone();
        let found = validity(0)["figures"].as_str().unwrap_or_else(|| panic!("{cells:#}")).to_owned();
        assert!(found.starts_with(figures), "{found}");
        assert_eq!(validity(0)["gate"], if check.contains("answer") { "answer" } else { "plausibility" });
        assert_eq!(validity(1)["validity"], "valid", "the check is about other cells: {cells:#}");
    }
}

#[test]
fn a_check_or_expected_failure_of_what_does_not_exist_is_refused() {
    for (entry, message, help) in [
        (
            "[[checks]]\nmetric = \"throughput/uplod\"\nmin = 1",
            "invalid check of `throughput/uplod`: its cells do not have this metric",
            "throughput/upload",
        ),
        (
            "[[checks]]\ncells = \"(tpc\"\nmetric = \"throughput/upload\"\nmin = 1",
            "invalid check of `(tpc`: no cell of the matrix has such a name",
            "weighbridge peers list FILE",
        ),
        (
            "[[expected-failures]]\ncells = \"god x good\"\nreason = \"r\"\nuntil = \"2999-01-01\"",
            "invalid expected failure of `god x good`: no cell of the matrix has such a name",
            "weighbridge peers list FILE",
        ),
    ] {
        let lab = Lab::new();
        lab.write("peers.toml", &format!("{}{entry}\n", matrix(&["good"])));
        let ran = lab.weighbridge(&format!("peers run peers.toml --into R {QUICK}"));
        ran.expect_code(1).expect_stderr(message).expect_stderr(help);
        assert!(!lab.path("R").exists(), "{entry}");
    }
}

#[test]
fn an_endpoint_listens_on_its_server() {
    let Some((hosts, _)) = ssh::lab(2) else { return };
    let lab = Lab::with_ssh(&hosts);
    let text = matrix(&["good"]).replacen("id = \"good\"", "id = \"good\"\nserver = \"far\"", 1);
    let servers = "\n[servers]\nfar = \"host1\"\n";
    lab.write("peers.toml", &format!("{text}{servers}"));
    let line =
        format!("peers run peers.toml --transport-select tcp --hosts {} --into R {QUICK}", ssh::addresses(1..=2));
    ssh::weighbridge(&hosts, &lab, &line).expect_code(0);
    let cell = lab.weighbridge("summary R --json").json()["cells"][0].clone();
    let folder = cell["attempts"][0]["folder"].as_str().unwrap();
    let address = wb_test_net::Host(1).v4().to_string();
    assert!(lab.read(format!("R/{folder}/listener.stdout")).contains(&address), "{cell:#}");
    // A flag prevails over the file.
    ssh::weighbridge(&hosts, &lab, &format!("{} --listener-on host2", line.replace("--into R", "--into S")))
        .expect_code(0);
    let cell = lab.weighbridge("summary S --json").json()["cells"][0].clone();
    let folder = cell["attempts"][0]["folder"].as_str().unwrap();
    let address = wb_test_net::Host(2).v4().to_string();
    assert!(lab.read(format!("S/{folder}/listener.stdout")).contains(&address), "{cell:#}");
    // A server that does not take part is named.
    lab.write("peers.toml", &format!("{text}\n[servers]\nfar = \"host7\"\n"));
    let ran = ssh::weighbridge(&hosts, &lab, &line.replace("--into R", "--into T")).expect_code(1);
    ran.expect_stderr("unknown worker `host7`");
}

#[test]
fn a_baseline_is_shown_beside_the_cells_that_it_names() {
    let lab = Lab::new();
    let baseline = matrix(&["better"]);
    let baseline = baseline.split_once("[[endpoints]]").unwrap().1.replace("\"udp\"", "\"unused\"");
    let baseline = baseline.replacen("id = \"better\"", "id = \"better\"\nceiling = { transport = \"udp\" }", 1);
    lab.write("peers.toml", &format!("{}\n[[baselines]]{baseline}", matrix(&["good"])));
    lab.weighbridge(&format!("peers run peers.toml --into R {QUICK}")).expect_code(0);
    lab.weighbridge("peers report R").expect_code(0);
    let page = lab.read("R/peers-report/results.html");
    let overhead = page.split_once("id=\"overhead\"").map(|(_, rest)| rest).unwrap_or_else(|| panic!("{page}"));
    let row = |name: &str| {
        let position = overhead.find(name).unwrap_or_else(|| panic!("{name}: {overhead}"));
        overhead[position..].split_once("</tr>").unwrap().0.to_owned()
    };
    assert!(row("good x good (udp)").contains(" better"), "{}", row("good x good (udp)"));
    assert!(!row("good x good (tcp, none)").contains(" better"), "{}", row("good x good (tcp, none)"));
}

/// A matrix of the fixture as a script beside the peers file.
fn matrix_with_script(lab: &Lab, script: &str) {
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/endpoint.py");
    let text = std::fs::read_to_string(fixture).unwrap();
    lab.write(script.trim_start_matches("./"), &text);
    lab.write("peers.toml", &script_matrix(script, &["good"]));
}

// A bare file name had no folder.
#[test]
fn programs_are_relative_to_the_folder_of_a_bare_file_name() {
    let lab = Lab::new();
    matrix_with_script(&lab, "./script.py");
    lab.weighbridge(&format!("peers run peers.toml --transport-select tcp --into R {QUICK}")).expect_code(0);
}

// Scripts of endpoints were not hashed, so that a changed one was resumed.
#[test]
fn a_cell_whose_script_was_changed_is_not_resumed() {
    let lab = Lab::new();
    matrix_with_script(&lab, "./script.py");
    let line = format!("peers run peers.toml --transport-select tcp --into R {QUICK}");
    lab.weighbridge(&line).expect_code(0);
    let text = lab.read("script.py");
    lab.write("script.py", &format!("{text}# changed\n"));
    lab.weighbridge(&line.replace(QUICK, &quick_twice()))
        .expect_code(1)
        .expect_stderr("with another `dialer script.py`");
}

#[test]
fn invalid_keys_of_peers_files_are_errors() {
    let text = matrix(&["good"]);
    let with = |key: &str| text.replacen("id = \"good\"", &format!("id = \"good\"\n{key}"), 1);
    for (text, error) in [
        (with("server = \"far\""), "unknown server `far`"),
        (with("ceiling = { transport = \"tcp\" }"), "`ceiling` and `comparison` are keys of baselines"),
        (with("scenarios = [\"uplaod\"]"), "did you mean `upload`?"),
        (with("container = { image = \"x\", options = [\"--name=y\"] }"), "invalid option `--name=y` of a container"),
        (text.replace("\"muxer\"]\n", "\"muxer\", \"send\"]\n"), "it is the name of a placeholder"),
        (
            format!("{text}[[expected-failures]]\ncells = \"x\"\nreason = \"y\"\nuntil = \"2026-02-30\"\n"),
            "invalid `until` `2026-02-30`",
        ),
        (format!("{text}[[baselines]]\nid = \"b\"\nceiling = {{ transport = \"tpc\" }}\n"), "did you mean `tcp`?"),
        (format!("{text}[[scenarios]]\nid = \"upload\"\nsend = 1\niterations = 1\n"), "`upload` occurs twice"),
        (format!("{text}[[scenarios]]\nid = \"empty\"\niterations = 1\n"), "expected iterations, and bytes"),
        (format!("{text}[[checks]]\nmetric = \"upload\"\nmin = 1\n"), "invalid metric `upload` of a check"),
        (format!("{text}[[checks]]\nmetric = \"throughput/upload\"\n"), "expected `min` or `max`"),
        (
            format!("{text}[[checks]]\ncells = \"~no\"\nmetric = \"throughput/upload\"\nmin = 1\n"),
            "unknown alias `~no`",
        ),
    ] {
        let lab = Lab::new();
        lab.write("peers.toml", &text);
        lab.weighbridge("peers run peers.toml --into R").expect_code(1).expect_stderr(error);
    }
}

#[test]
fn a_mistake_in_a_peers_file_is_shown_at_its_place() {
    let lab = Lab::new();
    lab.write(
        "peers.toml",
        "axes = [\"transport\"]\n\n[[endpoints]]\nid = \"a\"\nsupports = { transprot = [\"tcp\"] }\n",
    );
    lab.write("peers.yaml", "axes: [transport]\nendpoints:\n  - id: a\n    scenarios: [uplaod]\n    dialect: engine\n");
    let lines = ["peers run peers.toml", "peers list peers.yaml"];
    insta::assert_snapshot!(lines.map(|line| lab.weighbridge(line).transcript()).join("\n"), @r#"
    exit 1
    error: invalid endpoint `a`: unknown axis `transprot`
       ╭─[peers.toml:5:26]
     4 │ id = "a"
     5 │ supports = { transprot = ["tcp"] }
       ·                          ───┬───
       ·                             ╰── did you mean `transport`?
       ╰────
    help: the axes are transport

    exit 1
    error: invalid endpoint `a`: unknown scenario `uplaod`
       ╭─[peers.yaml:4:17]
     3 │   - id: a
     4 │     scenarios: [uplaod]
       ·                 ───┬───
       ·                    ╰── did you mean `upload`?
     5 │     dialect: engine
       ╰────
    help: expected one of upload, download, latency
    "#);
}

/// A row of the suites' `results.yaml`.
fn suite_row(dialer: &str, status: &str, figures: &str) -> String {
    format!(
        "  - name: {dialer} x b (tcp, noise, yamux)\n    dialer: {dialer}\n    listener: b\n    transport: tcp\n    \
         secureChannel: noise\n    muxer: yamux\n    status: {status}\n    upload: {figures}\n    download: {figures}\n    \
         latency: null\n"
    )
}

#[test]
fn imported_results_of_each_kind_of_file_are_reported_and_no_cause_is_invented() {
    let lab = Lab::new();
    let figures = "{iterations: 3, min: 1, q1: 1.1, median: 1.2, q3: 1.25, max: 1.3, outliers: [], \
                   samples: [1.0, 1.2, 1.3], unit: Gbps}";
    let rows = suite_row("a", "pass", figures) + &suite_row("c", "fail", "null");
    lab.write("results.yaml", &format!("metadata:\n  testPass: pass-7\nbaselineResults: []\ntestResults:\n{rows}"));
    lab.write(
        "benchmark-results.json",
        r#"{"benchmarks": [{"name": "throughput/upload", "unit": "bit/s", "results": [{"result": [8e8, 1.6e9],
            "implementation": "red", "version": "v1", "transportStack": "tcp"}]}],
            "pings": {"unit": "s", "results": [0.06]}, "iperf": {"unit": "bit/s", "results": [4e9]}}"#,
    );
    for (file, name, median) in [
        ("results.yaml", "a x b (tcp, noise, yamux)", "median: 1.2"),
        ("benchmark-results.json", "red-v1 x red-v1 (tcp)", "median: 1.2"),
        ("results.md", "a x b (tcp, noise, yamux)", "median: 1.2"),
    ] {
        let run = format!("of-{file}");
        if file == "results.md" {
            lab.write(file, &lab.read("of-results.yaml/peers-report/results.md"));
        }
        lab.weighbridge(&format!("import -o {run} {file}")).expect_code_of(&[0, 3]);
        lab.weighbridge(&format!("peers report {run}")).expect_code(0);
        let text = lab.read(format!("{run}/peers-report/results.yaml"));
        assert!(text.contains(&format!("name: {name}")) && text.contains(median), "{file}: {text}");
        assert!(!text.contains("crash"), "{text}");
        let page = lab.read(format!("{run}/peers-report/results.html"));
        assert!(page.contains(name), "{file}");
    }
    let text = lab.read("of-results.yaml/peers-report/results.yaml");
    assert!(text.contains("testPass: pass-7") && text.contains("`fail` without a cause in the file"), "{text}");
}

#[test]
fn own_results_are_imported_as_what_they_were() {
    let lab = Lab::new();
    lab.write("peers.toml", &matrix(&["good", "header-16"]));
    let select = "--transport-select tcp --test-select glob:*?x?good*";
    lab.weighbridge(&format!("peers run peers.toml {select} --into R {QUICK}")).expect_code(3);
    lab.weighbridge("peers report R --into own").expect_code(0);
    lab.weighbridge("import -o I own/results.yaml").expect_code_of(&[0, 3]);
    let cells = |run: &str| lab.weighbridge(&format!("summary {run} --json")).json()["cells"].clone();
    let (measured, imported) = (cells("R"), cells("I"));
    let of = |cells: &serde_json::Value, dialer: &str| {
        cells.as_array().unwrap().iter().find(|cell| cell["params"]["dialer"] == dialer).unwrap().clone()
    };
    for metric in ["upload", "download", "round-trip"] {
        let [was, is] = [&measured, &imported].map(|cells| median(&of(cells, "good"), metric));
        assert!((was / is - 1.0).abs() < 1e-3, "{metric}: {was} and {is}");
    }
    let gate = |cells: &serde_json::Value| of(cells, "header-16")["attempts"][0]["validity"].clone();
    assert_eq!(gate(&measured), gate(&imported), "{imported:#}");
    // And again the same results.
    lab.weighbridge("peers report I --into again").expect_code(0);
    let statuses = |file: &str| {
        let text = lab.read(file);
        text.lines()
            .filter(|line| line.contains("status:") || line.contains("gate:"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(statuses("own/results.yaml"), statuses("again/results.yaml"));
    // What disturbed a sample stays a mark of it.
    let mark = "    disturbances:\n      upload:\n        0: [\"steal 12 %\"]\n";
    // This machine may have disturbed one.
    let own = lab.read("own/results.yaml").replace("    disturbances:", "    other:");
    lab.write("marked.yaml", &own.replace("    sampleMedians:", &format!("{mark}    sampleMedians:")));
    lab.weighbridge("import -o M marked.yaml").expect_code_of(&[0, 3]);
    let marks: Vec<serde_json::Value> = of(&cells("M"), "good")["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|attempt| !attempt["disturbances"].as_array().is_none_or(Vec::is_empty))
        .cloned()
        .collect();
    assert_eq!(marks.len(), 1, "{marks:?}");
    assert_eq!(marks[0]["disturbances"], serde_json::json!(["steal 12 %"]));
    assert!(marks[0]["values"]["throughput/upload"].is_number());
    lab.weighbridge("peers report M --into marked").expect_code(0);
    assert!(lab.read("marked/results.yaml").contains(mark));
}
