//! What is kept of a sequence, in the run folder.
//!
//! | file | content |
//! |---|---|
//! | `journal.jsonl` | events of sequences, among the others of the run: the only truth about what happened |
//! | `contention/INSTANCE/STAGE.ATTEMPT/SECOND.json` | the raw reports of an attempt at a stage |
//! | `contention/INSTANCE/result.json` | the result of a bench, derived from both |

mod event;
mod history;
mod journal;

pub use event::{EndedBench, SequenceEnd, SequenceEvent, StartedStage};
pub use history::{RecordedStage, SequenceHistory, UnfinishedBench};
pub use journal::{SequenceJournal, read_history};

use std::path::{Path, PathBuf};

use wb_record::RunFolder;
use wb_results::contention::Instance;

use crate::report::ReportFolder;
use crate::stage::StageKey;

pub const FOLDER: &str = "contention";
const RESULT: &str = "result.json";

pub fn instance_folder(run: &RunFolder, instance: &Instance) -> PathBuf {
    run.path().join(FOLDER).join(instance.to_string())
}

pub fn result_path(run: &RunFolder, instance: &Instance) -> PathBuf {
    instance_folder(run, instance).join(RESULT)
}

/// The raw reports of an attempt at a stage, in `folder`, which is that of a run or of a copy of its reports.
pub fn report_folder(folder: &Path, instance: &Instance, stage: &StageKey, attempt: u32) -> ReportFolder {
    ReportFolder::at(folder.join(instance.to_string()).join(format!("{stage}.{attempt}")))
}
