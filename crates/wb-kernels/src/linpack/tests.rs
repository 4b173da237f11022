//! Tests of whole linpack runs.

use super::*;
use crate::cpus;
use proptest::prelude::*;

fn config(n: usize, threads: usize) -> Config {
    Config {
        n,
        leading_dimension: n,
        alignment: 64,
        cpus: cpus::allowed().into_iter().cycle().take(threads).collect(),
        huge_pages: HugePagePolicy::Inherit,
        seed: 1,
        work: Work::Iterations(1),
        isa: None,
    }
}

#[test]
fn every_isa_and_number_of_threads_solves_every_size() {
    for isa in Isa::available() {
        for (threads, sizes) in
            [(1, &[1, 2, 7, 8, 9, 25, 63, 64, 65, 130, 203, 500][..]), (2, &[1, 64, 203]), (5, &[300])]
        {
            for &n in sizes {
                let config = Config { isa: Some(isa), ..config(n, threads) };
                let report = run(&config).unwrap();
                assert!(report.residual < 1.0, "{isa} {threads} {n}: {}", report.residual);
                assert_eq!((report.isa, report.threads), (isa, threads));
            }
        }
    }
}

#[test]
fn the_solution_does_not_depend_on_the_number_of_threads() {
    let residual = |threads| run(&config(777, threads)).unwrap().residual;
    let alone = residual(1);
    assert_eq!((residual(2), residual(3)), (alone, alone));
}

#[test]
fn each_repeat_solves_the_same_system() {
    let report = run(&Config { work: Work::Iterations(3), ..config(300, 2) }).unwrap();
    assert_eq!(report.repeats.len(), 3);
    assert!(report.repeats.iter().all(|repeat| repeat.residual == report.residual && repeat.seconds > 0.0));
    let seconds: f64 = report.repeats.iter().map(|repeat| repeat.seconds).sum();
    assert!((report.gflops * seconds / (operations(300) * 3e-9) - 1.0).abs() < 1e-12);
}

#[test]
fn the_requested_seconds_are_filled_with_repeats() {
    let report = run(&Config { work: Work::Seconds(0.02), ..config(100, 1) }).unwrap();
    assert!(report.repeats.iter().map(|repeat| repeat.seconds).sum::<f64>() >= 0.02);
}

#[test]
fn operations_are_those_of_the_benchmark() {
    assert_eq!(operations(3), 31.5);
}

#[test]
fn an_invalid_configuration_is_refused_with_the_reason() {
    let error = |config: Config| run(&config).unwrap_err().to_string();
    assert_eq!(error(config(0, 1)), "invalid number of equations 0: expected 1 or more");
    assert_eq!(
        error(Config { leading_dimension: 99, ..config(100, 1) }),
        "invalid leading dimension 99: expected 100 or more, the number of equations"
    );
    for alignment in [0, 4, 24, 2 << 20] {
        let error = run(&Config { alignment, ..config(10, 1) }).unwrap_err();
        assert!(matches!(error, Error::Alignment(_)), "{error}");
    }
    for work in [Work::Iterations(0), Work::Seconds(0.0), Work::Seconds(f64::NAN), Work::Seconds(f64::INFINITY)] {
        assert!(matches!(run(&Config { work, ..config(10, 1) }), Err(Error::NoWork)));
    }
    assert!(matches!(run(&config(10, 0)), Err(Error::Machine(crate::Error::NoCpu))));
}

#[test]
fn more_than_the_available_memory_is_refused_with_both_figures() {
    for n in [10_000_000, usize::MAX / 2] {
        let error = run(&config(n, 1)).unwrap_err();
        assert!(matches!(error, Error::Machine(crate::Error::Memory { required, available }) if required > available));
    }
}

#[test]
fn a_residual_is_valid_below_sixteen() {
    assert!(is_valid_residual(0.0) && is_valid_residual(15.9));
    assert!(!is_valid_residual(16.0) && !is_valid_residual(f64::NAN));
}

#[test]
fn a_configuration_round_trips_through_json() {
    let config = Config { isa: Some(Isa::Scalar), ..config(10, 1) };
    let json = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<Config>(&json).unwrap(), config);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_shape_is_solved(
        n in 1usize..300, padding in 0usize..50, alignment in 3u32..21, threads in 1usize..4, seed: u64,
    ) {
        let config = Config { leading_dimension: n + padding, alignment: 1 << alignment, seed, ..config(n, threads) };
        let report = run(&config).unwrap();
        prop_assert!(is_valid_residual(report.residual), "{}", report.residual);
    }
}
