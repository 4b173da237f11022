//! Packing: writes an archive whose bytes depend on nothing but its contents.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};
use wb_record::RunFolder;
use wb_record::folder::LOCK;
use wb_sys::{OutputFile, OutputTarget};

use crate::contents::{Contents, FILE_MODE, HashingReader, MemberSource};
use crate::error::ArchiveError;
use crate::manifest::{
    ArchiveKind, ArchiveManifest, ArchiveSummary, FORMAT, MANIFEST, MAX_MANIFEST, MemberKind, PackedInput, PackedRun,
};

pub const RUN: &str = "run";

/// The time of all members: 1980-01-01. Zero would be reported as implausible by some programs.
const TIME: u64 = 315_532_800;

/// Packs a run alone, without folders of the names in `skipped`. Fails if a controller is writing to the run.
pub fn pack_run(
    run: &RunFolder,
    version: &str,
    output: &Path,
    skipped: &[&str],
) -> Result<ArchiveSummary, ArchiveError> {
    // Refused while it is measured, not packed with a message: journal and artefacts would be of different moments.
    let _lock = run.lock_shared()?;
    refuse_output(run, output)?;
    let mut contents = Contents::default();
    add_run(&mut contents, run, skipped)?;
    pack(&contents, ArchiveKind::Run, version, PackedRun::new(run)?, Vec::new(), output)
}

/// Adds a run folder without folders named in `skipped`, and without its lock, which means something on this machine
/// only.
pub(crate) fn add_run(contents: &mut Contents, run: &RunFolder, skipped: &[&str]) -> Result<(), ArchiveError> {
    contents.add_tree(RUN, run.path(), skipped)?;
    contents.remove(&format!("{RUN}/{LOCK}"));
    Ok(())
}

/// Refuses an archive that exists, or would be in the run folder.
pub(crate) fn refuse_output(run: &RunFolder, output: &Path) -> Result<(), ArchiveError> {
    if output.is_dir() {
        return Err(ArchiveError::OutputExists { path: output.to_owned() });
    }
    let target = OutputTarget::new(output).map_err(ArchiveError::io("write", output))?;
    let OutputTarget::File(file) = target else { return Ok(()) };
    if file.exists() {
        return Err(ArchiveError::OutputExists { path: output.to_owned() });
    }
    let folder = fs::canonicalize(parent(&file)).map_err(ArchiveError::io("write", output))?;
    let run = fs::canonicalize(run.path()).map_err(ArchiveError::io("read", run.path()))?;
    if folder.starts_with(run) {
        return Err(ArchiveError::OutputInRun { path: output.to_owned() });
    }
    Ok(())
}

pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes an archive, which appears under its name when it is complete.
pub fn pack(
    contents: &Contents,
    kind: ArchiveKind,
    version: &str,
    run: PackedRun,
    inputs: Vec<PackedInput>,
    output: &Path,
) -> Result<ArchiveSummary, ArchiveError> {
    // Described before it is written: with the manifest as the first member, extracting can check each one as it
    // arrives and never writes more than was announced. So all is read twice, and a file that changes in between is an
    // error.
    let members = contents.describe()?;
    let manifest = ArchiveManifest { format: FORMAT, kind, version: version.to_owned(), run, inputs, members };
    manifest.check().map_err(ArchiveError::Unextractable)?;
    let file = OutputFile::create_new(output).map_err(ArchiveError::io("write", output))?;
    let file = write_archive(contents, &manifest, BufWriter::new(file), output)?;
    let file = file.into_inner().map_err(|error| ArchiveError::io("write", output)(error.into_error()))?;
    file.finish().map_err(ArchiveError::io("write", output))?;
    Ok(manifest.summary())
}

/// Records are kept, and small. The programs in a snapshot are a hundred times as large: the default would save a fifth
/// of it, in three times the time.
fn compression(kind: ArchiveKind) -> Compression {
    match kind {
        ArchiveKind::Run => Compression::default(),
        ArchiveKind::Snapshot => Compression::fast(),
    }
}

