//! Converts flags to the options of sessions.

use wb_session::options::new_run_folder;
use wb_session::{HostOptions, HostSelection, PreparationOptions, RunFolderOptions, SessionOptions};

use super::{HostFlags, HostSelectionFlags, PreparationFlags, RunFolderFlags};
use crate::commands::command_line::words_to_record;

/// Prefix of the run folders of `run` and `peers run`.
pub(crate) const RUN_PREFIX: &str = "weighbridge";
/// Prefix of the run folders of `ab`.
pub(crate) const AB_PREFIX: &str = "weighbridge-ab";
/// Prefix of the run folders of `calibrate`.
pub(crate) const CALIBRATE_PREFIX: &str = "weighbridge-calibrate";

impl From<&HostSelectionFlags> for HostSelection {
    fn from(flags: &HostSelectionFlags) -> Self {
        let HostSelectionFlags { hosts, inventory, ssh_config } = flags;
        Self { hosts: hosts.clone(), inventory: inventory.clone(), ssh_config: ssh_config.clone() }
    }
}

impl From<&HostFlags> for HostOptions {
    fn from(flags: &HostFlags) -> Self {
        Self {
            selection: (&flags.selection).into(),
            paths: flags.paths.clone(),
            force_params: flags.force_params.clone(),
            distro: flags.distro.clone(),
            guest_distro: flags.guest_distro.clone(),
            profiles: flags.profiles.clone(),
        }
    }
}

impl From<&PreparationFlags> for PreparationOptions {
    fn from(flags: &PreparationFlags) -> Self {
        Self {
            provisioners: flags.provisioner.clone(),
            host_setup_script: flags.host_setup_script.clone(),
            host_setup_script_reboot: flags.host_setup_script_reboot,
            host_packages: flags.host_rpms.clone(),
            worker_setup_script: flags.worker_setup_script.clone(),
            worker_packages: flags.worker_rpms.clone(),
            script_limit: flags.script_limit,
            reboot_limit: flags.reboot_limit,
        }
    }
}

impl RunFolderFlags {
    /// The options of a session that records in this folder, or else in a new one whose name begins with `prefix`.
    pub(crate) fn session_options(
        &self,
        prefix: &str,
        hosts: &HostFlags,
        preparation: &PreparationFlags,
    ) -> SessionOptions {
        let run_folder = RunFolderOptions {
            path: self.into.clone().unwrap_or_else(|| new_run_folder(prefix)),
            is_given: self.into.is_some(),
            metadata: self.metadata.clone(),
            publish: self.publish.clone(),
            secret_from: self.secret_from.clone(),
        };
        let command = words_to_record();
        SessionOptions { run_folder, hosts: hosts.into(), preparation: preparation.into(), command }
    }
}
