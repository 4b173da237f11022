//! ramspeed: plain passes over arrays that exceed the caches.

use std::collections::BTreeMap;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_kernels::Isa;
use wb_kernels::ramspeed::{Config, Mode, Report, WordType};
use wb_model::outcome::Gate;
use wb_model::{Bytes, Class, Facts, Metric, Nanos, ParamValue, Params as Given, Placement, Scope, Unit};

use crate::{
    Artefacts, Attempt, Conclusion, Failure, Measurement, Rejection, StudiedCell, TestInfo, TypedTest, WorkerContext,
    native,
};

/// RAMspeed: copy, scale, add and triad over arrays of integers or floating-point numbers (R. Hollander, P. Bolotoff).
pub struct Ramspeed;

/// How a ramspeed cell is measured
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Params {
    /// What a pass does: c = a, c = 3a, c = a + b, c = a + 3b
    #[schemars(extend("x-axis" = true, "x-resolved" = "each of them"))]
    mode: Option<Mode>,
    /// What the 64-bit words are
    #[schemars(extend("x-axis" = true, "x-resolved" = "each of them"))]
    kind: Option<WordType>,
    /// Threads, each pinned to a core of its own while there are enough
    #[schemars(range(min = 1), extend("x-axis" = true, "x-resolved" = "one, and one per core"))]
    threads: Option<u32>,
    /// Whether stores go past the caches
    non_temporal: bool,
    /// Size of each of the three arrays, which the threads share
    #[schemars(extend("minimum" = 64, "x-resolved" = "4 × the caches of the last level together, at least 64m, at most a sixth of the memory"))]
    array_size: Option<Bytes>,
    /// Instruction set of the measured loops
    #[schemars(extend("x-resolved" = "the widest of the worker's CPU"))]
    isa: Option<Isa>,
}

impl Params {
    /// Why its arrays cannot be shared among its threads.
    fn unsupported_array_size(&self) -> Option<String> {
        const LINE: u64 = 64;
        let (size, threads) = (self.array_size?, u64::from(self.threads.unwrap_or(1)));
        (size.0 < LINE.saturating_mul(threads)).then(|| {
            format!("`array-size`: {size} is less than a cache line of {LINE} bytes for each of {threads} threads")
        })
    }
}

/// All modes, in the order in which RAMspeed has them.
const MODES: [&str; 4] = ["copy", "scale", "add", "triad"];

/// The size of the last level's caches together; zero where none is known.
pub(crate) fn last_level_cache_bytes(facts: &Facts) -> u64 {
    let level = facts.caches.iter().map(|cache| cache.level).max();
    facts.caches.iter().filter(|cache| Some(cache.level) == level).map(|cache| cache.size.0).sum()
}

/// The array size where none is given: the memory in all decides, not what is free, so that it is the same every time.
pub(crate) fn default_array_size(facts: &Facts) -> ParamValue {
    const MEBI: u64 = 1 << 20;
    let most = facts.memory.0 / 6 / MEBI * MEBI;
    let size = (4 * last_level_cache_bytes(facts)).next_multiple_of(MEBI).max(64 * MEBI);
    ParamValue::Text(Bytes(if most == 0 { size } else { size.min(most) }).to_string())
}

/// One thread, and one per core where there are several.
pub(crate) fn default_threads(facts: &Facts) -> Vec<ParamValue> {
    let cores = facts.one_cpu_per_core().len().max(1) as i64;
    let threads = if cores == 1 { vec![1] } else { vec![1, cores] };
    threads.into_iter().map(ParamValue::Integer).collect()
}

#[async_trait]
impl TypedTest for Ramspeed {
    type Params = Params;
    type Prepared = ();

    fn info(&self) -> TestInfo {
        TestInfo {
            name: "ramspeed",
            summary: "copy, scale, add and triad over large arrays; memory bandwidth",
            version: 2,
            scope: Scope::Sample,
        }
    }

