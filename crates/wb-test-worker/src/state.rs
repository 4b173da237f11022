use std::collections::{BTreeMap, BTreeSet};

use wb_agent::protocol::{Request, call};
use wb_agent::{AgentSession, EntryKind, ExitReason, Fault, FileEntry, TeardownReport, TuneReport};
use wb_model::Nanos;
use wb_sys::telemetry::Telemetry;

use crate::FakeProcess;

pub(crate) type RequestFilter = Box<dyn Fn(&Request) -> bool + Send>;
pub(crate) type Teardown = Box<dyn Fn() -> TeardownReport + Send>;
pub(crate) type Tune = Box<dyn Fn(&call::Tune) -> Result<TuneReport, Fault> + Send>;

/// Files, groups and processes of a simulated machine, and its predefined results.
#[derive(Default)]
pub(crate) struct State {
    last_id: u32,
    files: BTreeMap<String, Vec<u8>>,
    groups: BTreeSet<u32>,
    processes: BTreeMap<u32, Running>,
    /// Contents of installed programs, by name; that of any other program is its name.
    pub(crate) programs: BTreeMap<String, String>,
    pub(crate) teardown: Option<Teardown>,
    pub(crate) tune: Option<Tune>,
    pub(crate) telemetry: Telemetry,
    pub(crate) announced: Vec<AgentSession>,
    pub(crate) lost: Option<String>,
    pub(crate) breaks_at: Option<RequestFilter>,
}

/// A started process. Times are in nanoseconds of the machine's clock.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    pub(crate) process: FakeProcess,
    /// Time of its start or release; none while it is held.
    pub(crate) started_ns: Option<u64>,
}

impl State {
    pub(crate) fn next_id(&mut self) -> u32 {
        self.last_id += 1;
        self.last_id
    }

    pub(crate) fn open_group(&mut self) -> u32 {
        let id = self.next_id();
        self.groups.insert(id);
        id
    }

    pub(crate) fn close_group(&mut self, id: u32) -> Result<TeardownReport, Fault> {
        if !self.groups.remove(&id) {
            return Err(Fault::NoSuchId { noun: "group".to_owned(), id });
        }
        Ok(self.teardown.as_ref().map_or_else(TeardownReport::clean, |teardown| teardown()))
    }

    pub(crate) fn open_groups(&self) -> usize {
        self.groups.len()
    }

    pub(crate) fn start(&mut self, process: FakeProcess, started_ns: Option<u64>) -> u32 {
        let id = self.next_id();
        for (path, content) in &process.files {
            self.files.insert(path.clone(), content.clone());
        }
        self.processes.insert(id, Running { process, started_ns });
        id
    }

    pub(crate) fn process(&mut self, id: u32) -> Result<&mut Running, Fault> {
        self.processes.get_mut(&id).ok_or(Fault::NoSuchId { noun: "process".to_owned(), id })
    }

    pub(crate) fn forget(&mut self, id: u32) {
        self.processes.remove(&id);
    }

    pub(crate) fn write(&mut self, call::Put { path, offset, bytes, .. }: &call::Put) {
        let file = self.files.entry(path.clone()).or_default();
        file.truncate(usize::try_from(*offset).unwrap_or(usize::MAX));
        file.extend_from_slice(bytes);
    }

    pub(crate) fn read(&self, path: &str) -> Result<&[u8], Fault> {
        let missing =
            || Fault::File { path: path.to_owned(), why: "No such file or directory".to_owned(), missing: true };
        self.files.get(path).map(Vec::as_slice).ok_or_else(missing)
    }

    pub(crate) fn list(&self, folder: &str) -> Vec<FileEntry> {
        let name = |path: &String| path.strip_prefix(folder)?.strip_prefix('/').map(str::to_owned);
        let entry = |(path, bytes): (&String, &Vec<u8>)| {
            Some(FileEntry { name: name(path)?, kind: EntryKind::File, size: bytes.len() as u64 })
        };
        self.files.iter().filter_map(entry).collect()
    }

    pub(crate) fn remove(&mut self, path: &str) {
        self.files.retain(|file, _| file != path && !file.starts_with(&format!("{path}/")));
    }
}

impl Running {
    /// Returns how it ends within the limit, and the time from its start.
    pub(crate) fn end(&self, limit: Option<Nanos>) -> (ExitReason, Nanos) {
        let elapsed = Nanos(u64::try_from(self.process.elapsed.as_nanos()).unwrap_or(u64::MAX));
        match limit {
            Some(limit) if limit < elapsed => (ExitReason::TimedOut { limit }, limit),
            _ => (self.process.ending, elapsed),
        }
    }
}
