//! Errors of packing and extracting.

use std::io;
use std::path::{Path, PathBuf};

use wb_model::Sha256;
use wb_record::RecordError;
use wb_sys::PathError;

use crate::manifest::MAX_MANIFEST;
use crate::peers_file::PeersFileError;

#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error(transparent)]
    Io(#[from] PathError),
    /// The run cannot be read, or a controller is writing to it.
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("{} exists already", path.display())]
    OutputExists { path: PathBuf },
    #[error("invalid archive {}: it would be in the run folder, which is not changed", path.display())]
    OutputInRun { path: PathBuf },
    #[error("cannot pack {}: it is neither a file, a folder nor a link", path.display())]
    UnsupportedFile { path: PathBuf },
    #[error("cannot pack {}: its name is not valid UTF-8", path.display())]
    InvalidName { path: PathBuf },
    #[error("cannot pack the link {}: its target {} leads to nothing that is packed", path.display(), target.display())]
    UnsafeLink { path: PathBuf, target: PathBuf },
    #[error("{} changed while it was packed", path.display())]
    Changed { path: PathBuf },
    #[error("{} contains a declared secret", path.display())]
    Secret { path: PathBuf },
    #[error("the name `{name}` contains a declared secret")]
    SecretInName {
        /// With the secret masked.
        name: String,
    },
    #[error("cannot pack: the manifest would have {size} bytes, expected at most {MAX_MANIFEST}")]
    LargeManifest {
        /// In bytes.
        size: usize,
    },
    #[error("cannot pack: {0}")]
    Unextractable(UnpackError),
    #[error(transparent)]
    PeersFile(#[from] PeersFileError),
    #[error("cannot pack the program {}: no peers file of the run names it", path.display())]
    UnnamedProgram { path: PathBuf },
    #[error("the program {} is not the one that was measured: its SHA-256 is {found}, expected {expected}", path.display())]
    ProgramChanged { path: PathBuf, expected: Sha256, found: Sha256 },
    #[error("invalid path `{name}` for {} in the archive: expected a path below `{folder}/`", path.display())]
    InvalidInputPath { name: String, path: PathBuf, folder: &'static str },
    #[error("cannot pack {}: `{name}` is in the archive already", path.display())]
    Duplicate { name: String, path: PathBuf },
}

impl ArchiveError {
    pub fn help(&self) -> Option<&'static str> {
        Some(match self {
            Self::OutputExists { .. } | Self::OutputInRun { .. } => "choose another file with -o",
            Self::UnsupportedFile { .. } => "remove it",
            Self::InvalidName { .. } => "rename it",
            Self::UnsafeLink { .. } => "replace the link by a copy of its target",
            Self::Changed { .. } => "repeat the command when nothing writes to it",
            Self::Secret { .. } => "archives are handed on: remove the secret from the file",
            Self::SecretInName { .. } => "archives are handed on: rename the file or the target of the link",
            Self::LargeManifest { .. } => "pack fewer files: the manifest lists each",
            Self::PeersFile(PeersFileError::Invalid { .. }) => "restore the peers file that was measured",
            Self::PeersFile(_) => "write the path as an argument of its own in the peers file",
            Self::UnnamedProgram { .. } => "restore the peers file that was measured, or correct the run's inputs.json",
            Self::ProgramChanged { .. } => "restore the program, or measure again with this one",
            Self::InvalidInputPath { .. } | Self::Duplicate { .. } => {
                "give it another path with `as` in inputs.json of the run"
            }
            Self::Io(_) | Self::Record(_) | Self::Unextractable(_) => return None,
        })
    }

    /// For `map_err`: the error of an operation on `path`.
    pub(crate) fn io(operation: &'static str, path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        move |source| PathError::new(operation, path)(source).into()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    #[error(transparent)]
    Io(#[from] PathError),
    #[error("damaged or truncated archive: {source}")]
    Damaged { source: io::Error },
    #[error(
        "not an archive of weighbridge: expected a compressed tar file that begins with {}",
        crate::manifest::MANIFEST
    )]
    NoManifest,
    #[error("invalid manifest: larger than {MAX_MANIFEST} bytes")]
    LargeManifest,
    #[error("invalid manifest: {reason}")]
    InvalidManifest { reason: String },
    #[error("unsupported archive format {version}: this version reads formats up to {supported}")]
    UnsupportedFormat { version: u32, supported: u32 },
    #[error("unsafe path `{}`: expected a relative path without `..`", path.escape_default())]
    UnsafePath { path: String },
    /// A link to something outside of the archive, or in a circle.
    #[error("unsafe link `{}` to `{}`: expected a file or folder of the archive", path.escape_default(), target.escape_default())]
    UnsafeLink { path: String, target: String },
    #[error("unsupported member `{}`: expected only files, folders and symbolic links", path.escape_default())]
    UnsupportedMember { path: String },
    #[error("duplicate member `{}`", path.escape_default())]
    Duplicate { path: String },
    #[error("unexpected member `{}`: the manifest does not list it", path.escape_default())]
    Unlisted { path: String },
    #[error("member `{}` differs from the manifest: {reason}", path.escape_default())]
    Mismatch { path: String, reason: String },
    #[error("missing member `{}`: the archive is incomplete", path.escape_default())]
    Missing { path: String },
    #[error("unexpected data after the end of the archive")]
    TrailingData,
    #[error("cancelled")]
    Cancelled,
    #[error("{} is not empty", path.display())]
    TargetNotEmpty { path: PathBuf },
    #[error("{} is not a folder", path.display())]
    TargetNotAFolder { path: PathBuf },
}

impl UnpackError {
    pub fn help(&self) -> Option<&'static str> {
        Some(match self {
            Self::TargetNotEmpty { .. } | Self::TargetNotAFolder { .. } => "choose a new or empty folder with -C",
            Self::UnsupportedFormat { .. } => "use a newer weighbridge",
            Self::Damaged { .. } | Self::Missing { .. } | Self::TrailingData => {
                "copy the archive again; nothing was extracted"
            }
            Self::NoManifest => "`weighbridge pack` and `weighbridge snapshot` write archives",
            Self::LargeManifest
            | Self::InvalidManifest { .. }
            | Self::UnsafePath { .. }
            | Self::UnsafeLink { .. }
            | Self::UnsupportedMember { .. }
            | Self::Duplicate { .. }
            | Self::Unlisted { .. }
            | Self::Mismatch { .. } => "the archive was modified; nothing was extracted",
            Self::Io(_) | Self::Cancelled => return None,
        })
    }

    pub(crate) fn io(operation: &'static str, path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        move |source| PathError::new(operation, path)(source).into()
    }
}
