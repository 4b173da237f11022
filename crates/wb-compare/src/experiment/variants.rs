//! The comparison of a test's variants with the first one.

use wb_results::experiment::{StoppingState, VariantCase, VariantResult, VariantSummary, VariantVerdict};
use wb_stats::Samples;

use super::duplicates::duplicates;
use super::variant_failures::VariantFailures;
use super::{CaseSamples, InvalidMetric, VariantSamples};
use crate::sequential_test::{CaseResult, MetricResult, SequentialTest, verdict_of_class};

/// Compares the variants of every case with the first one in every metric, as one family, and their failures as
/// another. Fails if a sample is below zero.
pub fn compare_variants(
    cases: Vec<CaseSamples>,
    sequential_test: &SequentialTest,
) -> Result<Vec<VariantCase>, InvalidMetric> {
    let blocks = cases.iter().map(|case| case.blocks(sequential_test)).collect::<Result<Vec<_>, _>>()?;
    let results = sequential_test.evaluate(&blocks).expect("all blocks have been checked");
    let failures = VariantFailures::compare_all(&cases, sequential_test.error_rate());
    let case = |((case, failures), result): ((&CaseSamples, &Vec<VariantFailures>), CaseResult)| {
        let metrics = result.metrics.into_iter().enumerate();
        let is_decided = is_decided_by_failures(case, failures, sequential_test.error_rate());
        let state = if is_decided { StoppingState::Decided } else { result.state };
        metrics.map(|(index, metric)| compare_case(case, index, state, metric, failures)).collect::<Vec<_>>()
    };
    Ok(cases.iter().zip(&failures).zip(results).flat_map(case).collect())
}

fn compare_case(
    samples: &CaseSamples,
    index: usize,
    state: StoppingState,
    result: MetricResult,
    failures: &[VariantFailures],
) -> VariantCase {
    let variants = &samples.variants;
    let measured = variants.split_first().and_then(|(first, others)| {
        let blocks = |variant: &VariantSamples| (&first.measured_rounds & &variant.measured_rounds).len();
        others.iter().map(blocks).max()
    });
    let others = result.variants.into_iter().map(Some);
    let results = std::iter::once(None).chain(others).zip(failures);
    let summaries = variants.iter().zip(results).map(|(variant, (result, failures))| {
        let class = samples.metrics[index].metric.class;
        let result = result.map(|result| VariantResult {
            verdict: if failures.rose { VariantVerdict::Worse } else { verdict_of_class(result.verdict, class) },
            ..result
        });
        let values: Vec<f64> = variant.values[index].iter().map(|(_, value)| *value).collect();
        VariantSummary {
            name: variant.name.clone(),
            spec: variant.spec.clone(),
            samples: values.len(),
            disturbed: Some(variant.disturbed),
            failures: failures.counts.map_or(variant.failures, |[_, own]| own),
            failures_of_first: failures.counts.map(|[first, _]| first),
            failures_rose: failures.rose,
            failure_p_value: failures.p_value,
            failures_undecided: failures.is_undecided,
            failure_attempts_to_decide: failures.attempts_to_decide,
            makes_no_more_attempts: variant.makes_no_more,
            median: Samples::new(&values).ok().map(|samples| samples.median()),
            result,
            shortfall: variant.shortfall_reason.clone(),
        }
    });
    VariantCase {
        case: samples.case.clone(),
        metric: Some(samples.metrics[index].clone()),
        blocks: result.blocks,
        measured_blocks: measured,
        state,
        variants: summaries.collect(),
        duplicates: duplicates(variants),
    }
}

/// Whether the first variant or all others make no more attempts, and it is significant of each which of both fails
/// more often: their samples cannot say more.
fn is_decided_by_failures(case: &CaseSamples, failures: &[VariantFailures], error_rate: f64) -> bool {
    let Some((first, others)) = case.variants.split_first() else { return false };
    let is_over = first.makes_no_more || !others.is_empty() && others.iter().all(|variant| variant.makes_no_more);
    is_over && failures.iter().skip(1).all(|failures| failures.is_significant(error_rate))
}

#[cfg(test)]
mod tests {
    use wb_model::{Direction, MetricKey, Unit};
    use wb_results::comparison::AttemptCounts;
    use wb_results::experiment::ComparedMetric;

    use super::*;

    #[test]
    fn a_variant_that_fails_significantly_more_often_is_worse() {
        let options = crate::sequential_test::Options::default();
        let test = SequentialTest::new(1, 3, options).unwrap();
        let variant = |name: &str, failed: u32, attempts: u32| VariantSamples {
            name: name.to_owned(),
            values: vec![(0..12).map(|block| (block, 100.0 + f64::from(block * 3 % 7))).collect()],
            failures: AttemptCounts { failed, attempts },
            ..VariantSamples::default()
        };
        let metric = ComparedMetric {
            metric: MetricKey::new(wb_model::Class::Throughput, "rate"),
            unit: Unit::new("1/s"),
            direction: Direction::Higher,
        };
        let variants = vec![variant("a", 0, 12), variant("b", 24, 36), variant("c", 1, 13)];
        let samples = CaseSamples { case: String::new(), metrics: vec![metric], variants };
        let cases = compare_variants(vec![samples], &test).unwrap();
        let [first, often, once] = &cases[0].variants[..] else { panic!("three variants") };
        assert_eq!((first.failure_p_value, first.failures_rose), (None, false));
        assert!(often.failures_rose && often.failure_p_value.unwrap() < 0.001, "{often:?}");
        assert_eq!(often.result.unwrap().verdict, VariantVerdict::Worse);
        assert!(!once.failures_rose && once.failure_p_value.unwrap() > 0.05, "{once:?}");
        assert_eq!([first, often, once].map(|variant| variant.failures_undecided), [false, false, true]);
        assert!(
            often.failure_attempts_to_decide.is_none() && once.failure_attempts_to_decide.unwrap() > 13,
            "{once:?}"
        );
        assert_eq!(once.result.unwrap().verdict, VariantVerdict::Equivalent);
    }
}
