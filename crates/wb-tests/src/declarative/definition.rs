//! A validated definition: what is built, started, measured, extracted and checked.

use std::collections::BTreeSet;

use regex::Regex;
use wb_agent::{Capture, Stream};
use wb_model::{Declaration, Nanos, Sha256};

use super::check::Check;
use super::file_hashes::FileHashes;
use super::metric::{MetricDefinition, MetricSource};
use super::params::MachineParam;
use super::raw::{self, TargetFolder};
use super::sample_output::{OutputSource, RUN_NAME};
use super::template::{CommandTemplate, Template};
use crate::test::NamedFile;

/// A test in TOML.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) declaration: Declaration,
    /// Of its text and its files.
    pub(super) digest: Sha256,
    pub(super) folder: Option<String>,
    /// The files that it takes from where it lies, with the hashes of what was read.
    pub(super) included_files: Vec<(NamedFile, Sha256)>,
    pub(super) file_hashes: FileHashes,
    pub(super) machine_params: Vec<MachineParam>,
    pub(super) requirement_templates: Vec<RequirementTemplate>,
    pub(super) files: Vec<File>,
    pub(super) build: Vec<CommandTemplate>,
    pub(super) built_programs: Vec<String>,
    pub(super) setup: Vec<CommandTemplate>,
    pub(super) services: Vec<Service>,
    pub(super) measured_program: MeasuredProgram,
    pub(super) env: Vec<(String, Template)>,
    pub(super) stdout: StdoutPolicy,
    pub(super) calibration: DurationControl,
    pub(super) estimate: Option<Nanos>,
    pub(super) metrics: Vec<MetricDefinition>,
    pub(super) checks: Vec<Check>,
    pub(super) same_output: Option<SameOutput>,
    pub(super) cleanup: Vec<CommandTemplate>,
    pub(super) needs_port: bool,
}

/// What is measured.
#[derive(Debug)]
pub(super) enum MeasuredProgram {
    /// A command, whose output is read.
    Command(CommandTemplate),
    /// A program that speaks the protocol of runners.
    Runner(CommandTemplate),
}

/// The part of standard output that is the same in every sample.
#[derive(Debug)]
pub(super) enum SameOutput {
    /// All of it.
    Whole,
    /// What this finds.
    Matching(Regex),
}

/// What becomes of the standard output of the measured command.
#[derive(Debug, Clone, Copy)]
pub(super) struct StdoutPolicy {
    pub(super) capture: Capture,
    /// Whether figures or checks are read from it.
    pub(super) is_read: bool,
}

impl StdoutPolicy {
    /// Of one of the processes of a sample. Nobody reads what the calibration and the probe write.
    pub(super) fn capture_for(self, process: &str) -> Capture {
        match self.capture {
            Capture::Keep if process != RUN_NAME => Capture::Hash,
            capture => capture,
        }
    }

    /// What its user can do where there is too much of it to be kept.
    pub(super) fn help(self) -> &'static str {
        if self.is_read {
            "let the command write less, or write what is read to a file, which metrics and checks name by `file`"
        } else {
            "let the command write less, or remove `stdout = \"keep\"` from its definition"
        }
    }
}

/// What decides how long a sample takes.
#[derive(Debug, Clone, Copy)]
pub(super) enum DurationControl {
    Work(raw::WorkLimits),
    Time,
    Fixed,
}

/// A program that is needed, which parameters may decide.
#[derive(Debug)]
pub(super) struct RequirementTemplate {
    pub(super) program: Template,
    pub(super) package: Template,
    pub(super) version: Vec<String>,
}

/// A file that is put into a private folder.
#[derive(Debug)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) folder: TargetFolder,
    pub(super) content: FileContent,
}

#[derive(Debug)]
pub(super) enum FileContent {
    Bytes(Vec<u8>),
    Template(Template),
    /// The run that the definition is recorded in has no exact copy, and why.
    Missing(String),
}

/// A server that is there while samples are taken.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) command: CommandTemplate,
    pub(super) ready: Readiness,
    pub(super) limit: Nanos,
    pub(super) stop: Option<CommandTemplate>,
}

/// How a server shows that it is ready.
#[derive(Debug)]
pub(super) enum Readiness {
    Line(Stream, Regex),
    Port(Template),
    Command(CommandTemplate),
}

impl Definition {
    /// The files that a sample has to keep beside its output.
    pub(super) fn artefact_files(&self) -> BTreeSet<String> {
        let of_reading = |reading: &'_ MetricDefinition| match &reading.source {
            Some(MetricSource::Output(OutputSource::File(name), _)) => Some(name.clone()),
            _ => None,
        };
        let of_check = |check: &Check| match check.output_source() {
            Some(OutputSource::File(name)) => Some(name.clone()),
            _ => None,
        };
        self.metrics.iter().filter_map(of_reading).chain(self.checks.iter().filter_map(of_check)).collect()
    }
}
