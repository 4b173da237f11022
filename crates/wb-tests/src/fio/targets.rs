//! Targets of fio: private files that are created and removed, or existing files and devices.

use wb_agent::{Command, Process, Scratch};
use wb_model::Bytes;

use super::device::{self, TargetDevice};
use super::job::{FioJob, escape_path, find_unsupported_char};
use crate::attempt::worker_failure;
use crate::{Failure, WorkerContext};

/// A target that is ready: there, and whole.
#[derive(Debug)]
pub(crate) struct FioTarget {
    /// Its path.
    pub(crate) path: String,
    /// The private folder that it lies in, if we made it.
    folder: Option<Scratch>,
    /// The number of the block device that it is.
    device_number: Option<String>,
    /// The kind of the filesystem in memory that it lies on.
    memory_filesystem: Option<String>,
}

impl FioTarget {
    /// Whether it is a block device.
    pub(crate) fn is_device(&self) -> bool {
        self.device_number.is_some()
    }

    /// Removes it where it is a private file, and reports when that fails.
    pub(crate) async fn remove(self) -> Result<(), Failure> {
        match self.folder {
            Some(folder) => folder.close().await.map_err(worker_failure),
            None => Ok(()),
        }
    }

    /// What is remarkable about it.
    pub(crate) fn finding(&self) -> Option<String> {
        let kind = self.memory_filesystem.as_ref()?;
        Some(format!("`{}` is on {kind}, in memory: this measures memory, and no storage", self.path))
    }

    /// Makes sure that a device is still unused, and keeps it so for as long as the site's group lives. Cells take
    /// turns on a device, so it is kept for a sample at a time.
    pub(crate) async fn hold_exclusively(&self, site: &WorkerContext) -> Result<Option<Process>, Failure> {
        let Some(number) = &self.device_number else { return Ok(None) };
        check_unused(site, &self.path, &TargetDevice::read(site, number).await?).await?;
        device::open_exclusively(site, &self.path).await
    }
}

/// What there is at a path.
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

/// Makes the targets of these paths ready for `job`; one private file where there is no path.
pub(super) async fn prepare_targets(
    site: &WorkerContext,
    job: &FioJob,
    paths: &[String],
    allow_destroy: bool,
) -> Result<Vec<FioTarget>, Failure> {
    if paths.is_empty() {
        return Ok(vec![prepare_target(site, job, None, allow_destroy).await?]);
    }
    let mut targets = Vec::new();
    for path in paths {
        targets.push(prepare_target(site, job, Some(path), allow_destroy).await?);
    }
    Ok(targets)
}

/// Prepares the target of a path for `job`; a private file where there is no path.
pub(crate) async fn prepare_target(
    site: &WorkerContext,
    job: &FioJob,
    path: Option<&str>,
    allow_destroy: bool,
) -> Result<FioTarget, Failure> {
    let Some(path) = path else { return prepare_on_disk(site, job).await };
    let refused = |why: String| Err(Failure::refused(format!("`{path}` {why}")));
    if !path.starts_with('/') {
        return refused("is no absolute path: start it with `/`".to_owned());
    }
    match stat(site, path).await? {
        PathKind::Nothing if is_device_path(path) => refused(NO_DEVICE.to_owned()),
        PathKind::Nothing => match path.rsplit_once('/') {
            Some((parent, name)) if !name.is_empty() => {
                let parent = if parent.is_empty() { "/" } else { parent };
                match stat(site, parent).await? {
                    PathKind::Folder => prepare_private_file(site, job, Some(parent), name).await,
                    _ => refused(format!("cannot be made: there is no folder `{parent}`")),
                }
            }
            _ => refused("is no folder that is there: name one, or a file".to_owned()),
        },
        PathKind::Folder => prepare_private_file(site, job, Some(path), "fio").await,
        PathKind::File { size, allocated } => {
            prepare_existing_file(site, job, path, size.min(allocated), allow_destroy).await
        }
        PathKind::Device { number } => prepare_block_device(site, job, path, &number, allow_destroy).await,
        PathKind::Other(kind) => refused(format!("is a {kind}: name a file, a folder, or a block device")),
    }
}

