//! Search for files to import: named files, and likely results in folders.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use crate::ReadError;
use crate::run_perf::{EXCEPTION, has_non_numeric_serial, is_error_folder};

const MAX_FILE_BYTES: u64 = 512 << 20;

/// Bytes of a file in a folder that are inspected.
const SNIFFED_BYTES: u64 = 64 << 10;

/// Results of libp2p's performance suites; the table is derived from the other file.
const SUITE_YAML: &str = "results.yaml";
const SUITE_TABLE: &str = "results.md";

/// A file that may be imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub path: PathBuf,
    /// The given folder that contains it, at any depth; none if the file itself was given.
    pub root: Option<PathBuf>,
}

/// Result of a search.
#[derive(Debug, Default)]
pub struct Candidates {
    /// In the given order; those of a folder, recursively, by name.
    pub files: Vec<Candidate>,
    pub failed: Vec<(PathBuf, io::Error)>,
    /// Results under non-numeric serials, if `include_incorrect` is not set.
    pub skipped_serials: usize,
}

/// Finds the files of these paths; in folders also the errors of run-perf, and with `include_incorrect` results under
/// non-numeric serials.
pub fn find_candidates(paths: &[PathBuf], include_incorrect: bool) -> Candidates {
    let mut all = Candidates::default();
    for path in paths {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => all.search(path, include_incorrect),
            Ok(metadata) if metadata.is_file() => all.files.push(Candidate { path: path.clone(), root: None }),
            Ok(_) => all.failed.push((path.clone(), io::Error::other("not a regular file"))),
            Err(error) => all.failed.push((path.clone(), error)),
        }
    }
    all
}

impl Candidates {
    fn search(&mut self, root: &Path, include_incorrect: bool) {
        let mut folders = vec![root.to_owned()];
        // The last folder is searched next, so subfolders are pushed in reverse order.
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
            let has_yaml = entries.iter().any(|entry| entry.file_name() == SUITE_YAML);
            let mut subfolders = Vec::new();
            for entry in entries {
                let path = entry.path();
                // Symbolic links to folders may form loops; those to files cannot.
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if is_folder && is_error_folder(&entry.file_name()) {
                    // Other files in it are copies, not results.
                    self.files.push(Candidate { path: path.join(EXCEPTION), root: Some(root.to_owned()) });
                } else if is_folder {
                    subfolders.push(path);
                } else if has_non_numeric_serial(&path) && !include_incorrect {
                    self.skipped_serials += 1;
                } else if has_yaml && entry.file_name() == SUITE_TABLE {
                    // The same results again, without samples.
                } else if path.is_file() && is_likely_result(&path) {
                    self.files.push(Candidate { path, root: Some(root.to_owned()) });
                }
            }
            folders.extend(subfolders.into_iter().rev());
        }
    }
}

/// Whether a file has the name, the extension or the beginning of a result; reports of fio may have any name.
fn is_likely_result(path: &Path) -> bool {
    if path.file_name().is_some_and(|name| name == SUITE_YAML || name == SUITE_TABLE) {
        return true;
    }
    if path.extension().is_some_and(|extension| extension == "json" || extension == "xml") {
        return true;
    }
    if path.file_name().is_some_and(|name| name.as_encoded_bytes().ends_with(b".json.gz")) {
        return true;
    }
    let mut beginning = Vec::new();
    let result = File::open(path).and_then(|file| file.take(SNIFFED_BYTES).read_to_end(&mut beginning));
    let opens_document = |line: &[u8]| line.first().is_some_and(|first| matches!(first, b'{' | b'[' | b'<'));
    result.is_ok() && beginning.split(|byte| *byte == b'\n').any(opens_document)
}

pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, ReadError> {
    read_limited(File::open(path)?)
}

fn read_limited(reader: impl Read) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    reader.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(ReadError::TooLarge { limit: MAX_FILE_BYTES });
    }
    Ok(bytes)
}

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Decompresses gzip, up to the size limit of files.
pub(crate) fn decompress(bytes: &[u8]) -> Result<Cow<'_, [u8]>, ReadError> {
    if !bytes.starts_with(&GZIP) {
        return Ok(bytes.into());
    }
    Ok(read_limited(MultiGzDecoder::new(bytes))?.into())
}

