//! Whether `elapsed` is the program's own time: the same program as a sample of an agent and spawned plainly, in turns.

use crate::{
    bench_env::BenchEnv,
    limits::{BenchFigure, FigureBound, LimitCheck},
};
use std::{
    fmt::Display,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use wb_agent::{Capture, Command as Line, Worker};
use wb_model::Nanos;
use wb_stats::Samples;

/// The program: some 20 ms of computing, and no file that is read.
const PROGRAM: [&str; 3] = ["/bin/sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"];
/// The pauses before each start, in milliseconds: how long joining a cgroup takes depends on when the last one was.
const GAPS: [u64; 3] = [0, 10, 100];
/// Pairs at each gap.
const PAIRS: usize = 151;
/// The time between two readings of telemetry, as it is by default.
const INTERVAL: Nanos = Nanos(1_000_000_000);

pub(crate) fn limit(place: &BenchEnv) -> LimitCheck<'_> {
    LimitCheck::new("harness, elapsed against a plain spawn", || paired_differences(place))
}

/// The median paired difference at each gap.
fn paired_differences(place: &BenchEnv) -> Result<Vec<BenchFigure>, String> {
    let program = place.weighbridge_program()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(to_message)?;
    runtime.block_on(async {
        let worker = Worker::local(&program).await.map_err(to_message)?;
        let mut figures = Vec::new();
        for gap in GAPS {
            let (mut plain_times, mut differences) = (Vec::new(), Vec::new());
            for pair in 0..PAIRS {
                let mut turns = [SpawnMethod::Sampled, SpawnMethod::Plain];
                turns.rotate_left(pair % 2);
                let mut times = [0.0; 2];
                for turn in turns {
                    thread::sleep(Duration::from_millis(gap));
                    times[turn as usize] = time_sample(&worker, turn).await?;
                }
                let [sampled, plain] = times;
                plain_times.push(plain);
                differences.push(sampled - plain);
            }
            let median = |times: &[f64]| Samples::new(times).map(|times| times.median()).map_err(to_message);
            figures.push(BenchFigure::new(
                format!("plain, gaps of {gap} ms, median"),
                median(&plain_times)?,
                "ms",
                None,
            ));
            let what = format!("elapsed minus plain, gaps of {gap} ms, median");
            figures.push(BenchFigure::new(what, median(&differences)?, "ms", Some(FigureBound::Within(1.0))));
        }
        worker.close().await.map_err(to_message)?;
        Ok(figures)
    })
}

/// Who spawns the program.
#[derive(Clone, Copy)]
enum SpawnMethod {
    /// The agent, as a sample.
    Sampled,
    /// The bench itself.
    Plain,
}

/// How long the program runs, in milliseconds. Both are spawned after the same preparation: a plain spawn right after a
/// pause of 100 ms was seen to take 1.15 ms longer than a sample, presumably because the CPU had just been woken.
async fn time_sample(worker: &Worker, spawn: SpawnMethod) -> Result<f64, String> {
    let group = worker.new_group().await.map_err(to_message)?;
    let recording = group.record(INTERVAL).await.map_err(to_message)?;
    let milliseconds = match spawn {
        SpawnMethod::Sampled => {
            let process = group.spawn(Line::new(PROGRAM).stdout(Capture::Discard)).await.map_err(to_message)?;
            process.wait(None).await.map_err(to_message)?.elapsed().seconds() * 1e3
        }
        SpawnMethod::Plain => time_plain()?,
    };
    recording.finish().await.map_err(to_message)?;
    group.teardown().await.map_err(to_message)?;
    Ok(milliseconds)
}

/// How long it takes from right before it is spawned until it has been waited for, in milliseconds.
fn time_plain() -> Result<f64, String> {
    let mut command = Command::new(PROGRAM[0]);
    command.args(&PROGRAM[1..]).stdin(Stdio::null()).stdout(Stdio::null());
    let start = Instant::now();
    let ended = command.status().map_err(to_message)?;
    let took = start.elapsed();
    if ended.success() { Ok(took.as_secs_f64() * 1e3) } else { Err(format!("{} ended with {ended}", PROGRAM[0])) }
}

fn to_message(error: impl Display) -> String {
    error.to_string()
}
