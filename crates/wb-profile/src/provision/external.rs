//! Provisioner that runs an executable `weighbridge-provision-NAME` from PATH. Its contract is in
//! `docs/profiles.md`: one JSON object on its standard input, one JSON event per line on its standard output, exit
//! status 0.

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

#[derive(Debug, Clone, PartialEq)]
pub struct ExternalProvisioner {
    params: Value,
    limit: Nanos,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum ProvisionerEvent {
    Message { text: String, host: Option<WorkerName> },
    Done { host: WorkerName },
    Failed { host: WorkerName, reason: String },
}

impl ExternalProvisioner {
    pub(super) fn program(name: &str) -> String {
        format!("weighbridge-provision-{name}")
    }

    pub(super) fn parse(name: &str, params: Value) -> Result<Self, ParseProvisionerError> {
        let requested =
            params.get("limit").map(|requested| super::parse_params::<Nanos>(name, requested.clone())).transpose()?;
        Ok(Self { params, limit: limit_or_default(requested) })
    }

    pub(super) async fn run(
        &self,
        name: &str,
        controller: &Controller,
        targets: &[ProvisionTarget],
        ssh_config: Option<&Path>,
        report: &mut dyn FnMut(String),
    ) -> Result<ProvisionReport, ProvisionError> {
        let failed = |source| ProvisionError::Worker { name: name.to_owned(), source: Box::new(source) };
        let program = Self::program(name);
        let ssh_config = ssh_config.and_then(|config| std::path::absolute(config).ok());
        let input = json!({
            "contract": CONTRACT, "hosts": targets, "params": self.params,
            "ssh-config": ssh_config.map(|config| config.display().to_string()),
        });
        let stdin = format!("{input}\n").into_bytes();
        let on_line = |line: &str| {
            if let Ok(ProvisionerEvent::Message { text, host }) = serde_json::from_str(line) {
                let prefix = host.map(|host| format!(" `{host}`:")).unwrap_or_default();
                report(format!("{name}:{prefix} {text}"));
            }
        };
        let program_spec = ControllerProgram { argv: vec![program.clone()], env: Vec::new(), stdin };
        let ended = controller.run(program_spec, self.limit, on_line).await.map_err(failed)?;
        Ok(ProvisionReport {
            hosts: host_results(&ended, targets),
            logs: vec![(None, ended.log(&program))],
            elapsed: ended.elapsed,
        })
    }
}

/// The result for each host. If the executable failed, its `done` events are not relied on.
fn host_results(ended: &ProgramOutput, targets: &[ProvisionTarget]) -> BTreeMap<WorkerName, Result<(), String>> {
    let (reported, fault) = match parse_events(&ended.stdout, targets) {
        Ok(reported) => (reported, ended.result()),
        Err(reason) => (BTreeMap::new(), ended.result().and(Err(reason))),
    };
    let not_reported = || "the provisioner reported neither done nor failed for it".to_owned();
    let host_result = |name: &WorkerName| match reported.get(name) {
        Some(Err(reason)) => Err(reason.clone()),
        Some(Ok(())) => fault.clone(),
        None => fault.clone().and(Err(not_reported())),
    };
    targets.iter().map(|target| (target.name.clone(), host_result(&target.name))).collect()
}

fn parse_events(
    stdout: &[u8],
    targets: &[ProvisionTarget],
) -> Result<BTreeMap<WorkerName, Result<(), String>>, String> {
    let text = String::from_utf8_lossy(stdout);
    let mut results = BTreeMap::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let event =
            serde_json::from_str(line).map_err(|error| format!("line {} is not an event: {error}", index + 1))?;
        let (host, result) = match event {
            ProvisionerEvent::Message { .. } => continue,
            ProvisionerEvent::Done { host } => (host, Ok(())),
            ProvisionerEvent::Failed { host, reason } => (host, Err(reason)),
        };
        if !targets.iter().any(|target| target.name == host) {
            return Err(format!("line {} is about `{host}`, which is not one of the hosts", index + 1));
        }
        results.insert(host, result);
    }
    Ok(results)
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
    fn each_host_is_done_failed_or_not_reported() {
        let both = "{\"event\":\"message\",\"text\":\"x\"}\n\n{\"event\":\"done\",\"host\":\"a\"}\n\
                    {\"event\":\"failed\",\"host\":\"b\",\"reason\":\"no disk\"}\n";
        assert_eq!(outcome_of(both, 0), ["done", "no disk"]);
        let not_reported = "the provisioner reported neither done nor failed for it";
        assert_eq!(outcome_of("{\"event\":\"done\",\"host\":\"b\"}", 0), [not_reported, "done"]);
        let ended = outcome_of(both, 3);
        assert!(ended[0].starts_with("exit status 3") && ended[1] == "no disk", "{ended:?}");
    }

    #[test]
    fn invalid_event_fails_all_hosts() {
        for (line, expected) in [
            ("done", "line 2 is not an event"),
            ("{\"event\":\"dnoe\"}", "line 2 is not an event"),
            ("{\"event\":\"done\",\"host\":\"c\"}", "line 2 is about `c`, which is not one of the hosts"),
        ] {
            let all = outcome_of(&format!("{{\"event\":\"done\",\"host\":\"a\"}}\n{line}\n"), 0);
            assert!(all.iter().all(|message| message.starts_with(expected)), "{all:?}");
        }
    }
}
