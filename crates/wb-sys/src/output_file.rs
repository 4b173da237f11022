//! Files that users name, by options such as `--html FILE`.
//!
//! What exists is written to as the shell's `>` would: a symbolic link is followed, a device, a FIFO or a descriptor
//! (`/dev/stdout`, `>(command)`) is opened and written into, and `-` is standard output. Only a regular file is
//! replaced, when everything is written, and it keeps its mode and its owner. If its owner could not be kept, or it has
//! more to keep (hard links, an access control list, attributes of its user), it is written into at the end.
//!
//! [`crate::atomic_file`] is for the program's own records, and follows nothing.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::{FdFlags, fcntl_setfd};
use tempfile::NamedTempFile;

use crate::atomic_file::{folder, sync_folder};
use crate::extended_attributes::attribute_names;
use crate::unnamed_file;

/// Where a path that a user names leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputTarget {
    /// Standard output: `-`, or a name of that descriptor, such as `/dev/stdout`.
    StandardOutput,
    StandardError,
    /// An existing file that is not regular: a device, a FIFO, another descriptor of this process.
    Stream(PathBuf),
    /// A regular file, which may not exist yet. Symbolic links are followed, and the path is absolute if its folder exists.
    File(PathBuf),
}

/// As many links as the kernel follows.
const MAX_LINKS: usize = 40;

impl OutputTarget {
    /// Fails if `path` is a folder, or cannot be followed.
    pub fn new(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::StandardOutput);
        }
        let mut end = path.to_owned();
        for _ in 0..MAX_LINKS {
            // Not opened by its path where that can be avoided: the descriptor has a position, which a regular file that is
            // opened again would not share.
            match descriptor(&end) {
                Some(1) => return Ok(Self::StandardOutput),
                Some(2) => return Ok(Self::StandardError),
                Some(_) => return Ok(Self::Stream(end)),
                None => {}
            }
            let Ok(target) = fs::read_link(&end) else { break };
            end = folder(&end).join(target);
        }
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => Ok(Self::File(fs::canonicalize(path)?)),
            Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(_) => Ok(Self::Stream(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(Self::File(match (fs::canonicalize(folder(&end)), end.file_name()) {
                    (Ok(folder), Some(name)) => folder.join(name),
                    _ => end,
                }))
            }
            Err(error) => Err(error),
        }
    }

    /// Checks that it can be written, without opening it: opening a FIFO waits for its reader.
    pub fn check(&self) -> io::Result<()> {
        let is_refused = |path: &Path| access(path, Access::WRITE_OK).err();
        let error = match self {
            Self::StandardOutput | Self::StandardError => None,
            Self::Stream(path) => is_refused(path),
            Self::File(path) if path.exists() => is_refused(path),
            Self::File(path) => is_refused(folder(path)),
        };
        error.map_or(Ok(()), |error| Err(error.into()))
    }
}

/// The number of a descriptor of this process that the path names.
fn descriptor(path: &Path) -> Option<u32> {
    let number = path.file_name()?.to_str()?.parse().ok()?;
    let own = fs::canonicalize("/proc/self/fd").ok()?;
    (fs::canonicalize(folder(path)).ok()? == own).then_some(number)
}

#[derive(Debug)]
pub struct OutputFile(Sink);

#[derive(Debug)]
enum Sink {
    StandardOutput,
    StandardError,
    Stream(File),
    Draft {
        draft: Draft,
        path: PathBuf,
        replaces: bool,
    },
    /// Copied at the end into the existing file, which cannot be replaced, or would lose what it has if it were.
    Copy {
        draft: File,
        path: PathBuf,
    },
}

/// A file in the folder of the one that it becomes. Until then nothing is left of it on drop.
#[derive(Debug)]
enum Draft {
    /// Also leaves nothing when the process is killed.
    Unnamed(File),
    /// Where the file system does not support the former.
    Named(NamedTempFile),
}

impl Draft {
    fn create(folder: &Path) -> io::Result<Self> {
        Ok(match unnamed_file::create(folder, NEW_MODE)? {
            Some(file) => Self::Unnamed(file),
            None => Self::create_named(folder)?,
        })
    }

