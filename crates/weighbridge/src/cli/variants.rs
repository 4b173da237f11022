//! `ab` and `calibrate`: one test, held against variants of itself or against itself.

use std::path::PathBuf;

use clap::Args;

use super::{AttemptFlags, HostFlags, PlacementFlags, PreparationFlags, RunFolderFlags};

/// What is said after the help of `ab`.
pub(crate) const AB_AFTER_HELP: &str = "Variants, of which the first is the one that the others are held against:
  param:NAME=VALUE     a parameter of the test
  knob:NAME=VALUE      a setting of the machine while its samples are taken, NAME@TARGET of one disk, page size and
                       so on (`doctor --all` and docs/tune.md name them)
  env:NAME=VALUE       a variable in the environment of its processes
  cmd:COMMAND          a command, run by sh before each sample
  bin:[PROGRAM=]PATH   a file in the place of a program that the test needs, while it builds too: bin:gcc=/usr/bin/gcc-11
  base                 the test as it stands
Several of them in one are joined by `+`, and `NAME:` before it names a variant: `tuned:env:A=1+param:bs=8k`.

exit status: 0 nothing got worse, 2 a variant is worse than the first, 3 something could not be measured, 1 error";

/// What is said after the help of `calibrate`.
pub(crate) const CALIBRATE_AFTER_HELP: &str = "exit status: 0 done, 3 something could not be measured, 1 error; the rates are \
    in what is printed";

/// Which test, and how it is measured
#[derive(Debug, Args)]
pub(crate) struct SingleTestFlags {
    /// The test, as for `run`: `himeno`, `fio:rw=[read,randwrite],bs=4k`
    #[arg(value_name = "TEST", index = 1)]
    pub(crate) test: String,
    /// Folders with test definitions of one's own (*.toml), beside ~/.config/weighbridge/tests.d
    #[arg(long, value_name = "DIR")]
    pub(crate) tests_d: Vec<PathBuf>,
    /// A ratio that differs by less than so many percent does not matter
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = super::compare::parse_non_negative, allow_negative_numbers = true)]
    pub(crate) threshold: f64,
    /// Where it is recorded
    #[command(flatten)]
    pub(crate) run_folder: RunFolderFlags,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// How each sample is taken
    #[command(flatten)]
    pub(crate) attempt: AttemptFlags,
    /// Which machines measure
    #[command(flatten)]
    pub(crate) hosts: HostFlags,
    /// Where measured processes run
    #[command(flatten)]
    pub(crate) placement: PlacementFlags,
    /// What is done to machines first
    #[command(flatten)]
    pub(crate) preparation: PreparationFlags,
}

/// `ab`
#[derive(Debug, Args)]
pub(crate) struct AbArgs {
    /// Two or more variants, the one to compare with first
    #[arg(value_name = "VARIANT", index = 2, required = true, num_args = 2..)]
    pub(crate) variants: Vec<String>,
    /// The most blocks, each with one sample of every variant in random order
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = super::whole_number::<usize, 1>)]
    pub(crate) max_blocks: usize,
    /// No end before so many blocks, however clear it is
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = super::whole_number::<usize, 0>)]
    pub(crate) min_blocks: usize,
    /// How often, in percent, anything that does not differ may be said to, over all looks and variants together
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = super::compare::parse_non_negative, allow_negative_numbers = true)]
    pub(crate) error_rate: f64,
    /// What is measured; last, since its headings hold for all that follows
    #[command(flatten)]
    pub(crate) single_test: SingleTestFlags,
}

/// `calibrate`
#[derive(Debug, Args)]
pub(crate) struct CalibrateArgs {
    /// So many runs, each prepared anew; more are added to a folder that has some
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = super::whole_number::<u16, 1>)]
    pub(crate) runs: u16,
    /// So many samples on each side of a comparison; a run has twice as many
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = super::whole_number::<u16, 2>)]
    pub(crate) samples: u16,
    /// What is measured; last, since its headings hold for all that follows
    #[command(flatten)]
    pub(crate) single_test: SingleTestFlags,
}
