use std::collections::BTreeSet;

use regex::Regex;
use wb_agent::{Capture, OutputStream};
use wb_model::{Declaration, Nanos, Sha256};
use wb_test::test::NamedFile;

use super::check::Check;
use super::file_hashes::FileHashes;
use super::metric::{MetricDefinition, MetricSource};
use super::params::MachineParam;
use super::raw::{self, TargetFolder};
use super::sample_output::{OutputSource, RUN_NAME};
use super::template::{CommandTemplate, Template};

/// A validated definition: what is built, started, measured, extracted and checked.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) declaration: Declaration,
    /// Of the text and the included files.
    pub(super) digest: Sha256,
    pub(super) folder: Option<String>,
    /// Included from the definition's folder, with hashes of the content.
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
    pub(super) duration_control: DurationControl,
    /// The program divides the amount of work by them.
    pub(super) work_factors: Vec<Template>,
    pub(super) estimate: Option<Nanos>,
    pub(super) metrics: Vec<MetricDefinition>,
    pub(super) checks: Vec<Check>,
    pub(super) same_output: Option<SameOutput>,
    pub(super) cleanup: Vec<CommandTemplate>,
    pub(super) needs_port: bool,
}

#[derive(Debug)]
pub(super) enum MeasuredProgram {
    Command(CommandTemplate),
    /// A program that implements the protocol of runners.
    Runner(CommandTemplate),
}

/// The part of standard output that is the same in every sample.
#[derive(Debug)]
pub(super) enum SameOutput {
    Whole,
    Matching(Regex),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct StdoutPolicy {
    pub(super) capture: Capture,
    /// Whether metrics or checks use it.
    pub(super) is_read: bool,
}

impl StdoutPolicy {
    /// The output of calibration and probe is not used.
    pub(super) fn capture_for(self, process: &str) -> Capture {
        match self.capture {
            Capture::Keep if process != RUN_NAME => Capture::Hash,
            capture => capture,
        }
    }

    /// Advice for the user if there is too much output to capture.
    pub(super) fn help(self) -> &'static str {
        if self.is_read {
            "reduce the output, or write the required part to a file, and refer to it by `file` in metrics and checks"
        } else {
            "reduce the output, or remove `stdout = \"keep\"` from the definition"
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum DurationControl {
    Work(raw::WorkLimits),
    Time,
    Fixed,
}

#[derive(Debug)]
pub(super) struct RequirementTemplate {
    pub(super) program: Template,
    pub(super) package: Template,
    pub(super) version: Vec<String>,
}

/// A file that is written into a private folder.
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
    /// The run that recorded the definition has no exact copy, for this reason.
    Missing(String),
}

/// A server that runs while samples are taken.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) command: CommandTemplate,
    pub(super) ready: Readiness,
    pub(super) limit: Nanos,
    pub(super) stop: Option<CommandTemplate>,
}

#[derive(Debug)]
pub(super) enum Readiness {
    Line(OutputStream, Regex),
    Port(Template),
    Command(CommandTemplate),
}

impl Definition {
    pub(super) fn artefact_files(&self) -> BTreeSet<String> {
        let file_of_metric = |metric: &'_ MetricDefinition| match &metric.source {
            Some(MetricSource::Output(OutputSource::File(name), _)) => Some(name.clone()),
            _ => None,
        };
        let file_of_check = |check: &Check| match check.output_source() {
            Some(OutputSource::File(name)) => Some(name.clone()),
            _ => None,
        };
        self.metrics.iter().filter_map(file_of_metric).chain(self.checks.iter().filter_map(file_of_check)).collect()
    }
}
