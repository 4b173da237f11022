//! What hosts there are: `hosts.toml`, words of a command line, and run-perf's files.

mod address;
mod file;
mod params;
mod run_perf;

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::WorkerName;
use wb_plan::suggestion::suggest;
use wb_plan::{PlanError, SourceText};

pub use address::{Address, ParseAddressError};
pub use params::{CpuSpec, HostParams, ParamError, ParamMismatch};
pub use run_perf::{ForcedParams, read_host_file};

/// A machine that can be reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// What it is called.
    pub name: WorkerName,
    /// Where it is.
    pub address: Address,
    /// What is said of it; all else is found.
    #[serde(default)]
    pub params: HostParams,
}

/// Hosts and groups of them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Inventory {
    hosts: Vec<Host>,
    groups: BTreeMap<WorkerName, Vec<WorkerName>>,
}

impl Inventory {
    /// Reads a `hosts.toml`. `name` is the file's path, for messages.
    ///
    /// # Errors
    /// With the place of what is wrong.
    pub fn parse(name: &str, text: &str) -> Result<Self, PlanError> {
        file::parse(&SourceText::new(name, text))
    }

    /// Its hosts, in order.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// Its groups.
    pub fn groups(&self) -> &BTreeMap<WorkerName, Vec<WorkerName>> {
        &self.groups
    }

    /// The host of this name.
    pub fn host(&self, name: &WorkerName) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == *name)
    }

    /// The hosts that words of a command line mean, in order and each once: a group, a host, or `[NAME:]ADDRESS`.
    ///
    /// A number after a colon is a port, and what is written as an IPv6 address is one: `a:[fd77::1]` names it.
    ///
    /// # Errors
    /// When a word is none of these, or two hosts have one name.
    pub fn select(&self, words: &[String]) -> Result<Vec<Host>, PlanError> {
        let mut chosen: Vec<Host> = Vec::new();
        for word in words {
            for host in self.resolve(word)? {
                match chosen.iter().find(|known| known.name == host.name) {
                    None => chosen.push(host),
                    Some(known) if *known == host => {}
                    Some(known) => {
                        let (name, one, two) = (&host.name, &known.address, &host.address);
                        return Err(argument_error(
                            word,
                            format!("`{name}` is {one} already, and cannot be {two} too"),
                        )
                        .with_help("name each host: NAME:ADDRESS"));
                    }
                }
            }
        }
        Ok(chosen)
    }

    fn resolve(&self, word: &str) -> Result<Vec<Host>, PlanError> {
        let named = WorkerName::new(word).ok();
        if let Some(members) = named.as_ref().and_then(|name| self.groups.get(name)) {
            return Ok(members.iter().filter_map(|name| self.host(name)).cloned().collect());
        }
        if let Some(host) = named.as_ref().and_then(|name| self.host(name)) {
            return Ok(vec![host.clone()]);
        }
        let names = self.hosts.iter().map(|host| &host.name).chain(self.groups.keys()).map(WorkerName::as_str);
        if let Some(near) = suggest(word, names.filter(|_| named.is_some() && !word.contains('.'))) {
            return Err(argument_error(word, format!("there is no host or group `{word}`, but there is `{near}`"))
                .with_help("`NAME:ADDRESS` adds a host of another name"));
        }
        parse_host(word).map(|host| vec![host])
    }
}

/// A host as one word: `[NAME:]ADDRESS`.
fn parse_host(word: &str) -> Result<Host, PlanError> {
    let bad =
        |why: String| argument_error(word, why).with_help("a host is written [NAME:]ADDRESS: `a:root@10.0.0.1:22`");
    let is_address = word.starts_with("ssh://") || word.starts_with('[') || address::is_v6(word);
    let split = word.split_once(':').filter(|(_, rest)| !is_address && !rest.chars().all(|c| c.is_ascii_digit()));
    let (name, address) = match split {
        Some((name, rest)) if WorkerName::new(name).is_ok() => (Some(name), rest),
        _ => (None, word),
    };
    let address: Address = address.parse().map_err(|error: ParseAddressError| bad(error.to_string()))?;
    let name = name.map_or_else(|| address.default_name(), str::to_owned);
    let name = parse_host_name(&name).map_err(bad)?;
    Ok(Host { name, address, params: HostParams::default() })
}

/// A name that a host can have.
fn parse_host_name(name: &str) -> Result<WorkerName, String> {
    let name = WorkerName::new(name).map_err(|error| error.to_string())?;
    match name.as_str() {
        "local" => Err("`local` is this machine: a host needs another name".to_owned()),
        "each" => Err("`each` is all workers where a test says `on`: a host needs another name".to_owned()),
        _ => Ok(name),
    }
}

/// A mistake in a word of the command line.
fn argument_error(word: &str, message: String) -> PlanError {
    PlanError::at(&SourceText::new("command line", word), 0..word.len(), message, "here")
}

/// Where a host's asset may be, in each of these folders.
fn asset_paths<'a>(folders: &'a [PathBuf], asset: &'a str) -> impl Iterator<Item = PathBuf> + 'a {
    folders.iter().map(move |folder| folder.join(asset))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAB: &str =
        "[hosts.a]\naddress = 'root@10.0.0.1'\n[hosts.b]\naddress = '10.0.0.2'\n[groups]\nall = ['a', 'b']\n";

    fn select(words: &[&str]) -> Result<Vec<String>, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let hosts = Inventory::parse("hosts.toml", LAB).unwrap().select(&words).map_err(|error| error.to_string())?;
        Ok(hosts.iter().map(|host| format!("{}={}", host.name, host.address)).collect())
    }

    #[test]
    fn words_are_groups_hosts_or_addresses() {
        assert_eq!(select(&["b", "all"]).unwrap(), ["b=10.0.0.2", "a=root@10.0.0.1"]);
        assert_eq!(select(&["root@lab7.example:22"]).unwrap(), ["lab7=root@lab7.example:22"]);
        assert_eq!(
            select(&["x:root@10.0.0.9", "10.0.0.8:2222"]).unwrap(),
            ["x=root@10.0.0.9", "10.0.0.8=10.0.0.8:2222"]
        );
        assert_eq!(select(&["fd77::1", "y:[fd77::2]:22"]).unwrap(), ["fd77--1=fd77::1", "y=[fd77::2]:22"]);
        assert_eq!(select(&["ssh://me@gate:2200"]).unwrap(), ["gate=me@gate:2200"]);
    }

    #[test]
    fn a_word_that_means_nothing_is_named() {
        let said = |words: &[&str]| select(words).unwrap_err();
        assert_eq!(said(&["al"]), "there is no host or group `al`, but there is `all`");
        assert_eq!(said(&["a", "a:10.9.9.9"]), "`a` is root@10.0.0.1 already, and cannot be 10.9.9.9 too");
        assert!(said(&["each:10.0.0.1"]).contains("a host needs another name"));
        assert_eq!(said(&["local:10.0.0.1"]), "`local` is this machine: a host needs another name");
        assert!(said(&["-oProxyCommand=x"]).starts_with("`-oProxyCommand=x` is no address"));
    }
}
