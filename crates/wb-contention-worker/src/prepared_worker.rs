//! A worker that is prepared for a bench: its control groups, controllers and settings.
//!
//! All changes are made through the agent's undo log, for the group of the bench: they are restored when the group is
//! torn down, when the agent ends, or by the next agent.

use std::collections::{BTreeMap, BTreeSet};

use wb_agent::{Command, Process, RevertedChange, TeardownGroup, Worker, WorkerError};
use wb_model::{Bytes, IocostModel, IocostQos};
use wb_sys::cgroup::controllers::{ControllerMount, ON, controller_resource, group_resource};
use wb_sys::cgroup::io_cost;
use wb_sys::undo::{ManagedResource, RevertOutcome};

use super::critical_services::{self, top_group};
use super::device::BlockDevice;
use super::files::{read, read_or_empty};
use super::requirements::{self, DEFAULT_SWAPPINESS, Enforcement, Needs, RequirementReport};
use super::{ContentionError, oomd};

/// Switch of the compressed cache in front of swap.
pub(super) const ZSWAP: &str = "/sys/module/zswap/parameters/enabled";

/// Protected memory of what measures: sshd, the agent, and the readers of its reports.
const CRITICAL_MEMORY: Bytes = Bytes(128 << 20);

/// A control group of a bench, at the top of the hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slice {
    Workload,
    /// What competes with it.
    Sideload,
    /// Takes memory away.
    Balloon,
}

impl Slice {
    const fn name(self) -> &'static str {
        match self {
            Self::Workload => "weighbridge-workload",
            Self::Sideload => "weighbridge-sideload",
            Self::Balloon => "weighbridge-balloon",
        }
    }
}

/// Settings of a control group; what is not set has the kernel's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SliceSettings {
    /// `cpu.weight`: 1 to 10000, default 100.
    pub cpu_weight: Option<u32>,
    /// `io.weight`: 1 to 10000, default 100.
    pub io_weight: Option<u32>,
    /// Never reclaimed (`memory.min`).
    pub memory_min: Option<Bytes>,
    /// Reclaimed only if nothing else can be (`memory.low`).
    pub memory_low: Option<Bytes>,
    /// Beyond it, the kernel kills (`memory.max`).
    pub memory_max: Option<Bytes>,
    /// `memory.swap.max`.
    pub swap_max: Option<Bytes>,
}

impl SliceSettings {
    /// Files with their contents, as the kernel prints them.
    fn files(&self, enforcement: Enforcement) -> Vec<(&'static str, String)> {
        /// The kernel rounds sizes down to pages.
        const PAGE: u64 = 4096;
        /// From this number of pages on, it prints `max` (`PAGE_COUNTER_MAX`).
        const UNLIMITED: u64 = i64::MAX as u64 / PAGE;
        let weight = |file, value: Option<u32>, prefix| value.map(|value| (file, format!("{prefix}{value}")));
        let print = |size: Bytes| match size.0 / PAGE {
            UNLIMITED.. => "max".to_owned(),
            pages => (pages * PAGE).to_string(),
        };
        let size = |file, value: Option<Bytes>| value.map(|size| (file, print(size)));
        let cpu = weight("cpu.weight", self.cpu_weight, "").filter(|_| enforcement.cpu);
        let io = weight("io.weight", self.io_weight, "default ").filter(|_| enforcement.io);
        let memory = [
            size("memory.min", self.memory_min),
            size("memory.low", self.memory_low),
            size("memory.max", self.memory_max),
            size("memory.swap.max", self.swap_max),
        ];
        cpu.into_iter().chain(io).chain(memory.into_iter().flatten().filter(|_| enforcement.memory)).collect()
    }
}

/// State of the I/O cost controller during a bench.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum IoControl {
    Off,
    On(IocostModel, IocostQos),
    Unchanged,
}

