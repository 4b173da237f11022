//! `net sweep`: loads up to saturation, and the files that it writes.

use serde_json::Value;

use crate::net_faults::lab::{Lab, SERVER};

#[test]
fn loads_are_measured_up_to_saturation_and_a_knee_is_named_unless_runs_overlap() {
    let Some(lab) = Lab::alone(2) else { return };
    let server = lab.serve("");
    let files = "--html sweep.html --svg sweep.svg --png sweep.png";
    let line = format!("net sweep {} -t 600ms -n 2 --runs 3 --loads 5,10,1000 {files} --json", SERVER.v4());
    let ran = lab.run(&line);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let sweep: Value = serde_json::from_str(&ran.out).unwrap();
    let points = sweep["points"].as_array().unwrap();
    let loads: Vec<f64> = points.iter().map(|point| point["load-percent"].as_f64().unwrap()).collect();
    assert_eq!(loads, [5.0, 10.0, 1000.0]);
    let share = |point: &Value| point["achieved"].as_f64().unwrap() / point["offered"].as_f64().unwrap();
    for point in &points[..2] {
        // Not saturated, or the sweep would have ended there.
        assert!((0.97..1.1).contains(&share(point)), "{point}");
        assert!(point["response"]["p99-ns"].as_u64() >= point["service"]["p99-ns"].as_u64(), "{point}");
    }
    // Ten times the capacity cannot be done, whatever else ran while the capacity was measured, and its queue makes
    // response times grow with time.
    assert_eq!(points[2]["is-saturated"], true, "{sweep}");
    assert!(share(&points[2]) < 0.9, "{sweep}");
    assert!(points[2]["response"]["p50-ns"].as_u64() > points[0]["response"]["p50-ns"].as_u64(), "{sweep}");
    // Whether the runs of both other loads overlap depends on what else runs on the machine.
    let knee = sweep["knee-percent"].as_f64();
    assert!(knee.is_none_or(|knee| knee < 1000.0), "{sweep}");
    let read = |name: &str| std::fs::read(lab.path(name)).unwrap();
    let page = String::from_utf8(read("sweep.html")).unwrap();
    let finding = if knee.is_some() { "knee at" } else { "knee undecided" };
    assert!(page.contains(finding) && page.contains("<svg"), "{page}");
    assert_eq!(String::from_utf8(read("sweep.svg")).unwrap().contains("% load"), knee.is_some());
    assert!(read("sweep.png").starts_with(b"\x89PNG"));
    drop(server);
}

#[test]
fn wrong_loads_and_hosts_are_errors() {
    let Some(lab) = Lab::new(2) else { return };
    for (flags, message) in [
        ("--loads 50,20", "in ascending order"),
        ("--loads 0", "expected a percentage"),
        ("--runs 0", "--runs"),
        ("--html none/sweep.html", "cannot write `none/sweep.html`: No such file or directory"),
        ("-t 1", "connection refused"),
    ] {
        let ran = lab.run(&format!("net sweep {} {flags}", SERVER.v4()));
        assert!(ran.code == Some(1) && ran.err.contains(message), "{flags}: {ran:?}");
    }
}
