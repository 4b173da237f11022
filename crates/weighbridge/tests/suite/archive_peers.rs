//! Snapshots of matrices: the endpoints are packed and measured again.

use std::path::Path;

use crate::archive::rerun;
use crate::lab::Lab;

/// Flags for one small sample of a matrix.
const QUICK: &str = "--samples 1 --warm-up 0 --retakes 0 --iterations 2 --upload-bytes 1m --download-bytes 0 \
    --latency-iterations 20";

/// Writes an endpoint with another file that it imports, and returns its text in a peers file.
fn endpoint(lab: &Lab, id: &str, path: &str) -> String {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/endpoint.py");
    let (folder, name) = path.rsplit_once('/').unwrap();
    lab.write(&format!("{folder}/beside.py"), "");
    let text = std::fs::read_to_string(fixture).unwrap();
    let program = format!("#!/usr/bin/env -S python3 -B\nimport beside\n{text}");
    lab.write(path, &program);
    let permissions = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    std::fs::set_permissions(lab.path(path), permissions).unwrap();
    let folder = lab.path(folder);
    let folder = folder.display();
    format!(
        r#"
[[endpoints]]
id = "{id}"
supports = {{ transport = ["tcp"] }}
files = ["{folder}/{name}", "{folder}/beside.py"]
listener = {{ command = ["{folder}/{name}", "listen", "--transport", "{{transport}}", "--host", "{{host}}"] }}
dialer = {{ command = ["{folder}/{name}", "dial", "--transport", "{{transport}}", "--address", "{{address}}",
    "--send", "{{send}}", "--receive", "{{receive}}", "--iterations", "{{iterations}}"] }}
"#
    )
}

fn matrix(endpoints: &str) -> String {
    format!("axes = [\"transport\"]\n{endpoints}")
}

/// Packs the run R, and extracts it to `S` without what was packed.
fn snapshot(lab: &Lab, folders: &[&str]) {
    lab.weighbridge("snapshot R -o S.tar.gz").expect_code(0);
    lab.weighbridge("unpack S.tar.gz").expect_code(0);
    folders.iter().for_each(|folder| std::fs::remove_dir_all(lab.path(folder)).unwrap());
}

#[test]
fn an_endpoint_that_is_called_like_the_program_that_it_starts_is_measured_again() {
    let lab = Lab::new();
    let endpoint = endpoint(&lab, "wrapper", "wrappers/python3");
    lab.write("peers.toml", &matrix(&endpoint));
    lab.weighbridge(&format!("peers run peers.toml --into R {QUICK}")).expect_code(0);
    snapshot(&lab, &["wrappers"]);
    rerun(&lab, "S", &[]).expect_code(0).expect_stdout("wrapper");
}

#[test]
fn what_was_only_moved_has_the_same_definition_and_what_was_altered_has_not() {
    let lab = Lab::new();
    let script = |text: &str| {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/endpoint.py");
        std::fs::read_to_string(fixture).unwrap() + text
    };
    lab.write("scripts/endpoint.py", &script(""));
    let endpoint = r#"
[[endpoints]]
id = "script"
supports = { transport = ["tcp"] }
listener = { command = ["python3", "./scripts/endpoint.py", "listen", "--transport", "{transport}", "--host", "{host}"] }
dialer = { command = ["python3", "./scripts/endpoint.py", "dial", "--transport", "{transport}", "--address", "{address}",
    "--send", "{send}", "--receive", "{receive}", "--iterations", "{iterations}"] }
"#;
    lab.write("peers.toml", &matrix(endpoint));
    lab.weighbridge(&format!("peers run peers.toml --into R {QUICK}")).expect_code(0);
    snapshot(&lab, &["scripts"]);
    rerun(&lab, "S", &[]).expect_code(0);
    lab.write("scripts/endpoint.py", &script("\n# altered\n"));
    lab.weighbridge(&format!("peers run peers.toml --into altered {QUICK}")).expect_code(0);
    let hashes = |run: &str| {
        let provenance = lab.weighbridge(&format!("summary {run} --json")).json()["cells"][0]["provenance"].clone();
        ["dialer definition sha256", "listener definition sha256", "dialer endpoint.py sha256"]
            .map(|name| provenance[name].as_str().unwrap_or_else(|| panic!("{name}: {provenance:#}")).to_owned())
    };
    assert_eq!(hashes("S/rerun-1"), hashes("S/run"));
    let [was, altered] = ["S/run", "altered"].map(hashes);
    assert_eq!(was[..2], altered[..2]);
    assert_ne!(was[2], altered[2]);
}

