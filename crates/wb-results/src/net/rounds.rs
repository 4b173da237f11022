//! Rounds and executions that a rate scheduled, or that the end of a window interrupted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rounds that were open when their window ended. Of each it is known that it took at least as long as it had been open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PendingRounds {
    /// Their number.
    pub count: u64,
    /// How long the oldest had been open, in nanoseconds.
    pub at_least_ns: u64,
}

/// Rounds that a rate scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ScheduledRounds {
    /// Number of rounds that were due in the window.
    pub due: u64,
    /// Number of those that never began.
    pub not_started: u64,
    /// How long the oldest of those had been due, in nanoseconds; 0 without one.
    pub at_least_ns: u64,
    /// Of a number of iterations: rounds that began after the period of the last was over.
    #[serde(default)]
    pub overdue: u64,
}

impl ScheduledRounds {
    /// Describes a rate that was not reached, if more than a hundredth of the due operations never began.
    pub fn describe_shortfall(&self) -> Option<String> {
        let Self { due, not_started, at_least_ns, overdue } = *self;
        let milliseconds = at_least_ns as f64 / 1e6;
        if is_notable_share(not_started, due) {
            return Some(format!(
                "the rate was not reached: {not_started} of {due} rounds that were due never began, the oldest for \
                 {milliseconds:.1} ms; response times include them with the time since they were due"
            ));
        }
        is_notable_share(overdue, due)
            .then(|| format!("the rate was not reached: {overdue} of {due} rounds began after all had been due"))
    }
}

/// Executions of a flowop that its rate scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ScheduledExecutions {
    /// Number of executions that were due.
    pub due: u64,
    /// Number of those that never began, or began after all had been due.
    pub missed: u64,
}

impl ScheduledExecutions {
    /// As [`ScheduledRounds::describe_shortfall`].
    pub fn describe_shortfall(&self, flowop: &str) -> Option<String> {
        let Self { due, missed } = *self;
        is_notable_share(missed, due).then(|| {
            format!("the rate was not reached: {missed} of {due} executions of `{flowop}` did not begin in time")
        })
    }
}

/// Whether so many rounds are pending, more than a hundredth, that the latencies must be read with their number. Every
/// window interrupts some.
pub fn is_notable_share(pending: u64, all: u64) -> bool {
    pending > all / 100
}
