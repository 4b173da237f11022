//! Targets of fio: private files that are created and removed, or existing files and devices.

use wb_agent::{Command, Process, Scratch};
use wb_model::Bytes;

use super::device::{self, TargetDevice};
use super::job::{FioJob, escape_path, find_unsupported_char};
use crate::{Failure, WorkerContext};

/// A prepared target: it exists and is completely written.
#[derive(Debug)]
pub(crate) struct FioTarget {
    /// Its path.
    pub(crate) path: String,
    /// The private folder that contains it, if it was created for it.
    folder: Option<Scratch>,
    /// Device number, for a block device.
    device_number: Option<String>,
    /// Type of its filesystem, if that is in memory.
    memory_filesystem: Option<String>,
}

impl FioTarget {
    /// Whether it is a block device.
    pub(crate) fn is_device(&self) -> bool {
        self.device_number.is_some()
    }

    /// Removes it if it is a private file.
    pub(crate) async fn remove(self) -> Result<(), Failure> {
        match self.folder {
            Some(folder) => folder.close().await.map_err(Failure::from),
            None => Ok(()),
        }
    }

    /// Finding for a target in memory.
    pub(crate) fn finding(&self) -> Option<String> {
        let kind = self.memory_filesystem.as_ref()?;
        Some(format!("`{}` is on {kind}, in memory: this measures memory, not storage", self.path))
    }

    /// Checks that a device is still unused, and opens it exclusively for the lifetime of the context's group. Cells
    /// share devices, so it is opened for one sample at a time.
    pub(crate) async fn hold_exclusively(&self, context: &WorkerContext) -> Result<Option<Process>, Failure> {
        let Some(number) = &self.device_number else { return Ok(None) };
        check_unused(context, &self.path, &TargetDevice::read(context, number).await?).await?;
        device::open_exclusively(context, &self.path).await
    }
}

/// Kind of file at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PathKind {
    Nothing,
    Folder,
    File { size: u64, allocated: u64 },
    Device { number: String },
    Other(String),
}

/// A filesystem.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Filesystem {
    kind: String,
    free: u64,
}

impl Filesystem {
    fn is_in_memory(&self) -> bool {
        ["tmpfs", "ramfs"].contains(&self.kind.as_str())
    }
}

/// Prepares the targets of `job` at these paths; one private file if there are none.
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

/// Prepares a target of `job` at a path; a private file if there is none.
pub(crate) async fn prepare_target(
    context: &WorkerContext,
    job: &FioJob,
    path: Option<&str>,
    allow_destroy: bool,
) -> Result<FioTarget, Failure> {
    let Some(path) = path else { return prepare_on_disk(context, job).await };
    let refused = |reason: String| Err(Failure::refused(format!("`{path}` {reason}")));
    if !path.starts_with('/') {
        return refused("is not an absolute path".to_owned());
    }
    match stat(context, path).await? {
        PathKind::Nothing if is_device_path(path) => refused(NO_DEVICE.to_owned()),
        PathKind::Nothing => match path.rsplit_once('/') {
            Some((parent, name)) if !name.is_empty() => {
                let parent = if parent.is_empty() { "/" } else { parent };
                match stat(context, parent).await? {
                    PathKind::Folder => prepare_private_file(context, job, Some(parent), name).await,
                    _ => refused(format!("cannot be created: no such directory `{parent}`")),
                }
            }
            _ => refused("does not exist: name an existing directory, or a file".to_owned()),
        },
        PathKind::Folder => prepare_private_file(context, job, Some(path), "fio").await,
        PathKind::File { size, allocated } => {
            prepare_existing_file(context, job, path, size.min(allocated), allow_destroy).await
        }
        PathKind::Device { number } => prepare_block_device(context, job, path, &number, allow_destroy).await,
        PathKind::Other(kind) => refused(format!("is a {kind}: expected a file, directory, or block device")),
    }
}

const NO_DEVICE: &str = "does not exist: see `lsblk` for devices";

/// Whether a path is in the device filesystem, where a new file would be in memory.
fn is_device_path(path: &str) -> bool {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    parts.next() == Some("dev") && parts.next().is_some_and(|folder| folder != "shm")
}

/// Prepares a private file in the worker's own folder, or in `/var/tmp` if that folder is in memory.
async fn prepare_on_disk(context: &WorkerContext, job: &FioJob) -> Result<FioTarget, Failure> {
    let own = read_filesystem(context, context.group.folder()).await?;
    prepare_private_file(context, job, own.is_in_memory().then_some("/var/tmp"), "fio").await
}