    fn resolve(&self, _: &Given, facts: &Facts) -> BTreeMap<String, Vec<ParamValue>> {
        let texts = |names: &[&str]| names.iter().map(|name| ParamValue::Text((*name).to_owned())).collect();
        BTreeMap::from([
            ("mode".to_owned(), texts(&MODES)),
            ("kind".to_owned(), texts(&["integer", "floating"])),
            ("threads".to_owned(), default_threads(facts)),
            ("array-size".to_owned(), vec![default_array_size(facts)]),
            ("isa".to_owned(), vec![native::widest_isa(facts)]),
        ])
    }

    fn unsupported(&self, params: &Params, _: &Placement, facts: &Facts) -> Option<String> {
        let stores = (params.non_temporal && facts.arch != "x86_64")
            .then(|| format!("{} has no non-temporal stores: measure with ordinary ones", facts.arch));
        let bytes = params.array_size.unwrap_or_default().0.saturating_mul(3);
        native::unsupported_isa(params.isa, facts)
            .or(stores)
            .or_else(|| native::unsupported_threads(params.threads, facts))
            .or_else(|| params.unsupported_array_size())
            .or_else(|| native::unsupported_memory(bytes, facts))
    }

    fn estimate(&self, params: &Params, min_time: Nanos) -> Nanos {
        // Making three arrays and checking one, at about 1 GB/s, a few times: calibration does it too.
        let arrays = params.array_size.unwrap_or_default().0.saturating_mul(4);
        Nanos(min_time.0.saturating_add(min_time.0 / 8).saturating_add(arrays.saturating_mul(2)))
    }

    fn metrics(&self, _: &Params) -> Vec<Metric> {
        vec![Metric::throughput("bandwidth", "MB/s").primary(), native::residency_metric()]
    }

    async fn prepare(&self, _: &Params, _: &WorkerContext) -> Result<(), Failure> {
        Ok(())
    }

    async fn sample(&self, params: &Params, (): &mut (), attempt: &mut Attempt) -> Result<(), Failure> {
        let Attempt { context: site, .. } = &*attempt;
        let config = Config {
            mode: params.mode.unwrap_or(Mode::Copy),
            kind: params.kind.unwrap_or(WordType::Floating),
            non_temporal: params.non_temporal,
            bytes: params.array_size.unwrap_or_default().0,
            cpus: native::thread_cpus(params.threads.unwrap_or(1), &site.placement, &site.facts),
            isa: params.isa.unwrap_or(Isa::Scalar),
            huge_pages: native::huge_pages(&site.placement),
            work: native::requested_work(attempt),
        };
        let caches = last_level_cache_bytes(&site.facts);
        if config.bytes < 4 * caches {
            let (size, caches) = (Bytes(config.bytes), Bytes(caches));
            attempt.add_finding(format!(
                "arrays of {size} are less than 4 times the caches of the last level ({caches}): \
                 part of the traffic ends in them"
            ));
        }
        attempt.add_artefact("config.json", serde_json::to_vec(&config).unwrap_or_default());
        let report: Report = native::exec(attempt, "ramspeed", &config).await?;
        attempt.record_work(report.passes);
        Ok(())
    }

