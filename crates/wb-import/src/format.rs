//! Formats of results, and their detection by content.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::foreign::ForeignResults;
use crate::formats;
use crate::{ReadError, ReadOptions};

/// Name, detection and parser of a format. Each module of [`formats`] has one.
pub(crate) struct FormatDefinition {
    pub(crate) name: &'static str,
    /// Increased when files are read differently; part of each definition key.
    pub(crate) version: u32,
    /// Detects names that are unique to the format, also in a text that is truncated or damaged later on.
    pub(crate) detect: fn(&str) -> bool,
    pub(crate) read: fn(&str, &ReadOptions<'_>) -> Result<ForeignResults, ReadError>,
    /// First character of a JSON document.
    pub(crate) opening: char,
    /// Provenance that identifies the measured system, its name first; empty if files of this format have none.
    pub(crate) system_properties: &'static [&'static str],
    /// Encodes a text as in a file of this format, with its delimiters.
    pub(crate) encode: fn(&str) -> Option<String>,
    /// Output of the program in forms that are not imported: what only such a form has, and the option of the form that
    /// is imported.
    pub(crate) other_forms: &'static [(&'static [&'static str], &'static str)],
}

impl FormatDefinition {
    /// A format of JSON documents that are objects; everything optional is empty.
    pub(crate) const fn json(
        name: &'static str,
        version: u32,
        detect: fn(&str) -> bool,
        read: fn(&str, &ReadOptions<'_>) -> Result<ForeignResults, ReadError>,
    ) -> Self {
        Self {
            name,
            version,
            detect,
            read,
            opening: '{',
            system_properties: &[],
            encode: |text| serde_json::to_string(text).ok(),
            other_forms: &[],
        }
    }
}

/// A format of results that can be imported.
#[derive(Clone, Copy)]
pub struct Format(&'static FormatDefinition);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown format `{0}`: expected one of {names}", names = Format::names())]
pub struct UnknownFormat(String);

impl Format {
    pub(crate) const fn new(definition: &'static FormatDefinition) -> Self {
        Self(definition)
    }

    pub(crate) fn definition(self) -> &'static FormatDefinition {
        self.0
    }

    pub fn all() -> impl Iterator<Item = Self> {
        formats::ALL.into_iter()
    }

    pub fn name(self) -> &'static str {
        self.0.name
    }

    pub fn version(self) -> u32 {
        self.0.version
    }

    pub fn names() -> String {
        formats::ALL.map(Self::name).join(", ")
    }

    /// Detects the format also in a text that is truncated or damaged later on.
    pub fn detect(text: &str) -> Option<Self> {
        Self::all().find(|format| (format.0.detect)(text))
    }
}

/// The option with which a program writes the form that is imported, if a text is its output in another form.
pub(crate) fn option_of_other_form(text: &str) -> Option<&'static str> {
    let mut forms = Format::all().flat_map(|format| format.0.other_forms);
    forms.find(|(marks, _)| marks.iter().all(|mark| text.contains(mark))).map(|(_, option)| *option)
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Format {}

impl PartialOrd for Format {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Format {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name().cmp(other.name())
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        Self::all().find(|format| format.name() == text).ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}
