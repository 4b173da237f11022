//! A run of the benchmark: maps the arrays, iterates in a thread team, reports.

use super::expected::{GosaCheck, check_gosa, rounding_floor, steady_tolerance};
use super::fields::Fields;
use super::grid::Grid;
use super::sweep::Sweep;
use crate::thread_team::{self, TeamThread, TimeSpan};
use crate::work::measure;
use crate::{Error, HugePagePolicy, Isa, Probe, Residency, Work, cpus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Configuration of a himeno run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// Size of the grid.
    pub grid: Grid,
    /// The CPUs, one per thread.
    pub cpus: Vec<usize>,
    /// Instruction set of the measured loops.
    pub isa: Isa,
    /// Huge-page policy of the arrays.
    #[serde(default)]
    pub huge_pages: HugePagePolicy,
    /// Amount of measured work.
    pub work: Work,
}

/// Result of a himeno run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct HimenoReport {
    /// Size of the grid.
    pub grid: Grid,
    /// Number of threads, one per CPU of the configuration.
    pub threads: usize,
    /// Instruction set of the measured loops.
    pub isa: Isa,
    /// Number of measured iterations.
    pub iterations: u64,
    /// Wall time of the iterations, from the common start to the last thread's end.
    pub seconds: f64,
    /// Each thread's own time, in the order of the CPUs.
    pub thread_seconds: Vec<f64>,
    /// Floating-point operations per iteration: 34 for each interior point.
    pub flops_per_iteration: u64,
    /// Millions (10⁶) of floating-point operations per second.
    pub mflops: f64,
    /// Sum of the squared residuals in the last sweep.
    pub gosa: f64,
    /// GOSA compared with the expected one; absent if only rounding in 32 bits is left of the residual.
    pub gosa_check: Option<GosaCheck>,
    /// GOSA at fixed iterations of the measured run.
    pub checkpoints: Vec<Checkpoint>,
    /// Number of sweeps whose GOSA exceeded the previous one by more than rounding explains; 0 in a correct run.
    pub rises: u64,
    /// Size of the arrays and of their huge pages, after the run.
    pub residency: Residency,
    /// The probe of the calibration.
    pub probe: Probe,
}

/// GOSA after a fixed number of iterations of the measured run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Checkpoint {
    /// The number of iterations.
    pub iterations: u64,
    /// GOSA of that sweep.
    pub gosa: f64,
    /// GOSA compared with the expected one.
    pub gosa_check: Option<GosaCheck>,
}

const CHECKPOINTS: [u64; 5] = [1, 3, 64, 100, 200];

/// Every run starts from the benchmark's initial state.
pub fn run(config: &Config) -> Result<HimenoReport, Error> {
    config.isa.require()?;
    cpus::check_available(&config.cpus)?;
    let fields = Fields::map(config.grid, config.huge_pages)?;
    let solver = Solver::new(&fields, config.isa, config.cpus.len());
    let measured = measure(config.work, |iterations| solver.run(&config.cpus, iterations))?;
    let (history, spans) = measured.value;
    let flops_per_iteration = config.grid.flops_per_iteration();
    let checkpoint =
        |(iterations, gosa)| Checkpoint { iterations, gosa, gosa_check: check_gosa(config.grid, iterations, gosa) };
    Ok(HimenoReport {
        grid: config.grid,
        threads: config.cpus.len(),
        isa: config.isa,
        iterations: measured.iterations,
        seconds: measured.seconds,
        thread_seconds: spans.iter().map(|span| span.duration().as_secs_f64()).collect(),
        flops_per_iteration,
        mflops: flops_per_iteration as f64 * measured.iterations as f64 / measured.seconds / 1e6,
        gosa: history.last,
        gosa_check: check_gosa(config.grid, measured.iterations, history.last),
        checkpoints: CHECKPOINTS
            .into_iter()
            .zip(history.checkpoints)
            .take(history.checkpoint_count())
            .map(checkpoint)
            .collect(),
        rises: history.rises,
        residency: fields.memory.residency()?,
        probe: measured.probe,
    })
}

#[derive(Clone, Copy, Debug)]
struct GosaHistory {
    grid: Grid,
    sweeps: u64,
    last: f64,
    checkpoints: [f64; CHECKPOINTS.len()],
    rises: u64,
}

impl GosaHistory {
    fn new(grid: Grid) -> Self {
        Self { grid, sweeps: 0, last: f64::INFINITY, checkpoints: [0.0; CHECKPOINTS.len()], rises: 0 }
    }

    fn push(&mut self, gosa: f64) {
        self.sweeps += 1;
        // Not `gosa > …`: a NaN has to count as a rise too.
        let falls = gosa <= self.last * (1.0 + steady_tolerance(self.grid)) + rounding_floor(self.grid);
        self.rises += u64::from(!falls);
        self.last = gosa;
        if let Some(index) = CHECKPOINTS.iter().position(|&sweeps| sweeps == self.sweeps) {
            self.checkpoints[index] = gosa;
        }
    }

    fn checkpoint_count(&self) -> usize {
        CHECKPOINTS.iter().filter(|&&sweeps| sweeps <= self.sweeps).count()
    }
}

/// One thread's part of the GOSA sum, on a cache line of its own.
#[repr(align(128))]
struct PartialSum(AtomicU64);

