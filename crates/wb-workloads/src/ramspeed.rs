//! ramspeed: plain passes over arrays that exceed the caches.

use std::collections::BTreeMap;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_kernels::Isa;
use wb_kernels::ramspeed::{Config, Mode, RamspeedReport, WordType};
use wb_model::outcome::Gate;
use wb_model::{Bytes, Class, Facts, Metric, MetricKey, Nanos, ParamValue, Params, Placement, Scope, Unit};
use wb_results::Conclusion;
use wb_stats::Estimate;
use wb_test::{Artefacts, Attempt, EvaluatedCell, Failure, Measurement, Rejection, TestInfo, TypedTest, WorkerContext};

use crate::native;

/// RAMspeed: copy, scale, add and triad over arrays of integers or floating-point numbers (R. Hollander, P. Bolotoff).
pub struct Ramspeed;

/// How a ramspeed cell is measured
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct RamspeedParams {
    /// Operation of a pass: copy c = a, scale c = 3a, add c = a + b, triad c = a + 3b
    #[schemars(extend("x-axis" = true, "x-default" = "each of them"))]
    mode: Option<Mode>,
    /// Type of the 64-bit words
    #[schemars(extend("x-axis" = true, "x-default" = "each of them"))]
    kind: Option<WordType>,
    /// Threads, each pinned to a separate core if there are enough
    #[schemars(range(min = 1), extend("x-axis" = true, "x-default" = "one, and one per core"))]
    threads: Option<u32>,
    /// Whether stores bypass the caches
    non_temporal: bool,
    /// Size of each of the three arrays, which are divided among the threads
    #[schemars(extend("minimum" = 64, "x-default" = "4 × the caches of the last level together, at least 64m, at most a sixth of the memory"))]
    array_size: Option<Bytes>,
    /// Instruction set of the measured loops
    #[schemars(extend("x-default" = "the widest of the worker's CPU"))]
    isa: Option<Isa>,
}

impl RamspeedParams {
    fn unsupported_array_size(&self) -> Option<String> {
        const LINE: u64 = 64;
        let (size, threads) = (self.array_size?, u64::from(self.threads.unwrap_or(1)));
        (size.0 < LINE.saturating_mul(threads)).then(|| {
            format!("`array-size`: {size} is less than a cache line of {LINE} bytes for each of {threads} threads")
        })
    }
}

const BANDWIDTH: &str = "bandwidth";

/// All modes, in the order of RAMspeed.
const MODES: [&str; 4] = ["copy", "scale", "add", "triad"];

/// Array size, if the memory allows it, where the caches are unknown: 4 times those of a large server.
const SIZE_FOR_UNKNOWN_CACHES: u64 = 1 << 30;

/// Total size of the last-level caches in bytes; none if unknown.
pub(crate) fn last_level_cache_bytes(facts: &Facts) -> Option<u64> {
    let level = facts.caches.iter().map(|cache| cache.level).max()?;
    Some(facts.caches.iter().filter(|cache| cache.level == level).map(|cache| cache.size.0).sum())
}

/// Default array size. It depends on the total memory, not on the available memory, so that it is the same every time.
pub(crate) fn default_array_size(facts: &Facts) -> ParamValue {
    const MEBI: u64 = 1 << 20;
    let limit = facts.memory.0 / 6 / MEBI * MEBI;
    let size = last_level_cache_bytes(facts).map_or(SIZE_FOR_UNKNOWN_CACHES, |caches| 4 * caches);
    let size = size.next_multiple_of(MEBI).max(64 * MEBI);
    ParamValue::Text(Bytes(if limit == 0 { size } else { size.min(limit) }).to_string())
}

#[async_trait]
impl TypedTest for Ramspeed {
    type Params = RamspeedParams;
    type Prepared = ();

    fn info(&self) -> TestInfo {
        TestInfo {
            name: "ramspeed",
            summary: "copy, scale, add and triad over large arrays; memory bandwidth",
            version: 2,
            scope: Scope::Sample,
            is_native: true,
        }
    }

    fn resolve(&self, _: &Params, facts: &Facts) -> BTreeMap<String, Vec<ParamValue>> {
        let texts = |names: &[&str]| names.iter().map(|name| ParamValue::Text((*name).to_owned())).collect();
        BTreeMap::from([
            ("mode".to_owned(), texts(&MODES)),
            ("kind".to_owned(), texts(&["integer", "floating"])),
            ("threads".to_owned(), native::default_threads(facts)),
            ("array-size".to_owned(), vec![default_array_size(facts)]),
            ("isa".to_owned(), vec![native::widest_isa(facts)]),
        ])
    }

