//! Provisions hosts with the user's programs on this machine, before anything connects to the hosts to measure.
//!
//! Three kinds of provisioners: any program, once per host ([`command`]); an Ansible playbook ([`ansible`]); any
//! executable that implements the contract in `docs/profiles.md` ([`external`]).

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
use wb_diagnostics::humanize_serde_error;
use wb_model::{Nanos, Sha256, WorkerName};
use wb_sys::programs::is_program;

pub use ansible::Ansible;
pub use command::CommandProvisioner;
pub use error::{ParseProvisionerError, ProvisionError};
pub use external::ExternalProvisioner;
pub use target::{ProvisionTarget, RequiredFacts};

use crate::controller::Controller;

const DEFAULT_LIMIT: Nanos = Nanos(30 * 60 * 1_000_000_000);

/// A provisioner with its parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Provisioner {
    /// Its name: `command`, `ansible`, or the end of an executable's name.
    pub name: String,
    kind: ProvisionerKind,
    /// Hash of its name, parameters and playbook.
    sha256: Sha256,
}

#[derive(Debug, Clone, PartialEq)]
enum ProvisionerKind {
    PerHost(CommandProvisioner),
    Ansible(Ansible),
    External(ExternalProvisioner),
}

#[derive(Debug)]
pub struct ProvisionReport {
    pub hosts: BTreeMap<WorkerName, Result<(), String>>,
    /// The output for one host, or for all together.
    pub logs: Vec<(Option<WorkerName>, Vec<u8>)>,
    pub elapsed: Nanos,
}

impl Provisioner {
    /// The facts that it requires about a host besides name and address.
    pub fn required_facts(&self) -> RequiredFacts {
        match &self.kind {
            ProvisionerKind::PerHost(per_host) => per_host.required_facts(),
            ProvisionerKind::Ansible(_) | ProvisionerKind::External(_) => RequiredFacts::default(),
        }
    }

    /// Requires that its program is installed here. A program whose name has placeholders is not checked.
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

    pub fn sha256(&self) -> &Sha256 {
        &self.sha256
    }

    /// Provisions hosts; `report` is called with messages for the user.
    pub async fn run(
        &self,
        controller: &Controller,
        targets: &[ProvisionTarget],
        ssh_config: Option<&Path>,
        report: &mut dyn FnMut(String),
    ) -> Result<ProvisionReport, ProvisionError> {
        match &self.kind {
            ProvisionerKind::PerHost(per_host) => Ok(per_host.run(controller, targets).await),
            ProvisionerKind::Ansible(ansible) => ansible.run(controller, targets, ssh_config).await,
            ProvisionerKind::External(external) => {
                external.run(&self.name, controller, targets, ssh_config, report).await
            }
        }
    }
}

impl FromStr for Provisioner {
    type Err = ParseProvisionerError;

    /// Parses `NAME` or `NAME:{JSON}`.
    fn from_str(text: &str) -> Result<Self, ParseProvisionerError> {
        let (name, json) = text.split_once(':').map_or((text, None), |(name, json)| (name, Some(json)));
        let is_name =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        if !is_name {
            return Err(ParseProvisionerError::Name(name.to_owned()));
        }
        let params: Value = match json {
            None => Value::Object(serde_json::Map::default()),
            Some(json) => serde_json::from_str(json).map_err(|error| ParseProvisionerError::Json {
                name: name.to_owned(),
                reason: humanize_serde_error(&error.to_string()),
            })?,
        };
        if !params.is_object() {
            return Err(ParseProvisionerError::Json { name: name.to_owned(), reason: "expected an object".to_owned() });
        }
        let mut identity = format!("{name}\0{params}").into_bytes();
        let kind = match name {
            "command" => ProvisionerKind::PerHost(CommandProvisioner::parse(params)?),
            "ansible" => {
                let ansible = Ansible::parse(params)?;
                identity.extend(ansible.text()?);
                ProvisionerKind::Ansible(ansible)
            }
            _ => ProvisionerKind::External(ExternalProvisioner::parse(name, params)?),
        };
        Ok(Self { name: name.to_owned(), kind, sha256: Sha256::digest(&identity) })
    }
}

impl fmt::Display for Provisioner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

fn parse_params<T: serde::de::DeserializeOwned>(name: &str, params: Value) -> Result<T, ParseProvisionerError> {
    serde_json::from_value(params).map_err(|error| ParseProvisionerError::Json {
        name: name.to_owned(),
        reason: humanize_serde_error(&error.to_string()),
    })
}

fn limit_or_default(requested: Option<Nanos>) -> Nanos {
    requested.unwrap_or(DEFAULT_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Provisioner::from_str(text).unwrap_err().to_string()
    }

    #[test]
    fn provisioner_is_a_name_and_an_object() {
        let parse = |text: &str| Provisioner::from_str(text).unwrap();
        let command = parse(r#"command:{"command": "sh -c 'x %(name)s'", "limit": "5min"}"#);
        assert_eq!((command.name.as_str(), command.required_facts()), ("command", RequiredFacts::default()));
        assert_ne!(parse("beaker").sha256(), parse(r#"beaker:{"pool": "a"}"#).sha256());
        assert_eq!(parse("beaker").sha256(), parse("beaker:{}").sha256());
    }

    #[test]
    fn invalid_provisioners_are_refused_with_the_expected_form() {
        let texts = [
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
        insta::assert_snapshot!(texts.map(error).join("\n"), @r#"
        invalid provisioner ``: expected NAME or NAME:{JSON}, such as command:{"command": "…"}
        invalid provisioner `../x`: expected NAME or NAME:{JSON}, such as command:{"command": "…"}
        invalid parameters of provisioner `command`: missing field `command`
        invalid parameters of provisioner `command`: incomplete JSON at line 1 column 1
        invalid parameters of provisioner `command`: expected an object
        invalid parameters of provisioner `command`: unknown field `comand`, expected `command` or `limit`
        invalid command `x '`: it is empty, or a quote is not closed
        unknown placeholder `%(hots)s`: expected one of %(host)s, %(name)s, %(user)s, %(port)s, %(arch)s, %(distro)s
        unknown placeholder `%d`: expected one of %(host)s, %(name)s, %(user)s, %(port)s, %(arch)s, %(distro)s
        invalid parameters of provisioner `command`: invalid time `soon`: expected a number with ns, us, ms, s, min, h, d or w, or plain seconds
        invalid parameters of provisioner `ansible`: missing field `playbook`
        cannot read the playbook /no/such.yml: No such file or directory (os error 2)
        invalid parameters of provisioner `ansible`: invalid value of a list: expected names and values
        "#);
    }
}
