//! Measures and prints the overhead of the agent, without asserting anything: `cargo test -p wb-agent --release --test cost -- --ignored --nocapture --test-threads=1`.

use std::time::Instant;

use crate::common::with_worker;
use wb_agent::Command;
use wb_model::Nanos;

#[test]
#[ignore = "prints figures"]
fn overhead_of_telemetry() {
    with_worker(|worker| async move {
        let group = worker.new_group().await.unwrap();
        let recording = group.record(Nanos(1_000_000_000)).await.unwrap();
        group.spawn(Command::new(["sleep", "10"])).await.unwrap().wait(None).await.unwrap();
        let telemetry = recording.finish().await.unwrap().telemetry;
        let own = telemetry.end.own_cpu_ns - telemetry.start.own_cpu_ns;
        let mut costs: Vec<u64> = telemetry.series.iter().map(|reading| reading.cost_ns / 1000).collect();
        costs.sort_unstable();
        println!("{} readings at 1 s, CPU time of one: {costs:?} µs", costs.len());
        println!("agent and controller together: {:.1} ms in 10 s", own as f64 / 1e6);
    });
}

#[test]
#[ignore = "prints figures"]
fn overhead_of_an_attempt() {
    with_worker(|worker| async move {
        let mut times: Vec<u128> = Vec::new();
        for _ in 0..200 {
            let start = Instant::now();
            let group = worker.new_group().await.unwrap();
            group.spawn(Command::new(["true"])).await.unwrap().wait(None).await.unwrap();
            group.close().await.unwrap();
            times.push(start.elapsed().as_micros());
        }
        times.sort_unstable();
        println!(
            "group, spawn, wait, fetch, teardown of `true`: median {} µs, 90 % within {} µs",
            times[100], times[180]
        );
    });
}
