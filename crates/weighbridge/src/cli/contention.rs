//! Arguments of contention benches, and of `merge`.

use std::path::PathBuf;

use clap::Args;
use wb_contention::spec::parse_override;
use wb_diagnostics::Diagnostic;
use wb_model::Bytes;
use wb_results::contention::{QosOverride, TimeScale};
use wb_session::options::parse_text_path;

pub(crate) const MERGE_AFTER_HELP: &str = "Only results with the same versions, memory profile, device model, \
    firmware and iocost-qos settings (except the number of steps) are merged. The largest such group is used. Other \
    results, and those whose io.cost model is an outlier, are left out and named.";

/// Options of contention benches
#[derive(Debug, Args)]
#[command(next_help_heading = "Contention benches")]
pub(crate) struct SequenceFlags {
    /// Folder of hashd's files and of committed parameters, on the storage device [default: /var/lib/weighbridge]
    #[arg(long, value_name = "DIR", value_parser = parse_text_path)]
    pub(crate) dir: Option<PathBuf>,
    /// Files with specifications of benches, before those that are arguments: some on each line, `#` begins a comment; or
    /// a job file of resctl-bench
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Vec<PathBuf>,
    /// Storage device [default: that of --dir]
    #[arg(long, value_name = "NAME")]
    pub(crate) dev: Option<String>,
    /// Emulate a machine with this much memory, in GiB: a power of two, or `off` [default: 16]
    #[arg(long, value_name = "GIB|off", value_parser = parse_mem_profile)]
    pub(crate) mem_profile: Option<MemProfile>,
    /// Available memory, if it is known from an earlier run [default: determined]
    #[arg(long, value_name = "SIZE")]
    pub(crate) mem_avail: Option<Bytes>,
    /// Start from the io.cost parameters that the kernel now has, instead of committed ones
    #[arg(long)]
    pub(crate) iocost_from_sys: bool,
    /// Changes to the QoS of io.cost that benches start from: `min=75,max=75`
    #[arg(long, value_name = "KEY=VALUE,…", value_parser = parse_qos)]
    pub(crate) iocost_qos: Option<QosOverride>,
    /// vm.swappiness during benches [default: 60]
    #[arg(long, value_name = "N", value_parser = super::whole_number_to::<u32, 0, 200>)]
    pub(crate) swappiness: Option<u32>,
    /// Run benches even if requirements are not met, and record which are not. Nothing replaces cgroup v2 and swap, and
    /// fio for iocost-params
    #[arg(long)]
    pub(crate) force: bool,
    /// Factor from 0.01 to 1 by which durations and the test file are shortened, for trials: the figures mean nothing
    #[arg(long, value_name = "FACTOR", hide = true)]
    pub(crate) time_scale: Option<TimeScale>,
}

/// The memory profile: `None` is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemProfile(pub(crate) Option<u32>);

impl SequenceFlags {
    pub(crate) fn first_given(&self) -> Option<&'static str> {
        let Self { dir, file, dev, mem_profile, mem_avail, iocost_from_sys, iocost_qos, swappiness, force, time_scale } =
            self;
        let flags = [
            (dir.is_some(), "--dir"),
            (!file.is_empty(), "--file"),
            (dev.is_some(), "--dev"),
            (mem_profile.is_some(), "--mem-profile"),
            (mem_avail.is_some(), "--mem-avail"),
            (*iocost_from_sys, "--iocost-from-sys"),
            (iocost_qos.is_some(), "--iocost-qos"),
            (swappiness.is_some(), "--swappiness"),
            (*force, "--force"),
            (time_scale.is_some(), "--time-scale"),
        ];
        flags.into_iter().find(|(is_given, _)| *is_given).map(|(_, flag)| flag)
    }
}

/// `deps`
#[derive(Debug, Args)]
pub(crate) struct DepsArgs {
    /// Contention benches, with `passive` as in `run` [default: all]
    #[arg(value_name = "BENCH")]
    pub(crate) benches: Vec<String>,
    /// Folder of hashd's files, on the storage device [default: /var/lib/weighbridge]
    #[arg(long, value_name = "DIR", value_parser = parse_text_path)]
    pub(crate) dir: Option<PathBuf>,
    /// Storage device [default: that of --dir]
    #[arg(long, value_name = "NAME")]
    pub(crate) dev: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `merge`
#[derive(Debug, Args)]
#[command(override_usage = "weighbridge merge [OPTIONS] --run-folder <DIR> <RUN|FILE>...")]
pub(crate) struct MergeArgs {
    /// Run folders to merge, and result files of resctl-bench (result.json, also compressed)
    #[arg(value_name = "RUN|FILE", required = true)]
    pub(crate) runs: Vec<PathBuf>,
    /// Merge results of different ids separately
    #[arg(long)]
    pub(crate) by_id: bool,
    /// Merge results of different versions of the program and of the bench
    #[arg(long)]
    pub(crate) ignore_versions: bool,
    /// Merge results that were measured with --force although requirements were not met
    #[arg(long)]
    pub(crate) ignore_sysreqs: bool,
    /// Merge each group of similar results instead of the largest alone
    #[arg(long)]
    pub(crate) multiple: bool,
}

fn parse_mem_profile(text: &str) -> Result<MemProfile, String> {
    if text == "off" {
        return Ok(MemProfile(None));
    }
    let profile = text.parse::<u32>().ok().filter(|profile| profile.is_power_of_two());
    profile
        .map(|profile| MemProfile(Some(profile)))
        .ok_or_else(|| "expected a power of two in GiB, or `off`".to_owned())
}

fn parse_qos(text: &str) -> Result<QosOverride, String> {
    let describe = |mistake: &Diagnostic| match mistake.help() {
        Some(help) => format!("{}: {help}", mistake.message()),
        None => mistake.message().to_owned(),
    };
    parse_override(text).map_err(|mistakes| mistakes.as_slice().iter().map(describe).collect::<Vec<_>>().join("; "))
}
