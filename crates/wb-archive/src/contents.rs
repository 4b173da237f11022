//! The contents of an archive, collected before they are packed.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256 as Hasher};
use wb_model::Sha256;
use wb_model::secrets::{contains_declared, has_declared_secrets, mask_declared, reader_contains_declared};

use crate::error::ArchiveError;
use crate::links::{EntryKind, resolve_link};
use crate::manifest::{MANIFEST, Member, MemberKind};

pub const FILE_MODE: u32 = 0o644;

/// Permissions of generated programs and folders.
pub const PROGRAM_MODE: u32 = 0o755;

/// Folders of sources that are not packed: what is built, installed or recorded by version control.
pub const SKIPPED_IN_SOURCES: [&str; 3] = ["target", "node_modules", ".git"];

/// The contents of an archive, by path.
#[derive(Debug, Default)]
pub struct Contents {
    sources: BTreeMap<String, MemberSource>,
}

#[derive(Debug)]
pub(crate) enum MemberSource {
    Folder { mode: u32 },
    File { path: PathBuf, mode: u32 },
    Generated { content: Vec<u8>, mode: u32 },
    Link { path: PathBuf, target: String },
}

impl MemberSource {
    fn entry(&self) -> EntryKind<'_> {
        match self {
            Self::Folder { .. } => EntryKind::Folder,
            Self::File { .. } | Self::Generated { .. } => EntryKind::File,
            Self::Link { target, .. } => EntryKind::Link(target),
        }
    }
}

impl Contents {
    /// Adds a folder, unless present. Its owner gets access, as when it is extracted, so that packing the extracted
    /// folder gives the same archive.
    pub fn add_folder(&mut self, name: &str, mode: u32) {
        self.add_parents(name);
        let mode = mode | 0o700;
        self.sources.entry(name.to_owned()).or_insert(MemberSource::Folder { mode });
    }

    pub fn add_generated(&mut self, name: &str, content: Vec<u8>, mode: u32) -> Result<(), ArchiveError> {
        self.insert(name, MemberSource::Generated { content, mode }, Path::new(name))
    }

    /// Adds a file with the permissions `mode`, or else its own.
    pub fn add_file(&mut self, name: &str, path: &Path, mode: Option<u32>) -> Result<(), ArchiveError> {
        let metadata = fs::metadata(path).map_err(ArchiveError::io("read", path))?;
        let mode = mode.unwrap_or_else(|| permissions(&metadata));
        self.insert(name, MemberSource::File { path: path.to_owned(), mode }, path)
    }

    /// Adds a file, or a folder with everything in it except folders of the names in `skipped`.
    pub fn add_tree(&mut self, name: &str, path: &Path, skipped: &[&str]) -> Result<(), ArchiveError> {
        let metadata = fs::metadata(path).map_err(ArchiveError::io("read", path))?;
        if !metadata.is_dir() {
            return self.add_entry(name, path, &metadata);
        }
        self.add_folder(name, permissions(&metadata));
        for entry in fs::read_dir(path).map_err(ArchiveError::io("read", path))? {
            let entry = entry.map_err(ArchiveError::io("read", path))?;
            let path = entry.path();
            let file_name = entry.file_name();
            let Some(file_name) = file_name.to_str() else { return Err(ArchiveError::InvalidName { path }) };
            let metadata = entry.metadata().map_err(ArchiveError::io("read", &path))?;
            let name = format!("{name}/{file_name}");
            match metadata.is_dir() {
                true if skipped.contains(&file_name) => {}
                true => self.add_tree(&name, &path, skipped)?,
                false => self.add_entry(&name, &path, &metadata)?,
            }
        }
        Ok(())
    }

    fn add_entry(&mut self, name: &str, path: &Path, metadata: &Metadata) -> Result<(), ArchiveError> {
        let source = if metadata.is_symlink() {
            let target = fs::read_link(path).map_err(ArchiveError::io("read", path))?;
            let target = target.into_os_string().into_string();
            let target = target.map_err(|_| ArchiveError::InvalidName { path: path.to_owned() })?;
            MemberSource::Link { path: path.to_owned(), target }
        } else if metadata.is_file() {
            MemberSource::File { path: path.to_owned(), mode: permissions(metadata) }
        } else {
            return Err(ArchiveError::UnsupportedFile { path: path.to_owned() });
        };
        self.insert(name, source, path)
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.sources.remove(name);
    }

    fn insert(&mut self, name: &str, source: MemberSource, path: &Path) -> Result<(), ArchiveError> {
        let is_in_file = name.match_indices('/').any(|(position, _)| {
            self.sources.get(&name[..position]).is_some_and(|parent| !matches!(parent, MemberSource::Folder { .. }))
        });
        if is_in_file || self.contains(name) || name == MANIFEST {
            return Err(ArchiveError::Duplicate { name: name.to_owned(), path: path.to_owned() });
        }
        self.add_parents(name);
        self.sources.insert(name.to_owned(), source);
        Ok(())
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.sources.contains_key(name)
    }

    fn add_parents(&mut self, name: &str) {
        for (position, _) in name.match_indices('/') {
            self.sources.entry(name[..position].to_owned()).or_insert(MemberSource::Folder { mode: PROGRAM_MODE });
        }
    }

    pub(crate) fn sources(&self) -> impl Iterator<Item = (&String, &MemberSource)> {
        self.sources.iter()
    }

    /// Reads everything and describes it for the manifest. Fails if something contains a declared secret, or is a link
    /// to something that is not packed.
    pub(crate) fn describe(&self) -> Result<Vec<Member>, ArchiveError> {
        let describe = |(name, source): (&String, &MemberSource)| {
            refuse_secret_name(name)?;
            let kind = self.describe_source(name, source)?;
            Ok(Member { path: name.clone(), kind })
        };
        self.sources.iter().map(describe).collect()
    }

