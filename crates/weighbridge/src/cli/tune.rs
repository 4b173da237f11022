//! `tune`: settings of machines, set and put back.

use clap::{Args, Subcommand};

use super::HostSelectionFlags;

/// `tune`
#[derive(Debug, Subcommand)]
pub(crate) enum TuneCommand {
    /// Show what is changed on this machine, and what sets would change; changes nothing
    #[command(after_help = "exit status: 0 everything that is named can be set, 3 something that is named cannot")]
    Status(TuneStatusArgs),
    /// Set knobs, and keep in the undo log what they were
    #[command(
        after_help = "exit status: 0 everything that could be set is, 1 another process is changing this machine, \
        3 something that was named could not be set, or something only in part"
    )]
    Apply(TuneApplyArgs),
    /// Put back everything that was changed, as it was found
    #[command(after_help = "What somebody else has changed since is left as it is and stays in the undo log.\n\n\
        exit status: 0 everything is as it was, 1 another process is changing this machine, 3 not everything could be \
        put back, 4 nothing is changed")]
    Revert(TuneRevertArgs),
}

/// `tune status`
#[derive(Debug, Args)]
pub(crate) struct TuneStatusArgs {
    /// Sets, files of sets, or single knobs, as for `apply`; without, which sets there are
    #[arg(value_name = "SET|FILE|KNOB[@TARGET]=VALUE")]
    pub(crate) what: Vec<String>,
    /// Print JSON; of other machines an object with each one's by its name
    #[arg(long)]
    pub(crate) json: bool,
    /// On which machines; without, this one
    #[command(flatten)]
    pub(crate) hosts: HostSelectionFlags,
}

/// `tune apply`
#[derive(Debug, Args)]
pub(crate) struct TuneApplyArgs {
    /// Sets by name (those shipped, and *.toml in ~/.config/weighbridge/knobs.d), files of sets, or single knobs; what
    /// comes later wins
    #[arg(value_name = "SET|FILE|KNOB[@TARGET]=VALUE", required = true)]
    pub(crate) what: Vec<String>,
    /// Print JSON; of other machines an object with each one's by its name
    #[arg(long)]
    pub(crate) json: bool,
    /// On which machines; without, this one
    #[command(flatten)]
    pub(crate) hosts: HostSelectionFlags,
}

/// `tune revert`
#[derive(Debug, Args)]
pub(crate) struct TuneRevertArgs {
    /// Put back also what somebody else has changed since
    #[arg(long)]
    pub(crate) force: bool,
    /// Print JSON; of other machines an object with each one's by its name
    #[arg(long)]
    pub(crate) json: bool,
    /// On which machines; without, this one
    #[command(flatten)]
    pub(crate) hosts: HostSelectionFlags,
}
