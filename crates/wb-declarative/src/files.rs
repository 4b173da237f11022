use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use wb_model::Params;
use wb_test::test::NamedFile;
use wb_test::{DEFINITION_FILE_PREFIX, DEFINITION_SHA256};

use super::definition::{Definition, MeasuredProgram, Readiness};
use super::template::{Bindings, CommandTemplate, Template};

/// Folders of the operating system, whose packages are recorded with the environment.
const SYSTEM_FOLDERS: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/nix", "/proc"];

impl Definition {
    /// Files of a cell with these parameters: those with a `path`, files below `{definition-folder}` in commands, and
    /// programs and scripts of commands with absolute paths.
    pub(super) fn named_files(&self, params: &Params) -> Vec<NamedFile> {
        let mut all: Vec<NamedFile> = self.included_files.iter().map(|(file, _)| file.clone()).collect();
        all.extend(self.files_named_by_commands(params));
        all.sort();
        all.dedup();
        all
    }

    /// SHA-256 of the definition and its files: included files as they were when it was parsed, files in commands as
    /// they are now.
    pub(super) fn source_hashes(&self, params: &Params) -> BTreeMap<String, String> {
        let name = |file: &NamedFile| format!("{DEFINITION_FILE_PREFIX}{} sha256", file.path);
        let included = self.included_files.iter().map(|(file, hash)| (name(file), hash.to_string()));
        let own = [(DEFINITION_SHA256.to_owned(), self.digest.to_string())];
        // The run lists unreadable files with the reason among its copies.
        let hash = |file: NamedFile| Some((name(&file), self.file_hashes.hash(&file.location).ok()?.to_string()));
        own.into_iter()
            .chain(included)
            .chain(self.files_named_by_commands(params).into_iter().filter_map(hash))
            .collect()
    }

    fn files_named_by_commands(&self, params: &Params) -> Vec<NamedFile> {
        let bindings = Bindings { params, builtins: Default::default() };
        let folder = self.folder.as_deref().map(Path::new);
        let below = self.templates().filter_map(|template| template.path_below_here(&bindings));
        let below = below.filter_map(|path| {
            let location = folder?.join(&path);
            location.is_file().then(|| NamedFile { path: format!("{{definition-folder}}/{path}"), location })
        });
        below.chain(self.programs_by_path()).collect()
    }

    /// Programs of commands, and the first argument of each that is not an option, if these are absolute paths.
    fn programs_by_path(&self) -> impl Iterator<Item = NamedFile> {
        let words = self.commands().flat_map(|argv| {
            let (program, arguments) = argv.words().split_at(1.min(argv.words().len()));
            let script = arguments.iter().filter_map(Template::literal).find(|word| !word.starts_with('-'));
            program.iter().filter_map(Template::literal).chain(script)
        });
        words
            .filter(|word| is_user_file(Path::new(word)))
            .map(|word| NamedFile { path: word.to_owned(), location: PathBuf::from(word) })
    }

    fn templates(&self) -> impl Iterator<Item = &Template> {
        self.commands().flat_map(CommandTemplate::words).chain(self.env.iter().map(|(_, value)| value))
    }

    fn commands(&self) -> impl Iterator<Item = &CommandTemplate> {
        let (MeasuredProgram::Command(measured) | MeasuredProgram::Runner(measured)) = &self.measured_program;
        let services = self.services.iter().flat_map(|service| {
            let ready = match &service.ready {
                Readiness::Command(command) => Some(command),
                Readiness::Line(..) | Readiness::Port(_) => None,
            };
            [Some(&service.command), ready, service.stop.as_ref()].into_iter().flatten()
        });
        self.build.iter().chain(&self.setup).chain(&self.cleanup).chain([measured]).chain(services)
    }
}

/// Whether a path is a file outside of the system's folders that all users may read.
fn is_user_file(path: &Path) -> bool {
    const READABLE_BY_ALL: u32 = 0o004;
    let is_readable =
        |metadata: fs::Metadata| metadata.is_file() && metadata.permissions().mode() & READABLE_BY_ALL != 0;
    path.is_absolute()
        && !SYSTEM_FOLDERS.iter().any(|folder| path.starts_with(folder))
        && fs::metadata(path).is_ok_and(is_readable)
}