    fn unsupported(&self, params: &RamspeedParams, _: &Placement, facts: &Facts) -> Option<String> {
        let stores = (params.non_temporal && facts.arch != "x86_64")
            .then(|| format!("{} has no non-temporal stores: measure with ordinary ones", facts.arch));
        let bytes = params.array_size.unwrap_or_default().0.saturating_mul(3);
        native::unsupported_isa(params.isa, facts)
            .or(stores)
            .or_else(|| native::unsupported_threads(params.threads, facts))
            .or_else(|| params.unsupported_array_size())
            .or_else(|| native::unsupported_memory(bytes, facts))
    }

    fn estimate(&self, params: &RamspeedParams, min_time: Nanos) -> Nanos {
        // Initialising three arrays and checking one, at about 1 GB/s; twice, as calibration does it too.
        let arrays = params.array_size.unwrap_or_default().0.saturating_mul(4);
        Nanos(min_time.0.saturating_add(min_time.0 / 8).saturating_add(arrays.saturating_mul(2)))
    }

    fn metrics(&self, _: &RamspeedParams) -> Vec<Metric> {
        vec![Metric::throughput(BANDWIDTH, "MB/s").primary(), native::residency_metric()]
    }

    async fn prepare(&self, _: &RamspeedParams, _: &WorkerContext) -> Result<(), Failure> {
        Ok(())
    }

    async fn sample(&self, params: &RamspeedParams, (): &mut (), attempt: &mut Attempt) -> Result<(), Failure> {
        let Attempt { context, .. } = &*attempt;
        let config = Config {
            mode: params.mode.unwrap_or(Mode::Copy),
            kind: params.kind.unwrap_or(WordType::Floating),
            non_temporal: params.non_temporal,
            bytes: params.array_size.unwrap_or_default().0,
            cpus: native::thread_cpus(params.threads.unwrap_or(1), &context.placement, &context.facts),
            isa: params.isa.unwrap_or(Isa::Scalar),
            huge_pages: native::huge_pages(&context.placement),
            work: native::requested_work(attempt),
        };
        let size = Bytes(config.bytes);
        let finding = match last_level_cache_bytes(&context.facts) {
            Some(caches) if config.bytes < 4 * caches => Some(format!(
                "arrays of {size} are smaller than 4 times the last-level caches ({}): \
                 part of the traffic is served by caches",
                Bytes(caches)
            )),
            Some(_) => None,
            None => Some(format!(
                "the size of the last-level caches is unknown: part of the traffic may be served by them, unless they are \
                 far smaller than the arrays of {size}"
            )),
        };
        finding.into_iter().for_each(|finding| attempt.add_finding(finding));
        attempt.add_json("config.json", &config)?;
        let report: RamspeedReport = native::exec(attempt, "ramspeed", &config).await?;
        attempt.record_work(report.passes);
        Ok(())
    }

    fn study(&self, params: &RamspeedParams, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
        let config: Config = artefacts.json("config.json")?;
        let report: RamspeedReport = native::report(artefacts)?;
        let mut measurement = Measurement::default()
            .with_value(Class::Throughput, BANDWIDTH, report.mb_per_s)
            .with_duration(report.seconds);
        native::record_residency(&mut measurement, report.residency, config.huge_pages);
        let requested = (params.mode, params.kind, params.isa, params.non_temporal);
        let measured = (Some(report.mode), Some(report.kind), Some(report.isa), report.non_temporal);
        measurement
            .require(requested == measured, Gate::Work, || format!("requested {requested:?}, measured {measured:?}"));
        let bytes = report.mode.arrays() * report.array_bytes * report.passes;
        measurement.require(report.bytes_moved == bytes, Gate::Work, || {
            format!("{} bytes moved in {} passes, expected {bytes}", report.bytes_moved, report.passes)
        });
        let words = report.array_bytes / 8;
        measurement.require(report.check.words == words && report.check.mismatches == 0, Gate::Answer, || {
            format!(
                "{} of {} checked words are wrong, of {words} in the array",
                report.check.mismatches, report.check.words
            )
        });
        let by_time = bytes as f64 / report.seconds / 1e6;
        measurement.require((by_time / report.mb_per_s - 1.0).abs() < 1e-6, Gate::Plausibility, || {
            format!("reported {} MB/s, but {bytes} bytes in {} s are {by_time} MB/s", report.mb_per_s, report.seconds)
        });
        let slowest = report.thread_seconds.iter().copied().fold(0.0, f64::max);
        measurement.require(slowest <= report.seconds, Gate::Plausibility, || {
            format!("a thread ran {slowest} s, longer than the {} s of the report", report.seconds)
        });
        native::check_effort(&mut measurement, report.probe, report.passes, report.seconds);
        measurement.add_provenance("isa", report.isa);
        measurement.add_provenance("passes", report.passes);
        Ok(measurement)
    }

