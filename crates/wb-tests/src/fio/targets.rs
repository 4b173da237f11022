//! What fio works on: made by us and removed after, or what is there, never overwritten unasked.

use wb_agent::{Command, Process, Scratch};
use wb_model::Bytes;

use super::device::{self, Device};
use super::job::{Job, escaped, unspeakable};
use crate::attempt::lost;
use crate::{Failure, Site};

/// A target that is ready: there, and whole.
#[derive(Debug)]
pub(crate) struct Target {
    /// Its path.
    pub(crate) path: String,
    /// The private folder that it lies in, if we made it.
    folder: Option<Scratch>,
    /// The number of the block device that it is.
    device: Option<String>,
    /// The kind of the filesystem in memory that it lies on.
    memory: Option<String>,
}

impl Target {
    /// Whether it is a block device.
    pub(crate) fn is_device(&self) -> bool {
        self.device.is_some()
    }

    /// Removes it where it is a private file, and reports when that fails.
    pub(crate) async fn remove(self) -> Result<(), Failure> {
        match self.folder {
            Some(folder) => folder.close().await.map_err(lost),
            None => Ok(()),
        }
    }

    /// What is remarkable about it.
    pub(crate) fn finding(&self) -> Option<String> {
        let kind = self.memory.as_ref()?;
        Some(format!("`{}` is on {kind}, in memory: this measures memory, and no storage", self.path))
    }

    /// Makes sure that a device is still unused, and keeps it so for as long as the site's group lives. Cells take
    /// turns on a device, so it is kept for a sample at a time.
    pub(crate) async fn hold(&self, site: &Site) -> Result<Option<Process>, Failure> {
        let Some(number) = &self.device else { return Ok(None) };
        unused(site, &self.path, &Device::of(site, number).await?).await?;
        device::hold(site, &self.path).await
    }
}

/// What there is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Found {
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
    fn in_memory(&self) -> bool {
        ["tmpfs", "ramfs"].contains(&self.kind.as_str())
    }
}

/// Makes the targets of these paths ready for `job`; one private file where there is no path.
pub(super) async fn make_ready(
    site: &Site,
    job: &Job,
    paths: &[String],
    allow_destroy: bool,
) -> Result<Vec<Target>, Failure> {
    if paths.is_empty() {
        return Ok(vec![make_one_ready(site, job, None, allow_destroy).await?]);
    }
    let mut targets = Vec::new();
    for path in paths {
        targets.push(make_one_ready(site, job, Some(path), allow_destroy).await?);
    }
    Ok(targets)
}

/// Prepares the target of a path for `job`; a private file where there is no path.
pub(crate) async fn make_one_ready(
    site: &Site,
    job: &Job,
    path: Option<&str>,
    allow_destroy: bool,
) -> Result<Target, Failure> {
    let Some(path) = path else { return on_some_disk(site, job).await };
    let refused = |why: String| Err(Failure::refused(format!("`{path}` {why}")));
    if !path.starts_with('/') {
        return refused("is no absolute path: start it with `/`".to_owned());
    }
    match find(site, path).await? {
        Found::Nothing if names_device(path) => refused(NO_DEVICE.to_owned()),
        Found::Nothing => match path.rsplit_once('/') {
            Some((parent, name)) if !name.is_empty() => {
                let parent = if parent.is_empty() { "/" } else { parent };
                match find(site, parent).await? {
                    Found::Folder => private(site, job, Some(parent), name).await,
                    _ => refused(format!("cannot be made: there is no folder `{parent}`")),
                }
            }
            _ => refused("is no folder that is there: name one, or a file".to_owned()),
        },
        Found::Folder => private(site, job, Some(path), "fio").await,
        Found::File { size, allocated } => existing(site, job, path, size.min(allocated), allow_destroy).await,
        Found::Device { number } => block_device(site, job, path, &number, allow_destroy).await,
        Found::Other(kind) => refused(format!("is a {kind}: name a file, a folder, or a block device")),
    }
}

