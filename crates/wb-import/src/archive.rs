//! The copy of a file that is kept in the run: `imported/HASH/NAME`, by the hash of the file. Where it holds secrets,
//! the copy has them masked, and is called so.

use std::fs;

use wb_model::Sha256;
use wb_record::{Artefact, RunFolder};

use crate::files::read_bytes;
use crate::naming::slug;
use crate::staging::SourceFile;
use crate::{Format, ImportError};

/// The folder of these copies.
const FOLDER: &str = "imported";

/// Keeps a copy of a file, unless the run has it already.
pub(crate) fn archive(run: &RunFolder, source: &SourceFile) -> Result<(), ImportError> {
    let folder = run.path().join(FOLDER).join(source.sha256.as_str());
    if fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some()) {
        return Ok(());
    }
    let changed = || ImportError::Changed { path: source.path.clone() };
    let bytes = read_bytes(&source.path).map_err(|_| changed())?;
    if Sha256::of(&bytes) != source.sha256 {
        return Err(changed());
    }
    let name = slug(&source.name);
    match ArchivedCopy::of(bytes, source.format, &source.foreign.secrets) {
        ArchivedCopy::Whole(bytes) => Artefact::write(&folder, &name, &bytes)?,
        ArchivedCopy::Masked(text) => Artefact::write(&folder, &format!("{name}.masked"), text.as_bytes())?,
        ArchivedCopy::None => return Ok(()),
    };
    Ok(())
}

/// What is kept of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ArchivedCopy {
    /// All of it, as it is.
    Whole(Vec<u8>),
    /// All of it but its secrets.
    Masked(String),
    /// Nothing: its secrets could not be masked where they stand.
    None,
}

impl ArchivedCopy {
    /// What is kept of a file that holds these secrets.
    pub(crate) fn of(bytes: Vec<u8>, format: Format, secrets: &[(String, String)]) -> Self {
        if secrets.is_empty() {
            return Self::Whole(bytes);
        }
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        for (secret, masked) in secrets {
            let Some((secret, masked)) = encode_text(format, secret).zip(encode_text(format, masked)) else {
                return Self::None;
            };
            if !text.contains(&secret) {
                return Self::None;
            }
            text = text.replace(&secret, &masked);
        }
        Self::Masked(text)
    }
}

/// A text as files of this format have it, with what stands around it.
fn encode_text(format: Format, text: &str) -> Option<String> {
    match format {
        Format::Phoronix => Some(format!(">{}<", quick_xml::escape::escape(text))),
        _ => serde_json::to_string(text).ok(),
    }
}

/// What is to be said of a copy that is not the file itself.
pub(crate) fn copy_note(copy: &ArchivedCopy) -> Option<String> {
    let note = match copy {
        ArchivedCopy::Whole(_) => return None,
        ArchivedCopy::Masked(_) => "what looks like a secret in it is masked, also in the copy that the run keeps",
        ArchivedCopy::None => "no copy is kept: what looks like a secret in it could not be masked where it stands",
    };
    Some(note.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(text: &str, secrets: &[(&str, &str)]) -> ArchivedCopy {
        let secrets: Vec<_> = secrets.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        ArchivedCopy::of(text.as_bytes().to_vec(), Format::Pbench, &secrets)
    }

    #[test]
    fn a_copy_has_no_secrets() {
        assert_eq!(copy("{}", &[]), ArchivedCopy::Whole(b"{}".to_vec()));
        let masked = copy(r#"{"c": "run \"--token\" abc"}"#, &[("run \"--token\" abc", "run \"--token\" ***")]);
        assert_eq!(masked, ArchivedCopy::Masked(r#"{"c": "run \"--token\" ***"}"#.to_owned()));
        assert_eq!(copy(r#"{"c": "\u0061bc"}"#, &[("abc", "***")]), ArchivedCopy::None);
    }
}
