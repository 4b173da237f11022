//! The CPU shield: CPUs reserved for the workload.

use std::path::Path;

use wb_sys::SysRoot;
use wb_sys::cgroup::controllers::{ON, controller_resource, group_resource};
use wb_sys::facts::cpu_list;
use wb_sys::proc::mountinfo::{MountInfo, mounts};
use wb_sys::undo::ManagedResource;

use crate::knob::{Assessment, Knob, KnobDescription, KnobValue};
use crate::knobs::interrupts::{mask, parse_cpu_list, parse_cpus};
use crate::target::KnobTarget;
use crate::unsupported::Unsupported;
use crate::writes::{KnobWrite, KnobWrites, require_program};

/// CPUs reserved for processes that explicitly enter the shield.
pub struct Shield;

const SHIELD: &str = "weighbridge-shield";
/// The control group of all other processes.
const OTHERS: &str = "weighbridge-others";
/// The CPUs of the kernel's unbound workqueues.
const WORK: &str = "/sys/devices/virtual/workqueue/cpumask";

impl Knob for Shield {
    fn description(&self) -> &KnobDescription {
        &KnobDescription {
            name: "shield",
            why: "other programs compete with the workload for its CPUs, and evict its caches",
            evidence: "kernel documentation, cpusets, and cpuset partitions of Control Group v2: processes outside such a group are not scheduled on its CPUs; kernel threads that are bound to them stay",
            unsupported_reason: "the kernel has no cpusets of either cgroup version",
        }
    }
    fn read(&self, sys: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        let place = CpusetMount::find(sys).ok_or_else(|| self.unsupported())?;
        Ok(KnobValue::Choice(shielded_cpus(sys, &place).unwrap_or_else(|| "none".to_owned())))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        match value {
            KnobValue::Choice(cpus) if cpus == "none" => Assessment::Unknown {
                reason: "any program may run on any CPU; an otherwise idle machine needs no shield",
            },
            _ => Assessment::Quiet,
        }
    }
    fn check_value(&self, value: &str) -> Result<(), Unsupported> {
        if value == "none" || value == "all" { Ok(()) } else { parse_cpu_list(value).map(drop) }
    }
    fn writes(&self, sys: &SysRoot, _: &KnobTarget, value: &str) -> KnobWrites {
        let place = CpusetMount::find(sys).ok_or_else(|| self.unsupported())?;
        if value == "none" {
            return match shielded_cpus(sys, &place) {
                None => Ok(Vec::new()),
                Some(cpus) => {
                    Err(Unsupported(format!("CPUs {cpus} are shielded: `weighbridge tune revert` removes the shield")))
                }
            };
        }
        let (cpus, all) = (parse_cpus(sys, value)?, parse_cpus(sys, "all")?);
        let rest: Vec<u32> = all.into_iter().filter(|cpu| !cpus.contains(cpu)).collect();
        if rest.is_empty() {
            return Err(Unsupported("no CPU would be left for other processes".to_owned()));
        }
        let mut writes = match &place {
            CpusetMount::Tree(point) => v1_writes(sys, point, &cpus, &rest)?,
            CpusetMount::Partition(point) => v2_writes(sys, point, &cpus)?,
        };
        if let Ok(now) = sys.text(WORK) {
            writes.push(KnobWrite::setting(WORK, mask(&rest, &now)));
        }
        Ok(writes)
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        "sudo weighbridge tune apply shield=CPUS".to_owned()
    }
}

/// The mount point of cpusets: of version 1 (`Tree`) or version 2 (`Partition`).
#[derive(Debug, Clone, PartialEq, Eq)]
enum CpusetMount {
    Tree(String),
    Partition(String),
}

impl CpusetMount {
    fn find(sys: &SysRoot) -> Option<Self> {
        let mountinfo = sys.text("/proc/self/mountinfo").ok()?;
        mounts(&mountinfo).find_map(|MountInfo { point, kind, super_options, .. }| {
            let has = |text: &str, separator: char| text.split(separator).any(|name| name == "cpuset");
            let controllers = || sys.text(format!("{point}/cgroup.controllers")).unwrap_or_default();
            match kind {
                "cgroup" if has(super_options, ',') => Some(Self::Tree(point.to_owned())),
                "cgroup2" if has(&controllers(), ' ') => Some(Self::Partition(point.to_owned())),
                _ => None,
            }
        })
    }

