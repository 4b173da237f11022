//! Built-in kernels as workloads: `weighbridge-agent exec KERNEL CONFIG` in a child process, run like any other program.

use serde::Serialize;
use serde::de::DeserializeOwned;
use wb_kernels::{HugePagePolicy, Isa, Probe, Residency, Work};
use wb_model::outcome::Gate;
use wb_model::{Class, Facts, HugePages, Metric, MetricKey, ParamValue, Placement, pluralize};
use wb_results::Conclusion;
use wb_stats::Estimate;
use wb_test::{Artefacts, Attempt, EvaluatedCell, Failure, Measurement, Rejection};

pub const REPORT: &str = "report";

/// Runs a kernel, and records and returns its report.
pub async fn exec<R: DeserializeOwned>(
    attempt: &mut Attempt,
    kernel: &str,
    config: &impl Serialize,
) -> Result<R, Failure> {
    exec_as(attempt, REPORT, kernel, config).await
}

/// Like [`exec`], with a name for the report, for tests that run several kernels.
pub async fn exec_as<R: DeserializeOwned>(
    attempt: &mut Attempt,
    name: &str,
    kernel: &str,
    config: &impl Serialize,
) -> Result<R, Failure> {
    let config = serde_json::to_string(config).map_err(|error| Failure::refused(error.to_string()))?;
    let program = attempt.context.worker().program().to_owned();
    // Kernels pin their own threads and request their own pages; the rest of the placement applies to the process.
    let requested = attempt.context.placement.clone();
    let placement = Placement { huge_pages: HugePages::Inherit, ..requested.clone() };
    let command = attempt.context.command([program.as_str(), "exec", kernel, &config]).placement(placement);
    let finished = attempt.run_with_placement(name, command, &requested).await?;
    serde_json::from_slice(&finished.stdout)
        .map_err(|error| Failure::crashed(format!("{kernel}: invalid JSON in its report: {error}")))
}

pub fn report<R: DeserializeOwned>(artefacts: &Artefacts) -> Result<R, Rejection> {
    report_as(artefacts, REPORT)
}

pub fn report_as<R: DeserializeOwned>(artefacts: &Artefacts, name: &str) -> Result<R, Rejection> {
    artefacts.json(&format!("{name}.stdout"))
}

/// Amount of work of this attempt: that of earlier ones, or as much as fills the minimum time.
pub fn requested_work(attempt: &Attempt) -> Work {
    attempt.work.map_or(Work::Seconds(attempt.min_time.seconds()), Work::Iterations)
}

/// One CPU per thread: the CPUs of the placement, or all CPUs, one of each core first.
pub fn thread_cpus(threads: u32, placement: &Placement, facts: &Facts) -> Vec<usize> {
    let allowed = if placement.cpus.is_empty() { facts.cpus_for(facts.cpus.len()) } else { placement.cpus.clone() };
    allowed
        .iter()
        .cycle()
        .take(if allowed.is_empty() { 0 } else { threads as usize })
        .map(|cpu| *cpu as usize)
        .collect()
}

/// Default numbers of threads: one, and one per core if there are several cores.
pub fn default_threads(facts: &Facts) -> Vec<ParamValue> {
    let cores = facts.one_cpu_per_core().len().max(1) as i64;
    let threads = if cores == 1 { vec![1] } else { vec![1, cores] };
    threads.into_iter().map(ParamValue::Integer).collect()
}

pub fn huge_pages(placement: &Placement) -> HugePagePolicy {
    match placement.huge_pages {
        HugePages::Inherit => HugePagePolicy::Inherit,
        HugePages::Always => HugePagePolicy::Always,
        HugePages::Try => HugePagePolicy::Try,
        HugePages::Never => HugePagePolicy::Never,
    }
}

/// Instruction sets of a machine, narrowest first.
pub fn available_isas(facts: &Facts) -> Vec<Isa> {
    let has = |flags: &[&str]| flags.iter().all(|flag| facts.cpu_flags.contains(*flag));
    let is_available = |isa: &Isa| match isa {
        Isa::Scalar => true,
        Isa::Sse2 => has(&["sse2"]),
        Isa::Avx2 => has(&["avx2", "fma"]),
        Isa::Avx512 => has(&["avx512f", "avx512vl", "avx512dq", "avx512bw"]),
    };
    Isa::ALL.into_iter().filter(is_available).collect()
}

pub fn widest_isa(facts: &Facts) -> ParamValue {
    ParamValue::Text(available_isas(facts).last().map_or("scalar", |isa| isa.name()).to_owned())
}

