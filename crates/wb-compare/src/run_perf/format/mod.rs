//! run-perf's format: `PROFILE/TEST/SERIAL/result.json` as pbench writes it, and `RUNPERF_METADATA`.

pub(crate) mod iteration;
pub(crate) mod number;
pub(crate) mod result;

pub(crate) const METADATA: &str = "RUNPERF_METADATA";
