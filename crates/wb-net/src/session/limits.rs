//! Limits of what a server executes for a client.

use std::collections::VecDeque;
use std::time::Duration;

use crate::engine::clock;
use crate::engine::protocol::{Assignment, EngineError, EngineProgress, Side};
use crate::transport::data_ports::PortPolicy;
use wb_net_profile::{Extent, Flowop, FlowopAction, Message, MessageSize, StrandKind};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionLimits {
    /// Maximum number of concurrent sessions.
    pub sessions: usize,
    pub strands: u64,
    /// Maximum memory of a session in bytes, by an upper estimate of buffers, stacks and histograms.
    pub memory: u64,
    pub duration: Duration,
    /// A client that sends nothing for this long is disconnected.
    pub idle_timeout: Duration,
    pub ports: PortPolicy,
    pub rate: Option<RateLimit>,
}

/// A limit of the bytes that a session receives and sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    pub bits_per_second: u64,
    /// The time over which the rate is averaged.
    pub over: Duration,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            sessions: 8,
            strands: 20_000,
            memory: 2 << 30,
            duration: Duration::from_secs(3600),
            idle_timeout: Duration::from_secs(10),
            ports: PortPolicy::Any,
            rate: None,
        }
    }
}

impl RateLimit {
    /// Whether the newest of these reports exceeds the rate; removes those that are no longer needed.
    pub(super) fn is_exceeded(&self, reports: &mut VecDeque<EngineProgress>) -> bool {
        let Some(newest) = reports.back().copied() else { return false };
        let over = clock::nanos(self.over);
        // The newest of those that are old enough remains, as the start of the time.
        while reports.get(1).is_some_and(|next| newest.time.saturating_sub(next.time) >= over) {
            reports.pop_front();
        }
        let Some(oldest) = reports.front() else { return false };
        let elapsed = newest.time.saturating_sub(oldest.time);
        let moved = (newest.sent + newest.received).saturating_sub(oldest.sent + oldest.received);
        elapsed >= over && moved as f64 * 8e9 / elapsed as f64 > self.bits_per_second as f64
    }
}

/// Bits per second that the rates of a profile ask for, of all strands.
fn requested_rate(assignment: &Assignment) -> f64 {
    let groups = assignment.profile.groups.iter().zip(&assignment.strands);
    let rates = groups.map(|(group, strands)| {
        let rates = group.transactions.iter().filter_map(|transaction| {
            let bytes: f64 = transaction
                .flowops
                .iter()
                .map(|flowop| match &flowop.action {
                    FlowopAction::Send(Message { size: MessageSize::Fixed(size), .. })
                    | FlowopAction::Receive(Message { size: MessageSize::Fixed(size), .. }) => {
                        f64::from(*size) * flowop.count as f64
                    }
                    _ => 0.0,
                })
                .sum();
            Some(transaction.rate? * bytes * 8.0)
        });
        rates.fold(0.0, f64::max) * f64::from(strands.end.saturating_sub(strands.start))
    });
    rates.sum()
}

/// Maximum number of groups, transactions or flowops: no real profile has more.
const MAX_ITEMS: usize = 10_000;

/// Bytes of a strand's stack, and of the kernel's state of an idle connection.
const MEMORY_PER_STRAND: u64 = 64 << 10;

/// Bytes of a histogram of three digits.
const MEMORY_PER_HISTOGRAM: u64 = 131 << 10;

impl SessionLimits {
    /// Checks an assignment from an untrusted client against the limits.
    pub fn check(&self, assignment: &Assignment) -> Result<(), EngineError> {
        let Assignment { profile, side, strands, settings, .. } = assignment;
        let refuse = |reason: String| Err(EngineError::new(format!("the server refuses: {reason}")));
        if *side != Side::Server || strands.len() != profile.groups.len() {
            return refuse("invalid assignment: not for a server".to_owned());
        }
        let total: u64 = strands.iter().map(|strands| u64::from(strands.end.saturating_sub(strands.start))).sum();
        if total > self.strands {
            return refuse(format!("{total} strands; at most {} (`net serve --max-strands`)", self.strands));
        }
        if assignment.hosts.len() != 1 {
            return refuse("invalid assignment: expected the session's key".to_owned());
        }
        let flowop_count: usize = profile.flowops().count();
        let transactions: usize = profile.groups.iter().map(|group| group.transactions.len()).sum();
        if flowop_count.max(transactions).max(profile.groups.len()) > MAX_ITEMS {
            return refuse(format!("a profile with more than {MAX_ITEMS} items"));
        }
        if settings.progress_interval < 10_000_000 || settings.counters.len() > 8 || settings.raw {
            return refuse("invalid settings".to_owned());
        }
        if let Some(cpu) = settings.cpus.iter().find(|cpu| **cpu >= online_cpus()) {
            return refuse(format!("CPU {cpu}: the server's are 0 to {}", online_cpus() - 1));
        }
        if let Some(limit) = self.rate {
            let requested = requested_rate(assignment);
            if requested > limit.bits_per_second as f64 {
                return refuse(format!(
                    "{requested:.0} bits per second; at most {} (`--server-bitrate-limit`)",
                    limit.bits_per_second
                ));
            }
        }
        for flowop in profile.flowops() {
            if let Err(reason) = check_flowop(flowop) {
                return refuse(reason.to_owned());
            }
        }
        for transaction in profile.groups.iter().flat_map(|group| &group.transactions) {
            if transaction.flowops.is_empty() || transaction.rate.is_some_and(|rate| !is_valid_rate(rate)) {
                return refuse("invalid transaction: no flowops, or an invalid rate".to_owned());
            }
            // If the client does not end it, the limit of the session does.
            let client_limit = settings.max_duration.map_or(Duration::MAX, Duration::from_nanos);
            if let Extent::Window(window) = transaction.extent
                && window.min(client_limit) > self.duration
            {
                let limit = self.duration.as_secs();
                return refuse(format!(
                    "a window of {} s; at most {limit} s (`net serve --max-time`)",
                    window.as_secs()
                ));
            }
        }
        let memory = estimate_memory(assignment);
        if memory > self.memory {
            return refuse(format!(
                "about {} MiB of memory; at most {} MiB (`net serve --max-memory`)",
                memory >> 20,
                self.memory >> 20
            ));
        }
        Ok(())
    }
}

