//! The knobs of a cell: set for an attempt, and recorded.

use std::collections::BTreeMap;

use wb_agent::{Command, TuneReport};
use wb_knobs::tune::{KnobOutcome, KnobResult};
use wb_model::WorkerName;
use wb_sys::undo::ResetSetting;
use wb_test::attempt::AttemptRecord;
use wb_test::{Attempt, Failure, SharedParams, WorkerContext};

use crate::active_cell::ActiveCell;

/// Artefact with the results of a cell's knobs: by worker, a list of [`KnobResult`].
const KNOBS: &str = "knobs.json";

/// Sets the cell's knobs until the site's groups are torn down, and runs the command to run before each attempt. That
/// command is not measured, so it has no placement. What the knobs did is recorded also if a later step fails.
pub(crate) async fn prepare_workers(cell: &ActiveCell, attempt: &mut Attempt) -> Result<(), Failure> {
    let mut reports = BTreeMap::new();
    let result = set_up(cell, &attempt.context, &mut reports).await;
    let recorded = if reports.is_empty() { Ok(()) } else { record(&mut attempt.record, reports) };
    result.and(recorded)
}

async fn set_up(
    cell: &ActiveCell,
    site: &WorkerContext,
    reports: &mut BTreeMap<WorkerName, TuneReport>,
) -> Result<(), Failure> {
    let SharedParams { setup, knobs, .. } = cell.test_cell.shared_params();
    for site in std::iter::once(site).chain(&site.peers) {
        if !knobs.is_empty() {
            // For the group of the attempt: what ends its processes when the controller is gone reverts them, too.
            reports.insert(site.worker().name().clone(), site.group.tune(knobs.clone()).await?);
        }
        if let Some(line) = &setup.before_command {
            site.run(Command::new(["sh", "-c", line]).cut_output()).await?;
        }
    }
    Ok(())
}

/// Records the results of knobs: an artefact, and findings for what differs from the request.
fn record(record: &mut AttemptRecord, reports: BTreeMap<WorkerName, TuneReport>) -> Result<(), Failure> {
    let json = serde_json::to_vec_pretty(&reports).map_err(|error| Failure::refused(error.to_string()))?;
    record.artefacts.push((KNOBS.to_owned(), json));
    let results: Vec<KnobResult> = reports.into_values().flat_map(|report| report.0).collect();
    record.findings.extend(results.iter().filter_map(skip_finding));
    record.findings.extend(results.iter().filter_map(reset_finding));
    Ok(())
}

fn skip_finding(KnobResult { knob, target, before, outcome, .. }: &KnobResult) -> Option<String> {
    let KnobOutcome::Skipped { reason } = outcome else { return None };
    let value = before.as_ref().map(|before| format!(" at `{before}`")).unwrap_or_default();
    Some(format!("the knob `{knob}` of {target} was left unchanged{value}: {reason}"))
}

fn reset_finding(KnobResult { knob, target, resets, .. }: &KnobResult) -> Option<String> {
    // Settings without a new value belonged to the previous scheduler and were removed with it, as expected.
    let listed: Vec<String> =
        resets.iter().filter(|reset| reset.after.is_some()).map(ResetSetting::to_string).collect();
    (!listed.is_empty()).then(|| format!("setting the knob `{knob}` of {target} reset {}", listed.join(", ")))
}
