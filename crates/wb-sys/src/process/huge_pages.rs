//! Huge pages asked for: by which means a program can be given them without changing the system.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SysRoot;

/// The setting that makes glibc's malloc advise huge pages for what it maps (glibc 2.35 and later).
pub const GLIBC_TUNABLE: &str = "glibc.malloc.hugetlb=1";

/// By which means a process that asked for huge pages gets them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HugePagesMethod {
    /// The system gives them to all.
    System,
    /// glibc's malloc asks for them, told so by `GLIBC_TUNABLES`.
    GlibcTunable,
    /// The program must ask for them itself: it has no dynamic glibc that could be told.
    Program,
    /// There are none: the system has them switched off.
    None,
}

/// The means for this program on this system.
pub fn method(root: &SysRoot, program: &Path) -> HugePagesMethod {
    let setting = root.text("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if setting.contains("[always]") {
        HugePagesMethod::System
    } else if !setting.contains("[madvise]") {
        HugePagesMethod::None
    } else if interpreter(program).is_some_and(|path| path.contains("ld-linux")) {
        HugePagesMethod::GlibcTunable
    } else {
        HugePagesMethod::Program
    }
}

/// The dynamic loader that an ELF file of this machine's kind names.
fn interpreter(program: &Path) -> Option<String> {
    const LITTLE_ENDIAN_64: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];
    const PT_INTERP: u32 = 3;
    let file = File::open(program).ok()?;
    let mut header = [0; 64];
    file.read_exact_at(&mut header, 0).ok()?;
    if header[..6] != LITTLE_ENDIAN_64 {
        return None;
    }
    let (table, size, count) = (u64_at(&header, 32)?, u16_at(&header, 54)?, u16_at(&header, 56)?);
    (0..u64::from(count.min(64))).find_map(|index| {
        let mut entry = [0; 56];
        file.read_exact_at(&mut entry, table.checked_add(index * u64::from(size))?).ok()?;
        if u32::from_le_bytes(entry[..4].try_into().ok()?) != PT_INTERP {
            return None;
        }
        let length = usize::try_from(u64_at(&entry, 32)?.min(256)).ok()?;
        let mut name = vec![0; length];
        file.read_exact_at(&mut name, u64_at(&entry, 8)?).ok()?;
        Some(String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned())
    })
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_shell_is_dynamic_and_this_test_is_not() {
        assert!(interpreter(Path::new("/bin/sh")).is_some_and(|path| path.starts_with("/lib")));
        assert_eq!(interpreter(&std::env::current_exe().unwrap()), None);
        assert_eq!(interpreter(Path::new("/nosuch")), None);
    }

    #[test]
    fn the_system_decides_before_the_program_does() {
        let folder = tempfile::tempdir().unwrap();
        let setting = folder.path().join("sys/kernel/mm/transparent_hugepage/enabled");
        fs::create_dir_all(setting.parent().unwrap()).unwrap();
        let root = SysRoot::at(folder.path());
        let asked = |text: &str| {
            fs::write(&setting, text).unwrap();
            method(&root, Path::new("/bin/sh"))
        };
        assert_eq!(asked("[always] madvise never\n"), HugePagesMethod::System);
        assert_eq!(asked("always [madvise] never\n"), HugePagesMethod::GlibcTunable);
        assert_eq!(asked("always madvise [never]\n"), HugePagesMethod::None);
        assert_eq!(method(&SysRoot::at("/nosuch"), Path::new("/bin/sh")), HugePagesMethod::None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_file_panics(mut bytes in proptest::collection::vec(any::<u8>(), 0..300), elf: bool) {
            if elf && bytes.len() > 6 {
                bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
            }
            let file = tempfile::NamedTempFile::new().unwrap();
            fs::write(file.path(), &bytes).unwrap();
            let _ = interpreter(file.path());
        }
    }
}
