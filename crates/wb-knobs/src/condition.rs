//! What the system does at the moment, and nobody has set.

use std::thread;
use std::time::{Duration, Instant};

use wb_sys::SysRoot;

use crate::KnobTarget;
use crate::counters::CounterSnapshot;
use crate::doctor::Verdict;

/// One thing that the system does and that makes noise.
pub trait Condition: Sync {
    /// Its name: `steal`.
    fn name(&self) -> &'static str;
    /// Why it matters, as one clause.
    fn why(&self) -> &'static str;
    /// Where that is known from, and how much it can be where that can be said.
    fn evidence(&self) -> &'static str;
    /// What is seen of it.
    fn observe(&self, observation: &SystemSample<'_>) -> Vec<ConditionReport>;
}

/// How long is looked on: long enough for twenty of the kernel's clock ticks, short enough to wait for.
const SAMPLE_TIME: Duration = Duration::from_millis(200);

/// Two moments of a system, and the time between them.
pub struct SystemSample<'a> {
    pub(crate) root: &'a SysRoot,
    pub(crate) before: CounterSnapshot,
    pub(crate) after: CounterSnapshot,
    /// Between the two; zero where the system does not move.
    pub(crate) seconds: f64,
}

impl<'a> SystemSample<'a> {
    /// Looks on for 200 ms where the system is the running one.
    pub fn take(root: &'a SysRoot) -> Self {
        let before = CounterSnapshot::read(root);
        if !root.is_real() {
            return Self::between(root, before.clone(), before, 0.0);
        }
        let start = Instant::now();
        thread::sleep(SAMPLE_TIME);
        let after = CounterSnapshot::read(root);
        Self::between(root, before, after, start.elapsed().as_secs_f64())
    }

    /// Two moments that were read before.
    pub fn between(root: &'a SysRoot, before: CounterSnapshot, after: CounterSnapshot, seconds: f64) -> Self {
        Self { root, before, after, seconds }
    }
}

/// What is seen of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionReport {
    pub(crate) target: KnobTarget,
    pub(crate) state: String,
    pub(crate) verdict: Verdict,
    pub(crate) advice: Option<(String, Option<String>)>,
}

impl ConditionReport {
    pub(crate) fn quiet(state: impl Into<String>) -> Self {
        Self { target: KnobTarget::System, state: state.into(), verdict: Verdict::Quiet, advice: None }
    }

    pub(crate) fn noisy(state: impl Into<String>, advice: impl Into<String>, command: Option<String>) -> Self {
        let advice = Some((advice.into(), command));
        Self { target: KnobTarget::System, state: state.into(), verdict: Verdict::Noisy, advice }
    }

    pub(crate) fn unknown(state: impl Into<String>, reason: impl Into<String>) -> Self {
        let verdict = Verdict::Unknown { reason: reason.into() };
        Self { target: KnobTarget::System, state: state.into(), verdict, advice: None }
    }

    pub(crate) fn unsupported(reason: impl Into<String>) -> Self {
        let verdict = Verdict::Unsupported { reason: reason.into() };
        Self { target: KnobTarget::System, state: String::new(), verdict, advice: None }
    }

    pub(crate) fn with_target(self, target: KnobTarget) -> Self {
        Self { target, ..self }
    }

    pub(crate) fn with_advice(self, advice: impl Into<String>, command: Option<String>) -> Self {
        Self { advice: Some((advice.into(), command)), ..self }
    }
}
