//! linpack: LU factorisation and solution of a dense linear system; bound by arithmetic.
//!
//! Start with [`LinpackParams`]; then `kernel` measures the built-in kernel, `program` an external linpack program.

pub mod external;
mod kernel;
mod params;
mod program;

use std::collections::BTreeMap;
use std::fmt;

use async_trait::async_trait;
use wb_kernels::linpack::{RESIDUAL_LIMIT, is_valid_residual, operations};
use wb_model::outcome::Gate;
use wb_model::{Class, Facts, Metric, Nanos, ParamValue, Params, Placement, Requirement, Scope};
use wb_stats::SamplingRule;

use crate::native;
use wb_results::Conclusion;
use wb_test::{Artefacts, Attempt, EvaluatedCell, Failure, Measurement, Rejection, TestInfo, TypedTest, WorkerContext};

pub use params::LinpackParams;

/// Linpack: LU factorisation with partial pivoting, and solve (J. Dongarra et al., 1979).
pub struct Linpack;

#[async_trait]
impl TypedTest for Linpack {
    type Params = LinpackParams;
    type Prepared = ();

    fn info(&self) -> TestInfo {
        TestInfo {
            name: "linpack",
            summary: "dense linear system; arithmetic of one process",
            version: 1,
            scope: Scope::Sample,
            is_native: true,
        }
    }

    fn requires(&self, params: &LinpackParams) -> Vec<Requirement> {
        program::requires(params)
    }

    fn resolve(&self, given: &Params, facts: &Facts) -> BTreeMap<String, Vec<ParamValue>> {
        let threads = params::thread_steps(2 * facts.cpus.len() as i64).into_iter().map(ParamValue::Integer).collect();
        let external = given.get("linpack-binary").is_some_and(|binary| !binary.to_string().is_empty());
        let isa = (!external).then(|| ("isa".to_owned(), vec![native::widest_isa(facts)]));
        isa.into_iter().chain([("threads".to_owned(), threads)]).collect()
    }

    fn unsupported(&self, params: &LinpackParams, placement: &Placement, facts: &Facts) -> Option<String> {
        let contradiction = || program::placement_contradiction(params, placement);
        params.contradiction().or_else(contradiction).or_else(|| {
            if params.is_external() {
                native::unsupported_memory(program::matrix_bytes(params), facts)
            } else {
                kernel::unsupported(params, placement, facts)
            }
        })
    }

    fn rule(&self, params: &LinpackParams) -> Option<SamplingRule> {
        params.rule()
    }

