//! Catalog of profiles: those built into the program, and users' own.

use std::path::{Path, PathBuf};

use wb_diagnostics::{Diagnostic, SourceText, Suggestion, help_with_suggestion, suggest};
use wb_model::ProfileName;

use crate::profile::{NamedProfile, Profile, ProfileFault};

const BUILTIN_PROFILES: [(&str, &str); 6] = [
    ("Localhost", include_str!("../profiles/Localhost.toml")),
    ("TunedHost", include_str!("../profiles/TunedHost.toml")),
    ("DefaultLibvirt", include_str!("../profiles/DefaultLibvirt.toml")),
    ("DefaultLibvirtMulti", include_str!("../profiles/DefaultLibvirtMulti.toml")),
    ("Overcommit1_5", include_str!("../profiles/Overcommit1_5.toml")),
    ("TunedLibvirt", include_str!("../profiles/TunedLibvirt.toml")),
];

/// All profiles by name; a later one replaces an earlier one of the same name.
#[derive(Debug, Clone, Default)]
pub struct ProfileCatalog {
    all: Vec<NamedProfile>,
}

#[derive(Debug, thiserror::Error)]
pub enum ProfileCatalogError {
    #[error("cannot read `{path}`: {source}")]
    Io { path: String, source: std::io::Error },
    #[error(transparent)]
    Text(#[from] Diagnostic),
    #[error("unknown profile `{name}`")]
    Unknown { name: String, suggestion: Option<Suggestion>, all: Vec<String> },
}

impl ProfileCatalogError {
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Unknown { suggestion: Some(suggestion), .. } => Some(suggestion.to_string()),
            Self::Unknown { all, .. } => Some(format!(
                "expected one of {}; add your own as NAME.toml in ~/.config/weighbridge/profiles.d",
                all.join(", ")
            )),
            Self::Text(error) => error.help().map(str::to_owned),
            Self::Io { .. } => None,
        }
    }
}

impl ProfileCatalog {
    /// Loads the built-in profiles, and those in these folders, each a file NAME.toml. Folders that do not exist are
    /// skipped.
    pub fn load(folders: &[PathBuf]) -> Result<Self, ProfileCatalogError> {
        let mut catalog = Self::default();
        for (name, text) in BUILTIN_PROFILES {
            catalog.insert(name, text, name)?;
        }
        for folder in folders {
            for path in files(folder)? {
                let display_path = path.display().to_string();
                let text = std::fs::read_to_string(&path)
                    .map_err(|source| ProfileCatalogError::Io { path: display_path.clone(), source })?;
                let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
                catalog.insert(&name, &text, &display_path)?;
            }
        }
        Ok(catalog)
    }

    /// The built-in ones first.
    pub fn all(&self) -> &[NamedProfile] {
        &self.all
    }

    pub fn get(&self, name: &str) -> Result<&NamedProfile, ProfileCatalogError> {
        self.all.iter().find(|named| named.name.as_str() == name).ok_or_else(|| {
            let all = self.all.iter().map(|named| named.name.as_str());
            ProfileCatalogError::Unknown {
                name: name.to_owned(),
                suggestion: suggest(name, all.clone()),
                all: all.map(str::to_owned).collect(),
            }
        })
    }

    fn insert(&mut self, name: &str, text: &str, file: &str) -> Result<(), ProfileCatalogError> {
        let help = |suggestion: Option<Suggestion>| {
            help_with_suggestion(suggestion.as_ref(), "`weighbridge schema profile` shows the schema of profiles")
        };
        let invalid = |ProfileFault { message, suggestion }| {
            Diagnostic::new(format!("{file}: {message}")).with_help(help(suggestion))
        };
        let malformed = |error: toml::de::Error| {
            let message = error.message().trim().replace('\n', ", ");
            let ProfileFault { message, suggestion } = ProfileFault::from_serde(&message);
            Diagnostic::at(&SourceText::new(file, text), error.span().unwrap_or(0..0), message, "here")
                .with_help(help(suggestion))
        };
        let profile: Profile = toml::from_str(text).map_err(malformed)?;
        if let Some(fault) = profile.validate() {
            return Err(invalid(fault).into());
        }
        let name = ProfileName::new(name).map_err(|error| invalid(error.to_string().into()))?;
        self.all.retain(|existing| existing.name != name);
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
    fn builtin_profiles_are_available() {
        let catalog = ProfileCatalog::load(&[]).unwrap();
        let names: Vec<&str> = catalog.all().iter().map(|named| named.name.as_str()).collect();
        assert_eq!(
            names,
            ["Localhost", "TunedHost", "DefaultLibvirt", "DefaultLibvirtMulti", "Overcommit1_5", "TunedLibvirt"]
        );
        assert_eq!(catalog.get("Localhost").unwrap().profile.guests, None);
        let guests = |name| catalog.get(name).unwrap().profile.guests.clone().unwrap();
        assert_eq!((guests("Overcommit1_5").count, guests("Overcommit1_5").cpus), (GuestCount::Times(1.5), None));
        assert_eq!(guests("TunedLibvirt").placement, CpuPinning::Pinned);
    }

    #[test]
    fn users_profiles_are_loaded_and_invalid_ones_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join("Mine.toml"),
            "summary = 'x'\n[knobs]\nswappiness = 1\nthp = 'never'\nksm = false\n",
        )
        .unwrap();
        let catalog = ProfileCatalog::load(&[folder.path().to_owned(), folder.path().join("not-there")]).unwrap();
        let knobs = &catalog.get("Mine").unwrap().profile.knobs;
        assert_eq!(knobs.values().map(ToString::to_string).collect::<Vec<_>>(), ["off", "1", "never"]);
        assert_eq!(catalog.get("Lokalhost").unwrap_err().help().unwrap(), "did you mean `Localhost`?");
        for (text, expected, near) in [
            ("knob = 1\n", "unknown field `knob`", "knobs"),
            ("[guests]\nmemry = '2g'\n", "unknown field `memry`", "memory"),
            ("[knobs]\n'swapiness@x' = 1\n", "unknown knob `swapiness`", "swappiness"),
        ] {
            std::fs::write(folder.path().join("Mine.toml"), text).unwrap();
            let error = ProfileCatalog::load(&[folder.path().to_owned()]).unwrap_err();
            let (text, help) = (error.to_string(), error.help().unwrap());
            assert!(text.contains(expected), "{text}");
            assert!(help.starts_with(&format!("did you mean `{near}`? `weighbridge schema profile`")), "{help}");
        }
    }
}