const NO_DEVICE: &str = "is no device that is there: `lsblk` lists them";

/// Whether a path can only be that of a device: a file of that name would be made in memory, where devices are kept.
fn names_device(path: &str) -> bool {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    parts.next() == Some("dev") && parts.next().is_some_and(|folder| folder != "shm")
}

/// A private file in the worker's own folder, or where that lies in memory in `/var/tmp`.
async fn on_some_disk(site: &Site, job: &Job) -> Result<Target, Failure> {
    let own = filesystem(site, site.group.folder()).await?;
    private(site, job, own.in_memory().then_some("/var/tmp"), "fio").await
}

/// A private file in a private folder below `base`.
async fn private(site: &Site, job: &Job, base: Option<&str>, name: &str) -> Result<Target, Failure> {
    let folder = site.worker().scratch(base).await.map_err(lost)?;
    let (path, on) = (folder.join(name), filesystem(site, folder.path()).await?);
    let memory = in_memory(job, folder.path(), &on)?;
    if on.free < job.file_size.0 {
        let (free, size, base) = (Bytes(on.free >> 20 << 20), job.file_size, base.unwrap_or(folder.path()));
        return Err(Failure::refused(format!(
            "the file needs {size}, and {free} are free in `{base}`: see file-size and targets"
        )));
    }
    lay_out(site, job, &path, job.file_size).await?;
    Ok(Target { path, folder: Some(folder), device: None, memory })
}

/// A file that was there before us; `whole` bytes of it are there and no holes.
async fn existing(site: &Site, job: &Job, path: &str, whole: u64, allow_destroy: bool) -> Result<Target, Failure> {
    let memory = in_memory(job, path, &filesystem(site, path).await?)?;
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
    Ok(Target { path: path.to_owned(), folder: None, device: None, memory })
}

async fn block_device(
    site: &Site,
    job: &Job,
    path: &str,
    number: &str,
    allow_destroy: bool,
) -> Result<Target, Failure> {
    let refused = |why: String| Err(Failure::refused(format!("`{path}` is a block device{why}")));
    if !allow_destroy {
        return refused(", and what is on it will be lost: allow it with allow-destroy=true".to_owned());
    }
    let device = Device::of(site, number).await?;
    if device.read_only {
        return refused(" that is read-only".to_owned());
    }
    if device.size < job.file_size.0 {
        return refused(format!(" of {} bytes, and file-size is {}", device.size, job.file_size.0));
    }
    let target = Target { path: path.to_owned(), folder: None, device: Some(number.to_owned()), memory: None };
    let holder = target.hold(site).await?;
    lay_out(site, job, path, job.file_size).await?;
    if let Some(holder) = holder {
        device::let_go(holder).await?;
    }
    Ok(target)
}

async fn unused(site: &Site, path: &str, device: &Device) -> Result<(), Failure> {
    let (mounts, swaps) = (text(site, "/proc/self/mountinfo").await?, text(site, "/proc/swaps").await?);
    match device.used_by(&mounts, &swaps) {
        Some(by) => Err(Failure::refused(format!("`{path}` is a block device in use: {by}"))),
        None => Ok(()),
    }
}

/// The kind of the filesystem where it is one in memory, which direct access cannot be measured on.
fn in_memory(job: &Job, path: &str, on: &Filesystem) -> Result<Option<String>, Failure> {
    let kind = &on.kind;
    match (on.in_memory(), job.direct) {
        (false, _) => Ok(None),
        (true, false) => Ok(Some(kind.clone())),
        (true, true) => Err(Failure::refused(format!(
            "`{path}` is on {kind}, in memory, where direct=true reaches no storage: set targets to a path on a disk, or direct=false"
        ))),
    }
}