/// One more than the highest number of a CPU on which this process may run.
fn online_cpus() -> usize {
    // If the kernel does not tell: what it may run on at once.
    let allowed = rustix::thread::sched_getaffinity(None);
    let highest = allowed.map(|set| (0..rustix::thread::CpuSet::MAX_CPU).rev().find(|&cpu| set.is_set(cpu)));
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    highest.ok().flatten().map_or(count, |highest| highest + 1)
}

fn check_flowop(flowop: &Flowop) -> Result<(), &'static str> {
    if flowop.rate.is_some_and(|rate| !is_valid_rate(rate)) || flowop.count == 0 || flowop.repeat == 0 {
        return Err("invalid flowop: rate, count or repeat out of range");
    }
    match &flowop.action {
        FlowopAction::SendFiles(_) => Err("sending files of the server"),
        FlowopAction::Send(message) | FlowopAction::Receive(message) if !is_valid_message(message) => {
            Err("a message without a size")
        }
        FlowopAction::ReceiveFiles(files) if files.sizes.is_empty() || files.count == 0 => Err("files without a size"),
        _ => Ok(()),
    }
}

fn is_valid_message(message: &Message) -> bool {
    let has_size = match message.size {
        wb_net_profile::MessageSize::Fixed(size) => size > 0,
        wb_net_profile::MessageSize::Random { min, max } => 0 < min && min <= max,
    };
    has_size && message.remote_size != Some(0)
}

fn is_valid_rate(rate: f64) -> bool {
    rate.is_finite() && rate > 0.0
}

fn estimate_memory(assignment: &Assignment) -> u64 {
    let Assignment { profile, strands, settings, .. } = assignment;
    let groups = profile.groups.iter().zip(strands);
    let total: u64 = strands.iter().map(|strands| strands.len() as u64).sum();
    let event_loop = total > u64::from(settings.max_threads);
    groups
        .map(|(group, strands)| {
            let strands = strands.len() as u64;
            // In an event loop the strands of a thread share a buffer and histograms.
            let executors = if event_loop && group.kind == StrandKind::Thread { strands.min(64) } else { strands };
            let flowops: u64 = group.transactions.iter().map(|transaction| transaction.flowops.len() as u64 + 2).sum();
            let messages = group.flowops();
            let buffer = messages.map(|flowop| match &flowop.action {
                FlowopAction::Send(message) | FlowopAction::Receive(message) => {
                    u64::from(message.size.max().max(message.remote_size.unwrap_or(0))) * flowop.batch()
                }
                _ => 0,
            });
            let buffer = buffer.max().unwrap_or(0);
            let digits =
                if flowops.saturating_mul(executors) > 512 { MEMORY_PER_HISTOGRAM / 7 } else { MEMORY_PER_HISTOGRAM };
            let per_executor = flowops.saturating_mul(digits).saturating_add(buffer);
            strands.saturating_mul(MEMORY_PER_STRAND).saturating_add(executors.saturating_mul(per_executor))
        })
        .fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::protocol::HostSession;
    use crate::transport::address::HostAddress;
    use crate::transport::cookie::SessionKey;
    use wb_net_profile::mirror::mirror;
    use wb_net_profile::presets::{PresetConfig, stream};

    fn session() -> HostSession {
        let host = HostAddress::ip("192.0.2.1".parse().unwrap());
        HostSession { local: host, peer: host, key: SessionKey::generate().unwrap() }
    }

    fn assignment(instances: u32, size: u32) -> Assignment {
        let setup = PresetConfig { instances, ..PresetConfig::new("there") };
        let profile = mirror(&stream(&setup, size), "there", &|_| Vec::new());
        Assignment {
            strands: std::iter::once(0..instances).collect(),
            profile,
            side: Side::Server,
            hosts: [("client".to_owned(), session())].into(),
            seed: 0,
            settings: Default::default(),
        }
    }

    fn refusal(assignment: &Assignment) -> String {
        SessionLimits::default().check(assignment).expect_err("it is too much").to_string()
    }

    #[test]
    fn usual_assignments_are_accepted() {
        for (strands, size) in [(1, 64), (1000, 16384), (10_000, 90)] {
            assert_eq!(SessionLimits::default().check(&assignment(strands, size)), Ok(()));
        }
    }

    #[test]
    fn hostile_numbers_are_refused() {
        assert!(refusal(&assignment(1 << 31, 64)).contains("2147483648 strands; at most 20000"));
        assert!(refusal(&assignment(4, u32::MAX)).contains("MiB of memory; at most 2048 MiB"));
        let mut endless = assignment(1, 64);
        endless.profile.groups[0].transactions[1].extent = Extent::Window(Duration::MAX);
        assert!(refusal(&endless).contains("at most 3600 s"));
        let mut files = assignment(1, 64);
        let files_of = wb_net_profile::Files { dir: "/etc".to_owned(), count: 1, chunk: None };
        files.profile.groups[0].transactions[1].flowops[0].action = FlowopAction::SendFiles(files_of);
        assert!(refusal(&files).contains("sending files of the server"));
    }
}
