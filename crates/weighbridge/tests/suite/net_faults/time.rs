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
        let windows = ["100ms", "300ms", "700ms"].map(|window| rr(&format!("duration={window}"), "64", "64")).concat();
        let result = lab.run_profile(&connected(strands, "protocol=tcp", &windows), "").completed();
        let seconds = [1, 2, 3].map(|position| result.transaction(0, position)["seconds"].as_f64().unwrap());
        let errors = seconds.iter().zip([0.1, 0.3, 0.7]).map(|(actual, expected)| f64::abs(actual - expected));
        assert!(errors.fold(0.0, f64::max) < 0.001, "{strands} strands: {seconds:?}");
    }
}

#[test]
fn rate_is_met() {
    let Some(lab) = Lab::alone(2) else { return };
    let _server = lab.serve("");
    let profile = connected(1, "protocol=tcp tcp_nodelay", &rr("duration=1s rate=1000", "64", "64"));
    let result = lab.run_profile(&profile, "").completed();
    let paced = result.transaction(0, 1);
    let rounds = number(&paced["rounds"]);
    // Never more; fewer only if other processes use the CPU at the end of the window.
    assert!((950..=1001).contains(&rounds), "{rounds} rounds");
    assert_eq!((number(&paced["response"]["count"]), number(&paced["lag"]["count"])), (rounds, rounds));
}

#[test]
fn unattainable_rate_reports_its_lag() {
    let Some(lab) = Lab::new(2) else { return };
    let _server = lab.serve("");
    let profile = connected(1, "protocol=tcp", &rr("duration=1s rate=10000000", "64", "64"));
    let result = lab.run_profile(&profile, "").completed();
    let paced = result.transaction(0, 1);
    let lag = number(&paced["lag"]["max-ns"]);
    // All but the first round were late, the last by most of the window.
    assert!(lag > 500_000_000, "{lag}");
    assert!(number(&paced["response"]["max-ns"]) >= lag);
}