const NO_DEVICE: &str = "is no device that is there: `lsblk` lists them";

/// Whether a path can only be that of a device: a file of that name would be made in memory, where devices are kept.
fn is_device_path(path: &str) -> bool {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    parts.next() == Some("dev") && parts.next().is_some_and(|folder| folder != "shm")
}

/// A private file in the worker's own folder, or where that lies in memory in `/var/tmp`.
async fn prepare_on_disk(site: &WorkerContext, job: &FioJob) -> Result<FioTarget, Failure> {
    let own = read_filesystem(site, site.group.folder()).await?;
    prepare_private_file(site, job, own.is_in_memory().then_some("/var/tmp"), "fio").await
}

/// A private file in a private folder below `base`.
async fn prepare_private_file(
    site: &WorkerContext,
    job: &FioJob,
    base: Option<&str>,
    name: &str,
) -> Result<FioTarget, Failure> {
    let folder = site.worker().new_scratch(base).await.map_err(worker_failure)?;
    let (path, on) = (folder.join(name), read_filesystem(site, folder.path()).await?);
    let memory = memory_filesystem_of(job, folder.path(), &on)?;
    if on.free < job.file_size.0 {
        let (free, size, base) = (Bytes(on.free >> 20 << 20), job.file_size, base.unwrap_or(folder.path()));
        return Err(Failure::refused(format!(
            "the file needs {size}, and {free} are free in `{base}`: see file-size and targets"
        )));
    }
    lay_out(site, job, &path, job.file_size).await?;
    Ok(FioTarget { path, folder: Some(folder), device_number: None, memory_filesystem: memory })
}

/// A file that was there before us; `whole` bytes of it are there and no holes.
async fn prepare_existing_file(
    site: &WorkerContext,
    job: &FioJob,
    path: &str,
    whole: u64,
    allow_destroy: bool,
) -> Result<FioTarget, Failure> {
    let memory = memory_filesystem_of(job, path, &read_filesystem(site, path).await?)?;
    let short = whole < job.file_size.0;
    if !allow_destroy && job.test_type.writes() {
        let what = job.test_type.name();
        return Err(Failure::refused(format!(
            "`{path}` exists, and {what} would overwrite it: allow it with allow-destroy=true, or name a path where nothing is"
        )));
    }
    if !allow_destroy && short {
        return Err(Failure::refused(format!(
            "`{path}` exists and has {whole} bytes without holes, {} are to be read: lower file-size, or let it be overwritten with allow-destroy=true",
            job.file_size.0
        )));
    }
    if short {
        lay_out(site, job, path, job.file_size).await?;
    }
    Ok(FioTarget { path: path.to_owned(), folder: None, device_number: None, memory_filesystem: memory })
}

async fn prepare_block_device(
    site: &WorkerContext,
    job: &FioJob,
    path: &str,
    number: &str,
    allow_destroy: bool,
) -> Result<FioTarget, Failure> {
    let refused = |why: String| Err(Failure::refused(format!("`{path}` is a block device{why}")));
    if !allow_destroy {
        return refused(", and what is on it will be lost: allow it with allow-destroy=true".to_owned());
    }
    let device = TargetDevice::read(site, number).await?;
    if device.read_only {
        return refused(" that is read-only".to_owned());
    }
    if device.size < job.file_size.0 {
        return refused(format!(" of {} bytes, and file-size is {}", device.size, job.file_size.0));
    }
    let target = FioTarget {
        path: path.to_owned(),
        folder: None,
        device_number: Some(number.to_owned()),
        memory_filesystem: None,
    };
    let holder = target.hold_exclusively(site).await?;
    lay_out(site, job, path, job.file_size).await?;
    if let Some(holder) = holder {
        device::release(holder).await?;
    }
    Ok(target)
}

