//! Copies of imported files in the run: `imported/HASH/NAME`, by the hash of the file. A copy with masked secrets has
//! the suffix `.masked`.

use std::fs;

use wb_model::Sha256;
use wb_record::journal::IMPORTED_FOLDER;
use wb_record::{Artefact, RunFolder};

use crate::files::read_bytes;
use crate::naming::slug;
use crate::staging::SourceFile;
use crate::{Format, ImportError};

/// Copies a file into the run, unless the run has it already.
pub(crate) fn archive(run: &RunFolder, source: &SourceFile) -> Result<(), ImportError> {
    let folder = run.path().join(IMPORTED_FOLDER).join(source.sha256.as_str());
    if fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some()) {
        return Ok(());
    }
    let changed = || ImportError::Changed(source.path.clone());
    let bytes = read_bytes(&source.path).map_err(|_| changed())?;
    if Sha256::digest(&bytes) != source.sha256 {
        return Err(changed());
    }
    let name = slug(&source.name);
    match ArchivedCopy::new(bytes, source.format, &source.results.secrets) {
        ArchivedCopy::Whole(bytes) => Artefact::write(&folder, &name, &bytes)?,
        ArchivedCopy::Masked(text) => Artefact::write(&folder, &format!("{name}.masked"), text.as_bytes())?,
        ArchivedCopy::None => return Ok(()),
    };
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ArchivedCopy {
    Whole(Vec<u8>),
    Masked(String),
    /// No copy: the secrets could not be located in the file.
    None,
}

impl ArchivedCopy {
    pub(crate) fn new(bytes: Vec<u8>, format: Format, secrets: &[(String, String)]) -> Self {
        let secrets = || secrets.iter().filter(|(secret, _)| !secret.is_empty());
        if secrets().next().is_none() {
            return Self::Whole(bytes);
        }
        let encode = format.definition().encode;
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        for (secret, masked) in secrets() {
            let Some((secret, masked)) = encode(secret).zip(encode(masked)) else { return Self::None };
            if !text.contains(&secret) {
                return Self::None;
            }
            text = text.replace(&secret, &masked);
        }
        // A secret may be a part of another text, too.
        let remains = |(secret, _): &(String, String)| {
            encode(secret).is_none_or(|encoded| text.contains(encoded.trim_matches(['"', '<', '>'])))
        };
        if secrets().any(remains) { Self::None } else { Self::Masked(text) }
    }
}

/// Note for the user if the copy is not identical to the file.
pub(crate) fn copy_note(copy: &ArchivedCopy) -> Option<String> {
    let note = match copy {
        ArchivedCopy::Whole(_) => return None,
        ArchivedCopy::Masked(_) => "possible secrets are masked, also in the copy in the run",
        ArchivedCopy::None => "not copied into the run: a possible secret could not be masked",
    };
    Some(note.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::pbench;

    fn copy(text: &str, secrets: &[(&str, &str)]) -> ArchivedCopy {
        let secrets: Vec<_> = secrets.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        ArchivedCopy::new(text.as_bytes().to_vec(), pbench::FORMAT, &secrets)
    }

    #[test]
    fn a_copy_has_no_secrets() {
        assert_eq!(copy("{}", &[]), ArchivedCopy::Whole(b"{}".to_vec()));
        let masked = copy(r#"{"c": "run \"--token\" abc"}"#, &[("run \"--token\" abc", "run \"--token\" ***")]);
        assert_eq!(masked, ArchivedCopy::Masked(r#"{"c": "run \"--token\" ***"}"#.to_owned()));
        assert_eq!(copy(r#"{"c": "\u0061bc"}"#, &[("abc", "***")]), ArchivedCopy::None);
        // Masked as a value, and not where it is a part of a command.
        assert_eq!(copy(r#"{"c": "login abc -v", "p": "abc"}"#, &[("abc", "***")]), ArchivedCopy::None);
        assert_eq!(copy(r#"{"p": ""}"#, &[("", "***")]), ArchivedCopy::Whole(br#"{"p": ""}"#.to_vec()));
    }
}
