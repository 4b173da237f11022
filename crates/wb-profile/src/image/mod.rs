//! Base images for guests' disks.
//!
//! [`ImageSpec`] is the image that a user requests, [`prepare()`] prepares it on a host as a [`BaseImage`], and
//! [`SeedConfig`] is the volume that configures a guest. All images are stored in one folder of the host, which
//! [`mod@cache`] lists and empties.

pub mod cache;
pub mod catalog;
pub mod checksums;
mod failure;
mod host;
mod prepare;
pub mod request;
mod seed;
mod spec;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use failure::ImageFailure;
pub use host::execute;
pub use prepare::{ImageError, ImageOptions, check, prepare};
pub use seed::{HostKey, SeedConfig, SeedError};
pub use spec::{BuiltImage, CatalogName, ImageSpec, LocalImage, ParseImageError, RemoteImage};

/// An image on a host from which guests' disks are created. It is never written to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct BaseImage {
    /// Its display name: `debian-12`, its URL, its path, or the packages it was built from.
    pub name: String,
    /// Its path on the host.
    pub path: String,
    /// Its format.
    pub format: ImageFormat,
    /// The SHA-256 of its file, in hexadecimal digits.
    pub sha256: String,
    /// How guests boot from it.
    pub boot: GuestBoot,
}

/// Format of a disk image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ImageFormat {
    /// QEMU's format, with holes and overlays.
    Qcow2,
    /// The plain bytes of the disk.
    Raw,
}

/// How a guest boots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "from")]
pub enum GuestBoot {
    /// By the boot loader on its disk.
    Disk,
    /// With a kernel from outside the disk.
    Kernel {
        /// Path of the kernel on the host.
        kernel: String,
        /// Path of its initial RAM file system on the host.
        initrd: String,
        /// Kernel parameters, such as the root device.
        arguments: String,
    },
}
