//! Verdicts on distributions whose shape changes, on single runs, and with more data.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use wb_compare::statistical::{MetricComparison, Options, Verdict, compare, compare_pairs, compare_samples};
use wb_model::Direction;
use wb_results::comparison::{Aspect, Certainty};
use wb_stats::RunPrior;

use crate::support::{TestFolders, iteration, latency};

/// A latency with these samples in two builds, each of several runs.
fn compared(reference: &[Vec<f64>], judged: &[Vec<f64>], options: &Options) -> MetricComparison {
    let lab = TestFolders::new();
    let mut sides = Vec::new();
    for (side, runs) in [("a", reference), ("b", judged)] {
        let names: Vec<String> = (0..runs.len()).map(|run| format!("{side}{run}")).collect();
        for (name, samples) in names.iter().zip(runs) {
            let mean = samples.iter().sum::<f64>() / samples.len() as f64;
            let metric = crate::support::GeneratedMetric { samples: samples.clone(), ..latency("lat", mean, 1.0) };
            lab.run(name, "P/t/0000", &[iteration("c-1", "lat", &[metric])]);
        }
        sides.push(names.join(","));
    }
    let sides: Vec<&str> = sides.iter().map(String::as_str).collect();
    let comparison = compare(&lab.read(&sides), &[], options).unwrap();
    comparison.checks.into_iter().find(|check| check.primary).unwrap()
}

fn single(reference: &[f64], judged: &[f64]) -> MetricComparison {
    compared(&[reference.to_vec()], &[judged.to_vec()], &Options::default())
}

/// Samples with this share of slow ones, which take `slow` times as long, and a little noise.
fn mixture(n: usize, share: f64, slow: f64) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(n as u64 + (share * 1000.0) as u64);
    let slow_count = (n as f64 * share).round() as usize;
    (0..n).map(|i| (1.0 + 0.01 * rng.random::<f64>()) * if i < slow_count { slow } else { 1.0 }).collect()
}

#[test]
fn a_slower_tail_is_not_equal_whatever_the_median_says() {
    for n in [30, 36, 60, 100] {
        let check = single(&mixture(n, 0.0, 1.0), &mixture(n, 0.2, 5.0));
        assert_eq!(check.verdict, Verdict::Regressed, "{n}: {check:#?}");
        let decisive = check.decisive().unwrap();
        assert!(decisive.aspect != Aspect::Shift && decisive.ratio > 1.5, "{decisive:#?}");
    }
}

/// Each side wanders by one percent, twice as slowly as the other.
#[test]
fn samples_that_depend_on_each_other_are_equal_only_by_a_wider_interval() {
    let wandering = |period: f64| -> Vec<f64> {
        (0..40).map(|i| 1.0 + 0.04 * (f64::from(i) * std::f64::consts::TAU / period).sin()).collect()
    };
    let check = single(&wandering(20.0), &wandering(40.0));
    assert_eq!((check.verdict, check.equal_if_independent), (Verdict::Inconclusive, true), "{check:#?}");
    let [interval, widened] = {
        let decisive = check.decisive().unwrap();
        [decisive.interval.unwrap(), decisive.widened_interval.unwrap()]
    };
    assert!(interval.high < 1.05 && widened.high > 1.05 && widened.low < interval.low, "{widened:?}");
    let slower: Vec<f64> = wandering(40.0).iter().map(|sample| sample * 1.3).collect();
    assert_eq!(single(&wandering(20.0), &slower).verdict, Verdict::Regressed, "differences need no wider interval");
    let mut order: Vec<f64> = wandering(40.0);
    let mut reference = wandering(20.0);
    for side in [&mut order, &mut reference] {
        let half = side.split_off(20);
        let alternating = side.iter().zip(half.iter().rev()).enumerate();
        *side = alternating.flat_map(|(i, (a, b))| if i % 2 == 0 { [*a, *b] } else { [*b, *a] }).collect();
    }
    assert_eq!(single(&reference, &order).verdict, Verdict::Equivalent, "the same samples in another order");
}

#[test]
fn modes_that_change_their_shares_are_never_equal() {
    for n in [30, 60, 100, 200] {
        let check = single(&mixture(n, 0.2, 2.0), &mixture(n, 0.4, 2.0));
        assert_ne!(check.verdict, Verdict::Equivalent, "{n}: {check:#?}");
    }
    let check = single(&mixture(200, 0.2, 2.0), &mixture(200, 0.4, 2.0));
    assert!(matches!(check.verdict, Verdict::Regressed | Verdict::Unconfirmed), "{check:#?}");
}