pub fn unsupported_isa(isa: Option<Isa>, facts: &Facts) -> Option<String> {
    let isa = isa?;
    let available: Vec<&str> = available_isas(facts).iter().map(|isa| isa.name()).collect();
    (!available.contains(&isa.name()))
        .then(|| format!("unsupported instruction set {isa}: this machine supports {}", available.join(", ")))
}

/// Reason against too many threads, if any: with more than two per CPU a test measures the scheduler.
pub fn unsupported_threads(threads: Option<u32>, facts: &Facts) -> Option<String> {
    let (threads, cpus) = (threads? as usize, facts.cpus.len());
    (cpus > 0 && threads > 2 * cpus)
        .then(|| format!("{threads} threads exceed two per CPU on {}", pluralize(cpus, "CPU")))
}

pub fn unsupported_memory(bytes: u64, facts: &Facts) -> Option<String> {
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let available = facts.memory_available.0;
    (bytes > available)
        .then(|| format!("{:.1} GiB of memory required, {:.1} GiB available", gib(bytes), gib(available)))
}

/// The metric set by [`record_residency`].
pub fn residency_metric() -> Metric {
    Metric::check("huge-page-residency", "%")
}

/// Percentage of the arrays that has to be on requested huge pages: the kernel may have none for the last few.
const MIN_RESIDENCY: f64 = 90.0;

/// Records the share of the arrays that was on huge pages. If it contradicts the requested policy, the sample is
/// rejected, unless huge pages were only to be tried: it would count under a parameter that it does not have.
pub fn record_residency(measurement: &mut Measurement, memory: Residency, requested: HugePagePolicy) {
    let share = memory.huge_bytes as f64 / memory.bytes.max(1) as f64 * 100.0;
    measurement.set(Class::Check, "huge-page-residency", share);
    let observed = format!("{share:.0} % of the arrays were on huge pages");
    match requested {
        HugePagePolicy::Always if share < MIN_RESIDENCY => measurement.reject(
            Gate::Work,
            format!("{observed}, requested `huge-pages=always`: `huge-pages=try` measures with what there is"),
        ),
        HugePagePolicy::Never if share > 0.0 => {
            measurement.reject(Gate::Work, format!("{observed}, requested `huge-pages=never`"));
        }
        HugePagePolicy::Try if share < MIN_RESIDENCY => {
            measurement.findings.push(format!("{observed}, requested `huge-pages=try`"));
        }
        _ => {}
    }
}

/// Rejects a measurement whose run time is not proportional to its work: the time per iteration must agree with the
/// calibration's within a factor of 4.
pub fn check_effort(measurement: &mut Measurement, probe: Probe, iterations: u64, seconds: f64) {
    const MAX_RATIO: f64 = 4.0;
    // A short probe measures mostly the start of threads.
    let is_conclusive = probe.seconds >= 1e-4 && iterations >= 8 * probe.iterations && probe.iterations > 0;
    let per_iteration = seconds / iterations.max(1) as f64;
    let ratio = per_iteration / (probe.seconds / probe.iterations.max(1) as f64);
    measurement.require(!is_conclusive || (1.0 / MAX_RATIO..=MAX_RATIO).contains(&ratio), Gate::Effort, || {
        format!(
            "{iterations} iterations took {ratio:.2} times as long as {} calibration iterations predict",
            probe.iterations
        )
    });
}

/// Speed-up of the highest number of threads over one thread by a throughput in this unit, for each set of cells that
/// differ only in their threads.
pub fn scaling(cells: &[EvaluatedCell<'_>], throughput: &str, unit: &str) -> Vec<Conclusion> {
    let metric = MetricKey::new(Class::Throughput, throughput);
    let unit = wb_model::Unit::new(unit);
    let threads = |cell: &EvaluatedCell<'_>| cell.case.get("threads").and_then(|threads| threads.parse::<u32>().ok());
    let single = cells.iter().filter(|cell| threads(cell) == Some(1));
    let conclusion = |single_cell: &EvaluatedCell<'_>| {
        let group = single_cell.case.without("threads");
        let group_cells = cells.iter().filter(|cell| cell.case.without("threads") == group);
        let largest = group_cells.max_by_key(|cell| threads(cell))?;
        let (threads, single_value, largest_value) =
            (threads(largest)?, single_cell.medians.get(&metric)?, largest.medians.get(&metric)?);
        let speedup = largest_value.ratio_to(single_value).filter(|_| threads > 1)?;
        Some(Conclusion {
            cells: String::new(),
            name: format!("speed-up of {threads} threads over one ({group})"),
            value: speedup.value,
            interval: speedup.interval.ok(),
            unit: wb_model::Unit::new("×"),
            explanation: format!(
                "{} over {}; {}",
                unit.quantity(largest_value.value),
                unit.quantity(single_value.value),
                describe_efficiency(&speedup, threads)
            ),
        })
    };
    single.filter_map(conclusion).collect()
}

