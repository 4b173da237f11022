//! The table of a system's hardware and software, with the rows of the Phoronix Test Suite's system description:
//! processor, motherboard, chipset, memory, disk, network, distribution, kernel, compiler, file system, governor, huge
//! pages and mitigations.

use std::collections::{BTreeMap, BTreeSet};

use wb_model::{Bytes, Facts, System, Unit, pluralize};

use crate::environment::{Environment, block, cpu, mounts, network};

/// The compilers whose versions are recorded, and the argument that prints them.
pub const COMPILERS: [(&str, &str); 2] = [("gcc", "--version"), ("clang", "--version")];

/// Maximum number of listed disks, file systems or interfaces; the others are counted.
const MAX_LISTED: usize = 6;

/// The table of one machine, from its facts and its environment. Properties that neither contains are left out.
pub fn system(facts: &Facts, environment: &Environment) -> System {
    let rows = [
        ("processor", processor(facts, environment)),
        ("CPUs", cpus(facts, environment)),
        ("machine", environment.board.machine.clone()),
        ("motherboard", environment.board.model.clone()),
        ("firmware", environment.board.firmware.clone()),
        ("chipset", environment.board.chipset.clone()),
        ("virtualisation", virtualisation(facts, environment)),
        ("memory", memory(facts, environment)),
        ("disk", join_semicolons(environment.block.iter().map(|(name, device)| disk(name, device)))),
        ("file system", join_semicolons(file_systems(&environment.mounts))),
        (
            "network",
            join_semicolons(environment.network.iter().filter_map(|(name, interface)| adapter(name, interface))),
        ),
        ("distribution", environment.kernel.distribution.clone()),
        ("kernel", kernel(facts, environment)),
        ("compiler", compiler(environment)),
        ("governor", governor(&environment.cpu)),
        ("huge pages", huge_pages(environment)),
        ("mitigations", mitigations(&environment.mitigations)),
    ];
    let rows = rows.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text.filter(|it| !it.is_empty())?)));
    System { host: facts.hostname.clone(), properties: rows.collect() }
}

fn size(bytes: Bytes) -> Option<String> {
    (bytes.0 > 0).then(|| Unit::new("B").quantity(bytes.0 as f64).to_string())
}

fn join_commas<const N: usize>(parts: [Option<String>; N]) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn join_semicolons(items: impl IntoIterator<Item = String>) -> Option<String> {
    let mut items: Vec<String> = items.into_iter().collect();
    let more = items.len().saturating_sub(MAX_LISTED);
    items.truncate(MAX_LISTED);
    if more > 0 {
        items.push(format!("{more} more"));
    }
    (!items.is_empty()).then(|| items.join("; "))
}

fn processor(facts: &Facts, environment: &Environment) -> Option<String> {
    let model = Some(facts.cpu_model.trim().to_owned()).filter(|model| !model.is_empty());
    let highest = environment.cpu.frequency.values().filter_map(|policy| policy.hardware_max_khz).max();
    let highest = highest.map(|khz| format!("up to {}", Unit::new("kHz").quantity(khz as f64)));
    let microcode = environment.cpu.microcode.as_ref().map(|revision| format!("microcode {revision}"));
    join_commas([model.or_else(|| environment.cpu.model.clone()), highest, microcode])
}

fn cpus(facts: &Facts, environment: &Environment) -> Option<String> {
    let online = environment.cpu.online.as_ref().map(|list| format!("online {list}"));
    let cache = size(facts.last_level_cache()).map(|size| format!("last-level cache {size}"));
    join_commas([facts.topology().or(online), cache])
}

fn virtualisation(facts: &Facts, environment: &Environment) -> Option<String> {
    let hypervisor = facts.hypervisor.clone().or_else(|| environment.kernel.hypervisor.clone());
    join_commas([hypervisor, facts.emulated.then(|| "instructions emulated by software".to_owned())])
}

fn memory(facts: &Facts, environment: &Environment) -> Option<String> {
    let total = if facts.memory.0 > 0 { facts.memory } else { environment.memory.total };
    let swap = environment.memory.swap.values().map(|bytes| bytes.0).sum();
    join_commas([size(total), size(Bytes(swap)).map(|size| format!("swap {size}"))])
}

