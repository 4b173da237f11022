//! Parameters of the workload, with their defaults and limits.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Bytes, Nanos};

/// Parameters of hashd; all of them can be changed while it runs
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct HashdParams {
    /// Interval between two adjustments of the concurrency, and between two reports
    pub control_period: Nanos,
    /// Maximum number of requests in flight, and of threads
    pub concurrency_max: u32,
    /// Latency that the quantile must not exceed
    pub lat_target: Nanos,
    /// Quantile of the latency that is controlled
    pub lat_quantile: f64,
    /// Requests per second to reach; as many as the latency target permits if not given
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rps_target: Option<f64>,
    /// Requests per second at full load, to which footprint and log lines scale; without it, the footprint is always
    /// whole and log lines are short
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rps_max: Option<f64>,
    /// Start requests at times of a schedule, whatever their latency is; given at the start or never
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenLoop>,
    /// Part of the memory footprint that is used
    pub mem_frac: f64,
    /// Pages of 4 KiB that are read or touched together
    pub chunk_pages: u32,
    /// Part of the footprint that is files; the rest is anonymous memory
    pub file_frac: f64,
    /// Mean size of what a request reads from files
    pub file_size_mean: Bytes,
    /// Standard deviation of that size, relative to its mean
    pub file_size_stdev: f64,
    /// Standard deviation of addresses in files, relative to half of the footprint
    pub file_addr_stdev: f64,
    /// Part of the files that is used at a rate of zero
    pub file_addr_base: f64,
    /// Part of the chunks of files that is written
    pub file_write_frac: f64,
    /// Mean size of the anonymous memory that a request touches, relative to that of the files
    pub anon_size_ratio: f64,
    /// Standard deviation of that size, relative to its mean
    pub anon_size_stdev: f64,
    /// Standard deviation of addresses in anonymous memory, relative to half of the footprint
    pub anon_addr_stdev: f64,
    /// Part of the anonymous memory that is used at a rate of zero
    pub anon_addr_base: f64,
    /// Part of the chunks of anonymous memory that is written
    pub anon_write_frac: f64,
    /// Mean time that a request sleeps, in three parts
    pub sleep_mean: Nanos,
    /// Standard deviation of that time, relative to its mean
    pub sleep_stdev: f64,
    /// Hashed bytes per byte read or touched
    pub cpu_ratio: f64,
    /// Sleep instead of hashing: 15 ms for the mean request, in proportion to its size, whatever this machine's CPU is
    pub fake_cpu_load: bool,
    /// Bytes per second that the log grows at `rps-max`
    pub log_bps: Bytes,
    /// Gains of the controller that keeps the latency within its target
    pub lat_pid: PidGains,
    /// Gains of the controller that reaches the target of the rate
    pub rps_pid: PidGains,
}

/// Gains of a PID controller
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PidGains {
    /// Of the error
    pub kp: f64,
    /// Of the sum of errors
    pub ki: f64,
    /// Of the change of the measured value
    pub kd: f64,
}

/// A schedule of requests
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OpenLoop {
    /// Requests per second
    pub rate: f64,
    /// Distribution of the time between two requests
    #[serde(default)]
    pub arrivals: Arrivals,
}

/// Distribution of the time between two requests of a schedule
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Exponential: requests of many independent users
    #[default]
    Poisson,
    /// All equal
    Uniform,
}

