//! The request workload: how well it holds a rate, what it needs beside its requests, and how repeatable its sizing is.

mod rate;
mod rd_hashd;
mod sizing;

use crate::bench_env::BenchEnv;
use crate::limits::LimitCheck;

pub(crate) fn limits(env: &BenchEnv) -> Vec<LimitCheck<'_>> {
    vec![
        LimitCheck::new("hashd, target of 20 requests/s", || rate::figures(env, rate::Target::Fixed(20.0))),
        LimitCheck::new("hashd, target of 80 % of the maximum", || {
            rate::figures(env, rate::Target::PartOfMaximum(0.8))
        }),
        LimitCheck::new("hashd, rd-hashd at 20 requests/s", || rd_hashd::figures(env, 20.0)),
        LimitCheck::new("hashd, sizing with a faked CPU load in 1 GiB", || sizing::figures(env)),
    ]
}
