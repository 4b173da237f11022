//! Builds a Debian image from packages: a small system that starts quickly, runs an ssh server and nothing else.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use wb_model::{Bytes, Sha256};

use crate::image::{BaseImage, BuiltImage, GuestBoot, ImageFailure, ImageFormat, ImageSpec};

use super::ProgressWriter;
use super::prepare::{hash_image, make_readable};
use super::store::remove_all;
use super::tools::{self, MKE2FS, MMDEBSTRAP, QEMU_IMG};

const BASE_PACKAGES: [&str; 6] = ["systemd-sysv", "udev", "dbus", "openssh-server", "iproute2", "ca-certificates"];
const KERNEL: &str = if cfg!(target_arch = "aarch64") { "linux-image-cloud-arm64" } else { "linux-image-cloud-amd64" };
const LABEL: &str = "weighbridge";
const ARGUMENTS: &str = "root=LABEL=weighbridge rw console=ttyS0 net.ifnames=0 quiet";
/// Free space that the build requires, without the requested packages.
const REQUIRED_SPACE: Bytes = Bytes(2 << 30);

/// Path, mode and content of files that are added.
const FILES: [(&str, u32, &str); 8] = [
    ("etc/fstab", 0o644, include_str!("debian/fstab")),
    ("etc/hostname", 0o644, "weighbridge\n"),
    ("etc/hosts", 0o644, "127.0.0.1 localhost\n127.0.1.1 weighbridge\n::1 localhost\n"),
    // Empty, so that each guest generates its own, without the dialogue of a first boot.
    ("etc/machine-id", 0o444, ""),
    ("etc/ssh/sshd_config.d/weighbridge.conf", 0o644, include_str!("debian/sshd.conf")),
    ("etc/systemd/network/80-weighbridge.network", 0o644, include_str!("debian/network")),
    ("etc/systemd/system/weighbridge-seed.service", 0o644, include_str!("debian/seed.service")),
    ("usr/lib/weighbridge/seed", 0o755, include_str!("debian/seed")),
];

/// The enabled units as links and their targets; all others are disabled.
const ENABLED_UNITS: [(&str, &str); 3] = [
    ("multi-user.target.wants/ssh.service", "/lib/systemd/system/ssh.service"),
    ("multi-user.target.wants/systemd-networkd.service", "/lib/systemd/system/systemd-networkd.service"),
    ("multi-user.target.wants/weighbridge-seed.service", "/etc/systemd/system/weighbridge-seed.service"),
];

const WANTS_FOLDERS: [&str; 3] = ["multi-user.target.wants", "timers.target.wants", "graphical.target.wants"];

/// A hash of everything that determines the image apart from its parameters: another recipe yields another image.
pub(super) fn recipe() -> String {
    Sha256::digest(format!("{BASE_PACKAGES:?}{KERNEL}{ARGUMENTS}{FILES:?}{ENABLED_UNITS:?}").as_bytes())
        .as_str()
        .to_owned()
}

/// Finds the programs that build an image, and requires root: `mmdebstrap`, `mke2fs`, `qemu-img`.
pub(super) fn require_tools() -> Result<[PathBuf; 3], ImageFailure> {
    let [mmdebstrap, mke2fs, qemu_img] = [&MMDEBSTRAP, &MKE2FS, &QEMU_IMG].map(tools::find);
    let tools = [mmdebstrap?, mke2fs?, qemu_img?];
    if rustix::process::geteuid().is_root() { Ok(tools) } else { Err(ImageFailure::NotRoot) }
}

/// Paths in the result are relative to the folder.
pub(super) fn build(
    folder: &Path,
    disk: &str,
    image: &BuiltImage,
    writer: &mut ProgressWriter,
) -> Result<BaseImage, ImageFailure> {
    // Check all requirements before the build, which takes a minute.
    let [mmdebstrap, mke2fs, qemu_img] = require_tools()?;
    let name = ImageSpec::Built(image.clone()).to_string();
    tools::require_space(&name, folder, REQUIRED_SPACE)?;

    let root = folder.join("root");
    writer.report_step(format!("unpacking the packages of {name}, which takes about a minute"));
    unpack(&mmdebstrap, image, &root)?;
    configure_root(&root).map_err(|error| ImageFailure::file(&root, &error))?;
    let boot = GuestBoot::Kernel {
        kernel: copy_out(&root, "boot", "vmlinuz-", &folder.join("kernel"))?,
        initrd: copy_out(&root, "boot", "initrd.img-", &folder.join("initrd"))?,
        arguments: ARGUMENTS.to_owned(),
    };

    writer.report_step(format!("creating the disk of {name}"));
    let raw = folder.join("raw");
    let sparse = OpenOptions::new().create_new(true).write(true).open(&raw).and_then(|file| file.set_len(image.size.0));
    sparse.map_err(|error| ImageFailure::file(&raw, &error))?;
    // Initialise everything now, so that the guest's kernel does not do it in the background during a measurement.
    let options = ["-q", "-t", "ext4", "-L", LABEL, "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0", "-d"];
    tools::run(&MKE2FS, Command::new(mke2fs).args(options).args([&root, &raw]))?;
    let target = folder.join(disk);
    let mut convert = Command::new(qemu_img);
    tools::run(&QEMU_IMG, convert.args(["convert", "-f", "raw", "-O", "qcow2"]).args([&raw, &target]))?;
    remove_all(&raw)?;
    remove_all(&root)?;
    let (sha256, format) = hash_image(&target, ImageFormat::Qcow2)?;
    Ok(BaseImage { name, path: disk.to_owned(), format, sha256, boot })
}

