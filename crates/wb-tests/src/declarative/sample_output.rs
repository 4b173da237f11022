//! Output of a sample: process records, standard streams, files and provenance.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::Spanned;
use wb_model::Quantity;
use wb_sys::process::ResourceUsage;

use super::error::{DefinitionError, Diagnostic, SourceText};
use super::raw::FigureSource;
use crate::{Artefacts, Rejection};

/// Under these names the processes of a sample are kept.
pub(super) const RUN_NAME: &str = "run";
/// The same command with a part of the work.
pub(super) const PROBE_NAME: &str = "probe";
/// Under this name the circumstances of a sample are kept.
pub(super) const PROVENANCE_FILE: &str = "provenance.json";

/// A text that the measured command left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OutputSource {
    Stdout,
    Stderr,
    /// A file, relative to the folder that it ran in.
    File(String),
}

/// Inputs of a sample beside its parameters: hashes of definition, programs and files, and how its duration was set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct SampleProvenance {
    /// The hash of the definition.
    pub(super) definition: String,
    /// How the length of the sample was decided.
    pub(super) duration_source: DurationSource,
    /// The hashes of the programs that were built.
    #[serde(default)]
    pub(super) built: BTreeMap<String, String>,
    /// The hashes of the files that the definition names, by their paths there.
    #[serde(default)]
    pub(super) files: BTreeMap<String, String>,
}

/// How the length of a sample was decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub(super) enum DurationSource {
    /// By calibrated work. The probe did a part of it; none where the work cannot be divided.
    Work { work: u64, probe: Option<u64> },
    /// By the time that the command was told to take.
    Time { seconds: f64 },
    /// By the command alone.
    Fixed,
    /// By a runner, which says so itself.
    Runner,
}

/// How a process ran, as far as figures come from it.
#[derive(Debug, Deserialize)]
pub(super) struct RecordedProcess {
    /// In seconds.
    #[serde(rename = "elapsed-seconds")]
    pub(super) elapsed: f64,
    pub(super) usage: ResourceUsage,
    /// The hash of all that it wrote to standard output; none where that was not recorded.
    #[serde(default, rename = "stdout-sha256")]
    pub(super) stdout_sha256: Option<String>,
    /// How many bytes that was.
    #[serde(default, rename = "stdout-bytes")]
    pub(super) stdout_bytes: Option<u64>,
}

impl RecordedProcess {
    pub(super) fn cpu_seconds(&self) -> f64 {
        (self.usage.user_ns + self.usage.system_ns) as f64 / 1e9
    }
}

/// The artefacts of a sample.
#[derive(Debug)]
pub(super) struct SampleOutput<'a> {
    pub(super) artefacts: &'a Artefacts,
    pub(super) work: Option<u64>,
}

impl SampleOutput<'_> {
    /// A text; standard error that is not there was empty.
    pub(super) fn text(&self, place: &OutputSource) -> Result<String, String> {
        let name = place.artefact_name();
        if *place == OutputSource::Stdout {
            self.check_stdout_complete(&name)?;
        }
        match (place, self.artefacts.text(&name)) {
            (OutputSource::Stderr, Err(_)) => Ok(String::new()),
            (_, text) => text.map_err(|rejected| rejected.figures),
        }
    }

    /// An error where standard output was cut: a figure that is read from a part of it may be another one.
    fn check_stdout_complete(&self, name: &str) -> Result<(), String> {
        let length = |bytes: u64| Quantity { value: bytes as f64, unit: "B" };
        let recorded = self.artefacts.length(name).map_err(|rejected| rejected.figures)?;
        match self.measured_process()?.stdout_bytes {
            Some(all) if recorded < all => Err(format!(
                "only {} of {} of standard output are recorded, since the run had no room for more: raise `max-stdout`, \
                 let the command write less, or read a `file`",
                length(recorded),
                length(all)
            )),
            // Runs of earlier releases do not know, and were never cut.
            _ => Ok(()),
        }
    }

    /// How the measured command ran.
    pub(super) fn measured_process(&self) -> Result<RecordedProcess, String> {
        self.recorded_process(RUN_NAME).map_err(|rejected| rejected.figures)
    }

    /// How a process ran.
    pub(super) fn recorded_process(&self, name: &str) -> Result<RecordedProcess, Rejection> {
        self.artefacts.json(&format!("{name}.process.json"))
    }
}

impl OutputSource {
    /// Reads where a text is.
    pub(super) fn parse(
        text: &SourceText<'_>,
        from: Option<&Spanned<FigureSource>>,
        file: Option<&Spanned<String>>,
    ) -> Result<Option<Self>, DefinitionError> {
        match (from.map(|from| *from.get_ref()), file) {
            (Some(_), Some(file)) => {
                Err(text
                    .error_at(file.span(), Diagnostic::new("`from` and `file` are two places").with_help("remove one")))
            }
            (None, Some(file)) => {
                let name = file.get_ref();
                let stays = !name.is_empty() && name.split('/').all(|part| !matches!(part, "" | "." | ".."));
                if !stays {
                    return Err(text.error_at(
                        file.span(),
                        Diagnostic::new(format!("`{name}` is not a file of the sample's folder"))
                            .with_help("give its path from the folder that the command runs in"),
                    ));
                }
                Ok(Some(Self::File(name.clone())))
            }
            (Some(FigureSource::Stdout), None) => Ok(Some(Self::Stdout)),
            (Some(FigureSource::Stderr), None) => Ok(Some(Self::Stderr)),
            (_, None) => Ok(None),
        }
    }

    /// Under what name it is kept.
    pub(super) fn artefact_name(&self) -> String {
        match self {
            Self::Stdout => format!("{RUN_NAME}.stdout"),
            Self::Stderr => format!("{RUN_NAME}.stderr"),
            Self::File(name) => format!("files/{name}"),
        }
    }

    /// As a word for messages.
    pub(super) fn description(&self) -> &str {
        match self {
            Self::Stdout => "standard output",
            Self::Stderr => "standard error",
            Self::File(name) => name,
        }
    }
}
