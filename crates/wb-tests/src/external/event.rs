//! What a runner can say.

use serde::Deserialize;
use wb_model::{Class, Gate};

/// One line of a runner's standard output.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case", deny_unknown_fields)]
pub enum RunnerEvent {
    /// The first line.
    Hello {
        /// The version of the protocol that it speaks.
        protocol: u32,
    },
    /// A figure of a declared metric.
    Metric {
        /// The metric's class.
        class: Class,
        /// The metric's name.
        name: String,
        /// The figure.
        value: f64,
        /// The unit that it is in: the declared one, or one that the definition converts.
        unit: String,
    },
    /// Something that must hold for the sample to count.
    Check {
        /// What must hold.
        name: String,
        /// Whether it does.
        passed: bool,
        /// The question that a sample did not stand up to where it does not.
        #[serde(default = "answer")]
        gate: Gate,
        /// The figures that say so.
        #[serde(default)]
        figures: String,
    },
    /// Something that was noticed.
    Finding {
        /// What, in a sentence.
        text: String,
    },
    /// A part of the work, done before and not measured: it shows that the time follows the work.
    Probe {
        /// How much was done, in the runner's own count.
        amount: u64,
        /// How long that took.
        seconds: f64,
    },
    /// The measured work.
    Work {
        /// How much was done, in the runner's own count.
        amount: u64,
        /// How long that took.
        seconds: Option<f64>,
    },
    /// A file to keep with the sample.
    Artefact {
        /// Its name: letters, digits, `_`, `.` and `-`.
        name: String,
        /// What is in it, as text.
        text: Option<String>,
        /// What is in it, in base 64.
        base64: Option<String>,
    },
    /// No sample could be taken; the last line.
    Failed {
        /// Why.
        reason: String,
    },
    /// All is said; the last line.
    Done,
}

fn answer() -> Gate {
    Gate::Answer
}
