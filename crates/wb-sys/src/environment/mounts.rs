//! What is mounted.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::secrets;

use crate::SysRoot;

/// Something mounted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Mount {
    /// What: a device, an address (secrets masked), a name.
    pub source: String,
    /// The kind of its file system.
    pub kind: String,
    /// The mount's options and the file system's, secrets masked.
    pub options: String,
}

/// What this process sees mounted, by mount point. Of two on one point the upper counts.
pub fn mounts(root: &SysRoot) -> BTreeMap<String, Mount> {
    parse(&root.text("/proc/self/mountinfo").unwrap_or_default())
}

/// Understands `mountinfo` (proc_pid_mountinfo(5)).
fn parse(text: &str) -> BTreeMap<String, Mount> {
    let mounts = text.lines().filter_map(|line| {
        let (place, what) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(4);
        let (point, options) = (place.next()?, place.next()?);
        let mut what = what.split(' ');
        let (kind, source, own) = (what.next()?, what.next()?, what.next().unwrap_or_default());
        let mount = Mount {
            source: secrets::mask_option(&unescaped(source)),
            kind: kind.to_owned(),
            options: secrets::mask_options(&format!("{options};{own}")),
        };
        Some((unescaped(point), mount))
    });
    mounts.collect()
}

/// Space, tab, newline and backslash are written as three octal digits.
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
        fn no_text_panics(text: String) {
            let _ = parse(&text);
        }
    }
}
