//! Options of a session.

use std::convert::Infallible;
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use wb_model::Nanos;

/// Selection of hosts
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Hosts")]
pub struct HostSelection {
    /// Hosts to use instead of this machine: hosts or groups of the inventory, or ssh addresses with an optional name:
    /// `root@10.0.0.1`, `a:bench@lab2:2222`; `local` is this machine. All hosts are used at the same time
    #[arg(long, value_name = "[NAME:]ADDRESS", value_delimiter = ',')]
    pub hosts: Vec<String>,
    /// Inventory file (hosts.toml); without --hosts, all its hosts are used
    #[arg(long, value_name = "FILE")]
    pub inventory: Option<PathBuf>,
    /// Alternative ssh configuration file, as for `ssh -F`
    #[arg(long, value_name = "FILE", value_parser = parse_text_path)]
    pub ssh_config: Option<PathBuf>,
}

impl HostSelection {
    pub fn is_given(&self) -> bool {
        !self.hosts.is_empty() || self.inventory.is_some()
    }
}

/// Selection of hosts, with their parameters and profiles
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Hosts")]
pub struct HostOptions {
    /// Selection of hosts
    #[command(flatten)]
    pub selection: HostSelection,
    /// Folder with host files: run-perf's hosts/ADDRESS.yaml, profiles.d, guest XML; may be given more than once
    #[arg(long, value_name = "DIR", value_parser = parse_existing_folder)]
    pub paths: Vec<PathBuf>,
    /// Override host parameters: `{"a": {"guest-cpus": 4}}`, or `{"guest-cpus": 4}` for all hosts
    #[arg(long, value_name = "JSON")]
    pub force_params: Option<String>,
    /// Override the distribution of all hosts: `debian-12`
    #[arg(long, value_name = "NAME")]
    pub distro: Option<String>,
    /// Distribution of all guests
    #[arg(long, value_name = "NAME")]
    pub guest_distro: Option<String>,
    /// Profiles to measure in, applied and reverted one after the other: `Localhost,TunedHost`,
    /// `'DefaultLibvirt:{"force-guest-cpus": 2}'`; `weighbridge profile list` shows all. May be given more than once
    #[arg(long, value_name = "PROFILE[:JSON]")]
    pub profiles: Vec<String>,
}

impl From<HostSelection> for HostOptions {
    fn from(selection: HostSelection) -> Self {
        Self { selection, ..Self::default() }
    }
}

/// Preparation of machines before measuring
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Preparation of machines")]
#[command(group = ArgGroup::new("set_up_hosts").multiple(true))]
pub struct PreparationOptions {
    /// Provision the hosts first, once per run: `command:{"command": "PROGRAM %(host)s"}`, `ansible:{"playbook":
    /// "site.yml"}`, or your own program weighbridge-provision-NAME; may be given more than once
    #[arg(id = "provisioner", long = "provisioner", value_name = "NAME[:JSON]")]
    pub provisioners: Vec<String>,
    /// Run this script on every host before any profile, once per boot; arguments may follow the file name
    #[arg(long, value_name = "FILE", group = "set_up_hosts")]
    pub host_setup_script: Option<String>,
    /// Reboot every host after the host setup script, and continue when it is back
    #[arg(long, requires = "set_up_hosts")]
    pub host_setup_script_reboot: bool,
    /// Install packages on every host with dnf after the host setup script: names, files or URLs; may be given more
    /// than once
    #[arg(id = "host_rpms", long = "host-rpms", value_name = "PACKAGE", group = "set_up_hosts")]
    pub host_packages: Vec<String>,
    /// Run this script on every worker, host or guest, before its first test, once per boot
    #[arg(long, value_name = "FILE")]
    pub worker_setup_script: Option<String>,
    /// Install packages on every worker with dnf after the worker setup script; may be given more than once
    #[arg(id = "worker_rpms", long = "worker-rpms", value_name = "PACKAGE")]
    pub worker_packages: Vec<String>,
    /// Time limit for a script
    #[arg(long, value_name = "TIME", default_value = "1h")]
    pub script_limit: Nanos,
    /// Time limit for a reboot
    #[arg(long, value_name = "TIME", default_value = "10min")]
    pub reboot_limit: Nanos,
}

/// The run folder, and what is recorded and published with it.
#[derive(Debug, Clone)]
pub struct RunFolderOptions {
    /// An existing folder is resumed.
    pub path: PathBuf,
    /// Whether the user gave the folder, rather than leaving its name to [`new_run_folder`].
    pub is_given: bool,
    pub metadata: Vec<(String, String)>,
    /// Command line that publishes results; overrides that of the plan.
    pub publish: Option<String>,
    /// Files, and `env:NAME` for variables, whose text is secret.
    pub secret_from: Vec<String>,
}

/// A path that does not exist yet, from a prefix and the time.
pub fn new_run_folder(prefix: &str) -> PathBuf {
    let name = jiff::Timestamp::now().strftime(&format!("{prefix}-%Y%m%d-%H%M%S")).to_string();
    let numbered = |number: u32| if number == 0 { name.clone() } else { format!("{name}-{number}") };
    (0..).map(|number| PathBuf::from(numbered(number))).find(|path| !path.exists()).unwrap_or_default()
}

/// Where a session measures and records.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    pub run_folder: RunFolderOptions,
    pub hosts: HostOptions,
    pub preparation: PreparationOptions,
    /// The command line to record, from which a user can repeat the run.
    pub command: Vec<String>,
}

/// Parses a path that is passed on as text, and thus must be UTF-8.
pub fn parse_text_path(text: &str) -> Result<PathBuf, Infallible> {
    Ok(PathBuf::from(text))
}

pub fn parse_existing_folder(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.is_dir() { Ok(path) } else { Err("no such folder".to_owned()) }
}
