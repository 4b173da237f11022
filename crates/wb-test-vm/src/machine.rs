use std::{fs, path::Path};

use crate::{
    ScriptOutput,
    command::{GuestError, find, output},
    kernel::Kernel,
};

/// Time limit in seconds: a hundred times the duration of an emulated boot.
const TIME_LIMIT_SECONDS: &str = "300";

/// Maximum number of console lines that an error quotes.
const MAX_CONSOLE_LINES: usize = 30;

/// Runs the machine until it powers itself off.
pub(crate) fn run(kernel: &Kernel, initramfs: &Path, folder: &Path) -> Result<ScriptOutput, GuestError> {
    let [console, output_file, status] = ["console", "output", "status"].map(|name| folder.join(name));
    let emulator = find("qemu-system-x86_64")?;
    let ended = output("timeout", |command| {
        command.args(["--kill-after=5", TIME_LIMIT_SECONDS]).arg(emulator).args(["-no-reboot", "-nodefaults"]);
        // One core with two threads, which QEMU does not emulate for AMD's processors.
        command.args(["-accel", "tcg", "-cpu", "max,vendor=GenuineIntel", "-m", "2048"]);
        command.args(["-smp", "2,sockets=1,cores=1,threads=2"]);
        command.args(["-display", "none", "-append", "console=ttyS0 panic=-1 quiet"]);
        command.arg("-kernel").arg(kernel.image()).arg("-initrd").arg(initramfs);
        for line in [&console, &output_file, &status] {
            command.arg("-serial").arg(format!("file:{}", line.display()));
        }
    });
    let read = |path: &Path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let code = read(&status).ok().and_then(|status| status.trim().parse().ok());
    match (ended, code) {
        (Ok(_), Some(status)) => Ok(ScriptOutput {
            output: read(&output_file).map_err(|error| GuestError::file("read", &output_file, error))?,
            status,
        }),
        (Err(GuestError::Failed { output: reason, .. }), _) if !console.exists() => {
            Err(GuestError::Failed { program: "qemu-system-x86_64".to_owned(), output: reason })
        }
        _ => {
            let lines = read(&console).unwrap_or_default() + &read(&output_file).unwrap_or_default();
            let lines: Vec<_> = lines.lines().collect();
            Err(GuestError::ScriptNotFinished {
                console: lines[lines.len().saturating_sub(MAX_CONSOLE_LINES)..].join("\n"),
            })
        }
    }
}
