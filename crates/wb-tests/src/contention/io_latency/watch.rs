//! Reads the kernel's histograms once a second, on the machine itself: `weighbridge exec io-latency`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::histogram::{LatencyHistogram, parse};
use super::tracing;
use crate::contention::device::BlockDevice;

/// Interval between two reports.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which completed requests are counted, to clear the kernel's table of them in time.
const POLL: Duration = Duration::from_millis(50);
/// Requests in the kernel's table of requests: a power of two, at most 131072. Each takes about a hundred bytes.
const CAPACITY: u64 = 32768;

/// What is watched
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WatchConfig {
    /// Mount point of tracefs
    pub tracefs: String,
    /// Name of the instance, and of the synthetic event
    pub name: String,
    /// Name of the device
    pub device: String,
    /// Number of the device as in the kernel's events: major shifted by 20 bits, plus minor
    pub dev: u64,
    /// Size of the kernel's table of requests
    pub capacity: u64,
}

impl WatchConfig {
    pub(super) fn new(tracefs: &str, device: &BlockDevice) -> Self {
        let (major, minor) = device.number.split_once(':').unwrap_or_default();
        // The kernel prints numbers only.
        let number = |text: &str| text.parse::<u64>().unwrap_or_default();
        Self {
            tracefs: tracefs.to_owned(),
            name: format!("weighbridge_io_{major}_{minor}"),
            device: device.name.clone(),
            dev: (number(major) << 20) + number(minor),
            capacity: CAPACITY,
        }
    }

    fn event_file(&self, event: &str, file: &str) -> String {
        format!("{}/instances/{}/events/{event}/{file}", self.tracefs, self.name)
    }
}

/// Latencies of the requests that were completed in a second
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct LatencyReport {
    /// End of the second, in seconds since the start
    pub time: f64,
    /// Its length, in seconds: more than 1 if this process could not run
    pub period: f64,
    /// Reads
    pub reads: LatencyHistogram,
    /// Writes
    pub writes: LatencyHistogram,
    /// Completed reads and writes whose latency is unknown
    pub missing: u64,
}

/// Reports latencies once a second until `on_report` fails.
///
/// # Errors
/// If a file of the kernel cannot be read or is invalid, and those of `on_report`.
pub fn run(config: &WatchConfig, mut on_report: impl FnMut(&LatencyReport) -> io::Result<()>) -> io::Result<()> {
    let start = Instant::now();
    let mut last_time = Duration::ZERO;
    let mut last = read_histograms(config)?;
    let mut completed = read_completed(config)?;
    let mut last_cleared = completed;
    loop {
        thread::sleep(POLL);
        let now_completed = read_completed(config)?;
        // Each sector takes an entry of the table, which is never removed.
        if now_completed - last_cleared > config.capacity / 2 {
            for (event, command) in tracing::clear_commands(config) {
                OpenOptions::new()
                    .append(true)
                    .open(config.event_file(event, "trigger"))?
                    .write_all(command.as_bytes())?;
            }
            last_cleared = now_completed;
        }
        let now = start.elapsed();
        if now - last_time < REPORT_INTERVAL {
            continue;
        }
        let current = read_histograms(config)?;
        let [reads, writes] = [0, 1].map(|operation: usize| current[operation].since(&last[operation]));
        let counted = reads.count() + writes.count();
        on_report(&LatencyReport {
            time: now.as_secs_f64(),
            period: (now - last_time).as_secs_f64(),
            missing: (now_completed - completed).saturating_sub(counted),
            reads,
            writes,
        })?;
        (last, last_time, completed) = (current, now, now_completed);
    }
}

fn read_histograms(config: &WatchConfig) -> io::Result<[LatencyHistogram; 2]> {
    let path = config.event_file(&format!("synthetic/{}", config.name), "hist");
    let text = read(&path)?;
    parse(&text).map_err(|line| io::Error::other(format!("invalid line in `{path}`: `{line}`")))
}

/// Reads and writes that the device has completed since boot (Documentation/block/stat.rst).
fn read_completed(config: &WatchConfig) -> io::Result<u64> {
    let path = format!("/sys/class/block/{}/stat", config.device);
    let text = read(&path)?;
    let fields: Vec<&str> = text.split_whitespace().collect();
    let field = |number: usize| fields.get(number).and_then(|text| text.parse::<u64>().ok());
    let completed = field(0).zip(field(4)).map(|(reads, writes)| reads + writes);
    completed.ok_or_else(|| io::Error::other(format!("invalid contents of `{path}`: `{}`", text.trim())))
}

fn read(path: &str) -> io::Result<String> {
    fs::read_to_string(path).map_err(|error| io::Error::new(error.kind(), format!("`{path}`: {error}")))
}
