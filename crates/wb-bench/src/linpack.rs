//! Linpack on one and two threads against LAPACK's dgetrf and dgetrs in OpenBLAS.
//!
//! Both solve the same system in the same shape, on the same CPUs, with the pages that the system
//! gives unasked. A figure whose answer is not right is none.

use crate::{
    pairs::{Row, Side},
    place::Place,
};
use wb_kernels::{
    HugePages, Work, cpus,
    linpack::{Config, Report, valid},
};

const SOURCE: &str = include_str!("../peers/openblas_lu.c");

/// Equations.
const N: usize = 4000;

pub(crate) fn rows(place: &Place) -> Vec<Row<'_>> {
    [1, 2]
        .into_iter()
        .map(|threads| {
            let name = format!("linpack {N} {threads} thread{}", if threads == 1 { "" } else { "s" });
            Row::new(name, "GFLOPS", move || sides(place, threads))
        })
        .collect()
}

fn sides(place: &Place, threads: usize) -> Result<(Side, Side), String> {
    let allowed = cpus::allowed();
    let cpus = allowed.get(..threads).ok_or_else(|| format!("{} cpu here, {threads} threads wanted", allowed.len()))?;
    let config = Config {
        n: N,
        leading_dimension: N,
        alignment: 4096,
        cpus: cpus.to_vec(),
        huge_pages: HugePages::Inherit,
        seed: 1,
        work: Work::Iterations(repeats(place.seconds, threads)),
        isa: None,
    };
    let ours = Side::new("weighbridge", place.exec("linpack", &config)?, |printed| {
        let report: Report = serde_json::from_str(printed.lines().next()?).ok()?;
        valid(report.residual).then_some(report.gflops)
    });
    // Flags come before the source: without the first, some linkers would leave the library out.
    let flags = ["-O3", "-Wl,--no-as-needed", "-lopenblas"].map(str::to_owned);
    let program = place.compile("openblas_lu", SOURCE, &flags)?;
    let cpus = cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let numbers = [N.to_string(), N.to_string(), repeats(place.seconds, threads).to_string(), cpus];
    let command = std::iter::once(program.display().to_string()).chain(numbers).collect();
    let peer = Side::new("openblas", command, |printed| {
        let (gflops, residual) = printed.trim().split_once(" GFLOPS, residual ")?;
        valid(residual.parse().ok()?).then(|| gflops.parse().ok())?
    });
    Ok((ours, peer.env("OPENBLAS_NUM_THREADS", &threads.to_string())))
}

/// As many as take about so many seconds at 40 GFLOPS on each thread.
fn repeats(seconds: f64, threads: usize) -> u64 {
    let rate = 40e9 * threads as f64;
    (seconds * rate / wb_kernels::linpack::operations(N)).round().max(1.0) as u64
}
