//! The manifest of an archive, its first member: what it contains, with hashes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Sha256;
use wb_record::{RecordError, RunFolder};

use crate::error::UnpackError;
use crate::links::{EntryKind, resolve_link};

/// The format version of archives that this program writes, and the newest that it reads.
pub const FORMAT: u32 = 1;

/// The path of the manifest in an archive, and in the folder to which it is extracted.
pub const MANIFEST: &str = "manifest.json";

/// Maximum length of a manifest in bytes.
pub const MAX_MANIFEST: u64 = 64 << 20;

/// Maximum length of a path in bytes, as on Linux.
pub(crate) const MAX_PATH: usize = 4096;

/// Maximum length of a component of a path in bytes, as on Linux.
const MAX_NAME: usize = 255;

/// The manifest of an archive: `manifest.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArchiveManifest {
    /// The format version of the archive.
    pub format: u32,
    /// What the archive is for.
    pub kind: ArchiveKind,
    /// The version of the program that wrote the archive.
    pub version: String,
    /// The run.
    pub run: PackedRun,
    /// The files outside of the run folder that the run was measured with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<PackedInput>,
    /// Everything in the archive except this manifest, sorted by path.
    pub members: Vec<Member>,
}

/// What an archive is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ArchiveKind {
    /// A run alone, to be read.
    Run,
    /// A run with everything that is needed to measure it again.
    Snapshot,
}

/// A run in an archive, in the folder `run`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PackedRun {
    /// The beginning of the SHA-256 of the first invocation of the run file, by which copies and later states of one
    /// run are recognised.
    pub id: String,
    /// When the run was started, for people: RFC 3339 in UTC.
    pub started: String,
    /// The plan of each invocation: its name, or the tests as given on the command line.
    pub plans: Vec<String>,
}

/// A file or folder from outside of the run folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PackedInput {
    /// Its path in the archive.
    pub name: String,
    /// Its role.
    pub role: InputRole,
}

/// What an input is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InputRole {
    /// Sources of a program.
    Source,
    /// A file that pins the versions of dependencies.
    LockFile,
    /// A program that was measured.
    Program,
}

/// A member of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Member {
    /// Its path, relative and with `/` between its components.
    pub path: String,
    /// What it is.
    #[serde(flatten)]
    pub kind: MemberKind,
}

/// What a member is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum MemberKind {
    /// A file.
    File {
        /// Its size in bytes.
        size: u64,
        /// Its permissions.
        mode: u32,
        /// The hash of its content.
        sha256: Sha256,
    },
    /// A folder.
    Folder {
        /// Its permissions.
        mode: u32,
    },
    /// A symbolic link to a file or a folder of the archive.
    Link {
        /// Its target, relative to the link's folder.
        target: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveSummary {
    pub files: usize,
    pub bytes: u64,
}

impl PackedRun {
    pub fn new(run: &RunFolder) -> Result<Self, RecordError> {
        let run_file = run.run_file()?;
        let first = run_file.invocations.first();
        // Invocations are never changed, so this is the same for every copy.
        let text = first.map_or_else(String::new, |invocation| {
            serde_json::to_string(invocation).expect("plain data has a JSON form")
        });
        Ok(Self {
            id: Sha256::digest(text.as_bytes()).as_str()[..16].to_owned(),
            started: first.map(|invocation| invocation.started.clone()).unwrap_or_default(),
            plans: run_file.invocations.iter().map(|invocation| invocation.plan.clone()).collect(),
        })
    }
}

impl ArchiveManifest {
    pub fn summary(&self) -> ArchiveSummary {
        let sizes = self.members.iter().filter_map(|member| match member.kind {
            MemberKind::File { size, .. } => Some(size),
            MemberKind::Folder { .. } | MemberKind::Link { .. } => None,
        });
        sizes.fold(ArchiveSummary { files: 0, bytes: 0 }, |summary, size| ArchiveSummary {
            files: summary.files + 1,
            bytes: summary.bytes.saturating_add(size),
        })
    }

    /// Parses a manifest and checks that everything in it can be extracted below one folder.
    pub fn parse(text: &[u8]) -> Result<Self, UnpackError> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let invalid = |error: serde_json::Error| UnpackError::InvalidManifest { reason: error.to_string() };
        // First of all the version: a newer manifest may have any other content.
        let Version { format } = serde_json::from_slice(text).map_err(invalid)?;
        if format > FORMAT {
            return Err(UnpackError::UnsupportedFormat { version: format, supported: FORMAT });
        }
        let manifest: Self = serde_json::from_slice(text).map_err(invalid)?;
        manifest.check()?;
        Ok(manifest)
    }

    pub(crate) fn check(&self) -> Result<(), UnpackError> {
        let mut members: BTreeMap<&str, &MemberKind> = BTreeMap::new();
        for Member { path, kind } in &self.members {
            check_path(path)?;
            if path == MANIFEST || members.insert(path, kind).is_some() {
                return Err(UnpackError::Duplicate { path: path.clone() });
            }
        }
        for (path, kind) in &members {
            if let Some((parent, _)) = path.rsplit_once('/')
                && !matches!(members.get(parent), Some(MemberKind::Folder { .. }))
            {
                let reason = format!("`{path}` is in `{parent}`, which is not listed as a folder");
                return Err(UnpackError::InvalidManifest { reason });
            }
            match kind {
                MemberKind::File { mode, .. } | MemberKind::Folder { mode } if *mode > 0o777 => {
                    let reason = format!("invalid permissions {mode:o} of `{path}`");
                    return Err(UnpackError::InvalidManifest { reason });
                }
                MemberKind::Link { target } => {
                    let entry = |path: &str| members.get(path).map(|kind| kind.entry());
                    if resolve_link(path, target, entry).is_none() {
                        return Err(UnpackError::UnsafeLink { path: (*path).to_owned(), target: target.clone() });
                    }
                }
                MemberKind::File { .. } | MemberKind::Folder { .. } => {}
            }
        }
        Ok(())
    }
}

