//! The controllers: from the figures of a period to the concurrency of the next one.
//!
//! The latency controller moves a limit of the concurrency, the rate controller the concurrency below it. Whichever
//! does not determine the result forgets its sum of errors, so that it starts without a backlog when it is its turn.

use std::time::Duration;

use crate::{HashdParams, PidGains};

/// The concurrency never becomes 0, because it is changed by multiplication. A hundredth is one request in flight for a
/// hundredth of the time.
const MIN_CONCURRENCY: f64 = 0.01;
/// With fewer requests expected in a period, their number is too random for a controller.
const MIN_REQUESTS: f64 = 10.0;
/// Latency of a period in which nothing was completed, relative to the target.
const STALLED: f64 = 10.0;

/// A PID controller for a setpoint of 1. Each of its terms is limited to ±`limit`, and their sum to ±1.
#[derive(Clone, Debug)]
struct Pid {
    gains: PidGains,
    limit: f64,
    integral: f64,
    previous: Option<f64>,
}

impl Pid {
    fn new(gains: PidGains, limit: f64) -> Self {
        Self { gains, limit, integral: 0.0, previous: None }
    }

    fn update(&mut self, measured: f64) -> f64 {
        let limit = |term: f64| term.clamp(-self.limit, self.limit);
        let error = 1.0 - measured;
        let proportional = limit(self.gains.kp * error);
        // What was summed up on one side of the setpoint has no use on the other: the concurrency, which is multiplied by
        // the outputs, already is a sum.
        let is_crossing = self.integral * error < 0.0;
        let integral = if is_crossing { 0.0 } else { limit(self.integral + self.gains.ki * error) };
        let slope = self.previous.map_or(0.0, |previous| measured - previous);
        let derivative = limit(-self.gains.kd * slope);
        self.integral = integral;
        self.previous = Some(measured);
        (proportional + integral + derivative).clamp(-1.0, 1.0)
    }

