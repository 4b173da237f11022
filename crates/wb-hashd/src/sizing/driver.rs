//! Runs round after round until the answer is found.

use std::ops::ControlFlow;
use std::time::Instant;

use wb_sys::telemetry::DisturbanceMark;

use super::window::{Reading, Window};
use super::{Round, RoundOutcome, RoundPlan, SizingConfig, SizingError, SizingResult, SizingStep, Stage, next_step};
use crate::footprint::FootprintSizes;
use crate::{HashdError, HashdParams, HashdReport};

/// Reports at the start of a round do not count, because the controllers begin with what they knew of the previous one.
const SETTLING: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowEnd {
    Observed,
    /// As the kernel does when memory runs out.
    Killed,
    Cancelled,
}

/// A workload that was observed.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    pub end: WindowEnd,
    /// What else was active meanwhile.
    pub disturbance: Vec<DisturbanceMark>,
}

/// A running hashd, or something that behaves like one.
pub trait SizingWorkload {
    /// Continues with these parameters, or starts with them, and passes each report to `on_report` until that breaks.
    /// Reports begin when what the parameters add to the footprint has been filled. Fails if the workload cannot be
    /// started, or ends by itself.
    fn observe(
        &mut self,
        params: &HashdParams,
        on_report: &mut dyn FnMut(&HashdReport) -> ControlFlow<()>,
    ) -> Result<Observation, SizingError>;

    /// Bytes of memory that the workload has, which a larger footprint can use too.
    fn resident_bytes(&self) -> u64;
}

/// Runs the rounds that `rounds` lacks, for a resolved configuration. `on_start` gets the plan of each round before it
/// is run, `on_round` each round as soon as it is finished; an error of `on_round` ends the sizing.
pub fn find_params<E: From<SizingError>>(
    config: &SizingConfig,
    mut rounds: Vec<Round>,
    workload: &mut dyn SizingWorkload,
    mut on_start: impl FnMut(&RoundPlan),
    mut on_round: impl FnMut(&Round) -> Result<(), E>,
) -> Result<SizingResult, E> {
    loop {
        let plan = match next_step(config, &rounds)? {
            SizingStep::Done(result) => return Ok(*result),
            SizingStep::Run(plan) => plan,
        };
        on_start(&plan);
        let round = run(config, plan, workload)?;
        on_round(&round)?;
        rounds.push(round);
    }
}

fn run(config: &SizingConfig, plan: RoundPlan, workload: &mut dyn SizingWorkload) -> Result<Round, SizingError> {
    let start = Instant::now();
    let finish =
        |plan, outcome, disturbance| Round { plan, outcome, disturbance, seconds: start.elapsed().as_secs_f64() };
    let params = plan.params(config);
    let sizes = FootprintSizes { memory: config.memory.map_or(0, |memory| memory.0) };
    match sizes.check(&params, workload.resident_bytes()) {
        Ok(()) => {}
        Err(HashdError::Memory { required, available }) => {
            return Ok(finish(plan, RoundOutcome::DoesNotFit { required, available }, Vec::new()));
        }
        Err(error) => return Err(error.into()),
    }
    let mut observer = Observer::new(config, plan.stage, &params);
    let observation = workload.observe(&params, &mut |report| observer.push(report))?;
    match (observation.end, observer.outcome) {
        (WindowEnd::Cancelled, _) => Err(SizingError::Cancelled),
        (WindowEnd::Observed, Some(outcome)) => Ok(finish(plan, outcome, observation.disturbance)),
        (WindowEnd::Killed | WindowEnd::Observed, _) => {
            Ok(finish(plan, RoundOutcome::Killed {}, observation.disturbance))
        }
    }
}

/// Combines reports into readings of about a second each.
struct Observer {
    window: Window,
    skipped: usize,
    lat_target: f64,
    outcome: Option<RoundOutcome>,
}

impl Observer {
    fn new(config: &SizingConfig, stage: Stage, params: &HashdParams) -> Self {
        let window = Window::new(stage, params.rps_target, config.window_scale);
        Self { window, skipped: 0, lat_target: params.lat_target.seconds(), outcome: None }
    }

    fn push(&mut self, report: &HashdReport) -> ControlFlow<()> {
        if self.skipped < SETTLING {
            self.skipped += 1;
            return ControlFlow::Continue(());
        }
        // Nothing completed means that the latency is far above its target.
        let latency = report.latency.map_or(self.lat_target * 10.0, |latency| latency.control);
        self.outcome = self.window.push(Reading { rps: report.rps, latency });
        if self.outcome.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::super::simulation::config;
    use super::*;
    use crate::LatencyQuantiles;

    /// A workload whose rate falls beyond the footprint `sustained`, and that is killed beyond the footprint `killed`.
    struct Simulated {
        sustained: f64,
        killed: f64,
        observations: usize,
    }

    impl SizingWorkload for Simulated {
        fn observe(
            &mut self,
            params: &HashdParams,
            on_report: &mut dyn FnMut(&HashdReport) -> ControlFlow<()>,
        ) -> Result<Observation, SizingError> {
            self.observations += 1;
            let end = if params.mem_frac > self.killed { WindowEnd::Killed } else { WindowEnd::Observed };
            let rps = params.rps_target.unwrap() * (self.sustained / params.mem_frac).min(1.0);
            while end == WindowEnd::Observed && on_report(&report(rps)).is_continue() {}
            Ok(Observation { end, disturbance: Vec::new() })
        }

        fn resident_bytes(&self) -> u64 {
            1 << 40
        }
    }

    fn report(rps: f64) -> HashdReport {
        let latency =
            LatencyQuantiles { min: 0.0, p50: 0.0, p90: 0.0, p95: 0.0, p99: 0.0, p999: 0.0, max: 0.0, control: 0.05 };
        HashdReport { rps, latency: Some(latency), ..HashdReport::default() }
    }

    fn fake() -> SizingConfig {
        let params = HashdParams { fake_cpu_load: true, ..HashdParams::default() };
        SizingConfig { params, rps_max: Some(200.0), ..config() }
    }

    #[test]
    fn killed_workloads_limit_the_footprint() {
        let mut workload = Simulated { sustained: 2.0, killed: 0.5, observations: 0 };
        let mut rounds = Vec::new();
        let collect = |round: &Round| {
            rounds.push(round.clone());
            Ok::<(), SizingError>(())
        };
        let result = find_params(&fake(), Vec::new(), &mut workload, |_| (), collect).unwrap();
        assert!((0.47..=0.5).contains(&result.params.mem_frac), "{}", result.params.mem_frac);
        assert!(rounds.iter().any(|round| round.outcome == RoundOutcome::Killed {}));
    }

    #[test]
    fn finished_rounds_are_not_run_again() {
        let mut workload = Simulated { sustained: 0.5, killed: 2.0, observations: 0 };
        let mut rounds = Vec::new();
        let collect = |round: &Round| {
            rounds.push(round.clone());
            if rounds.len() < 4 { Ok(()) } else { Err(SizingError::Cancelled) }
        };
        let ended = find_params(&fake(), Vec::new(), &mut workload, |_| (), collect);
        assert!(matches!(ended, Err(SizingError::Cancelled)));
        let whole = find_params(&fake(), Vec::new(), &mut workload, |_| (), |_| Ok::<(), SizingError>(())).unwrap();
        workload.observations = 0;
        let resumed = find_params(&fake(), rounds, &mut workload, |_| (), |_| Ok::<(), SizingError>(())).unwrap();
        assert_eq!((resumed.params, workload.observations), (whole.params, whole.rounds as usize - 4));
    }
}