/// `output` is the name of the archive in messages.
fn write_archive<W: Write>(
    contents: &Contents,
    manifest: &ArchiveManifest,
    writer: W,
    output: &Path,
) -> Result<W, ArchiveError> {
    let write = |error| ArchiveError::io("write", output)(error);
    let mut builder = Builder::new(GzEncoder::new(writer, compression(manifest.kind)));
    let mut text = serde_json::to_vec_pretty(manifest).map_err(|error| write(error.into()))?;
    text.push(b'\n');
    if text.len() as u64 > MAX_MANIFEST {
        return Err(ArchiveError::LargeManifest { size: text.len() });
    }
    let mut header = new_header(EntryType::Regular, text.len() as u64, FILE_MODE);
    builder.append_data(&mut header, MANIFEST, &text[..]).map_err(write)?;
    for ((name, source), member) in contents.sources().zip(&manifest.members) {
        match (source, &member.kind) {
            (MemberSource::Link { target, .. }, _) => {
                let mut header = new_header(EntryType::Symlink, 0, 0o777);
                builder.append_link(&mut header, name, target).map_err(write)?;
            }
            (MemberSource::Generated { content, .. }, MemberKind::File { size, mode, .. }) => {
                let mut header = new_header(EntryType::Regular, *size, *mode);
                builder.append_data(&mut header, name, &content[..]).map_err(write)?;
            }
            (MemberSource::File { path, .. }, MemberKind::File { size, mode, sha256 }) => {
                let mut header = new_header(EntryType::Regular, *size, *mode);
                let file = File::open(path).map_err(ArchiveError::io("read", path))?;
                let mut reader = HashingReader::new(file.take(*size));
                builder.append_data(&mut header, name, &mut reader).map_err(write)?;
                if reader.finish() != (*size, sha256.clone()) {
                    return Err(ArchiveError::Changed { path: path.clone() });
                }
            }
            (_, MemberKind::Folder { mode }) => {
                let mut header = new_header(EntryType::Directory, 0, *mode);
                builder.append_data(&mut header, name, io::empty()).map_err(write)?;
            }
            // The members were made from these sources.
            (_, MemberKind::File { .. } | MemberKind::Link { .. }) => {
                return Err(ArchiveError::Changed { path: PathBuf::from(name) });
            }
        }
    }
    builder.into_inner().and_then(GzEncoder::finish).map_err(write)
}

/// A header that depends on nothing but these properties of a member.
fn new_header(kind: EntryType, size: u64, mode: u32) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(TIME);
    header
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    fn contents() -> Contents {
        let mut contents = Contents::default();
        contents.add_generated("run/b", b"2".to_vec(), FILE_MODE).unwrap();
        contents.add_generated(&format!("run/{}/a", "x".repeat(180)), b"1".to_vec(), FILE_MODE).unwrap();
        contents
    }

    fn packed_run() -> PackedRun {
        PackedRun { id: "id".to_owned(), started: "now".to_owned(), plans: Vec::new() }
    }

    #[test]
    fn equal_contents_give_equal_archives_and_leave_no_temporary_files() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let path = folder.path().join(name);
            pack(&contents(), ArchiveKind::Run, "1", packed_run(), Vec::new(), &path).unwrap();
            fs::read(path).unwrap()
        };
        assert_eq!(write("a.tar.gz"), write("b.tar.gz"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    // pack wrote manifests and names that unpack refuses.
    #[test]
    fn archives_that_could_not_be_extracted_are_not_written() {
        let manifest = ArchiveManifest {
            format: FORMAT,
            kind: ArchiveKind::Run,
            version: "x".repeat(usize::try_from(MAX_MANIFEST).unwrap()),
            run: packed_run(),
            inputs: Vec::new(),
            members: Vec::new(),
        };
        let error = write_archive(&Contents::default(), &manifest, Vec::new(), Path::new("x")).unwrap_err();
        assert!(matches!(error, ArchiveError::LargeManifest { .. }), "{error}");
        let folder = tempfile::tempdir().unwrap();
        let mut contents = Contents::default();
        contents.add_generated(&"x".repeat(256), Vec::new(), FILE_MODE).unwrap();
        let packed = pack(&contents, ArchiveKind::Run, "1", packed_run(), Vec::new(), &folder.path().join("x"));
        assert!(matches!(packed, Err(ArchiveError::Unextractable(_))));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    // A temporary name that is longer than its target's exceeded the limit of 255 bytes.
    #[test]
    fn an_archive_can_have_the_longest_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x".repeat(255));
        pack(&contents(), ArchiveKind::Run, "1", packed_run(), Vec::new(), &path).unwrap();
        let target = folder.path().join("y".repeat(255));
        let archive = File::open(&path).unwrap();
        crate::unpack(&path, archive, &target, &AtomicBool::new(false)).unwrap();
    }

    #[test]
    fn a_file_that_changes_while_it_is_packed_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, "before").unwrap();
        let mut contents = contents();
        contents.add_file("run/f", &path, None).unwrap();
        let members = contents.describe().unwrap();
        let manifest = ArchiveManifest {
            format: FORMAT,
            kind: ArchiveKind::Run,
            version: String::new(),
            run: packed_run(),
            inputs: Vec::new(),
            members,
        };
        assert!(write_archive(&contents, &manifest, Vec::new(), Path::new("x")).is_ok());
        for text in ["other!", "less"] {
            fs::write(&path, text).unwrap();
            let error = write_archive(&contents, &manifest, Vec::new(), Path::new("x")).unwrap_err();
            assert!(matches!(error, ArchiveError::Changed { .. }), "{error}");
        }
    }

    #[test]
    fn an_archive_in_the_run_folder_or_over_another_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::create(&folder.path().join("R")).unwrap();
        let refuse = |name: &str| refuse_output(&run, &folder.path().join(name));
        assert!(matches!(refuse("R/x.tar.gz"), Err(ArchiveError::OutputInRun { .. })));
        assert!(matches!(refuse("R"), Err(ArchiveError::OutputExists { .. })));
        assert!(refuse("x.tar.gz").is_ok());
    }
}
