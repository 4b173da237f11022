//! Triggers of tracefs that count the latencies of block requests.
//!
//! Source: the kernel's Documentation/trace/histogram.rst. The issue of a request stores its time by device and sector.
//! Its completion computes the difference and emits a synthetic event, which three histograms count, one for each width
//! of buckets. A separate instance leaves other users of tracing undisturbed.

use wb_agent::{Worker, WorkerError};
use wb_sys::undo::ManagedResource;

use super::histogram::BUCKETS;
use super::watch::WatchConfig;
use crate::ContentionError;
use crate::files::{names, read};

/// State of [`resource`] in which the triggers are set.
pub const ON: &str = "on\n";

const MOUNT_POINTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Finds the mount point of a tracefs with the features that the triggers need.
pub(super) async fn find_mount(worker: &Worker) -> Result<String, ContentionError> {
    let mut reason = "tracefs is not mounted at /sys/kernel/tracing: `mount -t tracefs none /sys/kernel/tracing`";
    for point in MOUNT_POINTS {
        if names(worker, point).await?.is_empty() {
            continue;
        }
        if is_supported(worker, point).await? {
            return Ok(point.to_owned());
        }
        reason = "this kernel has no synthetic events or no histogram triggers (SYNTH_EVENTS, HIST_TRIGGERS)";
    }
    Err(ContentionError::Process { program: "latencies of the device".to_owned(), reason: reason.to_owned() })
}

async fn is_supported(worker: &Worker, point: &str) -> Result<bool, WorkerError> {
    let synthetic = read(worker, &format!("{point}/synthetic_events")).await?;
    let histogram = read(worker, &format!("{point}/events/block/block_rq_issue/hist")).await?;
    Ok(synthetic.is_some() && histogram.is_some())
}

/// A resource whose state is whether the triggers are set: [`ON`] or `off`.
pub fn resource(config: &WatchConfig) -> ManagedResource {
    const READ: &str = r#"cd "$1" && if [ -d "instances/$2" ] || grep -q "^$2[^a-z0-9_]" synthetic_events
then echo on; else echo off; fi"#;
    const CREATE: &str =
        r#"echo "$3 u64 lat; char rwbs[8]" >> synthetic_events; mkdir "instances/$3"; cd "instances/$3""#;
    const REMOVE: &str = r#"rmdir "instances/$3"; fi
! grep -q "^$3[^a-z0-9_]" synthetic_events || echo "!$3" >> synthetic_events"#;
    let own_event = format!("synthetic/{}", config.name);
    let block = [(ISSUE.to_owned(), issue_trigger(config)), (COMPLETE.to_owned(), completion_trigger(config))];
    let triggers: Vec<_> =
        block.into_iter().chain(bucket_triggers().map(|trigger| (own_event.clone(), trigger))).collect();
    let set = |(event, trigger): &(String, String)| format!("echo '{trigger}' >> events/{event}/trigger\n");
    let on: String = triggers.iter().map(set).collect();
    // An instance with triggers is busy, and a trigger is busy while a later one uses what it provides. One that was not
    // set cannot be removed; if another one remains, `rmdir` fails.
    let unset = |(event, trigger): &(String, String)| {
        format!("echo '!{trigger}' >> \"instances/$3/events/{event}/trigger\" || :\n")
    };
    let off: String = triggers.iter().rev().map(unset).collect();
    let write = format!(
        "set -e; cd \"$2\"; case $1 in on)\n{CREATE}\n{on};;\n*)\nif [ -d \"instances/$3\" ]; then\n{off}{REMOVE}\n;; esac"
    );
    let words = |script: &str, arguments: &[&str]| {
        ["sh", "-c", script, "sh"].iter().chain(arguments).map(|word| (*word).to_owned()).collect()
    };
    ManagedResource::Command {
        name: format!("latency histograms of {}", config.device),
        read: words(READ, &[&config.tracefs, &config.name]),
        write: words(&write, &["{}", &config.tracefs, &config.name]),
    }
}

pub(super) const ISSUE: &str = "block/block_rq_issue";
pub(super) const COMPLETE: &str = "block/block_rq_complete";

pub(super) fn issue_trigger(config: &WatchConfig) -> String {
    let WatchConfig { capacity, dev, .. } = config;
    format!("hist:keys=dev,sector:ts0=common_timestamp.usecs:size={capacity} if dev=={dev}")
}

pub(super) fn completion_trigger(config: &WatchConfig) -> String {
    let WatchConfig { capacity, dev, name, .. } = config;
    format!(
        "hist:keys=dev,sector:lat=common_timestamp.usecs-$ts0:size={capacity}:\
         onmatch(block.block_rq_issue).{name}($lat,rwbs) if dev=={dev}"
    )
}

fn bucket_triggers() -> impl Iterator<Item = String> {
    let lower = std::iter::once(0).chain(BUCKETS.iter().filter_map(|(_, end)| *end));
    BUCKETS.iter().zip(lower).map(|((width, end), start)| {
        let end = end.map(|end| format!(" && lat<{end}")).unwrap_or_default();
        format!("hist:keys=rwbs,lat.buckets={width}:size=4096 if lat>={start}{end}")
    })
}

/// The commands that clear the kernel's table of requests, by event. Requests in flight are lost.
///
/// The kernel (6.1) refuses `:clear` for a trigger that defines a variable, because it takes it for a second
/// definition. So both triggers are removed, the one that uses the other first, and set again.
pub(super) fn clear_commands(config: &WatchConfig) -> [(&'static str, String); 4] {
    let (issue, completion) = (issue_trigger(config), completion_trigger(config));
    [(COMPLETE, format!("!{completion}")), (ISSUE, format!("!{issue}")), (ISSUE, issue), (COMPLETE, completion)]
}
