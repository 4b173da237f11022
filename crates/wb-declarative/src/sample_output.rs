//! Output of a sample: process records, standard streams, files and provenance.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::Spanned;
use wb_diagnostics::{Diagnostic, SourceText};
use wb_model::{Nanos, Quantity};
use wb_sys::process::ResourceUsage;
use wb_test::{Artefacts, Rejection};

use super::effort::RunTime;
use super::raw::FigureSource;

pub(super) const RUN_NAME: &str = "run";
/// The same command with a part of the work.
pub(super) const PROBE_NAME: &str = "probe";
pub(super) const PROVENANCE_FILE: &str = "provenance.json";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OutputSource {
    Stdout,
    Stderr,
    /// Relative to the working directory.
    File(String),
}

/// Inputs of a sample beside its parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct SampleProvenance {
    pub(super) definition: String,
    pub(super) duration_source: DurationSource,
    #[serde(default)]
    pub(super) built: BTreeMap<String, String>,
    /// Hashes of files, by their paths in the definition.
    #[serde(default)]
    pub(super) files: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub(super) enum DurationSource {
    /// Calibrated work. The probe did a part of it; none if the work cannot be divided.
    Work {
        work: u64,
        probe: Option<u64>,
    },
    /// The time was passed to the command.
    Time {
        seconds: f64,
    },
    Fixed,
    Runner,
}

/// The part of a process record that figures are extracted from.
#[derive(Debug, Deserialize)]
pub(super) struct RecordedProcess {
    /// Run time in seconds.
    #[serde(rename = "elapsed-seconds")]
    pub(super) elapsed: f64,
    pub(super) usage: ResourceUsage,
    /// None if the output was not recorded.
    #[serde(rename = "stdout-sha256")]
    pub(super) stdout_sha256: Option<String>,
    #[serde(rename = "stdout-bytes")]
    pub(super) stdout_bytes: Option<u64>,
}

impl RecordedProcess {
    pub(super) fn time(&self) -> RunTime {
        RunTime { elapsed: self.elapsed, cpu: Nanos(self.usage.cpu_ns()).seconds() }
    }
}

#[derive(Debug)]
pub(super) struct SampleOutput<'a> {
    pub(super) artefacts: &'a Artefacts,
    pub(super) work: Option<u64>,
}

impl SampleOutput<'_> {
    pub(super) fn work(&self) -> Result<f64, String> {
        self.work.map(|work| work as f64).ok_or_else(|| "the amount of work was not recorded".to_owned())
    }

    /// Text of an output; a missing standard error was empty.
    pub(super) fn text(&self, source: &OutputSource) -> Result<String, String> {
        let name = source.artefact_name();
        if *source == OutputSource::Stdout {
            self.check_stdout_complete(&name)?;
        }
        match (source, self.artefacts.text(&name)) {
            (OutputSource::Stderr, Err(_)) => Ok(String::new()),
            (_, text) => text.map_err(|rejection| rejection.figures),
        }
    }

    /// Returns an error if the recorded standard output was truncated, as figures in the rest would be missed.
    fn check_stdout_complete(&self, name: &str) -> Result<(), String> {
        let length = |bytes: u64| Quantity { value: bytes as f64, unit: "B" };
        let recorded = self.artefacts.length(name).map_err(|rejection| rejection.figures)?;
        match self.measured_process()?.stdout_bytes {
            Some(total) if recorded < total => Err(format!(
                "standard output was truncated to {} of {}: increase `max-stdout`, reduce the output, or use a `file`",
                length(recorded),
                length(total)
            )),
            // Not recorded by earlier releases, which never truncated it.
            _ => Ok(()),
        }
    }

    pub(super) fn measured_process(&self) -> Result<RecordedProcess, String> {
        self.recorded_process(RUN_NAME).map_err(|rejection| rejection.figures)
    }

    pub(super) fn recorded_process(&self, name: &str) -> Result<RecordedProcess, Rejection> {
        self.artefacts.json(&format!("{name}.process.json"))
    }
}

impl OutputSource {
    /// Parses `from` and `file` of a metric or check.
    pub(super) fn parse(
        text: &SourceText,
        from: Option<&Spanned<FigureSource>>,
        file: Option<&Spanned<String>>,
    ) -> Result<Option<Self>, Diagnostic> {
        match (from.map(|from| *from.get_ref()), file) {
            (Some(_), Some(file)) => Err(text.locate(
                file.span(),
                Diagnostic::new("`from` and `file` are mutually exclusive").with_help("remove one"),
            )),
            (None, Some(file)) => {
                let name = file.get_ref();
                let is_inside = !name.is_empty() && name.split('/').all(|part| !matches!(part, "" | "." | ".."));
                if !is_inside {
                    return Err(text.locate(
                        file.span(),
                        Diagnostic::new(format!("invalid path `{name}`"))
                            .with_help("expected a path relative to the command's working directory"),
                    ));
                }
                Ok(Some(Self::File(name.clone())))
            }
            (Some(FigureSource::Stdout), None) => Ok(Some(Self::Stdout)),
            (Some(FigureSource::Stderr), None) => Ok(Some(Self::Stderr)),
            (_, None) => Ok(None),
        }
    }

    pub(super) fn artefact_name(&self) -> String {
        match self {
            Self::Stdout => format!("{RUN_NAME}.stdout"),
            Self::Stderr => format!("{RUN_NAME}.stderr"),
            Self::File(name) => format!("files/{name}"),
        }
    }

    pub(super) fn description(&self) -> &str {
        match self {
            Self::Stdout => "standard output",
            Self::Stderr => "standard error",
            Self::File(name) => name,
        }
    }
}
