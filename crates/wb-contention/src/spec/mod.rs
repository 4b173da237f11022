//! Specifications of benches: `BENCH[:GROUP[:GROUP…]]`, where a group is `KEY[=VALUE],…`.
//!
//! The first group is for the whole bench, each later one for a stage: a QoS setting, a solution or a scenario. An
//! empty group stands for the defaults, and a key alone for `true`.

mod declaration;
mod format;
pub(crate) mod reader;
mod selected;
pub(crate) mod value;

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_diagnostics::{Diagnostic, Diagnostics, SourceText, suggest};
use wb_results::contention::{Bench, Passive, SpecText};

use crate::benches::{hashd_params, iocost_params, iocost_qos, iocost_tune, protection, storage};
use reader::{Group, GroupReader};
use value::Property;

pub use crate::benches::hashd_params::{HashdParamsProperties, RequestProperties};
pub use crate::benches::iocost_params::IocostParamsProperties;
pub use crate::benches::iocost_qos::properties::{Dither, IocostQosProperties, parse_override};
pub use crate::benches::iocost_tune::properties::IocostTuneProperties;
pub use crate::benches::protection::properties::{
    ProtectionProperties, Scenario, default_mem_hog, default_mem_hog_tune,
};
pub use crate::benches::storage::properties::{StorageProperties, StorageWork};
pub use declaration::{BenchDeclaration, PropertyDeclaration, PropertyGroup};
pub use format::{FormatOptions, FormatSpec, PdfFile, Statistics};
pub use selected::SelectedBench;

/// A bench with its properties: what a user requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct BenchSpec {
    /// Name that tells instances of a bench apart.
    pub id: Option<String>,
    /// Settings of the machine that it leaves as they are; `None` if not given.
    pub passive: Option<Passive>,
    /// The bench and its own properties.
    pub properties: Properties,
}

/// The properties of a bench.
#[derive(Debug, Clone, PartialEq)]
pub enum Properties {
    Storage(StorageProperties),
    IocostParams(IocostParamsProperties),
    HashdParams(HashdParamsProperties),
    IocostQos(IocostQosProperties),
    IocostTune(IocostTuneProperties),
    Protection(ProtectionProperties),
}

impl BenchSpec {
    pub fn new(bench: Bench) -> Self {
        let properties = match bench {
            Bench::Storage => Properties::Storage(StorageProperties::default()),
            Bench::IocostParams => Properties::IocostParams(IocostParamsProperties::default()),
            Bench::HashdParams => Properties::HashdParams(HashdParamsProperties::default()),
            Bench::IocostQos => Properties::IocostQos(IocostQosProperties::default()),
            Bench::IocostTune => Properties::IocostTune(IocostTuneProperties::default()),
            Bench::Protection => Properties::Protection(ProtectionProperties::default()),
        };
        Self { id: None, passive: None, properties }
    }

    /// The specification as results record it.
    pub fn to_text(&self) -> SpecText {
        self.to_string().into()
    }

    pub fn bench(&self) -> Bench {
        match &self.properties {
            Properties::Storage(_) => Bench::Storage,
            Properties::IocostParams(_) => Bench::IocostParams,
            Properties::HashdParams(_) => Bench::HashdParams,
            Properties::IocostQos(_) => Bench::IocostQos,
            Properties::IocostTune(_) => Bench::IocostTune,
            Properties::Protection(_) => Bench::Protection,
        }
    }

    /// Parses the specification of a command line.
    pub fn parse(text: &str) -> Result<Self, Diagnostics> {
        Self::parse_from("command line", text)
    }

    /// `origin` is where the specification was written, for messages.
    pub fn parse_from(origin: &str, text: &str) -> Result<Self, Diagnostics> {
        let source = SourceText::new(origin, text);
        let (bench, groups) = reader::split(&source)?;
        Self::read(&source, bench, groups)
    }

