//! The TOML format of a definition. docs/tests.md documents each field.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize as Derive, Serialize};
use toml::Spanned;
use wb_agent::Capture;
use wb_model::{Aggregate, Class, Direction, Gate, Nanos, ParamValue, Scope};

use super::template;

#[derive(Debug, Derive)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Definition {
    pub(super) name: Spanned<String>,
    pub(super) summary: Spanned<String>,
    pub(super) version: Spanned<u32>,
    pub(super) scope: Option<Scope>,
    pub(super) estimate: Option<Nanos>,
    #[serde(default)]
    pub(super) param: Vec<Spanned<Param>>,
    #[serde(default)]
    pub(super) requires: Vec<Requirement>,
    #[serde(default)]
    pub(super) file: Vec<Spanned<File>>,
    pub(super) build: Option<Build>,
    #[serde(default)]
    pub(super) setup: Vec<Spanned<CommandWords>>,
    #[serde(default)]
    pub(super) service: Vec<Spanned<Service>>,
    pub(super) command: Option<Spanned<CommandWords>>,
    pub(super) runner: Option<Spanned<CommandWords>>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, Spanned<String>>,
    pub(super) stdout: Option<Spanned<Capture>>,
    #[serde(default = "default_work")]
    pub(super) work: Spanned<Work>,
    #[serde(default)]
    pub(super) metric: Vec<Spanned<Metric>>,
    #[serde(default)]
    pub(super) check: Vec<Spanned<Check>>,
    pub(super) same_output: Option<Spanned<SameOutput>>,
    #[serde(default)]
    pub(super) cleanup: Vec<Spanned<CommandWords>>,
}

#[derive(Debug, Derive)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Param {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) aliases: Vec<String>,
    pub(super) help: Spanned<String>,
    pub(super) kind: Spanned<ParamType>,
    pub(super) of: Option<Spanned<ParamType>>,
    #[serde(default)]
    pub(super) choices: Vec<String>,
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
    pub(super) default: Option<Spanned<ParamValue>>,
    pub(super) resolved: Option<Spanned<MachineProperty>>,
    pub(super) factor: Option<Spanned<f64>>,
    #[serde(default)]
    pub(super) axis: bool,
    pub(super) arguments: Option<Spanned<BTreeMap<String, CommandWords>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Derive)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ParamType {
    Bool,
    Integer,
    Number,
    Bytes,
    Duration,
    Choice,
    Text,
    Words,
    List,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Derive)]
#[serde(rename_all = "kebab-case")]
pub(super) enum MachineProperty {
    Cpus,
    Cores,
    OneAndCores,
    Memory,
    MemoryAvailable,
    LastLevelCache,
}

#[derive(Debug, Derive)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Requirement {
    pub(super) program: Spanned<String>,
    pub(super) package: Spanned<String>,
    #[serde(default)]
    pub(super) version: Vec<String>,
}

#[derive(Debug, Derive)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct File {
    pub(super) name: Spanned<String>,
    pub(super) text: Option<Spanned<String>>,
    pub(super) path: Option<Spanned<String>>,
    #[serde(default, rename = "in")]
    pub(super) folder: TargetFolder,
    #[serde(default)]
    pub(super) template: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Derive)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TargetFolder {
    #[default]
    Scratch,
    Sample,
}

#[derive(Debug, Derive)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Build {
    pub(super) commands: Vec<Spanned<CommandWords>>,
    pub(super) programs: Vec<Spanned<String>>,
}

#[derive(Debug, Derive)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Service {
    pub(super) command: Spanned<CommandWords>,
    pub(super) ready: Spanned<Ready>,
    #[serde(default = "default_ready_limit")]
    pub(super) limit: Nanos,
    pub(super) stop: Option<Spanned<CommandWords>>,
}

fn default_ready_limit() -> Nanos {
    Nanos(30_000_000_000)
}

#[derive(Debug, Derive)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Ready {
    pub(super) line: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) stream: Stream,
    pub(super) port: Option<Spanned<String>>,
    pub(super) command: Option<Spanned<CommandWords>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Derive)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Stream {
    #[default]
    Stdout,
    Stderr,
}

#[derive(Debug, Derive)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct Work {
    pub(super) start: u64,
    pub(super) max: u64,
    pub(super) multiple_of: Vec<Spanned<String>>,
}

impl Work {
    pub(super) fn limits(&self) -> WorkLimits {
        WorkLimits { start: self.start, max: self.max }
    }
}

/// Smallest and largest amount to try.
#[derive(Debug, Clone, Copy)]
pub(super) struct WorkLimits {
    pub(super) start: u64,
    pub(super) max: u64,
}

