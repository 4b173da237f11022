//! The copy of a file that is kept in the run: `imported/HASH/NAME`, by the hash of the file. Where it holds secrets,
//! the copy has them masked, and is called so.

use std::fs;

use wb_model::Sha256;
use wb_record::{Artefact, RunFolder};

use crate::files::bytes;
use crate::stage::Source;
use crate::words::slug;
use crate::{Format, ImportError};

/// The folder of these copies.
const FOLDER: &str = "imported";

/// Keeps a copy of a file, unless the run has it already.
pub(crate) fn keep(run: &RunFolder, source: &Source) -> Result<(), ImportError> {
    let folder = run.path().join(FOLDER).join(source.sha256.as_str());
    if fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some()) {
        return Ok(());
    }
    let changed = || ImportError::Changed { path: source.path.clone() };
    let bytes = bytes(&source.path).map_err(|_| changed())?;
    if Sha256::of(&bytes) != source.sha256 {
        return Err(changed());
    }
    let name = slug(&source.name);
    match Copy::of(bytes, source.format, &source.foreign.secrets) {
        Copy::Whole(bytes) => Artefact::write(&folder, &name, &bytes)?,
        Copy::Masked(text) => Artefact::write(&folder, &format!("{name}.masked"), text.as_bytes())?,
        Copy::None => return Ok(()),
    };
    Ok(())
}

/// What is kept of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Copy {
    /// All of it, as it is.
    Whole(Vec<u8>),
    /// All of it but its secrets.
    Masked(String),
    /// Nothing: its secrets could not be masked where they stand.
    None,
}

impl Copy {
    /// What is kept of a file that holds these secrets.
    pub(crate) fn of(bytes: Vec<u8>, format: Format, secrets: &[(String, String)]) -> Self {
        if secrets.is_empty() {
            return Self::Whole(bytes);
        }
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        for (secret, masked) in secrets {
            let Some((secret, masked)) = written(format, secret).zip(written(format, masked)) else {
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
fn written(format: Format, text: &str) -> Option<String> {
    match format {
        Format::Phoronix => Some(format!(">{}<", quick_xml::escape::escape(text))),
        _ => serde_json::to_string(text).ok(),
    }
}

/// What is to be said of a copy that is not the file itself.
pub(crate) fn note(copy: &Copy) -> Option<String> {
    let note = match copy {
        Copy::Whole(_) => return None,
        Copy::Masked(_) => "what looks like a secret in it is masked, also in the copy that the run keeps",
        Copy::None => "no copy is kept: what looks like a secret in it could not be masked where it stands",
    };
    Some(note.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(text: &str, secrets: &[(&str, &str)]) -> Copy {
        let secrets: Vec<_> = secrets.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        Copy::of(text.as_bytes().to_vec(), Format::Pbench, &secrets)
    }

    #[test]
    fn a_copy_has_no_secrets() {
        assert_eq!(copy("{}", &[]), Copy::Whole(b"{}".to_vec()));
        let masked = copy(r#"{"c": "run \"--token\" abc"}"#, &[("run \"--token\" abc", "run \"--token\" ***")]);
        assert_eq!(masked, Copy::Masked(r#"{"c": "run \"--token\" ***"}"#.to_owned()));
        assert_eq!(copy(r#"{"c": "\u0061bc"}"#, &[("abc", "***")]), Copy::None);
    }
}
