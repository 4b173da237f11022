//! Events of a runner.

use serde::Deserialize;
use wb_model::{Class, Gate};

/// One line of a runner's standard output.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case", deny_unknown_fields)]
pub enum RunnerEvent {
    /// The first line.
    Hello {
        /// Its version of the protocol.
        protocol: u32,
    },
    /// A value of a declared metric.
    Metric {
        class: Class,
        /// The condition.
        name: String,
        value: f64,
        /// Its unit: the declared one, or one that the definition converts.
        unit: String,
    },
    /// A condition for the sample to be valid.
    Check {
        name: String,
        /// Whether it holds.
        passed: bool,
        /// The gate that the sample fails otherwise.
        #[serde(default = "default_gate")]
        gate: Gate,
        /// The figures that show it.
        #[serde(default)]
        figures: String,
    },
    /// An observation.
    Finding {
        /// The observation, in a sentence.
        text: String,
    },
    /// A part of the work, done before the measurement: it shows whether the run time depends on the work.
    Probe {
        /// Amount of work, in the runner's own unit.
        amount: u64,
        /// Time that it took, in seconds.
        seconds: f64,
    },
    Work {
        /// Amount of work, in the runner's own unit.
        amount: u64,
        /// Time that it took, in seconds.
        seconds: Option<f64>,
    },
    /// A file to record with the sample.
    Artefact {
        /// Its name: letters, digits, `_`, `.` and `-`.
        name: String,
        text: Option<String>,
        /// Its content in base64.
        base64: Option<String>,
    },
    /// The sample could not be taken; the last line.
    Failed { reason: String },
    /// The output is complete; the last line.
    Done,
}

fn default_gate() -> Gate {
    Gate::Answer
}