    fn solve(&self, cells: &[EvaluatedCell<'_>]) -> Vec<Conclusion> {
        averages(cells).into_iter().chain(native::scaling(cells, BANDWIDTH, "MB/s")).collect()
    }
}

/// RAMspeed's average: the mean of the four modes, for each set of cells that differ only in their mode.
fn averages(cells: &[EvaluatedCell<'_>]) -> Vec<Conclusion> {
    let copies = cells.iter().filter(|cell| cell.case.get("mode") == Some(MODES[0]));
    let bandwidth = MetricKey::new(Class::Throughput, BANDWIDTH);
    let conclusion = |copy: &EvaluatedCell<'_>| {
        let group = copy.case.without("mode");
        let cell = |mode: &str| {
            let same =
                |cell: &&EvaluatedCell<'_>| cell.case.get("mode") == Some(mode) && cell.case.without("mode") == group;
            cells.iter().find(same)
        };
        let modes: Vec<&EvaluatedCell<'_>> = MODES.iter().map(|mode| cell(mode)).collect::<Option<_>>()?;
        let values: Vec<Estimate> =
            modes.iter().map(|cell| cell.medians.get(&bandwidth).copied()).collect::<Option<_>>()?;
        let unit = Unit::new("MB/s");
        let parts: Vec<String> =
            MODES.iter().zip(&values).map(|(mode, of)| format!("{mode} {}", unit.quantity(of.value))).collect();
        let mean = Estimate::mean(&values, |a, b| modes[a].median_correlation(modes[b], &bandwidth))?;
        Some(Conclusion {
            cells: String::new(),
            name: format!("average ({group})"),
            value: mean.value,
            interval: mean.interval.ok(),
            unit,
            explanation: format!("the mean of {}{}", parts.join(", "), describe_missing(&mean)),
        })
    };
    copies.filter_map(conclusion).collect()
}

/// Why an average has no interval, as a suffix; empty if it has one.
fn describe_missing(mean: &Estimate) -> String {
    mean.interval.err().map(|reason| format!("; no interval: {reason}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use wb_model::facts::{Cache, CacheKind};
    use wb_model::{Case, Validity};
    use wb_stats::NoInterval;

    use super::*;
    use wb_test_artefacts::{artefact_folder, failed_gate, value};

    fn params() -> RamspeedParams {
        RamspeedParams {
            mode: Some(Mode::Triad),
            kind: Some(WordType::Floating),
            threads: Some(1),
            array_size: Some(Bytes(1 << 20)),
            isa: Some(Isa::Sse2),
            ..RamspeedParams::default()
        }
    }

    const CONFIG: &str = r#"{"mode":"triad","kind":"floating","non-temporal":false,"bytes":1048576,"cpus":[0],"isa":"sse2","huge-pages":"inherit","work":{"seconds":0.5}}"#;
    const REPORT: &str = r#"{"mode":"triad","kind":"floating","non-temporal":false,"threads":1,"isa":"sse2","array-bytes":1048576,"passes":1000,"bytes-moved":3145728000,"seconds":0.5,"thread-seconds":[0.4999],"mb-per-s":6291.456,"check":{"words":131072,"mismatches":0},"residency":{"bytes":3145728,"huge-bytes":0},"probe":{"iterations":100,"seconds":0.05}}"#;

    fn study(report: &str) -> Result<Measurement, Rejection> {
        let folder = artefact_folder(&[("config.json", CONFIG), ("report.stdout", report)]);
        Ramspeed.study(&params(), &Artefacts::new(folder.path()))
    }

    #[test]
    fn a_correct_report_is_valid() {
        let measurement = study(REPORT).unwrap();
        assert_eq!(measurement.validity, Validity::Valid);
        assert_eq!(value(&measurement, "throughput/bandwidth"), 6291.456);
        assert_eq!(measurement.provenance["isa"], "sse2");
        assert_eq!(measurement.intervals, Some(0.5));
    }

    #[test]
    fn incorrect_or_implausible_reports_are_invalid() {
        for (from, to, gate) in [
            (r#""mismatches":0"#, r#""mismatches":7"#, Gate::Answer),
            (r#""words":131072"#, r#""words":0"#, Gate::Answer),
            (r#""isa":"sse2""#, r#""isa":"avx2""#, Gate::Work),
            ("3145728000", "1048576000", Gate::Work),
            ("6291.456", "6.291456", Gate::Plausibility),
            ("[0.4999]", "[0.6]", Gate::Plausibility),
            (r#""seconds":0.05}"#, r#""seconds":0.5}"#, Gate::Effort),
        ] {
            let changed = REPORT.replace(from, to);
            assert_ne!(changed, REPORT);
            assert_eq!(failed_gate(&study(&changed).unwrap()), Some(gate), "{from} → {to}");
        }
    }

    #[test]
    fn truncated_and_unrelated_reports_are_rejected() {
        for report in ["", "{}", "garbage", &REPORT[..REPORT.len() / 2], &REPORT.replace("0.4999", "NaN")] {
            assert_eq!(study(report).unwrap_err().gate, Gate::Output);
        }
    }

    #[test]
    fn arrays_smaller_than_a_cache_line_per_thread_are_unsupported() {
        let reason = |bytes, threads| {
            RamspeedParams { array_size: Some(Bytes(bytes)), threads: Some(threads), ..params() }
                .unsupported_array_size()
        };
        assert!(reason(3, 1).unwrap().starts_with("`array-size`: 3 is less than a cache line"));
        assert!(reason(64, 2).is_some() && reason(128, 2).is_none());
    }

    #[test]
    fn default_array_size_exceeds_the_caches_and_leaves_memory_free() {
        let cache = |level, size| Cache { level, kind: CacheKind::Unified, size: Bytes(size), cpus: Vec::new() };
        let caches = vec![cache(2, 1 << 20), cache(3, 32 << 20), cache(3, 32 << 20)];
        let facts = Facts { caches, memory: Bytes(16 << 30), ..Facts::default() };
        assert_eq!(default_array_size(&facts).to_string(), "256m");
        assert_eq!(default_array_size(&Facts { memory: Bytes(600 << 20), ..facts }).to_string(), "100m");
        let unknown = Facts { memory: Bytes(16 << 30), ..Facts::default() };
        assert_eq!(default_array_size(&unknown).to_string(), "1g", "larger than caches may be");
        assert_eq!(default_array_size(&Facts { memory: Bytes(600 << 20), ..unknown }).to_string(), "100m");
    }

    #[test]
    fn the_average_is_over_all_four_modes() {
        let key = MetricKey::new(Class::Throughput, BANDWIDTH);
        let (params, medians) = (Params::new(), |value| BTreeMap::from([(key.clone(), value)]));
        let case = |mode: &str, kind: &str| format!("kind={kind},mode={mode},threads=1").parse::<Case>().unwrap();
        let modes = ["copy", "scale", "add", "triad"];
        let cases: Vec<Case> =
            modes.iter().map(|mode| case(mode, "integer")).chain([case("copy", "floating")]).collect();
        let cell = |(index, case)| EvaluatedCell {
            case,
            params: &params,
            medians: medians(Estimate { value: index as f64, interval: Err(NoInterval::TooFewSamples { count: 1 }) }),
            values_by_round: BTreeMap::new(),
            curves: Vec::new(),
        };
        let cells: Vec<EvaluatedCell<'_>> = cases.iter().enumerate().map(cell).collect();
        let conclusions = averages(&cells);
        assert_eq!(conclusions.len(), 1);
        assert_eq!((conclusions[0].value, conclusions[0].name.as_str()), (1.5, "average (kind=integer,threads=1)"));
        let reason = "no interval: a median of 1 sample has none, it takes 6";
        assert!(conclusions[0].explanation.ends_with(reason), "{}", conclusions[0].explanation);
    }
}
