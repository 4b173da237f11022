//! The services that the machine cannot do without, and whose memory a hog must not take: ssh, the journal, the message
//! bus (the services of the host that rd-agent of resctl-demo protects).

use std::collections::BTreeMap;

use wb_agent::{Command, Worker, WorkerError};
use wb_model::Nanos;

use super::files::read_or_empty;

/// Units of systemd; ssh has two names.
const UNITS: [&str; 6] =
    ["systemd-journald.service", "sshd.service", "ssh.service", "sssd.service", "dbus.service", "dbus-broker.service"];
const LIMIT: Nanos = Nanos(10_000_000_000);

/// The groups at the top with the services that run in them; empty without systemd.
pub(super) async fn top_groups(worker: &Worker) -> Result<BTreeMap<String, Vec<&'static str>>, WorkerError> {
    let mut groups: BTreeMap<String, Vec<&'static str>> = BTreeMap::new();
    if worker.which("systemctl", &[]).await?.is_none() {
        return Ok(groups);
    }
    for unit in UNITS {
        // It prints an empty line for a unit that does not run, or is not there.
        let command = Command::new(["systemctl", "show", "--property=ControlGroup", "--value", unit]);
        let output = worker.run(command, LIMIT).await?;
        let path = String::from_utf8_lossy(&output.stdout).into_owned();
        if let Some(top) = top_group(&path) {
            groups.entry(top.to_owned()).or_default().push(unit);
        }
    }
    Ok(groups)
}

/// The group at the top that contains a group: `system.slice` of `/system.slice/ssh.service`.
pub(super) fn top_group(path: &str) -> Option<&str> {
    path.trim().trim_start_matches('/').split('/').next().filter(|top| !top.is_empty())
}

/// The services in a group at the top without `memory.min`.
pub(super) async fn unprotected(worker: &Worker, cgroups: &str) -> Result<Vec<String>, WorkerError> {
    let mut found = Vec::new();
    for (group, units) in top_groups(worker).await? {
        let protected = read_or_empty(worker, &format!("{cgroups}/{group}/memory.min")).await?;
        if matches!(protected.as_str(), "" | "0") {
            found.push(format!("the memory of {} is not protected: {group} has no memory.min", units.join(", ")));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_at_the_top_of_a_service_is_found() {
        assert_eq!(top_group("/system.slice/ssh.service\n"), Some("system.slice"));
        assert_eq!(top_group("/user.slice"), Some("user.slice"));
        assert_eq!(top_group("\n"), None);
        assert_eq!(top_group("/"), None);
    }
}