    fn reset_integral(&mut self) {
        self.integral = 0.0;
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Measurement {
    /// Completed requests per second.
    pub(crate) rps: f64,
    /// Controlled quantile; `None` if nothing was completed.
    pub(crate) latency: Option<Duration>,
    /// `None` if nothing was completed.
    pub(crate) mean_latency: Option<Duration>,
    /// At the end of the period.
    pub(crate) in_flight: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct ConcurrencyControl {
    latency: Pid,
    rate: Pid,
    concurrency: f64,
    limit: f64,
    /// In seconds, of the last period with requests. A worker's pause is in proportion to its own latency, which is one
    /// of these, so that their noise cancels out.
    mean_latency: Option<f64>,
}

impl ConcurrencyControl {
    /// Starts without a limit below the maximum.
    pub(crate) fn new(params: &HashdParams, concurrency: f64) -> Self {
        let max = f64::from(params.concurrency_max);
        Self {
            latency: Pid::new(params.lat_pid, 0.1),
            rate: Pid::new(params.rps_pid, 1.0),
            concurrency: concurrency.clamp(MIN_CONCURRENCY, max),
            limit: max,
            mean_latency: None,
        }
    }

    /// Continues with other parameters from the same concurrency.
    pub(crate) fn set_params(&mut self, params: &HashdParams) {
        let max = f64::from(params.concurrency_max);
        let limit = if self.is_limited() { self.limit.min(max) } else { max };
        *self = Self { limit, mean_latency: self.mean_latency, ..Self::new(params, self.concurrency) };
    }

    /// Mean number of requests in flight.
    pub(crate) fn concurrency(&self) -> f64 {
        self.concurrency
    }

    /// Maximum concurrency that the latency permits.
    pub(crate) fn limit(&self) -> f64 {
        self.limit
    }

    /// The latency, not the rate, determines the concurrency.
    fn is_limited(&self) -> bool {
        self.concurrency >= self.limit
    }

    pub(crate) fn update(&mut self, params: &HashdParams, measured: Measurement) {
        let max = f64::from(params.concurrency_max);
        if let Some(latency) = self.relative_latency(params, measured) {
            let adjustment = self.latency.update(latency);
            if adjustment < 0.0 {
                // The limit may be far above the concurrency, where lowering it would have no effect for a long time.
                self.limit = self.limit.min(self.concurrency);
            }
            // One request at a time is the least that the latency can ask for: fewer are not faster.
            self.limit = (self.limit * (1.0 + adjustment)).clamp(1.0, max);
        }
        self.mean_latency = measured.mean_latency.map(|latency| latency.as_secs_f64()).or(self.mean_latency);
        self.concurrency = match (params.rps_target, self.mean_latency) {
            (Some(target), Some(latency)) if target * params.control_period.seconds() < MIN_REQUESTS => {
                // Little's law.
                target * latency
            }
            (target, _) => {
                let relative_rate = target.map_or(0.0, |target| measured.rps / target);
                (self.concurrency * (1.0 + self.rate.update(relative_rate))).max(MIN_CONCURRENCY)
            }
        };
        if self.is_limited() {
            self.concurrency = self.limit;
            self.rate.reset_integral();
        } else {
            self.latency.reset_integral();
        }
    }

    /// The latency relative to its target; `None` if nothing could have been completed.
    fn relative_latency(&self, params: &HashdParams, measured: Measurement) -> Option<f64> {
        match measured.latency {
            Some(latency) => Some(latency.as_secs_f64() / params.lat_target.seconds()),
            None => (measured.in_flight > 0 && self.concurrency >= 1.0).then_some(STALLED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A closed loop of requests that take `base` seconds alone, on a system that completes at most `capacity` per second.
    struct Plant {
        base: f64,
        capacity: f64,
    }

    impl Plant {
        /// Rate and latency with this concurrency.
        fn run(&self, concurrency: f64) -> Measurement {
            let latency = self.base.max(concurrency / self.capacity);
            let rps = concurrency / latency;
            Measurement {
                rps,
                latency: Some(Duration::from_secs_f64(latency * 1.5)),
                mean_latency: Some(Duration::from_secs_f64(latency)),
                in_flight: 1,
            }
        }
    }

    const PLANT: Plant = Plant { base: 0.03, capacity: 400.0 };

    /// Rate and latency at the end of `periods`.
    fn simulate(control: &mut ConcurrencyControl, params: &HashdParams, plant: &Plant, periods: usize) -> (f64, f64) {
        let mut last = plant.run(control.concurrency());
        for _ in 0..periods {
            last = plant.run(control.concurrency());
            control.update(params, last);
        }
        (last.rps, last.latency.map_or(0.0, |latency| latency.as_secs_f64()))
    }

    fn nothing_completed(in_flight: usize) -> Measurement {
        Measurement { rps: 0.0, latency: None, mean_latency: None, in_flight }
    }

    fn targeting(rps: Option<f64>) -> HashdParams {
        HashdParams { rps_target: rps, ..HashdParams::default() }
    }

    #[track_caller]
    fn assert_near(actual: f64, expected: f64, tolerance: f64) {
        assert!((actual / expected - 1.0).abs() <= tolerance, "{actual}, expected {expected}");
    }

    #[test]
    fn rates_far_below_and_near_the_maximum_are_reached() {
        for target in [0.01, 0.5, 2.0, 9.0, 20.0, 320.0] {
            let params = targeting(Some(target));
            let mut control = ConcurrencyControl::new(&params, 1.0);
            let (rps, _) = simulate(&mut control, &params, &PLANT, 60);
            assert_near(rps, target, 0.02);
        }
    }

    #[test]
    fn few_requests_in_a_period_do_not_make_the_rate_oscillate() {
        let params = targeting(Some(0.2));
        let mut control = ConcurrencyControl::new(&params, 1.0);
        // A request of 50 ms is completed in one period of five.
        for period in 0..100 {
            let latency = (period % 5 == 0).then_some(Duration::from_millis(50));
            let rps = if latency.is_some() { 1.0 } else { 0.0 };
            control.update(&params, Measurement { rps, latency, mean_latency: latency, in_flight: 0 });
            assert_near(control.concurrency(), 0.01, 1e-9);
        }
    }

    #[test]
    fn latency_limits_the_concurrency_if_the_rate_does_not() {
        for target in [None, Some(1000.0)] {
            let params = targeting(target);
            let mut control = ConcurrencyControl::new(&params, 1.0);
            let (rps, latency) = simulate(&mut control, &params, &PLANT, 200);
            assert_near(rps, 400.0, 0.05);
            assert_near(latency, 0.075, 0.05);
        }
    }

    #[test]
    fn overload_leaves_no_windup() {
        let params = targeting(Some(320.0));
        let mut control = ConcurrencyControl::new(&params, 1.0);
        simulate(&mut control, &params, &PLANT, 60);
        let slow = Plant { base: 0.03, capacity: 40.0 };
        simulate(&mut control, &params, &slow, 120);
        assert!(control.concurrency() < 3.0, "{}", control.concurrency());
        let (rps, _) = simulate(&mut control, &params, &PLANT, 30);
        assert_near(rps, 320.0, 0.1);
        // Neither does a target that was unreachable exceed the next one.
        let unreachable = targeting(Some(4000.0));
        control.set_params(&unreachable);
        simulate(&mut control, &unreachable, &PLANT, 300);
        control.set_params(&params);
        let (rps, _) = simulate(&mut control, &params, &PLANT, 30);
        assert_near(rps, 320.0, 0.05);
    }

    #[test]
    fn stall_lowers_the_limit_and_idleness_does_not() {
        let params = targeting(None);
        let mut control = ConcurrencyControl::new(&params, 10.0);
        control.update(&params, nothing_completed(10));
        assert!(control.concurrency() < 10.0);
        let mut idle = ConcurrencyControl::new(&params, 0.1);
        idle.update(&params, nothing_completed(0));
        assert!(idle.concurrency() > 0.1);
    }

    #[test]
    fn terms_are_limited() {
        let mut pid = Pid::new(PidGains { kp: 10.0, ki: 10.0, kd: 10.0 }, 0.1);
        assert_eq!(pid.update(100.0), -0.2);
        // The sum starts again on the other side of the setpoint.
        assert!((pid.update(0.0) - 0.2).abs() < 1e-12);
        assert!((pid.update(0.0) - 0.2).abs() < 1e-12);
    }
}
