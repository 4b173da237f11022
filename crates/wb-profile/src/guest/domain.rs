//! Generates a guest's domain XML for libvirt, with virt-install or from a template of the user.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use wb_agent::Group;
use wb_model::Bytes;
use wb_sys::facts::cpu_list;

use super::sizing::GuestSize;
use super::virsh::CONNECTION;
use crate::apply_site::HostAsset;
use crate::error::ProfileErrorKind;
use crate::host::run;
use crate::image::{BaseImage, GuestBoot, ImageFormat};
use crate::profile::{GuestsConfig, VirtType};

/// libosinfo's name for a guest with virtio devices throughout, used when the guest's system is not specified.
const ANY_LINUX: &str = "linux2022";

/// Everything that determines a guest's domain.
pub(crate) struct DomainSpec<'a> {
    /// Its name in libvirt.
    pub(crate) domain: &'a str,
    pub(crate) guests: &'a GuestsConfig,
    pub(crate) size: &'a GuestSize,
    pub(crate) virt: VirtType,
    pub(crate) base: &'a BaseImage,
    /// Paths on the host.
    pub(crate) disk: &'a str,
    pub(crate) seed: &'a str,
    pub(crate) console: &'a str,
    /// The hardware address of its network device.
    pub(crate) mac: &'a str,
    /// Whether its memory is backed by huge pages.
    pub(crate) huge_pages: bool,
}

/// Generates the domain's XML with virt-install.
///
/// # Errors
/// If virt-install is not installed or fails, or the user's extra arguments cannot be parsed.
pub(crate) async fn xml(plan: &DomainSpec<'_>, group: &Group) -> Result<String, ProfileErrorKind> {
    run(group, virt_install_command(plan)?).await
}

/// Fills in a user's XML template: `%(name)s`, `%(disk)s`, `%(seed)s`, `%(console)s`, `%(mac)s`, `%(network)s`,
/// `%(cpus)s`, `%(memory_kb)s` and `%(virt_type)s`.
///
/// # Errors
/// If it contains other placeholders.
pub(crate) fn fill_template(plan: &DomainSpec<'_>, asset: &HostAsset) -> Result<String, ProfileErrorKind> {
    let HostAsset { name: file, text } = asset;
    let guests = plan.guests;
    let (cpus, memory) = (plan.size.cpus.to_string(), (plan.size.memory.0 >> 10).to_string());
    let values = [
        ("name", plan.domain),
        ("disk", plan.disk),
        ("seed", plan.seed),
        ("console", plan.console),
        ("mac", plan.mac),
        ("network", &guests.network),
        ("cpus", &cpus),
        ("memory_kb", &memory),
        ("virt_type", plan.virt.name()),
    ];
    let mut filled = text.clone();
    for (name, value) in values {
        filled = filled.replace(&format!("%({name})s"), value);
    }
    match filled.split_once("%(") {
        None => require_guest_files(plan, &filled, file).map(|()| filled),
        Some((_, rest)) => {
            let name = rest.split(')').next().unwrap_or_default();
            let names = values.map(|(name, _)| name).join(", ");
            Err(ProfileErrorKind::Xml {
                file: file.clone(),
                message: format!("unknown placeholder `%({name})s`: expected one of {names}"),
            })
        }
    }
}

/// Requires that a user's domain uses the name, disk and seed created for the guest: it would write to another disk,
/// and without the seed nobody could log in.
fn require_guest_files(plan: &DomainSpec<'_>, xml: &str, file: &str) -> Result<(), ProfileErrorKind> {
    let invalid = |message: String| ProfileErrorKind::Xml { file: file.to_owned(), message };
    let domain = ParsedDomain::read(xml).map_err(|error| invalid(format!("invalid XML: {error}")))?;
    if domain.name != plan.domain {
        return Err(invalid("its <name> is not `%(name)s`, which identifies the guest".to_owned()));
    }
    for (placeholder, path) in [("disk", plan.disk), ("seed", plan.seed)] {
        if !domain.disks.iter().any(|disk| disk == path) {
            return Err(invalid(format!("no <disk> has `%({placeholder})s` as the file of its <source>")));
        }
    }
    Ok(())
}

/// The parts of a domain's XML that must refer to the guest.
#[derive(Debug, Default)]
struct ParsedDomain {
    name: String,
    /// The files of its disks.
    disks: Vec<String>,
}

