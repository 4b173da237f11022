//! A coarse sizing of hashd: the largest of some footprints at which it keeps its rate.

use std::time::Duration;

use tokio::time::sleep;
use wb_agent::{Command, Stream};
use wb_hashd::{HashdConfig, HashdReport};
use wb_model::Bytes;
use wb_tests::contention::storage::Sizing;
use wb_tests::contention::{ContentionError, PreparedWorker, Slice};

/// Footprints, relative to the memory that hashd can have.
const FACTORS: [f64; 3] = [1.6, 1.3, 0.9];
/// Time in which it touches its footprint, and time in which its rate counts.
const WARM_UP: Duration = Duration::from_secs(25);
const WINDOW: usize = 10;

/// Tries footprints from the largest on.
pub(crate) async fn size(
    prepared: &PreparedWorker,
    config: &HashdConfig,
    target: f64,
    memory: Bytes,
) -> Result<Sizing, ContentionError> {
    for factor in FACTORS {
        let size = Bytes((memory.0 as f64 * factor) as u64);
        let mut config = HashdConfig { memory: Some(size), ..config.clone() };
        config.params.rps_target = Some(target);
        let (rate, usage) = run(prepared, &config).await?;
        println!("footprint {size}: {rate:.1} of {target} requests per second with {usage}");
        if rate >= 0.8 * target {
            return Ok(Sizing { size, usage });
        }
    }
    panic!("no footprint was served");
}

/// The rate of hashd in the last seconds, and its memory.
async fn run(prepared: &PreparedWorker, config: &HashdConfig) -> Result<(f64, Bytes), ContentionError> {
    let json = serde_json::to_string(config).unwrap();
    let command = Command::new([prepared.worker().program(), "exec", "hashd", &json]);
    let process = prepared.spawn(Slice::Workload, command).await?;
    sleep(WARM_UP + Duration::from_secs(WINDOW as u64)).await;
    let usage = prepared.memory_usage(Slice::Workload).await?;
    let output = process.read_output(Stream::Stdout).await?;
    process.signal(9).await?;
    process.wait(None).await?;
    let lines = String::from_utf8_lossy(&output).into_owned();
    let reports: Vec<HashdReport> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let last = &reports[reports.len().saturating_sub(WINDOW)..];
    let time: f64 = last.iter().map(|report| report.period).sum();
    let rate = last.iter().map(|report| report.completed).sum::<u64>() as f64 / time.max(WINDOW as f64);
    Ok((rate, usage))
}