async fn check_unused(site: &WorkerContext, path: &str, device: &TargetDevice) -> Result<(), Failure> {
    let (mounts, swaps) = (read_text(site, "/proc/self/mountinfo").await?, read_text(site, "/proc/swaps").await?);
    match device.find_use(&mounts, &swaps) {
        Some(by) => Err(Failure::refused(format!("`{path}` is a block device in use: {by}"))),
        None => Ok(()),
    }
}

/// The kind of the filesystem where it is one in memory, which direct access cannot be measured on.
fn memory_filesystem_of(job: &FioJob, path: &str, on: &Filesystem) -> Result<Option<String>, Failure> {
    let kind = &on.kind;
    match (on.is_in_memory(), job.direct) {
        (false, _) => Ok(None),
        (true, false) => Ok(Some(kind.clone())),
        (true, true) => Err(Failure::refused(format!(
            "`{path}` is on {kind}, in memory, where direct=true reaches no storage: set targets to a path on a disk, or direct=false"
        ))),
    }
}

/// Writes all of a target, so that neither holes are read nor space is found while measuring, and sees that it is
/// there. What is written is not compressible.
async fn lay_out(site: &WorkerContext, job: &FioJob, path: &str, size: Bytes) -> Result<(), Failure> {
    const LARGEST: u32 = 20;
    let block = 1u64 << size.0.trailing_zeros().min(LARGEST);
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
    site.run(command).await?;
    match stat(site, path).await? {
        PathKind::File { size: found, allocated } if found.min(allocated) < size.0 => Err(Failure::refused(format!(
            "`{path}` has {found} bytes, {allocated} of them allocated, though {} were written: this filesystem \
             compresses or removes duplicates, and would not be measured",
            size.0
        ))),
        PathKind::Nothing => Err(Failure::crashed(format!("fio wrote no `{path}`"))),
        _ => Ok(()),
    }
}

async fn stat(site: &WorkerContext, path: &str) -> Result<PathKind, Failure> {
    if let Some(character) = find_unsupported_char(path) {
        return Err(Failure::refused(format!("`{path}`: a job file cannot have {character:?} in a path")));
    }
    let said = site.run_to_end(Command::new(["stat", "-L", "--printf=%F|%s|%b|%B|%t|%T", path])).await?;
    if !said.ending.is_success() {
        let why = String::from_utf8_lossy(&said.stderr).trim().to_owned();
        let missing = why.ends_with("No such file or directory");
        return if missing { Ok(PathKind::Nothing) } else { Err(Failure::refused(why)) };
    }
    parse_stat(&String::from_utf8_lossy(&said.stdout))
        .ok_or_else(|| Failure::crashed(format!("stat says nothing of `{path}`")))
}

fn parse_stat(said: &str) -> Option<PathKind> {
    let fields: Vec<&str> = said.trim().split('|').collect();
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

async fn read_filesystem(site: &WorkerContext, path: &str) -> Result<Filesystem, Failure> {
    let said = site.run(Command::new(["stat", "-f", "--printf=%T|%a|%S", path])).await?;
    let said = String::from_utf8_lossy(&said).into_owned();
    let fields: Vec<&str> = said.trim().split('|').collect();
    let read = match fields.as_slice() {
        [kind, blocks, block] => blocks
            .parse::<u64>()
            .ok()
            .zip(block.parse::<u64>().ok())
            .map(|(blocks, block)| Filesystem { kind: (*kind).to_owned(), free: blocks.saturating_mul(block) }),
        _ => None,
    };
    read.ok_or_else(|| Failure::crashed(format!("stat says nothing of the filesystem of `{path}`")))
}

async fn read_text(site: &WorkerContext, path: &str) -> Result<String, Failure> {
    Ok(String::from_utf8_lossy(&site.get(path).await?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_among_the_devices_is_no_file_to_be_made() {
        assert!(is_device_path("/dev/nosuch") && is_device_path("//dev/disk/by-id/x"));
        assert!(!is_device_path("/dev/shm/x") && !is_device_path("/device/x") && !is_device_path("/dev"));
    }

    #[test]
    fn stats_words_are_understood() {
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
