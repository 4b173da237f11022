//! Counter files that are opened once and read repeatedly, and discovery of disks and temperature sensors.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::SysRoot;
use crate::environment::block;

/// Maximum number of bytes read of a `/proc` file.
const MAX_FILE_SIZE: usize = 4 << 20;

/// An open counter file, whose content is generated at every read.
#[derive(Debug)]
pub(super) struct CounterFile(File);

impl CounterFile {
    /// Opens a file. None where it does not exist or may not be read.
    pub(super) fn open(root: &SysRoot, path: &str) -> Option<Self> {
        File::open(root.path(path).ok()?).ok().map(Self)
    }

    /// Reads the current content into a reused buffer; empty when it cannot be read.
    pub(super) fn read<'a>(&self, buffer: &'a mut Vec<u8>) -> std::borrow::Cow<'a, str> {
        if buffer.is_empty() {
            buffer.resize(16 << 10, 0);
        }
        let mut filled = 0;
        loop {
            match self.0.read_at(&mut buffer[filled..], filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
            if filled == buffer.len() {
                if filled >= MAX_FILE_SIZE {
                    break;
                }
                buffer.resize(filled * 2, 0);
            }
        }
        String::from_utf8_lossy(&buffer[..filled])
    }

    pub(super) fn number(&self, buffer: &mut Vec<u8>) -> Option<u64> {
        self.read(buffer).trim().parse().ok()
    }
}

/// The disks that serve I/O themselves: without devices built on other disks, so that no I/O is counted twice.
pub(super) fn disks(root: &SysRoot) -> Vec<String> {
    let is_single = |name: &String| root.list(format!("/sys/block/{name}/slaves")).unwrap_or_default().is_empty();
    block::disks(root).filter(is_single).collect()
}

/// The temperature sensors of processors, by name. Others are not read: reading a disk's temperature sends the disk a
/// command.
pub(super) fn temperature_sensors(root: &SysRoot) -> Vec<(String, CounterFile)> {
    let mut found = Vec::new();
    for chip in root.numbered_entries("/sys/class/hwmon", "hwmon") {
        let folder = format!("/sys/class/hwmon/hwmon{chip}");
        let name = root.text(format!("{folder}/name")).unwrap_or_default();
        if ["coretemp", "k10temp", "zenpower", "cpu_thermal"].contains(&name.as_str()) {
            for file in root.list(&folder).unwrap_or_default() {
                let Some(sensor) = file.strip_prefix("temp").and_then(|rest| rest.strip_suffix("_input")) else {
                    continue;
                };
                let label = root.text(format!("{folder}/temp{sensor}_label"));
                let label = label.unwrap_or_else(|_| format!("temp{sensor}"));
                found.extend(
                    CounterFile::open(root, &format!("{folder}/{file}"))
                        .map(|source| (format!("{name}{chip}/{label}"), source)),
                );
            }
        }
    }
    for zone in root.numbered_entries("/sys/class/thermal", "thermal_zone") {
        let folder = format!("/sys/class/thermal/thermal_zone{zone}");
        let kind = root.text(format!("{folder}/type")).unwrap_or_default();
        if kind == "x86_pkg_temp" || kind.starts_with("cpu") || kind.starts_with("soc") {
            found.extend(
                CounterFile::open(root, &format!("{folder}/temp")).map(|source| (format!("{kind}/{zone}"), source)),
            );
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_root::FakeRoot;

    #[test]
    fn stacked_and_virtual_disks_are_left_out() {
        let fake = FakeRoot::new()
            .file("/sys/block/vda/size", "1")
            .file("/sys/block/nvme0n1/size", "1")
            .file("/sys/block/dm-0/slaves/vda/x", "")
            .file("/sys/block/loop0/size", "0")
            .file("/sys/block/sr0/size", "0")
            .file("/sys/block/fd0/size", "0");
        let mut found = disks(&fake.root());
        found.sort();
        assert_eq!(found, ["nvme0n1", "vda"]);
    }

    #[test]
    fn disk_temperatures_are_not_read() {
        let fake = FakeRoot::new()
            .file("/sys/class/hwmon/hwmon0/name", "nvme")
            .file("/sys/class/hwmon/hwmon0/temp1_input", "40000")
            .file("/sys/class/hwmon/hwmon1/name", "coretemp")
            .file("/sys/class/hwmon/hwmon1/temp1_input", "52500")
            .file("/sys/class/hwmon/hwmon1/temp1_label", "Package id 0")
            .file("/sys/class/thermal/thermal_zone0/type", "x86_pkg_temp")
            .file("/sys/class/thermal/thermal_zone0/temp", "53000");
        let found = temperature_sensors(&fake.root());
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["coretemp1/Package id 0", "x86_pkg_temp/0"]);
        assert_eq!(found[0].1.number(&mut Vec::new()), Some(52500));
    }

    #[test]
    fn a_file_longer_than_the_buffer_is_read_completely() {
        let long = "x".repeat(100_000);
        let fake = FakeRoot::new().file("/f", &long);
        let (source, mut buffer) = (CounterFile::open(&fake.root(), "/f").unwrap(), Vec::new());
        assert_eq!(source.read(&mut buffer), long.as_str());
        let _fake = fake.file("/f", "12\n");
        assert_eq!(source.number(&mut buffer), Some(12));
    }
}
