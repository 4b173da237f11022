use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SysRoot;

/// Mainboard, firmware and chipset. Serial numbers are not recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Board {
    /// Vendor and product name of the machine: `Dell Inc. PowerEdge R740`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Vendor and name of the mainboard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Vendor, version and date of the firmware.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub firmware: Option<String>,
    /// PCI host bridge: its name where `pci.ids` is installed, else `VENDOR:DEVICE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chipset: Option<String>,
}

/// Paths at which distributions install the list of PCI vendors and devices.
const PCI_IDS: [&str; 3] = ["/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids", "/usr/share/pci.ids"];

/// A PCI class code.
const HOST_BRIDGE: &str = "0x0600";

/// Placeholders in DMI fields that the vendor did not fill in.
const PLACEHOLDERS: [&str; 5] =
    ["to be filled by o.e.m.", "default string", "not specified", "system product name", "system manufacturer"];

impl Board {
    pub(super) fn read(root: &SysRoot) -> Self {
        let dmi = |names: &[&str]| {
            let texts =
                names.iter().filter_map(|name| non_placeholder(root.text(format!("/sys/class/dmi/id/{name}")).ok()?));
            Some(texts.collect::<Vec<_>>().join(" ")).filter(|text| !text.is_empty())
        };
        // Boards without DMI have a device tree, whose strings are terminated by a zero byte.
        let tree = || non_placeholder(root.text("/proc/device-tree/model").ok()?.trim_end_matches('\0').to_owned());
        Self {
            machine: dmi(&["sys_vendor", "product_name"]).or_else(tree),
            model: dmi(&["board_vendor", "board_name"]),
            firmware: dmi(&["bios_vendor", "bios_version", "bios_date"]),
            chipset: chipset(root),
        }
    }
}

fn non_placeholder(text: String) -> Option<String> {
    let text = text.trim();
    (!text.is_empty() && !PLACEHOLDERS.contains(&text.to_lowercase().as_str())).then(|| text.to_owned())
}

/// The name of the first host bridge.
fn chipset(root: &SysRoot) -> Option<String> {
    let devices = "/sys/bus/pci/devices";
    let text = |device: &str, file: &str| root.text(format!("{devices}/{device}/{file}")).ok();
    let is_bridge = |device: &&String| text(device, "class").is_some_and(|class| class.starts_with(HOST_BRIDGE));
    let all = root.list(devices).unwrap_or_default();
    let bridge = all.iter().find(is_bridge)?;
    let id = |file: &str| Some(text(bridge, file)?.trim_start_matches("0x").to_lowercase());
    let (vendor, device) = (id("vendor")?, id("device")?);
    let found = PCI_IDS.iter().find_map(|path| pci_names(&root.text(path).ok()?, &vendor, &device));
    Some(found.unwrap_or_else(|| format!("{vendor}:{device}")))
}

/// Looks up a vendor and its device in `pci.ids`: lines `VENDOR  NAME`, each followed by lines `<tab>DEVICE  NAME`.
fn pci_names(ids: &str, vendor: &str, device: &str) -> Option<String> {
    // The list has 40,000 lines, the first of which are comments.
    let (_, rest) = ids.split_once(&format!("\n{vendor}  "))?;
    let mut lines = rest.lines();
    let vendor = lines.next()?;
    let of_vendor = lines.take_while(|line| line.starts_with(['\t', '#']));
    let devices = of_vendor.filter_map(|line| line.strip_prefix('\t')?.split_once("  "));
    let (_, device) = devices.into_iter().find(|(id, _)| *id == device)?;
    Some(format!("{} {}", vendor.trim(), device.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_root::FakeRoot;

    const DMI: &str = "/sys/class/dmi/id";
    const BRIDGE: &str = "/sys/bus/pci/devices/0000:00:00.0";

    fn bridge() -> FakeRoot {
        FakeRoot::new()
            .file(&format!("{BRIDGE}/class"), "0x060000\n")
            .file(&format!("{BRIDGE}/vendor"), "0x8086\n")
            .file(&format!("{BRIDGE}/device"), "0x1237\n")
    }

    #[test]
    fn the_board_is_read_and_placeholders_are_left_out() {
        let fake = FakeRoot::new()
            .file(&format!("{DMI}/sys_vendor"), "Dell Inc.\n")
            .file(&format!("{DMI}/product_name"), "PowerEdge R740\n")
            .file(&format!("{DMI}/board_vendor"), "To Be Filled By O.E.M.\n")
            .file(&format!("{DMI}/board_name"), "0WRPXK\n")
            .file(&format!("{DMI}/product_serial"), "SECRET1\n");
        let board = Board::read(&fake.root());
        assert_eq!(board.machine.as_deref(), Some("Dell Inc. PowerEdge R740"));
        assert_eq!((board.model.as_deref(), board.firmware), (Some("0WRPXK"), None));
        let tree = FakeRoot::new().file("/proc/device-tree/model", "Raspberry Pi 4 Model B\0");
        assert_eq!(Board::read(&tree.root()).machine.as_deref(), Some("Raspberry Pi 4 Model B"));
    }

    #[test]
    fn the_chipset_is_named_where_pci_ids_is_installed() {
        assert_eq!(Board::read(&bridge().root()).chipset.as_deref(), Some("8086:1237"));
        let ids = "# list\n1022  AMD\n\t1237  another\n8086  Intel Corporation\n\t1235  82437\n\t1237  440FX PMC\n\
                   \t\t1af4 1100  subsystem\n9004  Adaptec\n\t9999  none\n";
        let chipset = |ids: &str| Board::read(&bridge().file(PCI_IDS[0], ids).root()).chipset;
        assert_eq!(chipset(ids).as_deref(), Some("Intel Corporation 440FX PMC"));
        assert_eq!(chipset("9004  Adaptec\n\t1237  none\n").as_deref(), Some("8086:1237"));
    }
}