/// Eleven of 100 ms and ten of 200 against ten and eleven: the medians differ twofold, and the populations hardly.
#[test]
fn the_ratio_of_medians_has_its_name_and_decides_nothing() {
    let modes = |fast: usize, slow: usize| {
        let noise = |i: usize| 1.0 + 0.001 * (i * 7 % 10) as f64;
        (0..fast + slow).map(|i| noise(i) * if i < fast { 0.1 } else { 0.2 }).collect::<Vec<f64>>()
    };
    let check = single(&modes(11, 10), &modes(10, 11));
    let median = check.median_ratio.unwrap();
    assert!(median.estimate > 1.9 && median.interval.unwrap().low < 1.0, "{median:?}");
    let shift = &check.aspects[0];
    assert_eq!(shift.aspect, Aspect::Shift);
    assert!((shift.ratio - 1.0).abs() < 0.01, "{shift:?}");
    assert_eq!(check.verdict, Verdict::Inconclusive, "{check:#?}");
}

#[test]
fn a_better_median_with_a_worse_tail_is_worse_and_both_are_named() {
    let faster: Vec<f64> = mixture(60, 0.25, 12.0).iter().map(|sample| sample * 0.7).collect();
    let check = single(&mixture(60, 0.0, 1.0), &faster);
    assert_eq!(check.verdict, Verdict::Regressed, "{check:#?}");
    let ratio = |aspect| check.aspects.iter().find(|it| it.aspect == aspect).unwrap().ratio;
    assert!(ratio(Aspect::Shift) < 0.8 && ratio(Aspect::Mean) > 1.5, "{check:#?}");
    assert!(check.aspects.iter().all(|aspect| aspect.certainty != Certainty::None), "{check:#?}");
}

/// Runs whose noise is as assumed: the same data, cut to fewer samples or runs, never decides more.
#[test]
fn more_data_never_decides_less() {
    let rank = |verdict| match verdict {
        Verdict::Inconclusive => 0,
        Verdict::Unconfirmed => 1,
        Verdict::Regressed => 2,
        other => panic!("{other:?}"),
    };
    let side = |level: f64, runs: usize, samples: usize| -> Vec<Vec<f64>> {
        let run = |run: usize| {
            // Runs with equal samples would be copies.
            let shift = 1.0 + 0.01 * (run % 3) as f64 + 1e-6 * run as f64;
            (0..samples).map(|i| level * shift * (1.0 + 0.002 * (i * 3 % 7) as f64)).collect()
        };
        (0..runs).map(run).collect()
    };
    for slower in [1.09, 1.13, 1.29] {
        for samples in [6, 10, 30] {
            let verdicts = [1, 2, 3, 4, 5, 6, 8].map(|runs| {
                let check = compared(&side(1.0, runs, samples), &side(slower, runs, samples), &Options::default());
                rank(check.verdict)
            });
            assert!(verdicts.is_sorted(), "{slower} {samples}: {verdicts:?}");
            assert_eq!(*verdicts.last().unwrap(), 2, "{slower} {samples}");
        }
    }
}

#[test]
fn the_assumed_noise_between_runs_decides_about_single_runs() {
    let with = |slower: f64, run_noise: f64| {
        let samples = mixture(20, 0.0, 1.0);
        let judged = samples.iter().map(|sample| sample * slower).collect();
        let options = Options { run_noise: RunPrior::new(run_noise).unwrap(), ..Options::default() };
        compared(&[samples], &[judged], &options)
    };
    for (slower, run_noise, verdict) in [
        (1.29, 0.05, Verdict::Regressed),
        (1.08, 0.05, Verdict::Unconfirmed),
        (1.08, 0.01, Verdict::Regressed),
        (1.08, 0.0, Verdict::Regressed),
        (1.29, 0.2, Verdict::Unconfirmed),
        (0.7, 0.05, Verdict::Improved),
        (1.01, 0.05, Verdict::Equivalent),
        (1.01, 0.0, Verdict::Equivalent),
    ] {
        assert_eq!(with(slower, run_noise).verdict, verdict, "{slower} {run_noise}");
    }
    // p of a factor of 1.29 with t of 30 degrees of freedom and a standard error of 0.0707.
    let p = with(1.29, 0.05).p.unwrap();
    assert!((0.0005..0.003).contains(&p), "{p}");
}

