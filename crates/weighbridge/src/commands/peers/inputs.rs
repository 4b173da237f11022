//! Inputs of a matrix outside of the run folder, for snapshots.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use wb_model::MATRIX_FILE;
use wb_peers::{Endpoint, Matrix, MatrixError, read_matrix};
use wb_peers_worker::{DIALER, LISTENER, NAME};
use wb_plan::Request;
use wb_plan::request::ValueForm;
use wb_record::inputs::{InputConflict, ProgramInput, RunInputs, SourceInput, content_hash};
use wb_record::{RecordError, RunFolder};

/// Another name of the parameter with the peers file of a matrix.
const FILE: &str = "file";
/// The folder of the programs of matrices in a snapshot. It is not on the `PATH`: an endpoint `node` may start `node`.
const PROGRAMS: &str = "programs/peers";

#[derive(Debug, thiserror::Error)]
enum InputsError {
    #[error(transparent)]
    Matrix(#[from] MatrixError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Conflict(#[from] InputConflict),
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("cannot rebuild: its endpoints have different `build` commands")]
    Builds,
}

/// The peers file of a test, as it is named; none if the test has no matrix.
pub(crate) fn matrix_file(request: &Request) -> Option<String> {
    let is_file = |name: &str| [MATRIX_FILE, FILE].contains(&name);
    let given = request.params.iter().find(|given| request.test == NAME && is_file(&given.name))?;
    match &given.value.form {
        ValueForm::Single(file) => Some(file.to_string()),
        ValueForm::List(_) => None,
    }
}

/// Records the programs, sources and peers file of the last invocation of a run. Returns a warning if they cannot be
/// read: the run is complete without them, only a snapshot is not.
pub(crate) fn record_inputs(run: &RunFolder, file: &Path) -> Option<String> {
    let warning = |reason| format!("snapshots of {} will lack its endpoints: {reason}", run.path().display());
    try_record(run, file).err().map(warning)
}

fn try_record(run: &RunFolder, file: &Path) -> Result<(), InputsError> {
    let matrix = read_matrix(file)?;
    let earlier = RunInputs::read(run)?.unwrap_or_default();
    let later = inputs(&matrix, file, &measured_endpoints(run)?, &earlier)?;
    Ok(run.write_inputs(&earlier.merge(later)?)?)
}

/// The ids of the endpoints of the last invocation's cells.
fn measured_endpoints(run: &RunFolder) -> Result<BTreeSet<String>, RecordError> {
    let invocation = run.run_file()?.invocations.pop();
    let cells = invocation.iter().flat_map(|invocation| &invocation.cells);
    let sides = cells.flat_map(|cell| [DIALER, LISTENER].map(|side| cell.case.get(side).map(str::to_owned)));
    Ok(sides.flatten().collect())
}