struct Solver<'a> {
    fields: &'a Fields,
    sweep: Sweep,
    partial_sums: Vec<PartialSum>,
}

impl<'a> Solver<'a> {
    /// Creates a solver for an instruction set that this CPU has.
    fn new(fields: &'a Fields, isa: Isa, threads: usize) -> Self {
        Self {
            fields,
            sweep: Sweep::new(isa, fields.grid),
            partial_sums: (0..threads).map(|_| PartialSum(AtomicU64::new(0))).collect(),
        }
    }

    /// Iterates from the initial state, with the number of threads that the solver was created for.
    fn run(&self, cpus: &[usize], iterations: u64) -> Result<(Duration, (GosaHistory, Vec<TimeSpan>)), Error> {
        debug_assert_eq!(cpus.len(), self.partial_sums.len());
        let results = thread_team::run(cpus, |thread| {
            let [planes, ..] = self.fields.grid.extent();
            let interior = thread.share(planes - 2);
            let interior = interior.start + 1..interior.end + 1;
            let first = if thread.index == 0 { 0 } else { interior.start };
            let last = if thread.index + 1 == thread.count { planes } else { interior.end };
            // SAFETY: the shares of the threads do not overlap.
            unsafe { self.fields.initialize(first..last) }
            thread.time(|| self.iterate(thread, interior.clone(), iterations))
        })?;
        let spans: Vec<_> = results.iter().map(|(_, span)| *span).collect();
        // Only the first thread records the history.
        let history = results.into_iter().next().map(|(history, _)| history).ok_or(Error::NoCpu)?;
        Ok((TimeSpan::wall_time(&spans), (history, spans)))
    }

    fn iterate(&self, thread: &TeamThread<'_>, planes: Range<usize>, iterations: u64) -> GosaHistory {
        let mut history = GosaHistory::new(self.fields.grid);
        for _ in 0..iterations {
            // SAFETY: the instruction set was checked; until the barrier, all threads only read `p`, and each writes
            // `wrk2` in its own planes only.
            let part = unsafe { self.sweep.compute(self.fields, planes.clone()) };
            self.partial_sums[thread.index].0.store(part.to_bits(), Relaxed);
            thread.wait();
            // SAFETY: from here to the next barrier each thread uses its own planes only.
            unsafe { self.sweep.copy(self.fields, planes.clone()) }
            if thread.index == 0 {
                history.push(self.partial_sums.iter().map(|part| f64::from_bits(part.0.load(Relaxed))).sum());
            }
            thread.wait();
        }
        history
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(grid: Grid, threads: usize, isa: Isa, work: Work) -> Config {
        let cpus = cpus::allowed().into_iter().cycle().take(threads).collect();
        Config { grid, cpus, isa, huge_pages: HugePagePolicy::Inherit, work }
    }

    #[test]
    fn every_isa_gives_the_expected_gosa_on_xs_and_s() {
        for isa in Isa::available() {
            for grid in [Grid::XS, Grid::S] {
                let report = run(&config(grid, 1, isa, Work::Iterations(100))).unwrap();
                assert_eq!(report.checkpoints.len(), 4);
                for checkpoint in &report.checkpoints {
                    assert!(checkpoint.gosa_check.is_some_and(|check| check.passed), "{isa} {checkpoint:?}");
                }
                assert!(report.gosa_check.is_some_and(|check| check.passed), "{report:?}");
                assert_eq!(report.rises, 0);
            }
        }
    }

    #[test]
    fn threads_change_nothing_but_the_order_of_the_sum() {
        let gosa = |threads| run(&config(Grid::XS, threads, Isa::widest(), Work::Iterations(50))).unwrap().gosa;
        let alone = gosa(1);
        for threads in [2, 3, 7, 40] {
            assert!((gosa(threads) / alone - 1.0).abs() < 1e-12, "{threads} threads");
        }
    }

    #[test]
    fn a_run_takes_the_requested_time_and_its_figures_agree() {
        let report = run(&config(Grid::XS, 2, Isa::widest(), Work::Seconds(0.05))).unwrap();
        assert_eq!((report.threads, report.thread_seconds.len()), (2, 2));
        assert!(report.probe.iterations >= 1 && report.probe.seconds > 0.0);
        let flops = report.mflops * 1e6 * report.seconds;
        assert!((flops / (report.flops_per_iteration * report.iterations) as f64 - 1.0).abs() < 1e-9);
        assert_eq!(report.residency.bytes, Fields::bytes(Grid::XS) as u64);
    }

    #[test]
    fn a_rise_or_a_nan_of_gosa_is_counted() {
        let mut history = GosaHistory::new(Grid::S);
        for gosa in [3.0, 2.0, 2.001, 2.5, f64::NAN, 1.0] {
            history.push(gosa);
        }
        assert_eq!((history.rises, history.checkpoint_count()), (3, 2));
    }

    #[test]
    fn a_configuration_round_trips_through_json_and_rejects_unknown_keys() {
        let json = r#"{"grid":"S","cpus":[0],"isa":"avx2","work":{"seconds":0.5}}"#;
        let config: Config = serde_json::from_str(json).unwrap();
        assert_eq!(
            (config.grid, config.huge_pages, config.work),
            (Grid::S, HugePagePolicy::Inherit, Work::Seconds(0.5))
        );
        assert!(serde_json::from_str::<Config>(&json.replace("grid", "gird")).is_err());
    }
}