/// How a worker is prepared.
#[derive(Debug, Clone)]
pub struct Preparation {
    /// Folder for files of the bench, on the device that is measured.
    pub folder: String,
    /// That of the folder if `None`.
    pub device: Option<String>,
    pub needs: Needs,
    pub enforcement: Enforcement,
    /// Missed requirements are only recorded.
    pub force: bool,
    /// Parameters of io.cost that another program has set do not count as a missed requirement. They are restored at
    /// the end.
    pub accept_iocost: bool,
    pub io_control: IoControl,
    pub swappiness: u32,
    pub slices: Vec<(Slice, SliceSettings)>,
}

impl Preparation {
    /// Everything is enforced, the I/O cost controller is off, and there are no control groups.
    pub fn new(folder: impl Into<String>, needs: Needs) -> Self {
        Self {
            folder: folder.into(),
            device: None,
            needs,
            enforcement: Enforcement::ALL,
            force: false,
            accept_iocost: false,
            io_control: IoControl::Off,
            swappiness: DEFAULT_SWAPPINESS,
            slices: Vec::new(),
        }
    }
}

/// A worker that is prepared for a bench. Dropping it restores the machine.
#[derive(Debug)]
pub struct PreparedWorker {
    worker: Worker,
    group: TeardownGroup,
    mount: Option<ControllerMount>,
    device: BlockDevice,
    requirements: RequirementReport,
    enforcement: Enforcement,
    folder: String,
}

impl PreparedWorker {
    /// Checks the requirements (with `force`, they may be missed), and changes the machine.
    pub async fn new(worker: &Worker, preparation: &Preparation) -> Result<Self, ContentionError> {
        let device = match &preparation.device {
            Some(name) => BlockDevice::named(worker, name).await?,
            None => BlockDevice::of_folder(worker, &preparation.folder).await?,
        };
        let enforcement = preparation.enforcement;
        // Version 1 may have left some other controllers to version 2.
        let is_usable = |mount: &ControllerMount| ["cpu", "io", "memory"].iter().any(|name| mount.has(name));
        let mount = requirements::controller_mount(worker).await?.filter(is_usable);
        if mount.is_none() && preparation.needs != Needs::Device {
            return Err(ContentionError::NoControllers);
        }
        let report = requirements::check(
            worker,
            &device,
            &preparation.folder,
            preparation.needs,
            enforcement,
            preparation.accept_iocost,
        )
        .await?;
        if !report.is_met() && !preparation.force {
            return Err(ContentionError::MissedRequirements(report));
        }
        if let Some(found) = report.indispensable(preparation.needs) {
            return Err(ContentionError::Indispensable(found.to_vec()));
        }
        let group = worker.new_group().await?;
        let folder = preparation.folder.clone();
        let prepared = Self { worker: worker.clone(), group, mount, device, requirements: report, enforcement, folder };
        if let Err(error) = prepared.apply(preparation).await {
            // What was changed is restored before the error is returned; the first error is the cause.
            let _ = prepared.finish().await;
            return Err(error);
        }
        Ok(prepared)
    }

    async fn apply(&self, preparation: &Preparation) -> Result<(), ContentionError> {
        let Enforcement { critical, cpu, memory, file_system: _, io, oomd } = self.enforcement;
        if oomd {
            for unit in oomd::active_units(&self.worker).await? {
                self.group.apply_change(oomd::unit_step(unit), Some(oomd::STOPPED.to_owned())).await?;
            }
        }
        if memory {
            self.set("/proc/sys/vm/swappiness", preparation.swappiness.to_string()).await?;
            if read(&self.worker, ZSWAP).await?.is_some() {
                self.set(ZSWAP, "N".to_owned()).await?;
            }
        }
        if io {
            if self.device.scheduler != "none" && !self.device.scheduler.is_empty() {
                self.set(&self.device.queue("scheduler"), "none".to_owned()).await?;
            }
            if self.device.wbt_microseconds != 0 {
                self.set(&self.device.queue("wbt_lat_usec"), "0".to_owned()).await?;
            }
        }
        let Some(mount) = &self.mount else { return Ok(()) };
        for (controller, is_enforced) in [("cpu", cpu), ("io", io), ("memory", memory || critical)] {
            if is_enforced && mount.has(controller) {
                self.group.apply_change(controller_resource(&mount.point, controller), Some(ON.to_owned())).await?;
            }
        }
        if critical {
            self.protect_critical(mount).await?;
        }
        if io {
            self.set_io_control(preparation.io_control).await?;
        }
        for (slice, settings) in &preparation.slices {
            let (resource, state) = group_resource(self.slice_path(*slice), &settings.files(self.enforcement));
            self.group.apply_change(resource, Some(state)).await?;
        }
        Ok(())
    }

