//! Runs commands on a host.

use wb_agent::{Command, ExitReason, TeardownGroup};
use wb_model::Nanos;

use crate::error::ProfileErrorKind;

const COMMAND_TIMEOUT: Nanos = Nanos(120_000_000_000);
const MAX_QUOTED_LINES: usize = 6;

/// Runs a command on a host in the group of a profile; returns its standard output.
pub(crate) async fn run<A: Into<String>>(
    group: &TeardownGroup,
    words: impl IntoIterator<Item = A>,
) -> Result<String, ProfileErrorKind> {
    let words: Vec<String> = words.into_iter().map(Into::into).collect();
    let program = words.first().cloned().unwrap_or_default();
    let process = group.spawn(Command::new(words)).await?;
    let finished = process.wait(Some(COMMAND_TIMEOUT)).await?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match finished.exit_reason {
        ExitReason::Exited { status: 0 } => Ok(text(&finished.stdout)),
        ending => {
            let output = text(&finished.stderr) + &text(&finished.stdout);
            Err(ProfileErrorKind::Program {
                program,
                ending: ending.to_string(),
                output: last_lines(&output, MAX_QUOTED_LINES),
            })
        }
    }
}

/// The last non-empty lines of a text.
pub(crate) fn last_lines(text: &str, max: usize) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(max)..].join("\n")
}

pub(crate) async fn require_program(
    group: &TeardownGroup,
    program: &str,
    package: &'static str,
) -> Result<(), ProfileErrorKind> {
    match group.worker().which(program, &[]).await? {
        Some(_) => Ok(()),
        None => Err(ProfileErrorKind::NoProgram { program: program.to_owned(), package }),
    }
}
