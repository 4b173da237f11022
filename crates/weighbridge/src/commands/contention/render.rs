//! Plans and progress of sequences as text.

use wb_contention::execute::{AfterFailure, SequenceProgress};
use wb_contention::format::{Detail, format};
use wb_contention::sequence::{Origin, PlannedJob};
use wb_contention::spec::FormatOptions;
use wb_model::pluralize;

use crate::console::{Console, message};
use crate::error::Error;
use crate::output::print_text;

/// The stages of a bench, a line each, with what the user should know about them.
pub(super) fn job_lines(plan: &PlannedJob) -> Vec<String> {
    let instance = &plan.instance;
    let mut lines = Vec::new();
    if let Origin::RequiredBy(bench) = plan.origin {
        lines.push(format!("{instance}: added, because {bench} requires it"));
    }
    for stage in &plan.stages {
        lines.push(format!("{instance}: {stage}"));
        lines.extend(stage.mismatches.iter().map(|mismatch| format!("{instance}:      not reused: {mismatch}")));
    }
    lines.extend(plan.notes.iter().map(|note| format!("{instance}: {note}")));
    lines.push(match (plan.stages.is_empty(), plan.to_run()) {
        (true, _) => format!("{instance}: follows from other results"),
        (false, 0) => format!("{instance}: all results are there"),
        (false, count) => format!("{instance}: {} to run", pluralize(count, "stage")),
    });
    lines
}

/// Reports a step: progress on standard error, and the summary of each bench on standard output.
pub(super) fn report(step: SequenceProgress<'_>, json: bool, console: &Console) -> Result<(), Error> {
    let line = match step {
        SequenceProgress::BenchPlanned(plan) => job_lines(plan).join("\n"),
        SequenceProgress::StageStarted { instance, label, resumed } => {
            format!("{instance}: {label}{}", if resumed { ": resumed from its last checkpoint" } else { "" })
        }
        SequenceProgress::StageEnded { instance, label } => format!("{instance}: {label}: done"),
        SequenceProgress::StageFailed { instance, label, failure, next } => {
            let next = match next {
                AfterFailure::Retry => "repeated",
                AfterFailure::GiveUp => "left out",
                // The error follows.
                AfterFailure::Stop => return Ok(()),
            };
            format!("{instance}: {label}: {failure}: {next}")
        }
        SequenceProgress::BenchEnded { result, times, .. } => {
            if !json {
                print_text(&format!("{}\n", format(result, times, Detail::Summary, &FormatOptions::default())))?;
            }
            return Ok(());
        }
        SequenceProgress::Applied(_) => return Ok(()),
        SequenceProgress::Committed(path) => format!("parameters kept in {}", path.display()),
    };
    if !console.quiet {
        message!("{line}");
    }
    Ok(())
}
