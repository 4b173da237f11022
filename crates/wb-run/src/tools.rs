//! User tools around a sample, such as `perf stat -a` or `sar 1`: started before it, ended after it, output kept.

use wb_agent::{Command, Group, Process, Worker};
use wb_model::Nanos;
use wb_sys::environment::secrets::masked_words;
use wb_tests::Failure;
use wb_tests::attempt::lost;

/// SIGINT: what ends such tools as a user at a terminal would.
const INTERRUPT: i32 = 2;
/// How long a tool may take to print what it found.
const PATIENCE: Nanos = Nanos(5_000_000_000);

/// Tools that are running.
pub struct Running {
    group: Group,
    tools: Vec<(String, Process)>,
}

impl Running {
    /// Starts them, in a group of their own: what they use is not the workload's.
    pub async fn start(worker: &Worker, commands: &[String]) -> Result<Option<Self>, Failure> {
        if commands.is_empty() {
            return Ok(None);
        }
        let group = worker.group().await.map_err(lost)?;
        let mut tools = Vec::new();
        for line in commands {
            let argv = words(line)
                .ok_or_else(|| Failure::refused(format!("the tool `{line}` is no command: a quote is open")))?;
            let process = group.spawn(Command::new(argv)).await.map_err(lost)?;
            tools.push((line.clone(), process));
        }
        Ok(Some(Self { group, tools }))
    }

    /// Ends them; files to keep.
    pub async fn finish(self) -> Result<Vec<(String, Vec<u8>)>, Failure> {
        let mut files = Vec::new();
        for (number, (line, process)) in self.tools.into_iter().enumerate() {
            // A tool that has ended already cannot be told to.
            let _ = process.signal(INTERRUPT).await;
            let finished = process.wait(Some(PATIENCE)).await.map_err(lost)?;
            files.push((
                format!("tool-{number}.command"),
                format!("{}\n{}\n", masked_words(&line), finished.ending).into_bytes(),
            ));
            files.push((format!("tool-{number}.stdout"), finished.stdout));
            files.push((format!("tool-{number}.stderr"), finished.stderr));
        }
        self.group.teardown().await.map_err(lost)?;
        Ok(files)
    }
}

/// A command line's words, as a shell divides them.
fn words(line: &str) -> Option<Vec<String>> {
    shell_words::split(line).ok().filter(|words| !words.is_empty())
}
