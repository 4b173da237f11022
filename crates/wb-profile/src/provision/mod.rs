//! Provisioning: hosts are made what they shall be by programs of the user's on this machine, before anything connects to
//! them to measure.
//!
//! Three kinds, of which the last is open: any program, once per host ([`command`]); an Ansible playbook ([`ansible`]); any
//! executable that keeps to the contract of `docs/provisioning.md` ([`external`]).

mod ansible;
mod command;
mod error;
mod external;
mod target;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde_json::Value;
use wb_model::serde_message::humanize_serde_error;
use wb_model::{Nanos, Sha256, WorkerName};

use wb_plan::tools::is_program;

pub use ansible::Ansible;
pub use command::CommandProvisioner;
pub use error::{ParseProvisionerError, ProvisionError};
pub use external::ExternalProvisioner;
pub use target::{ProvisionTarget, RequiredFacts};

use crate::controller::Controller;

/// How long a provisioner may take where nothing else is said.
const DEFAULT_LIMIT: Nanos = Nanos(30 * 60 * 1_000_000_000);

/// A provisioner, as it was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Provisioner {
    /// What it is called: `command`, `ansible`, or what an executable on the path ends in.
    pub name: String,
    kind: ProvisionerKind,
    /// The hash of all that it was given.
    sha256: Sha256,
}

#[derive(Debug, Clone, PartialEq)]
enum ProvisionerKind {
    PerHost(CommandProvisioner),
    Ansible(Ansible),
    External(ExternalProvisioner),
}

/// What a provisioner came to.
#[derive(Debug)]
pub struct ProvisionReport {
    /// Each host, and what went wrong with it if anything.
    pub hosts: BTreeMap<WorkerName, Result<(), String>>,
    /// What was said, of one host or of all together.
    pub logs: Vec<(Option<WorkerName>, Vec<u8>)>,
    /// How long it took.
    pub elapsed: Nanos,
}

impl Provisioner {
    /// What it has to know of a host beside its name and its address.
    pub fn required_facts(&self) -> RequiredFacts {
        match &self.kind {
            ProvisionerKind::PerHost(per_host) => per_host.required_facts(),
            ProvisionerKind::Ansible(_) | ProvisionerKind::External(_) => RequiredFacts::default(),
        }
    }

    /// Whether its program is on this machine; what a command names by a property of the host is not looked for.
    ///
    /// # Errors
    /// When there is no such program.
    pub fn require_program(&self) -> Result<(), ProvisionError> {
        let (program, package) = match &self.kind {
            ProvisionerKind::PerHost(per_host) => (per_host.program(), None),
            ProvisionerKind::Ansible(_) => (Some(ansible::PROGRAM.to_owned()), Some(ansible::PACKAGE)),
            ProvisionerKind::External(_) => (Some(ExternalProvisioner::program(&self.name)), None),
        };
        match program.filter(|program| !is_program(program)) {
            None => Ok(()),
            Some(program) => Err(ProvisionError::Missing { name: self.name.clone(), program, package }),
        }
    }

    /// The hash of what it was given: what tells it from another of its name.
    pub fn sha256(&self) -> &Sha256 {
        &self.sha256
    }

    /// Provisions hosts. `tell` is given what is to be told meanwhile.
    ///
    /// # Errors
    /// When there is no such program here, or it could not be run at all.
    pub async fn run(
        &self,
        controller: &Controller,
        targets: &[ProvisionTarget],
        ssh_config: Option<&Path>,
        tell: &mut dyn FnMut(String),
    ) -> Result<ProvisionReport, ProvisionError> {
        match &self.kind {
            ProvisionerKind::PerHost(per_host) => Ok(per_host.run(controller, targets).await),
            ProvisionerKind::Ansible(ansible) => ansible.run(controller, targets, ssh_config).await,
            ProvisionerKind::External(external) => {
                external.run(&self.name, controller, targets, ssh_config, tell).await
            }
        }
    }
}

impl FromStr for Provisioner {
    type Err = ParseProvisionerError;