#[test]
fn the_shown_aspect_is_one_that_the_verdict_is_based_on() {
    let shifted = |slow: f64| -> Vec<f64> {
        let (fast, slow) =
            (mixture(80, 0.0, 1.0), mixture(20, 0.0, 1.0).iter().map(|it| it * slow).collect::<Vec<_>>());
        fast.iter().map(|sample| sample * 0.75).chain(slow).collect()
    };
    // Three quarters of the samples are faster, and the slowest are much slower.
    let worse = single(&mixture(100, 0.0, 1.0), &shifted(1.6));
    assert_eq!(worse.verdict, Verdict::Regressed, "{worse:#?}");
    assert!(worse.decisive().unwrap().ratio > 1.05, "{worse:#?}");
    let perhaps = single(&mixture(100, 0.0, 1.0), &shifted(1.1));
    assert_eq!(perhaps.verdict, Verdict::Unconfirmed, "{perhaps:#?}");
    assert!(perhaps.decisive().unwrap().ratio > 1.05 && perhaps.may_be_worse(), "{perhaps:#?}");
    let faster = single(&mixture(20, 0.0, 1.0), &mixture(20, 0.0, 1.0).iter().map(|it| it * 0.93).collect::<Vec<_>>());
    assert_eq!((faster.verdict, faster.may_be_worse()), (Verdict::Unconfirmed, false), "{faster:#?}");
}

#[test]
fn an_interval_with_the_noise_between_runs_is_the_wider_one() {
    let ticks = [[1, 1, 1, 2, 2, 1, 1, 2, 1, 1, 2, 1], [2, 2, 1, 2, 2, 2, 1, 2, 2, 2, 2, 2]];
    let [a, b] = ticks.map(|side| side.map(f64::from).to_vec());
    for (a, b) in
        [(a, b), (mixture(20, 0.3, 2.0), mixture(20, 0.6, 2.0)), (mixture(40, 0.0, 1.0), mixture(40, 0.2, 5.0))]
    {
        for aspect in single(&a, &b).aspects {
            let (Some(samples), Some(runs)) = (aspect.interval, aspect.runs_interval) else { continue };
            let slack = 1e-9;
            assert!(runs.low <= samples.low + slack && runs.high >= samples.high - slack, "{aspect:#?}");
        }
    }
}

#[test]
fn few_samples_of_several_runs_decide() {
    let side = |level: f64| (0..4).map(|run| vec![level * (1.0 + 0.001 * f64::from(run))]).collect::<Vec<_>>();
    let check = compared(&side(1.0), &side(1.3), &Options::default());
    assert_eq!(check.verdict, Verdict::Regressed, "{check:#?}");
}

/// Few per cent of noise around a level, which is different for each run.
fn runs_of(level: f64, runs: usize, samples: usize) -> Vec<Vec<f64>> {
    let noise = |run: usize, i: usize| 0.004 * ((run * 5 + i * 3) % 7) as f64 + 1e-6 * run as f64;
    (0..runs).map(|run| (0..samples).map(|i| level * (1.0 + noise(run, i))).collect()).collect()
}