#[test]
fn matrices_of_one_run_are_packed_together_whatever_their_paths() {
    let lab = Lab::new();
    let first = endpoint(&lab, "first", "a/of two words/endpoint");
    let second = endpoint(&lab, "second", "b/of two words/endpoint");
    lab.write("a/peers.toml", &matrix(&first));
    lab.write("b/peers.toml", &matrix(&second));
    lab.weighbridge(&format!("peers run a/peers.toml --into R {QUICK}")).expect_code(0);
    lab.weighbridge(&format!("peers run b/peers.toml --into R {QUICK}")).expect_code(0);
    let inputs = lab.read_json("R/inputs.json");
    let programs: Vec<&str> =
        inputs["programs"].as_array().unwrap().iter().map(|program| program["as"].as_str().unwrap()).collect();
    let expected =
        ["of two words/beside.py", "of two words/endpoint", "of two words-2/beside.py", "of two words-2/endpoint"];
    assert_eq!(programs, expected.map(|path| format!("programs/peers/{path}")), "{inputs:#}");
    snapshot(&lab, &["a", "b"]);
    rerun(&lab, "S", &[]).expect_code(0);
    let cells = |run: &str| {
        let study = lab.weighbridge(&format!("summary S/{run} --json")).json();
        study["cells"].as_array().unwrap().iter().map(|cell| cell["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!((cells("rerun-1").len(), cells("rerun-1")), (2, cells("run")));
}

#[test]
fn a_refused_run_does_not_change_the_inputs() {
    let lab = Lab::new();
    let text = matrix(&endpoint(&lab, "endpoint", "e/endpoint"));
    lab.write("peers.toml", &text);
    let line = format!("peers run peers.toml --into R {QUICK}");
    lab.weighbridge(&line).expect_code(0);
    let inputs = lab.read("R/inputs.json");
    lab.write("peers.toml", &text.replace("\"dial\",", "\"dial\", \"--fault\", \"none\","));
    lab.write("e/beside.py", "changed = True");
    lab.weighbridge(&line.replace("--samples 1", "--samples 2")).expect_code(1).expect_stderr("dialer definition");
    assert_eq!(lab.read("R/inputs.json"), inputs);
}

#[test]
fn a_killed_run_has_its_inputs() {
    let lab = Lab::new();
    lab.write("peers.toml", &matrix(&endpoint(&lab, "endpoint", "e/endpoint")));
    let mut child = lab.start(&format!("peers run peers.toml --into R {QUICK}"));
    let is_measuring =
        || std::fs::read_to_string(lab.path("R/journal.jsonl")).is_ok_and(|text| text.contains("\"attempt-started\""));
    wb_test_net::wait_until("the first attempt to start", is_measuring);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(lab.read_json("R/inputs.json")["programs"][1]["as"], "programs/peers/e/endpoint");
    assert_eq!(lab.wait_for_processes(), [""; 0]);
}

#[test]
fn matrices_of_a_plan_are_packed_with_it() {
    let lab = Lab::new();
    let endpoint = endpoint(&lab, "planned", "programs/endpoint");
    lab.write("plans/peers.toml", &matrix(&endpoint));
    let workload = "iterations = 2\nupload-bytes = \"1m\"\ndownload-bytes = 0\nlatency-iterations = 20\n";
    lab.write("plans/plan.toml", &format!("[[peers]]\nfile = 'peers.toml'\n{workload}"));
    let flags = "--samples 1 --warm-up 0 --retakes 0";
    lab.weighbridge(&format!("run --plan plans/plan.toml --into R {flags}")).expect_code(0);
    snapshot(&lab, &["programs", "plans"]);
    rerun(&lab, "S", &[]).expect_code(0).expect_stdout("planned");
}
