//! Errors in preparing an image on a host, as the host reports them.

use serde::{Deserialize, Serialize};
use wb_model::{Bytes, Nanos, Quantity};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case", tag = "failure")]
pub enum ImageFailure {
    #[error("no such image for {architecture}: `{image}`")]
    Architecture { image: String, architecture: String },
    #[error("cannot resolve the host name of {url}")]
    HostUnknown { url: String },
    /// The server cannot be reached, or closes the connection.
    #[error("cannot fetch {url}: {reason}")]
    Unreachable { url: String, reason: String },
    #[error("cannot fetch {url}: HTTP status {status}")]
    Status { url: String, status: u16 },
    #[error(
        "cannot fetch {url}: less than {} in {within}; stopped after {}, which are kept",
        format_size(minimum),
        format_size(received)
    )]
    Stalled { url: String, minimum: Bytes, within: Nanos, received: Bytes },
    #[error("{url} has {kind} {found}, expected {expected}; the download was removed")]
    Hash { url: String, kind: super::checksums::HashKind, expected: String, found: String },
    #[error("{url} has no {kind} of `{file}`")]
    NotListed {
        /// The URL of the list.
        url: String,
        kind: super::checksums::HashKind,
        file: String,
    },
    #[error("not enough space for {item} in {folder}: {} required, {} free", format_size(required), format_size(free))]
    NoSpace { item: String, folder: String, required: Bytes, free: Bytes },
    #[error("no such program: `{tool}`; the package `{package}` contains it")]
    ToolNotFound { tool: String, package: String },
    #[error("`{tool}` ended with {ending}: {output}")]
    Tool {
        tool: String,
        ending: String,
        /// The last lines of its output.
        output: String,
    },
    #[error("the archive has no package {}", .packages.join(", "))]
    NoPackages { packages: Vec<String> },
    #[error("building an image from packages requires root: connect to the host as root, or with sudo")]
    NotRoot,
    #[error("no such file: {path}")]
    Missing { path: String },
    #[error("unsupported format {format} of {path}: expected qcow2 or raw")]
    Format { path: String, format: String },
    /// An overlay, whose hash does not cover its backing file.
    #[error("{path} is an overlay of {backing}: merge both into one image with `qemu-img convert -O qcow2`")]
    Overlay { path: String, backing: String },
    #[error("{folder}: {reason}, so that another user could replace the images in it")]
    UntrustedStore {
        folder: String,
        /// The level of its path that the other user can change, and why.
        reason: String,
    },
    #[error("{path}: {why}")]
    File { path: String, why: String },
}

impl ImageFailure {
    pub(super) fn file(path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::File { path: path.display().to_string(), why: error.to_string() }
    }
}

pub(super) fn format_size(bytes: &Bytes) -> Quantity<'static> {
    Quantity { value: bytes.0 as f64, unit: "B" }
}
