//! Why a host has no image, as it tells it.

use serde::{Deserialize, Serialize};
use wb_model::{Bytes, Nanos, Quantity};

/// Why an image could not be had on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case", tag = "failure")]
pub enum ImageFailure {
    /// No image of that name for the machine.
    #[error("there is no image `{image}` for {architecture}")]
    Architecture {
        /// The image.
        image: String,
        /// The machine's.
        architecture: String,
    },
    /// Nobody knows the host of a URL.
    #[error("the host of {url} is unknown: no address was found for its name")]
    HostUnknown {
        /// What was to be fetched.
        url: String,
    },
    /// There is no way to it, or it hangs up.
    #[error("{url} cannot be fetched: {why}")]
    Unreachable {
        /// What was to be fetched.
        url: String,
        /// What the system said.
        why: String,
    },
    /// It answers, and does not give it.
    #[error("{url} is answered with HTTP status {status}")]
    Status {
        /// What was to be fetched.
        url: String,
        /// The status.
        status: u16,
    },
    /// It comes too slowly, or not at all.
    #[error(
        "{url} sends less than {} in {within}: given up after {}, which are kept",
        format_size(least),
        format_size(got)
    )]
    Stalled {
        /// What was to be fetched.
        url: String,
        /// What was waited for.
        least: Bytes,
        /// How long.
        within: Nanos,
        /// What had come.
        got: Bytes,
    },
    /// What came is not what was to come; it is removed.
    #[error("{url} has the {kind} {found}, not {expected}: what came is removed")]
    Hash {
        /// What was fetched.
        url: String,
        /// Of which hash.
        kind: super::checksums::HashKind,
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// The list of hashes does not have it.
    #[error("{url} has no {kind} of `{file}`")]
    NotListed {
        /// The list.
        url: String,
        /// Of which hash.
        kind: super::checksums::HashKind,
        /// The file.
        file: String,
    },
    /// No room.
    #[error(
        "there is no room for {what} in {folder}: it takes {}, {} are free",
        format_size(needed),
        format_size(free)
    )]
    NoSpace {
        /// For what.
        what: String,
        /// Where.
        folder: String,
        /// What it takes.
        needed: Bytes,
        /// What there is.
        free: Bytes,
    },
    /// A program is not there.
    #[error("there is no program `{tool}`, which the package `{package}` brings")]
    ToolNotFound {
        /// The program.
        tool: String,
        /// Debian's package with it.
        package: String,
    },
    /// A program did not do it.
    #[error("`{tool}` ended with {ending}: {said}")]
    Tool {
        /// The program.
        tool: String,
        /// How.
        ending: String,
        /// The end of what it wrote.
        said: String,
    },
    /// Packages that no archive has.
    #[error("the archive has no package {}", .packages.join(", "))]
    NoPackages {
        /// Which.
        packages: Vec<String>,
    },
    /// Only root can do it.
    #[error("an image is built from packages by root alone: reach the host as root, or with sudo")]
    NotRoot,
    /// A file that is not there, or no file.
    #[error("there is no file {path}")]
    Missing {
        /// Its path.
        path: String,
    },
    /// Neither qcow2 nor raw.
    #[error("{path} is in the format {format}; what can be used is qcow2 and raw")]
    Format {
        /// Its path.
        path: String,
        /// What it is.
        format: String,
    },
    /// An overlay, whose hash says nothing of what is below.
    #[error("{path} is an overlay of {backing}: make one image of both with `qemu-img convert -O qcow2`")]
    Overlay {
        /// Its path.
        path: String,
        /// What it lies upon.
        backing: String,
    },
    /// A file that cannot be used.
    #[error("{path}: {why}")]
    File {
        /// Its path.
        path: String,
        /// What the system said.
        why: String,
    },
}

impl ImageFailure {
    /// Of a file.
    pub(super) fn file(path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::File { path: path.display().to_string(), why: error.to_string() }
    }
}

pub(super) fn format_size(bytes: &Bytes) -> Quantity<'static> {
    Quantity { value: bytes.0 as f64, unit: "B" }
}
