//! Samples of one cell are a series: all of one definition, of the same files and of the same programs.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::watch;
use wb_model::{Bytes, Roles};
use wb_plan::Sampling;
use wb_record::RunFolder;
use wb_tests::{BUILT_PREFIX, DEFINITION_FILE_PREFIX, DEFINITION_SHA256};

use crate::RunError;
use crate::active_cell::ActiveCell;
use crate::role_sample::AttemptContext;
use crate::worker_pool::WorkerPool;

/// How the name of a hash in a provenance ends; `@WORKER` may follow.
const SHA256: &str = " sha256";

/// Refuses a cell that has samples of another definition, of other files or of other programs. What earlier samples differ
/// in among themselves decides nothing: the test itself changes it, as a file that it writes.
///
/// # Errors
/// With the first that differs, and when the folder cannot be read.
pub fn check_definition(cell: &ActiveCell, run: &RunFolder) -> Result<(), RunError> {
    if !cell.has_finished() || cell.cell.unsupported.is_some() {
        return Ok(());
    }
    let definitions = run.definitions(&cell.cell.id)?;
    let recorded = definitions.of(&cell.cell.id).map(|definition| &definition.provenance);
    let now = &cell.definition.provenance;
    let differs = |(name, hash): (&String, &String)| {
        let (thing, worker) = name.split_once(SHA256)?;
        let mut before = sample_hashes(cell, thing, worker);
        if before.is_empty() {
            before = recorded.map(|recorded| hashes(recorded, thing, worker)).unwrap_or_default();
        }
        changed_hash(&before, hash).map(|before| change_error(cell, thing, before, hash))
    };
    // A file of the definition changes the definition's hash too, and says more.
    let (definition, rest): (Vec<_>, Vec<_>) = now.iter().partition(|(name, _)| *name == DEFINITION_SHA256);
    rest.into_iter().chain(definition).find_map(differs).map_or(Ok(()), Err)
}

/// Builds what a cell with samples is measured with, and refuses it where that comes out otherwise than for them. What came
/// out differently from build to build is not compared.
///
/// # Errors
/// With the first program that differs.
pub async fn check_build(
    cell: &ActiveCell,
    crew: &WorkerPool,
    sampling: &Sampling,
    cancel: &watch::Receiver<bool>,
) -> Result<(), RunError> {
    if !cell.has_finished() || !cell.uses_built_programs() {
        return Ok(());
    }
    let means = AttemptContext { pool: crew, sampling, cancel, stdout_room: Bytes(0) };
    for team in &cell.cell.teams {
        // What fails here fails in the first attempt too, and is recorded there.
        let Ok(built) = means.build(cell, team).await else { continue };
        for (program, hash) in &built {
            let worker = worker_suffix(cell, team);
            if let Some(before) = changed_hash(&sample_hashes(cell, &format!("{BUILT_PREFIX}{program}"), &worker), hash)
            {
                return Err(change_error(cell, &format!("{BUILT_PREFIX}{program}"), before, hash));
            }
        }
    }
    Ok(())
}

fn worker_suffix(cell: &ActiveCell, team: &Roles) -> String {
    if cell.cell.teams.len() > 1 { format!("@{}", team.worker) } else { String::new() }
}

/// The one hash that a thing had, where it is another one.
fn changed_hash<'a>(before: &BTreeSet<&'a str>, now: &str) -> Option<&'a str> {
    let [only] = before.iter().collect::<Vec<_>>()[..] else { return None };
    (*only != now).then_some(*only)
}

/// The hashes that a thing had in a cell's samples.
fn sample_hashes<'a>(cell: &'a ActiveCell, thing: &str, worker: &str) -> BTreeSet<&'a str> {
    let measured = cell.studied.iter().filter_map(|studied| studied.measurement.as_ref());
    measured.flat_map(|measured| hashes(&measured.provenance, thing, worker)).collect()
}

/// The hashes of a thing on a worker, given as `@WORKER`; on all of them, where that is empty or they are the same.
fn hashes<'a>(provenance: &'a BTreeMap<String, String>, thing: &str, worker: &str) -> BTreeSet<&'a str> {
    let on = |worker: &str| provenance.get(&format!("{thing}{SHA256}{worker}")).map(String::as_str);
    if let Some(hash) = on(worker).or_else(|| on("")) {
        return BTreeSet::from([hash]);
    }
    let of_thing = |name: &str| name.split_once(SHA256).is_some_and(|(other, _)| other == thing);
    let all = provenance.iter().filter(|(name, _)| worker.is_empty() && of_thing(name));
    all.map(|(_, hash)| hash.as_str()).collect()
}

fn change_error(cell: &ActiveCell, thing: &str, before: &str, now: &str) -> RunError {
    let short = |hash: &str| hash.chars().take(12).collect::<String>();
    let what = match (thing.strip_prefix(BUILT_PREFIX), thing.strip_prefix(DEFINITION_FILE_PREFIX)) {
        (Some(program), _) => format!("build of `{program}`"),
        (_, Some(file)) => format!("`{file}`"),
        _ if format!("{thing}{SHA256}") == DEFINITION_SHA256 => "definition".to_owned(),
        _ => format!("`{thing}`"),
    };
    let (before, now) = (short(before), short(now));
    RunError::Changed { cell: Box::new(cell.cell.id.clone()), what, before, now }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_of_several_workers_is_found_for_each_and_for_all() {
        let provenance = |all: &[(&str, &str)]| {
            all.iter().map(|(name, hash)| ((*name).to_owned(), (*hash).to_owned())).collect::<BTreeMap<_, _>>()
        };
        let alike = provenance(&[("fio sha256", "a"), ("fio path", "/usr/bin/fio")]);
        assert_eq!(hashes(&alike, "fio", "@b"), BTreeSet::from(["a"]));
        let apart = provenance(&[("fio sha256@b", "a"), ("fio sha256@c", "d")]);
        assert_eq!(hashes(&apart, "fio", "@c"), BTreeSet::from(["d"]));
        assert_eq!(hashes(&apart, "fio", ""), BTreeSet::from(["a", "d"]));
        assert!(hashes(&apart, "fi", "").is_empty());
    }

    #[test]
    fn what_differed_among_samples_already_refuses_nothing() {
        assert_eq!(changed_hash(&BTreeSet::from(["a"]), "b"), Some("a"));
        assert_eq!(changed_hash(&BTreeSet::from(["a"]), "a"), None);
        assert_eq!(changed_hash(&BTreeSet::from(["a", "b"]), "c"), None);
        assert_eq!(changed_hash(&BTreeSet::new(), "c"), None);
    }
}
