use clap::Args;

/// `doctor`
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Also show checks that pass and hardware that this machine lacks
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Print JSON; of hosts, an object keyed by their names
    #[arg(long)]
    pub(crate) json: bool,
}
