use std::path::PathBuf;

use clap::Args;

use super::OutputPath;

pub(crate) const SNAPSHOT_AFTER_HELP: &str = "A snapshot has the run, this program and its agent, the schemas, the plans and commands \
    of the run, and the programs and sources that the run names in its inputs.json. To measure again on another \
    machine: `weighbridge unpack FILE`, then `./rerun` in the folder.";

/// The secrets of `pack` and `snapshot`.
#[derive(Debug, Args)]
pub(crate) struct ArchiveSecrets {
    /// Refuse files that contain the text of this file or environment variable; may be given more than once
    #[arg(long, value_name = "FILE|env:NAME")]
    pub(crate) secret_from: Vec<String>,
}

/// `pack`
#[derive(Debug, Args)]
pub(crate) struct PackArgs {
    /// Run folder, which is not changed; without it or with `latest`, the newest run in the current folder. With -r, the
    /// benches whose results and reports are packed, all if none is named
    #[arg(value_name = "RUN|BENCH")]
    pub(crate) words: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) secrets: ArchiveSecrets,
    /// Archive to write [default: the name of the run with .tar.gz]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<OutputPath>,
}

/// `snapshot`
#[derive(Debug, Args)]
pub(crate) struct SnapshotArgs {
    /// Run folder, which is not changed; without it or with `latest`, the newest run in the current folder
    pub(crate) run: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) secrets: ArchiveSecrets,
    /// Archive to write [default: the name of the run with -snapshot.tar.gz]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<OutputPath>,
}

/// `unpack`
#[derive(Debug, Args)]
pub(crate) struct UnpackArgs {
    /// Archive of `pack` or `snapshot`
    pub(crate) file: PathBuf,
    /// New or empty folder to extract to [default: the name of the archive without .tar.gz]
    #[arg(long, short = 'C', value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}