    fn create_named(folder: &Path) -> io::Result<Self> {
        let create = |path: &Path| OpenOptions::new().read(true).write(true).create_new(true).mode(NEW_MODE).open(path);
        Ok(Self::Named(with_draft_name(folder, create)?))
    }

    fn file(&self) -> &File {
        match self {
            Self::Unnamed(file) => file,
            // Not through `NamedTempFile`, which names the draft in errors.
            Self::Named(draft) => draft.as_file(),
        }
    }

    /// The file without a name.
    fn into_file(self) -> File {
        match self {
            Self::Unnamed(file) => file,
            Self::Named(draft) => draft.into_file(),
        }
    }

    /// Gives the file its name; on failure returns it without one.
    fn persist(self, path: &Path, replaces: bool) -> Result<(), (io::Error, File)> {
        match self {
            Self::Unnamed(file) => link(&file, path, replaces).map_err(|error| (error, file)),
            Self::Named(draft) => {
                let persisted = if replaces { draft.persist(path) } else { draft.persist_noclobber(path) };
                persisted.map(drop).map_err(|refused| (refused.error, refused.file.into_file()))
            }
        }
    }
}

/// Gives an unnamed file its name. A link replaces nothing, a rename does.
fn link(file: &File, path: &Path, replaces: bool) -> io::Result<()> {
    match unnamed_file::link(file, path) {
        Err(error) if replaces && error.kind() == io::ErrorKind::AlreadyExists => {
            let named = with_draft_name(folder(path), |name| unnamed_file::link(file, name))?;
            named.persist(path).map(drop).map_err(|refused| refused.error)
        }
        result => result,
    }
}

/// The file has a random name, and is removed on drop.
fn with_draft_name<F>(folder: &Path, create: impl FnMut(&Path) -> io::Result<F>) -> io::Result<NamedTempFile<F>> {
    tempfile::Builder::new().prefix(".").suffix(".new").make_in(folder, create)
}

/// The mode of a new file, without the bits of the umask.
const NEW_MODE: u32 = 0o666;

