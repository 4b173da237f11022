//! The workers' environments, before an entry and after it.

use std::collections::BTreeSet;
use std::fs;

use wb_model::WorkerName;
use wb_plan::Plan;
use wb_record::{RecordError, RunFolder, files};
use wb_sys::environment::tools::Asked;
use wb_tests::Registry;

use crate::RunError;
use crate::crew::Crew;

/// Records what the workers are like at this moment: `environment/world-ENTRY-MOMENT.json` of the first,
/// `…-MOMENT@WORKER.json` of the others.
pub async fn record(
    run: &RunFolder,
    entry: u32,
    moment: &str,
    plan: &Plan,
    registry: &Registry,
    crew: &Crew,
    lost: &BTreeSet<WorkerName>,
) -> Result<(), RunError> {
    let needed =
        plan.cells.iter().filter_map(|cell| Some(registry.test(cell.id.test.as_str())?.requires(&cell.params)));
    let programs: Asked = needed.flatten().map(|need| (need.program, need.version)).collect();
    for (at, member) in crew.members.iter().enumerate() {
        let name = member.worker.name();
        if lost.contains(name) {
            continue;
        }
        let environment = member.worker.environment(programs.clone()).await?;
        let of = if at == 0 { String::new() } else { format!("@{name}") };
        let path = run.environment(&format!("world-{entry}-{moment}{of}"));
        let folder = path.parent().unwrap_or(run.path());
        let unmade = |source| RecordError::Io { what: "create", path: folder.to_owned(), source };
        fs::create_dir_all(folder).map_err(unmade)?;
        files::write_json(&path, &environment)?;
    }
    Ok(())
}
