//! A made matrix: three implementations with five combinations, three baselines, failures and impossible figures.

use std::collections::BTreeMap;

use wb_model::{AttemptOutcome, Gate, Nanos};
use wb_report::peers::{
    BaselineScope, CellStatus, MatrixCell, MatrixMetadata, MatrixResults, Scenario, ScenarioSamples,
};

const IMPLEMENTATIONS: [(&str, f64); 3] = [("rust-v0.56", 1.0), ("go-v0.45", 0.8), ("dotnet-v1.0", 0.12)];

const COMBINATIONS: [(&[&str], f64); 5] = [
    (&["tcp", "noise", "yamux"], 3.6),
    (&["tcp", "noise", "mplex"], 3.4),
    (&["tcp", "tls", "yamux"], 3.7),
    (&["tcp", "tls", "mplex"], 3.5),
    (&["quic-v1"], 1.9),
];

/// Bytes per second of a rate in Gbit/s.
fn rate(gbps: f64) -> f64 {
    gbps * 1e9 / 8.0
}

/// Samples around a centre, the same in each run.
fn samples(centre: f64, count: usize, spread: f64, seed: usize) -> Vec<f64> {
    let offset = |index: usize| ((index * 7919 + seed * 104_729) % 1000) as f64 / 500.0 - 1.0;
    (0..count).map(|index| centre * (1.0 + spread * offset(index) * offset(index + 3).abs().sqrt())).collect()
}

/// Number of samples of a scenario.
const SAMPLES: usize = 6;

/// Iterations, which each of the samples has alike.
fn scenario(iterations: usize, values: Vec<f64>) -> ScenarioSamples {
    let samples = wb_stats::Samples::new(&values).map(|values| vec![values.median(); SAMPLES]).unwrap_or_default();
    ScenarioSamples { iterations, samples, values, ..ScenarioSamples::default() }
}

fn cell(dialer: &str, listener: &str, values: &[&str], status: CellStatus) -> MatrixCell {
    MatrixCell {
        name: format!("{dialer} x {listener} ({})", values.join(", ")),
        dialer: dialer.to_owned(),
        listener: listener.to_owned(),
        values: (0..3).map(|index| values.get(index).map(|value| (*value).to_owned())).collect(),
        scope: BaselineScope::default(),
        status,
        samples: SAMPLES,
        disturbed: 0,
        scenarios: BTreeMap::new(),
        connect: Vec::new(),
        first_byte: Vec::new(),
    }
}

/// A measured cell with these rates in Gbit/s and this latency in milliseconds.
fn measured(mut cell: MatrixCell, [upload, download, millis]: [f64; 3], seed: usize) -> MatrixCell {
    cell.scenarios.insert(Scenario::Upload, scenario(10, samples(rate(upload), 10, 0.03, seed)));
    cell.scenarios.insert(Scenario::Download, scenario(10, samples(rate(download), 10, 0.04, seed + 1)));
    let mut latencies = samples(millis * 1e6, 100, 0.08, seed + 2);
    latencies[17] = millis * 1.6e6;
    cell.scenarios.insert(Scenario::Latency, scenario(100, latencies));
    cell.connect = samples(millis * 4e6, 5, 0.1, seed);
    cell.first_byte = samples(millis * 1.3e6, 10, 0.1, seed);
    cell
}

/// The results of the matrix.
pub(crate) fn results() -> MatrixResults {
    let baseline = |id: &str, transport: &str, status| cell(id, id, &[transport], status);
    let timeout = CellStatus::Fail(AttemptOutcome::Timeout { after: Nanos(300_000_000_000) });
    let mut baselines = vec![
        measured(baseline("https", "https", CellStatus::Pass), [6.1, 6.4, 0.31], 1),
        baseline("quic-go", "quic", timeout.clone()),
        measured(baseline("iperf", "tcp", CellStatus::Pass), [8.6, 8.5, 0.09], 2),
    ];
    baselines[2].scenarios.remove(&Scenario::Latency);
    let mut tests = Vec::new();
    for (dialer, dialer_factor) in IMPLEMENTATIONS {
        for (listener, listener_factor) in IMPLEMENTATIONS {
            for (combination, gbps) in COMBINATIONS {
                let factor = f64::min(dialer_factor, listener_factor);
                let figures = [gbps * factor, gbps * factor * 1.08, 0.36 / factor];
                let made = cell(dialer, listener, combination, CellStatus::Pass);
                tests.push(measured(made, figures, tests.len()));
            }
        }
    }
    spoil(&mut tests, &timeout);
    let metadata = MatrixMetadata {
        test_pass: "perf-000000-01-01-2026".to_owned(),
        started_at: "2026-01-01T00:00:00Z".to_owned(),
        completed_at: "2026-01-01T00:21:25Z".to_owned(),
        duration_seconds: 1285,
        platform: "x86_64".to_owned(),
        os: "Linux".to_owned(),
        worker_count: 1,
    };
    let axes = ["transport", "security", "muxer"].map(str::to_owned).to_vec();
    MatrixResults { metadata, axes, baselines, tests }
}

/// Makes some cells fail, and some figures impossible.
fn spoil(tests: &mut [MatrixCell], timeout: &CellStatus) {
    for test in tests {
        if (test.dialer.as_str(), test.listener.as_str()) == ("dotnet-v1.0", "dotnet-v1.0") {
            test.status = timeout.clone();
            test.scenarios.clear();
        }
        if test.name == "dotnet-v1.0 x go-v0.45 (quic-v1)" {
            let crash = "listener: exit status 101: <panicked> at \"quic\" & left";
            test.status = CellStatus::Fail(AttemptOutcome::Crashed { status: crash.to_owned() });
            test.scenarios.clear();
        }
        if test.name == "rust-v0.56 x rust-v0.56 (tcp, noise, mplex)" {
            let median = ScenarioSamples { are_medians: true, ..scenario(10, vec![rate(3.4)]) };
            test.scenarios.insert(Scenario::Upload, median);
        }
        if test.name.starts_with("rust-v0.56 x dotnet-v1.0 (tcp") {
            let figures = "195 Gbit/s is 22.68 times the 8.58 Gbit/s of the best baseline";
            test.status = CellStatus::Invalid { gate: Gate::Plausibility, figures: figures.to_owned() };
            test.scenarios.clear();
        }
    }
}
