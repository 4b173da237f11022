//! Extracting: checks everything in an archive against its manifest, and writes nothing outside of the target folder.
//!
//! Members are written to a temporary folder, links last, so that nothing is written through one. The target has the
//! content when all of it is there and has the recorded hashes. The temporary folder is locked while it is written: one
//! that nobody has locked was left by a killed process, and is removed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufRead, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::bufread::GzDecoder;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use tar::{Archive, Entry, EntryType};
use wb_sys::{FileLock, LockError};

use crate::contents::{FILE_MODE, HashingReader};
use crate::error::UnpackError;
use crate::manifest::{ArchiveManifest, MANIFEST, MAX_MANIFEST, MAX_PATH, MemberKind};
use crate::pack::parent;

/// Maximum length of the zeros after the last member: other programs fill a tar file up to a multiple of 10 KiB.
const MAX_PADDING: u64 = 1 << 20;

/// Maximum number of characters of a target's name in that of its temporary folder.
const MAX_BEGINNING: usize = 40;

/// How often a reader that waits for its file checks whether it is cancelled.
const POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Extracts the archive `file`, opened at `path`, to the folder `target`, which must not exist or be empty, and returns
/// its manifest. Fails if the archive has members that its manifest does not list, or if `is_cancelled` becomes true
/// before everything is read. If it fails, the target is unchanged, except that what killed processes have left of
/// their attempts is removed.
pub fn unpack(
    path: &Path,
    file: File,
    target: &Path,
    is_cancelled: &AtomicBool,
) -> Result<ArchiveManifest, UnpackError> {
    let mut reader = io::BufReader::with_capacity(1 << 16, CancellableFile { file, is_cancelled });
    // Later, the beginning of a file that cannot be read would look like one of another format.
    let begun = reader.fill_buf().map(drop).map_err(UnpackError::io("read", path));
    let unpacked = begun.and_then(|()| unpack_from(reader, target));
    match unpacked {
        Err(_) if is_cancelled.load(Ordering::Relaxed) => Err(UnpackError::Cancelled),
        unpacked => unpacked,
    }
}

/// A file whose reads fail once it is cancelled. It may be a pipe that its writer leaves silent.
struct CancellableFile<'a> {
    file: File,
    is_cancelled: &'a AtomicBool,
}

impl Read for CancellableFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.is_cancelled.load(Ordering::Relaxed) {
            match poll(&mut [PollFd::new(&self.file, PollFlags::IN)], Some(&POLL)) {
                // A signal, which may be about to cancel it.
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return self.file.read(buffer),
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::other("cancelled"))
    }
}

/// As [`unpack`], from a reader.
pub fn unpack_from(reader: impl BufRead, target: &Path) -> Result<ArchiveManifest, UnpackError> {
    let target = Target::check(target)?;
    let mut archive = Archive::new(GzDecoder::new(reader));
    // Raw entries: what other programs add to the format (sparse files, extended headers) is refused, and a long name is
    // read up to a limit.
    let mut entries = archive.entries().map_err(damaged)?.raw(true);
    let (manifest, text) = read_manifest(entries.next())?;
    let staging = Staging::create(&target)?;
    let mut extraction = Extraction::new(&manifest, &staging.path)?;
    while let Some(member) = next_member(&mut entries)? {
        extraction.extract(member)?;
    }
    // Links come last and lead to listed files or folders, so nothing is written through one.
    extraction.finish(&text)?;
    check_end(archive.into_inner())?;
    staging.persist(&target)?;
    Ok(manifest)
}

fn damaged(source: io::Error) -> UnpackError {
    UnpackError::Damaged { source }
}

