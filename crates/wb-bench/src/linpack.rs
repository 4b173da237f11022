//! Linpack on one and two threads against LAPACK's dgetrf and dgetrs in the fastest library that can be had.
//!
//! Both solve the same system in the same shape, on the same CPUs, with the pages that the system
//! gives unasked. A figure whose answer is not right is none.

use crate::{
    bench_env::BenchEnv,
    lapack,
    pairs::{BenchSide, PairedBenchmark},
};
use wb_kernels::{
    HugePagePolicy, Work, cpus,
    linpack::{Config, Report, is_valid_residual},
};

/// Equations.
const N: usize = 4000;

pub(crate) fn rows(place: &BenchEnv) -> Vec<PairedBenchmark<'_>> {
    [1, 2]
        .into_iter()
        .map(|threads| {
            let name = format!("linpack {N} {threads} thread{}", if threads == 1 { "" } else { "s" });
            PairedBenchmark::new(name, "GFLOPS", move || sides(place, threads))
        })
        .collect()
}

fn sides(place: &BenchEnv, threads: usize) -> Result<(BenchSide, BenchSide), String> {
    let allowed = cpus::allowed();
    let cpus = allowed.get(..threads).ok_or_else(|| format!("{} cpu here, {threads} threads wanted", allowed.len()))?;
    let config = Config {
        n: N,
        leading_dimension: N,
        alignment: 4096,
        cpus: cpus.to_vec(),
        huge_pages: HugePagePolicy::Inherit,
        seed: 1,
        work: Work::Iterations(repeats(place.seconds, threads)),
        isa: None,
    };
    let ours = BenchSide::new("weighbridge", place.kernel_command("linpack", &config)?, |printed| {
        let report: Report = serde_json::from_str(printed.lines().next()?).ok()?;
        is_valid_residual(report.residual).then_some(report.gflops)
    });
    Ok((ours, lapack::fastest_library(place, N, repeats(place.seconds, threads), cpus)?))
}

/// As many as take about so many seconds at 40 GFLOPS on each thread.
fn repeats(seconds: f64, threads: usize) -> u64 {
    let rate = 40e9 * threads as f64;
    (seconds * rate / wb_kernels::linpack::operations(N)).round().max(1.0) as u64
}
