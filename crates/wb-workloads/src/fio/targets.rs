//! Targets of fio: scratch files that are created and removed, or existing files and block devices.

use std::collections::BTreeSet;

use wb_agent::{Command, Process, Scratch};
use wb_model::Bytes;
use wb_test::{Failure, WorkerContext};

use super::device::{self, TargetDevice};
use super::job::{FioJob, escape_path, find_unsupported_char};

/// A target prepared for fio: it exists, and its measured part is allocated and written.
#[derive(Debug)]
pub(crate) struct FioTarget {
    pub(crate) path: String,
    scratch: Option<Scratch>,
    /// `MAJOR:MINOR` of a block device.
    device_number: Option<String>,
    /// Type of the filesystem if it is in memory, such as `tmpfs`.
    memory_filesystem: Option<String>,
    /// The filesystem's device and the inode.
    identity: String,
}

impl FioTarget {
    pub(crate) fn is_device(&self) -> bool {
        self.device_number.is_some()
    }

    pub(crate) fn is_existing_file(&self) -> bool {
        self.scratch.is_none() && !self.is_device()
    }

    pub(crate) async fn remove(self) -> Result<(), Failure> {
        match self.scratch {
            Some(scratch) => scratch.close().await.map_err(Failure::from),
            None => Ok(()),
        }
    }

    /// Requires that the path still leads to what was prepared: a filesystem may be unmounted meanwhile, and fio would
    /// create the file on the one below.
    pub(crate) async fn require_same(&self, context: &WorkerContext) -> Result<(), Failure> {
        if identify(context, &self.path).await.is_ok_and(|identity| identity == self.identity) {
            return Ok(());
        }
        Err(Failure::refused(format!("`{}` leads to another file than the prepared one", self.path)))
    }

    pub(crate) fn ram_backed_warning(&self) -> Option<String> {
        let fs_type = self.memory_filesystem.as_ref()?;
        Some(format!("`{}` is on {fs_type}, in memory: this measures memory, not storage", self.path))
    }

    /// Opens a block device exclusively until the context's group is torn down, after checking that it is still unused.
    /// Returns the process that holds it open; `None` for files. Cells share devices, so a device is opened for one
    /// sample at a time.
    pub(crate) async fn hold_exclusively(&self, context: &WorkerContext) -> Result<Option<Process>, Failure> {
        let Some(number) = &self.device_number else { return Ok(None) };
        check_unused(context, &self.path, &TargetDevice::read(context, number).await?).await?;
        device::open_exclusively(context, &self.path).await.map(Some)
    }
}