fn read_manifest<R: Read>(first: Option<io::Result<Entry<'_, R>>>) -> Result<(ArchiveManifest, Vec<u8>), UnpackError> {
    let entry = match first {
        Some(Ok(entry)) => entry,
        Some(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(damaged(error)),
        Some(Err(_)) | None => return Err(UnpackError::NoManifest),
    };
    if entry.header().entry_type() != EntryType::Regular || *entry.path_bytes() != *MANIFEST.as_bytes() {
        return Err(UnpackError::NoManifest);
    }
    if entry.size() > MAX_MANIFEST {
        return Err(UnpackError::LargeManifest);
    }
    let size = entry.size();
    let mut text = Vec::new();
    entry.take(MAX_MANIFEST).read_to_end(&mut text).map_err(damaged)?;
    if text.len() as u64 != size {
        return Err(damaged(io::ErrorKind::UnexpectedEof.into()));
    }
    Ok((ArchiveManifest::parse(&text)?, text))
}

/// A member as it is in the tar file, with its long name and target.
struct TarMember<'a, R: Read> {
    path: String,
    target: String,
    entry: Entry<'a, R>,
}

/// Reads the next member; `None` at the end. Long names and targets are members of their own before it.
fn next_member<'a, R: Read>(
    entries: &mut impl Iterator<Item = io::Result<Entry<'a, R>>>,
) -> Result<Option<TarMember<'a, R>>, UnpackError> {
    let (mut long_path, mut long_target) = (None, None);
    while let Some(entry) = entries.next().transpose().map_err(damaged)? {
        let long = match entry.header().entry_type() {
            EntryType::GNULongName => &mut long_path,
            EntryType::GNULongLink => &mut long_target,
            _ => {
                let path = match long_path {
                    Some(path) => path,
                    None => text(&entry.path_bytes())?,
                };
                let target = match long_target {
                    Some(target) => target,
                    None => entry.link_name_bytes().map_or_else(|| Ok(String::new()), |target| text(&target))?,
                };
                let path = path.strip_suffix('/').map_or(path.clone(), str::to_owned);
                return Ok(Some(TarMember { path, target, entry }));
            }
        };
        let (mut bytes, size) = (Vec::new(), entry.size());
        entry.take(MAX_PATH as u64 + 2).read_to_end(&mut bytes).map_err(damaged)?;
        if bytes.len() as u64 != size || long.is_some() {
            return Err(damaged(io::Error::new(io::ErrorKind::InvalidData, "invalid long name")));
        }
        *long = Some(text(bytes.strip_suffix(&[0]).unwrap_or(&bytes))?);
    }
    Ok(None)
}

/// A name that is UTF-8, as all names of our archives.
fn text(bytes: &[u8]) -> Result<String, UnpackError> {
    let unsafe_path = |_| UnpackError::UnsafePath { path: String::from_utf8_lossy(bytes).into_owned() };
    String::from_utf8(bytes.to_vec()).map_err(unsafe_path)
}

struct Extraction<'a> {
    folder: &'a Path,
    members: BTreeMap<&'a str, &'a MemberKind>,
    extracted: BTreeSet<&'a str>,
}

impl<'a> Extraction<'a> {
    /// Creates the folders of a manifest, whose paths have been checked.
    fn new(manifest: &'a ArchiveManifest, folder: &'a Path) -> Result<Self, UnpackError> {
        let members: BTreeMap<_, _> =
            manifest.members.iter().map(|member| (member.path.as_str(), &member.kind)).collect();
        // A folder is sorted before what it contains.
        for (path, kind) in &members {
            if let MemberKind::Folder { .. } = kind {
                let path = folder.join(path);
                fs::create_dir(&path).map_err(UnpackError::io("create", &path))?;
            }
        }
        Ok(Self { folder, members, extracted: BTreeSet::new() })
    }

