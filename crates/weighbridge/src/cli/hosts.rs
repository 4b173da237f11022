//! Which machines measure, and in which state.

use std::path::PathBuf;

use clap::Args;

/// Which machines are meant
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Hosts")]
pub(crate) struct HostSelectionFlags {
    /// Machines, instead of this one: hosts or groups of the inventory, or addresses as ssh takes them, named or not:
    /// `root@10.0.0.1`, `a:bench@lab2:2222`; `local` is this one. Where they measure, all do so at the same time
    #[arg(long, value_name = "[NAME:]ADDRESS", value_delimiter = ',')]
    pub(crate) hosts: Vec<String>,
    /// The inventory (hosts.toml); without --hosts all its hosts are meant
    #[arg(long, value_name = "FILE")]
    pub(crate) inventory: Option<PathBuf>,
    /// Another configuration of ssh than your own, as `ssh -F` takes it
    #[arg(long, value_name = "FILE")]
    pub(crate) ssh_config: Option<PathBuf>,
}

/// Which machines measure, and what is said of them
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Hosts")]
pub(crate) struct HostFlags {
    /// Which machines
    #[command(flatten)]
    pub(crate) selection: HostSelectionFlags,
    /// Folders with what belongs to hosts: run-perf's hosts/ADDRESS.yaml, profiles.d, the XML of guests
    #[arg(long, value_name = "DIR", value_parser = parse_existing_folder)]
    pub(crate) paths: Vec<PathBuf>,
    /// Parameters of hosts that count whatever is found: `{"a": {"guest-cpus": 4}}`, or `{"guest-cpus": 4}` for all
    #[arg(long, value_name = "JSON")]
    pub(crate) force_params: Option<String>,
    /// The distribution of all hosts, whatever is found: `debian-12`
    #[arg(long, value_name = "NAME")]
    pub(crate) distro: Option<String>,
    /// The distribution of all guests
    #[arg(long, value_name = "NAME")]
    pub(crate) guest_distro: Option<String>,
    /// States that they are put into, one after the other, and brought back from: `Localhost,TunedHost`,
    /// `'DefaultLibvirt:{"force_guest_cpus": 2}'`; `weighbridge profile list` shows all. May be given more than once
    #[arg(long, value_name = "PROFILE[:JSON]")]
    pub(crate) profiles: Vec<String>,
}

impl HostSelectionFlags {
    /// Whether any machine was named.
    pub(crate) fn is_given(&self) -> bool {
        !self.hosts.is_empty() || self.inventory.is_some()
    }
}

impl From<HostSelectionFlags> for HostFlags {
    /// Machines of which nothing is said.
    fn from(machines: HostSelectionFlags) -> Self {
        Self { selection: machines, ..Self::default() }
    }
}

/// A folder that is there.
pub(super) fn parse_existing_folder(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.is_dir() { Ok(path) } else { Err("there is no such folder".to_owned()) }
}
