//! What a guest's disk is made from.
//!
//! [`Image`] is what a user asks for, [`ready`] has it lie on a host as a [`Base`], and [`Seed`] is the volume that tells
//! a guest of it who it is. All of it lies in one folder of the host, which [`cache`](mod@cache) shows and empties.

pub mod cache;
pub mod catalogue;
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
pub use spec::{BuiltImage, CatalogueName, ImageSpec, LocalImage, ParseImageError, RemoteImage};

/// An image that lies on a host, ready to have overlays made upon it. It is never written to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct BaseImage {
    /// What it is, for people and for the record: `debian-12`, its URL, its path, the packages it was built from.
    pub name: String,
    /// Where it lies on the host.
    pub path: String,
    /// Its format.
    pub format: ImageFormat,
    /// The SHA-256 of its file, in hexadecimal digits.
    pub sha256: String,
    /// How it is started.
    pub boot: GuestBoot,
}

/// Formats of disk images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ImageFormat {
    /// QEMU's, with holes and overlays.
    Qcow2,
    /// The bytes of the disk.
    Raw,
}

/// How a guest starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "from")]
pub enum GuestBoot {
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
