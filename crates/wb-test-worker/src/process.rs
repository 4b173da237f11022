//! What a simulated process does.

use std::time::Duration;

use wb_agent::worker::ExitReason;

/// How a simulated process ends, and what it has written by then.
#[derive(Debug, Clone, PartialEq)]
pub struct FakeProcess {
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// How it ends.
    pub ending: ExitReason,
    /// How long it runs.
    pub elapsed: Duration,
}

impl FakeProcess {
    /// One that writes this to standard output and exits with 0 after a second.
    pub fn printing(stdout: impl Into<String>) -> Self {
        Self {
            stdout: stdout.into().into_bytes(),
            stderr: Vec::new(),
            ending: ExitReason::Exited { status: 0 },
            elapsed: Duration::from_secs(1),
        }
    }

    /// One that exits with this status after a second.
    pub fn failing(status: i32, stderr: impl Into<String>) -> Self {
        let stderr = stderr.into().into_bytes();
        Self { stderr, ending: ExitReason::Exited { status }, ..Self::printing("") }
    }

    /// The same, running for so long.
    #[must_use]
    pub fn lasting(self, elapsed: Duration) -> Self {
        Self { elapsed, ..self }
    }
}
