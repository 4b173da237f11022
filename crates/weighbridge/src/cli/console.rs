//! Options of the output of all commands.

use clap::{Args, ValueEnum};

use super::OutputPath;

/// Output options
#[derive(Debug, Args)]
pub(crate) struct ConsoleFlags {
    /// When to colour the output
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
    /// Suppress progress output; print only results and errors
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Also append standard error to this file, each line with a timestamp
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) log: Option<OutputPath>,
}

/// When to colour the output
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}
