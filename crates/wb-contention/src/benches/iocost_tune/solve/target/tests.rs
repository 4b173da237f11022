//! Tests of solutions, with lines made by hand.

use std::collections::BTreeMap;

use wb_model::{IocostModel, IocostQos};
use wb_results::contention::{
    Bench, FittedSeries, IocostParameters, LatencyKind, Percentile, Point, Series, SolvedQos, TuneAnswer,
};

use super::*;
use crate::solve::{solve, unfitted};
use crate::spec::{BenchSpec, IocostTuneProperties};

/// Values at vrates of 5, 10, … 125.
fn series(value: impl Fn(f64) -> f64) -> FittedSeries {
    unfitted((1..=25).map(|step| f64::from(step) * 5.0).map(|x| Point { x, y: value(x) }).collect())
}

/// A ramp from `low` at vrate `a` to `high` at `b`.
fn ramp((a, low): (f64, f64), (b, high): (f64, f64)) -> FittedSeries {
    series(move |x| low + (high - low) * ((x - a) / (b - a)).clamp(0.0, 1.0))
}

/// A device with three limits: its footprint grows up to a vrate of 62.5 %, its protected footprint falls behind from
/// 42.5 % on, and its isolation is sufficient up to 82.5 %.
fn device() -> TuneAnswer {
    let mut all: BTreeMap<Series, FittedSeries> = BTreeMap::new();
    all.insert(Series::Mof, ramp((22.5, 1.2), (62.5, 1.6)));
    all.insert(Series::Amof, ramp((22.5, 1.2), (42.5, 1.4)));
    all.insert(Series::AmofDelta, ramp((42.5, 0.0), (62.5, 0.2)));
    all.insert(Series::Isol, ramp((72.5, 1.0), (92.5, 0.8)));
    all.insert(Series::LatImp, ramp((62.5, 0.1), (102.5, 0.3)));
    for kind in LatencyKind::ALL {
        for (percentile, time) in Series::SOLUTION_LATENCIES {
            all.insert(Series::Latency(kind, percentile, time), ramp((20.0, 1e6), (100.0, 5e6)));
        }
    }
    let model = IocostModel::from_array([1000, 2000, 3000, 4000, 5000, 6000]);
    let qos = IocostQos { rpct: 95.0, rlat: 1, wpct: 95.0, wlat: 1, min: 50.0, max: 100.0 };
    TuneAnswer {
        base: IocostParameters { model, qos },
        mem_profile: Some(16),
        isol_pct: Percentile::P05,
        isol_thr: 0.9,
        qos_spec: BenchSpec::new(Bench::IocostQos).to_text(),
        series: all,
        solutions: Vec::new(),
        remarks: Vec::new(),
    }
}

fn solved(properties: &str) -> Vec<(String, Option<SolvedQos>)> {
    let spec = BenchSpec::parse(&format!("iocost-tune{properties}")).unwrap();
    let crate::spec::Properties::IocostTune(properties) = spec.properties else { panic!("expected iocost-tune") };
    let answer = solve(device(), &properties);
    answer.solutions.into_iter().map(|one| (one.solution.name, one.solved)).collect()
}

fn vrate(solutions: &[(String, Option<SolvedQos>)], name: &str) -> f64 {
    let (_, solved) = solutions.iter().find(|(other, _)| other == name).unwrap();
    solved.as_ref().unwrap_or_else(|| panic!("{name} has no solution")).scale * 100.0
}

fn assert_near(value: f64, expected: f64, what: &str) {
    assert!((value - expected).abs() <= 2.6, "{what}: {value}, expected about {expected}");
}

#[test]
fn default_solutions_are_at_the_ends_of_the_slopes() {
    let solutions = solved("");
    assert_near(vrate(&solutions, "naive"), 100.0, "naive");
    assert_near(vrate(&solutions, "bandwidth"), 82.5, "the end of sufficient isolation");
    assert_near(vrate(&solutions, "isolated-bandwidth"), 82.5, "the end of the largest protected footprint");
    assert_near(vrate(&solutions, "isolation"), 42.5, "the end of the smallest difference");
    assert_near(vrate(&solutions, "rlat-99-q1"), 100.0, "q1");
    assert_near(vrate(&solutions, "rlat-99-q2"), 80.0, "q2");
    assert_near(vrate(&solutions, "rlat-99-q3"), 60.0, "q3");
    assert_near(vrate(&solutions, "rlat-99-q4"), 40.0, "q4");
}

