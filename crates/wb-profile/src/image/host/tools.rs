//! Finds and runs the host's programs that create and inspect images.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde::Deserialize;
use wb_model::Bytes;
use wb_sys::programs;

use crate::image::{ImageFailure, ImageFormat};

/// A program and its Debian package.
pub(super) struct HostTool {
    pub(super) name: &'static str,
    pub(super) package: &'static str,
}

pub(super) const QEMU_IMG: HostTool = HostTool { name: "qemu-img", package: "qemu-utils" };
pub(super) const MMDEBSTRAP: HostTool = HostTool { name: "mmdebstrap", package: "mmdebstrap" };
pub(super) const MKE2FS: HostTool = HostTool { name: "mke2fs", package: "e2fsprogs" };

/// Number of last output lines quoted when a program fails.
const LAST_LINES: usize = 5;

/// Finds a program in PATH and in the folders that only root's PATH has.
pub(super) fn find(tool: &HostTool) -> Result<PathBuf, ImageFailure> {
    programs::find_system(tool.name)
        .ok_or_else(|| ImageFailure::ToolNotFound { tool: tool.name.to_owned(), package: tool.package.to_owned() })
}

/// Runs a program successfully to its end; returns its standard output.
pub(super) fn run(tool: &HostTool, command: &mut Command) -> Result<Vec<u8>, ImageFailure> {
    let output = output(tool, command)?;
    if output.status.success() { Ok(output.stdout) } else { Err(failure(tool, &output)) }
}

/// Runs a program to its end, whatever its exit status.
pub(super) fn output(tool: &HostTool, command: &mut Command) -> Result<Output, ImageFailure> {
    let output = command.stdin(Stdio::null()).output();
    output
        .map_err(|error| ImageFailure::File { path: tool.name.to_owned(), why: format!("cannot be started: {error}") })
}

pub(super) fn failure(tool: &HostTool, output: &Output) -> ImageFailure {
    let stderr = String::from_utf8_lossy(&output.stderr);
    // Skip informational lines.
    let lines = stderr.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("I: "));
    let lines: Vec<&str> = lines.collect();
    let message = lines[lines.len().saturating_sub(LAST_LINES)..].join("; ");
    ImageFailure::Tool { tool: tool.name.to_owned(), ending: output.status.to_string(), output: message }
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct QemuImgInfo {
    format: String,
    backing_filename: Option<String>,
}

/// The format of an image; refuses overlays and unsupported formats.
pub(super) fn format(image: &Path) -> Result<ImageFormat, ImageFailure> {
    let path = image.display().to_string();
    let mut command = Command::new(find(&QEMU_IMG)?);
    let output = run(&QEMU_IMG, command.args(["info", "--output=json"]).arg(image))?;
    let info: QemuImgInfo =
        serde_json::from_slice(&output).map_err(|error| ImageFailure::file(image, &error.into()))?;
    if let Some(backing) = info.backing_filename {
        return Err(ImageFailure::Overlay { path, backing });
    }
    match info.format.as_str() {
        "qcow2" => Ok(ImageFormat::Qcow2),
        "raw" => Ok(ImageFormat::Raw),
        other => Err(ImageFailure::Format { path, format: other.to_owned() }),
    }
}

pub(super) fn require_space(item: &str, folder: &Path, needed: Bytes) -> Result<(), ImageFailure> {
    let free = free(folder)?;
    if free >= needed {
        return Ok(());
    }
    Err(no_space(item, folder, needed, free))
}

pub(super) fn free(folder: &Path) -> Result<Bytes, ImageFailure> {
    let stat = rustix::fs::statvfs(folder).map_err(|error| ImageFailure::file(folder, &error.into()))?;
    Ok(Bytes(stat.f_bavail.saturating_mul(stat.f_frsize)))
}

pub(super) fn no_space(item: &str, folder: &Path, needed: Bytes, free: Bytes) -> ImageFailure {
    ImageFailure::NoSpace { item: item.to_owned(), folder: folder.display().to_string(), required: needed, free }
}
