//! Provisioner that runs a program on this machine once for each host.

use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::Value;
use wb_model::Nanos;
use wb_model::secrets::mask_provisioner_arguments;

use super::error::ParseProvisionerError;
use super::target::{CommandPart, Placeholder, ProvisionTarget, RequiredFacts, parse_template};
use super::{ProvisionReport, limit_or_default, parse_params};
use crate::controller::{Controller, ControllerProgram};

/// A command with placeholders for properties of the host, split into words; it is not run by a shell.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandProvisioner {
    words: Vec<Vec<CommandPart>>,
    limit: Nanos,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandParams {
    command: String,
    limit: Option<Nanos>,
}

impl CommandProvisioner {
    pub(super) fn parse(value: Value) -> Result<Self, ParseProvisionerError> {
        let CommandParams { command, limit: max_duration } = parse_params("command", value)?;
        let words = shell_words::split(&command).ok().filter(|words| !words.is_empty());
        let words = words.ok_or(ParseProvisionerError::Command(command))?;
        Ok(Self {
            words: words.iter().map(|word| parse_template(word)).collect::<Result<_, _>>()?,
            limit: limit_or_default(max_duration),
        })
    }

    pub(super) fn required_facts(&self) -> RequiredFacts {
        let has = |placeholders: &[Placeholder]| {
            let mut parts = self.words.iter().flatten();
            parts.any(|part| matches!(part, CommandPart::Place(placeholder) if placeholders.contains(placeholder)))
        };
        RequiredFacts {
            login: has(&[Placeholder::User, Placeholder::Port]),
            machine: has(&[Placeholder::Arch, Placeholder::Distro]),
        }
    }

    /// The program that it runs, if that is the same for all hosts.
    pub(super) fn program(&self) -> Option<String> {
        let mut program = String::new();
        for part in self.words.first()? {
            let CommandPart::Text(text) = part else { return None };
            program.push_str(text);
        }
        Some(program)
    }

    /// Runs it for all hosts concurrently.
    pub(super) async fn run(&self, controller: &Controller, targets: &[ProvisionTarget]) -> ProvisionReport {
        let results = join_all(targets.iter().map(|target| self.run_on_host(controller, target))).await;
        let mut provisioned = ProvisionReport { hosts: Default::default(), logs: Vec::new(), elapsed: Nanos(0) };
        for (target, (result, log, elapsed)) in targets.iter().zip(results) {
            provisioned.hosts.insert(target.name.clone(), result);
            provisioned.logs.push((Some(target.name.clone()), log));
            provisioned.elapsed = provisioned.elapsed.max(elapsed);
        }
        provisioned
    }

    async fn run_on_host(
        &self,
        controller: &Controller,
        target: &ProvisionTarget,
    ) -> (Result<(), String>, Vec<u8>, Nanos) {
        let argv = match self.argv_for(target) {
            Ok(argv) => argv,
            Err(reason) => return (Err(reason.clone()), format!("{reason}\n").into_bytes(), Nanos(0)),
        };
        let title = shell_words::join(mask_provisioner_arguments(&argv));
        match controller.run(ControllerProgram { argv, ..ControllerProgram::default() }, self.limit, |_| {}).await {
            Ok(ended) => (ended.result(), ended.log(&title), ended.elapsed),
            Err(error) => (Err(error.to_string()), format!("{title}\n{error}\n").into_bytes(), Nanos(0)),
        }
    }

    fn argv_for(&self, target: &ProvisionTarget) -> Result<Vec<String>, String> {
        let word = |parts: &Vec<CommandPart>| {
            let part = |part: &CommandPart| match part {
                CommandPart::Text(text) => Ok(text.clone()),
                CommandPart::Place(placeholder) => target.value(*placeholder).ok_or_else(|| {
                    let placeholder = placeholder.placeholder();
                    format!("unknown {placeholder} of the host: set it in the inventory or with --force-params")
                }),
            };
            parts.iter().map(part).collect::<Result<String, _>>()
        };
        self.words.iter().map(word).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_in_without_splitting_words() {
        let per_host = |command: &str| CommandProvisioner::parse(serde_json::json!({ "command": command })).unwrap();
        let mut target = ProvisionTarget::local("a".parse().unwrap(), Default::default());
        target.user = Some("joe blow".to_owned());
        let words = |command: &str| per_host(command).argv_for(&target);
        let argv = words("x --on=%(user)s@%(host)s '100 %%' %(name)s").unwrap();
        assert_eq!(argv, ["x", "--on=joe blow@localhost", "100 %", "a"]);
        assert!(words("x %(distro)s").unwrap_err().contains("unknown %(distro)s of the host"));
        assert_eq!(per_host("x %(port)s").required_facts(), RequiredFacts { login: true, machine: false });
        assert_eq!(per_host("x %(arch)s").required_facts(), RequiredFacts { login: false, machine: true });
    }
}
