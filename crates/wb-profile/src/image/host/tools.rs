//! Programs of the host that images are made and looked at with.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde::Deserialize;
use wb_model::Bytes;

use crate::image::{ImageFailure, ImageFormat};

/// A program, and the package that brings it on Debian.
pub(super) struct HostTool {
    pub(super) name: &'static str,
    pub(super) package: &'static str,
}

pub(super) const QEMU_IMG: HostTool = HostTool { name: "qemu-img", package: "qemu-utils" };
pub(super) const MMDEBSTRAP: HostTool = HostTool { name: "mmdebstrap", package: "mmdebstrap" };
pub(super) const MKE2FS: HostTool = HostTool { name: "mke2fs", package: "e2fsprogs" };

/// How many lines of what a program said at its end are told.
const LAST_LINES: usize = 5;

/// Where a program is, also where only root's path leads.
pub(super) fn find(tool: &HostTool) -> Result<PathBuf, ImageFailure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    let is_program =
        |path: &PathBuf| path.metadata().is_ok_and(|of| of.is_file() && of.permissions().mode() & 0o111 != 0);
    let found = folders.map(|folder| folder.join(tool.name)).find(is_program);
    found.ok_or_else(|| ImageFailure::ToolNotFound { tool: tool.name.to_owned(), package: tool.package.to_owned() })
}

/// Runs one to its end; what it wrote to standard output.
pub(super) fn run(tool: &HostTool, command: &mut Command) -> Result<Vec<u8>, ImageFailure> {
    let output = output(tool, command)?;
    if output.status.success() { Ok(output.stdout) } else { Err(failure(tool, &output)) }
}

/// Runs one to its end, however that is.
pub(super) fn output(tool: &HostTool, command: &mut Command) -> Result<Output, ImageFailure> {
    let output = command.stdin(Stdio::null()).output();
    output.map_err(|error| ImageFailure::File {
        path: tool.name.to_owned(),
        why: format!("it cannot be started: {error}"),
    })
}

/// That one ended as it should not.
pub(super) fn failure(tool: &HostTool, output: &Output) -> ImageFailure {
    let said = String::from_utf8_lossy(&output.stderr);
    // What it only tells of its steps is not why it ended.
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("I: "));
    let lines: Vec<&str> = lines.collect();
    let said = lines[lines.len().saturating_sub(LAST_LINES)..].join("; ");
    ImageFailure::Tool { tool: tool.name.to_owned(), ending: output.status.to_string(), said }
}

/// What `qemu-img info` says that matters here.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct QemuImgInfo {
    format: String,
    backing_filename: Option<String>,
}

/// The format of an image that stands alone.
pub(super) fn format(image: &Path) -> Result<ImageFormat, ImageFailure> {
    let path = image.display().to_string();
    let mut command = Command::new(find(&QEMU_IMG)?);
    let told = run(&QEMU_IMG, command.args(["info", "--output=json"]).arg(image))?;
    let info: QemuImgInfo = serde_json::from_slice(&told).map_err(|error| ImageFailure::file(image, &error.into()))?;
    if let Some(backing) = info.backing_filename {
        return Err(ImageFailure::Overlay { path, backing });
    }
    match info.format.as_str() {
        "qcow2" => Ok(ImageFormat::Qcow2),
        "raw" => Ok(ImageFormat::Raw),
        other => Err(ImageFailure::Format { path, format: other.to_owned() }),
    }
}

/// Refuses to begin what would not fit.
pub(super) fn require_space(what: &str, folder: &Path, needed: Bytes) -> Result<(), ImageFailure> {
    let free = free(folder)?;
    if free >= needed {
        return Ok(());
    }
    Err(no_space(what, folder, needed, free))
}

/// What there is room for in a folder.
pub(super) fn free(folder: &Path) -> Result<Bytes, ImageFailure> {
    let of = rustix::fs::statvfs(folder).map_err(|error| ImageFailure::file(folder, &error.into()))?;
    Ok(Bytes(of.f_bavail.saturating_mul(of.f_frsize)))
}

pub(super) fn no_space(what: &str, folder: &Path, needed: Bytes, free: Bytes) -> ImageFailure {
    ImageFailure::NoSpace { what: what.to_owned(), folder: folder.display().to_string(), needed, free }
}
