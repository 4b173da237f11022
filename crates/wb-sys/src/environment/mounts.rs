use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::secrets;

use crate::SysRoot;
use crate::proc::{mountinfo, unescape};

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

/// The mounts visible to this process, by mount point. If several are at one mount point, the topmost is returned.
pub fn mounts(root: &SysRoot) -> BTreeMap<String, Mount> {
    parse(&root.text("/proc/self/mountinfo").unwrap_or_default())
}

fn parse(text: &str) -> BTreeMap<String, Mount> {
    let mounts = mountinfo::mounts(text).map(|mount| {
        let recorded = Mount {
            source: secrets::mask_option(&unescape(mount.source)),
            kind: mount.kind.to_owned(),
            options: secrets::mask_options(&format!("{};{}", mount.options, mount.super_options)),
        };
        (unescape(mount.point), recorded)
    });
    mounts.collect()
}

#[cfg(test)]
mod tests {
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
}
