//! The header of a result: bench, times, machine and I/O.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use wb_results::contention::{BenchResult, Device, SystemInfo};

use super::iocost;
use crate::figures;

/// When a bench started and ended, as the journal states it (RFC 3339). Results contain no time of day, so that a
/// killed sequence and an undisturbed one have equal results.
#[derive(Debug, Clone, Copy)]
pub struct Times<'a> {
    pub start: &'a str,
    pub end: &'a str,
}

/// The header of a result. Times are in UTC.
pub fn header(result: &BenchResult, times: Option<Times<'_>>) -> String {
    let mut lines = vec![title(result, times)];
    let SystemInfo { device, iocost: parameters, missed_requirements, time_scale, merged, .. } = &result.system;
    lines.push(system_line(&result.system));
    lines.push(device_line(device, parameters.is_some()));
    let mut text = lines.join("\n") + "\n";
    if let Some(parameters) = parameters {
        text.push_str(&iocost(parameters));
    }
    if let Some(scale) = time_scale {
        text.push_str(&format!("trial: durations times {}; the figures mean nothing\n", scale.factor()));
    }
    if !missed_requirements.is_empty() {
        text.push_str(&format!("missed requirements: {}\n", missed_requirements.join(", ")));
    }
    for differences in merged {
        text.push_str(&format!("merged with another machine: {differences}\n"));
    }
    text
}

fn title(result: &BenchResult, times: Option<Times<'_>>) -> String {
    let id = result.instance.id().map(|id| format!(" {id:?}")).unwrap_or_default();
    let times = times
        .map(|Times { start, end }| format!(" {} - {}", in_utc(start, "%Y-%m-%d %H:%M:%S"), in_utc(end, "%H:%M:%S")));
    format!("[{} result]{id}{}", result.instance.bench, times.unwrap_or_default())
}

/// A time in another form; one that cannot be read stays as it is.
fn in_utc(time: &str, form: &str) -> String {
    let parsed = time.parse::<Timestamp>();
    parsed.map_or_else(|_| time.to_owned(), |time| time.to_zoned(TimeZone::UTC).strftime(form).to_string())
}

fn system_line(system: &SystemInfo) -> String {
    let SystemInfo { kernel, nr_cpus, swappiness, passive, .. } = system;
    let [memory, swap] = [system.memory, system.swap].map(|size| figures::size(size.0 as f64));
    let mut line =
        format!("System info: kernel={kernel:?} nr_cpus={nr_cpus} memory={memory} swap={swap} swappiness={swappiness}");
    if system.zswap {
        line.push_str(" zswap");
    }
    if let Some(memory) = &system.profile {
        let sizes = [memory.avail, memory.share, memory.target].map(|size| figures::size(size.0 as f64));
        let [avail, share, target] = sizes;
        let profile = memory.profile.map_or("off".to_owned(), |profile| profile.to_string());
        line += &format!(" mem_profile={profile} (avail={avail} share={share} target={target})");
    }
    if !passive.is_empty() {
        line += &format!(" passive={passive}");
    }
    line
}

fn device_line(device: &Device, has_iocost: bool) -> String {
    let Device { name, number, model, firmware, size, scheduler, wbt, other_controller } = device;
    let size = figures::size(size.0 as f64);
    let [wbt, iocost, other] = [*wbt, has_iocost, *other_controller].map(|is_on| if is_on { "on" } else { "off" });
    format!(
        "IO info: dev={name}({number}) model={model:?} firmware={firmware:?} size={size} iosched={scheduler} wbt={wbt} \
         iocost={iocost} other={other}"
    )
}
