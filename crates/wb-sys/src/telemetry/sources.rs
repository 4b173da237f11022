//! Files that are opened once and read again and again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::SysRoot;

/// The longest that a file of `/proc` is read to, in bytes.
const MAX_FILE_SIZE: usize = 4 << 20;

/// An open file whose content is made anew at every read.
#[derive(Debug)]
pub(super) struct CounterFile(File);

impl CounterFile {
    /// None where there is no such file, or it may not be read.
    pub(super) fn open(root: &SysRoot, path: &str) -> Option<Self> {
        File::open(root.path(path).ok()?).ok().map(Self)
    }

    /// Its content now, in a buffer that is used again; empty when it cannot be read.
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

    /// The number that it holds.
    pub(super) fn number(&self, buffer: &mut Vec<u8>) -> Option<u64> {
        self.read(buffer).trim().parse().ok()
    }
}

/// The disks that do the work themselves: what has other disks below it, or is not a disk, is left out,
/// so that nothing is counted twice.
pub(super) fn disks(root: &SysRoot) -> Vec<String> {
    let own = |name: &String| {
        let virtual_only = ["loop", "ram", "zram", "nbd", "sr", "fd"];
        let below = root.list(format!("/sys/block/{name}/slaves")).unwrap_or_default();
        below.is_empty() && !virtual_only.iter().any(|prefix| is_numbered(name, prefix))
    };
    root.list("/sys/block").unwrap_or_default().into_iter().filter(own).collect()
}

fn is_numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The temperatures of processors, by name. Others are not read: asking a disk for its temperature is
/// a command to the disk.
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
    use std::fs;

    use super::*;

    fn made(files: &[(&str, &str)]) -> (tempfile::TempDir, SysRoot) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = SysRoot::at(folder.path());
        (folder, root)
    }

    #[test]
    fn only_disks_that_do_the_work_are_counted() {
        let (_folder, root) = made(&[
            ("sys/block/vda/size", "1"),
            ("sys/block/nvme0n1/size", "1"),
            ("sys/block/dm-0/slaves/vda/x", ""),
            ("sys/block/loop0/size", "0"),
            ("sys/block/sr0/size", "0"),
            ("sys/block/fd0/size", "0"),
        ]);
        let mut found = disks(&root);
        found.sort();
        assert_eq!(found, ["nvme0n1", "vda"]);
    }

    #[test]
    fn a_disk_is_not_asked_for_its_temperature() {
        let (_folder, root) = made(&[
            ("sys/class/hwmon/hwmon0/name", "nvme"),
            ("sys/class/hwmon/hwmon0/temp1_input", "40000"),
            ("sys/class/hwmon/hwmon1/name", "coretemp"),
            ("sys/class/hwmon/hwmon1/temp1_input", "52500"),
            ("sys/class/hwmon/hwmon1/temp1_label", "Package id 0"),
            ("sys/class/thermal/thermal_zone0/type", "x86_pkg_temp"),
            ("sys/class/thermal/thermal_zone0/temp", "53000"),
        ]);
        let found = temperature_sensors(&root);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["coretemp1/Package id 0", "x86_pkg_temp/0"]);
        assert_eq!(found[0].1.number(&mut Vec::new()), Some(52500));
    }

    #[test]
    fn a_file_longer_than_the_buffer_is_read_whole_and_again() {
        let long = "x".repeat(100_000);
        let (folder, root) = made(&[("f", &long)]);
        let (source, mut buffer) = (CounterFile::open(&root, "/f").unwrap(), Vec::new());
        assert_eq!(source.read(&mut buffer), long.as_str());
        fs::write(folder.path().join("f"), "12\n").unwrap();
        assert_eq!(source.number(&mut buffer), Some(12));
    }
}
