//! Decides whether imported samples failed if their command ended with a status other than 0.
//!
//! The measuring program may record the time of such a command like any other. Only the other samples of the cell show
//! whether it failed: a command that never ends with 0 may be meant to (`grep` without a match).

use std::borrow::Cow;
use std::collections::BTreeMap;

use wb_record::journal::ImportedBatch;

/// Fails samples whose command ended with another status than the usual one; also returns the usual status, unless it
/// is 0.
pub(crate) fn decide<'a>(batches: Vec<&'a ImportedBatch>) -> (Vec<Cow<'a, ImportedBatch>>, Option<i32>) {
    let usual = usual_exit_status(&batches);
    let decided = batches.into_iter().map(|batch| {
        if batch.samples.exit_statuses.is_empty() {
            Cow::Borrowed(batch)
        } else {
            Cow::Owned(with_failures(batch, usual))
        }
    });
    (decided.collect(), usual)
}

/// The status of most samples; `None` if any ended with 0, or if none has a status.
fn usual_exit_status(batches: &[&ImportedBatch]) -> Option<i32> {
    let has_success = |batch: &&ImportedBatch| {
        let samples = &batch.samples;
        samples.count as usize > samples.failures.len() + samples.exit_statuses.len()
    };
    if batches.iter().any(has_success) {
        return None;
    }
    let mut counts = BTreeMap::<i32, usize>::new();
    let statuses = batches.iter().flat_map(|batch| &batch.samples.exit_statuses);
    statuses.for_each(|(_, status)| *counts.entry(*status).or_default() += 1);
    counts.into_iter().rev().max_by_key(|(_, count)| *count).map(|(status, _)| status)
}

fn with_failures(batch: &ImportedBatch, usual: Option<i32>) -> ImportedBatch {
    let mut batch = batch.clone();
    let samples = &mut batch.samples;
    let mut usual_ends = Vec::new();
    for (position, status) in std::mem::take(&mut samples.exit_statuses) {
        if Some(status) == usual {
            usual_ends.push(position)
        } else {
            samples.failures.push((position, format!("exit status `{status}` of the command")))
        }
    }
    samples.failures.sort_by_key(|(position, _)| *position);
    if let Some(usual) = usual.filter(|_| !usual_ends.is_empty()) {
        samples.findings.insert(format!("the command ends with exit status {usual} and never with 0"), usual_ends);
    }
    batch
}

#[cfg(test)]
mod tests {
    use wb_model::imported::{ImportedSamples, ImportedValue};
    use wb_model::{CellId, DefinitionKey, Metric, Sha256, TestName};

    use super::*;

    /// Batches of samples with these exit statuses, `None` of one that failed otherwise.
    fn decided(batches: &[&[Option<i32>]]) -> (Vec<Vec<(u32, String)>>, Option<i32>) {
        let batch = |statuses: &&[Option<i32>]| {
            let mut samples = ImportedSamples::default();
            for (index, status) in statuses.iter().enumerate() {
                let value = ImportedValue { metric: Metric::latency("time", "s"), value: 1.0 };
                let failure = status.is_none().then(|| "signal".to_owned());
                samples.push(&format!("times/{index}"), &[value], None, Vec::new(), None, failure);
                samples.set_last_exit_status(status.unwrap_or_default());
            }
            assert_eq!(samples.check(), Ok(()));
            ImportedBatch {
                cell: "Localhost/hyperfine/0000:command=x".parse::<CellId>().unwrap(),
                key: DefinitionKey::new(&TestName::new("hyperfine").unwrap(), 1, &Default::default()),
                file: Sha256::digest(b"x"),
                first_sample: 0,
                provenance: BTreeMap::new(),
                samples,
            }
        };
        let batches: Vec<ImportedBatch> = batches.iter().map(batch).collect();
        let (decided, usual) = decide(batches.iter().collect());
        assert!(decided.iter().all(|batch| batch.samples.check().is_ok() && batch.samples.exit_statuses.is_empty()));
        (decided.iter().map(|batch| batch.samples.failures.clone()).collect(), usual)
    }

    // `grep` without a match always ends with 1: only beside other samples is that a failure.
    #[test]
    fn a_command_that_succeeds_anywhere_fails_elsewhere() {
        let status = |status: i32| format!("exit status `{status}` of the command");
        let one = |position, text: String| vec![(position, text)];
        assert_eq!(decided(&[&[Some(0), Some(0)]]), (vec![vec![]], None));
        assert_eq!(decided(&[&[Some(1), Some(0)]]), (vec![one(0, status(1))], None));
        assert_eq!(decided(&[&[Some(1)], &[Some(0)]]), (vec![one(0, status(1)), vec![]], None));
        assert_eq!(decided(&[&[Some(1), Some(1)], &[Some(1)]]), (vec![vec![], vec![]], Some(1)));
        assert_eq!(decided(&[&[Some(3), Some(1), Some(3)]]), (vec![one(1, status(1))], Some(3)));
        assert_eq!(decided(&[&[None, Some(2)]]), (vec![one(0, "signal".to_owned())], Some(2)));
        assert_eq!(decided(&[&[None, Some(0), Some(2)]]).0[0].len(), 2);
        assert_eq!(decided(&[&[None, None]]).1, None);
    }
}