/// Prepares a private file in a private folder below `base`.
async fn prepare_private_file(
    context: &WorkerContext,
    job: &FioJob,
    base: Option<&str>,
    name: &str,
) -> Result<FioTarget, Failure> {
    let folder = context.worker().new_scratch(base).await?;
    let (path, filesystem) = (folder.join(name), read_filesystem(context, folder.path()).await?);
    let memory = memory_filesystem_of(job, folder.path(), &filesystem)?;
    if filesystem.free < job.file_size.0 {
        let (free, size, base) = (Bytes(filesystem.free >> 20 << 20), job.file_size, base.unwrap_or(folder.path()));
        return Err(Failure::refused(format!(
            "{size} required for the file, {free} free in `{base}`: set file-size or targets"
        )));
    }
    lay_out(context, job, &path, job.file_size).await?;
    Ok(FioTarget { path, folder: Some(folder), device_number: None, memory_filesystem: memory })
}

/// Prepares an existing file with `whole` bytes without holes.
async fn prepare_existing_file(
    context: &WorkerContext,
    job: &FioJob,
    path: &str,
    whole: u64,
    allow_destroy: bool,
) -> Result<FioTarget, Failure> {
    let memory = memory_filesystem_of(job, path, &read_filesystem(context, path).await?)?;
    let short = whole < job.file_size.0;
    if !allow_destroy && job.test_type.writes() {
        let pattern = job.test_type.name();
        return Err(Failure::refused(format!(
            "`{path}` exists, and {pattern} would overwrite it: set allow-destroy=true, or name a path that does not exist"
        )));
    }
    if !allow_destroy && short {
        return Err(Failure::refused(format!(
            "`{path}` has {whole} bytes without holes, {} required: reduce file-size, or set allow-destroy=true to overwrite it",
            job.file_size.0
        )));
    }
    if short {
        lay_out(context, job, path, job.file_size).await?;
    }
    Ok(FioTarget { path: path.to_owned(), folder: None, device_number: None, memory_filesystem: memory })
}

async fn prepare_block_device(
    context: &WorkerContext,
    job: &FioJob,
    path: &str,
    number: &str,
    allow_destroy: bool,
) -> Result<FioTarget, Failure> {
    let refused = |reason: String| Err(Failure::refused(format!("`{path}` is a block device{reason}")));
    if !allow_destroy {
        return refused(", and its data would be lost: set allow-destroy=true to allow it".to_owned());
    }
    let device = TargetDevice::read(context, number).await?;
    if device.read_only {
        return refused(" that is read-only".to_owned());
    }
    if device.size < job.file_size.0 {
        return refused(format!(" of {} bytes, less than file-size, {} bytes", device.size, job.file_size.0));
    }
    let target = FioTarget {
        path: path.to_owned(),
        folder: None,
        device_number: Some(number.to_owned()),
        memory_filesystem: None,
    };
    let holder = target.hold_exclusively(context).await?;
    lay_out(context, job, path, job.file_size).await?;
    if let Some(holder) = holder {
        device::release(holder).await?;
    }
    Ok(target)
}

async fn check_unused(context: &WorkerContext, path: &str, device: &TargetDevice) -> Result<(), Failure> {
    let (mounts, swaps) = (read_text(context, "/proc/self/mountinfo").await?, read_text(context, "/proc/swaps").await?);
    match device.find_use(&mounts, &swaps) {
        Some(by) => Err(Failure::refused(format!("`{path}` is a block device in use: {by}"))),
        None => Ok(()),
    }
}

/// Type of the filesystem if it is in memory; an error with direct I/O, which cannot be measured there.
fn memory_filesystem_of(job: &FioJob, path: &str, filesystem: &Filesystem) -> Result<Option<String>, Failure> {
    let kind = &filesystem.kind;
    match (filesystem.is_in_memory(), job.direct) {
        (false, _) => Ok(None),
        (true, false) => Ok(Some(kind.clone())),
        (true, true) => Err(Failure::refused(format!(
            "`{path}` is on {kind}, in memory, where direct=true is not possible: set targets to a path on a disk, or direct=false"
        ))),
    }
}

