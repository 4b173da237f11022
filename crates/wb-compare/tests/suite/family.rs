//! All primary checks of a comparison as one family.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use wb_compare::statistical::{Comparison, MetricComparison, Options, Verdict, compare};
use wb_results::comparison::Certainty;
use wb_stats::RunPrior;

use crate::populations::normal;
use crate::support::{GeneratedMetric, TestFolders, iteration, latency};

/// The comparison of checks, each with the samples of both sides, without noise between runs.
fn compared(checks: &[[Vec<f64>; 2]]) -> Comparison {
    let lab = TestFolders::new();
    for (side, name) in ["a", "b"].into_iter().enumerate() {
        let check = |(number, sides): (usize, &[Vec<f64>; 2])| {
            let samples = sides[side].clone();
            let mean = samples.iter().sum::<f64>() / samples.len() as f64;
            iteration(&format!("c-{number}"), "lat", &[GeneratedMetric { samples, ..latency("lat", mean, 1.0) }])
        };
        lab.run(name, "P/t/0000", &checks.iter().enumerate().map(check).collect::<Vec<_>>());
    }
    let options = Options { run_noise: RunPrior::NONE, ..Options::default() };
    compare(&lab.read(&["a", "b"]), &[], &options).unwrap()
}

/// The primary checks, in order.
fn primary(comparison: &Comparison) -> Vec<&MetricComparison> {
    comparison.checks.iter().filter(|check| check.primary).collect()
}

/// Ten samples a side, the second slower by a factor.
fn sides(rng: &mut ChaCha8Rng, noise: f64, factor: f64) -> [Vec<f64>; 2] {
    [1.0, factor].map(|level| (0..10).map(|_| level * 100.0 * (noise * normal(rng)).exp()).collect())
}

// It counted as a rejection, so that others were reported at larger p-values.
#[test]
fn a_certain_difference_within_the_threshold_is_certain_and_no_discovery() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let comparison = compared(&[sides(&mut rng, 0.002, 1.03), sides(&mut rng, 0.002, 1.03)]);
    assert_eq!((comparison.family, comparison.discoveries), (2, 0));
    for check in primary(&comparison) {
        assert_eq!(check.verdict, Verdict::Equivalent, "{check:#?}");
        assert!(check.p.unwrap() < 0.001 && check.aspects[0].certainty == Certainty::Runs, "{check:#?}");
    }
}

/// Noisy equal sides beside differences of 3 % that are certain: if those made room, one in forty of the noisy checks would
/// be reported, and so some in most families.
#[test]
fn differences_within_the_threshold_make_no_room_for_others() {
    const FAMILIES: u64 = 60;
    let with_false = (0..FAMILIES).filter(|seed| {
        let mut rng = ChaCha8Rng::seed_from_u64(*seed);
        let mut kinds = [(0.002, 1.03), (0.2, 1.0)].into_iter().cycle();
        let checks: Vec<_> = (0..40)
            .map(|_| {
                let (noise, factor) = kinds.next().expect("an endless cycle");
                sides(&mut rng, noise, factor)
            })
            .collect();
        let comparison = compared(&checks);
        primary(&comparison).iter().any(|check| matches!(check.verdict, Verdict::Regressed | Verdict::Improved))
    });
    let with_false = with_false.count();
    // At a true rate of 5 %, more are found once in a thousand times.
    assert!(with_false <= 9, "{with_false} of {FAMILIES}");
}

/// Each aspect is significant by its own p-value in the family.
#[test]
fn the_adjusted_p_value_of_an_aspect_decides_about_it() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let factors = [1.0, 1.0, 1.0, 1.0, 1.0, 1.08, 1.09, 1.3];
    let comparison = compared(&factors.map(|factor| sides(&mut rng, 0.06, factor)));
    let aspects = || primary(&comparison).into_iter().flat_map(|check| &check.aspects);
    for aspect in aspects() {
        let (samples, runs) = (aspect.p_by_samples.unwrap(), aspect.p_by_runs);
        assert!(samples.alone <= samples.in_check && samples.in_check <= samples.in_family, "{aspect:#?}");
        assert!(runs.in_check >= samples.in_check && runs.in_check <= runs.in_family, "{aspect:#?}");
        assert_eq!(aspect.certainty == Certainty::Runs, runs.in_family <= 0.05, "{aspect:#?}");
    }
    assert!(aspects().any(|aspect| aspect.certainty == Certainty::Runs));
    assert!(aspects().any(|aspect| aspect.p_by_runs.in_check <= 0.05 && aspect.p_by_runs.in_family > 0.05));
}
