//! What a matrix was measured with beside the run folder, for snapshots.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use wb_peers::{Endpoint, Matrix, read_matrix};
use wb_record::RunFolder;
use wb_record::inputs::{ProgramInput, RunInputs, SourceInput, content_hash};
use wb_tests::peers::{DIALER, LISTENER};

use crate::console::message;

/// Records the programs, sources and peers file of a run, if it was begun. What cannot be read causes a warning: the
/// run is complete without it, only a snapshot is not.
pub(super) fn record_inputs(run: &Path, file: &Path) {
    if !run.join("run.json").is_file() {
        return;
    }
    if let Err(reason) = try_record(run, file) {
        message!("warning: snapshots of {} will lack its endpoints: {reason}", run.display());
    }
}

fn try_record(run: &Path, file: &Path) -> Result<(), String> {
    let matrix = read_matrix(file).map_err(|error| error.to_string())?;
    let run = RunFolder::open(run).map_err(|error| error.to_string())?;
    let measured = measured_endpoints(&run)?;
    let inputs = inputs(&matrix, file, &measured)?;
    run.write_inputs(&inputs).map_err(|error| error.to_string())
}

/// The ids of the endpoints of all cells of the run.
fn measured_endpoints(run: &RunFolder) -> Result<BTreeSet<String>, String> {
    let entries = run.run_file().map_err(|error| error.to_string())?.entries;
    let cells = entries.iter().flat_map(|entry| &entry.cells);
    let sides = cells.flat_map(|cell| [DIALER, LISTENER].map(|side| cell.case.get(side).map(str::to_owned)));
    Ok(sides.flatten().collect())
}

fn inputs(matrix: &Matrix, file: &Path, measured: &BTreeSet<String>) -> Result<RunInputs, String> {
    let absolute = |path: &Path| path.canonicalize().map_err(|error| format!("{}: {error}", path.display()));
    let file = absolute(file)?;
    let folder = file.parent().unwrap_or(Path::new("/"));
    let root = absolute(&folder.join(&matrix.root))?;
    let endpoints: Vec<&Endpoint> =
        matrix.endpoints.iter().chain(&matrix.baselines).filter(|one| measured.contains(&one.id)).collect();
    let (mut programs, mut sources) = (BTreeMap::new(), BTreeMap::new());
    let mut rebuild = Vec::new();
    for launch in endpoints.iter().filter_map(|endpoint| endpoint.launch.as_ref()) {
        let commands = [&launch.listener, &launch.dialer].into_iter().flatten();
        let own = commands.filter_map(|command| command.program()).filter(|program| program.contains('/'));
        let files: BTreeSet<String> =
            if launch.files.is_empty() { own.collect() } else { launch.files.iter().cloned().collect() };
        for path in files {
            // A program that does not exist made its cells unsupported, and nothing was measured with it.
            let Ok(path) = folder.join(path).canonicalize() else { continue };
            let sha256 = content_hash(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let relative = path.strip_prefix(&root).map(Path::to_owned).unwrap_or_else(|_| path.clone());
            let packed_as = format!("programs/{}", file_name(&path));
            programs.insert(path, ProgramInput { path: relative, sha256, packed_as });
        }
        for source in &launch.sources {
            let packed_as = format!("sources/{source}");
            sources.insert(source.clone(), SourceInput { path: PathBuf::from(source), packed_as });
        }
        if rebuild.is_empty() {
            rebuild.clone_from(&launch.build);
        } else if rebuild != launch.build && !launch.build.is_empty() {
            return Err("its endpoints have different `build` commands".to_owned());
        }
    }
    let peers_file = file.strip_prefix(&root).map(Path::to_owned).unwrap_or_else(|_| file.clone());
    Ok(RunInputs {
        folder: Some(root),
        programs: programs.into_values().collect(),
        sources: sources.into_values().collect(),
        peers_file: Some(peers_file),
        rebuild,
    })
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
