//! Accuracy of windows and rates.

use super::{
    lab::Lab,
    profiles::{connected, rr},
    result::number,
};

#[test]
fn windows_have_the_specified_length() {
    let Some(lab) = Lab::new(2) else { return };
    let _server = lab.serve("");
    for strands in [1, 300] {
        let windows = ["50ms", "100ms", "300ms"].map(|window| rr(&format!("duration={window}"), "64", "64")).concat();
        let result = lab.run_profile(&connected(strands, "protocol=tcp", &windows), "").completed();
        let seconds = [1, 2, 3].map(|position| result.transaction(0, position)["seconds"].as_f64().unwrap());
        let errors = seconds.iter().zip([0.05, 0.1, 0.3]).map(|(actual, expected)| f64::abs(actual - expected));
        assert!(errors.fold(0.0, f64::max) < 0.001, "{strands} strands: {seconds:?}");
    }
}

#[test]
fn rate_is_met() {
    let Some(lab) = Lab::new(2) else { return };
    let _server = lab.serve("");
    let profile = connected(1, "protocol=tcp tcp_nodelay", &rr("duration=300ms rate=1000", "64", "64"));
    let result = lab.run_profile(&profile, "").completed();
    let paced = result.transaction(0, 1);
    let (rounds, schedule) = (number(&paced["rounds"]), &paced["scheduled-rounds"]);
    let not_started = number(&schedule["not-started"]);
    // The schedule is that of the rate. How much of it begins depends on what else uses the CPUs.
    assert_eq!(number(&schedule["due"]), 300, "{paced}");
    // One may be open at the end.
    assert!((299..=300).contains(&(rounds + not_started)), "{paced}");
    for latency in ["response", "lag"] {
        assert!((rounds..=300).contains(&number(&paced[latency]["count"])), "{latency}: {paced}");
    }
    // Each that was due and did not end is one that responded later than the end of the window.
    assert_eq!(number(&paced["response"]["count"]), 300, "{paced}");
}

#[test]
fn unattainable_rate_reports_its_lag() {
    let Some(lab) = Lab::new(2) else { return };
    let _server = lab.serve("");
    let profile = connected(1, "protocol=tcp", &rr("duration=300ms rate=10000000", "64", "64"));
    let result = lab.run_profile(&profile, "").completed();
    let paced = result.transaction(0, 1);
    let lag = number(&paced["lag"]["max-ns"]);
    // All but the first round were late, the last by most of the window.
    assert!(lag > 150_000_000, "{lag}");
    assert!(number(&paced["response"]["max-ns"]) >= lag);
}
