//! Linpack on one and two threads against LAPACK's dgetrf and dgetrs in the fastest available library.
//!
//! Both solve the same system in the same shape, on the same CPUs, with the system's default pages. A figure with an
//! invalid solution does not count.

use crate::bench_env::BenchEnv;
use crate::lapack;
use crate::pairs::{BenchSide, PairedBenchmark};
use wb_kernels::linpack::{Config, LinpackReport, is_valid_residual};
use wb_kernels::{HugePagePolicy, Work, cpus};

/// Number of equations.
const N: usize = 4000;

pub(crate) fn rows(env: &BenchEnv) -> Vec<PairedBenchmark<'_>> {
    [1, 2]
        .into_iter()
        .map(|threads| {
            let name = format!("linpack {N} {threads} thread{}", if threads == 1 { "" } else { "s" });
            PairedBenchmark::new(name, "GFLOPS", move || sides(env, threads))
        })
        .collect()
}

fn sides(env: &BenchEnv, threads: usize) -> Result<(BenchSide, BenchSide), String> {
    let allowed = cpus::allowed();
    let cpus = allowed
        .get(..threads)
        .ok_or_else(|| format!("{threads} threads required, {} CPUs available", allowed.len()))?;
    let config = Config {
        n: N,
        leading_dimension: N,
        alignment: 4096,
        cpus: cpus.to_vec(),
        huge_pages: HugePagePolicy::Inherit,
        seed: 1,
        work: Work::Iterations(repeats(env.seconds, threads)),
        isa: None,
    };
    let weighbridge = BenchSide::new("weighbridge", env.kernel_command("linpack", &config)?, |output| {
        let report: LinpackReport = serde_json::from_str(output.lines().next()?).ok()?;
        is_valid_residual(report.residual).then_some(report.gflops)
    });
    Ok((weighbridge, lapack::fastest_library(env, N, repeats(env.seconds, threads), cpus)?))
}

/// The number of repeats that take about `seconds` at 40 GFLOPS per thread.
fn repeats(seconds: f64, threads: usize) -> u64 {
    let rate = 40e9 * threads as f64;
    (seconds * rate / wb_kernels::linpack::operations(N)).round().max(1.0) as u64
}
