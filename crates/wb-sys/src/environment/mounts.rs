//! Mounted file systems.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::secrets;

use crate::SysRoot;

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Mount {
    /// Source: a device, an address (secrets masked) or a name.
    pub source: String,
    /// Type of the file system.
    pub kind: String,
    /// Options of the mount and of the file system, with secrets masked.
    pub options: String,
}

/// The mounts visible to this process, by mount point. Of several at one mount point the topmost is returned.
pub fn mounts(root: &SysRoot) -> BTreeMap<String, Mount> {
    parse(&root.text("/proc/self/mountinfo").unwrap_or_default())
}

/// Parses `mountinfo` (proc_pid_mountinfo(5)).
fn parse(text: &str) -> BTreeMap<String, Mount> {
    let mounts = text.lines().filter_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(4);
        let (point, options) = (mount.next()?, mount.next()?);
        let mut file_system = file_system.split(' ');
        let (kind, source, super_options) =
            (file_system.next()?, file_system.next()?, file_system.next().unwrap_or_default());
        let mount = Mount {
            source: secrets::mask_option(&unescaped(source)),
            kind: kind.to_owned(),
            options: secrets::mask_options(&format!("{options};{super_options}")),
        };
        Some((unescaped(point), mount))
    });
    mounts.collect()
}

/// Decodes space, tab, newline and backslash, which are written as three octal digits.
fn unescaped(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |text, (code, character)| text.replace(code, character))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn mounts_are_read_without_their_secrets() {
        let mounts = parse(
            "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard\n\
             31 27 0:40 / /mnt/a\\040b rw - cifs //joe:pw@host/x rw,password=abc,uid=0\n",
        );
        assert_eq!(mounts["/"].options, "rw,relatime;rw,discard");
        assert_eq!(mounts["/mnt/a b"].options, "rw;rw,password=***,uid=0");
        assert!(!mounts["/mnt/a b"].source.contains("pw"));
    }

    proptest! {
        #[test]
        fn arbitrary_input_does_not_panic(text: String) {
            let _ = parse(&text);
        }
    }
}
