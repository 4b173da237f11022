//! `peers run --duration`: transfers of a fixed time, whose slow start is cut off.

use serde_json::Value;

use crate::lab::{CommandResult, Lab};
use crate::peers_run::{QUICK, matrix, median};

/// One sample of a transfer of a second, of uploads alone.
const SECOND: &str = "--samples 1 --warm-up 0 --retakes 0 --transport-select tcp --latency-iterations 0 --duration 1s";

/// Further attempts for endpoints without a fault: beside other tests, a transfer may really be unsteady.
const RETRIED: &str = "--attempts 6";

/// The cell of a run in which an endpoint dials one without a fault.
fn measure(dialer: &str, flags: &str) -> (CommandResult, Value) {
    let lab = Lab::new();
    lab.write("peers.toml", &matrix(&[dialer, "good"]));
    let name = format!("{dialer}?x?good?(tcp,?none)");
    let ran = lab.weighbridge(&format!("peers run peers.toml --select {name} --into R {SECOND} {flags}"));
    let study = lab.weighbridge("summary R --json").json();
    assert_eq!(lab.wait_for_processes(), [""; 0]);
    (ran, study["cells"][0].clone())
}

#[test]
fn both_directions_are_measured_for_a_fixed_time() {
    let (ran, cell) = measure("paced", RETRIED);
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    assert!(median(&cell, "upload") > 1e6 && median(&cell, "download") > 1e6, "{cell:#}");
    // At most half is cut off; reports are late on a busy machine.
    for metric in ["upload-omitted", "download-omitted"] {
        assert!((0.0..=0.75).contains(&median(&cell, metric)), "{cell:#}");
    }
    assert_eq!(cell["params"]["duration"], "1s", "{cell:#}");
    // What describes fixed bytes is no part of it.
    assert!(cell["params"]["iterations"].is_null() && cell["params"]["upload-bytes"].is_null(), "{cell:#}");
}

#[test]
fn the_slow_start_is_cut_off_unless_a_time_is_given() {
    // It takes two fifths of the time, in which a tenth of the rate is reached.
    let uploads = |flags: &str| measure("slow-start", &format!("--download-bytes 0 {RETRIED} {flags}"));
    let (ran, cell) = uploads("");
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    assert!((0.2..=0.75).contains(&median(&cell, "upload-omitted")), "{cell:#}");
    let (_, given) = uploads("--omit 300ms");
    assert!((0.3..0.5).contains(&median(&given, "upload-omitted")), "{given:#}");
    let (_, whole) = uploads("--omit 0s");
    assert_eq!(median(&whole, "upload-omitted"), 0.0, "{whole:#}");
    let of = |cell: &Value| median(cell, "upload");
    assert!(
        of(&whole) < 0.95 * of(&cell) && of(&whole) < 0.95 * of(&given),
        "{} {} {}",
        of(&whole),
        of(&cell),
        of(&given)
    );
}

#[test]
fn endpoints_that_lie_about_time_or_bytes_are_found() {
    for (fault, gate, figures) in [
        ("early-end", "work", "ended too early, after "),
        ("late-end", "work", "ended too late, after 2"),
        ("half-clock", "plausibility", "reports of "),
        ("counts-twice", "work", "the listener reported"),
        ("no-reports", "output", "no lines with `at` while it ran"),
        ("never-steady", "plausibility", "not steady within half of 1s"),
    ] {
        // Beside other tests, a transfer may really be unsteady, which is found first, and one that is not may be stopped
        // so often that its rate no longer grows.
        let is_disturbed = |cell: &Value| {
            let attempt = &cell["attempts"][0];
            let found = attempt["validity"]["figures"].as_str();
            if fault == "never-steady" {
                found.is_none() && attempt["disturbances"].as_array().is_some_and(|found| !found.is_empty())
            } else {
                found.is_some_and(|found| found.contains("not steady"))
            }
        };
        let mut measured = (0..3).map(|_| measure(fault, "--download-bytes 0 --attempts 1"));
        let (ran, cell) = measured.find(|(_, cell)| !is_disturbed(cell)).expect("an undisturbed transfer of three");
        assert_eq!(ran.code, 3, "{}", ran.transcript());
        let validity = &cell["attempts"][0]["validity"];
        assert_eq!(validity["gate"], gate, "{fault}: {cell:#}");
        assert!(validity["figures"].as_str().unwrap().contains(figures), "{fault}: {validity}");
    }
}

#[test]
fn a_fixed_time_is_another_measurement_than_fixed_bytes() {
    let lab = Lab::new();
    lab.write("peers.toml", &matrix(&["good"]));
    let line = "peers run peers.toml --transport-select tcp";
    lab.weighbridge(&format!("{line} --into R {QUICK}")).expect_code(0);
    lab.weighbridge(&format!("peers run peers.toml --into R {SECOND}")).expect_code(1).expect_stderr("duration");
}

#[test]
fn endpoints_that_cannot_be_given_a_duration_are_unsupported() {
    let lab = Lab::new();
    lab.write("peers.toml", &matrix(&["good"]).replace("duration = true", ""));
    let ran = lab.weighbridge(&format!("peers run peers.toml --into R {SECOND}")).expect_code(3);
    ran.expect_stdout("`good` has no `duration = true` in `peers.toml`");
    let engine = "axes = [\"transport\"]\nendpoints = [{ id = \"own\", dialect = \"engine\", supports = { transport = [\"tcp\"] } }]";
    lab.write("peers.toml", engine);
    let ran = lab.weighbridge(&format!("peers run peers.toml --into S {SECOND}")).expect_code(3);
    ran.expect_stdout("`own` transfers fixed bytes alone, like all of its dialect");
}

#[test]
fn what_has_no_meaning_beside_a_fixed_time_is_refused() {
    let lab = Lab::new();
    let text = matrix(&["good"]);
    lab.write("peers.toml", &text);
    for (flags, message) in [
        ("--duration 1s --iterations 3", "are mutually exclusive"),
        ("--duration 1s --as-suite", "are mutually exclusive"),
        ("--duration 1s --upload-bytes 4m", "a transfer of a fixed time has no size: expected 0, for none"),
        ("--duration 1s --omit 1s", "expected less than the `duration` 1s"),
        ("--duration 10ms", "expected at least 1s"),
        ("--omit 1s", "--duration"),
    ] {
        let ran = lab.weighbridge(&format!("peers run peers.toml --into R {flags}")).expect_code(1);
        ran.expect_stderr(message);
        assert!(!lab.path("R").exists(), "{flags}");
    }
    lab.write("peers.toml", &text.replace("\"{duration}\"", "\"5\""));
    lab.weighbridge("peers list peers.toml").expect_code(1).expect_stderr("`duration = true` requires `{duration}`");
}
