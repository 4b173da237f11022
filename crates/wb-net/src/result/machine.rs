//! The part of one machine in a result.

use super::assembly::union_length;
use super::progress::progress_points;
use crate::engine::clock::Nanos;
use crate::engine::protocol::ExecutorKind;
use crate::engine::report::EngineReport;
use wb_net_profile::NetProfile;
use wb_results::net::MachineResult;
use wb_results::net::Usage;

pub(super) fn machine_result(
    profile: &NetProfile,
    name: String,
    address: Option<String>,
    report: Option<&EngineReport>,
) -> MachineResult {
    let mut usage = Usage::default();
    report.into_iter().flat_map(|report| &report.groups).for_each(|group| usage.add(group.usage));
    let executor = match report.map(|report| report.executor) {
        Some(ExecutorKind::ThreadPerStrand) => "thread per strand".to_owned(),
        Some(ExecutorKind::EventLoop { threads: 1 }) => "event loop on 1 thread".to_owned(),
        Some(ExecutorKind::EventLoop { threads }) => format!("event loops on {threads} threads"),
        None => "unknown: no report".to_owned(),
    };
    let spans = report.map_or_else(Vec::new, |report| spans(profile, report));
    let whole = (spans.iter().map(|span| span.0).min(), spans.iter().map(|span| span.1).max());
    let progress = report.map_or(&[][..], |report| &report.progress);
    let last = progress.last().copied().unwrap_or_default();
    let time = union_length(spans);
    MachineResult {
        name,
        address,
        executor,
        usage,
        cpu_percent: (time > 0).then(|| usage.cpu_ns() as f64 / time as f64 * 100.0),
        sent_bytes: last.sent,
        received_bytes: last.received,
        network: report.map(|report| report.network.clone()).unwrap_or_default(),
        rejected_connections: report.map_or(0, |report| report.rejected_connections),
        progress: whole.0.zip(whole.1).map(|whole| progress_points(progress, whole)).unwrap_or_default(),
    }
}

/// Length of the data phase in seconds, by the clock of the reporting machine.
pub(crate) fn data_seconds(profile: &NetProfile, report: &EngineReport) -> f64 {
    union_length(spans(profile, report)) as f64 / 1e9
}

/// When transactions of the data phase ran, by the clock of the reporting machine.
fn spans(profile: &NetProfile, report: &EngineReport) -> Vec<(Nanos, Nanos)> {
    let groups = profile.groups.iter().zip(&report.groups);
    groups
        .flat_map(|(group, report)| group.data_phase().filter_map(|position| report.transactions.get(position)))
        .filter(|tally| tally.began < Nanos::MAX)
        .map(|tally| (tally.began, tally.ended))
        .collect()
}