/// Describes which part of the perfect speed-up the interval of a speed-up allows for.
fn describe_efficiency(speedup: &Estimate, threads: u32) -> String {
    let perfect = f64::from(threads);
    let percent = |value: f64| format!("{:.0}", value / perfect * 100.0);
    match speedup.interval {
        Err(reason) => format!("no interval to relate it to a perfect {threads}: {reason}"),
        Ok(ends) => {
            let (low, high) = (percent(ends.low), percent(ends.high));
            let range = if low == high { format!("{low} %") } else { format!("{low} to {high} %") };
            let note = if ends.contains(perfect) { ", so it may be perfect" } else { "" };
            format!("{range} of a perfect {threads}{note}")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use wb_stats::NoInterval;

    use super::*;
    use wb_test_artefacts::failed_gate;

    /// The speed-up of cells with one and two threads and these medians.
    fn speed_up(medians: [Estimate; 2]) -> Conclusion {
        let key = MetricKey::new(Class::Throughput, "speed");
        let params = wb_model::Params::new();
        let cases = ["threads=1", "threads=2"].map(|case| case.parse::<wb_model::Case>().unwrap());
        let cell = |(case, median)| EvaluatedCell {
            case,
            params: &params,
            medians: BTreeMap::from([(key.clone(), median)]),
            values_by_round: BTreeMap::new(),
            curves: Vec::new(),
        };
        let cells: Vec<EvaluatedCell<'_>> = cases.iter().zip(medians).map(cell).collect();
        scaling(&cells, "speed", "mflops").remove(0)
    }

    fn estimate(low: f64, value: f64, high: f64) -> Estimate {
        Estimate { value, interval: Ok(wb_stats::Interval { low, high, confidence: 0.97 }) }
    }

    #[test]
    fn the_efficiency_of_a_speed_up_is_the_range_that_its_interval_allows_for() {
        let noisy = speed_up([estimate(915.0, 1000.0, 1085.0), estimate(1510.0, 2090.0, 2670.0)]);
        let ends = noisy.interval.unwrap();
        assert!(ends.low < 1.6 && noisy.value == 2.09 && ends.high > 2.6, "{noisy:?}");
        assert_eq!(noisy.explanation, "2.09 Gflops over 1 Gflops; 75 to 136 % of a perfect 2, so it may be perfect");
        let exact = speed_up([estimate(999.0, 1000.0, 1001.0), estimate(1498.0, 1500.0, 1502.0)]);
        assert_eq!(exact.explanation, "1.50 Gflops over 1 Gflops; 75 % of a perfect 2");
    }

    // Too few samples was the only reason given, also where one of many was not above zero.
    #[test]
    fn a_speed_up_without_an_interval_says_why() {
        let single = estimate(999.0, 1000.0, 1001.0);
        let few = Estimate { value: 1500.0, interval: Err(NoInterval::TooFewSamples { count: 5 }) };
        for (double, reason) in [
            (few, "a median of 5 samples has none, it takes 6"),
            (estimate(0.0, 1500.0, 1600.0), "a ratio requires samples above zero"),
        ] {
            let speed_up = speed_up([single, double]);
            let explanation = format!("1.50 Gflops over 1 Gflops; no interval to relate it to a perfect 2: {reason}");
            assert_eq!((speed_up.interval, speed_up.explanation), (None, explanation));
        }
    }

    // Samples without the requested pages counted.
    #[test]
    fn arrays_on_other_pages_than_requested_count_only_if_huge_pages_were_to_be_tried() {
        use HugePagePolicy::{Always, Inherit, Never, Try};
        let of = |huge_bytes, requested| {
            let mut measurement = Measurement::default();
            record_residency(&mut measurement, Residency { bytes: 100, huge_bytes }, requested);
            (failed_gate(&measurement), measurement.findings.len())
        };
        for (requested, huge_bytes, gate, findings) in [
            (Always, 0, Some(Gate::Work), 0),
            (Always, 50, Some(Gate::Work), 0),
            (Always, 95, None, 0),
            (Try, 0, None, 1),
            (Try, 100, None, 0),
            (Never, 0, None, 0),
            (Never, 1, Some(Gate::Work), 0),
            (Inherit, 0, None, 0),
            (Inherit, 100, None, 0),
        ] {
            assert_eq!(of(huge_bytes, requested), (gate, findings), "{requested:?}, {huge_bytes} % on huge pages");
        }
    }
}