/// No noise by a factor makes zero of a value, or of zero something else.
#[test]
fn a_side_of_zeros_differs_from_any_other_and_both_ways_are_judged() {
    for (runs, samples) in [(1, 6), (1, 30), (4, 10), (8, 1)] {
        let (zeros, above) = (vec![vec![0.0; samples]; runs], runs_of(1001.0, runs, samples));
        let below: Vec<Vec<f64>> = above.iter().map(|run| run.iter().map(|sample| -sample).collect()).collect();
        for (sides, direction, verdict, ratio) in [
            ([above.clone(), zeros.clone()], Direction::Higher, Verdict::Regressed, 0.0),
            ([above.clone(), zeros.clone()], Direction::Lower, Verdict::Improved, 0.0),
            ([zeros.clone(), above.clone()], Direction::Lower, Verdict::Regressed, f64::INFINITY),
            ([zeros.clone(), above.clone()], Direction::Higher, Verdict::Improved, f64::INFINITY),
            ([below.clone(), zeros.clone()], Direction::Higher, Verdict::Improved, 2.0),
            ([below.clone(), zeros.clone()], Direction::Lower, Verdict::Regressed, 2.0),
            ([zeros.clone(), below.clone()], Direction::Higher, Verdict::Regressed, f64::NEG_INFINITY),
            ([zeros.clone(), below.clone()], Direction::Lower, Verdict::Improved, f64::NEG_INFINITY),
            ([zeros.clone(), zeros.clone()], Direction::Lower, Verdict::Equivalent, 1.0),
        ] {
            let compared = compare_samples(sides, direction, &Options::default()).unwrap();
            assert_eq!((compared.verdict, compared.aspects[0].ratio), (verdict, ratio), "{runs} {samples}");
            let ends = compared.aspects[0].interval.map(|interval| [interval.low, interval.high]);
            assert!(ends.is_none_or(|ends| ends == [ratio; 2]), "{ends:?}");
        }
    }
    for (sides, ratio) in [([vec![3.0; 8], vec![0.0; 8]], 0.0), ([vec![0.0; 8], vec![3.0; 8]], f64::INFINITY)] {
        let paired = compare_pairs(sides, Direction::Neither, &Options::default()).unwrap();
        assert_eq!((paired.verdict, paired.aspects[0].ratio), (Verdict::Differs, ratio));
    }
}

/// Runs of these numbers of samples, each of which is off by up to this factor in either direction.
fn noisy_side(rng: &mut ChaCha8Rng, runs: &[usize], noise: f64) -> Vec<Vec<f64>> {
    let mut sample = || 100.0 * (noise * (rng.random::<f64>() + rng.random::<f64>() + rng.random::<f64>() - 1.5)).exp();
    runs.iter().map(|samples| (0..*samples).map(|_| sample()).collect()).collect()
}

/// Of equal sides whose samples vary much more than runs are assumed to.
#[test]
fn the_noise_of_few_samples_is_no_difference() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for [a, b] in [
        [&[1][..], &[1][..]],
        [&[1, 1], &[1, 1]],
        [&[1; 4], &[1; 4]],
        [&[1; 4], &[1]],
        [&[10], &[1]],
        [&[1], &[2]],
        [&[3], &[3]],
        [&[5], &[5]],
        [&[2, 2], &[2, 2]],
        [&[1; 4], &[10]],
    ] {
        for run_noise in [0.0, 0.01, 0.05] {
            let options = Options { run_noise: RunPrior::new(run_noise).unwrap(), ..Options::default() };
            let mut is_change = || {
                let sides = [a, b].map(|runs| noisy_side(&mut rng, runs, 0.5));
                let verdict = compare_samples(sides, Direction::Lower, &options).unwrap().verdict;
                matches!(verdict, Verdict::Regressed | Verdict::Improved)
            };
            let changes = (0..400).filter(|_| is_change()).count();
            // At a true rate of 5 %, more are found once in ten thousand times.
            assert!(changes <= 38, "{a:?} {b:?} {run_noise}: {changes} of 400");
        }
    }
}

#[test]
fn single_samples_decide_nothing_whatever_they_are() {
    for [from, to] in [[100.0, 130.0], [100.0, 1e9], [5.0, 0.0], [0.0, 5.0], [-3.0, 4.0], [1.0, 1.0]] {
        for run_noise in [0.0, 0.05] {
            let options = Options { run_noise: RunPrior::new(run_noise).unwrap(), ..Options::default() };
            for direction in Direction::ALL {
                let compared = compare_samples([vec![vec![from]], vec![vec![to]]], direction, &options).unwrap();
                assert_eq!(compared.verdict, Verdict::Inconclusive, "{from} {to}: {compared:?}");
                assert!(compared.aspects.iter().all(|aspect| aspect.runs_interval.is_none()), "{compared:?}");
            }
        }
    }
}

