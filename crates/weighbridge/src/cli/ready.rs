//! What is done to machines before anything is measured on them.

use clap::Args;
use wb_model::Nanos;

/// What is done to machines first
#[derive(Debug, Args)]
#[command(next_help_heading = "Making machines ready")]
pub(crate) struct ReadyFlags {
    /// Provision the hosts first: `command:{"command": "PROGRAM %(host)s"}`, `ansible:{"playbook": "site.yml"}`, or a program
    /// weighbridge-provision-NAME of your own; may be given more than once. Once in a run
    #[arg(long, value_name = "NAME[:JSON]")]
    pub(crate) provisioner: Vec<String>,
    /// Run this script on every host, before any profile; once in a boot of it. Arguments may follow the file
    #[arg(long, value_name = "FILE")]
    pub(crate) host_setup_script: Option<String>,
    /// Reboot every host after that script, and go on when it is back
    #[arg(long, requires = "host_setup_script")]
    pub(crate) host_setup_script_reboot: bool,
    /// Run this script on every worker, host or guest, before the first test there; once in a boot of it
    #[arg(long, value_name = "FILE")]
    pub(crate) worker_setup_script: Option<String>,
    /// How long a script may take
    #[arg(long, value_name = "TIME", default_value = "1h")]
    pub(crate) script_limit: Nanos,
    /// How long a reboot may take
    #[arg(long, value_name = "TIME", default_value = "10min")]
    pub(crate) reboot_limit: Nanos,
}
