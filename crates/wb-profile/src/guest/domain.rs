//! A guest's domain, as libvirt's XML: what virt-install makes of it, or a file of the user's.

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

/// What libosinfo knows that has virtio everywhere, where it is not said what the guest is.
const ANY_LINUX: &str = "linux2022";

/// Everything about a guest that its domain is made from.
pub(crate) struct DomainSpec<'a> {
    /// What libvirt calls it.
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
    /// Whether its memory is of huge pages.
    pub(crate) huge_pages: bool,
}

/// The domain's XML.
///
/// # Errors
/// When virt-install is not there or refuses, or the user's extra arguments cannot be read.
pub(crate) async fn xml(plan: &DomainSpec<'_>, group: &Group) -> Result<String, ProfileErrorKind> {
    run(group, virt_install_command(plan)?).await
}

/// The XML of a user's with what is meant by `%(name)s`, `%(disk)s`, `%(seed)s`, `%(console)s`, `%(mac)s`, `%(network)s`, `%(cpus)s`,
/// `%(memory_kb)s` and `%(virt_type)s`.
///
/// # Errors
/// When it names something else.
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
            let all = values.map(|(name, _)| name).join(", ");
            Err(ProfileErrorKind::Xml {
                file: file.clone(),
                what: format!("`%({name})s` stands for nothing; there are {all}"),
            })
        }
    }
}

/// Requires that a user's domain has the name, the disk and the seed that are made for the guest: with another disk it
/// would write to that, and without the seed nobody could log in.
fn require_guest_files(plan: &DomainSpec<'_>, xml: &str, file: &str) -> Result<(), ProfileErrorKind> {
    let wrong = |what: String| ProfileErrorKind::Xml { file: file.to_owned(), what };
    let domain = ParsedDomain::read(xml).map_err(|error| wrong(format!("it is not well-formed XML: {error}")))?;
    if domain.name != plan.domain {
        return Err(wrong("its <name> is not `%(name)s`, by which the guest is found and ended".to_owned()));
    }
    for (place, path) in [("disk", plan.disk), ("seed", plan.seed)] {
        if !domain.disks.iter().any(|disk| disk == path) {
            return Err(wrong(format!("no <disk> has `%({place})s` as the file of its <source>")));
        }
    }
    Ok(())
}

/// What of a domain's XML has to be ours.
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

    /// Takes the file of a disk's source.
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

/// Sees whether virt-install takes the extra arguments of a profile: it makes the XML for libvirt's test driver, which
/// has a machine in memory, so that nothing of this one is touched.
///
/// # Errors
/// With what it says instead.
pub(crate) async fn check_extra(plan: &DomainSpec<'_>, group: &Group) -> Result<(), ProfileErrorKind> {
    let mut words = virt_install_command(plan)?;
    let is_option = |words: &[String], at: usize| matches!(words[at].as_str(), "--virt-type" | "--connect" | "--disk");
    // What the test driver does not know of this machine is left out.
    while let Some(at) = (0..words.len()).find(|at| is_option(&words, *at)) {
        words.drain(at..=at + 1);
    }
    words.extend(["--connect", "test:///default", "--disk", "none"].map(str::to_owned));
    words.retain(|word| word != "--import");
    words.push("--install".to_owned());
    words.push("no_install=yes".to_owned());
    run(group, words).await.map(drop)
}

/// The words of virt-install that print the domain and make nothing.
fn virt_install_command(plan: &DomainSpec<'_>) -> Result<Vec<String>, ProfileErrorKind> {
    let DomainSpec { guests, size, base, .. } = plan;
    let disk_format = format_name(guests.image_format);
    let pinned = !size.pinned.is_empty();
    let disk_tuning = if pinned { ",cache=none,io=native,driver.iothread=1" } else { "" };
    let mut words: Vec<String> = Vec::new();
    let mut say = |name: &str, value: String| words.extend([format!("--{name}"), value]);
    say("connect", CONNECTION.to_owned());
    say("name", plan.domain.to_owned());
    say("memory", mebibytes(size.memory).to_string());
    say("vcpus", cpus(size.cpus, plan.virt));
    say("virt-type", plan.virt.name().to_owned());
    say("osinfo", ANY_LINUX.to_owned());
    say("disk", format!("path={},format={disk_format}{disk_tuning}", plan.disk));
    say("disk", format!("path={},format=raw,readonly=on", plan.seed));
    say("network", format!("network={},mac={}", guests.network, plan.mac));
    say("graphics", "none".to_owned());
    say("serial", format!("file,path={}", plan.console));
    match &base.boot {
        GuestBoot::Disk => {}
        GuestBoot::Kernel { kernel, initrd, arguments } => {
            say("boot", format!("kernel={kernel},initrd={initrd},kernel_args=\"{arguments}\""));
        }
    }
    if let Some(emulator) = &guests.qemu_bin {
        say("xml", format!("./devices/emulator={emulator}"));
    }
    if pinned {
        let pins: Vec<String> = (0..).zip(&size.pinned).map(|(cpu, host)| pin(cpu, *host)).collect();
        let all = cpu_list::format(&size.pinned);
        say("cputune", format!("{},emulatorpin.cpuset={all}", pins.join(",")));
        say("xml", "./cputune/iothreadpin/@iothread=1".to_owned());
        say("xml", format!("./cputune/iothreadpin/@cpuset={all}"));
        say("numatune", format!("{},memory.mode=strict", cpu_list::format(&size.nodes)));
        say("iothreads", "1".to_owned());
        say("cpu", if plan.virt == VirtType::Kvm { "host-passthrough" } else { "mode=maximum" }.to_owned());
    }
    if plan.huge_pages {
        say("memorybacking", "hugepages=on".to_owned());
    }
    words.extend(
        ["--import", "--noautoconsole", "--transient", "--check", "all=off", "--print-xml", "--quiet"]
            .map(str::to_owned),
    );
    let extra = shell_words::split(&guests.virt_install_extra)
        .map_err(|error| ProfileErrorKind::Xml { file: "virt-install-extra".to_owned(), what: error.to_string() })?;
    Ok(["virt-install".to_owned()].into_iter().chain(words).chain(extra).collect())
}

/// In software, one CPU alone has room for a second that never comes: QEMU elides the memory barriers of a guest whose
/// most is one CPU, although its devices run beside it, and the guest misses the interrupt of a disk for good (Henderson,
/// "tcg: Do not elide memory barriers for !CF_PARALLEL in system mode", 2023, lacks in QEMU 8.0 and older).
fn cpus(count: u32, virt: VirtType) -> String {
    if virt == VirtType::Qemu && count == 1 { "1,maxvcpus=2".to_owned() } else { count.to_string() }
}

fn pin(cpu: u32, host: u32) -> String {
    format!("vcpupin{cpu}.vcpu={cpu},vcpupin{cpu}.cpuset={host}")
}

fn mebibytes(size: Bytes) -> u64 {
    size.0 >> 20
}

/// As QEMU and libvirt call it.
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

    /// What comes of a user's XML.
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
    fn a_domain_has_the_disk_and_the_seed_that_are_made_for_it() {
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
        guest.xml: its <name> is not `%(name)s`, by which the guest is found and ended
        guest.xml: it is not well-formed XML: ill-formed document: expected `</name>`, but `</nam>` was found
        guest.xml: `%(dsk)s` stands for nothing; there are name, disk, seed, console, mac, network, cpus, memory_kb, virt_type
        ");
    }
}
