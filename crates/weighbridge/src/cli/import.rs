use std::path::PathBuf;

use clap::Args;
use wb_import::Format;
use wb_model::{ProfileName, TestName};

use super::KeyValueParser;

pub(crate) const AFTER_HELP: &str = "Files are read in the order given, those of a folder by name. Files with the \
    same cells add samples to them: several reports of one fio job, or of one iperf3 test, are samples of one cell. \
    Results that the run already has are not imported again.

exit status: 0 everything imported, 3 something was skipped or had failed when it was measured, 4 nothing new to import";

/// `import`
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Results of pbench and resctl-bench (result.json), fio, iperf3, hyperfine, Google Benchmark (JSON), the Phoronix Test
    /// Suite (composite.xml) or libp2p's performance suites (results.yaml, results.md), and folders of such files
    #[arg(value_name = "FILE|FOLDER", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Run folder; an existing one is extended, and nothing in it is lost
    #[arg(long, short = 'i', visible_short_alias = 'o', value_name = "DIR")]
    pub(crate) into: PathBuf,
    #[arg(
        long,
        value_name = "FORMAT",
        help = format!("Format of all files: {}; detected for each file if not given", Format::names())
    )]
    pub(crate) format: Option<Format>,
    /// Name of the test, if not that of its program: `fio-json`, `pbench-fio`
    #[arg(long, value_name = "NAME")]
    pub(crate) test: Option<TestName>,
    /// Name of the profile; by default the one in the file, or Localhost
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<ProfileName>,
    /// Id that distinguishes these results from others of the same test and case, instead of 0000
    #[arg(long, value_name = "NAME")]
    pub(crate) id: Option<TestName>,
    /// System to import from a composite.xml with several; by default each becomes a profile
    #[arg(long, value_name = "NAME")]
    pub(crate) system: Option<String>,
    /// Metadata to record with the run; may be given more than once
    #[arg(long, value_name = "KEY=VALUE", value_parser = KeyValueParser)]
    pub(crate) metadata: Vec<(String, String)>,
    /// Also import failed iterations of pbench and results under non-numeric serials
    #[arg(long)]
    pub(crate) include_incorrect: bool,
    /// Fail at the first file that cannot be imported instead of skipping it, and record nothing
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print the study as JSON instead of the summary
    #[arg(long)]
    pub(crate) json: bool,
}
