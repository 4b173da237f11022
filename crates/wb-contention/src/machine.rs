//! Reads what the header of a result states about a machine. Changes nothing.

use std::path::{Path, PathBuf};

use wb_model::Bytes;
use wb_results::contention::{Device, IocostParameters, Passive, SystemInfo};
use wb_sys::cgroup::io_cost::IocostState;
use wb_sys::proc::mountinfo::mount_of;
use wb_sys::proc::unescape;
use wb_sys::{SysRoot, environment, facts};

#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    #[error("cannot determine the storage device of {}: {reason}", path.display())]
    NoDevice { path: PathBuf, reason: String },
    #[error("unknown block device `{name}`")]
    UnknownDevice { name: String },
}

impl MachineError {
    pub fn help(&self) -> &'static str {
        match self {
            Self::NoDevice { .. } => "name the device with --dev, such as `--dev nvme0n1`",
            Self::UnknownDevice { .. } => "expected a whole device, as listed in /sys/block",
        }
    }
}

const CGROUPS: &str = "/sys/fs/cgroup";

/// Describes a machine, with the given device or, without one, the device of a folder.
pub fn read(root: &SysRoot, dir: &Path, dev: Option<&str>) -> Result<SystemInfo, MachineError> {
    let name = match dev {
        Some(dev) => dev.strip_prefix("/dev/").unwrap_or(dev).to_owned(),
        None => device_of(root, dir)?,
    };
    let swap = environment::memory::swaps(root).into_values().map(|size| size.0).sum();
    let device = device(root, &name)?;
    let zswap = root.text("/sys/module/zswap/parameters/enabled");
    Ok(SystemInfo {
        kernel: root.text("/proc/sys/kernel/osrelease").unwrap_or_default(),
        nr_cpus: root.numbers("/sys/devices/system/cpu/online").map_or(0, |cpus| cpus.len() as u32),
        memory: facts::memory::total(root),
        swap: Bytes(swap),
        swappiness: root.number("/proc/sys/vm/swappiness").unwrap_or_default(),
        zswap: zswap.is_ok_and(|enabled| enabled == "Y"),
        profile: None,
        passive: Passive::default(),
        iocost: active_iocost(root, &device.number),
        device,
        time_scale: None,
        missed_requirements: Vec::new(),
        merged: Vec::new(),
    })
}

/// The whole device on which a folder lies, or would lie.
fn device_of(root: &SysRoot, dir: &Path) -> Result<String, MachineError> {
    use std::os::unix::fs::MetadataExt;
    let unknown = |reason: String| MachineError::NoDevice { path: dir.to_owned(), reason };
    let absolute = std::path::absolute(dir).map_err(|error| unknown(error.to_string()))?;
    let existing = absolute.ancestors().find_map(|path| Some((path.canonicalize().ok()?, path.metadata().ok()?)));
    let (existing, metadata) = existing.ok_or_else(|| unknown("it does not exist".to_owned()))?;
    let number = metadata.dev();
    let number = format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
    let name = device_with_number(root, &number).or_else(|| source_of(root, &existing));
    let name = name.ok_or_else(|| unknown(format!("its file system has no device of its own ({number})")))?;
    whole_device(root, &name).ok_or_else(|| unknown(format!("{name} is not in /sys/block")))
}

/// The name of a device or partition with a number such as `259:5`.
fn device_with_number(root: &SysRoot, number: &str) -> Option<String> {
    root.link(format!("/sys/dev/block/{number}")).ok()
}

/// The device that a file system was mounted from. btrfs has a number of its own, because it can have several devices.
fn source_of(root: &SysRoot, path: &Path) -> Option<String> {
    let mounts = root.text("/proc/self/mountinfo").ok()?;
    let source = unescape(mount_of(&mounts, &path.to_string_lossy())?.source);
    let name = source.strip_prefix("/dev/")?;
    // The mapper's names are links to its devices.
    if name.contains('/') { root.link(&source).ok() } else { Some(name.to_owned()) }
}

/// The device that a partition is of: it lies in the folder of its device.
fn whole_device(root: &SysRoot, name: &str) -> Option<String> {
    if root.exists(format!("/sys/block/{name}")) {
        return Some(name.to_owned());
    }
    let devices = root.list("/sys/block").unwrap_or_default();
    devices.into_iter().find(|device| root.exists(format!("/sys/block/{device}/{name}")))
}

fn device(root: &SysRoot, name: &str) -> Result<Device, MachineError> {
    let unknown = || MachineError::UnknownDevice { name: name.to_owned() };
    let number = root.text(format!("/sys/block/{name}/dev")).map_err(|_| unknown())?;
    let block = environment::block::devices(root).remove(name).ok_or_else(unknown)?;
    let text = |file: &str| root.text(format!("/sys/block/{name}/device/{file}")).ok().filter(|text| !text.is_empty());
    Ok(Device {
        name: name.to_owned(),
        // A virtual device has no model.
        model: block.model.unwrap_or_else(|| name.to_owned()),
        firmware: text("firmware_rev").or_else(|| text("rev")).unwrap_or_default(),
        size: block.size,
        scheduler: block.scheduler.unwrap_or_else(|| "none".to_owned()),
        wbt: block.wbt_lat_usec.is_some_and(|limit| limit > 0),
        other_controller: has_other_controller(root, CGROUPS, &number),
        number,
    })
}

