//! Hosts and their properties for provisioners, and placeholders for them in commands.

use serde::Serialize;
use wb_fleet::{Host, HostParams};
use wb_model::WorkerName;

use super::error::ParseProvisionerError;

/// A host to be provisioned.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ProvisionTarget {
    pub name: WorkerName,
    /// Its address for ssh; `localhost` for this machine.
    pub address: String,
    pub user: Option<String>,
    pub port: Option<u16>,
    /// Whether it is this machine, which is not reached over ssh.
    pub local: bool,
    pub distro: Option<String>,
    pub params: HostParams,
}

/// Facts about a host that a provisioner requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequiredFacts {
    /// Its user and port, looked up in ssh's configuration.
    pub login: bool,
    /// Its architecture or distribution, detected on the host.
    pub machine: bool,
}

/// A property of a host for which commands have a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placeholder {
    Host,
    Name,
    User,
    Port,
    Arch,
    Distro,
}

impl ProvisionTarget {
    pub fn remote(host: &Host) -> Self {
        Self {
            name: host.name.clone(),
            address: host.address.host.clone(),
            user: host.address.user.clone(),
            port: host.address.port,
            local: false,
            distro: host.params.distro.clone(),
            params: host.params.clone(),
        }
    }

    pub fn local(name: WorkerName, params: HostParams) -> Self {
        let distro = params.distro.clone();
        Self { name, address: "localhost".to_owned(), user: None, port: None, local: true, distro, params }
    }

    pub fn missing_facts(&self, required: RequiredFacts) -> RequiredFacts {
        RequiredFacts {
            login: required.login && (self.user.is_none() || self.port.is_none()),
            machine: required.machine && (self.params.arch.is_none() || self.distro.is_none()),
        }
    }

    /// None if the property is unknown.
    pub(super) fn value(&self, placeholder: Placeholder) -> Option<String> {
        match placeholder {
            Placeholder::Host => Some(self.address.clone()),
            Placeholder::Name => Some(self.name.to_string()),
            Placeholder::User => self.user.clone(),
            Placeholder::Port => self.port.map(|port| port.to_string()),
            Placeholder::Arch => self.params.arch.clone(),
            Placeholder::Distro => self.distro.clone(),
        }
    }
}

impl Placeholder {
    const ALL: [(&'static str, Self); 6] = [
        ("host", Self::Host),
        ("name", Self::Name),
        ("user", Self::User),
        ("port", Self::Port),
        ("arch", Self::Arch),
        ("distro", Self::Distro),
    ];

    pub(super) fn all() -> String {
        Self::ALL.map(|(name, _)| format!("%({name})s")).join(", ")
    }

    pub(super) fn placeholder(self) -> String {
        let name = Self::ALL.iter().find(|(_, place)| *place == self).map_or("", |(name, _)| name);
        format!("%({name})s")
    }
}

/// Part of a word of a command: literal text, or a property of the host. `%%` stands for `%`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum CommandPart {
    Text(String),
    Place(Placeholder),
}

/// Parses a word into literal text and placeholders.
pub(super) fn parse_template(word: &str) -> Result<Vec<CommandPart>, ParseProvisionerError> {
    let mut parts = Vec::new();
    let mut rest = word;
    while let Some(start) = rest.find('%') {
        parts.push(CommandPart::Text(rest[..start].to_owned()));
        let after = &rest[start + 1..];
        if let Some(after) = after.strip_prefix('%') {
            parts.push(CommandPart::Text("%".to_owned()));
            rest = after;
            continue;
        }
        let named = after.strip_prefix('(').and_then(|after| after.split_once(")s"));
        let found =
            named.and_then(|(name, rest)| Some((Placeholder::ALL.iter().find(|(listed, _)| *listed == name)?.1, rest)));
        let Some((placeholder, after)) = found else {
            let unknown = after.split_whitespace().next().unwrap_or_default();
            return Err(ParseProvisionerError::Place(format!("%{unknown}")));
        };
        parts.push(CommandPart::Place(placeholder));
        rest = after;
    }
    parts.push(CommandPart::Text(rest.to_owned()));
    Ok(parts)
}
