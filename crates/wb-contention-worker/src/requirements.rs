//! What a machine must have for a bench, checked and listed by name.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_agent::{Worker, WorkerError};
use wb_sys::cgroup::controllers::ControllerMount;
use wb_sys::cgroup::io_cost::IocostState;
use wb_sys::environment::memory::selected_option;
use wb_sys::proc::swaps;

use super::device::BlockDevice;
use super::files::{names, read, read_or_empty};
use super::{critical_services, file_system};

/// A property of a machine without which a bench measures something else
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Requirement {
    /// The controllers cpu, io and memory of cgroup v2
    Controllers,
    /// Memory protection of a group that extends to its descendants
    RecursiveMemoryProtection,
    /// Kernel that remembers which pages of a file were evicted when its inode is reclaimed: from 5.15 on
    ShadowInodeProtection,
    /// The I/O cost controller
    Iocost,
    /// No I/O cost parameters that another program has set
    IocostUnused,
    /// No other controller of I/O that is in use
    IoControllersUnused,
    /// A device that does not consist of others
    NoCompositeDevice,
    /// btrfs, for hashd's files and for the machine
    Btrfs,
    /// btrfs that trims unused blocks in the background
    BtrfsAsyncDiscard,
    /// No I/O scheduler
    IoScheduler,
    /// No throttling of writeback
    NoWbt,
    /// Swap
    Swap,
    /// Swap on the device that is measured
    SwapOnDevice,
    /// Anonymous memory and page cache that are reclaimed alike, by the default swappiness
    AnonBalance,
    /// No compressed cache in front of swap
    NoZswap,
    /// No daemon that kills processes when memory becomes scarce
    NoOomd,
    /// Protected memory of what answers for the machine: ssh, the journal, the message bus
    HostCriticalServices,
    /// Groups that can be frozen
    Freezer,
    /// The program fio
    Fio,
}

impl Requirement {
    /// In the order in which they are shown.
    pub const ALL: [Self; 19] = [
        Self::Controllers,
        Self::RecursiveMemoryProtection,
        Self::ShadowInodeProtection,
        Self::Iocost,
        Self::IocostUnused,
        Self::IoControllersUnused,
        Self::NoCompositeDevice,
        Self::Btrfs,
        Self::BtrfsAsyncDiscard,
        Self::IoScheduler,
        Self::NoWbt,
        Self::Swap,
        Self::SwapOnDevice,
        Self::AnonBalance,
        Self::NoZswap,
        Self::NoOomd,
        Self::HostCriticalServices,
        Self::Freezer,
        Self::Fio,
    ];

    /// Whether a bench sets it, so that its present state does not matter.
    pub fn is_set_by(self, enforcement: Enforcement) -> bool {
        match self {
            Self::IoScheduler | Self::NoWbt => enforcement.io,
            Self::AnonBalance | Self::NoZswap => enforcement.memory,
            Self::NoOomd => enforcement.oomd,
            Self::HostCriticalServices => enforcement.critical,
            _ => false,
        }
    }
}

impl fmt::Display for Requirement {
    /// The name in JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// What a bench uses, and therefore requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Only fio on the device: `iocost-params`.
    Device,
    /// Memory and swap: `storage`, `hashd-params`.
    Memory,
    /// `iocost-qos`, `protection`.
    Everything,
}

impl Needs {
    pub fn includes(self, requirement: Requirement) -> bool {
        use Requirement::*;
        match self {
            Self::Everything => true,
            Self::Memory => {
                !matches!(requirement, Fio | Iocost | RecursiveMemoryProtection | Btrfs | BtrfsAsyncDiscard | Freezer)
            }
            Self::Device => matches!(
                requirement,
                Fio | IocostUnused | IoControllersUnused | NoCompositeDevice | IoScheduler | NoWbt
            ),
        }
    }
}

pub const DEFAULT_SWAPPINESS: u32 = 60;

/// What was checked
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RequirementReport {
    /// Requirements that are met
    pub satisfied: Vec<Requirement>,
    /// Requirements that are not met, with what was found in their place
    pub missed: BTreeMap<Requirement, Vec<String>>,
}

