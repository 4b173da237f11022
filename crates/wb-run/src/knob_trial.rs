//! Finds knobs that the kernel refuses, alone or together, before anything is measured: the values of each cell are set
//! once and reverted, because only the kernel knows which of them it accepts together.

use std::collections::{BTreeMap, BTreeSet};

use wb_agent::{Worker, WorkerError};
use wb_knobs::tune::KnobSetting;
use wb_model::WorkerName;
use wb_plan::Plan;
use wb_record::History;
use wb_test::TestCell;

use crate::RunError;
use crate::worker_pool::WorkerPool;

/// Marks as unsupported the cells whose knobs cannot be set. Each combination is tried once on each worker, and only for
/// cells without attempts: the knobs of others could be set. A lost worker is no error here, because its cells report
/// it. `test_cells` are the cells of the plan, in its order.
pub(crate) async fn try_knobs(
    plan: &mut Plan,
    test_cells: &[Box<dyn TestCell>],
    pool: &WorkerPool,
    history: &History,
) -> Result<(), RunError> {
    let mut tried: BTreeMap<(WorkerName, Vec<KnobSetting>), Option<String>> = BTreeMap::new();
    for (cell, test_cell) in plan.cells.iter_mut().zip(test_cells) {
        let knobs = &test_cell.shared_params().knobs;
        if knobs.is_empty() || cell.unsupported.is_some() || !history.attempts(&cell.id).is_empty() {
            continue;
        }
        let workers: BTreeSet<WorkerName> = pool.of(cell).map(|member| member.worker.name().clone()).collect();
        for name in workers {
            let Some(member) = pool.get(&name) else { continue };
            let key = (name, knobs.clone());
            let refusal = match tried.get(&key) {
                Some(refusal) => refusal.clone(),
                None => {
                    let refusal = find_refusal(&member.worker, knobs).await?;
                    tried.entry(key).or_insert(refusal).clone()
                }
            };
            cell.unsupported = cell.unsupported.take().or(refusal);
        }
    }
    Ok(())
}

/// Sets knobs and reverts them; returns why one of them could not be set: with the others, if it can be set without them.
async fn find_refusal(worker: &Worker, knobs: &[KnobSetting]) -> Result<Option<String>, RunError> {
    let TrialResult::Refused(refused) = try_settings(worker, knobs).await? else { return Ok(None) };
    let (own, others): (Vec<KnobSetting>, Vec<KnobSetting>) =
        knobs.iter().cloned().partition(|setting| setting.knob == refused.knob);
    let alone = if others.is_empty() { TrialResult::NotTried } else { try_settings(worker, &own).await? };
    let (refused, together) = match alone {
        TrialResult::Refused(alone) => (alone, String::new()),
        TrialResult::NotTried => (refused, String::new()),
        TrialResult::Accepted => {
            let others: Vec<String> =
                others.iter().map(|setting| format!("{}={}", setting.key(), setting.value)).collect();
            (refused, format!(" together with {}", others.join(" and ")))
        }
    };
    let RefusedKnob { knob, requested, reason } = refused;
    Ok(Some(format!("cannot set the knob `{knob}` to {requested} on {}{together}: {reason}", worker.name())))
}

enum TrialResult {
    Accepted,
    /// The first that could not be set.
    Refused(RefusedKnob),
    /// For example, another run measures on the machine: the attempts fail with this error, and report it.
    NotTried,
}

struct RefusedKnob {
    knob: String,
    requested: String,
    reason: String,
}

/// Sets knobs and reverts them.
async fn try_settings(worker: &Worker, knobs: &[KnobSetting]) -> Result<TrialResult, RunError> {
    let tried = async {
        let group = worker.new_group().await?;
        let report = group.tune_best_effort(knobs.to_vec()).await;
        // A change that could not be reverted stays in the undo log, and makes the first attempt fail.
        let _ = group.teardown().await?;
        report
    };
    let results = match tried.await {
        Ok(report) => report.0,
        Err(WorkerError::Fault { .. } | WorkerError::Lost { .. }) => return Ok(TrialResult::NotTried),
        Err(error) => return Err(error.into()),
    };
    let refused = results.into_iter().find_map(|result| {
        let reason = result.outcome.reason()?.to_owned();
        Some(RefusedKnob { knob: result.knob, requested: result.requested, reason })
    });
    Ok(refused.map_or(TrialResult::Accepted, TrialResult::Refused))
}
