//! Generates a guest's domain XML for libvirt with virt-install.

use wb_agent::TeardownGroup;
use wb_model::Bytes;
use wb_sys::facts::cpu_list;

use super::sizing::GuestSize;
use super::virsh::CONNECTION;
use crate::error::ProfileErrorKind;
use crate::host::run;
use crate::image::{BaseImage, GuestBoot, ImageFormat};
use crate::profile::{GuestsConfig, VirtType};

/// libosinfo's name for a guest with virtio devices throughout. The user's extra arguments can name another system.
const GENERIC_LINUX: &str = "linux2022";

/// Everything that determines a guest's domain. A user's template gets only the values of its placeholders.
#[derive(Clone)]
pub(crate) struct DomainSpec<'a> {
    pub(crate) name: &'a str,
    pub(crate) guests: &'a GuestsConfig,
    pub(crate) size: &'a GuestSize,
    pub(crate) virt_type: VirtType,
    /// The image that the guest's disk is a copy of; it may need a kernel of its own to boot.
    pub(crate) base_image: &'a BaseImage,
    /// A path on the host.
    pub(crate) disk: &'a str,
    /// A path on the host: cloud-init's seed, the image with the configuration that lets the controller log in.
    pub(crate) seed: &'a str,
    /// The file on the host for the output of the guest's serial console.
    pub(crate) console: &'a str,
    pub(crate) mac: &'a str,
    /// Size of the host's huge pages in KiB; none if it has none.
    pub(crate) hugepage_kb: Option<u64>,
    pub(crate) uses_huge_pages: bool,
}

/// Generates the domain's XML with virt-install, which runs on the host as a process of `group`.
pub(crate) async fn generate_xml(spec: &DomainSpec<'_>, group: &TeardownGroup) -> Result<String, ProfileErrorKind> {
    // virt-install only prints the XML: the domain is transient, and a step of the undo log creates and removes it.
    run(group, virt_install_command(spec)?).await
}

/// Checks that virt-install accepts the extra arguments of a profile, by generating the XML for libvirt's test driver,
/// which simulates a machine in memory and does not use the host. Disks are not checked: the test driver has none.
pub(crate) async fn check_extra_arguments(
    spec: &DomainSpec<'_>,
    group: &TeardownGroup,
) -> Result<(), ProfileErrorKind> {
    run(group, test_driver_command(spec)?).await.map(drop)
}

fn test_driver_command(spec: &DomainSpec<'_>) -> Result<Vec<String>, ProfileErrorKind> {
    let mut command = Vec::new();
    let mut arguments = virt_install_command(spec)?.into_iter().peekable();
    while let Some(argument) = arguments.next() {
        let name = argument.split_once('=').map_or(argument.as_str(), |(name, _)| name);
        match name {
            // They refer to the host, which the test driver does not know.
            "--connect" | "--virt-type" | "--disk" if name != argument => {}
            "--connect" | "--virt-type" | "--disk" if arguments.next_if(|value| !value.starts_with('-')).is_some() => {}
            // It boots from the first disk; `no_install` also states that nothing is to be installed, without a disk.
            "--import" => {}
            // An option without its value, too: virt-install names it.
            _ => command.push(argument),
        }
    }
    let replaced = ["--connect", "test:///default", "--disk", "none", "--install", "no_install=yes"];
    command.extend(replaced.map(str::to_owned));
    Ok(command)
}

/// The virt-install command that prints the domain's XML without creating the domain.
fn virt_install_command(spec: &DomainSpec<'_>) -> Result<Vec<String>, ProfileErrorKind> {
    let DomainSpec { guests, size, base_image, .. } = spec;
    let disk_format = format_name(guests.image_format);
    let is_pinned = !size.pinned.is_empty();
    let disk_tuning = if is_pinned { ",cache=none,io=native,driver.iothread=1" } else { "" };
    let mut arguments: Vec<String> = Vec::new();
    let mut option = |name: &str, value: String| arguments.extend([format!("--{name}"), value]);
    option("connect", CONNECTION.to_owned());
    option("name", spec.name.to_owned());
    option("memory", mebibytes(size.memory).to_string());
    option("vcpus", vcpus_value(size.cpus, spec.virt_type));
    option("virt-type", spec.virt_type.name().to_owned());
    option("osinfo", GENERIC_LINUX.to_owned());
    option("disk", format!("path={},format={disk_format}{disk_tuning}", spec.disk));
    option("disk", format!("path={},format=raw,readonly=on", spec.seed));
    option("network", format!("network={},mac={}", guests.network, spec.mac));
    option("graphics", "none".to_owned());
    option("serial", format!("file,path={}", spec.console));
    match &base_image.boot {
        GuestBoot::Disk => {}
        GuestBoot::Kernel { kernel, initrd, arguments } => {
            option("boot", format!("kernel={kernel},initrd={initrd},kernel_args=\"{arguments}\""));
        }
    }
    if let Some(emulator) = &guests.qemu_bin {
        option("xml", format!("./devices/emulator={emulator}"));
    }
    if is_pinned {
        let pins: Vec<String> = (0..).zip(&size.pinned).map(|(vcpu, cpu)| vcpu_pin(vcpu, *cpu)).collect();
        let host_cpus = cpu_list::format(&size.pinned);
        option("cputune", format!("{},emulatorpin.cpuset={host_cpus}", pins.join(",")));
        option("xml", "./cputune/iothreadpin/@iothread=1".to_owned());
        option("xml", format!("./cputune/iothreadpin/@cpuset={host_cpus}"));
        option("numatune", format!("{},memory.mode=strict", cpu_list::format(&size.nodes)));
        option("iothreads", "1".to_owned());
        option("cpu", if spec.virt_type == VirtType::Kvm { "host-passthrough" } else { "mode=maximum" }.to_owned());
    }
    if let Some(kibibytes) = spec.hugepage_kb.filter(|_| spec.uses_huge_pages) {
        // A memory file of the kernel needs no mounted hugetlbfs, whatever the size of its pages.
        let pages = format!("hugepages.page0.size={kibibytes},hugepages.page0.unit=KiB,source.type=memfd");
        option("memorybacking", pages);
    }
    arguments.extend(
        ["--import", "--noautoconsole", "--transient", "--check", "all=off", "--print-xml", "--quiet"]
            .map(str::to_owned),
    );
    let extra = shell_words::split(&guests.virt_install_extra).map_err(ProfileErrorKind::ExtraArguments)?;
    Ok(["virt-install".to_owned()].into_iter().chain(arguments).chain(extra).collect())
}