    fn study(&self, params: &Params, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
        let config: Config = artefacts.json("config.json")?;
        let report: Report = native::report(artefacts)?;
        let mut measured = Measurement::default()
            .with_value(Class::Throughput, "bandwidth", report.mb_per_s)
            .with_duration(report.seconds);
        native::record_residency(&mut measured, report.residency, config.huge_pages);
        let asked = (params.mode, params.kind, params.isa, params.non_temporal);
        let done = (Some(report.mode), Some(report.kind), Some(report.isa), report.non_temporal);
        measured.require(asked == done, Gate::Work, || format!("{asked:?} was asked for, {done:?} was done"));
        let bytes = report.mode.arrays() * report.array_bytes * report.passes;
        measured.require(report.bytes_moved == bytes, Gate::Work, || {
            format!("{} bytes were moved in {} passes, {bytes} should be", report.bytes_moved, report.passes)
        });
        let words = report.array_bytes / 8;
        measured.require(report.check.words == words && report.check.mismatches == 0, Gate::Answer, || {
            format!("{} of {} words are wrong, {words} were made", report.check.mismatches, report.check.words)
        });
        let by_time = bytes as f64 / report.seconds / 1e6;
        measured.require((by_time / report.mb_per_s - 1.0).abs() < 1e-6, Gate::Possible, || {
            format!("{} MB/s, and {bytes} bytes in {} s are {by_time} MB/s", report.mb_per_s, report.seconds)
        });
        let slowest = report.thread_seconds.iter().copied().fold(0.0, f64::max);
        measured.require(slowest <= report.seconds, Gate::Possible, || {
            format!("a thread took {slowest} s of {} s", report.seconds)
        });
        native::check_effort(&mut measured, report.probe, report.passes, report.seconds);
        measured.add_provenance("isa", report.isa);
        measured.add_provenance("passes", report.passes);
        Ok(measured)
    }

    fn solve(&self, cells: &[StudiedCell<'_>]) -> Vec<Conclusion> {
        averages(cells).into_iter().chain(native::scaling(cells, "throughput/bandwidth", "MB/s")).collect()
    }
}

/// RAMspeed's average: the mean of the four modes, for every set of cells that differ in their mode alone.
fn averages(cells: &[StudiedCell<'_>]) -> Vec<Conclusion> {
    let copies = cells.iter().filter(|cell| cell.case.get("mode") == Some(MODES[0]));
    let answer = |copy: &StudiedCell<'_>| {
        let group = copy.case.without("mode");
        let of = |mode: &str| {
            let same =
                |cell: &&StudiedCell<'_>| cell.case.get("mode") == Some(mode) && cell.case.without("mode") == group;
            cells.iter().find(same)?.medians.get("throughput/bandwidth").copied()
        };
        let values: Vec<f64> = MODES.iter().map(|mode| of(mode)).collect::<Option<_>>()?;
        let unit = Unit::new("MB/s");
        let parts: Vec<String> =
            MODES.iter().zip(&values).map(|(mode, value)| format!("{mode} {}", unit.quantity(*value))).collect();
        Some(Conclusion {
            cells: String::new(),
            name: format!("average ({group})"),
            value: values.iter().sum::<f64>() / values.len() as f64,
            unit,
            explanation: format!("the mean of {}", parts.join(", ")),
        })
    };
    copies.filter_map(answer).collect()
}

#[cfg(test)]
mod tests {
    use wb_model::facts::{Cache, CacheKind};
    use wb_model::{Case, Validity};

    use super::*;
    use crate::testing::{artefact_folder, failed_gate};

    fn params() -> Params {
        Params {
            mode: Some(Mode::Triad),
            kind: Some(WordType::Floating),
            threads: Some(1),
            array_size: Some(Bytes(1 << 20)),
            isa: Some(Isa::Sse2),
            ..Params::default()
        }
    }

    const CONFIG: &str = r#"{"mode":"triad","kind":"floating","non-temporal":false,"bytes":1048576,"cpus":[0],"isa":"sse2","huge-pages":"inherit","work":{"seconds":0.5}}"#;
    const REPORT: &str = r#"{"mode":"triad","kind":"floating","non-temporal":false,"threads":1,"isa":"sse2","array-bytes":1048576,"passes":1000,"bytes-moved":3145728000,"seconds":0.5,"thread-seconds":[0.4999],"mb-per-s":6291.456,"check":{"words":131072,"mismatches":0},"memory":{"bytes":3145728,"huge-bytes":0},"probe":{"iterations":100,"seconds":0.05}}"#;

