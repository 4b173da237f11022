//! The known hosts: from `hosts.toml`, the command line, and run-perf's files.

mod address;
mod file;
mod params;
mod run_perf;

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_diagnostics::{Diagnostic, SourceText, suggest};
use wb_model::WorkerName;

pub use address::{Address, ParseAddressError};
pub use params::{CpuSpec, HostParamMismatch, HostParams, ParamError};
pub use run_perf::{ForcedParams, read_host_file};

/// Addresses that mean the controller's machine in run-perf's files and options.
pub const LOOPBACK_ADDRESSES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// A machine that can be reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Its name.
    pub name: WorkerName,
    /// Its address.
    pub address: Address,
    /// Its configured parameters; the others are detected.
    #[serde(default)]
    pub params: HostParams,
}

/// Hosts and groups of hosts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Inventory {
    hosts: Vec<Host>,
    groups: BTreeMap<WorkerName, Vec<WorkerName>>,
}

impl Inventory {
    /// Parses a `hosts.toml`. `name` is the file's path, for messages.
    pub fn parse(name: &str, text: &str) -> Result<Self, Diagnostic> {
        file::parse(&SourceText::new(name, text))
    }

    /// Its hosts, sorted by name.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    pub fn groups(&self) -> &BTreeMap<WorkerName, Vec<WorkerName>> {
        &self.groups
    }

    pub fn host(&self, name: &WorkerName) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == *name)
    }

    /// Resolves command line arguments to hosts, in order and without duplicates. Each is a group, a host, or
    /// `[NAME:]ADDRESS`. A number after a colon is a port; text that is an IPv6 address is not split: `a:[fd77::1]`
    /// gives one a name. Fails also if two hosts have the same name.
    pub fn select(&self, words: &[String]) -> Result<Vec<Host>, Diagnostic> {
        let mut selected: Vec<Host> = Vec::new();
        for word in words {
            for host in self.resolve(word)? {
                match selected.iter().find(|existing| existing.name == host.name) {
                    None => selected.push(host),
                    Some(existing) if *existing == host => {}
                    Some(existing) => {
                        let (name, one, two) = (&host.name, &existing.address, &host.address);
                        return Err(argument_error(
                            word,
                            format!("conflicting addresses for `{name}`: {one} and {two}"),
                        )
                        .with_help("give each host a name of its own: NAME:ADDRESS"));
                    }
                }
            }
        }
        Ok(selected)
    }

    fn resolve(&self, word: &str) -> Result<Vec<Host>, Diagnostic> {
        let named = WorkerName::new(word).ok();
        if let Some(members) = named.as_ref().and_then(|name| self.groups.get(name)) {
            return Ok(members.iter().filter_map(|name| self.host(name)).cloned().collect());
        }
        if let Some(host) = named.as_ref().and_then(|name| self.host(name)) {
            return Ok(vec![host.clone()]);
        }
        let names = self.hosts.iter().map(|host| &host.name).chain(self.groups.keys()).map(WorkerName::as_str);
        if let Some(suggestion) = suggest(word, names.filter(|_| named.is_some() && !word.contains('.'))) {
            return Err(argument_error(word, format!("unknown host or group `{word}`: {suggestion}"))
                .with_help("use `NAME:ADDRESS` to add a host with a similar name"));
        }
        parse_host(word).map(|host| vec![host])
    }
}

/// Parses a host given as one word: `[NAME:]ADDRESS`.
fn parse_host(word: &str) -> Result<Host, Diagnostic> {
    let bad = |reason: String| {
        argument_error(word, reason).with_help("expected [NAME:]ADDRESS, such as `a:root@10.0.0.1:22`")
    };
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

fn parse_host_name(name: &str) -> Result<WorkerName, String> {
    let name = WorkerName::new(name).map_err(|error| error.to_string())?;
    match name.as_str() {
        "local" => Err("invalid host name `local`: it is reserved for this machine".to_owned()),
        "each" => Err("invalid host name `each`: it is reserved for all workers in the `on` of a test".to_owned()),
        _ => Ok(name),
    }
}

fn argument_error(word: &str, message: String) -> Diagnostic {
    Diagnostic::at(&SourceText::new("command line", word), 0..word.len(), message, "here")
}

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
    fn arguments_are_groups_hosts_or_addresses() {
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
    fn an_invalid_argument_is_reported() {
        let message = |words: &[&str]| select(words).unwrap_err();
        assert_eq!(message(&["al"]), "unknown host or group `al`: did you mean `all`?");
        assert_eq!(message(&["a", "a:10.9.9.9"]), "conflicting addresses for `a`: root@10.0.0.1 and 10.9.9.9");
        assert!(message(&["each:10.0.0.1"]).starts_with("invalid host name `each`"));
        assert_eq!(message(&["local:10.0.0.1"]), "invalid host name `local`: it is reserved for this machine");
        assert!(message(&["-oProxyCommand=x"]).starts_with("invalid address `-oProxyCommand=x`"));
    }
}
