//! `net sweep`: loads up to saturation, and the files that it writes.

use serde_json::Value;

use crate::net_faults::lab::{Lab, SERVER};

#[test]
fn loads_are_measured_up_to_saturation_and_a_knee_is_named_unless_runs_overlap() {
    let Some(lab) = Lab::new(2) else { return };
    let server = lab.serve("");
    let files = "--html sweep.html --svg sweep.svg --png sweep.png";
    let line = format!("net sweep {} -t 300ms -n 2 --runs 3 --loads 5,10,1000 {files} --json", SERVER.v4());
    let ran = lab.run(&line);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let sweep: Value = serde_json::from_str(&ran.out).unwrap();
    let points = sweep["points"].as_array().unwrap();
    let loads: Vec<f64> = points.iter().map(|point| point["load-percent"].as_f64().unwrap()).collect();
    // A load that the machine cannot do because of what else runs on it ends the sweep as one beyond the capacity does.
    assert_eq!(loads, [5.0, 10.0, 1000.0][..loads.len()]);
    let share = |point: &Value| point["achieved"].as_f64().unwrap() / point["offered"].as_f64().unwrap();
    let (last, others) = points.split_last().unwrap();
    for point in others {
        assert_eq!(point["is-saturated"], false, "{sweep}");
        assert!((0.97..1.1).contains(&share(point)), "{point}");
    }
    for point in points {
        assert!(point["response"]["p99-ns"].as_u64() >= point["service"]["p99-ns"].as_u64(), "{point}");
    }
    // Ten times the capacity cannot be done, whatever else ran while the capacity was measured, and its queue makes
    // response times grow with time.
    assert_eq!(last["is-saturated"], true, "{sweep}");
    assert!(share(last) < if loads.len() == 3 { 0.9 } else { 0.97 }, "{sweep}");
    assert!(
        loads.len() == 1 || last["response"]["p50-ns"].as_u64() > points[0]["response"]["p50-ns"].as_u64(),
        "{sweep}"
    );
    // Whether the runs of both other loads overlap depends on what else runs on the machine.
    let knee = sweep["knee-percent"].as_f64();
    assert!(knee.is_none_or(|knee| knee < 1000.0), "{sweep}");
    let read = |name: &str| std::fs::read(lab.path(name)).unwrap();
    let page = String::from_utf8(read("sweep.html")).unwrap();
    let findings: &[&str] = match (knee, loads.len()) {
        (Some(_), _) => &["knee at"],
        (None, 1) => &["no knee, as the lowest load was not achieved"],
        (None, _) => &["knee undecided", "no knee, as the lowest load was disturbed"],
    };
    assert!(findings.iter().any(|finding| page.contains(finding)) && page.contains("<svg"), "{page}");
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
