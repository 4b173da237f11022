//! What the terminal can do, and what the user wants of it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::OnceLock;

use wb_report::text::Style;

use crate::cli::{Colour, ConsoleFlags};
use crate::error::Error;

/// Where text goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Console {
    /// How standard output is written.
    pub(crate) stdout_style: Style,
    /// Whether colour is wanted on standard error.
    pub(crate) colour_stderr: bool,
    /// Whether something may move on standard error.
    pub(crate) animate: bool,
    /// Whether progress is told at all.
    pub(crate) quiet: bool,
    /// When to colour, as requested.
    colour: Colour,
}

/// Columns where there is no terminal.
const DEFAULT_WIDTH: usize = 100;

impl Console {
    /// As the flags and the terminal have it. `NO_COLOR` is respected (no-color.org) where no flag says otherwise.
    pub(crate) fn from_flags(flags: &ConsoleFlags) -> Self {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let wanted = |terminal: bool| match flags.color {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => terminal && !is_dumb && !is_refused,
        };
        let (out, err) = (std::io::stdout().is_terminal(), std::io::stderr().is_terminal());
        let width = terminal_size::terminal_size().map_or(DEFAULT_WIDTH, |(width, _)| usize::from(width.0).max(40));
        Self {
            stdout_style: Style { width: if out { width } else { DEFAULT_WIDTH }, colour: wanted(out) },
            colour_stderr: wanted(err),
            animate: err && !flags.quiet && !is_dumb,
            quiet: flags.quiet,
            colour: flags.color,
        }
    }

    /// The options that make another process of this program write as this one does.
    pub(crate) fn forwarded_arguments(&self) -> Vec<OsString> {
        let colour = match self.colour {
            Colour::Auto => None,
            Colour::Always => Some("--color=always"),
            Colour::Never => Some("--color=never"),
        };
        let words = colour.into_iter().chain(self.quiet.then_some("--quiet")).map(OsString::from);
        let log = LOG.get().into_iter().flat_map(|log| [OsString::from("--log"), log.path.clone().into()]);
        words.chain(log).collect()
    }
}

/// A file that has what is written to standard error.
struct LogFile {
    path: PathBuf,
    file: File,
}

/// One for the process, as standard error is.
static LOG: OnceLock<LogFile> = OnceLock::new();

/// Opens the log file, where one is requested.
pub(crate) fn open_log(flags: &ConsoleFlags) -> Result<(), Error> {
    let Some(path) = &flags.log else { return Ok(()) };
    let opened = File::options().create(true).append(true).open(path);
    let file = opened.map_err(|source| Error::File { path: path.display().to_string(), source })?;
    // It is opened once, by `main`.
    let _ = LOG.set(LogFile { path: path.clone(), file });
    Ok(())
}

/// Writes to standard error, and to the log file where there is one; a reader that has gone away (`2>&1 | head`) and a
/// full disk are no reason to stop measuring.
pub(crate) fn write_stderr(text: std::fmt::Arguments<'_>) {
    let _ = std::io::stderr().write_fmt(text);
    if LOG.get().is_some() {
        write_log(&text.to_string());
    }
}

/// Writes to the log file alone, where there is one: for what standard error gets in another way.
pub(crate) fn write_log(text: &str) {
    if let Some(mut file) = LOG.get().map(|log| &log.file) {
        let now = jiff::Timestamp::now();
        let lines: String = text.lines().map(|line| format!("{now:.3} {line}\n")).collect();
        let _ = file.write_all(lines.as_bytes());
    }
}

/// Writes a line to standard error and the log.
macro_rules! tell {
    ($($line:tt)*) => { $crate::console::write_stderr(format_args!("{}\n", format_args!($($line)*))) };
}

/// The same without the end of the line.
macro_rules! tell_part {
    ($($part:tt)*) => { $crate::console::write_stderr(format_args!($($part)*)) };
}

pub(crate) use {tell, tell_part};
