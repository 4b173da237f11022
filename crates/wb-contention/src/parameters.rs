//! Parameters that benches determine and later ones use, and where they are kept between sequences.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_record::RecordError;
use wb_results::contention::{HashdParameters, IocostParameters};

/// The parameters in force.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Parameters {
    /// Of io.cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iocost: Option<IocostParameters>,
    /// Of hashd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hashd: Option<HashdParameters>,
}

impl Parameters {
    /// These, replaced by those of `newer` that it has.
    #[must_use]
    pub fn updated(self, newer: Self) -> Self {
        Self { iocost: newer.iocost.or(self.iocost), hashd: newer.hashd.or(self.hashd) }
    }
}

/// The file of committed parameters in the folder of the benches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParametersFile(PathBuf);

impl ParametersFile {
    pub fn in_folder(folder: &Path) -> Self {
        Self(folder.join("contention-parameters.json"))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Reads the file; without it, nothing is committed.
    pub fn read(&self) -> Result<Parameters, RecordError> {
        let folder = self.0.parent().unwrap_or(Path::new(""));
        Ok(wb_record::files::read_json(folder, &self.0)?.unwrap_or_default())
    }

    /// Checks that it can be written, and creates nothing.
    pub fn check(&self) -> Result<(), RecordError> {
        self.read()?;
        let mut folders =
            self.0.ancestors().skip(1).map(|folder| if folder == Path::new("") { Path::new(".") } else { folder });
        let Some(existing) = folders.find(|folder| folder.exists()) else { return Ok(()) };
        // Its kind alone: the error names the temporary file, which nobody asked for.
        let probe = tempfile::tempfile_in(existing).map_err(|error| error.kind().into());
        probe.map(drop).map_err(RecordError::io("write", &self.0))
    }

    /// Adds parameters to it, atomically. Creates its folder.
    pub fn commit(&self, parameters: Parameters) -> Result<(), RecordError> {
        if let Some(folder) = self.0.parent() {
            std::fs::create_dir_all(folder).map_err(RecordError::io("create", folder))?;
        }
        let updated = self.read()?.updated(parameters);
        wb_record::files::write_json(&self.0, &updated)
    }
}

#[cfg(test)]
mod tests {
    use wb_model::{Bytes, IocostModel, IocostQos};

    use super::*;

    // A refused bench left a file with {} in it, written to find out whether it can be.
    #[test]
    fn a_file_that_cannot_be_written_is_noticed_and_one_that_can_is_not_created() {
        let folder = tempfile::tempdir().unwrap();
        let below = |name: &str| ParametersFile::in_folder(&folder.path().join(name));
        for name in ["", "new", "new/below"] {
            below(name).check().unwrap();
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        std::fs::write(folder.path().join("file"), "").unwrap();
        let error = below("file/below").check().unwrap_err().to_string();
        let place = "file/below/contention-parameters.json`: Not a directory";
        assert!(error.contains(place), "{error}");
        std::fs::write(below("").path(), "{").unwrap();
        assert!(below("").check().is_err());
    }

    #[test]
    fn committed_parameters_are_joined() {
        let folder = tempfile::tempdir().unwrap();
        let file = ParametersFile::in_folder(&folder.path().join("new"));
        assert_eq!(file.read().unwrap(), Parameters::default());
        let hashd = HashdParameters {
            hash_size: Bytes(1),
            rps_max: 2.0,
            mem_size: Bytes(3),
            chunk_pages: 4,
            log_bps: Bytes(5),
            fake_cpu_load: false,
        };
        let model = IocostModel::from_array([1, 2, 3, 4, 5, 6]);
        let qos = IocostQos { rpct: 95.0, rlat: 1, wpct: 95.0, wlat: 2, min: 50.0, max: 100.0 };
        file.commit(Parameters { hashd: Some(hashd), iocost: None }).unwrap();
        file.commit(Parameters { hashd: None, iocost: Some(IocostParameters { model, qos }) }).unwrap();
        let joined = file.read().unwrap();
        assert_eq!((joined.hashd, joined.iocost.map(|one| one.model)), (Some(hashd), Some(model)));
    }
}
