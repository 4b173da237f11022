//! Archives of runs: a compressed tar file that begins with a manifest of everything in it.
//!
//! Packing never changes a run, and equal contents give equal archives. Extracting trusts nothing in an archive: it
//! writes only what the manifest lists, below the target folder, and the folder appears when everything is checked. A
//! snapshot is an archive with the program, its inputs and a script that measures again. This crate runs no programs and
//! prints nothing.
//!
//! Start with [`manifest`] (the format), then [`fn@pack`] and [`fn@unpack`]. [`contents`] collects what is packed,
//! [`mod@snapshot`] what a snapshot has in addition, with the script of [`rerun`].

#![forbid(unsafe_code)]

pub mod contents;
pub mod error;
mod links;
pub mod manifest;
pub mod pack;
pub mod peers_file;
pub mod rerun;
pub mod snapshot;
pub mod unpack;

pub use contents::Contents;
pub use error::{ArchiveError, UnpackError};
pub use manifest::{ArchiveManifest, ArchiveSummary};
pub use pack::{pack, pack_run};
pub use peers_file::replace_value;
pub use snapshot::{SnapshotRequest, snapshot};
pub use unpack::unpack;