/// t with 2 degrees of freedom of values 1 % apart on each side; with the assumption, runs of 20 %.
#[test]
fn runs_of_single_samples_differ_by_their_own_spread_and_by_the_assumed_one() {
    let side = |level: f64| vec![vec![level * 0.99], vec![level * 1.01]];
    for (slower, run_noise, verdict) in [
        (1.3, 0.05, Verdict::Regressed),
        (1.3, 0.2, Verdict::Unconfirmed),
        (1.08, 0.0, Verdict::Regressed),
        (1.08, 0.05, Verdict::Unconfirmed),
        (1.02, 0.0, Verdict::Inconclusive),
    ] {
        let options = Options { run_noise: RunPrior::new(run_noise).unwrap(), ..Options::default() };
        let compared = compare_samples([side(100.0), side(100.0 * slower)], Direction::Lower, &options).unwrap();
        assert_eq!(compared.verdict, verdict, "{slower} {run_noise}: {compared:#?}");
    }
}

/// The number of runs that would confirm a difference is right for values below zero and around it, too.
#[test]
fn as_many_runs_as_are_required_confirm_a_difference_of_any_values() {
    let moved = |level: f64, runs: usize, by: f64| -> Vec<Vec<f64>> {
        runs_of(level, runs, 10).into_iter().map(|run| run.into_iter().map(|sample| sample + by).collect()).collect()
    };
    let with_a_zero = |level: f64, runs: usize| -> Vec<Vec<f64>> {
        let mut runs = runs_of(level, runs, 20);
        runs.iter_mut().for_each(|run| run[0] = 0.0);
        runs
    };
    type Side<'a> = &'a dyn Fn(usize) -> Vec<Vec<f64>>;
    let cases: [(&str, Side, Side); 4] = [
        ("above zero", &|runs| moved(100.0, runs, 0.0), &|runs| moved(110.0, runs, 0.0)),
        ("below zero", &|runs| moved(-110.0, runs, 0.0), &|runs| moved(-100.0, runs, 0.0)),
        ("some are zero", &|runs| with_a_zero(100.0, runs), &|runs| with_a_zero(110.0, runs)),
        ("around zero", &|runs| moved(10.0, runs, -10.2), &|runs| moved(10.0, runs, -10.04)),
    ];
    for (name, reference, judged) in cases {
        let with = |runs: usize| compared(&reference(runs), &judged(runs), &Options::default());
        let one = with(1);
        match one.required_samples {
            Some(required) => {
                let required = required.per_side.unwrap();
                assert_eq!(one.verdict, Verdict::Unconfirmed, "{name}");
                assert_eq!(with(required).verdict, Verdict::Regressed, "{name}: {required} runs");
                assert_eq!(with(required - 1).verdict, Verdict::Unconfirmed, "{name}: {} runs", required - 1);
            }
            None => assert_eq!((name, one.verdict), ("around zero", Verdict::Regressed), "{one:#?}"),
        }
    }
}

// A median of zero makes the ratio of medians infinite where that of means says how much.
#[test]
fn a_finite_ratio_is_shown_instead_of_an_infinite_one() {
    let mostly_zero: Vec<f64> = (0..10).map(|i| if i < 6 { 0.0 } else { 4.0 + 0.1 * f64::from(i) }).collect();
    let check = single(&mostly_zero, &runs_of(1000.0, 1, 10)[0]);
    assert_eq!(check.verdict, Verdict::Regressed, "{check:#?}");
    assert_eq!(check.aspects[0].ratio, f64::INFINITY, "{check:#?}");
    let decisive = check.decisive().unwrap();
    assert!(decisive.aspect == Aspect::Mean && decisive.ratio > 100.0, "{decisive:?}");
}

/// A counter of errors that was never above zero; Fisher's exact test of 0 of 30 and 9 of 30 has p = 0.0019.
#[test]
fn what_was_always_zero_is_not_equal_to_what_is_sometimes_not() {
    let side = |count: usize, nonzero: usize| (0..count).map(|i| if i < nonzero { 1000.0 } else { 0.0 }).collect();
    for (count, nonzero, verdict) in [
        (10, 5, Some(Verdict::Regressed)),
        (30, 9, Some(Verdict::Regressed)),
        (30, 1, None),
        (60, 20, Some(Verdict::Regressed)),
        (100, 30, Some(Verdict::Regressed)),
        (100, 45, Some(Verdict::Regressed)),
    ] {
        let (zeros, some): (Vec<f64>, Vec<f64>) = (side(count, 0), side(count, nonzero));
        let compare = |sides| compare_samples(sides, Direction::Lower, &Options::default()).unwrap();
        let worse = compare([vec![zeros.clone()], vec![some.clone()]]);
        assert_eq!(worse.verdict, verdict.unwrap_or(Verdict::Inconclusive), "{nonzero} of {count}: {worse:#?}");
        let better = compare([vec![some.clone()], vec![zeros.clone()]]);
        let gain = if verdict.is_some() { Verdict::Improved } else { Verdict::Inconclusive };
        assert_eq!(better.verdict, gain, "{nonzero} of {count}: {better:#?}");
        let paired = compare_pairs([zeros.clone(), some], Direction::Lower, &Options::default()).unwrap();
        assert_eq!(paired.verdict, verdict.unwrap_or(Verdict::Inconclusive), "{nonzero} of {count}: {paired:#?}");
        assert_eq!(compare([vec![zeros.clone()], vec![zeros]]).verdict, Verdict::Equivalent);
    }
}

