//! Flags that select hosts and their profiles.

use std::path::PathBuf;

use super::parse_text_path;
use clap::Args;

/// Selection of hosts
#[derive(Debug, Args)]
#[command(next_help_heading = "Hosts")]
pub(crate) struct HostSelectionFlags {
    /// Hosts to use instead of this machine: hosts or groups of the inventory, or ssh addresses with an optional name:
    /// `root@10.0.0.1`, `a:bench@lab2:2222`; `local` is this machine. All hosts are used at the same time
    #[arg(long, value_name = "[NAME:]ADDRESS", value_delimiter = ',')]
    pub(crate) hosts: Vec<String>,
    /// Inventory file (hosts.toml); without --hosts, all its hosts are used
    #[arg(long, value_name = "FILE")]
    pub(crate) inventory: Option<PathBuf>,
    /// Alternative ssh configuration file, as for `ssh -F`
    #[arg(long, value_name = "FILE", value_parser = parse_text_path)]
    pub(crate) ssh_config: Option<PathBuf>,
}

/// Selection of hosts, with their parameters and profiles
#[derive(Debug, Args)]
#[command(next_help_heading = "Hosts")]
pub(crate) struct HostFlags {
    /// Selection of hosts
    #[command(flatten)]
    pub(crate) selection: HostSelectionFlags,
    /// Folder with host files: run-perf's hosts/ADDRESS.yaml, profiles.d, guest XML; may be given more than once
    #[arg(long, value_name = "DIR", value_parser = parse_existing_folder)]
    pub(crate) paths: Vec<PathBuf>,
    /// Override host parameters: `{"a": {"guest-cpus": 4}}`, or `{"guest-cpus": 4}` for all hosts
    #[arg(long, value_name = "JSON")]
    pub(crate) force_params: Option<String>,
    /// Override the distribution of all hosts: `debian-12`
    #[arg(long, value_name = "NAME")]
    pub(crate) distro: Option<String>,
    /// Distribution of all guests
    #[arg(long, value_name = "NAME")]
    pub(crate) guest_distro: Option<String>,
    /// Profiles to measure in, applied and reverted one after the other: `Localhost,TunedHost`,
    /// `'DefaultLibvirt:{"force-guest-cpus": 2}'`; `weighbridge profile list` shows all. May be given more than once
    #[arg(long, value_name = "PROFILE[:JSON]")]
    pub(crate) profiles: Vec<String>,
}

impl HostSelectionFlags {
    /// Whether any host or inventory was given.
    pub(crate) fn is_given(&self) -> bool {
        !self.hosts.is_empty() || self.inventory.is_some()
    }
}

/// Parses the path of an existing folder.
pub(super) fn parse_existing_folder(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.is_dir() { Ok(path) } else { Err("no such folder".to_owned()) }
}