impl OutputFile {
    /// Creates a file, or opens what exists except a folder. A regular file keeps its content until [`Self::finish`].
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::open(path, true)
    }

    /// Like [`Self::create`], but fails if a regular file of that name exists, now or at the end.
    pub fn create_new(path: &Path) -> io::Result<Self> {
        Self::open(path, false)
    }

    /// Opens what exists except a folder, or creates a file.
    pub fn append(path: &Path) -> io::Result<Self> {
        Ok(Self(match OutputTarget::new(path)? {
            OutputTarget::StandardOutput => Sink::StandardOutput,
            OutputTarget::StandardError => Sink::StandardError,
            OutputTarget::Stream(path) => Sink::Stream(OpenOptions::new().append(true).open(path)?),
            OutputTarget::File(path) => Sink::Stream(OpenOptions::new().append(true).create(true).open(path)?),
        }))
    }

    fn open(path: &Path, replaces: bool) -> io::Result<Self> {
        Ok(Self(match OutputTarget::new(path)? {
            OutputTarget::StandardOutput => Sink::StandardOutput,
            OutputTarget::StandardError => Sink::StandardError,
            // Appending has no effect on devices and FIFOs. A descriptor of a regular file keeps what it has.
            OutputTarget::Stream(path) => Sink::Stream(OpenOptions::new().append(true).open(path)?),
            OutputTarget::File(path) => Self::draft(path, replaces)?,
        }))
    }

    fn draft(path: PathBuf, replaces: bool) -> io::Result<Sink> {
        let existing = match fs::metadata(&path) {
            Ok(_) if !replaces => return Err(io::ErrorKind::AlreadyExists.into()),
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if existing.is_some() {
            // Otherwise a file that is protected from being written would be replaced by one that is not.
            access(&path, Access::WRITE_OK)?;
        }
        if let Some(metadata) = &existing
            && loses_by_replacement(metadata, &path)?
        {
            let draft = match tempfile::tempfile_in(folder(&path)) {
                Err(error) if is_refusal(&error) => tempfile::tempfile()?,
                draft => draft?,
            };
            return Ok(Sink::Copy { draft, path });
        }
        let draft = match Draft::create(folder(&path)) {
            Ok(draft) => draft,
            Err(error) if existing.is_some() && is_refusal(&error) => {
                return Ok(Sink::Copy { draft: tempfile::tempfile()?, path });
            }
            Err(error) => return Err(error),
        };
        if let Some(metadata) = existing {
            let file = draft.file();
            // Only root may give files away, and nobody in some file systems.
            if fchown(file, Some(metadata.uid()), Some(metadata.gid())).is_err() {
                return Ok(Sink::Copy { draft: draft.into_file(), path });
            }
            file.set_permissions(Permissions::from_mode(metadata.mode() & 0o7777))?;
        }
        Ok(Sink::Draft { draft, path, replaces })
    }

    /// The name by which programs that this one starts can write into the same FIFO: opened again by its own name, it
    /// would wait for another reader. None for anything else.
    pub fn inherited_name(&self) -> io::Result<Option<PathBuf>> {
        match &self.0 {
            Sink::Stream(file) if file.metadata()?.file_type().is_fifo() => {
                fcntl_setfd(file, FdFlags::empty())?;
                Ok(Some(PathBuf::from(format!("/dev/fd/{}", file.as_raw_fd()))))
            }
            _ => Ok(None),
        }
    }

    /// Gives the file its name. On failure, what exists is as it was, unless it had to be written in place.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        match self.0 {
            Sink::StandardOutput | Sink::StandardError | Sink::Stream(_) => Ok(()),
            Sink::Copy { draft, path } => copy_into(draft, &path),
            Sink::Draft { draft, path, replaces } => {
                draft.file().sync_all()?;
                match draft.persist(&path, replaces) {
                    Ok(()) => sync_folder(folder(&path)),
                    // A mount point cannot be replaced, such as a file that a container shares with its host.
                    Err((error, draft)) if replaces && error.kind() == io::ErrorKind::ResourceBusy => {
                        copy_into(draft, &path)
                    }
                    Err((error, _)) => Err(error),
                }
            }
        }
    }
}

/// Whether nothing can be created in the folder; files in it may still be writable.
fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// Whether another file in its place would lack something besides mode and owner.
fn loses_by_replacement(metadata: &Metadata, path: &Path) -> io::Result<bool> {
    let is_kept = |name: &Vec<u8>| name.starts_with(b"user.") || name == b"system.posix_acl_access";
    Ok(metadata.nlink() > 1 || attribute_names(path)?.iter().any(is_kept))
}

fn copy_into(mut draft: File, path: &Path) -> io::Result<()> {
    draft.rewind()?;
    let mut file = OpenOptions::new().write(true).truncate(true).open(path)?;
    io::copy(&mut draft, &mut file)?;
    file.sync_all()
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Sink::StandardOutput => io::stdout().write(bytes),
            Sink::StandardError => io::stderr().write(bytes),
            Sink::Stream(file) | Sink::Copy { draft: file, .. } => file.write(bytes),
            Sink::Draft { draft, .. } => draft.file().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Sink::StandardOutput => io::stdout().flush(),
            Sink::StandardError => io::stderr().flush(),
            // Without buffers.
            Sink::Stream(_) | Sink::Copy { .. } | Sink::Draft { .. } => Ok(()),
        }
    }
}

