//! Console output: colours, width, progress and the log file.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, OnceLock, PoisonError};

use wb_model::escape_controls;
use wb_report::text::Style;

use wb_sys::OutputFile;

use crate::cli::{Colour, ConsoleFlags, OutputPath};
use crate::error::Error;
use crate::output;

/// Output settings, derived from the flags and the terminal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Console {
    pub(crate) stdout_style: Style,
    pub(crate) colour_stderr: bool,
    /// Whether to animate progress on standard error.
    pub(crate) animate: bool,
    /// Whether to suppress progress output.
    pub(crate) quiet: bool,
    colour: Colour,
}

/// Width in columns without a terminal.
const DEFAULT_WIDTH: usize = 100;

impl Console {
    /// Derives the settings. `NO_COLOR` (no-color.org) is respected unless a flag overrides it.
    pub(crate) fn from_flags(flags: &ConsoleFlags) -> Self {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let use_colour = |terminal: bool| match flags.color {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => terminal && !is_dumb && !no_color,
        };
        let (out, err) = (output::is_terminal(), std::io::stderr().is_terminal());
        let width = terminal_size::terminal_size().map_or(DEFAULT_WIDTH, |(width, _)| usize::from(width.0).max(40));
        Self {
            stdout_style: Style {
                width: if out { width } else { DEFAULT_WIDTH },
                colour: use_colour(out),
                is_terminal: out,
            },
            colour_stderr: use_colour(err),
            animate: err && !flags.quiet && !is_dumb,
            quiet: flags.quiet,
            colour: flags.color,
        }
    }

    /// The options that give another process of this program the same output settings.
    pub(crate) fn forwarded_arguments(&self) -> Vec<OsString> {
        let colour = match self.colour {
            Colour::Auto => None,
            Colour::Always => Some("--color=always"),
            Colour::Never => Some("--color=never"),
        };
        let words = colour.into_iter().chain(self.quiet.then_some("--quiet")).map(OsString::from);
        let path = |log: &LogFile| {
            let state = log.state.lock().unwrap_or_else(PoisonError::into_inner);
            // Otherwise the process opens it by its name.
            state.file.inherited_name().ok().flatten().unwrap_or_else(|| log.path.as_path().to_owned())
        };
        let log = LOG.get().into_iter().flat_map(|log| [OsString::from("--log"), path(log).into()]);
        words.chain(log).collect()
    }
}

/// A log file, which receives a copy of standard error.
struct LogFile {
    path: OutputPath,
    state: Mutex<LogState>,
}

struct LogState {
    file: OutputFile,
    is_failure_reported: bool,
}

static LOG: OnceLock<LogFile> = OnceLock::new();

pub(crate) fn open_log(flags: &ConsoleFlags) -> Result<(), Error> {
    let Some(path) = &flags.log else { return Ok(()) };
    let state = LogState { file: output::append_file(path)?, is_failure_reported: false };
    // Only `main` opens it, once.
    let _ = LOG.set(LogFile { path: path.clone(), state: state.into() });
    Ok(())
}

/// Writes to standard error and to the log file, if any. No error stops a measurement: standard error may be a closed
/// pipe (`2>&1 | head`), and a log that cannot be written, as on a full disk, is reported once.
pub(crate) fn write_stderr(text: std::fmt::Arguments<'_>) {
    let text = clean(&text.to_string());
    let _ = std::io::stderr().write_all(text.as_bytes());
    write_log(&text);
}

/// What may be shown of a text. What hosts and programs print must neither control the terminal nor be shown as something
/// else.
pub(crate) fn clean(text: &str) -> String {
    escape_controls(&without_error_numbers(text)).into_owned()
}

/// Removes the numbers that Rust appends to the system's error messages: ` (os error 2)`.
fn without_error_numbers(text: &str) -> String {
    const START: &str = " (os error ";
    let mut parts = text.split(START);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut shown, part| {
        match part.split_once(')') {
            Some((number, rest)) if number.parse::<u32>().is_ok() => shown.push_str(rest),
            _ => shown.extend([START, part]),
        }
        shown
    })
}

/// Writes only to the log file, if any, for text that reaches standard error in another way.
pub(crate) fn write_log(text: &str) {
    let Some(log) = LOG.get() else { return };
    let now = jiff::Timestamp::now();
    let lines: String = text.lines().map(|line| format!("{now:.3} {line}\n")).collect();
    let mut state = log.state.lock().unwrap_or_else(PoisonError::into_inner);
    let written = state.file.write_all(lines.as_bytes()).and_then(|()| state.file.flush());
    if let Err(error) = written
        && !std::mem::replace(&mut state.is_failure_reported, true)
    {
        // Not through `message`, which would write it to the log again.
        let warning = format!("warning: the log lacks lines: {}\n", Error::output(&log.path)(error));
        let _ = std::io::stderr().write_all(clean(&warning).as_bytes());
    }
}

/// Writes a line to standard error and the log.
macro_rules! message {
    ($($line:tt)*) => { $crate::console::write_stderr(format_args!("{}\n", format_args!($($line)*))) };
}

/// Writes text without a newline to standard error and the log.
macro_rules! write_part {
    ($($part:tt)*) => { $crate::console::write_stderr(format_args!($($part)*)) };
}

pub(crate) use {message, write_part};

#[cfg(test)]
mod tests {
    use super::*;

    // Lines above a progress bar were printed as they were.
    #[test]
    fn shown_texts_neither_control_a_terminal_nor_conceal_anything() {
        assert_eq!(clean("\u{1b}]0;x\u{7}a\u{202e}b\n"), "\\u{1b}]0;x\\u{7}a\\u{202e}b\n");
    }

    #[test]
    fn only_numbers_of_system_errors_are_removed() {
        let shown = |text: &str| without_error_numbers(text);
        let error = std::io::Error::from_raw_os_error(2);
        assert_eq!(shown(&format!("cannot read `a`: {error}\n")), "cannot read `a`: No such file or directory\n");
        assert_eq!(shown("a (os error 2): b (os error 110)"), "a: b");
        for text in ["", "a", " (os error x)", "a (os error 5", "(os error 2)"] {
            assert_eq!(shown(text), text);
        }
    }
}
