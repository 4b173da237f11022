//! What is measured, and how: tests, cells, sampling.

use std::path::PathBuf;

use clap::Args;
use wb_model::Nanos;
use wb_plan::SamplingOrder;
use wb_session::HostOptions;

use super::values::{parse_command_line, parse_percent};
use super::{PlacementFlags, SelectionFlags, enum_parser, whole_number};

/// Flags that select what is measured, how and where
#[derive(Debug, Args)]
pub(crate) struct MeasurementFlags {
    /// Tests: `fio`, `fio:rw=[read,randwrite],bs=4k` or `fio:{"rw":"read"}`; or contention benches (storage, iocost-params,
    /// hashd-params, iocost-qos, iocost-tune, protection): `iocost-qos::min=75,max=75:min=50,max=50`
    ///
    /// A list makes one cell per value. For a parameter that is itself a list, such as fio's targets, use a list of
    /// lists: `targets=[[/a,/b],[/c]]`. Put text that contains `,`, `:` or `]` in double quotes inside the argument:
    /// `'fio:targets="/mnt/a:b"'`. `id=NAME` names a test of the plan, in place of its number (0000, 0001, …). Quote arguments with
    /// brackets or quotes for your shell. Contention benches form a sequence: docs/contention.md describes them.
    #[arg(value_name = "TEST")]
    pub(crate) tests: Vec<String>,
    /// Plan: a TOML file, or the name of a built-in plan (see `list plans`); sampling options override its settings
    #[arg(long, short, value_name = "FILE|NAME")]
    pub(crate) plan: Option<String>,
    /// Folder of custom test definitions (*.toml), besides ~/.config/weighbridge/tests.d and the plan's folder
    #[arg(long, value_name = "DIR")]
    pub(crate) tests_d: Vec<PathBuf>,
    /// Which cells, where, and how they are sampled
    #[command(flatten)]
    pub(crate) cells: CellFlags,
}

/// Flags that apply to every cell of a run
#[derive(Debug, Args)]
pub(crate) struct CellFlags {
    /// Which cells
    #[command(flatten)]
    pub(crate) selection: SelectionFlags,
    /// Sampling options
    #[command(flatten)]
    pub(crate) sampling: SamplingFlags,
    /// Hosts to measure on
    #[command(flatten)]
    pub(crate) hosts: HostOptions,
    /// Placement of measured processes
    #[command(flatten)]
    pub(crate) placement: PlacementFlags,
}

/// Sampling options
#[derive(Debug, Args)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct SamplingFlags {
    /// Exact number of samples per cell; disturbed ones are not retaken unless --retakes is given
    #[arg(long, value_name = "N", value_parser = whole_number::<usize, 1>, conflicts_with_all = ["min_samples", "max_samples"])]
    pub(crate) samples: Option<usize>,
    /// Minimum number of samples per cell; replaces the sampling rule of tests that have one, such as fio
    #[arg(long, value_name = "N", value_parser = whole_number::<usize, 1>)]
    pub(crate) min_samples: Option<usize>,
    /// Maximum number of samples per cell, not counting retakes of disturbed ones; replaces the sampling rule of a test
    #[arg(long, value_name = "N", value_parser = whole_number::<usize, 1>)]
    pub(crate) max_samples: Option<usize>,
    /// Stop when the half-width of the median's confidence interval is within PERCENT of the median; replaces the sampling rule
    /// of a test
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent, allow_negative_numbers = true)]
    pub(crate) precision: Option<f64>,
    /// Time limit for one cell; the default does not stop a cell below its minimum number of samples
    #[arg(long, value_name = "TIME")]
    pub(crate) budget: Option<Nanos>,
    /// Maximum number of retakes of disturbed samples per cell
    #[arg(long, value_name = "N", value_parser = whole_number::<usize, 0>)]
    pub(crate) retakes: Option<usize>,
    /// Order in which cells are sampled
    #[arg(long, value_name = "ORDER", value_parser = enum_parser::<SamplingOrder, 2>(ORDERS))]
    pub(crate) order: Option<SamplingOrder>,
    /// Options of a single sample
    #[command(flatten)]
    pub(crate) attempt: AttemptFlags,
}

/// Options of a single sample
#[derive(Debug, Args)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct AttemptFlags {
    /// Minimum duration of the measured part of a sample, for tests without a duration of their own (`runtime`)
    #[arg(long, value_name = "TIME")]
    pub(crate) min_time: Option<Nanos>,
    /// Number of warm-up samples before the counted ones
    #[arg(long, value_name = "N", value_parser = whole_number::<u32, 0>)]
    pub(crate) warm_up: Option<u32>,
    /// Time limit for one attempt [default: ten times its estimate plus one minute]
    #[arg(long, value_name = "TIME")]
    pub(crate) limit: Option<Nanos>,
    /// Maximum number of attempts at a sample before its cell fails; every attempt is recorded
    #[arg(long, value_name = "N", value_parser = whole_number::<u32, 1>, visible_alias = "retry-tests")]
    pub(crate) attempts: Option<u32>,
    /// Seed for all random choices; drawn and recorded if not given
    #[arg(long, value_name = "N", value_parser = whole_number::<u64, 0>, allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
    /// Command to run during each sample, with its output recorded; may be given more than once
    #[arg(long = "tool", value_name = "COMMAND", value_parser = parse_command_line)]
    pub(crate) tools: Vec<String>,
}

const ORDERS: [(&str, &str); 2] = [
    ("interleaved", "in rounds, each with one sample of every unfinished cell in random order"),
    ("sequential", "finish each cell before the next"),
];
