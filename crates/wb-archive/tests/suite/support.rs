//! A folder for archives and what they are extracted to, and tar files written byte by byte.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{EntryType, Header};
use wb_archive::contents::{FILE_MODE, PROGRAM_MODE};
use wb_archive::manifest::{ArchiveKind, PackedRun};
use wb_archive::{ArchiveManifest, Contents, UnpackError};
use wb_model::Sha256;

/// A temporary folder with archives, and a folder `box` in which they are extracted.
pub(crate) struct Workshop(tempfile::TempDir);

impl Workshop {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("box")).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Packs contents and returns the archive.
    pub(crate) fn pack(&self, contents: &Contents) -> Vec<u8> {
        let path = self.path("x.tar.gz");
        let run = PackedRun { id: "0".to_owned(), started: "now".to_owned(), plans: vec!["p".to_owned()] };
        wb_archive::pack(contents, ArchiveKind::Run, "1", run, Vec::new(), &path).unwrap();
        let archive = fs::read(&path).unwrap();
        fs::remove_file(path).unwrap();
        archive
    }

    /// Extracts an archive to `box/target`.
    pub(crate) fn unpack(&self, archive: &[u8]) -> Result<ArchiveManifest, UnpackError> {
        wb_archive::unpack::unpack_from(archive, &self.path("box/target"))
    }

    /// The error of an archive that cannot be extracted, after which nothing is left of it.
    #[track_caller]
    pub(crate) fn refuse(&self, archive: &[u8]) -> UnpackError {
        let error = self.unpack(archive).expect_err("the archive is refused");
        assert_eq!(listing(&self.path("box")), BTreeMap::new(), "{error}");
        assert_eq!(listing(self.0.path()).into_keys().collect::<Vec<_>>(), ["box"], "{error}");
        error
    }
}

/// Contents with folders, an executable, an empty file, a long name and a link.
pub(crate) fn sample_contents() -> Contents {
    let mut contents = Contents::default();
    contents.add_generated("run/run.json", b"{}".to_vec(), FILE_MODE).unwrap();
    contents.add_generated("run/tool", b"#!/bin/sh\n".to_vec(), PROGRAM_MODE).unwrap();
    contents.add_generated("run/empty", Vec::new(), 0o600).unwrap();
    let long = format!("run/{}/{}", "case".repeat(45), "artefact".repeat(20));
    contents.add_generated(&long, vec![7; 3000], FILE_MODE).unwrap();
    contents.add_folder("run/folder", 0o750);
    contents
}

/// Everything below a folder: the permissions, and the content or the target.
pub(crate) fn listing(folder: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
        let metadata = fs::symlink_metadata(&path).unwrap();
        let mode = metadata.permissions().mode() & 0o7777;
        if metadata.is_dir() {
            all.insert(name.clone(), (mode, b"folder".to_vec()));
            all.extend(listing(&path).into_iter().map(|(below, content)| (format!("{name}/{below}"), content)));
        } else if metadata.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            all.insert(name, (mode, target.into_os_string().into_encoded_bytes()));
        } else {
            // A modified manifest can take away the permission to read a file.
            all.insert(name, (mode, fs::read(&path).unwrap_or_default()));
        }
    }
    all
}

/// A tar file, written without any of the checks of a library.
#[derive(Default)]
pub(crate) struct RawTar(Vec<u8>);

impl RawTar {
    /// A tar file that begins with a manifest of these members.
    pub(crate) fn with_manifest(members: serde_json::Value) -> Self {
        Self::with_manifest_of(1, members)
    }

    /// The same in another format version.
    pub(crate) fn with_manifest_of(format: u32, members: serde_json::Value) -> Self {
        let manifest = serde_json::json!({
            "format": format, "kind": "run", "version": "1",
            "run": { "id": "0", "started": "now", "plans": [] }, "members": members,
        });
        Self::default().file("manifest.json", manifest.to_string().as_bytes())
    }

    pub(crate) fn file(self, name: &str, content: &[u8]) -> Self {
        self.member(EntryType::Regular, name, "", content)
    }

    /// Appends a member of any type and name.
    pub(crate) fn member(self, kind: EntryType, name: &str, target: &str, content: &[u8]) -> Self {
        self.member_of_size(kind, name, target, content, content.len() as u64)
    }

    /// Appends a member whose header has another size than its content.
    pub(crate) fn member_of_size(
        mut self,
        kind: EntryType,
        name: &str,
        target: &str,
        content: &[u8],
        size: u64,
    ) -> Self {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_mode(0o644);
        let gnu = header.as_gnu_mut().unwrap();
        gnu.name[..name.len()].copy_from_slice(name.as_bytes());
        gnu.linkname[..target.len()].copy_from_slice(target.as_bytes());
        header.set_cksum();
        self.0.extend(header.as_bytes());
        self.0.extend(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    /// The compressed tar file, with the end mark.
    pub(crate) fn archive(mut self) -> Vec<u8> {
        self.0.extend([0; 1024]);
        compress(&self.0)
    }
}

pub(crate) fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The manifest's entry of a file.
pub(crate) fn file(path: &str, content: &[u8]) -> serde_json::Value {
    serde_json::json!({
        "path": path, "type": "file", "size": content.len(), "mode": 0o644, "sha256": Sha256::digest(content),
    })
}
