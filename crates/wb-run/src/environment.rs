//! The world's environment, before an entry and after it.

use std::fs;

use wb_agent::Worker;
use wb_plan::Plan;
use wb_record::{RecordError, RunFolder, files};
use wb_tests::Registry;

use crate::RunError;

/// Records what the worker is like at this moment: `environment/world-ENTRY-MOMENT.json`.
pub async fn record(
    run: &RunFolder,
    entry: u32,
    moment: &str,
    plan: &Plan,
    registry: &Registry,
    worker: &Worker,
) -> Result<(), RunError> {
    let needed =
        plan.cells.iter().filter_map(|cell| Some(registry.test(cell.id.test.as_str())?.requires(&cell.params)));
    let programs = needed.flatten().map(|need| (need.program, need.version)).collect();
    let environment = worker.environment(programs).await?;
    let path = run.environment(&format!("world-{entry}-{moment}"));
    let folder = path.parent().unwrap_or(run.path());
    fs::create_dir_all(folder).map_err(|source| RecordError::Io { what: "create", path: folder.to_owned(), source })?;
    Ok(files::write_json(&path, &environment)?)
}
