//! Arguments of `ab` and `calibrate`, which compare one test with variants of itself or with itself.

use std::path::PathBuf;

use clap::Args;
use wb_session::{HostOptions, PreparationOptions};

use super::{AttemptFlags, PlacementFlags, RunFolderFlags};

/// The maximum number of blocks: the boundaries of all interim analyses are simulated, in time that grows with its
/// square.
const MAX_BLOCKS: u64 = 1000;

pub(crate) const AB_AFTER_HELP: &str = "Variants; the others are compared with the first:
  param:NAME=VALUE     a parameter of the test
  knob:NAME=VALUE      a system setting, applied while its samples are taken;
                       NAME@TARGET for one disk, page size, … (docs/tune.md)
  env:NAME=VALUE       an environment variable of the test's processes
  cmd:COMMAND          a command that sh runs before each attempt
  bin:[PROGRAM=]PATH   a file that replaces a program of the test, also in its
                       build: bin:gcc=/usr/bin/gcc-11
  base                 the unchanged test
Join several changes in one variant with `+`, and name a variant with a `NAME:` prefix: `tuned:env:A=1+param:bs=8k`.

exit status: 0 no variant is worse than the first, 1 error, 2 a variant is worse, 3 something could not be measured";

pub(crate) const CALIBRATE_AFTER_HELP: &str = "exit status: 0 done, 1 error, 3 something could not be measured; the rates are \
    printed";

/// The test to measure, and how
#[derive(Debug, Args)]
pub(crate) struct SingleTestFlags {
    /// Test, as for `run`: `himeno`, `fio:rw=[read,randwrite],bs=4k`
    #[arg(value_name = "TEST", index = 1)]
    pub(crate) test: String,
    /// Folder of custom test definitions (*.toml), besides ~/.config/weighbridge/tests.d
    #[arg(long, value_name = "DIR")]
    pub(crate) tests_d: Vec<PathBuf>,
    /// Smallest difference that matters, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = super::parse_threshold, allow_negative_numbers = true)]
    pub(crate) threshold: f64,
    /// Run folder, metadata, publishing and secrets
    #[command(flatten)]
    pub(crate) run_folder: RunFolderFlags,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Options of a single sample
    #[command(flatten)]
    pub(crate) attempt: AttemptFlags,
    /// Hosts to measure on
    #[command(flatten)]
    pub(crate) hosts: HostOptions,
    /// Placement of measured processes
    #[command(flatten)]
    pub(crate) placement: PlacementFlags,
    /// Preparation of machines before measuring
    #[command(flatten)]
    pub(crate) preparation: PreparationOptions,
}

/// `ab`
#[derive(Debug, Args)]
pub(crate) struct AbArgs {
    /// Two or more variants; the others are compared with the first
    #[arg(value_name = "VARIANT", index = 2, required = true, num_args = 2..)]
    pub(crate) variants: Vec<String>,
    /// Exact number of blocks, which is that of samples unless attempts fail: the same as --min-blocks N --max-blocks N
    #[arg(long, value_name = "N", value_parser = super::whole_number_to::<usize, 1, MAX_BLOCKS>,
          conflicts_with_all = ["min_blocks", "max_blocks"])]
    pub(crate) samples: Option<usize>,
    /// Maximum number of blocks, each with one sample of every variant in random order
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = super::whole_number_to::<usize, 1, MAX_BLOCKS>)]
    pub(crate) max_blocks: usize,
    /// Minimum number of blocks
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = super::whole_number_to::<usize, 0, MAX_BLOCKS>)]
    pub(crate) min_blocks: usize,
    /// False-positive rate in percent, over all interim analyses; of several comparisons, the share of false ones among
    /// the differences found
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = super::parse_non_negative, allow_negative_numbers = true)]
    pub(crate) error_rate: f64,
    /// What to measure; last, because its help heading applies to all flags after it
    #[command(flatten)]
    pub(crate) single_test: SingleTestFlags,
}

/// `calibrate`
#[derive(Debug, Args)]
pub(crate) struct CalibrateArgs {
    /// Total number of runs, each with its own preparation; a larger number extends an existing folder
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = super::whole_number::<u16, 1>)]
    pub(crate) runs: u16,
    /// Number of samples on each side of a comparison; a run has twice as many
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = super::whole_number::<u16, 2>)]
    pub(crate) samples: u16,
    /// What to measure; last, because its help heading applies to all flags after it
    #[command(flatten)]
    pub(crate) single_test: SingleTestFlags,
}
