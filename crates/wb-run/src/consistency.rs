//! Checks that all samples of a cell have the same definition, files and programs.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::watch;
use wb_model::{Bytes, Roles};
use wb_plan::Sampling;
use wb_record::RunFolder;
use wb_test::{BUILT_PREFIX, DEFINITION_FILE_PREFIX, DEFINITION_SHA256};

use crate::RunError;
use crate::active_cell::ActiveCell;
use crate::role_sample::AttemptContext;
use crate::worker_pool::WorkerPool;

/// Suffix of the name of a hash in a provenance; `@WORKER` may follow.
const SHA256: &str = " sha256";

/// Refuses a cell that has samples with another definition, other files or other programs. Hashes that already differ
/// among the earlier samples are ignored: the test itself changes them, as a file that it writes.
pub fn check_definition(cell: &ActiveCell, run: &RunFolder) -> Result<(), RunError> {
    if !cell.has_finished() || cell.planned.unsupported.is_some() {
        return Ok(());
    }
    // Before anything is measured: within a folder, equal hashes make a series.
    let definitions = run.definitions(&cell.planned.id)?;
    let recorded = definitions.of(&cell.planned.id).map(|definition| &definition.provenance);
    let now = &cell.definition.provenance;
    let differs = |(name, hash): (&String, &String)| {
        let (item, worker) = name.split_once(SHA256)?;
        let mut before = sample_hashes(cell, item, worker);
        if before.is_empty() {
            before = recorded.map(|recorded| hashes(recorded, item, worker)).unwrap_or_default();
        }
        changed_hash(&before, hash).map(|before| change_error(cell, item, before, hash))
    };
    // A file of the definition changes the definition's hash too, and says more.
    let (definition, rest): (Vec<_>, Vec<_>) = now.iter().partition(|(name, _)| *name == DEFINITION_SHA256);
    rest.into_iter().chain(definition).find_map(differs).map_or(Ok(()), Err)
}

/// Builds the programs of a cell that has samples, and refuses the cell if the result differs from theirs. Programs
/// that already differed between earlier builds are not compared. Returns the problems of cleaning up after the builds.
pub async fn check_build(
    cell: &ActiveCell,
    pool: &WorkerPool,
    sampling: &Sampling,
    cancel: &watch::Receiver<bool>,
) -> Result<Vec<String>, RunError> {
    let mut problems = Vec::new();
    if !cell.has_finished() || !cell.uses_built_programs() {
        return Ok(problems);
    }
    let context = AttemptContext { pool, sampling, cancel, remaining_stdout: Bytes(0) };
    for assignment in &cell.planned.roles {
        let (built, cleanup) = context.build(cell, assignment).await;
        problems.extend(cell.problems(assignment, cleanup));
        // A build that fails here fails in the first attempt too, and is recorded there.
        let Ok(built) = built else { continue };
        for (program, hash) in &built {
            let worker = worker_suffix(cell, assignment);
            if let Some(before) = changed_hash(&sample_hashes(cell, &format!("{BUILT_PREFIX}{program}"), &worker), hash)
            {
                return Err(change_error(cell, &format!("{BUILT_PREFIX}{program}"), before, hash));
            }
        }
    }
    Ok(problems)
}

fn worker_suffix(cell: &ActiveCell, assignment: &Roles) -> String {
    if cell.planned.roles.len() > 1 { format!("@{}", assignment.worker) } else { String::new() }
}

/// Returns the previous hash if there was exactly one and it differs from the current one.
fn changed_hash<'a>(before: &BTreeSet<&'a str>, now: &str) -> Option<&'a str> {
    let [only] = before.iter().collect::<Vec<_>>()[..] else { return None };
    (*only != now).then_some(*only)
}

fn sample_hashes<'a>(cell: &'a ActiveCell, item: &str, worker: &str) -> BTreeSet<&'a str> {
    let measured = cell.evaluated.iter().filter_map(|evaluated| evaluated.measurement.as_ref());
    measured.flat_map(|measured| hashes(&measured.provenance, item, worker)).collect()
}

/// Returns the hashes of an item on a worker, given as `@WORKER`, or on all workers if that is empty or they are equal.
fn hashes<'a>(provenance: &'a BTreeMap<String, String>, item: &str, worker: &str) -> BTreeSet<&'a str> {
    let on_worker = |worker: &str| provenance.get(&format!("{item}{SHA256}{worker}")).map(String::as_str);
    if let Some(hash) = on_worker(worker).or_else(|| on_worker("")) {
        return BTreeSet::from([hash]);
    }
    let is_item = |name: &str| name.split_once(SHA256).is_some_and(|(other, _)| other == item);
    let all = provenance.iter().filter(|(name, _)| worker.is_empty() && is_item(name));
    all.map(|(_, hash)| hash.as_str()).collect()
}

fn change_error(cell: &ActiveCell, item: &str, before: &str, now: &str) -> RunError {
    let short = |hash: &str| hash.chars().take(12).collect::<String>();
    let what = match (item.strip_prefix(BUILT_PREFIX), item.strip_prefix(DEFINITION_FILE_PREFIX)) {
        (Some(program), _) => format!("build of `{program}`"),
        (_, Some(file)) => format!("`{file}`"),
        _ if format!("{item}{SHA256}") == DEFINITION_SHA256 => "definition".to_owned(),
        _ => format!("`{item}`"),
    };
    let (before, now) = (short(before), short(now));
    RunError::Changed { cell: Box::new(cell.planned.id.clone()), item: what, before, now }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_of_several_workers_are_found_for_each_and_for_all() {
        let provenance = |all: &[(&str, &str)]| {
            all.iter().map(|(name, hash)| ((*name).to_owned(), (*hash).to_owned())).collect::<BTreeMap<_, _>>()
        };
        let equal = provenance(&[("fio sha256", "a"), ("fio path", "/usr/bin/fio")]);
        assert_eq!(hashes(&equal, "fio", "@b"), BTreeSet::from(["a"]));
        let different = provenance(&[("fio sha256@b", "a"), ("fio sha256@c", "d")]);
        assert_eq!(hashes(&different, "fio", "@c"), BTreeSet::from(["d"]));
        assert_eq!(hashes(&different, "fio", ""), BTreeSet::from(["a", "d"]));
        assert!(hashes(&different, "fi", "").is_empty());
    }

    #[test]
    fn hashes_that_differ_among_samples_are_ignored() {
        assert_eq!(changed_hash(&BTreeSet::from(["a"]), "b"), Some("a"));
        assert_eq!(changed_hash(&BTreeSet::from(["a"]), "a"), None);
        assert_eq!(changed_hash(&BTreeSet::from(["a", "b"]), "c"), None);
        assert_eq!(changed_hash(&BTreeSet::new(), "c"), None);
    }
}