impl ParsedDomain {
    fn read(xml: &str) -> Result<Self, String> {
        let mut reader = Reader::from_str(xml);
        let (mut domain, mut within) = (Self::default(), Vec::<String>::new());
        loop {
            match reader.read_event().map_err(|error| error.to_string())? {
                Event::Start(element) => {
                    domain.read_source(&element, &within)?;
                    within.push(element.name().as_ref().to_owned());
                }
                Event::Empty(element) => domain.read_source(&element, &within)?,
                Event::End(_) => drop(within.pop()),
                Event::Text(text) if within == ["domain", "name"] => domain.name += text.trim(),
                Event::Eof => match within.last() {
                    None => return Ok(domain),
                    Some(open) => return Err(format!("<{open}> is not closed")),
                },
                _ => {}
            }
        }
    }

    /// Records the file of a disk's source.
    fn read_source(&mut self, element: &BytesStart<'_>, within: &[String]) -> Result<(), String> {
        let is_source = element.name().as_ref() == "source" && within.last().is_some_and(|parent| parent == "disk");
        for attribute in element.attributes() {
            let attribute = attribute.map_err(|error| error.to_string())?;
            if is_source && attribute.key.as_ref() == "file" {
                self.disks.push(attribute.value.into_owned());
            }
        }
        Ok(())
    }
}

/// Checks that virt-install accepts the extra arguments of a profile, by generating the XML for libvirt's test driver,
/// which simulates a machine in memory and does not touch this one.
///
/// # Errors
/// If it does not, with its output.
pub(crate) async fn check_extra(plan: &DomainSpec<'_>, group: &Group) -> Result<(), ProfileErrorKind> {
    let mut words = virt_install_command(plan)?;
    let is_option =
        |words: &[String], index: usize| matches!(words[index].as_str(), "--virt-type" | "--connect" | "--disk");
    // Omit the options that refer to this machine, which the test driver does not know.
    while let Some(at) = (0..words.len()).find(|index| is_option(&words, *index)) {
        words.drain(at..=at + 1);
    }
    words.extend(["--connect", "test:///default", "--disk", "none"].map(str::to_owned));
    words.retain(|word| word != "--import");
    words.push("--install".to_owned());
    words.push("no_install=yes".to_owned());
    run(group, words).await.map(drop)
}

/// The virt-install command that prints the domain's XML without creating it.
fn virt_install_command(plan: &DomainSpec<'_>) -> Result<Vec<String>, ProfileErrorKind> {
    let DomainSpec { guests, size, base, .. } = plan;
    let disk_format = format_name(guests.image_format);
    let pinned = !size.pinned.is_empty();
    let disk_tuning = if pinned { ",cache=none,io=native,driver.iothread=1" } else { "" };
    let mut words: Vec<String> = Vec::new();
    let mut option = |name: &str, value: String| words.extend([format!("--{name}"), value]);
    option("connect", CONNECTION.to_owned());
    option("name", plan.domain.to_owned());
    option("memory", mebibytes(size.memory).to_string());
    option("vcpus", cpus(size.cpus, plan.virt));
    option("virt-type", plan.virt.name().to_owned());
    option("osinfo", ANY_LINUX.to_owned());
    option("disk", format!("path={},format={disk_format}{disk_tuning}", plan.disk));
    option("disk", format!("path={},format=raw,readonly=on", plan.seed));
    option("network", format!("network={},mac={}", guests.network, plan.mac));
    option("graphics", "none".to_owned());
    option("serial", format!("file,path={}", plan.console));
    match &base.boot {
        GuestBoot::Disk => {}
        GuestBoot::Kernel { kernel, initrd, arguments } => {
            option("boot", format!("kernel={kernel},initrd={initrd},kernel_args=\"{arguments}\""));
        }
    }
    if let Some(emulator) = &guests.qemu_bin {
        option("xml", format!("./devices/emulator={emulator}"));
    }
    if pinned {
        let pins: Vec<String> = (0..).zip(&size.pinned).map(|(cpu, host)| pin(cpu, *host)).collect();
        let all = cpu_list::format(&size.pinned);
        option("cputune", format!("{},emulatorpin.cpuset={all}", pins.join(",")));
        option("xml", "./cputune/iothreadpin/@iothread=1".to_owned());
        option("xml", format!("./cputune/iothreadpin/@cpuset={all}"));
        option("numatune", format!("{},memory.mode=strict", cpu_list::format(&size.nodes)));
        option("iothreads", "1".to_owned());
        option("cpu", if plan.virt == VirtType::Kvm { "host-passthrough" } else { "mode=maximum" }.to_owned());
    }
    if plan.huge_pages {
        option("memorybacking", "hugepages=on".to_owned());
    }
    words.extend(
        ["--import", "--noautoconsole", "--transient", "--check", "all=off", "--print-xml", "--quiet"]
            .map(str::to_owned),
    );
    let extra = shell_words::split(&guests.virt_install_extra)
        .map_err(|error| ProfileErrorKind::Xml { file: "virt-install-extra".to_owned(), message: error.to_string() })?;
    Ok(["virt-install".to_owned()].into_iter().chain(words).chain(extra).collect())
}

