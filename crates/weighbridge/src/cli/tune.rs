use clap::{Args, Subcommand};

use super::on_hosts::OnHosts;

/// `tune`
#[derive(Debug, Subcommand)]
pub(crate) enum TuneCommand {
    /// Show changed settings and what the given sets would change, without changing anything
    #[command(after_help = "exit status: 0 everything named can be set, 3 something named cannot")]
    Status(OnHosts<TuneStatusArgs>),
    /// Set knobs and record their original values in the undo log
    #[command(
        after_help = "exit status: 0 everything that can be set is set, 1 another process is changing this machine, \
        3 something named could not be set, or only in part"
    )]
    Apply(OnHosts<TuneApplyArgs>),
    /// Restore the original values of all changed settings
    #[command(
        after_help = "A value that something else has changed since is left as it is and stays in the undo log.\n\n\
        exit status: 0 everything is restored, 1 another process is changing this machine, 3 not everything could be \
        restored, 4 nothing is changed"
    )]
    Revert(OnHosts<TuneRevertArgs>),
}

/// `weighbridge-agent tune`, on the agent's machine
#[derive(Debug, Subcommand)]
pub(crate) enum TuneHere {
    /// Show changed settings and what the given sets would change
    Status(TuneStatusArgs),
    /// Set knobs and record their original values in the undo log
    Apply(TuneApplyArgs),
    /// Restore the original values of all changed settings
    Revert(TuneRevertArgs),
}

/// `tune status`
#[derive(Debug, Args)]
pub(crate) struct TuneStatusArgs {
    /// Sets, files of sets, or single knobs, as for `apply`; without them, the available sets are listed
    #[arg(value_name = "SET|FILE|KNOB[@TARGET]=VALUE")]
    pub(crate) what: Vec<String>,
    /// Print JSON; of hosts, an object keyed by their names
    #[arg(long)]
    pub(crate) json: bool,
}

/// `tune apply`
#[derive(Debug, Args)]
pub(crate) struct TuneApplyArgs {
    /// Sets by name (built-in, or *.toml in ~/.config/weighbridge/knobs.d), files of sets, or single knobs; later
    /// values win
    #[arg(value_name = "SET|FILE|KNOB[@TARGET]=VALUE", required = true)]
    pub(crate) what: Vec<String>,
    /// Print JSON; of hosts, an object keyed by their names
    #[arg(long)]
    pub(crate) json: bool,
}

/// `tune revert`
#[derive(Debug, Args)]
pub(crate) struct TuneRevertArgs {
    /// Also restore values that something else has changed since
    #[arg(long)]
    pub(crate) force: bool,
    /// Print JSON; of hosts, an object keyed by their names
    #[arg(long)]
    pub(crate) json: bool,
}
