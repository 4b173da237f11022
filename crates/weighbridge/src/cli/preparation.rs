//! What is done to machines before anything is measured on them.

use clap::{ArgGroup, Args};
use wb_model::Nanos;

/// What is done to machines first
#[derive(Debug, Args)]
#[command(next_help_heading = "Making machines ready")]
#[command(group = ArgGroup::new("set_up_hosts").multiple(true))]
pub(crate) struct PreparationFlags {
    /// Provision the hosts first: `command:{"command": "PROGRAM %(host)s"}`, `ansible:{"playbook": "site.yml"}`, or a program
    /// weighbridge-provision-NAME of your own; may be given more than once. Once in a run
    #[arg(long, value_name = "NAME[:JSON]")]
    pub(crate) provisioner: Vec<String>,
    /// Run this script on every host, before any profile; once in a boot of it. Arguments may follow the file
    #[arg(long, value_name = "FILE", group = "set_up_hosts")]
    pub(crate) host_setup_script: Option<String>,
    /// Reboot every host after that script, and go on when it is back
    #[arg(long, requires = "set_up_hosts")]
    pub(crate) host_setup_script_reboot: bool,
    /// Install packages on every host with dnf, after the script: names, files or URLs; may be given more than once
    #[arg(long, value_name = "PACKAGE", group = "set_up_hosts")]
    pub(crate) host_rpms: Vec<String>,
    /// Run this script on every worker, host or guest, before the first test there; once in a boot of it
    #[arg(long, value_name = "FILE")]
    pub(crate) worker_setup_script: Option<String>,
    /// Install packages on every worker with dnf, after the script; may be given more than once
    #[arg(long, value_name = "PACKAGE")]
    pub(crate) worker_rpms: Vec<String>,
    /// How long a script may take
    #[arg(long, value_name = "TIME", default_value = "1h")]
    pub(crate) script_limit: Nanos,
    /// How long a reboot may take
    #[arg(long, value_name = "TIME", default_value = "10min")]
    pub(crate) reboot_limit: Nanos,
}
