//! Arguments of `doctor`.

use clap::Args;
use wb_session::HostSelection;

/// `doctor`
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Also show checks that pass and hardware that this machine lacks
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Print JSON; with --hosts, an object keyed by host name
    #[arg(long)]
    pub(crate) json: bool,
    /// Machines to check; this one by default
    #[command(flatten)]
    pub(crate) hosts: HostSelection,
}
