//! The request workload: how well it holds a rate, what it needs beside its requests, and how repeatable its sizing is.

mod rate;
mod rd_hashd;
mod sizing;

use crate::bench_env::BenchEnv;
use crate::benchmark::Benchmark;

pub(crate) fn benchmarks(env: &BenchEnv) -> Vec<Benchmark<'_>> {
    vec![
        Benchmark::new("hashd, target of 20 requests/s", || rate::figures(env, rate::Target::Fixed(20.0))),
        Benchmark::new("hashd, target of 80 % of the maximum", || rate::figures(env, rate::Target::PartOfMaximum(0.8))),
        Benchmark::new("hashd, rd-hashd at 20 requests/s", || rd_hashd::figures(env, 20.0)),
        Benchmark::new("hashd, sizing with a faked CPU load in 1 GiB", || sizing::figures(env)),
    ]
}
