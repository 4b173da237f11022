//! Commands on a host.

use wb_agent::{Command, ExitReason, Group};
use wb_model::Nanos;

use crate::error::ProfileErrorKind;

/// How long a command may take that only asks or does one thing.
const COMMAND_TIMEOUT: Nanos = Nanos(120_000_000_000);
/// How much of what a program said an error shows, in lines.
const MAX_QUOTED_LINES: usize = 6;

/// Runs words on a host, in the group of a profile; what they print.
///
/// # Errors
/// When the program is not there or does not end well.
pub(crate) async fn run<A: Into<String>>(
    group: &Group,
    words: impl IntoIterator<Item = A>,
) -> Result<String, ProfileErrorKind> {
    let words: Vec<String> = words.into_iter().map(Into::into).collect();
    let program = words.first().cloned().unwrap_or_default();
    let process = group.spawn(Command::new(words)).await?;
    let finished = process.wait(Some(COMMAND_TIMEOUT)).await?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match finished.ending {
        ExitReason::Exited { status: 0 } => Ok(text(&finished.stdout)),
        ending => {
            let said = text(&finished.stderr) + &text(&finished.stdout);
            Err(ProfileErrorKind::Program {
                program,
                ending: ending.to_string(),
                said: last_lines(&said, MAX_QUOTED_LINES),
            })
        }
    }
}

/// The last lines of a text that are not empty.
pub(crate) fn last_lines(text: &str, most: usize) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(most)..].join("\n")
}

/// Requires a program on the host.
pub(crate) async fn require_program(
    group: &Group,
    program: &str,
    package: &'static str,
) -> Result<(), ProfileErrorKind> {
    match group.worker().which(program, &[]).await? {
        Some(_) => Ok(()),
        None => Err(ProfileErrorKind::NoProgram { program: program.to_owned(), package }),
    }
}
