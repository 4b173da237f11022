//! Arguments of the commands that show or study a run.

use std::path::PathBuf;

use clap::Args;

use super::{OutputPath, OutputPrefix, SelectionFlags, prefix_parser};

/// Arguments of the commands that read a run
#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// Run folder; without it or with `latest`, the newest run in the current folder. With -r, the contention benches to
    /// read, all if none is named: `storage`, `iocost-qos:id=NAME`
    #[arg(value_name = "RUN|BENCH")]
    pub(crate) words: Vec<PathBuf>,
    /// Folder of custom test definitions (*.toml), besides ~/.config/weighbridge/tests.d
    #[arg(long, value_name = "DIR")]
    pub(crate) tests_d: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `study`
#[derive(Debug, Args)]
pub(crate) struct StudyArgs {
    /// The run to study
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Which cells are printed; the values of all are written
    #[command(flatten)]
    pub(crate) selection: SelectionFlags,
    /// Folder of the raw reports of contention benches [default: `contention` in the run folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) reports: Option<PathBuf>,
}

/// `solve`
#[derive(Debug, Args)]
pub(crate) struct SolveArgs {
    /// The run to read
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Which cells conclusions are drawn from
    #[command(flatten)]
    pub(crate) selection: SelectionFlags,
}

/// `summary`
#[derive(Debug, Args)]
pub(crate) struct SummaryArgs {
    /// The run to read
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Which cells
    #[command(flatten)]
    pub(crate) selection: SelectionFlags,
}

/// `format`
#[derive(Debug, Args)]
pub(crate) struct FormatArgs {
    /// Show the kernel's statistics of the contention bench `storage`; `-RR` shows all of them
    #[arg(short = 'R', long, action = clap::ArgAction::Count)]
    pub(crate) rstat: u8,
    /// The run to read
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Which cells
    #[command(flatten)]
    pub(crate) selection: SelectionFlags,
}

/// `report`
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Run folder; without it or with `latest`, the newest run in the current folder
    pub(crate) run: Option<PathBuf>,
    /// Write a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<OutputPath>,
    /// Which cells
    #[command(flatten)]
    pub(crate) selection: SelectionFlags,
    /// Write PREFIX.csv (one row per metric of a cell) and PREFIX-samples.csv (one row per sample and metric)
    // An end `.csv` is dropped: people give the name of the file.
    #[arg(long, value_name = "PREFIX", value_parser = prefix_parser(&[".csv", "-samples.csv"]))]
    pub(crate) csv: Option<OutputPrefix>,
    /// Print the study as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Folder of custom test definitions (*.toml), besides ~/.config/weighbridge/tests.d
    #[arg(long, value_name = "DIR")]
    pub(crate) tests_d: Vec<PathBuf>,
}
