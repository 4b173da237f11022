use std::path::PathBuf;

use clap::Args;

/// `list`
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// What to list: `tests`, `benches`, `metrics`, `plans`, or the name of a test or contention bench
    #[arg(default_value = "tests")]
    pub(crate) what: String,
    /// Name of one test, contention bench or plan
    pub(crate) name: Option<String>,
    /// Folder of custom test definitions (*.toml), besides ~/.config/weighbridge/tests.d
    #[arg(long, value_name = "DIR")]
    pub(crate) tests_d: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