async fn identify(context: &WorkerContext, path: &str) -> Result<String, Failure> {
    let output = context.run(Command::new(["stat", "-L", "--printf=%d:%i", path])).await?;
    Ok(String::from_utf8_lossy(&output).into_owned())
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PathKind {
    Missing,
    Folder,
    /// In bytes; holes of a sparse file are not allocated.
    RegularFile {
        size: u64,
        allocated: u64,
    },
    /// `MAJOR:MINOR`.
    BlockDevice {
        number: String,
    },
    /// Named as by `stat`.
    Other(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Filesystem {
    /// Named as by `stat`.
    fs_type: String,
    /// Bytes available to unprivileged users.
    available: u64,
}

impl Filesystem {
    fn is_in_memory(&self) -> bool {
        ["tmpfs", "ramfs"].contains(&self.fs_type.as_str())
    }
}

/// Refuses files and devices that a job file names itself if something else uses them. Holds devices open exclusively
/// until the context's group is torn down.
pub(super) async fn hold_named(
    context: &WorkerContext,
    paths: &[String],
    targets: &[FioTarget],
) -> Result<(), Failure> {
    let mut held: BTreeSet<String> = targets.iter().filter_map(|target| target.device_number.clone()).collect();
    for path in paths {
        if path.contains('$') {
            return Err(Failure::refused(format!(
                "the job file writes to `{path}`, which fio alone can expand: write the path itself, so that what is in use \
                 is not overwritten"
            )));
        }
        match stat(context, path).await? {
            PathKind::BlockDevice { number } if held.insert(number.clone()) => {
                check_unused(context, path, &TargetDevice::read(context, &number).await?).await?;
                device::open_exclusively(context, path).await?;
            }
            PathKind::RegularFile { .. } => check_not_attached(context, path).await?,
            _ => {}
        }
    }
    Ok(())
}

/// Prepares the targets of `job` at these paths; without paths, one scratch file.
pub(super) async fn prepare_targets(
    context: &WorkerContext,
    job: &FioJob,
    paths: &[String],
    allow_destroy: bool,
) -> Result<Vec<FioTarget>, Failure> {
    if paths.is_empty() {
        return Ok(vec![prepare_target(context, job, None, allow_destroy).await?]);
    }
    let mut targets = Vec::new();
    for path in paths {
        targets.push(prepare_target(context, job, Some(path), allow_destroy).await?);
    }
    Ok(targets)
}

/// Prepares a target of `job` at a path; without a path, a scratch file.
pub(crate) async fn prepare_target(
    context: &WorkerContext,
    job: &FioJob,
    path: Option<&str>,
    allow_destroy: bool,
) -> Result<FioTarget, Failure> {
    let Some(path) = path else { return prepare_default_file(context, job).await };
    let refuse = |reason: String| Err(Failure::refused(format!("`{path}` {reason}")));
    if !path.starts_with('/') {
        return refuse("is not an absolute path".to_owned());
    }
    match stat(context, path).await? {
        PathKind::Missing if is_device_path(path) => refuse(MISSING_DEVICE.to_owned()),
        PathKind::Missing if is_link(context, path).await? => {
            refuse("is a symbolic link to nothing: name the file that it leads to".to_owned())
        }
        PathKind::Missing => match path.rsplit_once('/') {
            Some((parent, name)) if !name.is_empty() => {
                let parent = if parent.is_empty() { "/" } else { parent };
                match stat(context, parent).await? {
                    PathKind::Folder => prepare_scratch_file(context, job, Some(parent), name).await,
                    _ => refuse(format!("cannot be created: `{parent}` is not an existing directory")),
                }
            }
            _ => refuse("does not exist: expected an existing directory, or a file in one".to_owned()),
        },
        PathKind::Folder => prepare_scratch_file(context, job, Some(path), "fio").await,
        PathKind::RegularFile { size, allocated } => {
            prepare_existing_file(context, job, path, size, allocated, allow_destroy).await
        }
        PathKind::BlockDevice { number } => prepare_block_device(context, job, path, &number, allow_destroy).await,
        PathKind::Other(file_type) => refuse(format!("is a {file_type}: expected a file, directory, or block device")),
    }
}

const MISSING_DEVICE: &str = "does not exist: see `lsblk` for devices";

/// Whether a path is in `/dev` except `/dev/shm`: a new file there would be in memory by mistake.
fn is_device_path(path: &str) -> bool {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    parts.next() == Some("dev") && parts.next().is_some_and(|folder| folder != "shm")
}

/// Prepares a scratch file in the agent's folder, or in `/var/tmp` if that folder is in memory.
async fn prepare_default_file(context: &WorkerContext, job: &FioJob) -> Result<FioTarget, Failure> {
    let group_filesystem = read_filesystem(context, context.group.folder()).await?;
    let parent = group_filesystem.is_in_memory().then_some("/var/tmp");
    prepare_scratch_file(context, job, parent, "fio").await
}

/// Prepares a scratch file in a new scratch folder below `parent`; without one, in the agent's folder.
async fn prepare_scratch_file(
    context: &WorkerContext,
    job: &FioJob,
    parent: Option<&str>,
    name: &str,
) -> Result<FioTarget, Failure> {
    let scratch = context.worker().new_scratch(parent).await?;
    let (path, filesystem) = (scratch.join(name), read_filesystem(context, scratch.path()).await?);
    let memory_filesystem = memory_filesystem_of(job, scratch.path(), &filesystem)?;
    if filesystem.available < job.file_size.0 {
        let (size, folder) = (job.file_size, parent.unwrap_or(scratch.path()));
        // Rounded to MiB: exact bytes would not be readable.
        let available = Bytes(filesystem.available >> 20 << 20);
        return Err(Failure::refused(format!(
            "{size} required for the file, {available} available in `{folder}`: set file-size or targets"
        )));
    }
    lay_out(context, job, &path, job.file_size).await?;
    let identity = identify(context, &path).await?;
    Ok(FioTarget { path, scratch: Some(scratch), device_number: None, memory_filesystem, identity })
}

/// Prepares an existing file of `size` bytes, of which `allocated` are allocated on the filesystem.
async fn prepare_existing_file(
    context: &WorkerContext,
    job: &FioJob,
    path: &str,
    size: u64,
    allocated: u64,
    allow_destroy: bool,
) -> Result<FioTarget, Failure> {
    let memory_filesystem = memory_filesystem_of(job, path, &read_filesystem(context, path).await?)?;
    // Where the holes of a sparse file are is not known: they may be in the measured part.
    let too_small = size < job.file_size.0 || allocated < size;
    if !allow_destroy && job.test_type.writes() {
        let test_type = job.test_type.name();
        return Err(Failure::refused(format!(
            "`{path}` exists, and {test_type} would overwrite it: set allow-destroy=true, or name a path that does not exist"
        )));
    }
    if !allow_destroy && too_small {
        return Err(Failure::refused(format!(
            "`{path}` has {size} bytes, {allocated} of them allocated, and {} without holes are required: reduce file-size, \
             fill the holes, or set allow-destroy=true to overwrite it",
            job.file_size.0
        )));
    }
    if job.test_type.writes() {
        check_not_attached(context, path).await?;
    }
    if too_small {
        lay_out(context, job, path, job.file_size).await?;
    }
    let identity = identify(context, path).await?;
    Ok(FioTarget { path: path.to_owned(), scratch: None, device_number: None, memory_filesystem, identity })
}

/// The data on the device is lost.
async fn prepare_block_device(
    context: &WorkerContext,
    job: &FioJob,
    path: &str,
    number: &str,
    allow_destroy: bool,
) -> Result<FioTarget, Failure> {
    let refuse = |reason: String| Err(Failure::refused(format!("`{path}` is a block device{reason}")));
    if !allow_destroy {
        return refuse(", and its data would be lost: set allow-destroy=true to allow it".to_owned());
    }
    let device = TargetDevice::read(context, number).await?;
    if device.read_only {
        return refuse(" that is read-only".to_owned());
    }
    if device.size < job.file_size.0 {
        return refuse(format!(" of {} bytes, less than file-size, {} bytes", device.size, job.file_size.0));
    }
    let target = FioTarget {
        path: path.to_owned(),
        scratch: None,
        device_number: Some(number.to_owned()),
        memory_filesystem: None,
        identity: identify(context, path).await?,
    };
    let holder = target.hold_exclusively(context).await?;
    lay_out(context, job, path, job.file_size).await?;
    if let Some(holder) = holder {
        device::release(holder).await?;
    }
    Ok(target)
}

/// Refuses a file or device that is the content of a loop device, or a swap file. The kernel counts neither as a use.
async fn check_not_attached(context: &WorkerContext, path: &str) -> Result<(), Failure> {
    // A file may have several names, and a device several nodes.
    const SCRIPT: &str = "path=$(readlink -f -- \"$1\") || exit 0
        device() { [ ! -b \"$1\" ] || stat -Lc %t:%T -- \"$1\"; }
        number=$(device \"$path\")
        is_same() {
            [ \"$1\" = \"$path\" ] || [ \"$1\" -ef \"$path\" ] ||
                { [ -n \"$number\" ] && [ \"$(device \"$1\")\" = \"$number\" ]; }
        }
        for file in /sys/block/loop*/loop/backing_file; do
            is_same \"$(cat \"$file\" 2>/dev/null)\" && echo \"$file\"
        done
        while read -r area _; do is_same \"$area\" && echo swap; done </proc/swaps
        true";
    let found = context.run(Command::new(["sh", "-c", SCRIPT, "sh", path])).await?;
    let usage = match String::from_utf8_lossy(&found).lines().next() {
        None => return Ok(()),
        Some("swap") => "it is swap".to_owned(),
        Some(file) => {
            let device = file.split('/').nth(3).unwrap_or_default();
            format!("it is the content of /dev/{device} (`losetup -d /dev/{device}` detaches it)")
        }
    };
    Err(Failure::refused(format!("`{path}` is in use: {usage}")))
}

/// Refuses a block device that is mounted, used as swap, or held by another device.
async fn check_unused(context: &WorkerContext, path: &str, device: &TargetDevice) -> Result<(), Failure> {
    check_not_attached(context, path).await?;
    let (mounts, swaps) = (read_text(context, "/proc/self/mountinfo").await?, read_text(context, "/proc/swaps").await?);
    match device.find_use(&mounts, &swaps) {
        Some(usage) => Err(Failure::refused(format!("`{path}` is a block device in use: {usage}"))),
        None => Ok(()),
    }
}

/// The type of a filesystem if it is in memory. Refuses it for direct I/O, which is not possible there.
fn memory_filesystem_of(job: &FioJob, path: &str, filesystem: &Filesystem) -> Result<Option<String>, Failure> {
    let fs_type = &filesystem.fs_type;
    match (filesystem.is_in_memory(), job.direct) {
        (false, _) => Ok(None),
        (true, false) => Ok(Some(fs_type.clone())),
        (true, true) => Err(Failure::refused(format!(
            "`{path}` is on {fs_type}, in memory, where direct=true is not possible: set targets to a path on a disk, or direct=false"
        ))),
    }
}

/// Writes the first `size` bytes of a target with incompressible data, so that the measurement neither reads holes nor
/// allocates space, and checks that they are allocated.
async fn lay_out(context: &WorkerContext, job: &FioJob, path: &str, size: Bytes) -> Result<(), Failure> {
    const BLOCK: u64 = 1 << 20;
    let rest = size.0 % BLOCK;
    let mut command = Command::new(["fio"]);
    // The rest alone may be no multiple of the device's blocks, which direct I/O requires.
    for (name, offset, size, is_direct) in
        [("blocks", 0, size.0 - rest, job.direct), ("rest", size.0 - rest, rest, false)]
    {
        if size == 0 {
            continue;
        }
        for (option, value) in [
            ("name", name.to_owned()),
            ("stonewall", "1".to_owned()),
            ("rw", "write".to_owned()),
            ("ioengine", "psync".to_owned()),
            ("end_fsync", "1".to_owned()),
            ("filename", escape_path(path)),
            ("offset", offset.to_string()),
            ("size", size.to_string()),
            ("bs", size.min(BLOCK).to_string()),
            ("direct", u8::from(is_direct).to_string()),
            ("fallocate", "none".to_owned()),
            ("refill_buffers", "1".to_owned()),
            ("eta", "never".to_owned()),
        ] {
            command = command.arg(format!("--{option}={value}"));
        }
    }
    context.run(command).await?;
    match stat(context, path).await? {
        PathKind::RegularFile { size: file_size, allocated } if file_size.min(allocated) < size.0 => {
            Err(Failure::refused(format!(
                "`{path}` has {file_size} bytes, {allocated} of them allocated, but {} were written: the filesystem \
                 compresses or deduplicates data, so the storage would not be measured",
                size.0
            )))
        }
        PathKind::Missing => Err(Failure::crashed(format!("fio did not create `{path}`"))),
        _ => Ok(()),
    }
}

async fn is_link(context: &WorkerContext, path: &str) -> Result<bool, Failure> {
    let output = context.run_to_end(Command::new(["readlink", "--", path])).await?;
    Ok(output.exit_reason.is_success())
}

/// Determines the type of the file at a path, following links.
async fn stat(context: &WorkerContext, path: &str) -> Result<PathKind, Failure> {
    if path.ends_with(char::is_whitespace) {
        return Err(Failure::refused(format!("invalid path `{path}`: fio drops white space at the end of one")));
    }
    if let Some(character) = find_unsupported_char(path) {
        return Err(Failure::refused(format!("invalid path `{path}`: a job file cannot contain {character:?}")));
    }
    let output = context.run_to_end(Command::new(["stat", "-L", "--printf=%F|%s|%b|%B|%t|%T", path])).await?;
    if !output.exit_reason.is_success() {
        let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        let is_missing = message.ends_with("No such file or directory");
        return if is_missing { Ok(PathKind::Missing) } else { Err(Failure::refused(message)) };
    }
    parse_stat(&String::from_utf8_lossy(&output.stdout))
        .ok_or_else(|| Failure::crashed(format!("unexpected output of stat for `{path}`")))
}

fn parse_stat(output: &str) -> Option<PathKind> {
    let fields: Vec<&str> = output.trim().split('|').collect();
    let [file_type, size, blocks, block_size, major, minor] = fields.as_slice() else { return None };
    let number = |text: &str| text.parse::<u64>().ok();
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
    Some(match *file_type {
        "regular file" | "regular empty file" => {
            PathKind::RegularFile { size: number(size)?, allocated: number(blocks)?.checked_mul(number(block_size)?)? }
        }
        "directory" => PathKind::Folder,
        "block special file" => {
            PathKind::BlockDevice { number: format!("{}:{}", hexadecimal(major)?, hexadecimal(minor)?) }
        }
        other => PathKind::Other(other.to_owned()),
    })
}

async fn read_filesystem(context: &WorkerContext, path: &str) -> Result<Filesystem, Failure> {
    let output = context.run(Command::new(["stat", "-f", "--printf=%T|%a|%S", path])).await?;
    let output = String::from_utf8_lossy(&output).into_owned();
    let fields: Vec<&str> = output.trim().split('|').collect();
    let filesystem = match fields.as_slice() {
        [fs_type, blocks, block_size] => {
            blocks.parse::<u64>().ok().zip(block_size.parse::<u64>().ok()).map(|(blocks, block_size)| Filesystem {
                fs_type: (*fs_type).to_owned(),
                available: blocks.saturating_mul(block_size),
            })
        }
        _ => None,
    };
    filesystem.ok_or_else(|| Failure::crashed(format!("unexpected output of stat for the filesystem of `{path}`")))
}

async fn read_text(context: &WorkerContext, path: &str) -> Result<String, Failure> {
    Ok(String::from_utf8_lossy(&context.get(path).await?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_paths_are_recognized() {
        assert!(is_device_path("/dev/nosuch") && is_device_path("//dev/disk/by-id/x"));
        assert!(!is_device_path("/dev/shm/x") && !is_device_path("/device/x") && !is_device_path("/dev"));
    }

    #[test]
    fn output_of_stat_is_parsed() {
        assert_eq!(
            parse_stat("regular file|8192|8|512|0|0"),
            Some(PathKind::RegularFile { size: 8192, allocated: 4096 })
        );
        assert_eq!(parse_stat("regular empty file|0|0|512|0|0"), Some(PathKind::RegularFile { size: 0, allocated: 0 }));
        assert_eq!(
            parse_stat("block special file|0|0|512|103|1f"),
            Some(PathKind::BlockDevice { number: "259:31".to_owned() })
        );
        assert_eq!(parse_stat("directory|4096|8|512|0|0"), Some(PathKind::Folder));
        assert_eq!(parse_stat("fifo|0|0|512|0|0"), Some(PathKind::Other("fifo".to_owned())));
        assert_eq!([parse_stat(""), parse_stat("regular file|x|8|512|0|0")], [None, None]);
    }
}
