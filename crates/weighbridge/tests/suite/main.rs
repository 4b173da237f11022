//! End-to-end tests of the program: output, exit status, and runs under failures.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod bisect;
mod clean;
mod compare;
mod compare_context;
mod compare_errors;
mod compare_evidence;
mod faults;
mod guests;
mod hosts;
mod images;
mod import;
mod kernels;
mod kills;
mod lab;
mod licences;
mod machine;
mod messages;
mod net;
mod net_faults;
mod net_guest;
mod net_peers;
mod net_plan;
mod other_runs;
mod outdated_results;
mod plan;
mod preflight;
mod profiles;
mod provision;
mod publish;
mod read;
mod ready_hosts;
mod reasons;
mod relocation;
mod run;
mod run_perf;
mod schemas;
mod secrets;
mod series;
mod smt_guest;
mod ssh;
mod tally;
mod tune;
mod tune_guest;
mod variants;
