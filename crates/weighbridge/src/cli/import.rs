//! `import`.

use std::path::PathBuf;

use clap::Args;
use wb_import::Format;
use wb_model::{ProfileName, TestName};

use super::parse_key_value;

/// What is told below the options.
pub(crate) const AFTER_HELP: &str = "Files are read in the order given, those of a folder by name. Each adds its \
    samples to the cells that it has in common with others: several reports of one fio job, or of one iperf3 test, are \
    samples of one cell. What the run has already is not imported again.

exit status: 0 all is imported, 3 something was left out or failed when it was measured, 4 the run has it all already";

/// `import`
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Results of pbench (result.json), fio, iperf3, hyperfine, Google Benchmark (JSON) or the Phoronix Test Suite
    /// (composite.xml), and folders of such files
    #[arg(value_name = "FILE|FOLDER", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// The run folder; one that exists is extended, and nothing in it is lost
    #[arg(long, short = 'o', visible_short_alias = 'i', value_name = "DIR")]
    pub(crate) into: PathBuf,
    /// The format of all files: pbench, fio, iperf3, hyperfine, google-benchmark or phoronix; without, each shows its
    /// own
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// What the test is called, where it is not as its program: `fio-json`, `pbench-fio`
    #[arg(long, value_name = "NAME")]
    pub(crate) test: Option<TestName>,
    /// What the profile is called; without, as the file says, or Localhost
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<ProfileName>,
    /// An id that tells these results from others of the same test and case, in place of 0000
    #[arg(long, value_name = "NAME")]
    pub(crate) id: Option<TestName>,
    /// Which system of a composite.xml that has several; without, each becomes a profile
    #[arg(long, value_name = "NAME")]
    pub(crate) system: Option<String>,
    /// Something to remember with the run; may be given more than once
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_key_value)]
    pub(crate) metadata: Vec<(String, String)>,
    /// Import failed iterations of pbench and results under non-numeric serials too
    #[arg(long)]
    pub(crate) include_incorrect: bool,
    /// End at the first file that cannot be imported, rather than leave it out, and record nothing
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print the study as JSON instead of the summary
    #[arg(long)]
    pub(crate) json: bool,
}
