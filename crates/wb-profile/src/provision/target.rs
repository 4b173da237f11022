//! A host as provisioners see it.

use serde::Serialize;
use wb_fleet::{Host, HostParams};
use wb_model::WorkerName;

use super::error::ParseProvisionerError;

/// A host that is to be provisioned.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ProvisionTarget {
    /// What it is called.
    pub name: WorkerName,
    /// Where it is, as ssh takes it; `localhost` where it is this machine.
    pub address: String,
    /// As whom ssh goes there, where that is known.
    pub user: Option<String>,
    /// At which port.
    pub port: Option<u16>,
    /// Whether it is this machine, to which no ssh leads.
    pub local: bool,
    /// Its distribution, where that is known.
    pub distro: Option<String>,
    /// What is said of it.
    pub params: HostParams,
}

/// What has to be known of a host beside what is said of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequiredFacts {
    /// Its user and port, for which ssh's configuration is asked.
    pub login: bool,
    /// Its architecture or distribution, for which it is asked itself.
    pub machine: bool,
}

/// A property of a host that a command can have put in.
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
    /// Another machine.
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

    /// This one, under a name.
    pub fn local(name: WorkerName, params: HostParams) -> Self {
        let distro = params.distro.clone();
        Self { name, address: "localhost".to_owned(), user: None, port: None, local: true, distro, params }
    }

    /// What of the asked is not known.
    pub fn missing_facts(&self, asks: RequiredFacts) -> RequiredFacts {
        RequiredFacts {
            login: asks.login && (self.user.is_none() || self.port.is_none()),
            machine: asks.machine && (self.params.arch.is_none() || self.distro.is_none()),
        }
    }

    /// What stands for a property; none where it is not known.
    pub(super) fn value(&self, place: Placeholder) -> Option<String> {
        match place {
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

    /// All of them, for people.
    pub(super) fn all() -> String {
        Self::ALL.map(|(name, _)| format!("%({name})s")).join(", ")
    }

    /// As it is written in a command.
    pub(super) fn placeholder(self) -> String {
        let name = Self::ALL.iter().find(|(_, place)| *place == self).map_or("", |(name, _)| name);
        format!("%({name})s")
    }
}

/// A word of a command, in parts: what stands as it is, and properties of hosts. `%%` is `%`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum CommandPart {
    Text(String),
    Place(Placeholder),
}

/// Reads a word.
pub(super) fn parse_template(word: &str) -> Result<Vec<CommandPart>, ParseProvisionerError> {
    let mut parts = Vec::new();
    let mut rest = word;
    while let Some(at) = rest.find('%') {
        parts.push(CommandPart::Text(rest[..at].to_owned()));
        let after = &rest[at + 1..];
        if let Some(after) = after.strip_prefix('%') {
            parts.push(CommandPart::Text("%".to_owned()));
            rest = after;
            continue;
        }
        let named = after.strip_prefix('(').and_then(|after| after.split_once(")s"));
        let known =
            named.and_then(|(name, rest)| Some((Placeholder::ALL.iter().find(|(known, _)| *known == name)?.1, rest)));
        let Some((place, after)) = known else {
            let shown = after.split_whitespace().next().unwrap_or_default();
            return Err(ParseProvisionerError::Place { place: format!("%{shown}") });
        };
        parts.push(CommandPart::Place(place));
        rest = after;
    }
    parts.push(CommandPart::Text(rest.to_owned()));
    Ok(parts)
}
