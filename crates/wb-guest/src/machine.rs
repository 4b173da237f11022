//! The machine itself.

use std::{fs, path::Path};

use crate::{
    Outcome,
    command::{GuestError, find, output},
    kernel::Kernel,
};

/// How long it may take, in seconds: a hundred times what a start takes where nothing helps the emulation.
const LIMIT: &str = "300";

/// How much of the console an error shows.
const SHOWN: usize = 30;

/// Runs until it powers itself off.
pub(crate) fn run(kernel: &Kernel, initramfs: &Path, folder: &Path) -> Result<Outcome, GuestError> {
    let [console, said, status] = ["console", "output", "status"].map(|name| folder.join(name));
    let emulator = find("qemu-system-x86_64")?;
    let ended = output("timeout", |command| {
        command.args(["--kill-after=5", LIMIT]).arg(emulator).args(["-no-reboot", "-nodefaults"]);
        // One core of two threads; of AMD's processors QEMU makes none.
        command.args(["-accel", "tcg", "-cpu", "max,vendor=GenuineIntel", "-m", "2048"]);
        command.args(["-smp", "2,sockets=1,cores=1,threads=2"]);
        command.args(["-display", "none", "-append", "console=ttyS0 panic=-1 quiet"]);
        command.arg("-kernel").arg(kernel.image()).arg("-initrd").arg(initramfs);
        for line in [&console, &said, &status] {
            command.arg("-serial").arg(format!("file:{}", line.display()));
        }
    });
    let read = |path: &Path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let code = read(&status).ok().and_then(|status| status.trim().parse().ok());
    match (ended, code) {
        (Ok(_), Some(status)) => {
            Ok(Outcome { output: read(&said).map_err(|why| GuestError::file("read", &said, why))?, status })
        }
        (Err(GuestError::Failed { why, .. }), _) if !console.exists() => {
            Err(GuestError::Failed { program: "qemu-system-x86_64".to_owned(), why })
        }
        _ => {
            let lines = read(&console).unwrap_or_default() + &read(&said).unwrap_or_default();
            let lines: Vec<_> = lines.lines().collect();
            Err(GuestError::Unfinished { console: lines[lines.len().saturating_sub(SHOWN)..].join("\n") })
        }
    }
}
