//! Reading what linpack programs of others print, and writing what they read.
//!
//! Text in, values out: no process is started here and no file is opened.

pub mod blas;
pub mod hpcc;
pub mod hpl;
pub mod input;
pub mod intel;

/// Why the output of a linpack program is not a result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OutputError {
    /// The part that holds the results is not there: another program, or one that ended early.
    #[error("no {what} in the output")]
    Missing {
        /// What was looked for.
        what: &'static str,
    },
    /// A line in the results cannot be read, or the output is torn there.
    #[error("line {line} of the output is no {expected}: `{text}`")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What should stand there.
        expected: &'static str,
        /// What stands there.
        text: String,
    },
    /// Time and speed contradict each other: another unit, or another count of operations.
    #[error("line {line} of the output gives {gflops} GFLOPS for {seconds} s, which are {expected:.4}")]
    Inconsistent {
        /// Counted from 1.
        line: usize,
        /// As printed.
        gflops: f64,
        /// As printed.
        seconds: f64,
        /// What the size and the printed time make.
        expected: f64,
    },
}

impl OutputError {
    fn line(index: usize, expected: &'static str, text: &str) -> Self {
        Self::Line { line: index + 1, expected, text: text.trim().to_owned() }
    }
}

/// Checks that a speed is that of `n` equations (2/3 n³ + 3/2 n² operations) in a time that was
/// rounded to `seconds_step`.
fn check_consistent(index: usize, n: u64, seconds: f64, seconds_step: f64, gflops: f64) -> Result<(), OutputError> {
    let size = n as f64;
    let operations = size * size * (2.0 / 3.0 * size + 1.5);
    let by_speed = operations / gflops * 1e-9;
    let tolerance = 0.6 * seconds_step + 0.01 * seconds;
    if (by_speed - seconds).abs() <= tolerance {
        return Ok(());
    }
    let expected = operations / seconds * 1e-9;
    Err(OutputError::Inconsistent { line: index + 1, gflops, seconds, expected })
}