impl MemberKind {
    fn entry(&self) -> EntryKind<'_> {
        match self {
            Self::File { .. } => EntryKind::File,
            Self::Folder { .. } => EntryKind::Folder,
            Self::Link { target } => EntryKind::Link(target),
        }
    }
}

/// Refuses a path that does not lead into the folder that it is relative to.
pub(crate) fn check_path(path: &str) -> Result<(), UnpackError> {
    let is_name = |name: &str| !matches!(name, "" | "." | "..") && name.len() <= MAX_NAME && !name.contains('\0');
    if path.len() <= MAX_PATH && path.split('/').all(is_name) {
        return Ok(());
    }
    Err(UnpackError::UnsafePath { path: path.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(members: serde_json::Value) -> Result<ArchiveManifest, UnpackError> {
        let run = serde_json::json!({ "id": "", "started": "", "plans": [] });
        let manifest =
            serde_json::json!({ "format": 1, "kind": "run", "version": "1", "run": run, "members": members });
        ArchiveManifest::parse(manifest.to_string().as_bytes())
    }

    fn folder(path: &str) -> serde_json::Value {
        serde_json::json!({ "path": path, "type": "folder", "mode": 0o755 })
    }

    fn link(path: &str, target: &str) -> serde_json::Value {
        serde_json::json!({ "path": path, "type": "link", "target": target })
    }

    #[test]
    fn a_newer_format_is_refused_whatever_else_it_contains() {
        let error = ArchiveManifest::parse(br#"{"format": 2, "members": {"a": 1}}"#).unwrap_err();
        assert_eq!(error.to_string(), "unsupported archive format 2: this version reads formats up to 1");
    }

    #[test]
    fn paths_that_lead_elsewhere_are_refused() {
        let long = "x".repeat(256);
        for path in ["/etc/passwd", "..", "a/../b", "", "a//b", "./a", "a/", "a\0b", &long] {
            assert!(
                matches!(parse(serde_json::json!([folder(path)])), Err(UnpackError::UnsafePath { .. })),
                "{path:?}"
            );
        }
        assert!(parse(serde_json::json!([folder("a..b"), folder("a..b/...")])).is_ok());
    }

    #[test]
    fn members_are_unique_and_in_listed_folders() {
        let twice = parse(serde_json::json!([folder("a"), link("a", "a")]));
        assert!(matches!(twice, Err(UnpackError::Duplicate { .. })));
        assert!(matches!(parse(serde_json::json!([folder(MANIFEST)])), Err(UnpackError::Duplicate { .. })));
        let orphan = parse(serde_json::json!([folder("a/b")]));
        assert!(matches!(orphan, Err(UnpackError::InvalidManifest { .. })));
        let below_link = parse(serde_json::json!([folder("a"), link("b", "a"), folder("b/c")]));
        assert!(matches!(below_link, Err(UnpackError::InvalidManifest { .. })));
        let setuid = serde_json::json!([{ "path": "a", "type": "folder", "mode": 0o4755 }]);
        assert!(matches!(parse(setuid), Err(UnpackError::InvalidManifest { .. })));
    }

    #[test]
    fn links_lead_to_listed_files_and_folders() {
        let check =
            |target: &str| parse(serde_json::json!([folder("a"), folder("a/b"), link("a/l", target), link("m", "a")]));
        for target in ["b", "../a", "../a/b", "./b", "../m", "../m/b", "b/../b", "b/"] {
            assert!(check(target).is_ok(), "{target}");
        }
        for target in ["/etc", "../..", "..", "nosuch", "l", "../m/l", "../a/l", ""] {
            assert!(matches!(check(target), Err(UnpackError::UnsafeLink { .. })), "{target}");
        }
    }
}
