//! Telemetry while a sample runs.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use rustix::process::getppid;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval_at};
use wb_model::Nanos;
use wb_sys::process::tree;
use wb_sys::telemetry::{Reader, Reading, Telemetry, Workload};

use crate::protocol::Fault;
use crate::terms::Holder;

use super::Agent;
use super::groups::LiveGroup;

/// The shortest time between two readings: what is read oftener disturbs what it watches.
const SHORTEST: Duration = Duration::from_millis(10);
/// The most readings of a series: what fits into one answer for a thousand CPUs. At more, every second
/// one is left out and half as many come.
const MOST: usize = 120;

/// A recording under way.
pub(super) struct Recording {
    group: Rc<LiveGroup>,
    reader: RefCell<Reader>,
    start: Reading,
    series: RefCell<Vec<Reading>>,
    /// The runs of other controllers that were under way meanwhile.
    other_runs: RefCell<BTreeSet<Holder>>,
    every: Cell<usize>,
    stopped: Notify,
}

impl Agent {
    /// Starts to record what the system does while a group runs.
    pub(super) fn record(self: &Rc<Self>, group: u32, interval: Nanos) -> Result<u32, Fault> {
        let group = self.group(group)?;
        let driver = getppid().map(|pid| pid.as_raw_nonzero().get().cast_unsigned()).filter(|pid| *pid > 1);
        let mut reader = Reader::new(&self.root, driver);
        let start = reader.read(Some(self.workload(&group, &reader)), self.beside(&group, &reader));
        let recording = Rc::new(Recording {
            group,
            reader: RefCell::new(reader),
            start,
            series: RefCell::default(),
            other_runs: RefCell::new(self.other_runs().into_iter().collect()),
            every: Cell::new(1),
            stopped: Notify::new(),
        });
        let id = self.next_id();
        self.recordings.borrow_mut().insert(id, recording.clone());
        let agent = self.clone();
        let period = Duration::from(interval).max(SHORTEST);
        tokio::task::spawn_local(async move { agent.keep_reading(&recording, period).await });
        Ok(id)
    }

    /// Ends a recording; what it recorded, and the other runs that were under way. To be asked for while the group is
    /// there, for the workload's part of the last reading.
    pub(super) fn finish_recording(&self, id: u32) -> Result<(Telemetry, Vec<Holder>), Fault> {
        let recording = self.recordings.borrow_mut().remove(&id);
        let recording = recording.ok_or_else(|| Fault::Unknown { what: "recording".to_owned(), id })?;
        recording.stopped.notify_one();
        let end = self.take_reading(&recording);
        recording.other_runs.borrow_mut().extend(self.other_runs());
        let telemetry = Telemetry { start: recording.start.clone(), end, series: recording.series.take() };
        Ok((telemetry, recording.other_runs.take().into_iter().collect()))
    }

    async fn keep_reading(&self, recording: &Recording, period: Duration) {
        let mut ticks = interval_at(tokio::time::Instant::now() + period, period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        for tick in 1.. {
            tokio::select! {
                _ = ticks.tick() => {}
                () = recording.stopped.notified() => return,
            }
            recording.other_runs.borrow_mut().extend(self.other_runs());
            if tick % recording.every.get() == 0 {
                let reading = self.take_reading(recording);
                let mut series = recording.series.borrow_mut();
                series.push(reading);
                if series.len() >= MOST {
                    thin(&mut series);
                    recording.every.set(recording.every.get() * 2);
                }
            }
        }
    }

    fn take_reading(&self, recording: &Recording) -> Reading {
        let mut reader = recording.reader.borrow_mut();
        let workload = self.is_there(&recording.group).then(|| self.workload(&recording.group, &reader));
        let beside = self.beside(&recording.group, &reader);
        reader.read(workload, beside)
    }

    fn is_there(&self, group: &LiveGroup) -> bool {
        self.groups.borrow().contains_key(&group.id)
    }

    /// What a group has used until now: its ended processes and its living ones.
    fn workload(&self, group: &LiveGroup, reader: &Reader) -> Workload {
        let used = group.used();
        let members = self.members(group);
        self.look_at(&members);
        let (read, written) = reader.storage_io(members.iter().map(|entry| entry.pid));
        let by_processes = || {
            let ticks: u64 = members.iter().map(|entry| entry.cpu_ticks).sum();
            used.cpu_ns() + ticks * tree::TICK_NS
        };
        Workload {
            cpu_ns: group.cgroup.as_ref().and_then(|cgroup| cgroup.cpu_ns()).unwrap_or_else(by_processes),
            read_bytes: used.read_bytes.saturating_add(read),
            written_bytes: used.written_bytes.saturating_add(written),
            processes: members.len() as u64,
            pressure: group.cgroup.as_ref().and_then(|cgroup| reader.pressure_of(cgroup)),
        }
    }

    /// What all other groups have used until now.
    fn beside(&self, group: &LiveGroup, reader: &Reader) -> Workload {
        let others: Vec<Rc<LiveGroup>> =
            self.groups.borrow().values().filter(|other| other.id != group.id).cloned().collect();
        others.iter().map(|other| self.workload(other, reader)).fold(Workload::default(), Workload::and)
    }
}

/// Leaves out every second one.
fn thin(series: &mut Vec<Reading>) {
    let mut keep = false;
    series.retain(|_| {
        keep = !keep;
        keep
    });
}
