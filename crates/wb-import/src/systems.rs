//! Measured systems of a run: a cell has samples of one system, so each system has a profile of its own.

use std::collections::BTreeMap;

use wb_model::imported::IMPORTED_FROM;
use wb_model::{CellId, ProfileName, Serial};
use wb_record::{CellDefinition, History};

use crate::naming::slug;
use crate::{Format, ReadError};

/// A system as files of a format identify it: its name, and what else describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct System(Vec<String>);

/// The systems of a run, by profile. Names of systems are comparable within a format alone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Systems(BTreeMap<(Format, Serial), BTreeMap<ProfileName, System>>);

impl System {
    fn new(format: Format, provenance: &BTreeMap<String, String>) -> Option<Self> {
        let known =
            format.definition().system_properties.iter().filter_map(|property| provenance.get(*property).cloned());
        let known: Vec<String> = known.collect();
        (!known.is_empty()).then_some(Self(known))
    }
}

pub(crate) fn system_name(format: Format, provenance: &BTreeMap<String, String>) -> Option<&str> {
    provenance.get(*format.definition().system_properties.first()?).map(String::as_str)
}

impl Systems {
    pub(crate) fn new(cells: &BTreeMap<CellId, CellDefinition>, history: &History) -> Self {
        let mut systems = Self::default();
        for (id, definition) in cells {
            let Some(Ok(format)) = definition.provenance.get(IMPORTED_FROM).map(|format| format.parse()) else {
                continue;
            };
            let batches = history.imports(id).iter();
            for system in batches.filter_map(|batch| System::new(format, &batch.provenance)) {
                let profiles = systems.0.entry((format, id.serial.clone())).or_default();
                profiles.entry(id.profile.clone()).or_insert(system);
            }
        }
        systems
    }

    /// Profile of samples; `id` has the default profile. It is the profile that their system has in the run already, or
    /// else the default one if it is free, or else one with the name of the system. Fails if their profile is `fixed`,
    /// and another system has it.
    pub(crate) fn profile(
        &mut self,
        id: &CellId,
        format: Format,
        provenance: &BTreeMap<String, String>,
        is_fixed: bool,
    ) -> Result<ProfileName, ReadError> {
        let Some(system) = System::new(format, provenance) else { return Ok(id.profile.clone()) };
        let profiles = self.0.entry((format, id.serial.clone())).or_default();
        if is_fixed {
            let existing = profiles.entry(id.profile.clone()).or_insert_with(|| system.clone());
            let both = || [&*existing, &system].map(|system| system.0.join(" · ")).to_vec();
            return if *existing == system { Ok(id.profile.clone()) } else { Err(ReadError::SeveralSystems(both())) };
        }
        if let Some((profile, _)) = profiles.iter().find(|(_, existing)| **existing == system) {
            return Ok(profile.clone());
        }
        let name = slug(&system.0[0]);
        let numbered = (1..).map(|number| if number == 1 { name.clone() } else { format!("{name}-{number}") });
        let names = std::iter::once(id.profile.clone()).chain(numbered.map_while(|name| ProfileName::new(name).ok()));
        let profile =
            names.into_iter().find(|name| !profiles.contains_key(name)).unwrap_or_else(ProfileName::localhost);
        profiles.insert(profile.clone(), system);
        Ok(profile)
    }
}
