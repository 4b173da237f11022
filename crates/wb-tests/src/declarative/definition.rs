//! A definition that was understood: what is built, started, measured, read and checked.

use std::collections::BTreeSet;

use regex::Regex;
use wb_agent::{Capture, Stream};
use wb_model::{Declaration, Nanos, Sha256};

use super::check::Check;
use super::file_hashes::FileHashes;
use super::left::{Place, RUN};
use super::params::FromMachine;
use super::raw::{self, Folder};
use super::reading::{Reading, Source};
use super::template::{Argv, Template};
use crate::test::NamedFile;

/// A test in TOML.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) declaration: Declaration,
    /// Of its text and its files.
    pub(super) digest: Sha256,
    pub(super) folder: Option<String>,
    /// The files that it takes from where it lies, with the hashes of what was read.
    pub(super) beside: Vec<(NamedFile, Sha256)>,
    pub(super) file_hashes: FileHashes,
    pub(super) machine: Vec<FromMachine>,
    pub(super) needs: Vec<Need>,
    pub(super) files: Vec<File>,
    pub(super) build: Vec<Argv>,
    pub(super) programs: Vec<String>,
    pub(super) setup: Vec<Argv>,
    pub(super) services: Vec<Service>,
    pub(super) measured: Measured,
    pub(super) env: Vec<(String, Template)>,
    pub(super) stdout: Stdout,
    pub(super) calibration: Calibration,
    pub(super) estimate: Option<Nanos>,
    pub(super) readings: Vec<Reading>,
    pub(super) checks: Vec<Check>,
    pub(super) same_output: Option<SameOutput>,
    pub(super) cleanup: Vec<Argv>,
    pub(super) needs_port: bool,
}

/// What is measured.
#[derive(Debug)]
pub(super) enum Measured {
    /// A command, whose output is read.
    Command(Argv),
    /// A program that speaks the protocol of runners.
    Runner(Argv),
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
pub(super) struct Stdout {
    pub(super) capture: Capture,
    /// Whether figures or checks are read from it.
    pub(super) is_read: bool,
}

impl Stdout {
    /// Of one of the processes of a sample. Nobody reads what the calibration and the probe write.
    pub(super) fn of(self, process: &str) -> Capture {
        match self.capture {
            Capture::Keep if process != RUN => Capture::Hash,
            capture => capture,
        }
    }

    /// What its user can do where there is too much of it to be kept.
    pub(super) fn way_out(self) -> &'static str {
        if self.is_read {
            "let the command write less, or write what is read to a file, which metrics and checks name by `file`"
        } else {
            "let the command write less, or remove `stdout = \"keep\"` from its definition"
        }
    }
}

/// What decides how long a sample takes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Calibration {
    Work(raw::Work),
    Time,
    Fixed,
}

/// A program that is needed, which parameters may decide.
#[derive(Debug)]
pub(super) struct Need {
    pub(super) program: Template,
    pub(super) package: Template,
    pub(super) version: Vec<String>,
}

/// A file that is put into a private folder.
#[derive(Debug)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) folder: Folder,
    pub(super) content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    Bytes(Vec<u8>),
    Template(Template),
    /// The run that the definition is recorded in has no exact copy, and why.
    Missing(String),
}

/// A server that is there while samples are taken.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) command: Argv,
    pub(super) ready: Ready,
    pub(super) limit: Nanos,
    pub(super) stop: Option<Argv>,
}

/// How a server shows that it is ready.
#[derive(Debug)]
pub(super) enum Ready {
    Line(Stream, Regex),
    Port(Template),
    Command(Argv),
}

impl Definition {
    /// The files that a sample has to keep beside its output.
    pub(super) fn kept(&self) -> BTreeSet<String> {
        let of_reading = |reading: &'_ Reading| match &reading.source {
            Some(Source::Found(Place::File(name), _)) => Some(name.clone()),
            _ => None,
        };
        let of_check = |check: &Check| match check.place() {
            Some(Place::File(name)) => Some(name.clone()),
            _ => None,
        };
        self.readings.iter().filter_map(of_reading).chain(self.checks.iter().filter_map(of_check)).collect()
    }
}