    /// Protects the memory of the top-level control groups that contain the agent and everything that measures, or the
    /// services that the machine cannot do without. A group that is protected better already stays as it is.
    async fn protect_critical(&self, mount: &ControllerMount) -> Result<(), ContentionError> {
        let own = self.group.cgroup().and_then(|path| top_group(path.strip_prefix(&mount.point)?));
        let services = critical_services::top_groups(&self.worker).await?.into_keys();
        let groups: BTreeSet<String> = own.map(str::to_owned).into_iter().chain(services).collect();
        for group in groups {
            let file = format!("{}/{group}/memory.min", mount.point);
            let Some(present) = read(&self.worker, &file).await? else { continue };
            if present != "max" && present.parse::<u64>().is_ok_and(|present| present < CRITICAL_MEMORY.0) {
                self.set(&file, CRITICAL_MEMORY.0.to_string()).await?;
            }
        }
        Ok(())
    }

    pub async fn set_io_control(&self, control: IoControl) -> Result<(), ContentionError> {
        let Some(mount) = &self.mount else { return Ok(()) };
        if read(&self.worker, &format!("{}/io.cost.qos", mount.point)).await?.is_none() {
            return Ok(());
        }
        let device = &self.device.number;
        let (model, qos) = match control {
            IoControl::Unchanged => return Ok(()),
            IoControl::Off => (None, format!("{}\n", io_cost::DEFAULT)),
            IoControl::On(model, qos) => (Some(io_cost::model_state(&model)), io_cost::qos_state(&qos)),
        };
        if let Some(model) = model {
            self.group.apply_change(io_cost::model_resource(&mount.point, device), Some(model)).await?;
        }
        self.group.apply_change(io_cost::qos_resource(&mount.point, device), Some(qos)).await?;
        Ok(())
    }

    pub(super) async fn set(&self, path: &str, value: String) -> Result<(), ContentionError> {
        self.group.apply_change(ManagedResource::setting(path), Some(value)).await?;
        Ok(())
    }

    pub fn worker(&self) -> &Worker {
        &self.worker
    }

    /// The group of the bench: its processes and changes end with it.
    pub fn group(&self) -> &TeardownGroup {
        &self.group
    }

    pub fn device(&self) -> &BlockDevice {
        &self.device
    }

    pub fn folder(&self) -> &str {
        &self.folder
    }

    pub fn requirements(&self) -> &RequirementReport {
        &self.requirements
    }

    pub fn enforcement(&self) -> Enforcement {
        self.enforcement
    }

    pub fn slice_path(&self, slice: Slice) -> String {
        let point = self.mount.as_ref().map_or("", |mount| &mount.point);
        // At the top of the hierarchy, not in the agent's group: a group with processes cannot have controllers below
        // it.
        format!("{point}/{}", slice.name())
    }

    /// Mount point of cgroup v2; empty without controllers.
    pub(super) fn cgroup_point(&self) -> &str {
        self.mount.as_ref().map_or("", |mount| &mount.point)
    }

    /// `io.stat` of the root, which has the figures of the I/O cost controller; `None` without controllers.
    pub(super) fn root_io_stat(&self) -> Option<String> {
        self.mount.as_ref().filter(|mount| mount.has("io")).map(|mount| format!("{}/io.stat", mount.point))
    }

