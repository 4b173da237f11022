//! A host as provisioners see it.

use serde::Serialize;
use wb_fleet::{Host, Params};
use wb_model::WorkerName;

use super::error::BadProvisioner;

/// A host that is to be provisioned.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Target {
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
    pub params: Params,
}

/// What has to be known of a host beside what is said of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Asks {
    /// Its user and port, for which ssh's configuration is asked.
    pub login: bool,
    /// Its architecture or distribution, for which it is asked itself.
    pub machine: bool,
}

/// A property of a host that a command can have put in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Host,
    Name,
    User,
    Port,
    Arch,
    Distro,
}

impl Target {
    /// Another machine.
    pub fn there(host: &Host) -> Self {
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
    pub fn here(name: WorkerName, params: Params) -> Self {
        let distro = params.distro.clone();
        Self { name, address: "localhost".to_owned(), user: None, port: None, local: true, distro, params }
    }

    /// What of the asked is not known.
    pub fn lacks(&self, asks: Asks) -> Asks {
        Asks {
            login: asks.login && (self.user.is_none() || self.port.is_none()),
            machine: asks.machine && (self.params.arch.is_none() || self.distro.is_none()),
        }
    }

    /// What stands for a property; none where it is not known.
    pub(super) fn value(&self, place: Place) -> Option<String> {
        match place {
            Place::Host => Some(self.address.clone()),
            Place::Name => Some(self.name.to_string()),
            Place::User => self.user.clone(),
            Place::Port => self.port.map(|port| port.to_string()),
            Place::Arch => self.params.arch.clone(),
            Place::Distro => self.distro.clone(),
        }
    }
}

impl Place {
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
    pub(super) fn written(self) -> String {
        let name = Self::ALL.iter().find(|(_, place)| *place == self).map_or("", |(name, _)| name);
        format!("%({name})s")
    }
}

/// A word of a command, in parts: what stands as it is, and properties of hosts. `%%` is `%`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    Text(String),
    Place(Place),
}

/// Reads a word.
pub(super) fn parts(word: &str) -> Result<Vec<Part>, BadProvisioner> {
    let mut parts = Vec::new();
    let mut rest = word;
    while let Some(at) = rest.find('%') {
        parts.push(Part::Text(rest[..at].to_owned()));
        let after = &rest[at + 1..];
        if let Some(after) = after.strip_prefix('%') {
            parts.push(Part::Text("%".to_owned()));
            rest = after;
            continue;
        }
        let named = after.strip_prefix('(').and_then(|after| after.split_once(")s"));
        let known = named.and_then(|(name, rest)| Some((Place::ALL.iter().find(|(known, _)| *known == name)?.1, rest)));
        let Some((place, after)) = known else {
            let shown = after.split_whitespace().next().unwrap_or_default();
            return Err(BadProvisioner::Place { place: format!("%{shown}") });
        };
        parts.push(Part::Place(place));
        rest = after;
    }
    parts.push(Part::Text(rest.to_owned()));
    Ok(parts)
}
