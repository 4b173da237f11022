//! Provisioner that runs an Ansible playbook once for all hosts, with a generated inventory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use wb_agent::WorkerError;
use wb_model::{Nanos, WorkerName};

use super::error::{ParseProvisionerError, ProvisionError};
use super::target::ProvisionTarget;
use super::{ProvisionReport, limit_or_default, parse_params};
use crate::controller::{Controller, ControllerProgram, ProgramOutput};

const NAME: &str = "ansible";
pub(super) const PROGRAM: &str = "ansible-playbook";
/// Debian's package with it.
pub(super) const PACKAGE: &str = "ansible-core";

/// A playbook and its variables.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ansible {
    playbook: PathBuf,
    #[serde(default)]
    vars: Map<String, Value>,
    limit: Option<Nanos>,
}

impl Ansible {
    pub(super) fn parse(value: Value) -> Result<Self, ParseProvisionerError> {
        parse_params(NAME, value)
    }

    pub(super) fn text(&self) -> Result<Vec<u8>, ParseProvisionerError> {
        let path = || self.playbook.display().to_string();
        std::fs::read(&self.playbook)
            .map_err(|error| ParseProvisionerError::Playbook { path: path(), reason: error.to_string() })
    }

    pub(super) async fn run(
        &self,
        controller: &Controller,
        targets: &[ProvisionTarget],
        ssh_config: Option<&Path>,
    ) -> Result<ProvisionReport, ProvisionError> {
        let failed = |source| ProvisionError::Worker { name: NAME.to_owned(), source: Box::new(source) };
        let ended = self.run_playbook(controller, targets, ssh_config).await.map_err(failed)?;
        let result = ended.result();
        let output = String::from_utf8_lossy(&ended.stdout);
        let summary = parse_recap(&output);
        let host_result = |target: &ProvisionTarget| match (summary.get(target.name.as_str()), &result) {
            (Some(true), _) => Ok(()),
            (Some(false), _) => Err(host_failure(&output, &target.name).unwrap_or_else(|| "a task failed".to_owned())),
            // A playbook may concern only some of the hosts.
            (None, result) => result.clone(),
        };
        Ok(ProvisionReport {
            hosts: targets.iter().map(|target| (target.name.clone(), host_result(target))).collect(),
            logs: vec![(None, ended.log(&format!("{PROGRAM} {}", self.playbook.display())))],
            elapsed: ended.elapsed,
        })
    }

    async fn run_playbook(
        &self,
        controller: &Controller,
        targets: &[ProvisionTarget],
        ssh_config: Option<&Path>,
    ) -> Result<ProgramOutput, WorkerError> {
        let group = controller.worker().new_group().await?;
        let file = |name: &str| format!("{}/{name}", group.folder());
        let (hosts, vars) = (file("inventory.json"), file("vars.json"));
        controller.worker().put(&hosts, inventory(targets, ssh_config).to_string().as_bytes(), 0o600).await?;
        controller.worker().put(&vars, Value::Object(self.vars.clone()).to_string().as_bytes(), 0o600).await?;
        let playbook = self.playbook.display().to_string();
        let argv = [PROGRAM, "--inventory", &hosts, "--extra-vars", &format!("@{vars}"), &playbook];
        let env = [
            // The default callback prints the summary that `recap` parses.
            ("ANSIBLE_STDOUT_CALLBACK", "default".to_owned()),
            ("ANSIBLE_FORCE_COLOR", "0".to_owned()),
            ("ANSIBLE_NOCOLOR", "1".to_owned()),
            // Temporary files are removed with the group's folder.
            ("ANSIBLE_LOCAL_TEMP", file("tmp")),
            ("ANSIBLE_SSH_CONTROL_PATH_DIR", file("cp")),
            ("ANSIBLE_RETRY_FILES_ENABLED", "0".to_owned()),
        ];
        let program = ControllerProgram {
            argv: argv.map(str::to_owned).to_vec(),
            env: env.map(|(name, value)| (name.to_owned(), value)).to_vec(),
            stdin: Vec::new(),
        };
        let ended = controller.run_in(&group, program, limit_or_default(self.limit), |_| {}).await;
        group.close().await?;
        ended
    }
}