    fn point(&self) -> &str {
        match self {
            Self::Tree(point) | Self::Partition(point) => point,
        }
    }
}

fn shielded_cpus(sys: &SysRoot, place: &CpusetMount) -> Option<String> {
    sys.text(format!("{}/{SHIELD}/cpuset.cpus", place.point())).ok()
}

/// Moves this process, and thereby its future children, to the shielded CPUs. Returns whether there is a shield; fails
/// if this process may not enter it.
pub fn enter(sys: &SysRoot) -> std::io::Result<bool> {
    let Some(place) = CpusetMount::find(sys) else { return Ok(false) };
    let members = sys.path(format!("{}/{SHIELD}/cgroup.procs", place.point())).map_err(std::io::Error::other)?;
    match std::fs::OpenOptions::new().write(true).open(members) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        file => {
            std::io::Write::write_all(&mut file?, std::process::id().to_string().as_bytes())?;
            Ok(true)
        }
    }
}

fn group_write(point: &str, name: &str, files: &[(&str, String)]) -> KnobWrite {
    let (resource, state) = group_resource(format!("{point}/{name}"), files);
    KnobWrite::State { resource, state }
}

/// The writes for version 1, which has no partitions: existing groups lose the CPUs, all other threads get a group.
fn v1_writes(sys: &SysRoot, point: &str, cpus: &[u32], rest: &[u32]) -> KnobWrites {
    let mut writes = Vec::new();
    for folder in descendant_groups(sys, point) {
        let current = sys.numbers(format!("{folder}/cpuset.cpus"))?;
        let remaining: Vec<u32> = current.iter().copied().filter(|cpu| !cpus.contains(cpu)).collect();
        if remaining.is_empty() && !current.is_empty() {
            return Err(Unsupported(format!("{folder} has only CPUs that are to be shielded")));
        }
        if remaining != current {
            writes.push(KnobWrite::setting(format!("{folder}/cpuset.cpus"), cpu_list::format(&remaining)));
        }
    }
    let memory = sys.text(format!("{point}/cpuset.mems"))?;
    let files = |cpus: &[u32]| [("cpuset.cpus", cpu_list::format(cpus)), ("cpuset.mems", memory.clone())];
    writes.push(group_write(point, SHIELD, &files(cpus)));
    writes.push(group_write(point, OTHERS, &files(rest)));
    let resource = ManagedResource::MoveThreads { from: point.to_owned(), to: format!("{point}/{OTHERS}") };
    writes.push(KnobWrite::State { resource, state: ManagedResource::MOVED.to_owned() });
    Ok(writes)
}

/// The CPU lists of version 1 groups, which lose the CPUs that go offline; parents first, since a group may only have
/// CPUs of its parent.
pub(super) fn cpusets(sys: &SysRoot) -> Vec<String> {
    match CpusetMount::find(sys) {
        Some(CpusetMount::Tree(point)) => {
            descendant_groups(sys, &point).into_iter().rev().map(|folder| format!("{folder}/cpuset.cpus")).collect()
        }
        _ => Vec::new(),
    }
}

/// The descendant groups of a folder, the deepest first, without those of the shield.
fn descendant_groups(sys: &SysRoot, folder: &str) -> Vec<String> {
    let names = sys.list(folder).unwrap_or_default().into_iter();
    let folders = names.map(|name| format!("{folder}/{name}")).filter(|path| {
        !path.ends_with(SHIELD) && !path.ends_with(OTHERS) && sys.exists(Path::new(path).join("cpuset.cpus"))
    });
    folders.flat_map(|path| descendant_groups(sys, &path).into_iter().chain([path])).collect()
}