/// How a sample is drawn.
type Draw = fn(&mut ChaCha8Rng) -> f64;

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

/// One of two modes, the upper one with this share and at this multiple of the lower one.
fn mode(rng: &mut ChaCha8Rng, share: f64, factor: f64) -> f64 {
    let level = if rng.random_bool(share) { factor } else { 1.0 };
    level * (1.0 + 0.02 * normal(rng))
}

const POPULATIONS: [(&str, Draw); 9] = [
    ("normal", |rng| 1.0 + 0.1 * normal(rng)),
    ("log-normal", |rng| normal(rng).exp()),
    ("heavy tails", |rng| {
        let scale = (0..3).map(|_| normal(rng).powi(2)).sum::<f64>() / 3.0;
        1.0 + 0.05 * normal(rng) / scale.sqrt()
    }),
    ("5 % five times", |rng| mode(rng, 0.05, 5.0)),
    ("10 % doubled", |rng| mode(rng, 0.1, 2.0)),
    ("25 % doubled", |rng| mode(rng, 0.25, 2.0)),
    ("50 % doubled", |rng| mode(rng, 0.5, 2.0)),
    ("75 % doubled", |rng| mode(rng, 0.75, 2.0)),
    ("25 % half more", |rng| mode(rng, 0.25, 1.5)),
];

/// The share of comparisons of equal sides that have a verdict of a difference, at this error rate.
fn false_verdicts(draw: Draw, sides: [&[usize]; 2], options: &Options, repetitions: u32) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let mut run = |samples: &usize| (0..*samples).map(|_| draw(&mut rng)).collect::<Vec<f64>>();
    let is_false = (0..repetitions).filter(|_| {
        let sides = sides.map(|runs| runs.iter().map(&mut run).collect());
        let verdict = compare_samples(sides, Direction::Lower, options).unwrap().verdict;
        matches!(verdict, Verdict::Regressed | Verdict::Improved)
    });
    is_false.count() as f64 / f64::from(repetitions)
}

/// Runs do not differ, so that the samples alone decide. In a family of 200 checks the first one that differs needs a level of
/// about 1/4000, which ten times that level stands for.
fn equal_sides_seldom_differ_whatever_their_shape(sizes: &[[&[usize]; 2]]) {
    const RATES: [(f64, f64); 2] = [(0.05, 0.06), (0.0025, 0.0125)];
    for (name, draw) in POPULATIONS {
        for &[one, other] in sizes {
            for (error_rate, limit) in RATES {
                let options = Options { error_rate, run_noise: RunPrior::NONE, ..Options::default() };
                let rate = false_verdicts(draw, [one, other], &options, 400);
                assert!(rate <= limit, "{name}, {one:?} and {other:?}: {rate} instead of {error_rate}");
            }
        }
    }
}

#[test]
fn equal_sides_of_uneven_sizes_seldom_differ_whatever_their_shape() {
    equal_sides_seldom_differ_whatever_their_shape(&[[&[7], &[40]], [&[7], &[40; 5]], [&[6], &[6]]]);
}

#[test]
#[ignore = "simulates for half a minute: make test-long"]
fn soak_equal_sides_of_further_sizes_seldom_differ_whatever_their_shape() {
    let sizes: [[&[usize]; 2]; 4] = [[&[6], &[30]], [&[13], &[100]], [&[10], &[50]], [&[20], &[20]]];
    equal_sides_seldom_differ_whatever_their_shape(&sizes);
}
