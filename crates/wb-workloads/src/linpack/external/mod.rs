//! Input and output formats of external linpack programs.
//!
//! These modules only convert text; they start no processes and open no files.

pub mod blas;
pub mod hpcc;
pub mod hpl;
pub mod input;
pub mod intel;

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OutputError {
    /// Another program, or one that ended early.
    #[error("no {0} in the output")]
    Missing(&'static str),
    #[error("invalid {expected} on line {line} of the output: `{text}`")]
    Line {
        /// From 1.
        line: usize,
        expected: &'static str,
        text: String,
    },
    /// Another unit, or another count of operations.
    #[error("line {line} of the output reports {gflops} GFLOPS for {seconds} s, which is {expected:.4} GFLOPS")]
    Inconsistent {
        /// From 1.
        line: usize,
        gflops: f64,
        seconds: f64,
        /// Follows from the size and the printed time.
        expected: f64,
    },
}

impl OutputError {
    fn invalid_line(index: usize, expected: &'static str, text: &str) -> Self {
        Self::Line { line: index + 1, expected, text: text.trim().to_owned() }
    }
}

/// Checks that a speed agrees with the solution of `n` equations (2/3 n³ + 3/2 n² operations) in a time that was
/// rounded to `time_resolution_seconds`.
fn check_consistent(
    index: usize,
    n: u64,
    seconds: f64,
    time_resolution_seconds: f64,
    gflops: f64,
) -> Result<(), OutputError> {
    let size = n as f64;
    let operations = size * size * (2.0 / 3.0 * size + 1.5);
    let by_speed = operations / gflops * 1e-9;
    let tolerance = 0.6 * time_resolution_seconds + 0.01 * seconds;
    if (by_speed - seconds).abs() <= tolerance {
        return Ok(());
    }
    let expected = operations / seconds * 1e-9;
    Err(OutputError::Inconsistent { line: index + 1, gflops, seconds, expected })
}
