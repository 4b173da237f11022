//! `weighbridge peers report`: the files of a measured matrix.

use std::path::PathBuf;

use wb_report::peers::result_files;

use super::results::matrix_results;
use crate::cli::ReadArgs;
use crate::cli::peers::PeersReportArgs;
use crate::commands::read::load_study;
use crate::console::{Console, message};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::write_file;

/// Writes the result files of the matrices of a run.
pub(super) fn report(args: &PeersReportArgs, console: &Console) -> Result<Exit, Error> {
    let read = ReadArgs { run: args.run.clone(), tests_d: Vec::new(), json: false };
    let (run, study) = load_study(&read, console)?;
    let results = matrix_results(&run, &study)?;
    if results.tests.is_empty() && results.baselines.is_empty() {
        return Err(Error::NothingToDo {
            what: format!("no matrix in {}", args.run.display()),
            help: "`weighbridge peers run` measures one".to_owned(),
        });
    }
    let folder: PathBuf = args.into.clone().unwrap_or_else(|| args.run.join("peers-report"));
    std::fs::create_dir_all(&folder).map_err(|source| Error::File { path: folder.display().to_string(), source })?;
    let files = result_files(&results).map_err(|error| Error::Internal(error.to_string()))?;
    for file in &files {
        write_file(&folder.join(&file.name), &file.content)?;
    }
    message!("{} files in {}, results.html among them", files.len(), folder.display());
    Ok(Exit::Success)
}