/// The `--vcpus` value. An emulated guest with one CPU gets room for a second one that is never plugged in: QEMU elides
/// the memory barriers of a guest with at most one CPU although its devices run in other threads, and the guest loses a
/// disk interrupt for good (Henderson, "tcg: Do not elide memory barriers for !CF_PARALLEL in system mode", 2023,
/// missing in QEMU 8.0 and older).
fn cpus(count: u32, virt: VirtType) -> String {
    if virt == VirtType::Qemu && count == 1 { "1,maxvcpus=2".to_owned() } else { count.to_string() }
}

fn pin(cpu: u32, host: u32) -> String {
    format!("vcpupin{cpu}.vcpu={cpu},vcpupin{cpu}.cpuset={host}")
}

fn mebibytes(size: Bytes) -> u64 {
    size.0 >> 20
}

/// The format's name in QEMU and libvirt.
pub(crate) fn format_name(format: ImageFormat) -> &'static str {
    match format {
        ImageFormat::Qcow2 => "qcow2",
        ImageFormat::Raw => "raw",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::GuestBoot;

    /// The result of filling in a user's XML.
    fn of(xml: &str) -> Result<String, String> {
        let (guests, size) =
            (GuestsConfig::default(), GuestSize { cpus: 2, memory: Bytes(1 << 30), pinned: vec![], nodes: vec![] });
        let base = BaseImage {
            name: "x".to_owned(),
            path: "/x".to_owned(),
            format: ImageFormat::Qcow2,
            sha256: String::new(),
            boot: GuestBoot::Disk,
        };
        let plan = DomainSpec {
            domain: "weighbridge-1-vm1",
            guests: &guests,
            size: &size,
            virt: VirtType::Qemu,
            base: &base,
            disk: "/f/vm1.disk",
            seed: "/f/vm1.seed",
            console: "/f/vm1.console",
            mac: "52:54:00:00:00:01",
            huge_pages: false,
        };
        let asset = HostAsset { name: "guest.xml".to_owned(), text: xml.to_owned() };
        fill_template(&plan, &asset).map_err(|why| why.to_string())
    }

    const DISKS: &str = "<disk><source file='%(disk)s'/></disk><disk><source file=\"%(seed)s\"></source></disk>";

    #[test]
    fn domain_template_must_use_the_guests_name_disk_and_seed() {
        let domain = |disks: &str| format!("<domain><name>%(name)s</name><devices>{disks}</devices></domain>");
        assert!(of(&domain(DISKS)).unwrap().contains("file='/f/vm1.disk'"));
        let refused = [
            domain("<disk><source file='/home/me/other.qcow2'/></disk><disk><source file='%(seed)s'/></disk>"),
            domain("<disk><source file='%(disk)s'/></disk>"),
            domain("<filesystem><source file='%(disk)s'/></filesystem>"),
            format!("<domain><name>mine</name>{DISKS}</domain>"),
            format!("<domain><name>%(name)s</nam>{DISKS}</domain>"),
            domain("%(dsk)s"),
        ];
        insta::assert_snapshot!(refused.map(|xml| of(&xml).unwrap_err()).join("\n"), @r"
        guest.xml: no <disk> has `%(disk)s` as the file of its <source>
        guest.xml: no <disk> has `%(seed)s` as the file of its <source>
        guest.xml: no <disk> has `%(disk)s` as the file of its <source>
        guest.xml: its <name> is not `%(name)s`, which identifies the guest
        guest.xml: invalid XML: ill-formed document: expected `</name>`, but `</nam>` was found
        guest.xml: unknown placeholder `%(dsk)s`: expected one of name, disk, seed, console, mac, network, cpus, memory_kb, virt_type
        ");
    }
}