fn default_work() -> Spanned<Work> {
    Spanned::new(0..0, Work::default())
}

impl Default for Work {
    fn default() -> Self {
        Self { start: 1, max: 1_000_000_000_000, multiple_of: Vec::new() }
    }
}

#[derive(Debug, Derive)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Metric {
    pub(super) name: Spanned<String>,
    pub(super) class: Class,
    #[serde(default)]
    pub(super) unit: String,
    pub(super) direction: Option<Direction>,
    pub(super) over_workers: Option<Aggregate>,
    #[serde(default)]
    pub(super) primary: bool,
    #[serde(default)]
    pub(super) optional: bool,
    pub(super) from: Option<Spanned<FigureSource>>,
    pub(super) file: Option<Spanned<String>>,
    pub(super) regex: Option<Spanned<String>>,
    pub(super) json: Option<Spanned<String>>,
    pub(super) reduce: Option<Spanned<Reduction>>,
    pub(super) scale: Option<Spanned<f64>>,
    #[serde(default)]
    pub(super) per_work: bool,
    #[serde(default)]
    pub(super) units: BTreeMap<String, f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Derive)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FigureSource {
    Stdout,
    Stderr,
    Elapsed,
    Rate,
    CpuTime,
    MaxRss,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Derive, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Reduction {
    /// Exactly one match is allowed.
    #[default]
    Single,
    First,
    Last,
    Sum,
    Mean,
    Min,
    Max,
}

#[derive(Debug, Derive)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Check {
    pub(super) description: Spanned<String>,
    pub(super) gate: Option<Gate>,
    pub(super) from: Option<Spanned<FigureSource>>,
    pub(super) file: Option<Spanned<String>>,
    pub(super) must: Option<Spanned<String>>,
    pub(super) must_not: Option<Spanned<String>>,
    pub(super) metric: Option<Spanned<String>>,
    pub(super) per: Option<Spanned<String>>,
    pub(super) min: Option<Spanned<Bound>>,
    pub(super) max: Option<Spanned<Bound>>,
    pub(super) equals: Option<Spanned<Bound>>,
}

/// Part of the output that has to be the same in every sample: all of it (`true`), or the match of a regular
/// expression.
#[derive(Debug, Clone)]
pub(super) enum SameOutput {
    Whole(bool),
    Matching(String),
}

/// A list of arguments, or one line that is split into arguments.
#[derive(Debug, Clone)]
pub(super) struct CommandWords(pub(super) Vec<String>);

#[derive(Debug, Clone)]
pub(super) enum Bound {
    Number(f64),
    Text(String),
}

impl<'de> Deserialize<'de> for CommandWords {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CommandWordsVisitor;
        impl<'de> Visitor<'de> for CommandWordsVisitor {
            type Value = CommandWords;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a command: a list of arguments, or one line")
            }
            fn visit_str<E: de::Error>(self, line: &str) -> Result<CommandWords, E> {
                template::split_words(line).map(CommandWords).map_err(E::custom)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<CommandWords, A::Error> {
                let mut words = Vec::new();
                while let Some(word) = list.next_element()? {
                    words.push(word);
                }
                Ok(CommandWords(words))
            }
        }
        deserializer.deserialize_any(CommandWordsVisitor)
    }
}

impl<'de> Deserialize<'de> for SameOutput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SameOutputVisitor;
        impl Visitor<'_> for SameOutputVisitor {
            type Value = SameOutput;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, or a regular expression")
            }
            fn visit_bool<E>(self, whole: bool) -> Result<SameOutput, E> {
                Ok(SameOutput::Whole(whole))
            }
            fn visit_str<E>(self, pattern: &str) -> Result<SameOutput, E> {
                Ok(SameOutput::Matching(pattern.to_owned()))
            }
        }
        deserializer.deserialize_any(SameOutputVisitor)
    }
}

impl<'de> Deserialize<'de> for Bound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BoundVisitor;
        impl Visitor<'_> for BoundVisitor {
            type Value = Bound;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or a text with a placeholder")
            }
            fn visit_i64<E>(self, number: i64) -> Result<Bound, E> {
                Ok(Bound::Number(number as f64))
            }
            fn visit_f64<E>(self, number: f64) -> Result<Bound, E> {
                Ok(Bound::Number(number))
            }
            fn visit_str<E>(self, text: &str) -> Result<Bound, E> {
                Ok(Bound::Text(text.to_owned()))
            }
        }
        deserializer.deserialize_any(BoundVisitor)
    }
}