/// Writes a target completely, so that the measurement neither reads holes nor allocates space, and checks the result.
/// The data is not compressible.
async fn lay_out(context: &WorkerContext, job: &FioJob, path: &str, size: Bytes) -> Result<(), Failure> {
    const MAX_POWER: u32 = 20;
    let block = 1u64 << size.0.trailing_zeros().min(MAX_POWER);
    let mut command = Command::new(["fio", "--name=layout", "--rw=write", "--ioengine=psync", "--end_fsync=1"]);
    for (option, value) in [
        ("filename", escape_path(path)),
        ("size", size.0.to_string()),
        ("bs", block.to_string()),
        ("direct", u8::from(job.direct && block >= 4096).to_string()),
        ("fallocate", "none".to_owned()),
        ("refill_buffers", "1".to_owned()),
        ("eta", "never".to_owned()),
    ] {
        command = command.arg(format!("--{option}={value}"));
    }
    context.run(command).await?;
    match stat(context, path).await? {
        PathKind::File { size: found, allocated } if found.min(allocated) < size.0 => Err(Failure::refused(format!(
            "`{path}` has {found} bytes, {allocated} of them allocated, but {} were written: the filesystem \
             compresses or deduplicates, and would not be measured",
            size.0
        ))),
        PathKind::Nothing => Err(Failure::crashed(format!("fio did not create `{path}`"))),
        _ => Ok(()),
    }
}

async fn stat(context: &WorkerContext, path: &str) -> Result<PathKind, Failure> {
    if let Some(character) = find_unsupported_char(path) {
        return Err(Failure::refused(format!("invalid path `{path}`: a job file cannot contain {character:?}")));
    }
    let finished = context.run_to_end(Command::new(["stat", "-L", "--printf=%F|%s|%b|%B|%t|%T", path])).await?;
    if !finished.exit_reason.is_success() {
        let reason = String::from_utf8_lossy(&finished.stderr).trim().to_owned();
        let missing = reason.ends_with("No such file or directory");
        return if missing { Ok(PathKind::Nothing) } else { Err(Failure::refused(reason)) };
    }
    parse_stat(&String::from_utf8_lossy(&finished.stdout))
        .ok_or_else(|| Failure::crashed(format!("unexpected output of stat for `{path}`")))
}

fn parse_stat(output: &str) -> Option<PathKind> {
    let fields: Vec<&str> = output.trim().split('|').collect();
    let [kind, size, blocks, block, major, minor] = fields.as_slice() else { return None };
    let number = |text: &str| text.parse::<u64>().ok();
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
    Some(match *kind {
        "regular file" | "regular empty file" => {
            PathKind::File { size: number(size)?, allocated: number(blocks)?.checked_mul(number(block)?)? }
        }
        "directory" => PathKind::Folder,
        "block special file" => PathKind::Device { number: format!("{}:{}", hexadecimal(major)?, hexadecimal(minor)?) },
        other => PathKind::Other(other.to_owned()),
    })
}

async fn read_filesystem(context: &WorkerContext, path: &str) -> Result<Filesystem, Failure> {
    let output = context.run(Command::new(["stat", "-f", "--printf=%T|%a|%S", path])).await?;
    let output = String::from_utf8_lossy(&output).into_owned();
    let fields: Vec<&str> = output.trim().split('|').collect();
    let filesystem = match fields.as_slice() {
        [kind, blocks, block] => blocks
            .parse::<u64>()
            .ok()
            .zip(block.parse::<u64>().ok())
            .map(|(blocks, block)| Filesystem { kind: (*kind).to_owned(), free: blocks.saturating_mul(block) }),
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
        assert_eq!(parse_stat("regular file|8192|8|512|0|0"), Some(PathKind::File { size: 8192, allocated: 4096 }));
        assert_eq!(parse_stat("regular empty file|0|0|512|0|0"), Some(PathKind::File { size: 0, allocated: 0 }));
        assert_eq!(
            parse_stat("block special file|0|0|512|103|1f"),
            Some(PathKind::Device { number: "259:31".to_owned() })
        );
        assert_eq!(parse_stat("directory|4096|8|512|0|0"), Some(PathKind::Folder));
        assert_eq!(parse_stat("fifo|0|0|512|0|0"), Some(PathKind::Other("fifo".to_owned())));
        assert_eq!([parse_stat(""), parse_stat("regular file|x|8|512|0|0")], [None, None]);
    }
}