fn unpack(mmdebstrap: &Path, image: &BuiltImage, root: &Path) -> Result<(), ImageFailure> {
    let packages = BASE_PACKAGES.into_iter().chain([KERNEL]).chain(image.packages.iter().map(String::as_str));
    let include = format!("--include={}", packages.collect::<Vec<_>>().join(","));
    let mut command = Command::new(mmdebstrap);
    command.args(["--mode=root", "--variant=minbase", &include, &image.built]).arg(root).args(mirror());
    command.env("DEBIAN_FRONTEND", "noninteractive");
    let output = tools::output(&MMDEBSTRAP, &mut command)?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    let packages: Vec<String> = missing_packages(&message).map(str::to_owned).collect();
    Err(if packages.is_empty() { tools::failure(&MMDEBSTRAP, &output) } else { ImageFailure::NoPackages { packages } })
}

/// The packages that apt reports as unknown.
fn missing_packages(message: &str) -> impl Iterator<Item = &str> {
    message.lines().filter_map(|line| line.strip_prefix("E: Unable to locate package ")).map(str::trim)
}

/// The Debian mirror that this machine uses, if any: the first archive labelled Debian in apt's sources.
fn mirror() -> Option<String> {
    let mut command = Command::new("apt-get");
    let listed = command.args(["indextargets", "Created-By: Packages", "--format", "$(LABEL) $(REPO_URI)"]).output();
    let listed = String::from_utf8(listed.ok()?.stdout).ok()?;
    listed.lines().find_map(|line| line.strip_prefix("Debian ")).map(str::to_owned)
}

/// Configures the unpacked system: adds our files, and removes this machine's settings, ssh keys and other services.
fn configure_root(root: &Path) -> io::Result<()> {
    let etc = root.join("etc");
    for entry in fs::read_dir(etc.join("ssh"))?.flatten() {
        if entry.file_name().to_string_lossy().starts_with("ssh_host_") {
            fs::remove_file(entry.path())?;
        }
    }
    // mmdebstrap copies these from this machine.
    for path in ["etc/resolv.conf", "etc/hostname", "etc/machine-id"] {
        remove_if_exists(&root.join(path))?;
    }
    for folder in ["var/lib/apt/lists", "var/cache/apt", "var/log"] {
        remove_files_below(&root.join(folder))?;
    }
    let units = etc.join("systemd/system");
    for wants in WANTS_FOLDERS {
        remove_files_below(&units.join(wants))?;
    }
    for (path, mode, text) in FILES {
        write(&root.join(path), mode, text)?;
    }
    for (link, unit) in ENABLED_UNITS {
        let link = units.join(link);
        fs::create_dir_all(link.parent().unwrap_or(&units))?;
        symlink(unit, link)?;
    }
    Ok(())
}

fn write(path: &Path, mode: u32, text: &str) -> io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    remove_if_exists(path)?;
    let mut file = OpenOptions::new().create_new(true).write(true).mode(mode).open(path)?;
    io::Write::write_all(&mut file, text.as_bytes())
}

fn remove_if_exists(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes all files below a folder and leaves its folders, which services expect.
fn remove_files_below(folder: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() { remove_files_below(&entry.path())? } else { fs::remove_file(entry.path())? }
    }
    Ok(())
}

/// Copies the file whose name starts with `prefix` out of the system; returns its new name.
fn copy_out(root: &Path, folder: &str, prefix: &str, to: &Path) -> Result<String, ImageFailure> {
    let from = root.join(folder);
    let failed = |error: io::Error| ImageFailure::file(&from, &error);
    let entries = fs::read_dir(&from).map_err(failed)?.flatten();
    let matches = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix));
    let missing = || ImageFailure::Missing { path: from.join(format!("{prefix}*")).display().to_string() };
    let file = entries.map(|entry| entry.path()).filter(matches).max().ok_or_else(missing)?;
    fs::copy(&file, to).map_err(failed)?;
    make_readable(to)?;
    Ok(to.file_name().unwrap_or_default().to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_packages_are_extracted_from_apts_output() {
        let message =
            "Reading package lists...\nE: Unable to locate package nosuch\nE: Unable to locate package other\n";
        assert_eq!(missing_packages(message).collect::<Vec<_>>(), ["nosuch", "other"]);
        assert_eq!(missing_packages("E: no space left").count(), 0);
    }
}
