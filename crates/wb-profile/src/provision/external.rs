//! Any executable `weighbridge-provision-NAME` on the path. The contract is that of `docs/provisioning.md`: one object of
//! JSON on its standard input, one event of JSON on each line of its standard output, exit status 0.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};
use wb_model::{Nanos, WorkerName};

use super::error::{ParseProvisionerError, ProvisionError};
use super::target::ProvisionTarget;
use super::{ProvisionReport, limit_or_default};
use crate::controller::{Controller, ControllerProgram, ProgramOutput};

/// The version of the contract.
const CONTRACT: u32 = 1;

/// What the executable is given.
#[derive(Debug, Clone, PartialEq)]
pub struct ExternalProvisioner {
    params: Value,
    limit: Nanos,
}

/// Something that it says.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum ProvisionerEvent {
    /// For the user to read.
    Message { text: String, host: Option<WorkerName> },
    /// A host is ready.
    Done { host: WorkerName },
    /// A host could not be made ready.
    Failed { host: WorkerName, why: String },
}

impl ExternalProvisioner {
    /// The executable of a provisioner of this name.
    pub(super) fn program(name: &str) -> String {
        format!("weighbridge-provision-{name}")
    }

    pub(super) fn parse(name: &str, params: Value) -> Result<Self, ParseProvisionerError> {
        let most = params.get("limit").map(|most| super::parse_params::<Nanos>(name, most.clone())).transpose()?;
        Ok(Self { params, limit: limit_or_default(most) })
    }

    pub(super) async fn run(
        &self,
        name: &str,
        controller: &Controller,
        targets: &[ProvisionTarget],
        ssh_config: Option<&Path>,
        tell: &mut dyn FnMut(String),
    ) -> Result<ProvisionReport, ProvisionError> {
        let failed = |source| ProvisionError::Worker { name: name.to_owned(), source };
        let program = Self::program(name);
        let ssh_config = ssh_config.and_then(|config| std::path::absolute(config).ok());
        let input = json!({
            "contract": CONTRACT, "hosts": targets, "params": self.params,
            "ssh-config": ssh_config.map(|config| config.display().to_string()),
        });
        let stdin = format!("{input}\n").into_bytes();
        let hear = |line: &str| {
            if let Ok(ProvisionerEvent::Message { text, host }) = serde_json::from_str(line) {
                let whose = host.map(|host| format!(" `{host}`:")).unwrap_or_default();
                tell(format!("{name}:{whose} {text}"));
            }
        };
        let ran = ControllerProgram { argv: vec![program.clone()], env: Vec::new(), stdin };
        let ended = controller.run(ran, self.limit, hear).await.map_err(failed)?;
        Ok(ProvisionReport {
            hosts: host_results(&ended, targets),
            logs: vec![(None, ended.log(&program))],
            elapsed: ended.elapsed,
        })
    }
}

/// What became of each host. Where it did not end well, what it said it had done is not to be relied on.
fn host_results(ended: &ProgramOutput, targets: &[ProvisionTarget]) -> BTreeMap<WorkerName, Result<(), String>> {
    let (said, fault) = match parse_events(&ended.stdout, targets) {
        Ok(said) => (said, ended.result()),
        Err(why) => (BTreeMap::new(), ended.result().and(Err(why))),
    };
    let silent = || "the provisioner said neither done nor failed of it".to_owned();
    let of = |name: &WorkerName| match said.get(name) {
        Some(Err(why)) => Err(why.clone()),
        Some(Ok(())) => fault.clone(),
        None => fault.clone().and(Err(silent())),
    };
    targets.iter().map(|target| (target.name.clone(), of(&target.name))).collect()
}

/// What it said of hosts.
fn parse_events(
    stdout: &[u8],
    targets: &[ProvisionTarget],
) -> Result<BTreeMap<WorkerName, Result<(), String>>, String> {
    let text = String::from_utf8_lossy(stdout);
    let mut said = BTreeMap::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let event = serde_json::from_str(line).map_err(|error| format!("line {} is no event: {error}", at + 1))?;
        let (host, result) = match event {
            ProvisionerEvent::Message { .. } => continue,
            ProvisionerEvent::Done { host } => (host, Ok(())),
            ProvisionerEvent::Failed { host, why } => (host, Err(why)),
        };
        if !targets.iter().any(|target| target.name == host) {
            return Err(format!("line {} is of `{host}`, which is none of the hosts", at + 1));
        }
        said.insert(host, result);
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use wb_agent::ExitReason;

    use super::*;

    fn outcome_of(stdout: &str, status: i32) -> Vec<String> {
        let targets = ["a", "b"].map(|name| ProvisionTarget::local(name.parse().unwrap(), Default::default()));
        let ended = ProgramOutput {
            ending: ExitReason::Exited { status },
            stdout: stdout.as_bytes().to_vec(),
            stderr: Vec::new(),
            elapsed: Nanos(0),
        };
        host_results(&ended, &targets)
            .into_values()
            .map(|result| result.err().unwrap_or_else(|| "done".to_owned()))
            .collect()
    }

    #[test]
    fn each_host_is_done_or_failed_or_nothing_was_said_of_it() {
        let both = "{\"event\":\"told\",\"text\":\"x\"}\n\n{\"event\":\"done\",\"host\":\"a\"}\n\
                    {\"event\":\"failed\",\"host\":\"b\",\"why\":\"no disk\"}\n";
        assert_eq!(outcome_of(both, 0), ["done", "no disk"]);
        let silent = "the provisioner said neither done nor failed of it";
        assert_eq!(outcome_of("{\"event\":\"done\",\"host\":\"b\"}", 0), [silent, "done"]);
        let ended = outcome_of(both, 3);
        assert!(ended[0].starts_with("exit status 3") && ended[1] == "no disk", "{ended:?}");
    }

    #[test]
    fn what_is_no_event_fails_what_was_not_said_to_have_failed() {
        for (line, why) in [
            ("done", "line 2 is no event"),
            ("{\"event\":\"dnoe\"}", "line 2 is no event"),
            ("{\"event\":\"done\",\"host\":\"c\"}", "line 2 is of `c`, which is none of the hosts"),
        ] {
            let all = outcome_of(&format!("{{\"event\":\"done\",\"host\":\"a\"}}\n{line}\n"), 0);
            assert!(all.iter().all(|one| one.starts_with(why)), "{all:?}");
        }
    }
}
