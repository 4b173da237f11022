//! Amount of measured work: a number of iterations, or enough for a duration; calibration.

use crate::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How much work is measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Exactly so many iterations.
    Iterations(u64),
    /// As many iterations as last at least so many seconds, found out beforehand.
    Seconds(f64),
}

/// A shorter run of the same work before the measured one. Its time per iteration has to agree
/// with the measured: a gate on it finds work that was not done.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Probe {
    /// Iterations of the probe.
    pub iterations: u64,
    /// Wall time of the probe.
    pub seconds: f64,
}

/// What was measured.
#[derive(Debug)]
pub(crate) struct TimedRun<T> {
    pub(crate) iterations: u64,
    pub(crate) seconds: f64,
    pub(crate) value: T,
    pub(crate) probe: Probe,
}

/// Probes share this part of the measured time…
const PROBE_SHARE: f64 = 0.1;
/// …but take no less than this, for the clock's and the caches' sake.
const SHORTEST_PROBE: f64 = 0.01;
/// Iterations are rounded up by this, since no two runs are equally fast.
const MARGIN: f64 = 1.03;
/// Measuring again because it came out too short ends after so many times: a machine that keeps
/// speeding up is measured all the same, and the report says how long it took.
const MAX_RETRIES: u32 = 4;

/// A probe does this part of a known number of iterations.
const PROBE_DIVISOR: u64 = 8;
/// A probe that is as far off as this (twice or half the time per iteration) may have been kept waiting by others,
/// or run in peace where the measured run had not: it is repeated, and the nearest one kept…
const MAX_PROBE_DISTANCE: f64 = std::f64::consts::LN_2;
/// …so many times at most. Where the time does not follow the work, every probe is far off.
const MAX_PROBE_REPEATS: u32 = 3;

/// Measures `once`, which does a number of iterations from the same initial state each time and
/// tells their wall time.
///
/// # Errors
/// What `once` says, and [`Error::Config`] for no work at all.
pub(crate) fn measure<T>(
    work: Work,
    mut once: impl FnMut(u64) -> Result<(Duration, T), Error>,
) -> Result<TimedRun<T>, Error> {
    let mut run = |iterations: u64| {
        once(iterations).map(|(wall, value)| (value, Probe { iterations, seconds: wall.as_secs_f64() }))
    };
    let (first, (value, Probe { iterations, seconds })) = match work {
        Work::Iterations(0) => return Err(Error::Config("no iterations are asked for: give at least 1".into())),
        Work::Iterations(iterations) => {
            let (_, probe) = run(iterations.div_ceil(PROBE_DIVISOR))?;
            (probe, run(iterations)?)
        }
        Work::Seconds(asked) if !(asked > 0.0 && asked < 1e6) => {
            return Err(Error::Config(format!(
                "{asked} s cannot be measured: give more than 0 and less than a million"
            )));
        }
        Work::Seconds(asked) => {
            let long_enough = (asked * PROBE_SHARE).clamp(SHORTEST_PROBE, 1.0).min(asked);
            let (_, mut probe) = run(1)?;
            while probe.seconds < long_enough {
                (_, probe) = run(estimate_iterations(probe, long_enough))?;
            }
            let mut measured = run(estimate_iterations(probe, asked))?;
            for _ in 0..MAX_RETRIES {
                if measured.1.seconds >= asked {
                    break;
                }
                measured = run(estimate_iterations(measured.1, asked))?;
            }
            (probe, measured)
        }
    };
    let measured = Probe { iterations, seconds };
    let mut probe = first;
    for _ in 0..MAX_PROBE_REPEATS {
        if distance(probe, measured) <= MAX_PROBE_DISTANCE {
            break;
        }
        let (_, again) = run(iterations.div_ceil(PROBE_DIVISOR))?;
        if distance(again, measured) < distance(probe, measured) {
            probe = again;
        }
    }
    Ok(TimedRun { iterations, seconds, value, probe })
}