/// Writes a whole file. A reader that has closed a pipe (`>(head)`) has what it wants.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OutputFile::create(path)?;
    match file.write_all(content).and_then(|()| file.finish()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, XattrFlags, getxattr, mknodat, setxattr};

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_regular_file_is_replaced_at_the_end_and_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let mut file = OutputFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old", "it is unchanged until the end");
        file.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[test]
    fn a_file_that_is_not_finished_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        drop(OutputFile::create(&path).unwrap());
        assert!(names(folder.path()).is_empty());
        fs::write(&path, "old").unwrap();
        OutputFile::create(&path).unwrap().write_all(b"new").unwrap();
        assert_eq!((names(folder.path()), fs::read(&path).unwrap()), (vec!["a".to_owned()], b"old".to_vec()));
    }

    #[test]
    fn an_unfinished_file_has_no_name_that_a_killed_process_would_leave() {
        let folder = tempfile::tempdir().unwrap();
        if unnamed_file::create(folder.path(), 0o600).unwrap().is_none() {
            wb_test_skip::skip!("the file system of {} has no unnamed files", folder.path().display());
            return;
        }
        let path = folder.path().join("a");
        let mut file = OutputFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        assert!(names(folder.path()).is_empty());
        file.finish().unwrap();
        let mut file = OutputFile::create(&path).unwrap();
        file.write_all(b"newer").unwrap();
        assert_eq!(names(folder.path()), ["a"]);
        file.finish().unwrap();
        assert_eq!((names(folder.path()), fs::read(&path).unwrap()), (vec!["a".to_owned()], b"newer".to_vec()));
    }

    #[test]
    fn named_and_unnamed_drafts_get_the_name_of_their_file() {
        let root = tempfile::tempdir().unwrap();
        for (kind, create) in [("unnamed", Draft::create as fn(&Path) -> _), ("named", Draft::create_named)] {
            let folder = root.path().join(kind);
            fs::create_dir(&folder).unwrap();
            let path = folder.join("a");
            for (content, replaces) in [("new", false), ("newer", true)] {
                let draft = create(&folder).unwrap();
                draft.file().write_all(content.as_bytes()).unwrap();
                draft.persist(&path, replaces).unwrap();
                assert_eq!(fs::read_to_string(&path).unwrap(), content);
            }
            let (error, _) = create(&folder).unwrap().persist(&path, false).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            let below = folder.join("below");
            fs::create_dir(&below).unwrap();
            let (error, mut draft) = create(&folder).unwrap().persist(&below, true).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
            draft.rewind().unwrap();
            assert_eq!(io::read_to_string(draft).unwrap(), "");
            assert_eq!(names(&folder), ["a", "below"]);
        }
    }

    #[test]
    fn hard_links_lists_and_attributes_of_a_file_are_kept() {
        // Version 2 of `struct posix_acl_xattr_header`; tag, permissions and id of each entry.
        let entries: [(u16, u16, u32); 5] =
            [(1, 6, u32::MAX), (2, 4, 1234), (4, 4, u32::MAX), (0x10, 6, u32::MAX), (0x20, 0, u32::MAX)];
        let mut list = 2_u32.to_le_bytes().to_vec();
        for (tag, permissions, id) in entries {
            list.extend([tag.to_le_bytes(), permissions.to_le_bytes()].concat());
            list.extend(id.to_le_bytes());
        }
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a");
        for (name, value) in [("", &b""[..]), ("user.note", b"mine"), ("system.posix_acl_access", &list)] {
            fs::write(&path, "what was there before").unwrap();
            let other = root.path().join("b");
            if name.is_empty() {
                fs::hard_link(&path, &other).unwrap();
            } else if let Err(error) = setxattr(&path, name, value, XattrFlags::empty()) {
                wb_test_skip::skip!("{name} cannot be set in {}: {error}", root.path().display());
                continue;
            }
            let inode = fs::metadata(&path).unwrap().ino();
            let mut file = OutputFile::create(&path).unwrap();
            file.write_all(b"new").unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"what was there before", "it is unchanged until the end");
            file.finish().unwrap();
            assert_eq!((fs::read(&path).unwrap(), fs::metadata(&path).unwrap().ino()), (b"new".to_vec(), inode));
            if name.is_empty() {
                assert_eq!(fs::read(&other).unwrap(), b"new");
                fs::remove_file(&other).unwrap();
            } else {
                let mut kept = [0; 100];
                let length = getxattr(&path, name, &mut kept[..]).unwrap();
                assert_eq!(&kept[..length], value);
            }
            assert_eq!(names(root.path()), ["a"]);
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_file_that_others_may_write_keeps_its_owner() {
        use rustix::process::{Uid, geteuid};
        if !geteuid().is_root() {
            wb_test_skip::skip!("only root can make a file of another user");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "old").unwrap();
        for (path, mode) in [(folder.path(), 0o777), (&path, 0o666)] {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        // The user of a thread, by the system call.
        let user = Uid::from_raw(65534);
        let write_as_user = || {
            rustix::thread::set_thread_res_uid(user, user, user).unwrap();
            write(&path, b"new").unwrap();
        };
        std::thread::scope(|scope| scope.spawn(write_as_user).join().unwrap());
        assert_eq!((fs::read(&path).unwrap(), fs::metadata(&path).unwrap().uid()), (b"new".to_vec(), 0));
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[test]
    fn links_are_followed_to_files_that_exist_and_that_do_not() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path();
        fs::create_dir(folder.join("below")).unwrap();
        for (name, target) in [("relative", "below/there"), ("twice", "relative"), ("circle", "circle")] {
            symlink(target, folder.join(name)).unwrap();
        }
        for (content, name) in ["one", "two"].into_iter().zip(["twice", "relative"]) {
            write(&folder.join(name), content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(folder.join("below/there")).unwrap(), content);
        }
        assert!(fs::symlink_metadata(folder.join("twice")).unwrap().is_symlink());
        symlink("below/../below/new", folder.join("dangling")).unwrap();
        let target = OutputTarget::File(fs::canonicalize(folder).unwrap().join("below/new"));
        for name in ["dangling", "below/new", "below/../below/./new"] {
            assert_eq!(OutputTarget::new(&folder.join(name)).unwrap(), target, "{name}");
        }
        assert_eq!(write(&folder.join("circle"), b"x").unwrap_err().raw_os_error(), Some(libc::ELOOP));
        assert_eq!(write(&folder.join("below"), b"x").unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(write(&folder.join("none/a"), b"x").unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_fifo_is_written_into() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        mknodat(CWD, &path, FileType::Fifo, Mode::from(0o600), 0).unwrap();
        let reader = std::thread::spawn({
            let path = path.clone();
            move || fs::read(path).unwrap()
        });
        write(&path, b"new").unwrap();
        assert_eq!(reader.join().unwrap(), b"new");
        assert_eq!(OutputTarget::new(&path).unwrap(), OutputTarget::Stream(path));
    }

    #[test]
    fn names_of_descriptors_are_descriptors() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        symlink("/dev/stdout", &link).unwrap();
        for name in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/self/../self/fd/1"].map(Path::new) {
            assert_eq!(OutputTarget::new(name).unwrap(), OutputTarget::StandardOutput, "{}", name.display());
        }
        assert_eq!(OutputTarget::new(&link).unwrap(), OutputTarget::StandardOutput);
        assert_eq!(OutputTarget::new(Path::new("/dev/stderr")).unwrap(), OutputTarget::StandardError);
    }

    #[test]
    fn a_descriptor_of_a_file_keeps_what_the_file_has() {
        use std::os::fd::AsRawFd;
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"before, ").unwrap();
        write(Path::new(&format!("/dev/fd/{}", file.as_raw_fd())), b"after").unwrap();
        file.rewind().unwrap();
        assert_eq!(io::read_to_string(file).unwrap(), "before, after");
    }

    #[test]
    fn a_new_file_never_replaces_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let file = OutputFile::create_new(&path).unwrap();
        fs::write(&path, "theirs").unwrap();
        assert_eq!(file.finish().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(OutputFile::create_new(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!((names(folder.path()), fs::read(&path).unwrap()), (vec!["a".to_owned()], b"theirs".to_vec()));
    }

    #[test]
    fn text_is_appended_to_a_file_and_to_the_target_of_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a"), folder.path().join("link"));
        symlink("a", &link).unwrap();
        for name in [&link, &path] {
            OutputFile::append(name).unwrap().write_all(b"line\n").unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "line\nline\n");
    }
}
