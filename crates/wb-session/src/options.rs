//! Options of a session.

use std::path::PathBuf;

use wb_model::Nanos;

/// Selection of hosts; this machine if neither hosts nor an inventory are given.
#[derive(Debug, Clone, Default)]
pub struct HostSelection {
    /// Hosts or groups of the inventory, or `[NAME:]ADDRESS`; `local` is this machine.
    pub hosts: Vec<String>,
    /// Inventory file; without `hosts`, all its hosts are selected.
    pub inventory: Option<PathBuf>,
    /// Alternative configuration file of ssh.
    pub ssh_config: Option<PathBuf>,
}

/// Hosts, with their parameters and profiles.
#[derive(Debug, Clone, Default)]
pub struct HostOptions {
    /// The hosts.
    pub selection: HostSelection,
    /// Folders with files of hosts and profiles.
    pub paths: Vec<PathBuf>,
    /// Parameters of hosts as JSON, which override those of files.
    pub force_params: Option<String>,
    /// Distribution of all hosts.
    pub distro: Option<String>,
    /// Distribution of all guests.
    pub guest_distro: Option<String>,
    /// Profiles to measure in, `PROFILE[:JSON]`; none for the unchanged hosts.
    pub profiles: Vec<String>,
}

impl From<HostSelection> for HostOptions {
    /// A selection of hosts without parameters or profiles.
    fn from(selection: HostSelection) -> Self {
        Self { selection, ..Self::default() }
    }
}

/// Preparation of hosts and workers before measuring.
#[derive(Debug, Clone)]
pub struct PreparationOptions {
    /// Provisioners, `NAME[:JSON]`.
    pub provisioners: Vec<String>,
    /// Script to run on every host, with arguments.
    pub host_setup_script: Option<String>,
    /// Whether hosts reboot after the setup script.
    pub host_setup_script_reboot: bool,
    /// Packages to install on every host.
    pub host_packages: Vec<String>,
    /// Script to run on every worker, with arguments.
    pub worker_setup_script: Option<String>,
    /// Packages to install on every worker.
    pub worker_packages: Vec<String>,
    /// Time limit for a script.
    pub script_limit: Nanos,
    /// Time limit for a reboot.
    pub reboot_limit: Nanos,
}

/// The run folder, and what is recorded and published with it.
#[derive(Debug, Clone)]
pub struct RunFolderOptions {
    /// The folder; an existing one is resumed.
    pub path: PathBuf,
    /// Whether the user gave the folder, rather than leaving its name to [`new_run_folder`].
    pub is_given: bool,
    /// Metadata to record with the run.
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
    /// The run folder.
    pub run_folder: RunFolderOptions,
    /// The hosts.
    pub hosts: HostOptions,
    /// Their preparation.
    pub preparation: PreparationOptions,
    /// The command line to record, from which a user can repeat the run.
    pub command: Vec<String>,
}