    fn describe_source(&self, name: &str, source: &MemberSource) -> Result<MemberKind, ArchiveError> {
        Ok(match source {
            MemberSource::Folder { mode } => MemberKind::Folder { mode: *mode },
            MemberSource::Link { path, target } => {
                refuse_secret_name(target)?;
                let entry = |name: &str| self.sources.get(name).map(MemberSource::entry);
                if resolve_link(name, target, entry).is_none() {
                    return Err(ArchiveError::UnsafeLink { path: path.clone(), target: target.into() });
                }
                MemberKind::Link { target: target.clone() }
            }
            MemberSource::Generated { content, mode } => {
                refuse_secret(Path::new(name), &content[..])?;
                MemberKind::File { size: content.len() as u64, mode: *mode, sha256: Sha256::digest(content) }
            }
            MemberSource::File { path, mode } => {
                let open = || File::open(path).map_err(ArchiveError::io("read", path));
                if has_declared_secrets() {
                    refuse_secret(path, open()?)?;
                }
                let mut reader = HashingReader::new(open()?);
                io::copy(&mut reader, &mut io::sink()).map_err(ArchiveError::io("read", path))?;
                let (size, sha256) = reader.finish();
                MemberKind::File { size, mode: *mode, sha256 }
            }
        })
    }
}

fn refuse_secret(path: &Path, content: impl Read) -> Result<(), ArchiveError> {
    if reader_contains_declared(content).map_err(ArchiveError::io("read", path))? {
        Err(ArchiveError::Secret { path: path.to_owned() })
    } else {
        Ok(())
    }
}

fn refuse_secret_name(name: &str) -> Result<(), ArchiveError> {
    if contains_declared(name) {
        Err(ArchiveError::SecretInName { name: mask_declared(name).into_owned() })
    } else {
        Ok(())
    }
}

/// The permissions of a file, without special bits.
fn permissions(metadata: &Metadata) -> u32 {
    metadata.permissions().mode() & 0o777
}

/// A reader that counts and hashes what it yields.
pub(crate) struct HashingReader<R> {
    reader: R,
    hasher: Hasher,
    length: u64,
}

impl<R: Read> HashingReader<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader, hasher: Hasher::new(), length: 0 }
    }

    pub(crate) fn finish(self) -> (u64, Sha256) {
        self.into_parts().1
    }

    pub(crate) fn into_parts(self) -> (R, (u64, Sha256)) {
        (self.reader, (self.length, Sha256::from_hasher(self.hasher)))
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(buffer)?;
        self.hasher.update(&buffer[..length]);
        self.length += length as u64;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_packed_without_what_is_built_from_them() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["src/main.rs", "target/release/x", "js/node_modules/y/z.js", ".git/HEAD", "Cargo.lock"] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        let mut contents = Contents::default();
        contents.add_tree("sources/x", folder.path(), &SKIPPED_IN_SOURCES).unwrap();
        let names: Vec<&str> = contents.sources.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            ["sources", "sources/x", "sources/x/Cargo.lock", "sources/x/js", "sources/x/src", "sources/x/src/main.rs"]
        );
    }

    #[test]
    fn two_members_of_one_path_are_refused() {
        let mut contents = Contents::default();
        contents.add_generated("a/b", Vec::new(), FILE_MODE).unwrap();
        for name in ["a/b", "a", "a/b/c", MANIFEST] {
            let error = contents.add_generated(name, Vec::new(), FILE_MODE).unwrap_err();
            assert!(matches!(error, ArchiveError::Duplicate { .. }), "{name}: {error}");
        }
    }

    #[test]
    fn secrets_in_names_and_targets_are_refused() {
        wb_model::secrets::declare("contents-secret").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let refuse = |contents: &Contents| {
            let error = contents.describe().unwrap_err();
            assert!(matches!(error, ArchiveError::SecretInName { .. }), "{error}");
            error.to_string()
        };
        let mut contents = Contents::default();
        contents.add_generated("run/of-contents-secret", Vec::new(), FILE_MODE).unwrap();
        assert_eq!(refuse(&contents), "the name `run/of-***` contains a declared secret");
        std::os::unix::fs::symlink("../contents-secret", folder.path().join("l")).unwrap();
        let mut contents = Contents::default();
        contents.add_tree("run", folder.path(), &[]).unwrap();
        assert_eq!(refuse(&contents), "the name `../***` contains a declared secret");
    }

    #[test]
    fn links_within_are_packed_and_others_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "x").unwrap();
        std::os::unix::fs::symlink("a", folder.path().join("l")).unwrap();
        let describe = || {
            let mut contents = Contents::default();
            contents.add_tree("run", folder.path(), &[]).unwrap();
            contents.describe()
        };
        assert_eq!(describe().unwrap()[2].kind, MemberKind::Link { target: "a".to_owned() });
        std::os::unix::fs::symlink("./l", folder.path().join("chain")).unwrap();
        assert_eq!(describe().unwrap()[2].kind, MemberKind::Link { target: "./l".to_owned() });
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("m")).unwrap();
        assert!(matches!(describe().unwrap_err(), ArchiveError::UnsafeLink { .. }));
    }

    #[test]
    fn special_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let socket = std::os::unix::net::UnixListener::bind(folder.path().join("s")).unwrap();
        let error = Contents::default().add_tree("run", folder.path(), &[]).unwrap_err();
        assert!(matches!(error, ArchiveError::UnsupportedFile { .. }), "{error}");
        drop(socket);
    }
}
