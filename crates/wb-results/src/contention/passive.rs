//! Settings of the machine that a bench leaves as they are.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a bench leaves unchanged: `mem/io`. Empty (`none`): it sets everything that it needs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Passive(BTreeSet<PassiveArea>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PassiveArea {
    Everything,
    /// Every setting except the memory protection of the critical slice.
    AllButProtection,
    Cpu,
    /// The memory controller and other settings of memory.
    Mem,
    Fs,
    /// The I/O controller and other settings of I/O.
    Io,
    /// A running oomd or earlyoom.
    Oomd,
}

impl PassiveArea {
    pub const ALL: [Self; 7] =
        [Self::Everything, Self::AllButProtection, Self::Cpu, Self::Mem, Self::Fs, Self::Io, Self::Oomd];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Everything => "ALL",
            Self::AllButProtection => "all",
            Self::Cpu => "cpu",
            Self::Mem => "mem",
            Self::Fs => "fs",
            Self::Io => "io",
            Self::Oomd => "oomd",
        }
    }
}

const NONE: &str = "none";

impl Passive {
    pub fn contains(&self, area: PassiveArea) -> bool {
        // The two widest come first, and do not concern those before them.
        let is_wider = |given: &PassiveArea| *given <= PassiveArea::AllButProtection && *given < area;
        self.0.contains(&area) || self.0.iter().any(is_wider)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown area `{0}`: expected ALL, all, cpu, mem, fs, io, oomd or none, joined by `/`")]
pub struct UnknownArea(pub String);

impl FromStr for Passive {
    type Err = UnknownArea;

    /// `none` clears the areas before it.
    fn from_str(text: &str) -> Result<Self, UnknownArea> {
        let mut areas = BTreeSet::new();
        for word in text.split('/') {
            match PassiveArea::ALL.into_iter().find(|area| area.name() == word) {
                Some(area) => drop(areas.insert(area)),
                None if word == NONE => areas.clear(),
                None => return Err(UnknownArea(word.to_owned())),
            }
        }
        Ok(Self(areas))
    }
}

impl fmt::Display for Passive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|area| area.name()).collect();
        if names.is_empty() { f.pad(NONE) } else { f.pad(&names.join("/")) }
    }
}

impl TryFrom<String> for Passive {
    type Error = UnknownArea;

    fn try_from(text: String) -> Result<Self, UnknownArea> {
        text.parse()
    }
}

impl From<Passive> for String {
    fn from(passive: Passive) -> Self {
        passive.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_are_joined_and_none_clears_them() {
        let read = |text: &str| text.parse::<Passive>().map(|passive| passive.to_string());
        assert_eq!(read("io/mem").unwrap(), "mem/io");
        assert_eq!(read("none").unwrap(), "none");
        assert_eq!(read("cpu/none/fs").unwrap(), "fs");
        assert_eq!(read("CPU").unwrap_err(), UnknownArea("CPU".to_owned()));
    }

    #[test]
    fn wider_areas_contain_the_others() {
        let all: Passive = "all".parse().unwrap();
        assert!(all.contains(PassiveArea::Io) && !all.contains(PassiveArea::Everything));
        let everything: Passive = "ALL".parse().unwrap();
        assert!(PassiveArea::ALL.into_iter().all(|area| everything.contains(area)));
        assert!(!"mem".parse::<Passive>().unwrap().contains(PassiveArea::Io));
    }
}
