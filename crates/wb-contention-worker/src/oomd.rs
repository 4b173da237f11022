//! Daemons that kill processes when memory becomes scarce.

use wb_agent::{Command, Worker, WorkerError};
use wb_sys::undo::ManagedResource;

const UNITS: [&str; 3] = ["systemd-oomd.service", "earlyoom.service", "nohang.service"];

/// The units that are active; none where there is no systemd.
pub(super) async fn active_units(worker: &Worker) -> Result<Vec<&'static str>, WorkerError> {
    let mut active = Vec::new();
    if worker.which("systemctl", &[]).await?.is_some() {
        for unit in UNITS {
            if worker.succeeds(Command::new(["systemctl", "is-active", "--quiet", unit])).await? {
                active.push(unit);
            }
        }
    }
    Ok(active)
}

/// A resource whose state is whether a unit runs: `active` or [`STOPPED`].
pub(super) fn unit_step(unit: &str) -> ManagedResource {
    let words = |script: &str, arguments: &[&str]| {
        ["sh", "-c", script, "sh"].iter().chain(arguments).map(|word| (*word).to_owned()).collect()
    };
    ManagedResource::Command {
        name: unit.to_owned(),
        read: words("systemctl is-active --quiet \"$1\" && echo active || echo stopped", &[unit]),
        write: words("case $1 in active) systemctl start \"$2\";; *) systemctl stop \"$2\";; esac", &["{}", unit]),
    }
}

pub(super) const STOPPED: &str = "stopped\n";