    pub async fn spawn(&self, slice: Slice, command: Command) -> Result<Process, ContentionError> {
        Ok(self.group.spawn(command.cgroup(self.slice_path(slice))).await?)
    }

    /// Memory that a control group uses; 0 if it does not exist.
    pub async fn memory_usage(&self, slice: Slice) -> Result<Bytes, ContentionError> {
        let text = read_or_empty(&self.worker, &format!("{}/memory.current", self.slice_path(slice))).await?;
        Ok(Bytes(text.parse().unwrap_or_default()))
    }

    /// Number of processes of the group that the kernel killed because memory ran out.
    pub async fn oom_kills(&self, slice: Slice) -> Result<u64, ContentionError> {
        let text = read_or_empty(&self.worker, &format!("{}/memory.events", self.slice_path(slice))).await?;
        let kills = text.lines().find_map(|line| line.strip_prefix("oom_kill ")).unwrap_or("0");
        Ok(kills.parse().unwrap_or_default())
    }

    /// What `io.stat` of a control group has about the device; empty if nothing.
    pub(super) async fn io_stat(&self, group: &str) -> Result<IoStat, ContentionError> {
        let text = read_or_empty(&self.worker, &format!("{group}/io.stat")).await?;
        Ok(parse_io_stat(&text, &self.device.number))
    }

    /// Ends the processes of the bench and restores the machine. Fails if another program has changed a setting
    /// meanwhile, so that something else was measured than requested.
    pub async fn finish(self) -> Result<(), ContentionError> {
        let worker = self.worker.name().clone();
        let report = self.group.teardown().await?;
        let is_foreign = |change: &&RevertedChange| matches!(change.outcome, RevertOutcome::Conflict { .. });
        let changed = report.reverted.iter().find(is_foreign);
        match changed {
            Some(change) => Err(ContentionError::ForeignChange { what: change.description.clone() }),
            None => Ok(report.into_result().map_err(|fault| WorkerError::Fault { worker, fault })?),
        }
    }
}

/// Figures of a device, by name.
pub(super) type IoStat = BTreeMap<String, String>;

/// The figures of a device in `io.stat`, such as `259:0 rbytes=1 … cost.usage=7`.
pub(super) fn parse_io_stat(text: &str, device: &str) -> IoStat {
    let line = text.lines().find_map(|line| line.strip_prefix(device)?.strip_prefix(' ')).unwrap_or_default();
    let pairs = line.split_whitespace().filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_the_device_are_found() {
        let text = "254:0 rbytes=1 wbytes=2\n259:0 rbytes=7 cost.vrate=75.00 cost.usage=2500000\n";
        let figures = parse_io_stat(text, "259:0");
        assert_eq!([&figures["cost.vrate"], &figures["cost.usage"]], ["75.00", "2500000"]);
        assert!(parse_io_stat(text, "59:0").is_empty());
    }

    #[test]
    fn settings_are_written_as_the_kernel_prints_them() {
        let settings = SliceSettings {
            cpu_weight: Some(100),
            io_weight: Some(500),
            memory_low: Some(Bytes(5000)),
            ..SliceSettings::default()
        };
        let expected = [("cpu.weight", "100"), ("io.weight", "default 500"), ("memory.low", "4096")]
            .map(|(file, value)| (file, value.to_owned()));
        assert_eq!(settings.files(Enforcement::ALL), expected);
        assert_eq!(
            settings.files(Enforcement { io: false, ..Enforcement::ALL }),
            [expected[0].clone(), expected[2].clone()]
        );
        assert!(settings.files(Enforcement::CRITICAL_ONLY).is_empty());
        let all = SliceSettings { memory_min: Some(Bytes(u64::MAX)), ..SliceSettings::default() };
        assert_eq!(all.files(Enforcement::ALL), [("memory.min", "max".to_owned())]);
    }
}