impl RequirementReport {
    pub fn is_met(&self) -> bool {
        self.missed.is_empty()
    }

    pub fn describe_missed(&self) -> String {
        self.missed.values().flatten().cloned().collect::<Vec<_>>().join("; ")
    }

    /// What was found in place of a requirement that the bench cannot do without, even with `force`.
    pub fn indispensable(&self, needs: Needs) -> Option<&[String]> {
        indispensable(needs).iter().find_map(|requirement| self.missed.get(requirement)).map(Vec::as_slice)
    }

    fn record(&mut self, requirement: Requirement, found: Vec<String>) {
        if found.is_empty() {
            self.satisfied.push(requirement);
        } else {
            self.missed.insert(requirement, found);
        }
    }
}

pub fn indispensable(needs: Needs) -> &'static [Requirement] {
    match needs {
        Needs::Device => &[Requirement::Fio],
        // Without swap nothing is reclaimed: processes grow until the kernel kills them.
        Needs::Memory | Needs::Everything => &[Requirement::Controllers, Requirement::Swap],
    }
}

/// Settings that a bench changes, so that their present state does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enforcement {
    /// Memory protection of what measures: ssh, the agent.
    pub critical: bool,
    pub cpu: bool,
    /// The memory controller and other settings of memory.
    pub memory: bool,
    /// Whether file systems trim unused blocks.
    pub file_system: bool,
    /// The I/O controller and other settings of I/O.
    pub io: bool,
    /// Daemons that kill processes when memory becomes scarce.
    pub oomd: bool,
}

impl Enforcement {
    /// As without `passive`.
    pub const ALL: Self = Self { critical: true, cpu: true, memory: true, file_system: true, io: true, oomd: true };
    /// `passive=all`.
    pub const CRITICAL_ONLY: Self = Self { critical: true, ..Self::NONE };
    /// `passive=ALL`.
    pub const NONE: Self =
        Self { critical: false, cpu: false, memory: false, file_system: false, io: false, oomd: false };
}