/// Writes all of a target, so that neither holes are read nor space is found while measuring, and sees that it is
/// there. What is written is not compressible.
async fn lay_out(site: &Site, job: &Job, path: &str, size: Bytes) -> Result<(), Failure> {
    const LARGEST: u32 = 20;
    let block = 1u64 << size.0.trailing_zeros().min(LARGEST);
    let mut command = Command::new(["fio", "--name=layout", "--rw=write", "--ioengine=psync", "--end_fsync=1"]);
    for (option, value) in [
        ("filename", escaped(path)),
        ("size", size.0.to_string()),
        ("bs", block.to_string()),
        ("direct", u8::from(job.direct && block >= 4096).to_string()),
        ("fallocate", "none".to_owned()),
        ("refill_buffers", "1".to_owned()),
        ("eta", "never".to_owned()),
    ] {
        command = command.arg(format!("--{option}={value}"));
    }
    site.succeed(command).await?;
    match find(site, path).await? {
        Found::File { size: found, allocated } if found.min(allocated) < size.0 => Err(Failure::refused(format!(
            "`{path}` has {found} bytes, {allocated} of them allocated, though {} were written: this filesystem \
             compresses or removes duplicates, and would not be measured",
            size.0
        ))),
        Found::Nothing => Err(Failure::crashed(format!("fio wrote no `{path}`"))),
        _ => Ok(()),
    }
}

async fn find(site: &Site, path: &str) -> Result<Found, Failure> {
    if let Some(character) = unspeakable(path) {
        return Err(Failure::refused(format!("`{path}`: a job file cannot have {character:?} in a path")));
    }
    let said = site.finish(Command::new(["stat", "-L", "--printf=%F|%s|%b|%B|%t|%T", path])).await?;
    if !said.ending.is_success() {
        let why = String::from_utf8_lossy(&said.stderr).trim().to_owned();
        let missing = why.ends_with("No such file or directory");
        return if missing { Ok(Found::Nothing) } else { Err(Failure::refused(why)) };
    }
    found(&String::from_utf8_lossy(&said.stdout))
        .ok_or_else(|| Failure::crashed(format!("stat says nothing of `{path}`")))
}

fn found(said: &str) -> Option<Found> {
    let fields: Vec<&str> = said.trim().split('|').collect();
    let [kind, size, blocks, block, major, minor] = fields.as_slice() else { return None };
    let number = |text: &str| text.parse::<u64>().ok();
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
    Some(match *kind {
        "regular file" | "regular empty file" => {
            Found::File { size: number(size)?, allocated: number(blocks)?.checked_mul(number(block)?)? }
        }
        "directory" => Found::Folder,
        "block special file" => Found::Device { number: format!("{}:{}", hexadecimal(major)?, hexadecimal(minor)?) },
        other => Found::Other(other.to_owned()),
    })
}

async fn filesystem(site: &Site, path: &str) -> Result<Filesystem, Failure> {
    let said = site.succeed(Command::new(["stat", "-f", "--printf=%T|%a|%S", path])).await?;
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

async fn text(site: &Site, path: &str) -> Result<String, Failure> {
    Ok(String::from_utf8_lossy(&site.get(path).await?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_among_the_devices_is_no_file_to_be_made() {
        assert!(names_device("/dev/nosuch") && names_device("//dev/disk/by-id/x"));
        assert!(!names_device("/dev/shm/x") && !names_device("/device/x") && !names_device("/dev"));
    }

    #[test]
    fn stats_words_are_understood() {
        assert_eq!(found("regular file|8192|8|512|0|0"), Some(Found::File { size: 8192, allocated: 4096 }));
        assert_eq!(found("regular empty file|0|0|512|0|0"), Some(Found::File { size: 0, allocated: 0 }));
        assert_eq!(found("block special file|0|0|512|103|1f"), Some(Found::Device { number: "259:31".to_owned() }));
        assert_eq!(found("directory|4096|8|512|0|0"), Some(Found::Folder));
        assert_eq!(found("fifo|0|0|512|0|0"), Some(Found::Other("fifo".to_owned())));
        assert_eq!([found(""), found("regular file|x|8|512|0|0")], [None, None]);
    }
}