    fn extract<R: Read>(&mut self, member: TarMember<'_, R>) -> Result<(), UnpackError> {
        let TarMember { path, target, entry } = member;
        crate::manifest::check_path(&path)?;
        let Some((&name, &kind)) = self.members.get_key_value(path.as_str()) else {
            return Err(if path == MANIFEST {
                UnpackError::Duplicate { path }
            } else {
                UnpackError::Unlisted { path }
            });
        };
        if !self.extracted.insert(name) {
            return Err(UnpackError::Duplicate { path });
        }
        let mismatch = |reason: String| UnpackError::Mismatch { path: path.clone(), reason };
        match (entry.header().entry_type(), kind) {
            (EntryType::Regular, MemberKind::File { size, sha256, .. }) => {
                if entry.size() != *size {
                    return Err(mismatch(format!("{} bytes, expected {size}", entry.size())));
                }
                let (written, hash) = write_file(&self.folder.join(name), entry.take(*size))?;
                if written != *size {
                    return Err(damaged(io::ErrorKind::UnexpectedEof.into()));
                }
                if hash != *sha256 {
                    return Err(mismatch(format!("SHA-256 {hash}, expected {sha256}")));
                }
            }
            (EntryType::Directory, MemberKind::Folder { .. }) if entry.size() == 0 => {}
            (EntryType::Symlink, MemberKind::Link { target: expected }) if entry.size() == 0 => {
                if target != *expected {
                    return Err(mismatch(format!("target `{}`, expected `{expected}`", target.escape_default())));
                }
            }
            (EntryType::Regular | EntryType::Directory | EntryType::Symlink, _) => {
                return Err(mismatch("another type or size".to_owned()));
            }
            _ => return Err(UnpackError::UnsupportedMember { path }),
        }
        Ok(())
    }

    /// Checks that nothing is missing; then writes the manifest, the links and the permissions.
    fn finish(self, manifest: &[u8]) -> Result<(), UnpackError> {
        if let Some(path) = self.members.keys().find(|path| !self.extracted.contains(*path)) {
            return Err(UnpackError::Missing { path: (*path).to_owned() });
        }
        let path = self.folder.join(MANIFEST);
        write_file(&path, manifest)?;
        set_mode(&path, FILE_MODE)?;
        for (name, kind) in &self.members {
            let path = self.folder.join(name);
            match kind {
                MemberKind::Link { target } => symlink(target, &path).map_err(UnpackError::io("create", &path))?,
                MemberKind::File { mode, .. } => set_mode(&path, *mode)?,
                MemberKind::Folder { .. } => {}
            }
        }
        // Last, because nothing can be created in a folder without write permission. The owner keeps access.
        for (name, kind) in self.members.iter().rev() {
            if let MemberKind::Folder { mode } = kind {
                set_mode(&self.folder.join(name), mode | 0o700)?;
            }
        }
        Ok(())
    }
}

fn write_file(path: &Path, content: impl Read) -> Result<(u64, wb_model::Sha256), UnpackError> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = opened.map_err(UnpackError::io("create", path))?;
    let mut reader = HashingReader::new(SourceReader { reader: content, error: None });
    let copied = io::copy(&mut reader, &mut file);
    let (SourceReader { error, .. }, written) = reader.into_parts();
    match (error, copied) {
        // The archive failed, not the file that is written.
        (Some(error), _) => Err(damaged(error)),
        (None, Err(error)) => Err(UnpackError::io("write", path)(error)),
        (None, Ok(_)) => Ok(written),
    }
}

/// A reader that remembers its error, to tell errors of reading and writing apart.
struct SourceReader<R> {
    reader: R,
    error: Option<io::Error>,
}

impl<R: Read> Read for SourceReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer).map_err(|error| {
            let kind = error.kind();
            if kind != io::ErrorKind::Interrupted {
                self.error = Some(error);
            }
            kind.into()
        })
    }
}

fn set_mode(path: &Path, mode: u32) -> Result<(), UnpackError> {
    fs::set_permissions(path, Permissions::from_mode(mode)).map_err(UnpackError::io("write", path))
}

/// Requires the end of the compressed data, whose checksum is verified there, after nothing but zeros.
fn check_end<R: BufRead>(mut decoder: GzDecoder<R>) -> Result<(), UnpackError> {
    let mut padding = Vec::new();
    (&mut decoder).take(MAX_PADDING + 1).read_to_end(&mut padding).map_err(damaged)?;
    let has_content = padding.len() as u64 > MAX_PADDING || padding.iter().any(|byte| *byte != 0);
    if has_content || !decoder.into_inner().fill_buf().map_err(damaged)?.is_empty() {
        return Err(UnpackError::TrailingData);
    }
    Ok(())
}

struct Target {
    path: PathBuf,
    /// Whether it exists, and is empty.
    exists: bool,
}