/// The writes for version 2, where a partition removes its CPUs from all other groups by itself.
fn v2_writes(sys: &SysRoot, point: &str, cpus: &[u32]) -> KnobWrites {
    require_program(sys, "sh")?;
    let mut writes = vec![KnobWrite::State { resource: controller_resource(point, "cpuset"), state: ON.to_owned() }];
    let files = [("cpuset.cpus", cpu_list::format(cpus)), ("cpuset.cpus.partition", "root".to_owned())];
    writes.push(group_write(point, SHIELD, &files));
    Ok(writes)
}

#[cfg(test)]
mod tests {
    use wb_sys::fake_root::FakeRoot;

    use super::*;

    fn machine(mountinfo: &str) -> FakeRoot {
        let fake = FakeRoot::new().file("/proc/self/mountinfo", mountinfo);
        fake.file("/sys/devices/system/cpu/online", "0-3\n").file(WORK, "f\n")
    }

    fn tree() -> FakeRoot {
        machine("1 0 0:1 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n2 1 0:2 / /cg/cpuset rw - cgroup cgroup rw,cpuset\n")
            .file("/cg/cpuset/cpuset.cpus", "0-3\n")
            .file("/cg/cpuset/cpuset.mems", "0-1\n")
            .file("/cg/cpuset/box/cpuset.cpus", "0-3\n")
            .file("/cg/cpuset/box/inner/cpuset.cpus", "2-3\n")
    }

    #[test]
    fn groups_of_version_1_lose_the_cpus_deepest_first() {
        let writes = Shield.writes(&tree().root(), &KnobTarget::System, "3").unwrap();
        let described: Vec<(String, String)> = writes
            .into_iter()
            .filter_map(|write| match write {
                KnobWrite::State { resource, state } => Some((resource.description(), state.replace('\n', ";"))),
                KnobWrite::Action(_) => None,
            })
            .collect();
        let expected = [
            ("/cg/cpuset/box/inner/cpuset.cpus", "2"),
            ("/cg/cpuset/box/cpuset.cpus", "0-2"),
            ("/cg/cpuset/weighbridge-shield", "3;0-1;"),
            ("/cg/cpuset/weighbridge-others", "0-2;0-1;"),
            ("threads in /cg/cpuset", "moved"),
            (WORK, "7"),
        ];
        assert_eq!(described, expected.map(|(what, state)| (what.to_owned(), state.to_owned())));
    }

    #[test]
    fn refusals_have_a_reason() {
        let refusal =
            |fake: &FakeRoot, cpus: &str| Shield.writes(&fake.root(), &KnobTarget::System, cpus).unwrap_err().0;
        assert_eq!(refusal(&tree(), "0-3"), "no CPU would be left for other processes");
        assert_eq!(refusal(&tree(), "2-3"), "/cg/cpuset/box/inner has only CPUs that are to be shielded");
        assert_eq!(refusal(&tree(), "4"), "no such CPU: `cpu4`: 0-3 are online");
        let none = machine("1 0 0:1 / /cg rw - cgroup2 cgroup2 rw\n").file("/cg/cgroup.controllers", "io memory\n");
        assert_eq!(refusal(&none, "1"), Shield.description().unsupported_reason);
        let shielded = tree().file("/cg/cpuset/weighbridge-shield/cpuset.cpus", "3\n");
        assert_eq!(Shield.read(&shielded.root(), &KnobTarget::System), Ok(KnobValue::Choice("3".to_owned())));
        assert_eq!(refusal(&shielded, "none"), "CPUs 3 are shielded: `weighbridge tune revert` removes the shield");
        assert_eq!(Shield.writes(&tree().root(), &KnobTarget::System, "none"), Ok(Vec::new()));
    }

    #[test]
    fn version_2_is_detected_where_it_has_cpusets() {
        let fake =
            machine("1 0 0:1 / /cg rw - cgroup2 cgroup2 rw\n").file("/cg/cgroup.controllers", "cpuset io memory\n");
        assert_eq!(CpusetMount::find(&fake.root()), Some(CpusetMount::Partition("/cg".to_owned())));
        assert!(!enter(&fake.root()).unwrap(), "no shield");
    }
}
