//! The files on this machine that a definition names.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use wb_model::Params;

use super::definition::{Definition, Measured, Ready};
use super::template::{Argv, Bindings, Template};
use crate::test::NamedFile;

/// Where programs belong to the system, whose packages are recorded with the environment.
const OF_SYSTEM: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/nix", "/proc"];

impl Definition {
    /// The files of a cell with these parameters: those with a `path`, whatever is called below `{here}`, and the program
    /// of the measured command with its script where they are given by their whole path.
    pub(super) fn named_files(&self, params: &Params) -> Vec<NamedFile> {
        let mut all = self.beside.clone();
        let bindings = Bindings { params, builtins: Default::default() };
        let folder = self.folder.as_deref().map(Path::new);
        let below = self.templates().filter_map(|template| template.below_here(&bindings));
        let below = below.filter_map(|path| {
            let location = folder?.join(&path);
            location.is_file().then(|| NamedFile { path: format!("{{here}}/{path}"), location })
        });
        all.extend(below.chain(self.programs_by_path()));
        all.sort();
        all.dedup();
        all
    }

    /// The program of the measured command, and what it is called with first, where these are whole paths.
    fn programs_by_path(&self) -> impl Iterator<Item = NamedFile> {
        let (Measured::Command(argv) | Measured::Runner(argv)) = &self.measured;
        let words = argv.words().iter().take(2).filter_map(Template::literal);
        words
            .filter(|word| is_own_program(Path::new(word)))
            .map(|word| NamedFile { path: word.to_owned(), location: PathBuf::from(word) })
    }

    /// Whatever is filled in for processes.
    fn templates(&self) -> impl Iterator<Item = &Template> {
        let (Measured::Command(measured) | Measured::Runner(measured)) = &self.measured;
        let services = self.services.iter().flat_map(|service| {
            let ready = match &service.ready {
                Ready::Command(command) => Some(command),
                Ready::Line(..) | Ready::Port(_) => None,
            };
            [Some(&service.command), ready, service.stop.as_ref()].into_iter().flatten()
        });
        let commands = self.build.iter().chain(&self.setup).chain(&self.cleanup).chain([measured]).chain(services);
        commands.flat_map(Argv::words).chain(self.env.iter().map(|(_, value)| value))
    }
}

/// Whether it is a file that is the user's own and that everybody may read.
fn is_own_program(path: &Path) -> bool {
    const READABLE: u32 = 0o004;
    let is_open = |found: fs::Metadata| found.is_file() && found.permissions().mode() & READABLE != 0;
    path.is_absolute()
        && !OF_SYSTEM.iter().any(|folder| path.starts_with(folder))
        && fs::metadata(path).is_ok_and(is_open)
}