    fn shortening(&self, params: &LinpackParams) -> &'static str {
        match params.trials() {
            Some(_) => "set `run-trials=auto`, which fills --min-time",
            None => wb_test::test::LOWER_MIN_TIME,
        }
    }

    fn estimate(&self, params: &LinpackParams, min_time: Nanos) -> Nanos {
        // A current core reaches 10 to 50 GFLOPS; a sample is at least one solution.
        let solves = params.trials().unwrap_or(1) as f64;
        let solving = Nanos::from_seconds(solves * operations(params.size()) / 2e10);
        Nanos(min_time.0.max(solving.0).saturating_mul(5) / 4 + 50_000_000 + program::extra_time(params).0)
    }

    fn metrics(&self, params: &LinpackParams) -> Vec<Metric> {
        let residency = (!params.is_external()).then(native::residency_metric);
        let first = [Metric::throughput("gflops", "gflops").primary(), Metric::check("residual", "")];
        first.into_iter().chain(residency).collect()
    }

    async fn prepare(&self, _: &LinpackParams, _: &WorkerContext) -> Result<(), Failure> {
        Ok(())
    }

    async fn sample(&self, params: &LinpackParams, (): &mut (), attempt: &mut Attempt) -> Result<(), Failure> {
        if params.is_external() {
            program::sample(params, attempt).await
        } else {
            kernel::sample(params, attempt).await
        }
    }

    fn study(&self, params: &LinpackParams, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
        if params.is_external() { program::study(params, artefacts) } else { kernel::study(params, artefacts) }
    }

    fn solve(&self, cells: &[EvaluatedCell<'_>]) -> Vec<Conclusion> {
        native::scaling(cells, "gflops", "gflops")
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Solution {
    seconds: f64,
    gflops: f64,
    residual: f64,
    /// Whether the program accepted its own solution.
    passed: bool,
}

/// Values of a sample, with the gates of all linpack programs. `elapsed` is the run time of the process, by a clock
/// that is independent of the program.
fn summarize_solutions(solutions: &[Solution], expected: u64, elapsed: f64) -> Measurement {
    let times = || solutions.iter().map(|solution| 1.0 / solution.gflops);
    let gflops = solutions.len() as f64 / times().sum::<f64>();
    let residual = solutions.iter().map(|solution| solution.residual).fold(0.0, max_or_nan);
    let seconds: f64 = solutions.iter().map(|solution| solution.seconds).sum();
    let mut measurement = Measurement::default()
        .with_value(Class::Throughput, "gflops", gflops)
        .with_value(Class::Check, "residual", residual)
        .with_duration(seconds);
    measurement.require(solutions.len() as u64 == expected, Gate::Work, || {
        format!("expected {expected} solutions, found {}", solutions.len())
    });
    measurement.require(is_valid_residual(residual), Gate::Answer, || {
        format!("the residual is {residual:e}, that of a correct solution is below {RESIDUAL_LIMIT}")
    });
    let failed = solutions.iter().filter(|solution| !solution.passed).count();
    measurement.require(failed == 0, Gate::Answer, || {
        format!("the program reports {failed} of {} solutions as wrong", solutions.len())
    });
    // Printed times are rounded to 10 ms at most.
    let rounding = 0.005 * solutions.len() as f64;
    measurement.require(seconds <= elapsed + rounding, Gate::Plausibility, || {
        format!("solving took {seconds} s, longer than the {elapsed} s that the process ran")
    });
    measurement
}

/// The larger of two numbers; NaN if one of them is NaN.
fn max_or_nan(a: f64, b: f64) -> f64 {
    if a.is_nan() || a >= b { a } else { b }
}

fn process_seconds(artefacts: &Artefacts, name: &str) -> Result<f64, Rejection> {
    let seconds = artefacts.process_seconds(name)?;
    seconds.ok_or_else(|| Rejection::output(format!("missing `elapsed-seconds` in {name}.process.json")))
}

/// Converts an error in the output into a rejection; inconsistent figures are probably in another unit.
fn reject_output(error: &external::OutputError) -> Rejection {
    let gate = match error {
        external::OutputError::Inconsistent { .. } => Gate::Plausibility,
        _ => Gate::Output,
    };
    Rejection { gate, figures: error.to_string() }
}

fn parameter_error(parameter: &str, reason: impl fmt::Display) -> String {
    format!("`{parameter}`: {reason}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use wb_test_artefacts::{failed_gate, value};

    const CORRECT: Solution = Solution { seconds: 0.1, gflops: 50.0, residual: 0.02, passed: true };

    #[test]
    fn speed_is_total_work_over_total_time() {
        let measurement = summarize_solutions(&[CORRECT, Solution { gflops: 25.0, ..CORRECT }], 2, 1.0);
        assert!((value(&measurement, "throughput/gflops") - 100.0 / 3.0).abs() < 1e-12);
        assert_eq!(failed_gate(&measurement), None);
    }

    #[test]
    fn wrong_or_implausible_solutions_are_invalid() {
        let gate = |changed: Solution| failed_gate(&summarize_solutions(&[changed], 1, 1.0));
        assert_eq!(gate(Solution { residual: 16.0, ..CORRECT }), Some(Gate::Answer));
        assert_eq!(gate(Solution { residual: f64::NAN, ..CORRECT }), Some(Gate::Answer));
        let failed = summarize_solutions(&[CORRECT, Solution { passed: false, ..CORRECT }], 2, 1.0);
        let wb_model::Validity::Invalid { figures, .. } = failed.validity else { panic!() };
        assert_eq!(figures, "the program reports 1 of 2 solutions as wrong");
        assert_eq!(gate(Solution { seconds: 1.1, ..CORRECT }), Some(Gate::Plausibility));
        assert_eq!(failed_gate(&summarize_solutions(&[CORRECT], 2, 1.0)), Some(Gate::Work));
        assert_eq!(failed_gate(&summarize_solutions(&[], 1, 1.0)), Some(Gate::Work));
    }
}
