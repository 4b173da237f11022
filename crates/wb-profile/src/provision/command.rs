//! Any program of this machine's, run once for each host.

use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::Value;
use wb_model::Nanos;
use wb_model::secrets::masked_arguments;

use super::error::BadProvisioner;
use super::target::{Asks, Part, Place, Target, parts};
use super::{Provisioned, given, limit};
use crate::controller::{Controller, Program};

/// A command with places for what each host is: words, not a shell's line.
#[derive(Debug, Clone, PartialEq)]
pub struct PerHost {
    words: Vec<Vec<Part>>,
    limit: Nanos,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    command: String,
    limit: Option<Nanos>,
}

impl PerHost {
    pub(super) fn parse(value: Value) -> Result<Self, BadProvisioner> {
        let Given { command, limit: most } = given("command", value)?;
        let words = shell_words::split(&command).ok().filter(|words| !words.is_empty());
        let words = words.ok_or(BadProvisioner::Command { command })?;
        Ok(Self { words: words.iter().map(|word| parts(word)).collect::<Result<_, _>>()?, limit: limit(most) })
    }

    pub(super) fn asks(&self) -> Asks {
        let has = |places: &[Place]| {
            let mut parts = self.words.iter().flatten();
            parts.any(|part| matches!(part, Part::Place(place) if places.contains(place)))
        };
        Asks { login: has(&[Place::User, Place::Port]), machine: has(&[Place::Arch, Place::Distro]) }
    }

    /// The program that it runs, where that is the same for all hosts.
    pub(super) fn program(&self) -> Option<String> {
        let mut program = String::new();
        for part in self.words.first()? {
            let Part::Text(text) = part else { return None };
            program.push_str(text);
        }
        Some(program)
    }

    /// For all hosts at the same time.
    pub(super) async fn run(&self, controller: &Controller, targets: &[Target]) -> Provisioned {
        let all = join_all(targets.iter().map(|target| self.one(controller, target))).await;
        let mut provisioned = Provisioned { hosts: Default::default(), logs: Vec::new(), elapsed: Nanos(0) };
        for (target, (result, log, elapsed)) in targets.iter().zip(all) {
            provisioned.hosts.insert(target.name.clone(), result);
            provisioned.logs.push((Some(target.name.clone()), log));
            provisioned.elapsed = provisioned.elapsed.max(elapsed);
        }
        provisioned
    }

    async fn one(&self, controller: &Controller, target: &Target) -> (Result<(), String>, Vec<u8>, Nanos) {
        let argv = match self.words_for(target) {
            Ok(argv) => argv,
            Err(why) => return (Err(why.clone()), format!("{why}\n").into_bytes(), Nanos(0)),
        };
        let what = shell_words::join(masked_arguments(&argv));
        match controller.run(Program { argv, ..Program::default() }, self.limit, |_| {}).await {
            Ok(ended) => (ended.succeeded(), ended.log(&what), ended.elapsed),
            Err(error) => (Err(error.to_string()), format!("{what}\n{error}\n").into_bytes(), Nanos(0)),
        }
    }

    fn words_for(&self, target: &Target) -> Result<Vec<String>, String> {
        let word = |parts: &Vec<Part>| {
            let part = |part: &Part| match part {
                Part::Text(text) => Ok(text.clone()),
                Part::Place(place) => target.value(*place).ok_or_else(|| {
                    let place = place.written();
                    format!("nobody knows its {place}: say it in the inventory or with --force-params")
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
    fn what_a_host_is_is_put_into_words_and_divides_none() {
        let per_host = |command: &str| PerHost::parse(serde_json::json!({ "command": command })).unwrap();
        let mut target = Target::here("a".parse().unwrap(), Default::default());
        target.user = Some("joe blow".to_owned());
        let words = |command: &str| per_host(command).words_for(&target);
        let argv = words("x --on=%(user)s@%(host)s '100 %%' %(name)s").unwrap();
        assert_eq!(argv, ["x", "--on=joe blow@localhost", "100 %", "a"]);
        assert!(words("x %(distro)s").unwrap_err().contains("nobody knows its %(distro)s"));
        assert_eq!(per_host("x %(port)s").asks(), Asks { login: true, machine: false });
        assert_eq!(per_host("x %(arch)s").asks(), Asks { login: false, machine: true });
    }
}