/// The parameters of io.cost of a device, if it is enabled.
fn active_iocost(root: &SysRoot, number: &str) -> Option<IocostParameters> {
    let text = |file: &str| root.text(format!("{CGROUPS}/{file}")).ok();
    let state = IocostState::parse(&text("io.cost.model")?, &text("io.cost.qos")?, number)?;
    state.enabled.then_some(IocostParameters { model: state.model, qos: state.qos })
}

/// Whether a cgroup limits the I/O or the latency of a device.
fn has_other_controller(root: &SysRoot, group: &str, number: &str) -> bool {
    let limits = ["io.max", "io.latency"].into_iter().any(|file| {
        let text = root.text(format!("{group}/{file}")).unwrap_or_default();
        text.lines().any(|line| line.starts_with(&format!("{number} ")))
    });
    let children = || root.list(group).unwrap_or_default().into_iter().map(|name| format!("{group}/{name}"));
    limits
        || children()
            .any(|child| root.exists(format!("{child}/cgroup.procs")) && has_other_controller(root, &child, number))
}

#[cfg(test)]
mod tests {
    use wb_sys::fake_root::FakeRoot;

    use super::*;

    fn machine() -> FakeRoot {
        FakeRoot::new()
            .file("/proc/sys/kernel/osrelease", "6.1.0\n")
            .file("/proc/sys/vm/swappiness", "60\n")
            .file("/sys/devices/system/cpu/online", "0-3\n")
            .file("/proc/meminfo", "MemTotal:       1024 kB\n")
            .file("/proc/swaps", "Filename Type Size Used Priority\n/dev/sda2 partition 2048 0 -2\n")
            .file("/sys/block/sda/dev", "8:0\n")
            .file("/sys/block/sda/size", "2048\n")
            .file("/sys/block/sda/device/model", "Disk A\n")
            .file("/sys/block/sda/device/rev", "0001\n")
            .file("/sys/block/sda/queue/scheduler", "[mq-deadline] none\n")
            .file("/sys/block/sda/queue/wbt_lat_usec", "2000\n")
            .file("/sys/fs/cgroup/cgroup.procs", "")
    }

    #[test]
    fn the_device_and_the_machine_are_described() {
        let root = machine();
        let system = read(&root.root(), Path::new("/"), Some("/dev/sda")).unwrap();
        assert_eq!((system.nr_cpus, system.memory, system.swap), (4, Bytes(1 << 20), Bytes(2 << 20)));
        let Device { model, firmware, size, scheduler, wbt, other_controller, .. } = system.device;
        assert_eq!(
            (model.as_str(), firmware.as_str(), size, scheduler.as_str()),
            ("Disk A", "0001", Bytes(1 << 20), "mq-deadline")
        );
        assert_eq!((wbt, other_controller, system.iocost), (true, false, None));
        let error = read(&root.root(), Path::new("/"), Some("sdb")).unwrap_err();
        assert_eq!(error.to_string(), "unknown block device `sdb`");
    }

    // btrfs has a device number of its own, and a partition's link was taken for an unexpected one.
    #[test]
    fn partitions_and_file_systems_with_numbers_of_their_own_are_on_their_device() {
        let root = machine()
            .file("/sys/block/sda/sda2/partition", "2\n")
            .file("/sys/block/dm-0/dev", "253:0\n")
            .link("/sys/dev/block/8:2", "../../devices/pci/block/sda/sda2")
            .link("/dev/mapper/root", "../dm-0")
            .file(
                "/proc/self/mountinfo",
                "30 1 0:31 / / rw - btrfs /dev/sda2 rw\n31 30 0:32 / /mapped rw - btrfs /dev/mapper/root rw\n\
                 32 30 0:33 / /tmp rw - tmpfs tmpfs rw\n",
            );
        let root = root.root();
        assert_eq!(
            device_with_number(&root, "8:2").and_then(|name| whole_device(&root, &name)),
            Some("sda".to_owned())
        );
        let of_source = |path: &str| whole_device(&root, &source_of(&root, Path::new(path))?);
        assert_eq!(of_source("/var/lib"), Some("sda".to_owned()));
        assert_eq!(of_source("/mapped/d"), Some("dm-0".to_owned()));
        assert_eq!(of_source("/tmp/d"), None);
    }

    #[test]
    fn enabled_parameters_and_other_controllers_of_the_device_are_found() {
        let root = machine()
            .file(
                "/sys/fs/cgroup/io.cost.qos",
                "8:16 enable=1\n8:0 enable=1 ctrl=user rpct=95.00 rlat=100 wpct=95.00 wlat=200 min=50.00 max=150.00\n",
            )
            .file(
                "/sys/fs/cgroup/io.cost.model",
                "8:0 ctrl=user model=linear rbps=1 rseqiops=2 rrandiops=3 wbps=4 wseqiops=5 wrandiops=6\n",
            )
            .file("/sys/fs/cgroup/a.slice/cgroup.procs", "")
            .file("/sys/fs/cgroup/a.slice/io.latency", "8:0 target=10\n");
        let system = read(&root.root(), Path::new("/"), Some("sda")).unwrap();
        let iocost = system.iocost.unwrap();
        assert_eq!((iocost.model.to_array(), iocost.qos.max), ([1, 2, 3, 4, 5, 6], 150.0));
        assert!(system.device.other_controller);
    }
}
