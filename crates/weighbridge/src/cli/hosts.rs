//! Which machines measure, and in which state.

use std::path::PathBuf;

use clap::Args;

/// Which machines measure
#[derive(Debug, Args)]
#[command(next_help_heading = "Hosts")]
pub(crate) struct HostFlags {
    /// Machines that measure, instead of this one: hosts or groups of the inventory, or addresses as ssh takes them, named
    /// or not: `root@10.0.0.1`, `a:bench@lab2:2222`; `local` is this one. Several measure at the same time
    #[arg(long, value_name = "[NAME:]ADDRESS", value_delimiter = ',')]
    pub(crate) hosts: Vec<String>,
    /// The inventory (hosts.toml); without --hosts all its hosts measure
    #[arg(long, value_name = "FILE")]
    pub(crate) inventory: Option<PathBuf>,
    /// Folders with what belongs to hosts: run-perf's hosts/ADDRESS.yaml, profiles.d, the XML of guests
    #[arg(long, value_name = "DIR")]
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
    /// Another configuration of ssh than your own, as `ssh -F` takes it
    #[arg(long, value_name = "FILE")]
    pub(crate) ssh_config: Option<PathBuf>,
}
