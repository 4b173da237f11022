//! `weighbridge peers report`: the files of a measured matrix.

use std::path::Path;

use wb_report::peers::{ResultFile, result_files};

use super::results::{matrices, matrix_results};
use crate::cli::OutputFolder;
use crate::cli::peers::PeersReportArgs;
use crate::commands::latest_run::resolve_run;
use crate::commands::read::load_study;
use crate::console::{Console, message};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::write_file;

/// Writes the result files of the matrices of a run: into a folder of its own for each, if there are several.
pub(super) fn report(args: &PeersReportArgs, console: &Console) -> Result<Exit, Error> {
    let path = resolve_run(args.run.as_deref(), console)?;
    let (run, study) = load_study(&path, &[], console)?;
    let matrices = matrices(&study);
    if matrices.is_empty() {
        return Err(Error::NothingToDo {
            what: format!("no matrix in {}", path.display()),
            help: "`weighbridge peers run` measures one".to_owned(),
        });
    }
    let own_folder = path.join("peers-report");
    let base = args.into.clone().unwrap_or_else(|| own_folder.clone().into());
    for ((profile, serial), cells) in &matrices {
        let folder: OutputFolder = match matrices.len() {
            1 => base.clone(),
            _ => base.as_path().join(format!("{profile}-{serial}")).into(),
        };
        let results = matrix_results(&run, &study, cells)?;
        let files = result_files(&results).map_err(|error| Error::Internal(error.to_string()))?;
        std::fs::create_dir_all(folder.as_path()).map_err(Error::file("create", folder.as_path()))?;
        for file in &files {
            write_file(&folder.join(&file.name), &file.content)?;
        }
        let folder = folder.as_path();
        if folder.starts_with(&own_folder) {
            remove_stale_charts(folder, &files)?;
        }
        message!("{} files in {}, results.html among them", files.len(), folder.display());
    }
    Ok(Exit::Success)
}

/// Removes charts that an earlier report of the run had and this one has not.
fn remove_stale_charts(folder: &Path, files: &[ResultFile]) -> Result<(), Error> {
    let entries = std::fs::read_dir(folder).map_err(Error::file("read", folder))?;
    for entry in entries {
        let entry = entry.map_err(Error::file("read", folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_chart = (name.starts_with("heatmap-") || name.starts_with("boxplot-"))
            && (name.ends_with(".svg") || name.ends_with(".png"));
        if is_chart && files.iter().all(|file| file.name != name) {
            std::fs::remove_file(entry.path()).map_err(Error::file("remove", &entry.path()))?;
        }
    }
    Ok(())
}
