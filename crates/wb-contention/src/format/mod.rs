//! Results as text, in the layouts of resctl-bench, so that its users read them as they are used to.

mod header;
pub(crate) mod latency;
pub(crate) mod resources;

use std::fmt::Write;

use wb_results::contention::{Answer, BenchResult, HashdParameters, IocostParameters};

use crate::benches::{iocost_qos, iocost_tune, protection, storage};
use crate::figures;
use crate::spec::FormatOptions;

pub use header::{Times, header};
pub use latency::latency_table;

/// How much of a result is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    Summary,
    Full,
}

/// A result as text, with its header; `times` are those of the bench.
pub fn format(result: &BenchResult, times: Option<Times<'_>>, detail: Detail, options: &FormatOptions) -> String {
    if let (Answer::IocostTune(answer), true) = (&result.answer, options.high_level) {
        return iocost_tune::text::high_level(answer, result.system.time_scale);
    }
    let body = match &result.answer {
        Answer::Storage(answer) => storage::text::text(answer, detail, options),
        Answer::IocostParams(parameters) => iocost(parameters),
        Answer::HashdParams(parameters) => format!("Result: {}\n", hashd(parameters)),
        Answer::IocostQos(answer) => iocost_qos::text::text(answer, detail, options),
        Answer::IocostTune(answer) => iocost_tune::text::text(answer, detail),
        Answer::Protection(answer) => protection::text::text(answer, detail),
    };
    format!("{}\n{body}", header(result, times))
}

pub(crate) fn iocost(parameters: &IocostParameters) -> String {
    let IocostParameters { model, qos } = parameters;
    format!("iocost model: {model}\niocost QoS: {qos}\n")
}

pub(crate) fn hashd(parameters: &HashdParameters) -> String {
    let HashdParameters { hash_size, rps_max, mem_size, chunk_pages, log_bps, fake_cpu_load } = parameters;
    let [hash_size, mem_size, log_bps] = [hash_size, mem_size, log_bps].map(|size| figures::size(size.0 as f64));
    let mut text = format!("hash_size={hash_size} rps_max={rps_max:.0} mem_size={mem_size} ");
    // Writing to a string does not fail.
    let _ = write!(text, "chunk_pages={chunk_pages} log_bps={log_bps}");
    if *fake_cpu_load {
        text.push_str(" fake_cpu_load");
    }
    text
}
