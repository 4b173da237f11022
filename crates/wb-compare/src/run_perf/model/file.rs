//! run-perf's model files: versions 1 and 2, and bare ones, `{"ID": [a, b]}` without metadata.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Equation, ModelEntry, NormalRange, ToleranceModel};
use crate::model::{ModelError, ParseModelError};

const METADATA: &str = "__metadata__";
const LATEST_VERSION: u32 = 2;

#[derive(Serialize, Deserialize)]
struct FileMetadata {
    version: u32,
    tolerance: Option<f64>,
}

#[derive(Serialize, Deserialize)]
struct FileEntry {
    equation: [f64; 2],
    raw: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mmin: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mmax: Option<f64>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected [a, b], or an object with `equation` and `raw`")]
enum RawModelEntry {
    Bare([f64; 2]),
    Full(FileEntry),
}

/// The content of a file, in the order in which run-perf writes it.
#[derive(Serialize)]
struct File<'a> {
    #[serde(rename = "__metadata__")]
    metadata: FileMetadata,
    #[serde(flatten)]
    entries: BTreeMap<&'a str, FileEntry>,
}

impl ToleranceModel {
    pub fn read(path: &Path) -> Result<Self, ModelError> {
        let text = std::fs::read(path).map_err(|source| ModelError::Io { path: path.to_owned(), source })?;
        let model = Self::parse(&text).map_err(|source| ModelError::File { path: path.to_owned(), source })?;
        Ok(model.with_file(path))
    }

    pub(crate) fn with_file(self, path: &Path) -> Self {
        Self { file: Some(path.to_owned()), ..self }
    }

    pub fn parse(text: &[u8]) -> Result<Self, ParseModelError> {
        let file: BTreeMap<String, &RawValue> = serde_json::from_slice(text)?;
        let mut model = Self::default();
        for (id, value) in file {
            let bad = |error: serde_json::Error| ParseModelError::Entry { id: id.clone(), reason: error.to_string() };
            if id == METADATA {
                let metadata: FileMetadata = serde_json::from_str(value.get()).map_err(bad)?;
                if !(1..=LATEST_VERSION).contains(&metadata.version) {
                    return Err(ParseModelError::Version(metadata.version));
                }
                (model.version, model.tolerance) = (Some(metadata.version), metadata.tolerance);
            } else {
                let entry: RawModelEntry = serde_json::from_str(value.get()).map_err(bad)?;
                model.entries.insert(id, entry.into());
            }
        }
        if model.entries.is_empty() {
            return Err(ParseModelError::Empty);
        }
        Ok(model)
    }

    /// Formats the model so that run-perf can read it too; a bare model becomes one of version 2 without a tolerance.
    pub fn to_json(&self) -> String {
        let metadata = FileMetadata { version: self.version.unwrap_or(LATEST_VERSION), tolerance: self.tolerance };
        let entries = self.entries.iter().map(|(id, entry)| (id.as_str(), entry.into())).collect();
        let mut text = Vec::new();
        let indent = serde_json::ser::PrettyFormatter::with_indent(b"    ");
        let mut json = serde_json::Serializer::with_formatter(&mut text, indent);
        // Writing text and numbers into memory cannot fail.
        let _ = File { metadata, entries }.serialize(&mut json);
        text.push(b'\n');
        String::from_utf8_lossy(&text).into_owned()
    }
}

impl From<RawModelEntry> for ModelEntry {
    fn from(entry: RawModelEntry) -> Self {
        let FileEntry { equation: [slope, intercept], raw, mmin, mmax } = match entry {
            RawModelEntry::Full(entry) => entry,
            RawModelEntry::Bare(equation) => FileEntry { equation, raw: None, mmin: None, mmax: None },
        };
        let spread = mmin.zip(mmax).map(|(min, max)| NormalRange { min, max });
        Self { equation: Equation { slope, intercept }, average: raw, range: spread }
    }
}

impl From<&ModelEntry> for FileEntry {
    fn from(entry: &ModelEntry) -> Self {
        let Equation { slope, intercept } = entry.equation;
        let (mmin, mmax) = entry.range.map(|spread| (spread.min, spread.max)).unzip();
        Self { equation: [slope, intercept], raw: entry.average, mmin, mmax }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAT: &str = "Localhost/fio/0000:./read-4KiB/latency/lat.mean";

    #[test]
    fn all_three_formats_are_read() {
        let bare = ToleranceModel::parse(format!(r#"{{"{LAT}": [0.5, -10]}}"#).as_bytes()).unwrap();
        assert_eq!((bare.version, bare.tolerance), (None, None));
        let entry = bare.entries[LAT];
        assert_eq!(entry.equation, Equation { slope: 0.5, intercept: -10.0 });
        assert_eq!((entry.average, entry.range), (None, None));
        let one = format!(
            r#"{{"__metadata__": {{"version": 1, "tolerance": 4}}, "{LAT}": {{"equation": [0.5, -10], "raw": 20}}}}"#
        );
        let one = ToleranceModel::parse(one.as_bytes()).unwrap();
        assert_eq!((one.version, one.tolerance, one.entries[LAT].average), (Some(1), Some(4.0), Some(20.0)));
        assert_eq!(one.entries[LAT].equation.range(4.0), Some((12.0, 28.0)));
    }

    #[test]
    fn a_model_round_trips() {
        let spread = Some(NormalRange { min: -3.0, max: 1.0 / 3.0 });
        let equation = Equation { slope: 0.1 + 0.2, intercept: -1e-7 };
        let entries =
            BTreeMap::from([(LAT.to_owned(), ModelEntry { equation, average: Some(1.0 / 7.0), range: spread })]);
        let model = ToleranceModel { version: Some(1), tolerance: Some(4.0), entries, file: None };
        assert_eq!(ToleranceModel::parse(model.to_json().as_bytes()).unwrap(), model);
    }

    #[test]
    fn an_invalid_model_has_a_reason() {
        let error = |text: &str| ToleranceModel::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error("[]").contains("expected a map"));
        assert!(error(r#"{"__metadata__": {"version": 3}}"#).contains("version 3"));
        assert_eq!(error(r#"{"__metadata__": {"version": 2}}"#), "the model has no checks");
        assert!(error(r#"{"a": [1]}"#).starts_with("`a`: expected [a, b], or an object"));
        assert!(error(r#"{"a": {"raw": 1}}"#).starts_with("`a`: "));
    }
}
