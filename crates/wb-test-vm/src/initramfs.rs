//! Builds the initramfs of a virtual machine: BusyBox, kernel modules, files and the script.

use std::{
    fs::{self, File},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use crate::{
    GuestScript,
    command::{GuestError, find, output},
    kernel::Kernel,
};

/// The init script. Serial ports: the first has the console, the second the script's output, the third its exit code.
const INIT: &str = r#"#!/bin/busybox sh
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm
mount -t tmpfs shm /dev/shm
stty -F /dev/ttyS1 raw
stty -F /dev/ttyS2 raw
ip link set lo up
modprobe -a $(cat /modules) || poweroff -f
cd /tmp
sh /script </dev/null >/dev/ttyS1 2>&1
echo $? >/dev/ttyS2
poweroff -f
"#;

pub(crate) fn build(errand: &GuestScript<'_>, kernel: &Kernel, folder: &Path) -> Result<PathBuf, GuestError> {
    let root = folder.join("root");
    for name in ["bin", "proc", "sys", "dev", "tmp", "lib"] {
        let path = root.join(name);
        fs::create_dir_all(&path).map_err(|error| GuestError::file("create", &path, error))?;
    }
    copy(&find("busybox")?, &root.join("bin/busybox"))?;
    for (file, target) in errand.files {
        copy(file, &root.join(target))?;
    }
    write(&root.join("script"), errand.script)?;
    write(&root.join("modules"), &errand.modules.join(" "))?;
    write(&root.join("init"), INIT)?;
    make_executable(&root.join("init"))?;
    copy_modules(errand.modules, kernel, &root)?;
    pack(&root, folder)
}

/// Copies the modules with their dependencies, and generates their index.
fn copy_modules(names: &[&str], kernel: &Kernel, root: &Path) -> Result<(), GuestError> {
    let lib = root.join("lib/modules").join(&kernel.version);
    fs::create_dir_all(&lib).map_err(|error| GuestError::file("create", &lib, error))?;
    for name in names {
        let lines = output("modprobe", |command| {
            command.arg("--dirname").arg(&kernel.root).args(["--set-version", &kernel.version, "--show-depends", name]);
        })?;
        for path in lines.lines().filter_map(|line| line.strip_prefix("insmod ")).map(|path| Path::new(path.trim())) {
            let relative = path.strip_prefix(&kernel.root).unwrap_or(path);
            copy(path, &root.join(relative))?;
        }
    }
    output("depmod", |command| _ = command.arg("--basedir").arg(root).arg(&kernel.version)).map(drop)
}

fn pack(root: &Path, folder: &Path) -> Result<PathBuf, GuestError> {
    let archive = folder.join("initramfs");
    let mut names = String::new();
    list(root, Path::new("."), &mut names)?;
    let list_file = folder.join("names");
    write(&list_file, &names)?;
    let open =
        |path: &Path, opened: std::io::Result<File>| opened.map_err(|error| GuestError::file("open", path, error));
    let (input, output_file) = (open(&list_file, File::open(&list_file))?, open(&archive, File::create(&archive))?);
    output("cpio", |command| {
        command
            .args(["--create", "--format=newc", "--owner=+0:+0", "--quiet"])
            .current_dir(root)
            .stdin(input)
            .stdout(output_file);
    })?;
    Ok(archive)
}

/// Lists every path below a folder, folders before their contents.
fn list(root: &Path, folder: &Path, names: &mut String) -> Result<(), GuestError> {
    let read = |error| GuestError::file("read", &root.join(folder), error);
    for entry in fs::read_dir(root.join(folder)).map_err(read)? {
        let entry = entry.map_err(read)?;
        let path = folder.join(entry.file_name());
        names.push_str(&format!("{}\n", path.display()));
        if entry.file_type().map_err(read)?.is_dir() {
            list(root, &path, names)?;
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), GuestError> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(|error| GuestError::file("create", folder, error))?;
    }
    fs::copy(from, to).map(drop).map_err(|error| GuestError::file("copy", from, error))
}

fn write(path: &Path, text: &str) -> Result<(), GuestError> {
    fs::write(path, text).map_err(|error| GuestError::file("write", path, error))
}

fn make_executable(path: &Path) -> Result<(), GuestError> {
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(path, mode).map_err(|error| GuestError::file("make executable", path, error))
}
