//! Provenance of a cell: the versions and hashes that may explain its figures, recorded with the cell and its samples.

use std::collections::BTreeMap;

use wb_model::pluralize;
use wb_record::CellDefinition;
use wb_test::{BUILT_PREFIX, DEFINITION_FILE_PREFIX, DEFINITION_SHA256};

use crate::evaluated_attempt::EvaluatedAttempt;

/// The suffix of the name of a hash; `@WORKER` may follow.
const SHA256: &str = " sha256";

/// The provenance of a cell: of the samples that count, or of all attempts if none does. A hash that differs between
/// them is given as the last one and the number of other ones.
pub fn provenance(
    definition: &CellDefinition,
    evaluated: &[EvaluatedAttempt],
    counted: &[&EvaluatedAttempt],
) -> BTreeMap<String, String> {
    let all: Vec<&EvaluatedAttempt> = if counted.is_empty() { evaluated.iter().collect() } else { counted.to_vec() };
    let mut provenance = definition.provenance.clone();
    provenance.extend(all.iter().filter_map(|one| one.measurement.as_ref()).flat_map(|one| one.provenance.clone()));
    for (name, hashes) in hashes(&all) {
        if let [(last, _), others @ ..] = &hashes[..]
            && !others.is_empty()
        {
            provenance.insert(name.to_owned(), format!("{last} and {}", counted_others(others.len())));
        }
    }
    provenance
}

fn counted_others(others: usize) -> String {
    if others == 1 { "1 other".to_owned() } else { format!("{others} others") }
}

/// Findings about hashes that changed between samples although they should be the same.
pub fn changes(counted_samples: &[&EvaluatedAttempt]) -> Vec<String> {
    /// Maximum number of hashes to show; if there are more, the file changes with every sample.
    const SHOWN: usize = 2;
    let change = |(name, hashes): (&str, Vec<(&str, usize)>)| {
        let subject = describe_hash(name)?;
        let short = |hash: &str| hash.chars().take(12).collect::<String>();
        let each =
            |(hash, samples): &(&str, usize)| format!("SHA-256 {}… in {}", short(hash), pluralize(*samples, "sample"));
        match &hashes[..] {
            [] | [_] => None,
            few if few.len() <= SHOWN => {
                let each = few.iter().rev().map(each).collect::<Vec<_>>().join(", ");
                Some(format!("{subject} changed between samples: {each}"))
            }
            many => Some(format!("{subject} changed between samples: {} different hashes", many.len())),
        }
    };
    hashes(counted_samples).into_iter().filter_map(change).collect()
}

/// The file or program of a hash, as a sentence's subject; `None` for programs looked up once for all samples.
fn describe_hash(name: &str) -> Option<String> {
    let (hashed, worker) = name.split_once(SHA256)?;
    let on = worker.strip_prefix('@').map(|worker| format!(" on {worker}")).unwrap_or_default();
    match (hashed.strip_prefix(BUILT_PREFIX), hashed.strip_prefix(DEFINITION_FILE_PREFIX)) {
        (Some(program), _) => Some(format!("the build of `{program}`{on}")),
        (_, Some(file)) => Some(format!("the file `{file}`")),
        _ => (format!("{hashed}{SHA256}") == DEFINITION_SHA256).then(|| "the definition".to_owned()),
    }
}

/// The different hashes in samples by name, the last one first, with the number of samples that have it.
fn hashes<'a>(samples: &[&'a EvaluatedAttempt]) -> BTreeMap<&'a str, Vec<(&'a str, usize)>> {
    let mut all: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    let measured = samples.iter().rev().filter_map(|evaluated| evaluated.measurement.as_ref());
    for (name, hash) in measured.flat_map(|measured| &measured.provenance).filter(|(name, _)| name.contains(SHA256)) {
        let of_name = all.entry(name).or_default();
        match of_name.iter_mut().find(|(existing, _)| existing == hash) {
            Some((_, samples)) => *samples += 1,
            None => of_name.push((hash, 1)),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{definition, precision, samples};

    /// Samples with these hashes of the given name.
    fn with(name: &str, hashes: &[&str]) -> Vec<EvaluatedAttempt> {
        let mut all = samples(&vec![1000.0; hashes.len()]);
        for (sample, hash) in all.iter_mut().zip(hashes) {
            sample.measurement.as_mut().unwrap().add_provenance(name, hash);
        }
        all
    }

    #[test]
    fn a_script_that_changed_between_samples_is_reported_with_both_hashes() {
        let all = with("file {definition-folder}/h.sh sha256", &["a", "a", "b"]);
        let counted: Vec<&EvaluatedAttempt> = all.iter().collect();
        let expected = "the file `{definition-folder}/h.sh` changed between samples: SHA-256 a… in 2 samples, SHA-256 b… in 1 sample";
        assert_eq!(changes(&counted), [expected]);
        let provenance = provenance(&definition(precision()), &all, &counted);
        assert_eq!(provenance["file {definition-folder}/h.sh sha256"], "b and 1 other");
    }

    #[test]
    fn a_program_that_is_rebuilt_for_each_sample_is_reported_with_a_count() {
        let all = with("built p sha256", &["a", "b", "c"]);
        let counted: Vec<&EvaluatedAttempt> = all.iter().collect();
        assert_eq!(changes(&counted), ["the build of `p` changed between samples: 3 different hashes"]);
        assert_eq!(changes(&counted[..1]), [""; 0]);
    }

    #[test]
    fn a_cell_without_counted_samples_has_the_provenance_of_its_attempts() {
        let all = with("definition sha256", &["a", "a"]);
        assert_eq!(provenance(&definition(precision()), &all, &[])["definition sha256"], "a");
    }
}