/// By which factor the times per iteration differ, as a logarithm.
fn distance(probe: Probe, measured: Probe) -> f64 {
    let each = |probe: Probe| probe.seconds.max(1e-9) / probe.iterations as f64;
    (each(probe) / each(measured)).ln().abs()
}

/// Iterations that should last `seconds`, judged by a probe: always more than it had if it was
/// shorter, and never a thousand times more, since a very short probe tells little.
fn estimate_iterations(probe: Probe, seconds: f64) -> u64 {
    let factor = (seconds * MARGIN / probe.seconds.max(1e-9)).min(1000.0);
    let iterations = (probe.iterations as f64 * factor).ceil() as u64;
    if probe.seconds < seconds { iterations.max(probe.iterations + 1) } else { iterations.max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// A run of `per` seconds for each iteration and `fixed` seconds besides.
    fn paced(work: Work, per: f64, fixed: f64) -> (TimedRun<u64>, Vec<u64>) {
        let asked = RefCell::new(Vec::new());
        let measured = measure(work, |n| {
            asked.borrow_mut().push(n);
            Ok((Duration::from_secs_f64(fixed + per * n as f64), n))
        });
        (measured.unwrap(), asked.into_inner())
    }

    #[test]
    fn iterations_are_done_as_asked_after_a_short_probe() {
        let (measured, asked) = paced(Work::Iterations(100), 0.1, 0.0);
        assert_eq!(asked, [13, 100]);
        assert_eq!((measured.iterations, measured.probe.iterations, measured.value), (100, 13, 100));
    }

    #[test]
    fn seconds_last_at_least_as_long_as_asked() {
        for (per, fixed) in [(1e-6, 0.0), (1e-3, 0.0), (0.3, 0.0), (7.0, 0.0), (1e-8, 0.004)] {
            let (measured, asked) = paced(Work::Seconds(0.5), per, fixed);
            assert!(measured.seconds >= 0.5, "{per}: {asked:?}");
            assert!(measured.seconds < 0.6 + per, "{per}: {asked:?}");
            assert!(asked.len() < 13, "{per}: {asked:?}");
            assert_eq!(measured.value, measured.iterations);
        }
    }

    #[test]
    fn a_probe_that_was_kept_waiting_is_repeated() {
        // The first call waits for 20 ms, as one does that others keep from its CPU.
        for work in [Work::Seconds(0.5), Work::Iterations(50_000)] {
            let mut calls = 0;
            let measured = measure(work, |n| {
                calls += 1;
                let waited = if calls == 1 { 0.2 } else { 0.0 };
                Ok((Duration::from_secs_f64(waited + 1e-5 * n as f64), ()))
            })
            .unwrap();
            let each = |seconds: f64, iterations: u64| seconds / iterations as f64;
            let ratio =
                each(measured.probe.seconds, measured.probe.iterations) / each(measured.seconds, measured.iterations);
            assert!((0.5..2.0).contains(&ratio), "{work:?}: {ratio}");
        }
    }

    #[test]
    fn work_that_is_not_done_is_not_hidden_by_repeating() {
        let measured = measure(Work::Iterations(1000), |_| Ok((Duration::from_millis(1), ()))).unwrap();
        assert_eq!((measured.probe.iterations, measured.probe.seconds), (125, 0.001));
    }

    #[test]
    fn no_work_is_an_error() {
        for work in [Work::Iterations(0), Work::Seconds(0.0), Work::Seconds(f64::NAN), Work::Seconds(-1.0)] {
            assert!(matches!(measure(work, |_| Ok((Duration::ZERO, ()))), Err(Error::Config(_))));
        }
    }

    #[test]
    fn work_is_written_as_its_name_and_figure() {
        assert_eq!(serde_json::to_string(&Work::Seconds(0.5)).unwrap(), r#"{"seconds":0.5}"#);
        assert_eq!(serde_json::from_str::<Work>(r#"{"iterations":3}"#).unwrap(), Work::Iterations(3));
    }
}
