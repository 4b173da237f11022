//! User tools that run alongside a sample, such as `perf stat -a` or `sar 1`; their output is recorded.

use wb_agent::signal::SIGINT;
use wb_agent::{Command, ExitReason, Process, ProcessOutput, TeardownGroup};
use wb_model::Nanos;
use wb_model::secrets::mask_command_line;
use wb_plan::tools::split_words;
use wb_test::{Attempt, Failure};

use crate::cleanup::{CleanupReport, add_failure};

/// Name of the end of the tools in messages.
const STEP: &str = "the end of the tools";
/// How long a tool may take to print its results and exit.
const EXIT_TIMEOUT: Nanos = Nanos(5_000_000_000);

pub struct RunningTools {
    group: TeardownGroup,
    tools: Vec<(String, Process)>,
}

impl RunningTools {
    /// Starts the tools of an attempt in a group of their own, so that their usage does not count as the workload's.
    pub async fn start(attempt: &mut Attempt, commands: &[String]) -> Result<Option<Self>, Failure> {
        if commands.is_empty() {
            return Ok(None);
        }
        let group = attempt.context.worker().new_group().await?;
        match start_all(&group, commands).await {
            Ok(tools) => Ok(Some(Self { group, tools })),
            Err(failure) => CleanupReport::of_group(group).await.record(STEP, &mut attempt.record, Err(failure)),
        }
    }

    /// Ends the tools, records their output and returns the result of the attempt. A failed tool is a finding, because
    /// its figures are missing or wrong.
    pub async fn finish(self, attempt: &mut Attempt, mut result: Result<(), Failure>) -> Result<(), Failure> {
        for (number, (line, process)) in self.tools.into_iter().enumerate() {
            // As Ctrl-C on a terminal ends such tools; it fails if the tool has exited already.
            let _ = process.signal(SIGINT).await;
            match process.wait(Some(EXIT_TIMEOUT)).await {
                Ok(finished) => record_output(attempt, number, &mask_command_line(&line), finished),
                Err(error) => result = add_failure(&mut attempt.record, STEP, result, error.into()),
            }
        }
        CleanupReport::of_group(self.group).await.record(STEP, &mut attempt.record, result)
    }
}

async fn start_all(group: &TeardownGroup, commands: &[String]) -> Result<Vec<(String, Process)>, Failure> {
    let mut tools = Vec::new();
    for line in commands {
        let argv = split_words(line)
            .ok_or_else(|| Failure::refused(format!("invalid tool command `{line}`: unclosed quote")))?;
        tools.push((line.clone(), group.spawn(Command::new(argv).cut_output()).await?));
    }
    Ok(tools)
}

fn record_output(attempt: &mut Attempt, number: usize, line: &str, finished: ProcessOutput) {
    if let Some(reason) = failure_reason(&finished) {
        attempt.add_finding(format!("tool `{line}` {reason}"));
    }
    for (name, bytes) in files(number, line, finished) {
        attempt.add_artefact(&name, bytes);
    }
}

fn files(number: usize, line: &str, finished: ProcessOutput) -> [(String, Vec<u8>); 3] {
    let name = |what: &str| format!("tool-{number}.{what}");
    [
        (name("command"), format!("{line}\n{}\n", finished.exit_reason).into_bytes()),
        (name("stdout"), finished.stdout),
        (name("stderr"), finished.stderr),
    ]
}

/// Returns why a tool failed; ending by SIGINT is not a failure.
fn failure_reason(finished: &ProcessOutput) -> Option<String> {
    /// Exit status of a shell, and of tools that follow its convention, after SIGINT.
    const BY_INTERRUPT: i32 = 128 + SIGINT;
    match finished.exit_reason {
        ExitReason::Exited { status: 0 | BY_INTERRUPT } | ExitReason::Signalled { signal: SIGINT } => return None,
        _ => {}
    }
    let stderr = String::from_utf8_lossy(&finished.stderr);
    let message = stderr.lines().rev().map(str::trim).find(|line| !line.is_empty());
    let message = message.map(|line| format!(": {}", line.chars().take(300).collect::<String>())).unwrap_or_default();
    Some(match finished.exit_reason {
        ExitReason::Exited { .. } => format!("failed with {}{message}", finished.exit_reason),
        other => format!("failed: {other}{message}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(ending: ExitReason, stderr: &str) -> Option<String> {
        failure_reason(&ProcessOutput {
            exit_reason: ending,
            stdout: Vec::new(),
            stdout_digest: None,
            arrivals: Vec::new(),
            stderr: stderr.as_bytes().to_vec(),
            started_ns: 0,
            ended_ns: 0,
            usage: Default::default(),
            outlived_by: Vec::new(),
            placement: Default::default(),
        })
    }

    #[test]
    fn a_tool_may_end_by_sigint_only() {
        for success in
            [ExitReason::Exited { status: 0 }, ExitReason::Exited { status: 130 }, ExitReason::Signalled { signal: 2 }]
        {
            assert_eq!(ended(success, "something"), None);
        }
        let failure = ended(ExitReason::Exited { status: 129 }, "Usage: perf stat\nerror: no event `nosuch`\n\n");
        assert_eq!(failure.unwrap(), "failed with exit status 129: error: no event `nosuch`");
        assert_eq!(ended(ExitReason::Signalled { signal: 11 }, "").unwrap(), "failed: killed by signal 11");
    }
}
