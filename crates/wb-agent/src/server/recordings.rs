//! Telemetry recordings while a sample runs.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use rustix::process::getppid;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval_at};
use wb_model::Nanos;
use wb_sys::process::tree;
use wb_sys::telemetry::{Telemetry, TelemetryReader, TelemetryReading, WorkloadUsage};

use crate::protocol::{AgentSession, Fault};

use super::Agent;
use super::groups::LiveGroup;

/// Minimum time between two readings; more frequent readings disturb the workload.
const MIN_INTERVAL: Duration = Duration::from_millis(10);
/// Maximum number of readings in a series: what fits into one response for a thousand CPUs. Beyond it, every second
/// reading is dropped and the interval doubled.
const MAX_READINGS: usize = 120;

/// An active recording.
pub(super) struct LiveRecording {
    group: Rc<LiveGroup>,
    reader: RefCell<TelemetryReader>,
    start: TelemetryReading,
    series: RefCell<Vec<TelemetryReading>>,
    /// Runs of other controllers that were active meanwhile.
    other_runs: RefCell<BTreeSet<AgentSession>>,
    stride: Cell<usize>,
    stopped: Notify,
}

impl Agent {
    /// Starts recording telemetry while a group runs.
    pub(super) fn record(self: &Rc<Self>, group: u32, interval: Nanos) -> Result<u32, Fault> {
        let group = self.group(group)?;
        let controller = getppid().map(|pid| pid.as_raw_nonzero().get().cast_unsigned()).filter(|pid| *pid > 1);
        let mut reader = TelemetryReader::new(&self.root, controller);
        let start = reader.read(Some(self.workload(&group, &reader)), self.other_groups_workload(&group, &reader));
        let recording = Rc::new(LiveRecording {
            group,
            reader: RefCell::new(reader),
            start,
            series: RefCell::default(),
            other_runs: RefCell::new(self.other_runs().into_iter().collect()),
            stride: Cell::new(1),
            stopped: Notify::new(),
        });
        let id = self.next_id();
        self.recordings.borrow_mut().insert(id, recording.clone());
        let agent = self.clone();
        let period = Duration::from(interval).max(MIN_INTERVAL);
        tokio::task::spawn_local(async move { agent.read_periodically(&recording, period).await });
        Ok(id)
    }

    /// Ends a recording; returns its telemetry and the other runs that were active. Must be called while the group
    /// exists, so that the last reading includes the workload.
    pub(super) fn finish_recording(&self, id: u32) -> Result<(Telemetry, Vec<AgentSession>), Fault> {
        let recording = self.recordings.borrow_mut().remove(&id);
        let recording = recording.ok_or_else(|| Fault::NoSuchId { noun: "recording".to_owned(), id })?;
        recording.stopped.notify_one();
        let end = self.take_reading(&recording);
        recording.other_runs.borrow_mut().extend(self.other_runs());
        let telemetry = Telemetry { start: recording.start.clone(), end, series: recording.series.take() };
        Ok((telemetry, recording.other_runs.take().into_iter().collect()))
    }

    async fn read_periodically(&self, recording: &LiveRecording, period: Duration) {
        let mut ticks = interval_at(tokio::time::Instant::now() + period, period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        for tick in 1.. {
            tokio::select! {
                _ = ticks.tick() => {}
                () = recording.stopped.notified() => return,
            }
            // At each tick, not only when a reading is kept: each sample records the runs that disturbed it.
            recording.other_runs.borrow_mut().extend(self.other_runs());
            if tick % recording.stride.get() == 0 {
                let reading = self.take_reading(recording);
                let mut series = recording.series.borrow_mut();
                series.push(reading);
                if series.len() >= MAX_READINGS {
                    decimate(&mut series);
                    recording.stride.set(recording.stride.get() * 2);
                }
            }
        }
    }

    fn take_reading(&self, recording: &LiveRecording) -> TelemetryReading {
        let mut reader = recording.reader.borrow_mut();
        let workload = self.is_live(&recording.group).then(|| self.workload(&recording.group, &reader));
        let beside = self.other_groups_workload(&recording.group, &reader);
        reader.read(workload, beside)
    }

    fn is_live(&self, group: &LiveGroup) -> bool {
        self.groups.borrow().contains_key(&group.id)
    }

    /// Sums up the resources a group has used so far, by exited and living processes.
    fn workload(&self, group: &LiveGroup, reader: &TelemetryReader) -> WorkloadUsage {
        let used = group.usage();
        let members = self.members(group);
        self.check_members_for_strays(&members);
        let (read, written) = reader.storage_io(members.iter().map(|entry| entry.pid));
        let by_processes = || {
            let ticks: u64 = members.iter().map(|entry| entry.cpu_ticks).sum();
            used.cpu_ns() + ticks * tree::TICK_NS
        };
        WorkloadUsage {
            cpu_ns: group.cgroup.as_ref().and_then(|cgroup| cgroup.cpu_ns()).unwrap_or_else(by_processes),
            read_bytes: used.read_bytes.saturating_add(read),
            written_bytes: used.written_bytes.saturating_add(written),
            processes: members.len() as u64,
            pressure: group.cgroup.as_ref().and_then(|cgroup| reader.pressure_of(cgroup)),
        }
    }

    /// Sums up the resources all other groups have used so far.
    fn other_groups_workload(&self, group: &LiveGroup, reader: &TelemetryReader) -> WorkloadUsage {
        let others: Vec<Rc<LiveGroup>> =
            self.groups.borrow().values().filter(|other| other.id != group.id).cloned().collect();
        others.iter().map(|other| self.workload(other, reader)).fold(WorkloadUsage::default(), WorkloadUsage::combine)
    }
}

/// Drops every second reading.
fn decimate(series: &mut Vec<TelemetryReading>) {
    let mut keep = false;
    series.retain(|_| {
        keep = !keep;
        keep
    });
}