fn disk(name: &str, device: &block::BlockDevice) -> String {
    let kind = device.rotational.map(|rotational| if rotational { "rotational" } else { "solid state" }.to_owned());
    let scheduler = device.scheduler.as_ref().map(|scheduler| format!("scheduler {scheduler}"));
    let description = join_commas([device.model.clone(), size(device.size), kind, scheduler]);
    description.map_or_else(|| name.to_owned(), |description| format!("{name}: {description}"))
}

/// The root and the file systems on devices; each device once, at its shortest mount point.
fn file_systems(mounts: &BTreeMap<String, mounts::Mount>) -> Vec<String> {
    let mut by_device: BTreeMap<&str, (&str, &mounts::Mount)> = BTreeMap::new();
    for (point, mount) in mounts.iter().filter(|(point, mount)| *point == "/" || mount.source.starts_with("/dev/")) {
        let listed = by_device.entry(&mount.source).or_insert((point, mount));
        if point.len() < listed.0.len() {
            *listed = (point, mount);
        }
    }
    let mut listed: Vec<(&str, &mounts::Mount)> = by_device.into_values().collect();
    listed.sort_unstable_by_key(|(point, _)| *point);
    let text = |(point, mount): (&str, &mounts::Mount)| {
        let options = mount.options.split(';').next().unwrap_or_default();
        let details = join_commas([Some(mount.source.clone()), Some(options.to_owned())]);
        let details = details.map(|details| format!(" ({details})")).unwrap_or_default();
        format!("{} on {point}{details}", mount.kind)
    };
    listed.into_iter().map(text).collect()
}

fn adapter(name: &str, interface: &network::Interface) -> Option<String> {
    let driver = interface.driver.as_ref().or(interface.model.as_ref())?;
    let speed = interface.speed_mbit.map(|speed| format!(", {}", Unit::new("Mbit/s").quantity(speed as f64)));
    Some(format!("{name}: {driver}{}", speed.unwrap_or_default()))
}

fn kernel(facts: &Facts, environment: &Environment) -> Option<String> {
    let release = Some(facts.kernel.clone()).filter(|release| !release.is_empty());
    let release = release.or_else(|| environment.kernel.release.clone())?;
    let clock = environment.kernel.clocksource.as_ref().map(|clock| format!("clock source {clock}"));
    join_commas([Some(format!("{release} {}", facts.arch).trim_end().to_owned()), clock])
}

fn compiler(environment: &Environment) -> Option<String> {
    let versions = COMPILERS.iter().filter_map(|(name, _)| environment.tools.get(*name)?.version.clone());
    join_semicolons(versions)
}

/// The governors of frequencies and idle states; a lack of frequency control is reported where CPUs were read.
fn governor(cpu: &cpu::CpuSettings) -> Option<String> {
    let read = cpu.online.is_some() || cpu.model.is_some() || !cpu.frequency.is_empty();
    let policies: BTreeSet<String> = cpu.frequency.values().filter_map(policy).collect();
    let none = read.then(|| "no frequency control".to_owned());
    let turbo = cpu.turbo.map(|on| if on { "turbo on" } else { "turbo off" }.to_owned());
    let idle = cpu.idle_governor.as_ref().map(|governor| format!("idle states by {governor}"));
    join_commas([join_semicolons(policies).or(none), turbo, idle])
}

fn policy(frequency: &cpu::FrequencyPolicy) -> Option<String> {
    let governor = frequency.governor.as_ref()?;
    let driver = frequency.driver.as_ref().map(|driver| format!(" ({driver})")).unwrap_or_default();
    let preference = frequency.energy_preference.as_ref().map(|preference| format!(" preferring {preference}"));
    Some(format!("{governor}{driver}{}", preference.unwrap_or_default()))
}

fn huge_pages(environment: &Environment) -> Option<String> {
    let memory = &environment.memory;
    let transparent = |name: &str| memory.transparent_huge_pages.get(name);
    let reserved = memory.huge_pages.iter().filter(|(_, pages)| **pages > 0);
    let reserved: Vec<String> = reserved.map(|(size, pages)| format!("{pages} of {size} reserved")).collect();
    join_commas([
        transparent("enabled").map(|option| format!("transparent {option}")),
        transparent("defrag").map(|option| format!("defrag {option}")),
        Some(reserved.join(", ")),
    ])
}