    fn study(report: &str) -> Result<Measurement, Rejection> {
        let folder = artefact_folder(&[("config.json", CONFIG), ("report.stdout", report)]);
        Ramspeed.study(&params(), &Artefacts::new(folder.path()))
    }

    #[test]
    fn a_right_report_is_valid() {
        let measured = study(REPORT).unwrap();
        assert_eq!(measured.validity, Validity::Valid);
        assert_eq!(measured.values["throughput/bandwidth"], 6291.456);
        assert_eq!(measured.provenance["isa"], "sse2");
        assert_eq!(measured.seconds, Some(0.5));
    }

    #[test]
    fn what_was_not_done_right_does_not_count() {
        for (from, to, gate) in [
            (r#""mismatches":0"#, r#""mismatches":7"#, Gate::Answer),
            (r#""words":131072"#, r#""words":0"#, Gate::Answer),
            (r#""isa":"sse2""#, r#""isa":"avx2""#, Gate::Work),
            ("3145728000", "1048576000", Gate::Work),
            ("6291.456", "6.291456", Gate::Possible),
            ("[0.4999]", "[0.6]", Gate::Possible),
            (r#""seconds":0.05}"#, r#""seconds":0.5}"#, Gate::Effort),
        ] {
            let changed = REPORT.replace(from, to);
            assert_ne!(changed, REPORT);
            assert_eq!(failed_gate(&study(&changed).unwrap()), Some(gate), "{from} → {to}");
        }
    }

    #[test]
    fn torn_and_foreign_reports_are_rejected() {
        for report in ["", "{}", "garbage", &REPORT[..REPORT.len() / 2], &REPORT.replace("0.4999", "NaN")] {
            assert_eq!(study(report).unwrap_err().gate, Gate::Output);
        }
    }

    #[test]
    fn arrays_smaller_than_a_line_for_each_thread_are_told() {
        let of = |bytes, threads| {
            Params { array_size: Some(Bytes(bytes)), threads: Some(threads), ..params() }.unsupported_array_size()
        };
        assert!(of(3, 1).unwrap().starts_with("`array-size`: 3 is less than a cache line"));
        assert!(of(64, 2).is_some() && of(128, 2).is_none());
    }

    #[test]
    fn arrays_exceed_the_caches_and_leave_memory_to_others() {
        let cache = |level, size| Cache { level, kind: CacheKind::Unified, size: Bytes(size), cpus: Vec::new() };
        let caches = vec![cache(2, 1 << 20), cache(3, 32 << 20), cache(3, 32 << 20)];
        let facts = Facts { caches, memory: Bytes(16 << 30), ..Facts::default() };
        assert_eq!(default_array_size(&facts).to_string(), "256m");
        assert_eq!(default_array_size(&Facts { memory: Bytes(600 << 20), ..facts }).to_string(), "100m");
        assert_eq!(default_array_size(&Facts::default()).to_string(), "64m");
    }

    #[test]
    fn the_average_is_that_of_all_four_modes() {
        let (params, medians) = (Given::new(), |value| BTreeMap::from([("throughput/bandwidth".to_owned(), value)]));
        let case = |mode: &str, kind: &str| format!("kind={kind},mode={mode},threads=1").parse::<Case>().unwrap();
        let modes = ["copy", "scale", "add", "triad"];
        let cases: Vec<Case> =
            modes.iter().map(|mode| case(mode, "integer")).chain([case("copy", "floating")]).collect();
        let cell = |(at, case)| StudiedCell { case, params: &params, medians: medians(at as f64), curves: Vec::new() };
        let cells: Vec<StudiedCell<'_>> = cases.iter().enumerate().map(cell).collect();
        let answers = averages(&cells);
        assert_eq!(answers.len(), 1);
        assert_eq!((answers[0].value, answers[0].name.as_str()), (1.5, "average (kind=integer,threads=1)"));
    }
}
