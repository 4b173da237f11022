//! Accuracy of `elapsed`: the same program as a sample of an agent and as a plain child process, interleaved.

use crate::bench_env::BenchEnv;
use crate::benchmark::{BenchFigure, Benchmark, FigureBound};
use std::fmt::Display;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use wb_agent::{Capture, Command as AgentCommand, Worker};
use wb_model::Nanos;

/// The program: some 20 ms of computing, without file access.
const PROGRAM: [&str; 3] = ["/bin/sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"];
/// The pauses before each start, in milliseconds: the time to join a cgroup depends on when one was last joined.
const GAPS: [u64; 3] = [0, 10, 100];
/// Pairs for each pause.
const PAIRS: usize = 151;
/// The default interval of telemetry.
const INTERVAL: Nanos = Nanos(1_000_000_000);

pub(crate) fn limit(env: &BenchEnv) -> Benchmark<'_> {
    Benchmark::new("harness, elapsed against a plain spawn", || paired_differences(env))
}

fn paired_differences(env: &BenchEnv) -> Result<Vec<BenchFigure>, String> {
    let program = env.agent_program()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(to_message)?;
    runtime.block_on(async {
        let worker = Worker::local(&program).await.map_err(to_message)?;
        let mut figures = Vec::new();
        for gap in GAPS {
            let (mut plain_times, mut differences) = (Vec::new(), Vec::new());
            for pair in 0..PAIRS {
                let mut order = [SpawnMethod::Sampled, SpawnMethod::Plain];
                order.rotate_left(pair % 2);
                let mut times = [0.0; 2];
                for method in order {
                    thread::sleep(Duration::from_millis(gap));
                    times[method as usize] = time_sample(&worker, method).await?;
                }
                let [sampled, plain] = times;
                plain_times.push(plain);
                differences.push(sampled - plain);
            }
            figures.push(BenchFigure::median(format!("plain, pauses of {gap} ms"), &plain_times, "ms", None)?);
            let label = format!("elapsed minus plain, pauses of {gap} ms");
            figures.push(BenchFigure::median(label, &differences, "ms", Some(FigureBound::Within(1.0)))?);
        }
        worker.close().await.map_err(to_message)?;
        Ok(figures)
    })
}

#[derive(Clone, Copy)]
enum SpawnMethod {
    /// The agent spawns it, as for a sample.
    Sampled,
    Plain,
}

/// Runs the program and returns its time in milliseconds. Both methods have the same preparation: without it, a plain
/// spawn right after a pause of 100 ms took 1.15 ms longer than a sample, presumably because the CPU had just woken up.
async fn time_sample(worker: &Worker, spawn: SpawnMethod) -> Result<f64, String> {
    let group = worker.new_group().await.map_err(to_message)?;
    let recording = group.record(INTERVAL).await.map_err(to_message)?;
    let milliseconds = match spawn {
        SpawnMethod::Sampled => {
            let process = group.spawn(AgentCommand::new(PROGRAM).stdout(Capture::Discard)).await.map_err(to_message)?;
            process.wait(None).await.map_err(to_message)?.elapsed().seconds() * 1e3
        }
        SpawnMethod::Plain => time_plain()?,
    };
    recording.finish().await.map_err(to_message)?;
    group.close().await.map_err(to_message)?;
    Ok(milliseconds)
}

/// Runs the program as a child process; returns the milliseconds from before the spawn until after the wait.
fn time_plain() -> Result<f64, String> {
    let mut command = Command::new(PROGRAM[0]);
    command.args(&PROGRAM[1..]).stdin(Stdio::null()).stdout(Stdio::null());
    let start = Instant::now();
    let status = command.status().map_err(to_message)?;
    let elapsed = start.elapsed();
    if status.success() { Ok(elapsed.as_secs_f64() * 1e3) } else { Err(format!("{} ended with {status}", PROGRAM[0])) }
}

fn to_message(error: impl Display) -> String {
    error.to_string()
}