fn inventory(targets: &[ProvisionTarget], ssh_config: Option<&Path>) -> Value {
    let entry = |target: &ProvisionTarget| {
        let mut vars = Map::new();
        let mut set = |name: &str, value: Value| drop(vars.insert(name.to_owned(), value));
        if target.local {
            set("ansible_connection", json!("local"))
        } else {
            set("ansible_host", json!(target.address));
            target.user.iter().for_each(|user| set("ansible_user", json!(user)));
            target.port.iter().for_each(|port| set("ansible_port", json!(port)));
            if let Some(config) = ssh_config.and_then(|config| std::path::absolute(config).ok()) {
                let config = shell_words::join(["-F", &config.display().to_string()]);
                set("ansible_ssh_common_args", json!(config));
            }
        }
        (target.name.to_string(), Value::Object(vars))
    };
    json!({ "all": { "hosts": targets.iter().map(entry).collect::<Map<_, _>>() } })
}

/// Parses the summary (`a : ok=2 changed=1 unreachable=0 failed=0 …`): whether each host succeeded.
fn parse_recap(output: &str) -> BTreeMap<String, bool> {
    let lines = output.lines().skip_while(|line| !line.starts_with("PLAY RECAP")).skip(1);
    let host = |line: &str| {
        let (host, counts) = line.split_once(" : ").or_else(|| line.split_once(":"))?;
        let mut counts = counts.split_whitespace().filter_map(|count| count.split_once('='));
        let has_failed = counts.any(|(name, count)| matches!(name, "failed" | "unreachable") && count != "0");
        Some((host.trim().to_owned(), !has_failed))
    };
    lines.filter_map(host).collect()
}

/// The last error in the output about a host.
fn host_failure(output: &str, host: &WorkerName) -> Option<String> {
    let start = format!("fatal: [{host}]: ");
    let line = output.lines().rev().find_map(|line| line.trim().strip_prefix(start.as_str()))?;
    Some(line.chars().take(600).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "
TASK [ping] ****
ok: [a]
fatal: [b]: UNREACHABLE! => {\"changed\": false, \"msg\": \"no route\", \"unreachable\": true}

PLAY RECAP ****
a                          : ok=1    changed=0    unreachable=0    failed=0    skipped=0    rescued=0    ignored=0
b                          : ok=0    changed=0    unreachable=1    failed=0    skipped=0    rescued=0    ignored=0
";

    #[test]
    fn summary_tells_failed_hosts_and_the_failed_task_the_reason() {
        assert_eq!(parse_recap(OUTPUT), BTreeMap::from([("a".to_owned(), true), ("b".to_owned(), false)]));
        assert!(parse_recap("ERROR! no such file\n").is_empty());
        assert!(host_failure(OUTPUT, &"b".parse().unwrap()).unwrap().contains("no route"));
        assert_eq!(host_failure(OUTPUT, &"a".parse().unwrap()), None);
    }

    #[test]
    fn inventory_has_ssh_connection_settings() {
        let mut remote = ProvisionTarget::local("a".parse().unwrap(), Default::default());
        (remote.local, remote.address, remote.port) = (false, "10.0.0.1".to_owned(), Some(2222));
        let local = ProvisionTarget::local("b".parse().unwrap(), Default::default());
        let inventory = inventory(&[remote, local], Some(Path::new("/my config")));
        let remote =
            json!({"ansible_host": "10.0.0.1", "ansible_port": 2222, "ansible_ssh_common_args": "-F '/my config'"});
        assert_eq!(inventory["all"]["hosts"], json!({"a": remote, "b": {"ansible_connection": "local"}}));
    }
}
