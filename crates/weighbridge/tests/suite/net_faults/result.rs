//! Results of programs.

use serde_json::Value;

/// Exit status and output of a program.
#[derive(Debug)]
pub(crate) struct ProgramResult {
    /// Its exit status; `None` if a signal killed it.
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl ProgramResult {
    /// The result that it printed.
    pub(crate) fn result(&self) -> RunResult {
        let value = serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        // Presets print a list.
        match value {
            Value::Array(mut values) if values.len() == 1 => RunResult(values.remove(0)),
            value => RunResult(value),
        }
    }

    /// The result of a run, which must have completed.
    pub(crate) fn completed(&self) -> RunResult {
        let result = self.result();
        assert_eq!((self.code, result.state()), (Some(0), "completed"), "{} {}", result.reason(), self.err);
        result
    }

    /// The reason of a run that ended with exit status 3 in this state.
    pub(crate) fn fell_short(&self, state: &str) -> String {
        let result = self.result();
        assert_eq!((self.code, result.state()), (Some(3), state), "{} {}", result.reason(), self.err);
        result.reason().to_owned()
    }
}

/// The result of a run.
pub(crate) struct RunResult(pub(crate) Value);

impl RunResult {
    pub(crate) fn state(&self) -> &str {
        self.0["outcome"]["state"].as_str().unwrap()
    }

    pub(crate) fn reason(&self) -> &str {
        self.0["outcome"]["reason"].as_str().unwrap_or_default()
    }

    pub(crate) fn group(&self, group: usize) -> &Value {
        &self.0["groups"][group]
    }

    pub(crate) fn transaction(&self, group: usize, transaction: usize) -> &Value {
        &self.0["groups"][group]["transactions"][transaction]
    }

    /// How a machine executed its strands.
    pub(crate) fn executor(&self, machine: usize) -> &str {
        self.0["machines"][machine]["executor"].as_str().unwrap()
    }

    /// Bytes sent and received by both sides.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        (number(&self.0["totals"]["sent-bytes"]), number(&self.0["totals"]["received-bytes"]))
    }

    pub(crate) fn rounds(&self) -> u64 {
        number(&self.0["totals"]["rounds"])
    }
}

/// A count in a result.
pub(crate) fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("invalid count {value}"))
}