impl Default for HashdParams {
    fn default() -> Self {
        Self {
            control_period: Nanos(1_000_000_000),
            concurrency_max: 8192,
            lat_target: Nanos(75_000_000),
            lat_quantile: 0.95,
            rps_target: None,
            rps_max: None,
            open_loop: None,
            mem_frac: 0.8,
            chunk_pages: 25,
            file_frac: 0.25,
            file_size_mean: Bytes(1_258_291),
            file_size_stdev: 0.45,
            file_addr_stdev: 0.215,
            file_addr_base: 0.5,
            file_write_frac: 0.0,
            anon_size_ratio: 2.3,
            anon_size_stdev: 0.45,
            anon_addr_stdev: 0.235,
            anon_addr_base: 0.5,
            anon_write_frac: 0.3,
            sleep_mean: Nanos(20_000_000),
            sleep_stdev: 0.33,
            cpu_ratio: 0.93,
            fake_cpu_load: false,
            log_bps: Bytes(1_100_794),
            lat_pid: PidGains { kp: 0.1, ki: 0.01, kd: 0.01 },
            rps_pid: PidGains { kp: 0.25, ki: 0.01, kd: 0.01 },
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid {name} `{value}`: expected {expected}")]
pub struct ParamError {
    pub name: &'static str,
    pub value: String,
    pub expected: String,
}

impl ParamError {
    pub(crate) fn new(name: &'static str, value: impl ToString, expected: impl Into<String>) -> Self {
        Self { name, value: value.to_string(), expected: expected.into() }
    }
}

/// Hashing time of the mean request: sizing chooses sizes for it, and a faked CPU load sleeps as long.
pub(crate) const HASH_TIME: Duration = Duration::from_millis(15);

const MILLISECOND: u64 = 1_000_000;
const MINUTE: u64 = 60_000 * MILLISECOND;

impl HashdParams {
    /// Checks every parameter against its limits; fails with the first that is outside of them.
    pub fn validate(&self) -> Result<(), ParamError> {
        check_time("control-period", self.control_period, 100 * MILLISECOND, "a time from 100ms to 1min")?;
        check_time("lat-target", self.lat_target, MILLISECOND, "a time from 1ms to 1min")?;
        check_time("sleep-mean", self.sleep_mean, 0, "a time of at most 1min")?;
        check_whole("concurrency-max", self.concurrency_max, 1, 65_536)?;
        check_whole("chunk-pages", self.chunk_pages, 1, 4096)?;
        check("lat-quantile", self.lat_quantile, (0.01..=1.0).contains(&self.lat_quantile), "a number from 0.01 to 1")?;
        if let Some(rate) = self.rps_target {
            check("rps-target", rate, is_rate(rate), RATE)?;
        }
        if let Some(rate) = self.rps_max {
            check("rps-max", rate, is_rate(rate), RATE)?;
        }
        if let Some(OpenLoop { rate, .. }) = self.open_loop {
            check("open-loop rate", rate, is_rate(rate), RATE)?;
        }
        for (name, value) in [
            ("mem-frac", self.mem_frac),
            ("file-frac", self.file_frac),
            ("file-addr-base", self.file_addr_base),
            ("file-write-frac", self.file_write_frac),
            ("anon-addr-base", self.anon_addr_base),
            ("anon-write-frac", self.anon_write_frac),
        ] {
            check(name, value, (0.0..=1.0).contains(&value), "a number from 0 to 1")?;
        }
        for (name, value) in [
            ("file-size-stdev", self.file_size_stdev),
            ("file-addr-stdev", self.file_addr_stdev),
            ("anon-size-ratio", self.anon_size_ratio),
            ("anon-size-stdev", self.anon_size_stdev),
            ("anon-addr-stdev", self.anon_addr_stdev),
            ("sleep-stdev", self.sleep_stdev),
            ("cpu-ratio", self.cpu_ratio),
        ] {
            check(name, value, (0.0..=1000.0).contains(&value), "a number from 0 to 1000")?;
        }
        let size = self.file_size_mean;
        check("file-size-mean", size, (4096..=1 << 30).contains(&size.0), "a size from 4k to 1g")?;
        check("log-bps", self.log_bps, self.log_bps.0 <= 1 << 34, "a size of at most 16g")?;
        for (name, PidGains { kp, ki, kd }) in [("lat-pid", self.lat_pid), ("rps-pid", self.rps_pid)] {
            for gain in [kp, ki, kd] {
                check(name, gain, (0.0..=10.0).contains(&gain), "gains from 0 to 10")?;
            }
        }
        Ok(())
    }

    /// Bytes of anonymous memory that a request touches.
    pub(crate) fn anon_size_mean(&self) -> f64 {
        self.file_size_mean.0 as f64 * self.anon_size_ratio
    }

    /// How long a request that reads and touches this many bytes sleeps instead of hashing.
    pub(crate) fn fake_hash_time(&self, bytes: u64) -> Duration {
        let mean = self.file_size_mean.0 as f64 + self.anon_size_mean();
        HASH_TIME.mul_f64(bytes as f64 / mean)
    }

    /// Bytes of a log line, so that the log grows by `log-bps` at `rps-max`; 0 without `rps-max`.
    pub(crate) fn log_line_bytes(&self) -> usize {
        self.rps_max.map_or(0, |rps_max| (self.log_bps.0 as f64 / rps_max).round() as usize)
    }
}

const RATE: &str = "a number from 0.001 to 1000000";

fn is_rate(rate: f64) -> bool {
    (0.001..=1e6).contains(&rate)
}

fn check(name: &'static str, value: impl ToString, is_valid: bool, expected: &str) -> Result<(), ParamError> {
    if is_valid { Ok(()) } else { Err(ParamError::new(name, value, expected)) }
}

/// Times have an upper limit because a signal waits for the requests in flight.
fn check_time(name: &'static str, value: Nanos, min: u64, expected: &str) -> Result<(), ParamError> {
    check(name, value, (min..=MINUTE).contains(&value.0), expected)
}

fn check_whole(name: &'static str, value: u32, min: u32, max: u32) -> Result<(), ParamError> {
    check(name, value, (min..=max).contains(&value), &format!("a whole number from {min} to {max}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_survive_a_round_trip() {
        let params = HashdParams::default();
        assert_eq!(params.validate(), Ok(()));
        let text = toml::to_string(&params).unwrap();
        assert_eq!(toml::from_str::<HashdParams>(&text).unwrap(), params);
        assert_eq!(serde_json::from_str::<HashdParams>("{}").unwrap(), params);
    }

    #[test]
    fn values_outside_the_limits_are_refused_with_what_is_expected() {
        let message = |change: fn(&mut HashdParams)| {
            let mut params = HashdParams::default();
            change(&mut params);
            params.validate().unwrap_err().to_string()
        };
        assert_eq!(message(|params| params.mem_frac = 1.5), "invalid mem-frac `1.5`: expected a number from 0 to 1");
        assert_eq!(
            message(|params| params.rps_target = Some(0.0)),
            "invalid rps-target `0`: expected a number from 0.001 to 1000000"
        );
        assert_eq!(
            message(|params| params.lat_target = Nanos(0)),
            "invalid lat-target `0s`: expected a time from 1ms to 1min"
        );
        assert_eq!(
            message(|params| params.cpu_ratio = f64::NAN),
            "invalid cpu-ratio `NaN`: expected a number from 0 to 1000"
        );
    }

    #[test]
    fn log_lines_fill_the_log_at_the_maximum_rate() {
        let params = HashdParams { rps_max: Some(400.0), ..HashdParams::default() };
        assert_eq!(params.log_line_bytes(), 2752);
        assert_eq!(HashdParams::default().log_line_bytes(), 0);
    }
}
