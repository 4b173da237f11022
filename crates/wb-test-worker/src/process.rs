//! Simulated processes.

use std::time::Duration;

use wb_agent::worker::ExitReason;

/// Behaviour of a simulated process: its output, duration and exit.
#[derive(Debug, Clone, PartialEq)]
pub struct FakeProcess {
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// Why it ends.
    pub ending: ExitReason,
    /// Its duration.
    pub elapsed: Duration,
}

impl FakeProcess {
    /// Creates a process that writes to standard output and exits with 0 after a second.
    pub fn printing(stdout: impl Into<String>) -> Self {
        Self {
            stdout: stdout.into().into_bytes(),
            stderr: Vec::new(),
            ending: ExitReason::Exited { status: 0 },
            elapsed: Duration::from_secs(1),
        }
    }

    /// Creates a process that writes to standard error and exits with a status after a second.
    pub fn failing(status: i32, stderr: impl Into<String>) -> Self {
        let stderr = stderr.into().into_bytes();
        Self { stderr, ending: ExitReason::Exited { status }, ..Self::printing("") }
    }

    /// Sets the duration.
    #[must_use]
    pub fn lasting(self, elapsed: Duration) -> Self {
        Self { elapsed, ..self }
    }
}
