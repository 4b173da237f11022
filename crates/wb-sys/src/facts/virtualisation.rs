use super::cpuid;
use crate::SysRoot;
use crate::proc::cpuinfo::CpuInfo;

/// The hypervisor that this machine runs under, where one can be detected; `unnamed` where it cannot be identified.
pub fn hypervisor(root: &SysRoot, cpuinfo: &CpuInfo) -> Option<String> {
    let xen = root.text("/sys/hypervisor/type").ok().filter(|name| !name.is_empty());
    let detected = xen.or_else(|| by_cpuid(root)).or_else(|| by_clock(root)).or_else(|| by_firmware(root));
    detected.or_else(|| cpuinfo.flags.contains("hypervisor").then(|| "unnamed".to_owned()))
}

/// Emulation by QEMU's TCG. CPUID decides where available; the processor's name is only a hint: KVM can report it, too.
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

/// Hypervisors by their signatures in CPUID leaf 0x4000_0000 and by DMI names.
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
    let hypervisor = NAMES.iter().find(|(name, _)| signature.starts_with(name)).map(|(_, hypervisor)| *hypervisor);
    Some(hypervisor.unwrap_or(&signature).to_owned()).filter(|name| !name.is_empty())
}

/// Detects a hypervisor by its paravirtual clock source, which only its guests have.
fn by_clock(root: &SysRoot) -> Option<String> {
    let clocks = root.text("/sys/devices/system/clocksource/clocksource0/available_clocksource").ok()?;
    let hypervisor_of = |clock| match clock {
        "kvm-clock" => Some("kvm"),
        "xen" => Some("xen"),
        "hyperv_clocksource_tsc_page" | "hyperv_clocksource_msr" => Some("hyper-v"),
        _ => None,
    };
    clocks.split_whitespace().find_map(hypervisor_of).map(str::to_owned)
}

fn by_firmware(root: &SysRoot) -> Option<String> {
    let dmi = |name: &str| root.text(format!("/sys/class/dmi/id/{name}")).unwrap_or_default();
    let (vendor, product) = (dmi("sys_vendor"), dmi("product_name"));
    let fields = [&vendor, &product, &dmi("board_vendor"), &dmi("bios_vendor")];
    let listed = NAMES.iter().find(|(name, _)| fields.iter().any(|field| field.starts_with(name)));
    let special = match (vendor.as_str(), product.as_str()) {
        ("Microsoft Corporation", "Virtual Machine") => Some("hyper-v"),
        ("Amazon EC2", product) if !product.ends_with(".metal") => Some("kvm"),
        _ => None,
    };
    let device_tree = || match root.text("/proc/device-tree/hypervisor/compatible").ok()?.as_str() {
        "linux,kvm" => Some("kvm".to_owned()),
        other => Some(other.to_owned()),
    };
    listed.map(|(_, hypervisor)| *hypervisor).or(special).map(str::to_owned).or_else(device_tree)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_root::FakeRoot;

    fn detect(files: &[(&str, &str)], model: &str) -> (Option<String>, bool) {
        let fake = files.iter().fold(FakeRoot::new(), |fake, (path, text)| fake.file(path, text));
        let cpuinfo = CpuInfo::parse(&format!("processor: 0\nmodel name: {model}\nflags: fpu\n"));
        (hypervisor(&fake.root(), &cpuinfo), emulated(&fake.root(), &cpuinfo))
    }

    const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

    #[test]
    fn emulation_is_distinguished_from_virtualisation() {
        let qemu = ("/sys/class/dmi/id/sys_vendor", "QEMU");
        assert_eq!(detect(&[qemu], "QEMU TCG CPU version 2.5+"), (Some("qemu".into()), true));
        assert_eq!(detect(&[qemu], "QEMU Virtual CPU version 2.5+"), (Some("qemu".into()), true));
        let kvm = (CLOCK, "kvm-clock tsc acpi_pm");
        assert_eq!(detect(&[qemu, kvm], "QEMU Virtual CPU version 2.5+"), (Some("kvm".into()), false));
    }

    #[test]
    fn hypervisors_are_detected_by_several_sources() {
        assert_eq!(detect(&[("/sys/hypervisor/type", "xen")], "x").0.as_deref(), Some("xen"));
        let amazon = ("/sys/class/dmi/id/sys_vendor", "Amazon EC2");
        let name = "/sys/class/dmi/id/product_name";
        assert_eq!(detect(&[amazon, (name, "c6i.large")], "x").0.as_deref(), Some("kvm"));
        assert_eq!(detect(&[amazon, (name, "c6i.metal")], "x").0, None);
        assert_eq!(detect(&[("/sys/class/dmi/id/sys_vendor", "Dell Inc.")], "x"), (None, false));
        assert_eq!(
            detect(&[("/proc/device-tree/hypervisor/compatible", "linux,kvm\0")], "x").0.as_deref(),
            Some("kvm")
        );
    }
}
