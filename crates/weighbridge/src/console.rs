//! What the terminal can do, and what the user wants of it.

use std::io::IsTerminal;

use wb_report::text::Style;

use crate::cli::{Colour, ConsoleFlags};

/// Where text goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Console {
    /// How standard output is written.
    pub(crate) out: Style,
    /// Whether colour is wanted on standard error.
    pub(crate) colour_err: bool,
    /// Whether something may move on standard error.
    pub(crate) animate: bool,
    /// Whether progress is told at all.
    pub(crate) quiet: bool,
}

/// Columns where there is no terminal.
const WIDTH: usize = 100;

impl Console {
    /// As the flags and the terminal have it. `NO_COLOR` is respected (no-color.org) where no flag says otherwise.
    pub(crate) fn of(flags: &ConsoleFlags) -> Self {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let wanted = |terminal: bool| match flags.color {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => terminal && !is_dumb && !is_refused,
        };
        let (out, err) = (std::io::stdout().is_terminal(), std::io::stderr().is_terminal());
        let width = terminal_size::terminal_size().map_or(WIDTH, |(width, _)| usize::from(width.0).max(40));
        Self {
            out: Style { width: if out { width } else { WIDTH }, colour: wanted(out) },
            colour_err: wanted(err),
            animate: err && !flags.quiet && !is_dumb,
            quiet: flags.quiet,
        }
    }
}

/// Writes a line to standard error; a reader that has gone away (`2>&1 | head`) is no reason to stop measuring.
macro_rules! tell {
    ($($line:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($line)*);
    }};
}

/// The same without the end of the line.
macro_rules! tell_part {
    ($($part:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stderr(), $($part)*);
    }};
}

pub(crate) use {tell, tell_part};
