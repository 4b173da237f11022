//! Converts flags to the options of sessions.

use wb_session::options::new_run_folder;
use wb_session::{HostOptions, PreparationOptions, RunFolderOptions, SessionOptions};

use super::RunFolderFlags;
use crate::commands::command_line::words_to_record;

/// Prefix of the run folders of `run` and `peers run`.
pub(crate) const RUN_PREFIX: &str = "weighbridge";
pub(crate) const AB_PREFIX: &str = "weighbridge-ab";
pub(crate) const CALIBRATE_PREFIX: &str = "weighbridge-calibrate";

impl RunFolderFlags {
    /// The options of a session that records in this folder, or else in a new one whose name begins with `prefix`.
    pub(crate) fn session_options(
        &self,
        prefix: &str,
        hosts: &HostOptions,
        preparation: &PreparationOptions,
    ) -> SessionOptions {
        let run_folder = RunFolderOptions {
            path: self.into.clone().unwrap_or_else(|| new_run_folder(prefix)),
            is_given: self.into.is_some(),
            metadata: self.metadata.clone(),
            publish: self.publish.clone(),
            secret_from: self.secret_from.clone(),
        };
        let command = words_to_record();
        SessionOptions { run_folder, hosts: hosts.clone(), preparation: preparation.clone(), command }
    }
}