impl Target {
    /// Checks the folder, without what killed processes have left of their attempts: that is removed.
    fn check(path: &Path) -> Result<Self, UnpackError> {
        let path = path.to_owned();
        match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A link to nowhere cannot be replaced.
                if fs::symlink_metadata(&path).is_ok() {
                    return Err(UnpackError::TargetNotAFolder { path });
                }
                Staging::remove_abandoned(parent(&path), &path);
                return Ok(Self { path, exists: false });
            }
            Err(error) => return Err(UnpackError::io("read", &path)(error)),
            Ok(metadata) if !metadata.is_dir() => return Err(UnpackError::TargetNotAFolder { path }),
            Ok(_) => Staging::remove_abandoned(&path, &path),
        }
        match fs::read_dir(&path).map_err(UnpackError::io("read", &path))?.next() {
            None => Ok(Self { path, exists: true }),
            Some(_) => Err(UnpackError::TargetNotEmpty { path }),
        }
    }
}

/// The folder in which an archive is extracted before it is moved to the target; removed on drop.
struct Staging {
    path: PathBuf,
    /// `None` where the file system has no locks of folders, such as NFS.
    _lock: Option<FileLock>,
}

impl Staging {
    /// Creates the folder: in the target if that exists, which may be the root of a filesystem, otherwise beside it.
    fn create(target: &Target) -> Result<Self, UnpackError> {
        let folder = if target.exists { &target.path } else { parent(&target.path) };
        let path = folder.join(format!("{}{}{STAGING_END}", Self::beginning(&target.path), std::process::id()));
        let create = || fs::create_dir(&path).and_then(|()| open_folder(&path));
        // Another process may take it for one that was left, and remove it before it is locked.
        let lock = match FileLock::acquire(&path, create, || ()) {
            Ok(lock) => Some(lock),
            Err(LockError::Open(error)) => return Err(UnpackError::io("write", &target.path)(error)),
            Err(LockError::Held(_) | LockError::Lock(_)) => None,
        };
        Ok(Self { path, _lock: lock })
    }

    /// Removes the temporary folders of a target in `folder` whose processes were killed. What cannot be removed stays.
    fn remove_abandoned(folder: &Path, target: &Path) {
        let beginning = Self::beginning(target);
        let is_staging = |entry: &fs::DirEntry| {
            let name = entry.file_name();
            let process = name.to_str().and_then(|name| name.strip_prefix(&beginning)?.strip_suffix(STAGING_END));
            process.is_some_and(|process| process.parse::<u32>().is_ok())
        };
        for entry in fs::read_dir(folder).into_iter().flatten().flatten().filter(is_staging) {
            let path = entry.path();
            if let Ok(_lock) = FileLock::try_acquire(&path, || open_folder(&path)) {
                let _ = fs::remove_dir_all(&path);
            }
        }
    }

    /// The beginning of the names of a target's temporary folders; cut, since a target's name may be of maximum length.
    fn beginning(target: &Path) -> String {
        let name = target.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let beginning: String = name.chars().take(MAX_BEGINNING).collect();
        format!(".{beginning}.")
    }

    fn persist(self, target: &Target) -> Result<(), UnpackError> {
        let write = UnpackError::io("write", &target.path);
        let moved = File::open(&self.path).and_then(|folder| {
            // So that the folder does not have its name before its content after a power failure.
            rustix::fs::syncfs(folder)?;
            if target.exists { move_content(&self.path, &target.path) } else { fs::rename(&self.path, &target.path) }
        });
        moved.map_err(write)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // It does not exist any more if it was renamed; another failure has been reported.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// How the names of temporary folders end, after the number of the process.
const STAGING_END: &str = ".new";

/// Opens a folder, which may not be a link to one.
fn open_folder(path: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

/// Moves everything in a folder to another one; if that fails, moves the part back that was moved.
fn move_content(from: &Path, to: &Path) -> io::Result<()> {
    let names: Vec<_> =
        fs::read_dir(from)?.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<_, _>>()?;
    for (index, name) in names.iter().enumerate() {
        if let Err(error) = fs::rename(from.join(name), to.join(name)) {
            // The first failure is the one to report.
            names[..index].iter().for_each(|name| drop(fs::rename(to.join(name), from.join(name))));
            return Err(error);
        }
    }
    Ok(())
}