    fn read(source: &SourceText, bench: Bench, groups: Vec<Group<'_>>) -> Result<Self, Diagnostics> {
        let mut groups = groups.into_iter();
        let mut first = GroupReader::new(source, groups.next().unwrap_or(Group::empty(source.text.len())));
        let id = first.take::<Name>("id").map(|name| name.0);
        let passive = first.take("passive");
        let rest: Vec<Group<'_>> = groups.collect();
        let properties = match bench {
            Bench::Storage => Properties::Storage(storage::properties::read(first, &rest)?),
            Bench::IocostParams => Properties::IocostParams(iocost_params::read(first, &rest)?),
            Bench::HashdParams => Properties::HashdParams(hashd_params::read(first, &rest)?),
            Bench::IocostQos => Properties::IocostQos(iocost_qos::properties::read(first, &rest)?),
            Bench::IocostTune => Properties::IocostTune(iocost_tune::properties::read(first, &rest)?),
            Bench::Protection => Properties::Protection(protection::properties::read(first, &rest)?),
        };
        Ok(Self { id, passive, properties })
    }

    /// The properties that are not defaults: a list for each group.
    fn groups(&self) -> Vec<Vec<Property>> {
        let mut groups = match &self.properties {
            Properties::Storage(properties) => vec![properties.list()],
            Properties::IocostParams(properties) => vec![properties.list()],
            Properties::HashdParams(properties) => vec![properties.list()],
            Properties::IocostQos(properties) => properties.groups(),
            Properties::IocostTune(properties) => properties.groups(),
            Properties::Protection(properties) => properties.groups(),
        };
        let common = [
            self.id.as_ref().map(|id| Property::new("id", id)),
            self.passive.as_ref().map(|passive| Property::new("passive", passive)),
        ];
        groups[0].splice(0..0, common.into_iter().flatten());
        groups
    }
}

impl fmt::Display for BenchSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = self.groups();
        write!(f, "{}", self.bench())?;
        if groups.len() == 1 && groups[0].is_empty() {
            return Ok(());
        }
        groups.iter().try_for_each(|group| {
            let words: Vec<String> = group.iter().map(ToString::to_string).collect();
            write!(f, ":{}", words.join(","))
        })
    }
}

impl FromStr for BenchSpec {
    type Err = Diagnostics;

    fn from_str(text: &str) -> Result<Self, Diagnostics> {
        Self::parse(text)
    }
}

impl TryFrom<String> for BenchSpec {
    type Error = Diagnostics;

    fn try_from(text: String) -> Result<Self, Diagnostics> {
        Self::parse(&text)
    }
}

impl From<BenchSpec> for String {
    fn from(spec: BenchSpec) -> Self {
        spec.to_string()
    }
}

/// The name of an instance: letters, digits, `_`, `.` and `-`, as it is the name of a folder.
pub(crate) struct Name(pub(crate) String);

impl value::Value for Name {
    const EXPECTED: &'static str = "a name of letters, digits, `_`, `.` and `-` that begins with a letter or a digit";

    fn parse(text: &str) -> Option<Self> {
        let is_name = text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
        is_name.then(|| Self(text.to_owned()))
    }
}

/// Refuses groups after the first.
pub(crate) fn refuse_stages(bench: Bench, rest: &[Group<'_>], source: &SourceText) -> Result<(), Diagnostics> {
    let Some(group) = rest.first() else { return Ok(()) };
    let message = format!("unexpected property group: `{bench}` has a single one");
    Err(Diagnostic::at(source, group.span.clone(), message, "after the first group")
        .with_help("separate the properties of a group with `,`")
        .into())
}

fn unknown_bench(source: &SourceText, name: &str) -> Diagnostic {
    let names = Bench::ALL.map(Bench::name);
    Diagnostic::at(source, 0..name.len(), format!("unknown bench `{name}`"), "unknown")
        .with_suggestion(suggest(name, names))
        .with_help(format!("expected one of {}", names.join(", ")))
}

#[cfg(test)]
mod tests;