/// Checks the requirements of a bench whose files are in a folder, except for what the bench sets itself and, with
/// `accept_iocost`, parameters of io.cost that another program has set.
pub async fn check(
    worker: &Worker,
    device: &BlockDevice,
    folder: &str,
    needs: Needs,
    enforcement: Enforcement,
    accept_iocost: bool,
) -> Result<RequirementReport, WorkerError> {
    let mut report = RequirementReport::default();
    let mut record = |requirement: Requirement, found: Vec<String>| {
        if needs.includes(requirement) && !requirement.is_set_by(enforcement) {
            report.record(requirement, found);
        }
    };
    let mount = controller_mount(worker).await?;
    let missing =
        ["cpu", "io", "memory"].into_iter().filter(|name| !mount.as_ref().is_some_and(|mount| mount.has(name)));
    let missing: Vec<String> = missing.map(|name| format!("cgroup v2 has no controller {name}")).collect();
    record(Requirement::Controllers, missing);
    let recursive = mount.as_ref().is_some_and(|mount| mount.is_protection_recursive);
    let hint = "cgroup v2 is mounted without memory_recursiveprot";
    record(Requirement::RecursiveMemoryProtection, unless(recursive, hint));
    let point = mount.as_ref().map_or("", |mount| &mount.point);
    let release = read_or_empty(worker, "/proc/sys/kernel/osrelease").await?;
    let hint = format!("kernel {release}, older than 5.15, forgets what was evicted from reclaimed inodes");
    record(Requirement::ShadowInodeProtection, unless(protects_shadow_inodes(&release), &hint));
    let model = read(worker, &format!("{point}/io.cost.model")).await?;
    let has_iocost = mount.is_some() && model.is_some();
    record(Requirement::Iocost, unless(has_iocost, "the kernel has no I/O cost controller (BLK_CGROUP_IOCOST)"));
    let qos = read(worker, &format!("{point}/io.cost.qos")).await?.unwrap_or_default();
    let state = IocostState::parse(&model.unwrap_or_default(), &qos, &device.number);
    let in_use = state.filter(|state| state.enabled || state.is_model_set);
    let in_use = in_use.map(|state| {
        format!("another program has set I/O cost parameters of {}: {} {}", device.name, state.model, state.qos)
    });
    if !accept_iocost {
        record(Requirement::IocostUnused, in_use.into_iter().collect());
    }
    record(Requirement::IoControllersUnused, io_controllers_in_use(worker, device, point).await?);
    let composite = format!("{} consists of other devices: name one of them", device.name);
    let mut composite = unless(!device.composite, &composite);
    let file_systems = file_system::check(worker, folder, device.rotational).await?;
    composite.extend(file_systems.several_devices);
    record(Requirement::NoCompositeDevice, composite);
    record(Requirement::Btrfs, file_systems.not_btrfs);
    record(Requirement::BtrfsAsyncDiscard, file_systems.synchronous);
    let name = &device.scheduler;
    let scheduler = format!("the I/O scheduler of {} is {name}, not none", device.name);
    record(Requirement::IoScheduler, unless(name == "none" || name.is_empty(), &scheduler));
    let limit = device.wbt_microseconds;
    let wbt = format!("writeback of {} is throttled from {limit} µs (wbt)", device.name);
    record(Requirement::NoWbt, unless(limit == 0, &wbt));
    let areas = read_or_empty(worker, "/proc/swaps").await?;
    let mut on_device = false;
    let mut count = 0;
    for area in swaps::areas(&areas).flatten() {
        count += 1;
        on_device |= is_on_device(worker, &wb_sys::proc::unescape(area.name), device).await?;
    }
    record(Requirement::Swap, unless(count > 0, "no swap is enabled"));
    record(Requirement::SwapOnDevice, unless(on_device, &format!("no swap is on {}", device.name)));
    let swappiness = read_or_empty(worker, "/proc/sys/vm/swappiness").await?;
    let expected = DEFAULT_SWAPPINESS.to_string();
    let hint = format!("swappiness is {swappiness}, not {expected}");
    record(Requirement::AnonBalance, unless(swappiness == expected, &hint));
    let zswap = read_or_empty(worker, super::prepared_worker::ZSWAP).await?;
    record(Requirement::NoZswap, unless(zswap != "Y", "zswap is enabled"));
    if !enforcement.oomd {
        let active = super::oomd::active_units(worker).await?;
        let found = active.iter().map(|unit| format!("{unit} is active")).collect();
        record(Requirement::NoOomd, found);
    }
    if !enforcement.critical {
        record(Requirement::HostCriticalServices, critical_services::unprotected(worker, point).await?);
    }
    record(Requirement::Freezer, unless(can_freeze(worker, point).await?, "cgroup v2 has no freezer (Linux 5.2)"));
    let fio = worker.which("fio", &[]).await?;
    record(Requirement::Fio, unless(fio.is_some(), "fio is not installed"));
    Ok(report)
}

