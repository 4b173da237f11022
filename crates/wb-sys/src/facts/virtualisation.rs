//! Whether the machine is a real one.

use super::{cpuid, cpuinfo::CpuInfo};
use crate::SysRoot;

/// The hypervisor that this machine runs under, where one shows itself; `unnamed` where there is one
/// that does not say which.
pub fn hypervisor(root: &SysRoot, cpuinfo: &CpuInfo) -> Option<String> {
    let xen = root.text("/sys/hypervisor/type").ok().filter(|name| !name.is_empty());
    let named = xen.or_else(|| by_cpuid(root)).or_else(|| by_clock(root)).or_else(|| by_firmware(root));
    named.or_else(|| cpuinfo.flags.contains("hypervisor").then(|| "unnamed".to_owned()))
}

/// Whether instructions are emulated by software (QEMU's TCG). The processor's own word counts where it
/// can be asked; its name is a hint only, as KVM can be told to use the same one.
pub fn emulated(root: &SysRoot, cpuinfo: &CpuInfo) -> bool {
    match root.is_real().then(cpuid::hypervisor).flatten() {
        Some(signature) => signature == TCG,
        None => {
            let old_name = cpuinfo.model.starts_with("QEMU Virtual CPU") && by_clock(root).is_none();
            cpuinfo.model.contains("TCG CPU") || old_name
        }
    }
}

const TCG: &str = "TCGTCGTCGTCG";

/// Signatures of CPUID leaf 0x4000_0000 and DMI names, and the hypervisor behind each.
const NAMES: [(&str, &str); 20] = [
    (TCG, "qemu-tcg"),
    ("KVMKVMKVM", "kvm"),
    ("Linux KVM Hv", "kvm"),
    ("Microsoft Hv", "hyper-v"),
    ("VMwareVMware", "vmware"),
    ("XenVMMXenVMM", "xen"),
    ("VBoxVBoxVBox", "virtualbox"),
    ("bhyve bhyve", "bhyve"),
    ("prl hyperv", "parallels"),
    ("ACRNACRNACRN", "acrn"),
    ("QEMU", "qemu"),
    ("KVM", "kvm"),
    ("Google Compute Engine", "kvm"),
    ("VMware", "vmware"),
    ("VirtualBox", "virtualbox"),
    ("innotek", "virtualbox"),
    ("Xen", "xen"),
    ("Bochs", "bochs"),
    ("Parallels", "parallels"),
    ("BHYVE", "bhyve"),
];

fn by_cpuid(root: &SysRoot) -> Option<String> {
    let signature = root.is_real().then(cpuid::hypervisor)??;
    let known = NAMES.iter().find(|(name, _)| signature.starts_with(name)).map(|(_, hypervisor)| *hypervisor);
    Some(known.unwrap_or(&signature).to_owned()).filter(|name| !name.is_empty())
}

/// Only a hypervisor's guest is offered its clock.
fn by_clock(root: &SysRoot) -> Option<String> {
    let clocks = root.text("/sys/devices/system/clocksource/clocksource0/available_clocksource").ok()?;
    let of_guest = |clock| match clock {
        "kvm-clock" => Some("kvm"),
        "xen" => Some("xen"),
        "hyperv_clocksource_tsc_page" | "hyperv_clocksource_msr" => Some("hyper-v"),
        _ => None,
    };
    clocks.split_whitespace().find_map(of_guest).map(str::to_owned)
}

fn by_firmware(root: &SysRoot) -> Option<String> {
    let dmi = |name: &str| root.text(format!("/sys/class/dmi/id/{name}")).unwrap_or_default();
    let (vendor, product) = (dmi("sys_vendor"), dmi("product_name"));
    let fields = [&vendor, &product, &dmi("board_vendor"), &dmi("bios_vendor")];
    let named = NAMES.iter().find(|(name, _)| fields.iter().any(|field| field.starts_with(name)));
    let guessed = match (vendor.as_str(), product.as_str()) {
        ("Microsoft Corporation", "Virtual Machine") => Some("hyper-v"),
        ("Amazon EC2", product) if !product.ends_with(".metal") => Some("kvm"),
        _ => None,
    };
    let tree = || match root.text("/proc/device-tree/hypervisor/compatible").ok()?.as_str() {
        "linux,kvm" => Some("kvm".to_owned()),
        other => Some(other.to_owned()),
    };
    named.map(|(_, hypervisor)| *hypervisor).or(guessed).map(str::to_owned).or_else(tree)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_root::FakeRoot;

    fn found(files: &[(&str, &str)], model: &str) -> (Option<String>, bool) {
        let made = files.iter().fold(FakeRoot::new(), |made, (path, text)| made.file(path, text));
        let cpuinfo = CpuInfo::parse(&format!("processor: 0\nmodel name: {model}\nflags: fpu\n"));
        (hypervisor(&made.root(), &cpuinfo), emulated(&made.root(), &cpuinfo))
    }

    const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

    #[test]
    fn emulation_is_told_from_virtualisation() {
        let qemu = ("/sys/class/dmi/id/sys_vendor", "QEMU");
        assert_eq!(found(&[qemu], "QEMU TCG CPU version 2.5+"), (Some("qemu".into()), true));
        assert_eq!(found(&[qemu], "QEMU Virtual CPU version 2.5+"), (Some("qemu".into()), true));
        let kvm = (CLOCK, "kvm-clock tsc acpi_pm");
        assert_eq!(found(&[qemu, kvm], "QEMU Virtual CPU version 2.5+"), (Some("kvm".into()), false));
    }

    #[test]
    fn hypervisors_show_themselves_in_many_ways() {
        assert_eq!(found(&[("/sys/hypervisor/type", "xen")], "x").0.as_deref(), Some("xen"));
        let amazon = ("/sys/class/dmi/id/sys_vendor", "Amazon EC2");
        let name = "/sys/class/dmi/id/product_name";
        assert_eq!(found(&[amazon, (name, "c6i.large")], "x").0.as_deref(), Some("kvm"));
        assert_eq!(found(&[amazon, (name, "c6i.metal")], "x").0, None);
        assert_eq!(found(&[("/sys/class/dmi/id/sys_vendor", "Dell Inc.")], "x"), (None, false));
        assert_eq!(found(&[("/proc/device-tree/hypervisor/compatible", "linux,kvm\0")], "x").0.as_deref(), Some("kvm"));
    }
}