/// Decodes UTF-8, or UTF-16 of which the first character is ASCII; without a byte order mark. An invalid byte becomes
/// `\u{FFFD}` and its hexadecimal digits, so that different names stay different.
pub(crate) fn decode(bytes: &[u8]) -> Cow<'_, str> {
    let utf16 = |bytes: &[u8], to_unit: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|pair| to_unit([pair[0], pair[1]]));
        let units: Vec<u16> = units.collect();
        Cow::Owned(String::from_utf16_lossy(&units))
    };
    let bytes = match bytes {
        [0xEF, 0xBB, 0xBF, rest @ ..] => rest,
        [0xFF, 0xFE, rest @ ..] => return utf16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => return utf16(rest, u16::from_be_bytes),
        [1..=0x7F, 0, ..] => return utf16(bytes, u16::from_le_bytes),
        [0, 1..=0x7F, ..] => return utf16(bytes, u16::from_be_bytes),
        _ => bytes,
    };
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text += chunk.valid();
        text.extend(chunk.invalid().iter().map(|byte| format!("\u{FFFD}{byte:02X}")));
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn invalid_bytes_are_decoded_differently() {
        assert_eq!(decode("größe".as_bytes()), "größe");
        assert_eq!(decode(b"caf\xe9 \xff\xfe"), "caf\u{FFFD}E9 \u{FFFD}FF\u{FFFD}FE");
    }

    #[test]
    fn compressed_files_are_decompressed_and_damaged_ones_are_errors() {
        let compress = |text: &[u8]| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        };
        let whole = compress(b"{\"a\": 1}");
        assert_eq!(decompress(&whole).unwrap(), b"{\"a\": 1}".as_slice());
        assert_eq!(decompress(b"{}").unwrap(), b"{}".as_slice());
        assert!(matches!(decompress(&whole[..whole.len() - 3]), Err(ReadError::Unreadable(_))));
        assert!(matches!(decompress(&GZIP), Err(ReadError::Unreadable(_))));
    }

    #[test]
    fn every_encoding_of_unicode_is_decoded() {
        let text = "{\"größe\": \"𝄞\"}";
        let marked = format!("\u{FEFF}{text}");
        for text_or_marked in [text, &marked] {
            let units: Vec<u16> = text_or_marked.encode_utf16().collect();
            assert_eq!(decode(text_or_marked.as_bytes()), text);
            assert_eq!(decode(&units.iter().flat_map(|unit| unit.to_le_bytes()).collect::<Vec<u8>>()), text);
            assert_eq!(decode(&units.iter().flat_map(|unit| unit.to_be_bytes()).collect::<Vec<u8>>()), text);
        }
    }

    #[test]
    fn folders_are_searched_and_named_files_are_always_candidates() {
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
        write("in/a/both/results.md", "");
        write("in/a/both/results.yaml", "");
        write("in/a/table/results.md", "");
        write("in/P/fio/0000/result.json", "[]");
        write("in/P/fio/odd/result.json", "[]");
        let file = write("x.txt", "");
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, folder.path().join(name)).unwrap();
        link("../x.txt", "in/c.json");
        link("..", "in/round");
        let paths = [file, folder.path().join("in"), folder.path().join("none")];
        let find = |include_incorrect: bool| {
            let Candidates { files, failed, skipped_serials } = find_candidates(&paths, include_incorrect);
            let names = files.iter().map(|file| file.path.strip_prefix(folder.path()).unwrap().display().to_string());
            (names.collect::<Vec<_>>().join(" "), failed.len(), skipped_serials)
        };
        let results = "x.txt in/b.json in/c.json in/P/fio/0000/result.json";
        let rest = "in/a/__error0__/exception in/a/fio.out in/a/both/results.yaml in/a/table/results.md";
        assert_eq!(find(false), (format!("{results} {rest}"), 1, 1));
        assert_eq!(find_candidates(&["/dev/null".into()], false).failed.len(), 1);
        assert_eq!(find(true), (format!("{results} in/P/fio/odd/result.json {rest}"), 1, 0));
    }
}
