//! Reads the kernel's histograms once a second, on the worker itself: `weighbridge-agent exec io-latency`.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_sys::clock::unix_time;

use super::histogram::{LatencyHistogram, parse};
use super::resources::ResourceReader;
use super::tracing;
use crate::device::BlockDevice;
use crate::prepared_worker::parse_io_stat;

/// Completed requests are counted so often to clear the kernel's table of them in time.
const POLL: Duration = Duration::from_millis(50);
/// Size of the kernel's table of requests: a power of two, at most 131072. Each takes about a hundred bytes.
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
    /// Number of the device as in other files: `259:5`
    pub number: String,
    /// The file `io.stat` of the root of cgroup v2, for the I/O cost controller; none without controllers
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_stat: Option<String>,
}

impl WatchConfig {
    pub(super) fn new(tracefs: &str, device: &BlockDevice, io_stat: Option<String>) -> Self {
        let (major, minor) = device.number.split_once(':').unwrap_or_default();
        // The kernel prints numbers only.
        let number = |text: &str| text.parse::<u64>().unwrap_or_default();
        Self {
            tracefs: tracefs.to_owned(),
            name: format!("weighbridge_io_{major}_{minor}"),
            device: device.name.clone(),
            dev: (number(major) << 20) + number(minor),
            capacity: CAPACITY,
            number: device.number.clone(),
            io_stat,
        }
    }

    fn event_file(&self, event: &str, file: &str) -> String {
        format!("{}/instances/{}/events/{event}/{file}", self.tracefs, self.name)
    }
}

/// The I/O cost controller in a second
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostReport {
    /// Rate at which the model was applied, in percent of it
    pub vrate: f64,
    /// Time of the device that everything has used, in seconds
    pub usage: f64,
}

/// What the device did in a second, and latencies of the requests that were completed in it
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct LatencyReport {
    /// End of the second, in seconds since the start
    pub time: f64,
    /// The same, in seconds since the epoch
    pub unix_time: f64,
    /// Its length, in seconds: more than 1 if this process could not run
    pub period: f64,
    /// Reads
    pub reads: LatencyHistogram,
    /// Writes
    pub writes: LatencyHistogram,
    /// Completed reads and writes whose latency is unknown
    pub uncounted: u64,
    /// Bytes read
    pub read_bytes: u64,
    /// Bytes written
    pub written_bytes: u64,
    /// The I/O cost controller; none if it is off
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostReport>,
    /// What the machine used, and the kernel's statistics, by name
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<String, f64>,
}

impl LatencyReport {
    /// The second since the epoch that contains the middle of the report's time.
    pub fn second(&self) -> u64 {
        (self.unix_time - self.period / 2.0).max(0.0) as u64
    }
}

/// Reports at the end of each second of the system clock, until `on_report` fails.
pub fn run(config: &WatchConfig, mut on_report: impl FnMut(&LatencyReport) -> io::Result<()>) -> io::Result<()> {
    let start = Instant::now();
    let mut last_time = Duration::ZERO;
    let mut last_second = unix_time() as u64;
    let mut last = read_histograms(config)?;
    let mut counters = DeviceCounters::read(config)?;
    let mut last_usage = read_cost(config)?.map(|cost| cost.usage);
    let mut last_cleared = counters.completed;
    let mut resources = ResourceReader::new(config.io_stat.as_deref(), &config.number);
    loop {
        thread::sleep(POLL);
        let now_counters = DeviceCounters::read(config)?;
        // Each sector takes an entry of the table, which is never removed.
        if now_counters.completed - last_cleared > config.capacity / 2 {
            for (event, command) in tracing::clear_commands(config) {
                OpenOptions::new()
                    .append(true)
                    .open(config.event_file(event, "trigger"))?
                    .write_all(command.as_bytes())?;
            }
            last_cleared = now_counters.completed;
        }
        let (now, now_unix) = (start.elapsed(), unix_time());
        if now_unix as u64 == last_second {
            continue;
        }
        let current = read_histograms(config)?;
        let [reads, writes] = [0, 1].map(|operation: usize| current[operation].since(&last[operation]));
        let counted = reads.count() + writes.count();
        let cost = read_cost(config)?;
        let usage = |cost: CostReport| (cost.usage - last_usage.unwrap_or(cost.usage)).max(0.0);
        let period = (now - last_time).as_secs_f64();
        on_report(&LatencyReport {
            time: now.as_secs_f64(),
            unix_time: now_unix,
            period,
            uncounted: (now_counters.completed - counters.completed).saturating_sub(counted),
            reads,
            writes,
            read_bytes: (now_counters.read_sectors - counters.read_sectors) * SECTOR,
            written_bytes: (now_counters.written_sectors - counters.written_sectors) * SECTOR,
            cost: cost.map(|cost| CostReport { usage: usage(cost), ..cost }),
            resources: resources.read(period),
        })?;
        (last, last_time, last_second, counters) = (current, now, now_unix as u64, now_counters);
        last_usage = cost.map(|cost| cost.usage);
    }
}

fn read_histograms(config: &WatchConfig) -> io::Result<[LatencyHistogram; 2]> {
    let path = config.event_file(&format!("synthetic/{}", config.name), "hist");
    let text = read(&path)?;
    parse(&text).map_err(|line| io::Error::other(format!("invalid line in `{path}`: `{line}`")))
}

/// Bytes of a sector, in which the kernel counts for every device.
const SECTOR: u64 = 512;

/// Counters since boot (Documentation/block/stat.rst).
#[derive(Clone, Copy)]
struct DeviceCounters {
    completed: u64,
    read_sectors: u64,
    written_sectors: u64,
}

impl DeviceCounters {
    fn read(config: &WatchConfig) -> io::Result<Self> {
        let path = format!("/sys/class/block/{}/stat", config.device);
        let text = read(&path)?;
        let fields: Vec<&str> = text.split_whitespace().collect();
        let field = |number: usize| fields.get(number).and_then(|text| text.parse::<u64>().ok());
        let counters = || {
            let completed = field(0)? + field(4)?;
            Some(Self { completed, read_sectors: field(2)?, written_sectors: field(6)? })
        };
        counters().ok_or_else(|| io::Error::other(format!("invalid contents of `{path}`: `{}`", text.trim())))
    }
}

/// The I/O cost controller, with the time of the device that was used since it was switched on; none if it is off.
fn read_cost(config: &WatchConfig) -> io::Result<Option<CostReport>> {
    let Some(path) = &config.io_stat else { return Ok(None) };
    let figures = parse_io_stat(&read(path)?, &config.number);
    let number = |name: &str| figures.get(name).and_then(|value| value.parse::<f64>().ok());
    let usage = number("cost.usage").map_or(0.0, |microseconds| microseconds / 1e6);
    Ok(number("cost.vrate").map(|vrate| CostReport { vrate, usage }))
}

fn read(path: &str) -> io::Result<String> {
    fs::read_to_string(path).map_err(|error| io::Error::new(error.kind(), format!("`{path}`: {error}")))
}
