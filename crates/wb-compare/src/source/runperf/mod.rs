//! run-perf's layout: `PROFILE/TEST/SERIAL/result.json` in pbench's format, and `RUNPERF_METADATA`.

pub(crate) mod folder;
pub(crate) mod iteration;
pub(crate) mod number;
pub(crate) mod result;
