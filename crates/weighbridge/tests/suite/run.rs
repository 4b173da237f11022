//! Runs: measured, resumed, extended.

use crate::lab::{CommandResult, Lab};

/// Flags for six quick samples and a warm-up.
const QUICK: &str = "--min-time 1ms --samples 6 --warm-up 1 --retakes 0 --precision 100";

#[test]
fn run_is_recorded_evaluated_and_summarised() {
    let lab = Lab::new();
    let ran = lab.weighbridge(&format!("run steady:kind=[a,b] {QUICK} --into R --metadata who=me")).expect_code(0);
    ran.expect_stdout("measured");
    for file in ["run.json", "journal.jsonl", "environment/world-0-before.json", "environment/world-0-after.json"] {
        assert!(lab.path("R").join(file).is_file(), "{file}");
    }
    for file in ["definition.json", "result.json", "kind=a/0005.0/telemetry.json", "kind=b/warm-up-0.0"] {
        assert!(lab.path("R/Localhost/steady/0000").join(file).exists(), "{file}");
    }
    let study = lab.weighbridge("summary R --json").json();
    assert_eq!(study["run"]["metadata"]["who"], "me");
    let values: Vec<f64> = study["cells"][0]["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|sample| sample["counted"] == true)
        .map(|sample| sample["values"]["throughput/figure"].as_f64().unwrap())
        .collect();
    assert_eq!(values, [97.0; 6], "the letter a");
    assert_eq!(lab.wait_for_processes(), [""; 0]);
}

#[test]
fn cell_with_another_definition_is_refused_with_the_difference() {
    let lab = Lab::new();
    lab.weighbridge(&format!("run steady {QUICK} --into R")).expect_code(0);
    let ran = lab.weighbridge(&format!("run steady:aslr=off {QUICK} --into R")).expect_code(1);
    ran.expect_stderr("aslr: `inherit` before, `off` now");
    ran.expect_stderr("help: choose another folder with --into");
}

#[test]
fn native_workload_is_measured_as_requested() {
    let lab = Lab::new();
    let ran = lab
        .weighbridge("run himeno:grid=XS,threads=1,isa=sse2 --min-time 20ms --samples 6 --retakes 0 --into R --json");
    let study = ran.json();
    let cell = &study["cells"][0];
    assert_eq!(cell["provenance"]["isa"], "sse2");
    assert!(cell["metrics"][0]["summary"]["median"].as_f64().unwrap() > 0.0);
    let attempts = cell["attempts"].as_array().unwrap();
    let (valid, invalid): (Vec<_>, Vec<_>) =
        attempts.iter().map(|attempt| &attempt["validity"]).partition(|validity| validity["validity"] == "valid");
    // Beside other tests, a sample may take several times as long as its calibration.
    let is_delayed = |validity: &&&serde_json::Value| validity["gate"] == "effort";
    assert!(!valid.is_empty() && invalid.iter().filter(is_delayed).count() == invalid.len(), "{invalid:?}");
}

#[test]
fn placement_is_set_and_verified() {
    let lab = Lab::new();
    lab.weighbridge(&format!("run steady {QUICK} --cpus 0 --no-aslr --huge-pages never --into R")).expect_code(0);
    let sample = lab.path("R/Localhost/steady/0000/kind=a/0000.0");
    let process = std::fs::read_dir(sample)
        .unwrap()
        .flatten()
        .find(|entry| entry.file_name().to_string_lossy().ends_with(".process.json"))
        .unwrap();
    let process: serde_json::Value = serde_json::from_slice(&std::fs::read(process.path()).unwrap()).unwrap();
    assert_eq!(process["effective"]["cpus"], serde_json::json!([0]));
    assert_eq!(process["effective"]["aslr"], false);
    assert_eq!(process["effective"]["huge-pages"], false);
}

#[test]
fn output_of_tools_is_recorded() {
    let lab = Lab::new();
    let mut command = lab.command(&format!("run steady {QUICK} --into R --tool"));
    let ran = command.arg("sh -c 'echo around; sleep 60'").output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let output = lab.path("R/Localhost/steady/0000/kind=a/0000.0/tool-0.stdout");
    assert_eq!(std::fs::read_to_string(output).unwrap(), "around\n");
    assert_eq!(lab.wait_for_processes(), [""; 0]);
}

#[test]
fn interrupted_run_ends_quickly_and_prints_the_resume_command() {
    let lab = Lab::new();
    lab.define(
        "slow",
        "name = \"slow\"\nsummary = \"sleeps\"\nversion = 1\ncommand = [\"sleep\", \"300\"]\n\n[[metric]]\nname = \"x\"\nclass = \"throughput\"\nunit = \"1/s\"\nprimary = true\nregex = '(\\d+)'\n",
    );
    let mut command = lab.command("run steady slow --min-time 1ms --samples 6 --retakes 0 --order sequential --into R");
    let child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let journal = lab.path("R/journal.jsonl");
    wb_test_net::wait_until("the slow test", || {
        std::fs::read_to_string(&journal).is_ok_and(|text| text.contains("Localhost/slow/0000:-\",\"key\""))
    });
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let started = std::time::Instant::now();
    let ran = CommandResult::wait_for(child).expect_code(130);
    assert!(started.elapsed().as_secs() < 60, "the run hung");
    ran.expect_stderr("; to resume:\n").expect_stderr("--into R");
    assert_eq!(lab.wait_for_processes(), [""; 0]);
    let cancelled = lab.journal("R").iter().any(|line| line["outcome"] == "cancelled");
    assert!(cancelled, "the interrupted attempt is recorded");
}

#[test]
fn run_whose_folder_is_moved_ends_and_leaves_nothing_in_its_place() {
    let lab = Lab::new();
    lab.define_script("slow", "sleep 0.5; echo figure: 97");
    let mut command = lab.command("run slow --samples 20 --warm-up 0 --into R");
    let child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let journal = lab.path("R/journal.jsonl");
    wb_test_net::wait_until("a sample", || {
        std::fs::read_to_string(&journal).is_ok_and(|text| text.contains("attempt-ended"))
    });
    std::fs::rename(lab.path("R"), lab.path("S")).unwrap();
    let ran = CommandResult::wait_for(child).expect_code(1);
    ran.expect_stderr("` was moved, removed or replaced by something else");
    assert!(!lab.path("R").exists(), "{}", ran.transcript());
    // What was recorded is there, and can be continued.
    let valid = |run: &str| lab.weighbridge(&format!("summary {run} --json")).json()["cells"][0]["attempts"].clone();
    assert!(valid("S").as_array().is_some_and(|attempts| !attempts.is_empty()));
    lab.weighbridge("run slow --samples 20 --warm-up 0 --into S").expect_code_of(&[0, 3]);
}

#[test]
fn findings_are_in_summary_format_and_report() {
    let lab = Lab::new();
    lab.define_figure(
        "restless",
        r#"
name = "restless"
summary = "prints another answer each time"
version = 1
command = ["sh", "-c", "echo answer $$; echo figure: 97"]
same-output = '^answer .*$'
"#,
    );
    lab.weighbridge("run restless --min-time 10s --samples 6 --warm-up 0 --into R").expect_code(0);
    for line in ["summary R", "format R", "report R"] {
        let shown = lab.weighbridge(line);
        let words: Vec<&str> = shown.out.split_whitespace().collect();
        let words = words.join(" ");
        for finding in [
            "figure is exactly 97 1/s in all 6 samples",
            "less than min-time (10s): short samples vary more",
            "the standard output is not the same in every sample",
        ] {
            assert!(words.contains(finding), "{line}: {finding}: {}", shown.transcript());
        }
    }
}

#[test]
fn one_sample_of_the_pbench_rule_is_one_sample() {
    let lab = Lab::new();
    let cell = "uperf:samples=1,runtime=100ms,test-types=rr,message-sizes=64,protocols=tcp,instances=1";
    lab.weighbridge(&format!("plan {cell} --warm-up 0")).expect_stdout(" 0+1 ");
    let ran = lab.weighbridge(&format!("run {cell} --warm-up 0 --into R --json")).expect_code(0);
    let cell = &ran.json()["cells"][0];
    assert_eq!(cell["outcome"]["outcome"], "measured");
    assert_eq!(cell["attempts"].as_array().unwrap().len(), 1);
    assert_eq!(cell["attempts"][0]["counted"], true);
}
