//! Which files there are to read: those that were named, and in folders those that may be results.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::ReadError;
use crate::runperf::{EXCEPTION, has_non_numeric_serial, is_error_folder};

/// No result is larger, in bytes.
const MAX_FILE_BYTES: u64 = 512 << 20;

/// So much of the beginning of a file in a folder is looked at, in bytes.
const SNIFFED_BYTES: u64 = 64 << 10;

/// A file that may be imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Where it is.
    pub path: PathBuf,
    /// The folder that it was found in, at any depth; none where it was named itself.
    pub root: Option<PathBuf>,
}

/// What paths lead to.
#[derive(Debug, Default)]
pub struct Candidates {
    /// The files, in the order given; those of a folder by name, with all folders in it.
    pub files: Vec<Candidate>,
    /// What cannot be looked at.
    pub failed: Vec<(PathBuf, io::Error)>,
    /// Results under non-numeric serials, which are left out without `include_incorrect`.
    pub skipped_serials: usize,
}

/// The files of these paths: of folders also every error of run-perf, and with `include_incorrect` results under
/// non-numeric serials.
pub fn find_candidates(paths: &[PathBuf], include_incorrect: bool) -> Candidates {
    let mut all = Candidates::default();
    for path in paths {
        match fs::metadata(path) {
            Ok(what) if what.is_dir() => all.search(path, include_incorrect),
            Ok(what) if what.is_file() => all.files.push(Candidate { path: path.clone(), root: None }),
            Ok(_) => all.failed.push((path.clone(), io::Error::other("it is no regular file"))),
            Err(error) => all.failed.push((path.clone(), error)),
        }
    }
    all
}

impl Candidates {
    fn search(&mut self, root: &Path, include_incorrect: bool) {
        let mut folders = vec![root.to_owned()];
        // The last folder is the next one: so their entries are put there in reverse order.
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(&folder).and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
            let mut entries = match entries {
                Ok(entries) => entries,
                Err(error) => {
                    self.failed.push((folder, error));
                    continue;
                }
            };
            entries.sort_by_key(fs::DirEntry::file_name);
            let mut within = Vec::new();
            for entry in entries {
                let path = entry.path();
                // Links to folders may lead round in circles; those to files do not.
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if is_folder && is_error_folder(&entry.file_name()) {
                    // What else lies there are copies of files, not results.
                    self.files.push(Candidate { path: path.join(EXCEPTION), root: Some(root.to_owned()) });
                } else if is_folder {
                    within.push(path);
                } else if has_non_numeric_serial(&path) && !include_incorrect {
                    self.skipped_serials += 1;
                } else if path.is_file() && is_likely_result(&path) {
                    self.files.push(Candidate { path, root: Some(root.to_owned()) });
                }
            }
            folders.extend(within.into_iter().rev());
        }
    }
}

/// Whether a file is called or begins as results do: a report of fio may stand in a file of any name.
fn is_likely_result(path: &Path) -> bool {
    if path.extension().is_some_and(|extension| extension == "json" || extension == "xml") {
        return true;
    }
    let mut beginning = Vec::new();
    let read = File::open(path).and_then(|file| file.take(SNIFFED_BYTES).read_to_end(&mut beginning));
    let opens = |line: &[u8]| line.first().is_some_and(|first| matches!(first, b'{' | b'[' | b'<'));
    read.is_ok() && beginning.split(|byte| *byte == b'\n').any(opens)
}

/// A file's bytes.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(ReadError::TooLarge { limit: MAX_FILE_BYTES });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_searched_and_named_files_taken_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        };
        write("in/b.json", "");
        write("in/a/fio.out", "fio: hello\n{\n");
        write("in/a/notes.txt", "nothing here {");
        write("in/a/__error0__/exception", "no disk");
        write("in/a/__error0__/FILES/fio.json", "{}");
        write("in/P/fio/0000/result.json", "[]");
        write("in/P/fio/odd/result.json", "[]");
        let named = write("x.txt", "");
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, folder.path().join(name)).unwrap();
        link("../x.txt", "in/c.json");
        link("..", "in/round");
        let paths = [named, folder.path().join("in"), folder.path().join("none")];
        let found = |include_incorrect: bool| {
            let Candidates { files: found, failed, skipped_serials: incorrect } =
                find_candidates(&paths, include_incorrect);
            let names = found.iter().map(|file| file.path.strip_prefix(folder.path()).unwrap().display().to_string());
            (names.collect::<Vec<_>>().join(" "), failed.len(), incorrect)
        };
        let numbered = "x.txt in/b.json in/c.json in/P/fio/0000/result.json";
        let others = "in/a/__error0__/exception in/a/fio.out";
        assert_eq!(found(false), (format!("{numbered} {others}"), 1, 1));
        assert_eq!(find_candidates(&["/dev/null".into()], false).failed.len(), 1);
        assert_eq!(found(true), (format!("{numbered} in/P/fio/odd/result.json {others}"), 1, 0));
    }
}