fn inputs(
    matrix: &Matrix,
    file: &Path,
    measured: &BTreeSet<String>,
    earlier: &RunInputs,
) -> Result<RunInputs, InputsError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        |source| InputsError::Unreadable { path, source }
    };
    let absolute = |path: &Path| path.canonicalize().map_err(unreadable(path));
    let file = absolute(file)?;
    let folder = file.parent().unwrap_or(Path::new("/"));
    let root = absolute(&folder.join(&matrix.root))?;
    let relative = |path: &Path| path.strip_prefix(&root).unwrap_or(path).to_owned();
    let endpoints: Vec<&Endpoint> =
        matrix.endpoints.iter().chain(&matrix.baselines).filter(|one| measured.contains(&one.id)).collect();
    let mut folders = PackedFolders::new(earlier);
    let (mut programs, mut sources) = (BTreeMap::<PathBuf, ProgramInput>::new(), BTreeMap::new());
    let mut rebuild = Vec::new();
    for launch in endpoints.iter().filter_map(|endpoint| endpoint.launch.as_ref()) {
        let commands = [&launch.listener, &launch.dialer].into_iter().flatten();
        let own = commands.flat_map(|command| command.program().into_iter().chain(command.file_arguments()));
        let own = own.filter(|path| path.contains('/'));
        let files: BTreeSet<String> =
            if launch.files.is_empty() { own.collect() } else { launch.files.iter().cloned().collect() };
        let rebuilt = !launch.build.is_empty();
        for path in files {
            // A program that does not exist made its cells unsupported, and nothing is measured with it.
            let Ok(path) = folder.join(path).canonicalize() else { continue };
            if let Some(program) = programs.get_mut(&path) {
                program.rebuilt |= rebuilt;
                continue;
            }
            let sha256 = content_hash(&path).map_err(unreadable(&path))?;
            let packed_as = folders.packed_path(&path);
            programs.insert(path.clone(), ProgramInput { path: relative(&path), sha256, packed_as, rebuilt });
        }
        for source in &launch.sources {
            let packed_as = format!("sources/{source}");
            sources.insert(source.clone(), SourceInput { path: PathBuf::from(source), packed_as });
        }
        if rebuild.is_empty() {
            rebuild.clone_from(&launch.build);
        } else if rebuild != launch.build && rebuilt {
            return Err(InputsError::Builds);
        }
    }
    Ok(RunInputs {
        programs: programs.into_values().collect(),
        sources: sources.into_values().collect(),
        peers_files: vec![relative(&file)],
        rebuild,
        folder: Some(root),
    })
}

/// The folders of programs in a snapshot. Programs of one folder stay in one, because they may find each other there.
struct PackedFolders(BTreeMap<PathBuf, String>);

impl PackedFolders {
    /// The folders of programs that are recorded already.
    fn new(inputs: &RunInputs) -> Self {
        let folder = |program: &ProgramInput| {
            let (name, _) = program.packed_as.strip_prefix(PROGRAMS)?.strip_prefix('/')?.split_once('/')?;
            Some((inputs.locate(&program.path).parent()?.to_owned(), name.to_owned()))
        };
        Self(inputs.programs.iter().filter_map(folder).collect())
    }

    /// The path of a program in a snapshot. Folders of one name are numbered.
    fn packed_path(&mut self, path: &Path) -> String {
        let parent = path.parent().unwrap_or(Path::new("/"));
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let folder = self.0.get(parent).cloned().unwrap_or_else(|| {
            let base = Some(name(parent)).filter(|name| !name.is_empty()).unwrap_or_else(|| "root".to_owned());
            let numbered = |number: usize| if number == 1 { base.clone() } else { format!("{base}-{number}") };
            let is_taken = |folder: &String| self.0.values().any(|taken| taken == folder);
            // Of this many names one is free.
            let mut names = (1..=self.0.len() + 1).map(numbered);
            names.find(|folder| !is_taken(folder)).unwrap_or(base.clone())
        });
        self.0.insert(parent.to_owned(), folder.clone());
        format!("{PROGRAMS}/{folder}/{}", name(path))
    }
}

#[cfg(test)]
mod tests {
    use wb_model::Sha256;

    use super::*;

    #[test]
    fn programs_of_one_folder_stay_together_and_folders_of_one_name_apart() {
        let program = ProgramInput {
            path: "a/endpoint".into(),
            sha256: Sha256::digest(b""),
            packed_as: "programs/peers/a/endpoint".to_owned(),
            rebuilt: true,
        };
        let earlier = RunInputs { folder: Some("/x".into()), programs: vec![program], ..RunInputs::default() };
        let mut folders = PackedFolders::new(&earlier);
        let packed = ["/x/a/endpoint", "/y/a/endpoint", "/z/a/endpoint", "/y/a/lib.py", "/b/endpoint", "/endpoint"]
            .map(|path| folders.packed_path(Path::new(path)));
        let expected = ["a/endpoint", "a-2/endpoint", "a-3/endpoint", "a-2/lib.py", "b/endpoint", "root/endpoint"];
        assert_eq!(packed, expected.map(|path| format!("programs/peers/{path}")));
    }
}
