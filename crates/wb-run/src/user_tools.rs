//! User tools around a sample, such as `perf stat -a` or `sar 1`: started before it, ended after it, output kept.

use wb_agent::{Command, ExitReason, Group, Process, ProcessOutput, Worker};
use wb_model::Nanos;
use wb_model::secrets::mask_words;
use wb_plan::tools::split_words;
use wb_tests::attempt::worker_failure;
use wb_tests::{Attempt, Failure};

/// SIGINT: what ends such tools as a user at a terminal would.
const INTERRUPT: i32 = 2;
/// How long a tool may take to print what it found.
const EXIT_TIMEOUT: Nanos = Nanos(5_000_000_000);

/// Tools that are running.
pub struct RunningTools {
    group: Group,
    tools: Vec<(String, Process)>,
}

impl RunningTools {
    /// Starts them, in a group of their own: what they use is not the workload's.
    pub async fn start(worker: &Worker, commands: &[String]) -> Result<Option<Self>, Failure> {
        if commands.is_empty() {
            return Ok(None);
        }
        let group = worker.new_group().await.map_err(worker_failure)?;
        let mut tools = Vec::new();
        for line in commands {
            let argv = split_words(line)
                .ok_or_else(|| Failure::refused(format!("the tool `{line}` is no command: a quote is open")))?;
            let process = group.spawn(Command::new(argv)).await.map_err(worker_failure)?;
            tools.push((line.clone(), process));
        }
        Ok(Some(Self { group, tools }))
    }

    /// Ends them and keeps what they wrote; one that failed is a finding, since its figures are missing or wrong.
    pub async fn finish_into(self, attempt: &mut Attempt) -> Result<(), Failure> {
        for (number, FinishedTool { line, finished }) in self.end().await?.into_iter().enumerate() {
            if let Some(fault) = failure_reason(&finished) {
                attempt.add_finding(format!("tool `{line}` {fault}"));
            }
            for (name, bytes) in files(number, &line, finished) {
                attempt.add_artefact(&name, bytes);
            }
        }
        Ok(())
    }

    async fn end(self) -> Result<Vec<FinishedTool>, Failure> {
        let mut ended = Vec::new();
        for (line, process) in self.tools {
            // A tool that has ended already cannot be told to.
            let _ = process.signal(INTERRUPT).await;
            let finished = process.wait(Some(EXIT_TIMEOUT)).await.map_err(worker_failure)?;
            ended.push(FinishedTool { line: mask_words(&line), finished });
        }
        self.group.teardown().await.map_err(worker_failure)?;
        Ok(ended)
    }
}

/// A tool that has ended.
struct FinishedTool {
    line: String,
    finished: ProcessOutput,
}

fn files(number: usize, line: &str, finished: ProcessOutput) -> [(String, Vec<u8>); 3] {
    let name = |what: &str| format!("tool-{number}.{what}");
    [
        (name("command"), format!("{line}\n{}\n", finished.ending).into_bytes()),
        (name("stdout"), finished.stdout),
        (name("stderr"), finished.stderr),
    ]
}

/// What is wrong with how a tool ended: it was interrupted, and by that alone it may end.
fn failure_reason(finished: &ProcessOutput) -> Option<String> {
    /// What a shell, and tools that follow it, say of an end by SIGINT.
    const BY_INTERRUPT: i32 = 128 + INTERRUPT;
    match finished.ending {
        ExitReason::Exited { status: 0 | BY_INTERRUPT } | ExitReason::Signalled { signal: INTERRUPT } => return None,
        _ => {}
    }
    let stderr = String::from_utf8_lossy(&finished.stderr);
    let said = stderr.lines().rev().map(str::trim).find(|line| !line.is_empty());
    let said = said.map(|line| format!(": {}", line.chars().take(300).collect::<String>())).unwrap_or_default();
    Some(match finished.ending {
        ExitReason::Exited { .. } => format!("ended with {}{said}", finished.ending),
        other => format!("was ended: {other}{said}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(ending: ExitReason, stderr: &str) -> Option<String> {
        failure_reason(&ProcessOutput {
            ending,
            stdout: Vec::new(),
            stdout_digest: None,
            stderr: stderr.as_bytes().to_vec(),
            started_ns: 0,
            ended_ns: 0,
            usage: Default::default(),
            placement: Default::default(),
        })
    }

    #[test]
    fn a_tool_may_end_by_the_interrupt_and_by_nothing_else() {
        for fine in
            [ExitReason::Exited { status: 0 }, ExitReason::Exited { status: 130 }, ExitReason::Signalled { signal: 2 }]
        {
            assert_eq!(ended(fine, "something"), None);
        }
        let wrong = ended(ExitReason::Exited { status: 129 }, "Usage: perf stat\nerror: no event `nosuch`\n\n");
        assert_eq!(wrong.unwrap(), "ended with exit status 129: error: no event `nosuch`");
        assert_eq!(ended(ExitReason::Signalled { signal: 11 }, "").unwrap(), "was ended: killed by signal 11");
    }
}