#[test]
fn the_model_is_scaled_so_that_the_highest_vrate_is_100_percent() {
    let solutions = solved(":scale-max=0.9:name=half,vrate=25-50,rpct=99,wpct=0");
    let half = solutions[0].1.as_ref().unwrap();
    assert_eq!((half.scale, half.model.to_array()), (0.5, [500, 1000, 1500, 2000, 2500, 3000]));
    // The p99 at a vrate of 50 % is 1 ms + 4 ms · 30 / 80.
    let IocostQos { rpct, rlat, wpct, wlat, min, max } = half.qos;
    assert_eq!((rpct, wpct, wlat, min, max), (99.0, 0.0, 0, 50.0, 100.0));
    assert!((rlat as f64 - 2500.0).abs() < 50.0, "{rlat}");
    assert!((half.mof.unwrap() - 1.475).abs() < 0.02, "{half:?}");
}

#[test]
fn quarters_of_a_latency_are_ranges_that_it_lowers() {
    let solutions = solved("");
    let (_, q2) = solutions.iter().find(|(name, _)| name == "rlat-99-q2").unwrap();
    let q2 = q2.as_ref().unwrap();
    assert_eq!((q2.qos.rpct, q2.qos.wpct, q2.qos.max), (99.0, 0.0, 100.0));
    // From 60 to 80 % of the original model.
    assert!((q2.qos.min - 75.0).abs() < 3.0, "{q2:?}");
}

#[test]
fn a_footprint_is_largest_from_the_end_of_its_slope_on() {
    let solutions = solved("::name=mof,mof=max:name=amof,amof=max");
    assert_near(vrate(&solutions, "mof"), 62.5, "mof");
    assert_near(vrate(&solutions, "amof"), 42.5, "amof");
    let amof = solutions[1].1.as_ref().unwrap();
    assert_eq!((amof.qos.rpct, amof.qos.min, amof.qos.max), (0.0, 100.0, 100.0));
}

// A device with an isolation of 74 % at most had solutions that need more.
#[test]
fn nothing_counts_where_isolation_is_insufficient_everywhere() {
    let spec = BenchSpec::parse("iocost-tune").unwrap();
    let crate::spec::Properties::IocostTune(properties) = spec.properties else { panic!("expected iocost-tune") };
    for falls in [true, false] {
        let mut device = device();
        let isolation = device.series.get_mut(&Series::Isol).unwrap();
        let value = |x: f64| if falls && x > 80.0 { 0.5 } else { 0.7 };
        isolation.points.iter_mut().for_each(|point| point.y = value(point.x));
        let answer = solve(device, &properties);
        assert!(answer.series[&Series::Amof].line.is_none());
        let unsolved = answer.solutions.iter().filter(|one| one.solved.is_none()).map(|one| one.solution.name.as_str());
        let mut unsolved: Vec<&str> = unsolved.collect();
        unsolved.sort_unstable();
        assert_eq!(unsolved, ["bandwidth", "isolated-bandwidth", "isolation"], "{falls}");
    }
}

#[test]
fn without_protection_nothing_is_isolated() {
    let mut device = device();
    for series in [Series::Amof, Series::AmofDelta, Series::Isol] {
        device.series.insert(series, unfitted(Vec::new()));
    }
    let answer = solve(device, &IocostTuneProperties::default());
    let names: Vec<&str> =
        answer.solutions.iter().filter(|one| one.solved.is_none()).map(|one| one.solution.name.as_str()).collect();
    assert_eq!(names, ["bandwidth", "isolated-bandwidth", "isolation"]);
}

#[test]
fn a_noisy_slope_moves_the_solution_onto_the_flat_part() {
    let mut device = device();
    // Half of the values are off by 0.15, alternately.
    let noisy = device.series[&Series::Mof]
        .points
        .iter()
        .zip(0..)
        .map(|(point, index)| Point { y: point.y + [0.15, 0.0, -0.15, 0.0][index % 4], ..*point });
    let noisy = unfitted(noisy.collect());
    let spec = BenchSpec::parse("iocost-tune::name=mof,mof=max").unwrap();
    let crate::spec::Properties::IocostTune(properties) = spec.properties else { panic!("expected iocost-tune") };
    device.series.insert(Series::Mof, noisy);
    let answer = solve(device, &properties);
    let knee =
        answer.series[&Series::Mof].line.as_ref().map(|line| first_at(line, line.extremes().1).unwrap().0).unwrap();
    let solution = answer.solutions[0].solved.as_ref().unwrap().scale * 100.0;
    assert!(solution > knee * 1.05 && solution <= knee * 1.1 + 0.01, "{solution} above {knee}");
}
