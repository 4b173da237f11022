//! What programs came to.

use serde_json::Value;

/// A program that has ended.
#[derive(Debug)]
pub(crate) struct Ran {
    /// Its exit status; none where a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// The result that it printed.
    pub(crate) fn result(&self) -> RunResult {
        let value = serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        // Presets print a list.
        match value {
            Value::Array(mut values) if values.len() == 1 => RunResult(values.remove(0)),
            value => RunResult(value),
        }
    }

    /// The result of a run that went to its end.
    pub(crate) fn completed(&self) -> RunResult {
        let result = self.result();
        assert_eq!((self.code, result.state()), (Some(0), "completed"), "{} {}", result.why(), self.err);
        result
    }

    /// Why a run did not go to its end, where that was in this state.
    pub(crate) fn fell_short(&self, state: &str) -> String {
        let result = self.result();
        assert_eq!((self.code, result.state()), (Some(3), state), "{} {}", result.why(), self.err);
        result.why().to_owned()
    }
}

/// The result of a run.
pub(crate) struct RunResult(pub(crate) Value);

impl RunResult {
    pub(crate) fn state(&self) -> &str {
        self.0["outcome"]["state"].as_str().unwrap()
    }

    pub(crate) fn why(&self) -> &str {
        self.0["outcome"]["reason"].as_str().unwrap_or_default()
    }

    pub(crate) fn group(&self, group: usize) -> &Value {
        &self.0["groups"][group]
    }

    pub(crate) fn transaction(&self, group: usize, transaction: usize) -> &Value {
        &self.0["groups"][group]["transactions"][transaction]
    }

    /// How a machine carried out its strands.
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
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}
