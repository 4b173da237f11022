use std::time::Duration;

use wb_agent::ExitReason;

/// Behaviour of a simulated process: its output, files, duration and exit.
#[derive(Debug, Clone, PartialEq)]
pub struct FakeProcess {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub ending: ExitReason,
    pub elapsed: Duration,
    pub files: Vec<(String, Vec<u8>)>,
}

impl FakeProcess {
    /// Creates a process that writes to standard output and exits with 0 after a second.
    pub fn printing(stdout: impl Into<String>) -> Self {
        Self {
            stdout: stdout.into().into_bytes(),
            stderr: Vec::new(),
            ending: ExitReason::Exited { status: 0 },
            elapsed: Duration::from_secs(1),
            files: Vec::new(),
        }
    }

    /// Creates a process that writes to standard error and exits with a status after a second.
    pub fn failing(status: i32, stderr: impl Into<String>) -> Self {
        let stderr = stderr.into().into_bytes();
        Self { stderr, ending: ExitReason::Exited { status }, ..Self::printing("") }
    }

    /// Adds a file that it writes.
    #[must_use]
    pub fn writing(mut self, path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        self.files.push((path.into(), content.into()));
        self
    }

    /// Sets the duration.
    #[must_use]
    pub fn lasting(self, elapsed: Duration) -> Self {
        Self { elapsed, ..self }
    }
}