/// The `--vcpus` value. An emulated guest with one CPU has a maximum of two, and the second is never plugged in: QEMU
/// elides the memory barriers of a guest with at most one CPU although its devices run in other threads, and the guest
/// loses a disk interrupt for good (Henderson, "tcg: Do not elide memory barriers for !CF_PARALLEL in system mode",
/// 2023, missing in QEMU 8.0 and older).
fn vcpus_value(count: u32, virt_type: VirtType) -> String {
    if virt_type == VirtType::Qemu && count == 1 { "1,maxvcpus=2".to_owned() } else { count.to_string() }
}

fn vcpu_pin(vcpu: u32, host_cpu: u32) -> String {
    format!("vcpupin{vcpu}.vcpu={vcpu},vcpupin{vcpu}.cpuset={host_cpu}")
}

fn mebibytes(size: Bytes) -> u64 {
    size.0 >> 20
}

pub(crate) fn format_name(format: ImageFormat) -> &'static str {
    match format {
        ImageFormat::Qcow2 => "qcow2",
        ImageFormat::Raw => "raw",
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::image::GuestBoot;

    /// Calls `use_spec` with the specification of a guest.
    pub(crate) fn with_spec<T>(guests: &GuestsConfig, use_spec: impl FnOnce(&DomainSpec<'_>) -> T) -> T {
        let size = GuestSize { cpus: 2, memory: Bytes(1 << 30), pinned: vec![], nodes: vec![] };
        let base_image = BaseImage {
            name: "x".to_owned(),
            path: "/x".to_owned(),
            format: ImageFormat::Qcow2,
            sha256: String::new(),
            boot: GuestBoot::Disk,
        };
        use_spec(&DomainSpec {
            name: "weighbridge-1-vm1",
            guests,
            size: &size,
            virt_type: VirtType::Qemu,
            base_image: &base_image,
            disk: "/f/vm1.disk",
            seed: "/f/vm1.seed",
            console: "/f/vm1.console",
            mac: "52:54:00:00:00:01",
            hugepage_kb: Some(2048),
            uses_huge_pages: false,
        })
    }

    #[test]
    fn extra_arguments_are_checked_without_the_options_that_refer_to_the_host() {
        let command = |extra: &str| {
            let guests = GuestsConfig { virt_install_extra: extra.to_owned(), ..GuestsConfig::default() };
            with_spec(&guests, test_driver_command).unwrap()
        };
        let replaced = ["--connect", "test:///default", "--disk", "none", "--install", "no_install=yes"];
        let plain = command("");
        assert!(plain.ends_with(&replaced.map(str::to_owned)));
        assert!(!plain.iter().any(|argument| argument == "--import" || argument.contains("/f/vm1.disk")), "{plain:?}");
        assert_eq!(command("--disk size=1 --disk=size=2 --connect=x --virt-type kvm"), plain);
        assert!(command("--tpm none").windows(2).any(|pair| pair == ["--tpm", "none"]));
    }

    // A bare `--disk` at the end caused a panic.
    #[test]
    fn an_extra_option_without_its_value_is_left_to_virt_install() {
        for extra in ["--disk", "--tpm none --virt-type", "--connect --tpm none"] {
            let guests = GuestsConfig { virt_install_extra: extra.to_owned(), ..GuestsConfig::default() };
            let command = with_spec(&guests, test_driver_command).unwrap();
            let words: Vec<String> = extra.split(' ').map(str::to_owned).collect();
            assert!(command.windows(words.len()).any(|window| window == words), "{extra}: {command:?}");
        }
    }
}