    /// `NAME`, or `NAME:{JSON}`.
    fn from_str(text: &str) -> Result<Self, ParseProvisionerError> {
        let (name, json) = text.split_once(':').map_or((text, None), |(name, json)| (name, Some(json)));
        let is_name =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        if !is_name {
            return Err(ParseProvisionerError::Name { name: name.to_owned() });
        }
        let given: Value = match json {
            None => Value::Object(serde_json::Map::default()),
            Some(json) => serde_json::from_str(json).map_err(|error| ParseProvisionerError::Json {
                name: name.to_owned(),
                why: humanize_serde_error(&error.to_string()),
            })?,
        };
        if !given.is_object() {
            return Err(ParseProvisionerError::Json { name: name.to_owned(), why: "an object is expected".to_owned() });
        }
        let mut identity = format!("{name}\0{given}").into_bytes();
        let kind = match name {
            "command" => ProvisionerKind::PerHost(CommandProvisioner::parse(given)?),
            "ansible" => {
                let ansible = Ansible::parse(given)?;
                identity.extend(ansible.text()?);
                ProvisionerKind::Ansible(ansible)
            }
            _ => ProvisionerKind::External(ExternalProvisioner::parse(name, given)?),
        };
        Ok(Self { name: name.to_owned(), kind, sha256: Sha256::of(&identity) })
    }
}

impl fmt::Display for Provisioner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Reads what a provisioner was given into its type.
fn parse_params<T: serde::de::DeserializeOwned>(name: &str, given: Value) -> Result<T, ParseProvisionerError> {
    serde_json::from_value(given).map_err(|error| ParseProvisionerError::Json {
        name: name.to_owned(),
        why: humanize_serde_error(&error.to_string()),
    })
}

/// The limit that was given, or the usual one.
fn limit_or_default(given: Option<Nanos>) -> Nanos {
    given.unwrap_or(DEFAULT_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bad(text: &str) -> String {
        Provisioner::from_str(text).unwrap_err().to_string()
    }

    #[test]
    fn a_provisioner_is_a_name_and_an_object() {
        let read = |text: &str| Provisioner::from_str(text).unwrap();
        let one = read(r#"command:{"command": "sh -c 'x %(name)s'", "limit": "5min"}"#);
        assert_eq!((one.name.as_str(), one.required_facts()), ("command", RequiredFacts::default()));
        assert_ne!(read("beaker").sha256(), read(r#"beaker:{"pool": "a"}"#).sha256());
        assert_eq!(read("beaker").sha256(), read("beaker:{}").sha256());
    }

    #[test]
    fn what_is_none_is_told_with_what_is_expected() {
        let all = [
            "",
            "../x",
            "command",
            "command:{",
            "command:[]",
            r#"command:{"comand": "x"}"#,
            r#"command:{"command": "x '"}"#,
            r#"command:{"command": "x %(hots)s"}"#,
            r#"command:{"command": "x %d"}"#,
            r#"command:{"command": "x", "limit": "soon"}"#,
            r#"ansible:{}"#,
            r#"ansible:{"playbook": "/no/such.yml"}"#,
            r#"ansible:{"playbook": "x", "vars": []}"#,
        ];
        insta::assert_snapshot!(all.map(bad).join("\n"), @r#"
        `` is no provisioner: NAME or NAME:{JSON} is expected, such as command:{"command": "…"}
        `../x` is no provisioner: NAME or NAME:{JSON} is expected, such as command:{"command": "…"}
        the provisioner `command`: missing field `command`
        the provisioner `command`: EOF while parsing an object at line 1 column 1
        the provisioner `command`: an object is expected
        the provisioner `command`: unknown field `comand`, expected `command` or `limit`
        `x '` is no command: it is empty, or a quote is open
        a command has no `%(hots)s`; there are %(host)s, %(name)s, %(user)s, %(port)s, %(arch)s, %(distro)s
        a command has no `%d`; there are %(host)s, %(name)s, %(user)s, %(port)s, %(arch)s, %(distro)s
        the provisioner `command`: `soon` is not a time: write 500ms, 5s, 2min, 1h, or plain seconds
        the provisioner `ansible`: missing field `playbook`
        the playbook /no/such.yml cannot be read: No such file or directory (os error 2)
        the provisioner `ansible`: invalid value of a list: expected names and values
        "#);
    }
}
