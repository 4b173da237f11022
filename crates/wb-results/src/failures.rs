//! The failed attempts of a cell.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{AttemptOutcome, AttemptPurpose};

use crate::finding::without_figures;
use crate::{AttemptResult, SampleSeries};

/// The failed attempts at the samples of a cell. Warm-ups are not included unless no attempt got beyond them, nor are attempts
/// that the user ended, and invalid or disturbed samples did not fail.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Failures {
    /// The number of attempts that did not complete: that crashed, timed out, were refused or lost their worker.
    pub failed: usize,
    /// The number of all attempts.
    pub attempts: usize,
    /// The most frequent cause of failure, as of its first attempt; absent if none failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// How many of the failed attempts had it; 0 if that was not recorded.
    #[serde(default)]
    pub cause_count: usize,
}

impl Failures {
    /// Counts the failures among attempts and in series of imported samples. A cell that already failed in its warm-ups has
    /// no other attempts.
    pub fn count(attempts: &[AttemptResult], series: &[SampleSeries]) -> Self {
        let of_purpose = |purpose| {
            move |attempt: &&AttemptResult| attempt.purpose == purpose && attempt.outcome != AttemptOutcome::Cancelled
        };
        let last_warm_up = attempts.iter().rfind(of_purpose(AttemptPurpose::WarmUp));
        let failed_before = last_warm_up.is_some_and(|last| !last.outcome.is_completed())
            && !attempts.iter().any(|attempt| attempt.purpose == AttemptPurpose::Sample);
        let is_tried = of_purpose(if failed_before { AttemptPurpose::WarmUp } else { AttemptPurpose::Sample });
        let tried = attempts.iter().filter(is_tried);
        let of_series = series.iter().flat_map(|series| &series.excluded);
        let failed = tried.clone().map(|attempt| &attempt.outcome).chain(of_series.map(|excluded| &excluded.outcome));
        // Causes that differ only in their figures are the same one; counted in order, so that the first stands for it.
        let mut causes: Vec<(String, String, usize)> = Vec::new();
        for cause in failed.filter(|outcome| !outcome.is_completed()).map(ToString::to_string) {
            let kind = without_figures(&cause);
            match causes.iter_mut().find(|(existing, ..)| *existing == kind) {
                Some((.., count)) => *count += 1,
                None => causes.push((kind, cause, 1)),
            }
        }
        let failed = causes.iter().map(|(.., count)| count).sum();
        // The last of equal maxima is the first of the reversed causes.
        let most_frequent = causes.into_iter().rev().max_by_key(|(.., count)| *count);
        let (cause, cause_count) = most_frequent.map(|(_, cause, count)| (cause, count)).unzip();
        Self {
            failed,
            attempts: tried.count() + series.iter().map(|series| series.count as usize).sum::<usize>(),
            cause,
            cause_count: cause_count.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use wb_model::Validity;

    use super::*;
    use crate::ExcludedSample;

    fn attempt(purpose: AttemptPurpose, outcome: AttemptOutcome) -> AttemptResult {
        AttemptResult {
            sample: 0,
            attempt: 0,
            purpose,
            start_seconds: 0.0,
            seconds: 1.0,
            measured_seconds: 1.0,
            validity: outcome.is_completed().then_some(Validity::Valid),
            outcome,
            disturbances: vec!["steal 3 %".to_owned()],
            counted: false,
            values: BTreeMap::new(),
            folder: String::new(),
        }
    }

    fn crashed(status: &str) -> AttemptOutcome {
        AttemptOutcome::Crashed { status: status.to_owned() }
    }

    #[test]
    fn failures_are_attempts_that_did_not_complete_without_warm_ups_and_cancelled_ones() {
        let sample = |outcome| attempt(AttemptPurpose::Sample, outcome);
        let attempts = [
            attempt(AttemptPurpose::WarmUp, crashed("cold")),
            sample(AttemptOutcome::Completed),
            sample(crashed("no memory")),
            sample(crashed("stopped after 3 ms")),
            sample(AttemptOutcome::Completed),
            sample(crashed("stopped after 4 ms")),
            sample(AttemptOutcome::Cancelled),
        ];
        let failures = Failures::count(&attempts, &[]);
        assert_eq!((failures.failed, failures.attempts), (3, 5));
        assert_eq!((failures.cause.as_deref(), failures.cause_count), (Some("crashed (stopped after 3 ms)"), 2));
        assert_eq!(Failures::count(&attempts[..2], &[]), Failures { attempts: 1, ..Failures::default() });
        let only_warm_ups = Failures::count(&attempts[..1], &[]);
        assert_eq!((only_warm_ups.failed, only_warm_ups.attempts), (1, 1));
        let interrupted =
            [attempt(AttemptPurpose::WarmUp, AttemptOutcome::Completed), sample(AttemptOutcome::Cancelled)];
        assert_eq!(Failures::count(&interrupted[..1], &[]), Failures::default());
        assert_eq!(Failures::count(&interrupted, &[]), Failures::default());
    }

    #[test]
    fn of_equally_frequent_causes_the_first_is_named() {
        let attempts = ["a", "b"].map(|status| attempt(AttemptPurpose::Sample, crashed(status)));
        assert_eq!(Failures::count(&attempts, &[]).cause.as_deref(), Some("crashed (a)"));
    }

    #[test]
    fn failed_samples_of_series_are_failures_and_invalid_ones_are_not() {
        let excluded = |position, outcome: AttemptOutcome| ExcludedSample {
            position,
            validity: outcome.is_completed().then_some(Validity::Valid),
            outcome,
        };
        let series = SampleSeries {
            first_sample: 0,
            count: 9,
            start_seconds: 0.0,
            measured_seconds: Vec::new(),
            counted: true,
            excluded: vec![excluded(1, crashed("no disk")), excluded(3, AttemptOutcome::Completed)],
            values: BTreeMap::new(),
            folder: String::new(),
        };
        let failures = Failures::count(&[], &[series]);
        assert_eq!((failures.failed, failures.attempts), (1, 9));
    }
}
