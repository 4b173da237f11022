//! Errors in preparing an image on a host, as the host reports them.

use serde::{Deserialize, Serialize};
use wb_model::{Bytes, Nanos, Quantity};

/// Error in preparing an image on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case", tag = "failure")]
pub enum ImageFailure {
    /// The catalog has no such image for the machine's architecture.
    #[error("no such image for {architecture}: `{image}`")]
    Architecture {
        /// The image.
        image: String,
        /// The machine's architecture.
        architecture: String,
    },
    /// The host name of a URL cannot be resolved.
    #[error("cannot resolve the host name of {url}")]
    HostUnknown {
        /// The URL.
        url: String,
    },
    /// The server cannot be reached, or closes the connection.
    #[error("cannot fetch {url}: {reason}")]
    Unreachable {
        /// The URL.
        url: String,
        /// The system's error.
        reason: String,
    },
    /// The server responds with an error.
    #[error("cannot fetch {url}: HTTP status {status}")]
    Status {
        /// The URL.
        url: String,
        /// The status.
        status: u16,
    },
    /// The download is too slow, or stopped.
    #[error(
        "cannot fetch {url}: less than {} in {within}; stopped after {}, which are kept",
        format_size(minimum),
        format_size(received)
    )]
    Stalled {
        /// The URL.
        url: String,
        /// The minimum that was expected.
        minimum: Bytes,
        /// The time in which it was expected.
        within: Nanos,
        /// The size received so far.
        received: Bytes,
    },
    /// The download has the wrong hash; it was removed.
    #[error("{url} has {kind} {found}, expected {expected}; the download was removed")]
    Hash {
        /// The URL.
        url: String,
        /// The kind of hash.
        kind: super::checksums::HashKind,
        /// The expected hash.
        expected: String,
        /// The actual hash.
        found: String,
    },
    /// The list of hashes does not have the file.
    #[error("{url} has no {kind} of `{file}`")]
    NotListed {
        /// The URL of the list.
        url: String,
        /// The kind of hash.
        kind: super::checksums::HashKind,
        /// The file.
        file: String,
    },
    /// Not enough free space.
    #[error("not enough space for {item} in {folder}: {} required, {} free", format_size(required), format_size(free))]
    NoSpace {
        /// The item to be stored.
        item: String,
        /// The folder.
        folder: String,
        /// The required space.
        required: Bytes,
        /// The free space.
        free: Bytes,
    },
    /// A program is not installed.
    #[error("no such program: `{tool}`; the package `{package}` contains it")]
    ToolNotFound {
        /// The program.
        tool: String,
        /// Debian's package with it.
        package: String,
    },
    /// A program failed.
    #[error("`{tool}` ended with {ending}: {output}")]
    Tool {
        /// The program.
        tool: String,
        /// How it ended.
        ending: String,
        /// The last lines of its output.
        output: String,
    },
    /// Packages that are not in the archive.
    #[error("the archive has no package {}", .packages.join(", "))]
    NoPackages {
        /// Their names.
        packages: Vec<String>,
    },
    /// The operation requires root.
    #[error("building an image from packages requires root: connect to the host as root, or with sudo")]
    NotRoot,
    /// A path that does not exist, or is not a file.
    #[error("no such file: {path}")]
    Missing {
        /// Its path.
        path: String,
    },
    /// An image in an unsupported format.
    #[error("unsupported format {format} of {path}: expected qcow2 or raw")]
    Format {
        /// Its path.
        path: String,
        /// Its format.
        format: String,
    },
    /// An overlay, whose hash does not cover its backing file.
    #[error("{path} is an overlay of {backing}: merge both into one image with `qemu-img convert -O qcow2`")]
    Overlay {
        /// Its path.
        path: String,
        /// Its backing file.
        backing: String,
    },
    /// Another user can change the store.
    #[error("{folder}: {reason}, so that another user could replace the images in it")]
    UntrustedStore {
        /// The store.
        folder: String,
        /// The level of its path that the other user can change, and why.
        reason: String,
    },
    /// A file that cannot be used.
    #[error("{path}: {why}")]
    File {
        /// Its path.
        path: String,
        /// The system's error.
        why: String,
    },
}

impl ImageFailure {
    /// The failure of an operation on a file.
    pub(super) fn file(path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::File { path: path.display().to_string(), why: error.to_string() }
    }
}

pub(super) fn format_size(bytes: &Bytes) -> Quantity<'static> {
    Quantity { value: bytes.0 as f64, unit: "B" }
}