/// The vulnerabilities without a mitigation, then the mitigations of the others, separated by ` + ` since the kernel's
/// texts contain commas and semicolons; those that do not affect the processor are counted.
fn mitigations(states: &BTreeMap<String, String>) -> Option<String> {
    let (unaffected, others): (Vec<_>, Vec<_>) = states.iter().partition(|(_, state)| *state == "Not affected");
    let (vulnerable, mitigated): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|(_, state)| state.starts_with("Vulnerable"));
    let text =
        |(name, state): (&String, &String)| format!("{name}: {}", state.strip_prefix("Mitigation: ").unwrap_or(state));
    let mut parts: Vec<String> = vulnerable.into_iter().chain(mitigated).map(text).collect();
    if !unaffected.is_empty() {
        parts.push(format!("not affected by {}", pluralize(unaffected.len(), "other")));
    }
    (!parts.is_empty()).then(|| parts.join(" + "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::tools::{ToolVersion, VersionQueries};
    use crate::fake_root::{self, FakeRoot};

    const SERVER: [&str; 11] = [
        "processor: AMD EPYC 7313 16-Core Processor, up to 4.20 GHz, microcode 0xf4",
        "CPUs: 16 on 8 cores, 2 packages, 2 NUMA nodes, last-level cache 32 MiB",
        "motherboard: H12SSL-i",
        "memory: 128 GiB",
        "disk: nvme0n1: 477 GiB, solid state, scheduler none",
        "file system: ext4 on / (/dev/nvme0n1p2, rw,relatime); xfs on /data (/dev/md0, ro)",
        "distribution: Fake Linux 1",
        "kernel: 6.1.0-18-test x86_64, clock source tsc",
        "governor: performance (acpi-cpufreq), turbo off",
        "huge pages: transparent madvise, defrag madvise, 512 of 2048kB reserved",
        "mitigations: spec_store_bypass: Vulnerable + retbleed: untrained return thunk + not affected by 1 other",
    ];

    fn table(fake: &FakeRoot) -> System {
        let root = fake.root();
        system(&crate::facts(&root), &Environment::read(&root, &VersionQueries::new()))
    }

    #[test]
    fn a_server_is_described_as_the_phoronix_test_suite_does() {
        let mounts = "1 0 8:1 / / rw,relatime - ext4 /dev/nvme0n1p2 rw,discard\n\
                      2 1 8:1 /srv /srv/bound rw - ext4 /dev/nvme0n1p2 rw\n\
                      3 1 0:5 / /proc rw - proc proc rw\n4 1 9:0 / /data ro - xfs /dev/md0 ro\n";
        let fake = fake_root::server()
            .file("/proc/self/mountinfo", mounts)
            .file("/etc/os-release", "PRETTY_NAME=\"Fake Linux 1\"\n")
            .file("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "512")
            .file("/sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected")
            .file("/sys/devices/system/cpu/vulnerabilities/retbleed", "Mitigation: untrained return thunk")
            .file("/sys/devices/system/cpu/vulnerabilities/spec_store_bypass", "Vulnerable")
            .file("/sys/class/dmi/id/board_name", "H12SSL-i");
        let table = table(&fake);
        let lines: Vec<String> = table.properties.iter().map(|(name, text)| format!("{name}: {text}")).collect();
        assert_eq!(table.host, "srv");
        assert_eq!(lines, SERVER);
    }

    #[test]
    fn absent_values_have_no_row() {
        let empty = system(&Facts::default(), &Environment::default());
        assert_eq!(empty, System::default());
        let container = table(&fake_root::container());
        assert_eq!(container.get("file system"), None);
        assert_eq!(container.get("governor"), Some("no frequency control"));
    }

    #[test]
    fn the_compiler_is_its_version_line() {
        let tool = |version: &str| ToolVersion { version: Some(version.to_owned()), ..ToolVersion::default() };
        let tools = BTreeMap::from([
            ("gcc".to_owned(), tool("gcc (Debian 12.2.0-14) 12.2.0")),
            ("fio".to_owned(), tool("fio-3.33")),
        ]);
        let environment = Environment { tools, ..Environment::default() };
        assert_eq!(system(&Facts::default(), &environment).get("compiler"), Some("gcc (Debian 12.2.0-14) 12.2.0"));
    }

    #[test]
    fn a_long_list_is_truncated_with_a_count() {
        let disks = (0..9).map(|number| (format!("sd{number}"), block::BlockDevice::default())).collect();
        let environment = Environment { block: disks, ..Environment::default() };
        assert_eq!(system(&Facts::default(), &environment).get("disk"), Some("sd0; sd1; sd2; sd3; sd4; sd5; 3 more"));
    }
}
