//! What a guest's disk is made from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An image that lies on a host, ready to have overlays made upon it. It is never written to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Base {
    /// What it is, for people and for the record: `debian-12`, its URL, its path, the packages it was built from.
    pub name: String,
    /// Where it lies on the host.
    pub path: String,
    /// Its format.
    pub format: Format,
    /// The SHA-256 of its file, in hexadecimal digits.
    pub sha256: String,
    /// How it is started.
    pub boot: Boot,
}

/// Formats of disk images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// QEMU's, with holes and overlays.
    Qcow2,
    /// The bytes of the disk.
    Raw,
}

/// How a guest starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "from")]
pub enum Boot {
    /// Its disk has a boot loader.
    Disk,
    /// A kernel beside the disk.
    Kernel {
        /// Its path on the host.
        kernel: String,
        /// Its initial file system's.
        initrd: String,
        /// What it is told: where the root is and the like.
        arguments: String,
    },
}
