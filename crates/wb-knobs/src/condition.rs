//! The Condition trait: current activity of the system, as opposed to a setting, that makes measurements noisy.

use std::thread;
use std::time::{Duration, Instant};

use wb_sys::SysRoot;

use crate::KnobTarget;
use crate::counters::CounterSnapshot;
use crate::verdict::NoiseVerdict;

/// Current activity or state of the system that makes measurements noisy.
pub trait Condition: Sync {
    fn description(&self) -> ConditionDescription;
    fn observe(&self, sample: &SystemSample<'_>) -> Vec<ConditionReport>;
}

pub struct ConditionDescription {
    pub name: &'static str,
    /// Why it matters, as a clause.
    pub why: &'static str,
    /// The evidence for it, and the size of its effect where known.
    pub evidence: &'static str,
}

/// Time between the two readings: long enough for twenty of the kernel's clock ticks, short enough to wait for.
const SAMPLE_TIME: Duration = Duration::from_millis(200);

/// Two readings of a system's counters, and the time between them.
pub struct SystemSample<'a> {
    pub(crate) root: &'a SysRoot,
    pub(crate) before: CounterSnapshot,
    pub(crate) after: CounterSnapshot,
    /// Time between the readings, in seconds; zero for a fake root.
    pub(crate) seconds: f64,
}

impl<'a> SystemSample<'a> {
    /// Takes two readings 200 ms apart on the running system, or a single one of a fake root.
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

    pub fn between(root: &'a SysRoot, before: CounterSnapshot, after: CounterSnapshot, seconds: f64) -> Self {
        Self { root, before, after, seconds }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionReport {
    pub(crate) target: KnobTarget,
    pub(crate) state: String,
    pub(crate) verdict: NoiseVerdict,
    pub(crate) advice: Option<(String, Option<String>)>,
}

impl ConditionReport {
    pub(crate) fn no_noise(state: impl Into<String>) -> Self {
        Self { target: KnobTarget::System, state: state.into(), verdict: NoiseVerdict::NoNoise, advice: None }
    }

    pub(crate) fn noisy(state: impl Into<String>, advice: impl Into<String>, command: Option<String>) -> Self {
        let advice = Some((advice.into(), command));
        Self { target: KnobTarget::System, state: state.into(), verdict: NoiseVerdict::Noisy, advice }
    }

    pub(crate) fn may_be_noisy(state: impl Into<String>, reason: impl Into<String>) -> Self {
        let verdict = NoiseVerdict::Unknown { reason: reason.into() };
        Self { target: KnobTarget::System, state: state.into(), verdict, advice: None }
    }

    pub(crate) fn unsupported(reason: impl Into<String>) -> Self {
        let verdict = NoiseVerdict::Unsupported { reason: reason.into() };
        Self { target: KnobTarget::System, state: String::new(), verdict, advice: None }
    }

    pub(crate) fn with_target(self, target: KnobTarget) -> Self {
        Self { target, ..self }
    }

    pub(crate) fn with_advice(self, advice: impl Into<String>, command: Option<String>) -> Self {
        Self { advice: Some((advice.into(), command)), ..self }
    }
}
