//! Flags for preparing machines before measuring: provisioning, scripts, packages, reboots.

use clap::{ArgGroup, Args};
use wb_model::Nanos;

/// Preparation of machines before measuring
#[derive(Debug, Args)]
#[command(next_help_heading = "Preparation of machines")]
#[command(group = ArgGroup::new("set_up_hosts").multiple(true))]
pub(crate) struct PreparationFlags {
    /// Provision the hosts first, once per run: `command:{"command": "PROGRAM %(host)s"}`, `ansible:{"playbook":
    /// "site.yml"}`, or your own program weighbridge-provision-NAME; may be given more than once
    #[arg(long, value_name = "NAME[:JSON]")]
    pub(crate) provisioner: Vec<String>,
    /// Run this script on every host before any profile, once per boot; arguments may follow the file name
    #[arg(long, value_name = "FILE", group = "set_up_hosts")]
    pub(crate) host_setup_script: Option<String>,
    /// Reboot every host after the host setup script, and continue when it is back
    #[arg(long, requires = "set_up_hosts")]
    pub(crate) host_setup_script_reboot: bool,
    /// Install packages on every host with dnf after the host setup script: names, files or URLs; may be given more
    /// than once
    #[arg(long, value_name = "PACKAGE", group = "set_up_hosts")]
    pub(crate) host_rpms: Vec<String>,
    /// Run this script on every worker, host or guest, before its first test, once per boot
    #[arg(long, value_name = "FILE")]
    pub(crate) worker_setup_script: Option<String>,
    /// Install packages on every worker with dnf after the worker setup script; may be given more than once
    #[arg(long, value_name = "PACKAGE")]
    pub(crate) worker_rpms: Vec<String>,
    /// Time limit for a script
    #[arg(long, value_name = "TIME", default_value = "1h")]
    pub(crate) script_limit: Nanos,
    /// Time limit for a reboot
    #[arg(long, value_name = "TIME", default_value = "10min")]
    pub(crate) reboot_limit: Nanos,
}
