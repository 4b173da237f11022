//! Amount of measured work: a number of iterations, or enough for a duration; calibration.

use crate::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The amount of measured work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Exactly this number of iterations.
    Iterations(u64),
    /// Enough iterations to take at least this many seconds; a calibration determines their number.
    Seconds(f64),
}

/// A shorter run of the same work before the measured run. Both must agree in their time per iteration: a gate detects
/// work that was not done.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Probe {
    /// Iterations of the probe.
    pub iterations: u64,
    /// Wall time of the probe.
    pub seconds: f64,
}

#[derive(Debug)]
pub(crate) struct TimedRun<T> {
    pub(crate) iterations: u64,
    pub(crate) seconds: f64,
    pub(crate) value: T,
    pub(crate) probe: Probe,
}

/// Duration of the calibration's probe, as a fraction of the measured time…
const PROBE_SHARE: f64 = 0.1;
/// …but at least this many seconds, because of the resolution of the clock and cold caches.
const SHORTEST_PROBE: f64 = 0.01;
/// Factor by which the estimated iterations are increased, since no two runs are equally fast.
const MARGIN: f64 = 1.03;
/// Maximum number of repetitions of a measured run that was too short: on a machine that keeps speeding up, the last
/// one counts, and the report has its actual duration.
const MAX_RETRIES: u32 = 4;

/// A probe of a given number of iterations does one part in this many.
const PROBE_DIVISOR: u64 = 8;
/// Distance from which on a probe is repeated (twice or half the time per iteration): other processes may have delayed
/// it, or delayed the measured run only. The nearest probe counts…
const MAX_PROBE_DISTANCE: f64 = std::f64::consts::LN_2;
/// …after this many repetitions at most. If the time does not follow the work, every probe is far off.
const MAX_PROBE_REPEATS: u32 = 3;

/// Measures `once`, which does a number of iterations from the same initial state each time and returns their wall
/// time. Fails with [`Error::Config`] for an amount of work that is zero or out of range.
pub(crate) fn measure<T>(
    work: Work,
    mut once: impl FnMut(u64) -> Result<(Duration, T), Error>,
) -> Result<TimedRun<T>, Error> {
    let mut run = |iterations: u64| {
        once(iterations).map(|(wall, value)| (value, Probe { iterations, seconds: wall.as_secs_f64() }))
    };
    let (first, (value, Probe { iterations, seconds })) = match work {
        Work::Iterations(0) => return Err(Error::Config("invalid work of 0 iterations: expected 1 or more".into())),
        Work::Iterations(iterations) => {
            let (_, probe) = run(iterations.div_ceil(PROBE_DIVISOR))?;
            (probe, run(iterations)?)
        }
        Work::Seconds(requested) if !(requested > 0.0 && requested < 1e6) => {
            return Err(Error::Config(format!(
                "invalid work of {requested} s: expected more than 0 s and less than 1000000 s"
            )));
        }
        Work::Seconds(requested) => {
            let long_enough = (requested * PROBE_SHARE).clamp(SHORTEST_PROBE, 1.0).min(requested);
            let (_, mut probe) = run(1)?;
            while probe.seconds < long_enough {
                (_, probe) = run(estimate_iterations(probe, long_enough))?;
            }
            let mut measured = run(estimate_iterations(probe, requested))?;
            for _ in 0..MAX_RETRIES {
                if measured.1.seconds >= requested {
                    break;
                }
                measured = run(estimate_iterations(measured.1, requested))?;
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
        let (_, repeated) = run(iterations.div_ceil(PROBE_DIVISOR))?;
        if distance(repeated, measured) < distance(probe, measured) {
            probe = repeated;
        }
    }
    Ok(TimedRun { iterations, seconds, value, probe })
}

/// Logarithm of the ratio of the times per iteration.
fn distance(probe: Probe, measured: Probe) -> f64 {
    let each = |probe: Probe| probe.seconds.max(1e-9) / probe.iterations as f64;
    (each(probe) / each(measured)).ln().abs()
}

/// Iterations that should take `seconds`: more than the probe's if it was shorter, and at most a thousand times as
/// many, since a very short probe is inaccurate.
fn estimate_iterations(probe: Probe, seconds: f64) -> u64 {
    let factor = (seconds * MARGIN / probe.seconds.max(1e-9)).min(1000.0);
    let iterations = (probe.iterations as f64 * factor).ceil() as u64;
    if probe.seconds < seconds { iterations.max(probe.iterations + 1) } else { iterations.max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// A simulated run that takes `per` seconds for each iteration and `fixed` seconds in addition.
    fn paced(work: Work, per: f64, fixed: f64) -> (TimedRun<u64>, Vec<u64>) {
        let iteration_counts = RefCell::new(Vec::new());
        let measured = measure(work, |n| {
            iteration_counts.borrow_mut().push(n);
            Ok((Duration::from_secs_f64(fixed + per * n as f64), n))
        });
        (measured.unwrap(), iteration_counts.into_inner())
    }

    #[test]
    fn the_requested_iterations_follow_a_short_probe() {
        let (measured, iteration_counts) = paced(Work::Iterations(100), 0.1, 0.0);
        assert_eq!(iteration_counts, [13, 100]);
        assert_eq!((measured.iterations, measured.probe.iterations, measured.value), (100, 13, 100));
    }

    #[test]
    fn a_run_takes_at_least_the_requested_seconds() {
        for (per, fixed) in [(1e-6, 0.0), (1e-3, 0.0), (0.3, 0.0), (7.0, 0.0), (1e-8, 0.004)] {
            let (measured, iteration_counts) = paced(Work::Seconds(0.5), per, fixed);
            assert!(measured.seconds >= 0.5, "{per}: {iteration_counts:?}");
            assert!(measured.seconds < 0.6 + per, "{per}: {iteration_counts:?}");
            assert!(iteration_counts.len() < 13, "{per}: {iteration_counts:?}");
            assert_eq!(measured.value, measured.iterations);
        }
    }

    #[test]
    fn a_delayed_probe_is_repeated() {
        // The first call takes 200 ms longer, as if other processes had delayed it.
        for work in [Work::Seconds(0.5), Work::Iterations(50_000)] {
            let mut calls = 0;
            let measured = measure(work, |n| {
                calls += 1;
                let delay = if calls == 1 { 0.2 } else { 0.0 };
                Ok((Duration::from_secs_f64(delay + 1e-5 * n as f64), ()))
            })
            .unwrap();
            let each = |seconds: f64, iterations: u64| seconds / iterations as f64;
            let ratio =
                each(measured.probe.seconds, measured.probe.iterations) / each(measured.seconds, measured.iterations);
            assert!((0.5..2.0).contains(&ratio), "{work:?}: {ratio}");
        }
    }

    #[test]
    fn skipped_work_is_not_hidden_by_repeating() {
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
    fn work_is_serialised_as_its_name_and_figure() {
        assert_eq!(serde_json::to_string(&Work::Seconds(0.5)).unwrap(), r#"{"seconds":0.5}"#);
        assert_eq!(serde_json::from_str::<Work>(r#"{"iterations":3}"#).unwrap(), Work::Iterations(3));
    }
}
