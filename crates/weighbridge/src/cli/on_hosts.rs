//! Commands that run on this machine or on hosts.

use clap::Args;
use wb_session::HostSelection;

/// Options of a command, and the machines on which it runs.
#[derive(Debug, Args)]
pub(crate) struct OnHosts<A: Args> {
    #[command(flatten)]
    pub(crate) args: A,
    /// Machines to run it on; this one by default
    #[command(flatten)]
    pub(crate) hosts: HostSelection,
}