/// Whether groups can be frozen: any that is not the root has the file.
async fn can_freeze(worker: &Worker, point: &str) -> Result<bool, WorkerError> {
    if point.is_empty() {
        return Ok(false);
    }
    for name in names(worker, point).await? {
        if !read_or_empty(worker, &format!("{point}/{name}/cgroup.freeze")).await?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The mount of cgroup v2 that has controllers.
pub(super) async fn controller_mount(worker: &Worker) -> Result<Option<ControllerMount>, WorkerError> {
    let mountinfo = read_or_empty(worker, "/proc/self/mountinfo").await?;
    let mut found = None;
    for mount in wb_sys::proc::mountinfo::mounts(&mountinfo).filter(|mount| mount.kind == "cgroup2") {
        let path = format!("{}/cgroup.controllers", mount.point);
        let controllers = read(worker, &path).await?;
        found =
            found.or_else(|| ControllerMount::find(&mountinfo, |other| controllers.clone().filter(|_| other == path)));
    }
    Ok(found)
}

/// Finds limits of I/O in groups at the top, where systemd sets those of units, and a scheduler that controls I/O.
async fn io_controllers_in_use(worker: &Worker, device: &BlockDevice, point: &str) -> Result<Vec<String>, WorkerError> {
    let mut found = Vec::new();
    let scheduler = read_or_empty(worker, &device.queue("scheduler")).await?;
    if selected_option(&scheduler) == "bfq" {
        found.push(format!("the scheduler bfq controls I/O of {}", device.name));
    }
    if point.is_empty() {
        return Ok(found);
    }
    for name in names(worker, point).await?.iter().filter(|name| name.contains('.')) {
        for file in ["io.max", "io.latency"] {
            let text = read_or_empty(worker, &format!("{point}/{name}/{file}")).await?;
            if text.lines().any(|line| line.split(' ').next() == Some(&device.number)) {
                found.push(format!("{file} of {name} limits I/O of {}", device.name));
            }
        }
    }
    Ok(found)
}

/// Whether a swap area, by the path of its device or file, is on a device.
async fn is_on_device(worker: &Worker, area: &str, device: &BlockDevice) -> Result<bool, WorkerError> {
    let found = match area.strip_prefix("/dev/") {
        Some(name) => BlockDevice::named(worker, name).await,
        None => BlockDevice::of_folder(worker, area).await,
    };
    match found {
        Ok(found) => Ok(found.number == device.number),
        Err(super::ContentionError::Worker(error)) => Err(error),
        // What has no block device, like a file of tmpfs, is not on this one.
        Err(_) => Ok(false),
    }
}

/// Whether the release of a kernel is 5.15 or later.
fn protects_shadow_inodes(release: &str) -> bool {
    let mut numbers = release.split(|end: char| !end.is_ascii_digit()).map(|number| number.parse::<u32>().ok());
    let version = (numbers.next().flatten(), numbers.next().flatten());
    version >= (Some(5), Some(15))
}

fn unless(is_met: bool, found: &str) -> Vec<String> {
    if is_met { Vec::new() } else { vec![found.to_owned()] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bench_requires_what_it_uses() {
        assert!(Needs::Everything.includes(Requirement::Swap));
        assert!(Needs::Memory.includes(Requirement::SwapOnDevice) && !Needs::Memory.includes(Requirement::Iocost));
        assert!(Needs::Device.includes(Requirement::Fio) && !Needs::Device.includes(Requirement::Swap));
    }

    #[test]
    fn what_a_bench_sets_is_not_missed() {
        let set = |enforcement: Enforcement| Requirement::ALL.into_iter().filter(move |one| one.is_set_by(enforcement));
        assert_eq!(set(Enforcement::ALL).count(), 6);
        assert_eq!(set(Enforcement::CRITICAL_ONLY).collect::<Vec<_>>(), [Requirement::HostCriticalServices]);
        assert_eq!(set(Enforcement::NONE).count(), 0);
    }

    #[test]
    fn kernels_from_5_15_on_protect_shadow_inodes() {
        for (release, expected) in
            [("5.15.0", true), ("6.1.0-9-amd64", true), ("5.14.21-150500", false), ("4.19.0", false), ("", false)]
        {
            assert_eq!(protects_shadow_inodes(release), expected, "{release}");
        }
    }

    // Without swap, a forced bench let processes grow until the kernel killed them.
    #[test]
    fn nothing_forces_a_bench_that_cannot_work() {
        let mut report = RequirementReport::default();
        report.record(Requirement::NoWbt, vec!["wbt".to_owned()]);
        report.record(Requirement::Swap, vec!["no swap is enabled".to_owned()]);
        assert_eq!(report.indispensable(Needs::Memory), Some(&["no swap is enabled".to_owned()][..]));
        assert_eq!(report.indispensable(Needs::Device), None);
    }

    #[test]
    fn what_is_missed_is_listed_by_name() {
        let mut report = RequirementReport::default();
        report.record(Requirement::Swap, Vec::new());
        report.record(Requirement::NoWbt, vec!["wbt".to_owned()]);
        assert!(!report.is_met());
        assert_eq!(serde_json::to_string(&report).unwrap(), r#"{"satisfied":["swap"],"missed":{"no-wbt":["wbt"]}}"#);
        assert_eq!(report.describe_missed(), "wbt");
    }
}
