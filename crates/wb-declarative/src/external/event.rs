use serde::Deserialize;
use wb_model::{Class, Gate};

/// One line of a runner's standard output.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case", deny_unknown_fields)]
pub enum RunnerEvent {
    /// The first line.
    Hello { protocol: u32 },
    Metric {
        class: Class,
        name: String,
        value: f64,
        /// The declared unit, or one that the definition converts.
        unit: String,
    },
    /// A condition for the sample to be valid.
    Check {
        name: String,
        passed: bool,
        /// Gate that the sample fails otherwise.
        #[serde(default = "default_gate")]
        gate: Gate,
        #[serde(default)]
        figures: String,
    },
    Finding {
        /// One sentence.
        text: String,
    },
    /// A part of the work, done before the measurement: it shows whether the run time depends on the work.
    Probe {
        /// In the runner's own unit.
        amount: u64,
        seconds: f64,
    },
    Work {
        /// In the runner's own unit.
        amount: u64,
        seconds: Option<f64>,
    },
    Artefact {
        /// Letters, digits, `_`, `.` and `-`.
        name: String,
        text: Option<String>,
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
