//! Which profiles there are: those that come with the program, and users' own.

use std::path::{Path, PathBuf};

use miette::Diagnostic;
use wb_model::ProfileName;
use wb_plan::suggestion::suggest;
use wb_plan::{PlanError, SourceText};

use crate::profile::{NamedProfile, Profile, ProfileFault, did_you_mean};

/// Those that come with the program.
const BUILTIN_PROFILES: [(&str, &str); 6] = [
    ("Localhost", include_str!("../profiles/Localhost.toml")),
    ("TunedHost", include_str!("../profiles/TunedHost.toml")),
    ("DefaultLibvirt", include_str!("../profiles/DefaultLibvirt.toml")),
    ("DefaultLibvirtMulti", include_str!("../profiles/DefaultLibvirtMulti.toml")),
    ("Overcommit1_5", include_str!("../profiles/Overcommit1_5.toml")),
    ("TunedLibvirt", include_str!("../profiles/TunedLibvirt.toml")),
];

/// All profiles there are, by name: a later one of the same name counts.
#[derive(Debug, Clone, Default)]
pub struct ProfileCatalog {
    all: Vec<NamedProfile>,
}

/// A file that is no profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileCatalogError {
    /// It cannot be read.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Its text is not that of a profile.
    #[error(transparent)]
    Text(#[from] PlanError),
    /// There is none of this name.
    #[error("there is no profile `{name}`")]
    Unknown {
        /// The name.
        name: String,
        /// One that may have been meant.
        near: Option<String>,
        /// All there are.
        all: Vec<String>,
    },
}

impl ProfileCatalogError {
    /// The way out.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Unknown { near: Some(near), .. } => Some(format!("did you mean `{near}`?")),
            Self::Unknown { all, .. } => Some(format!(
                "there are {}; one of your own is NAME.toml in ~/.config/weighbridge/profiles.d",
                all.join(", ")
            )),
            Self::Text(error) => Diagnostic::help(error).map(|help| help.to_string()),
            Self::Io { .. } => None,
        }
    }
}

impl ProfileCatalog {
    /// Those that come with the program, and those of these folders, each a file NAME.toml.
    ///
    /// # Errors
    /// With the first file that is no profile. A folder that is not there has none.
    pub fn load(folders: &[PathBuf]) -> Result<Self, ProfileCatalogError> {
        let mut shelf = Self::default();
        for (name, text) in BUILTIN_PROFILES {
            shelf.insert(name, text, name)?;
        }
        for folder in folders {
            for path in files(folder)? {
                let shown = path.display().to_string();
                let text = std::fs::read_to_string(&path)
                    .map_err(|source| ProfileCatalogError::Io { path: shown.clone(), source })?;
                let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
                shelf.insert(&name, &text, &shown)?;
            }
        }
        Ok(shelf)
    }

    /// All of them, the program's first.
    pub fn all(&self) -> &[NamedProfile] {
        &self.all
    }

    /// The one of this name.
    ///
    /// # Errors
    /// With the nearest where there is none.
    pub fn get(&self, name: &str) -> Result<&NamedProfile, ProfileCatalogError> {
        self.all.iter().find(|named| named.name.as_str() == name).ok_or_else(|| {
            let all = self.all.iter().map(|named| named.name.as_str());
            ProfileCatalogError::Unknown {
                name: name.to_owned(),
                near: suggest(name, all.clone()).map(str::to_owned),
                all: all.map(str::to_owned).collect(),
            }
        })
    }

    fn insert(&mut self, name: &str, text: &str, file: &str) -> Result<(), ProfileCatalogError> {
        let help = |near: Option<String>| {
            format!("{}`weighbridge schema profile` shows what a profile can have", did_you_mean(near.as_deref()))
        };
        let bad =
            |ProfileFault { what, near }| PlanError::without_location(format!("{file}: {what}")).with_help(help(near));
        let malformed = |error: toml::de::Error| {
            let message = error.message().trim().replace('\n', ", ");
            let ProfileFault { what, near } = ProfileFault::of_serde(&message);
            PlanError::at(&SourceText::new(file, text), error.span().unwrap_or(0..0), what, "here")
                .with_help(help(near))
        };
        let profile: Profile = toml::from_str(text).map_err(malformed)?;
        if let Some(fault) = profile.validate() {
            return Err(bad(fault).into());
        }
        let name = ProfileName::new(name).map_err(|error| bad(error.to_string().into()))?;
        self.all.retain(|known| known.name != name);
        self.all.push(NamedProfile { name, profile });
        Ok(())
    }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, ProfileCatalogError> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(ProfileCatalogError::Io { path: folder.display().to_string(), source }),
        Ok(entries) => entries,
    };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{CpuPinning, GuestCount};

    #[test]
    fn the_shipped_ones_are_there() {
        let shelf = ProfileCatalog::load(&[]).unwrap();
        let names: Vec<&str> = shelf.all().iter().map(|named| named.name.as_str()).collect();
        assert_eq!(
            names,
            ["Localhost", "TunedHost", "DefaultLibvirt", "DefaultLibvirtMulti", "Overcommit1_5", "TunedLibvirt"]
        );
        assert_eq!(shelf.get("Localhost").unwrap().profile.guests, None);
        let guests = |name| shelf.get(name).unwrap().profile.guests.clone().unwrap();
        assert_eq!((guests("Overcommit1_5").count, guests("Overcommit1_5").cpus), (GuestCount::Times(1.5), Some(2)));
        assert_eq!(guests("TunedLibvirt").placement, CpuPinning::Pinned);
    }

    #[test]
    fn a_users_own_counts_and_a_wrong_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join("Mine.toml"),
            "summary = 'x'\n[knobs]\nswappiness = 1\nthp = 'never'\nksm = false\n",
        )
        .unwrap();
        let shelf = ProfileCatalog::load(&[folder.path().to_owned(), folder.path().join("not-there")]).unwrap();
        let knobs = &shelf.get("Mine").unwrap().profile.knobs;
        assert_eq!(knobs.values().map(ToString::to_string).collect::<Vec<_>>(), ["off", "1", "never"]);
        assert_eq!(shelf.get("Lokalhost").unwrap_err().help().unwrap(), "did you mean `Localhost`?");
        for (text, said, near) in [
            ("knob = 1\n", "unknown field `knob`", "knobs"),
            ("[guests]\nmemry = '2g'\n", "unknown field `memry`", "memory"),
            ("[knobs]\n'swapiness@x' = 1\n", "there is no knob `swapiness`", "swappiness"),
        ] {
            std::fs::write(folder.path().join("Mine.toml"), text).unwrap();
            let bad = ProfileCatalog::load(&[folder.path().to_owned()]).unwrap_err();
            let (text, help) = (bad.to_string(), bad.help().unwrap());
            assert!(text.contains(said), "{text}");
            assert!(help.starts_with(&format!("did you mean `{near}`? `weighbridge schema profile`")), "{help}");
        }
    }
}
