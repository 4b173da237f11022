//! ramspeed-sweep: the cache hierarchy as a curve over the block size.

use std::collections::BTreeMap;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_kernels::Isa;
use wb_kernels::ramspeed::sweep::{Access, Config, SweepPoint, SweepReport};
use wb_model::facts::CacheKind;
use wb_model::outcome::Gate;
use wb_model::{Bytes, Class, Facts, Metric, MetricKey, Nanos, ParamValue, Params, Placement, Scope, Unit};
use wb_results::Conclusion;
use wb_test::{
    Artefacts, Attempt, CurvePoint, EvaluatedCell, Failure, Measurement, Rejection, SampleCurve, TestInfo, TypedTest,
    WorkerContext,
};

use crate::{knees, native, ramspeed};

/// Repeated reads and writes of blocks of increasing size: the bandwidth drops where a cache level ends.
pub struct RamspeedSweep;

/// How a ramspeed-sweep cell is measured
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct SweepParams {
    /// Threads, each pinned to a CPU and with its own blocks
    #[schemars(range(min = 1))]
    threads: u32,
    /// Smallest block size of each thread
    min_block_size: Bytes,
    /// Largest block size of each thread
    #[schemars(extend("x-default" = "4 × the caches of the last level together, at least 64m, at most a sixth of the memory"))]
    array_size: Option<Bytes>,
    /// Whether to measure a block size between each two powers of two
    half_steps: bool,
    /// Instruction set of the measured loops
    #[schemars(extend("x-default" = "the widest of the worker's CPU"))]
    isa: Option<Isa>,
}

impl Default for SweepParams {
    fn default() -> Self {
        Self { threads: 1, min_block_size: Bytes(1024), array_size: None, half_steps: true, isa: None }
    }
}

impl SweepParams {
    fn blocks(&self) -> f64 {
        let range = self.array_size.unwrap_or_default().0 as f64 / self.min_block_size.0.max(1) as f64;
        let powers = range.log2().max(0.0) + 1.0;
        if self.half_steps { 2.0 * powers } else { powers }
    }

    /// Seconds for each block size and operation; at least 4 ms, as shorter measurements are too noisy.
    fn seconds(&self, min_time: Nanos) -> f64 {
        const MIN_SECONDS: f64 = 0.004;
        (min_time.seconds() / (2.0 * self.blocks())).max(MIN_SECONDS)
    }
}

/// Operations on the blocks, with the artefact name of their reports.
const OPS: [(Access, &str); 2] = [(Access::Read, "read"), (Access::Write, "write")];
pub(crate) const CURVE_TITLE: &str = "read and write bandwidth over block size";
/// Artefact with the sizes of the data caches that the system reports, in bytes by level.
const CACHES_FILE: &str = "caches.json";

#[async_trait]
impl TypedTest for RamspeedSweep {
    type Params = SweepParams;
    type Prepared = ();

    fn info(&self) -> TestInfo {
        TestInfo {
            name: "ramspeed-sweep",
            summary: "bandwidth over block size; the cache hierarchy as a curve",
            version: 1,
            scope: Scope::Sample,
            is_native: true,
        }
    }

    fn resolve(&self, _: &Params, facts: &Facts) -> BTreeMap<String, Vec<ParamValue>> {
        BTreeMap::from([
            ("array-size".to_owned(), vec![ramspeed::default_array_size(facts)]),
            ("isa".to_owned(), vec![native::widest_isa(facts)]),
        ])
    }

    fn unsupported(&self, params: &SweepParams, _: &Placement, facts: &Facts) -> Option<String> {
        let (smallest, largest) = (params.min_block_size, params.array_size.unwrap_or_default());
        let sizes = (smallest.0 < 64 || largest < smallest).then(|| {
            format!("invalid block sizes {smallest} to {largest}: expected at least 64 bytes, in ascending order")
        });
        let bytes = largest.0.saturating_mul(u64::from(params.threads));
        native::unsupported_isa(params.isa, facts)
            .or(sizes)
            .or_else(|| native::unsupported_threads(Some(params.threads), facts))
            .or_else(|| native::unsupported_memory(bytes, facts))
    }

    fn estimate(&self, params: &SweepParams, min_time: Nanos) -> Nanos {
        // Each block is calibrated, warmed up and checked, which takes about as long again; the largest take a few
        // passes at the speed of memory, whatever the time.
        let blocks = Nanos::from_seconds(params.seconds(min_time) * 2.0 * params.blocks() * 2.0);
        Nanos(blocks.0.saturating_add(params.array_size.unwrap_or_default().0.saturating_mul(4)))
    }

    /// The primary metric is the geometric mean of all points: it changes by the same share whichever level of the
    /// hierarchy changes. `ramspeed` measures memory alone.
    fn metrics(&self, _: &SweepParams) -> Vec<Metric> {
        let metric = |op: &str, end: &str| Metric::throughput(&format!("{op}-{end}"), "MB/s");
        let ends = OPS.iter().flat_map(|(_, op)| [metric(op, "peak"), metric(op, "memory")]);
        let caches = (1..=4).map(|level| Metric::check(&format!("cache-l{level}"), "B"));
        let first = [Metric::throughput("bandwidth", "MB/s").primary()];
        first.into_iter().chain(ends).chain([native::residency_metric()]).chain(caches).collect()
    }

    async fn prepare(&self, _: &SweepParams, _: &WorkerContext) -> Result<(), Failure> {
        Ok(())
    }

    async fn sample(&self, params: &SweepParams, (): &mut (), attempt: &mut Attempt) -> Result<(), Failure> {
        let caches = data_caches(&attempt.context.facts);
        attempt.add_json(CACHES_FILE, &caches)?;
        for (op, name) in OPS {
            let config = Config {
                op,
                min_bytes: params.min_block_size.0,
                max_bytes: params.array_size.unwrap_or_default().0,
                half_steps: params.half_steps,
                cpus: native::thread_cpus(params.threads, &attempt.context.placement, &attempt.context.facts),
                isa: params.isa.unwrap_or(Isa::Scalar),
                huge_pages: native::huge_pages(&attempt.context.placement),
                seconds: params.seconds(attempt.min_time),
            };
            attempt.add_json(&format!("{name}.json"), &config)?;
            let _: SweepReport = native::exec_as(attempt, name, "ramspeed-sweep", &config).await?;
        }
        Ok(())
    }

    fn study(&self, params: &SweepParams, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
        let mut measurement = Measurement::default();
        let (mut lines, mut all, mut seconds) = (Vec::new(), Vec::new(), 0.0);
        for (op, name) in OPS {
            let config: Config = artefacts.json(&format!("{name}.json"))?;
            let report: SweepReport = native::report_as(artefacts, name)?;
            let (requested, measured) = ((op, params.isa), (report.op, Some(report.isa)));
            measurement.require(requested == measured, Gate::Work, || {
                format!("requested {requested:?}, measured {measured:?}")
            });
            for point in &report.points {
                check_point(&mut measurement, name, point, report.threads);
            }
            seconds += report.points.iter().map(|point| point.seconds).sum::<f64>();
            let points: Vec<(f64, f64)> =
                report.points.iter().map(|point| (point.block_bytes as f64, point.mb_per_s)).collect();
            let last = points.last().ok_or_else(|| Rejection::output(format!("{name}: no block was measured")))?;
            let peak = points.iter().map(|(_, speed)| *speed).fold(0.0, f64::max);
            measurement.set(Class::Throughput, &format!("{name}-memory"), last.1);
            measurement.set(Class::Throughput, &format!("{name}-peak"), peak);
            native::record_residency(&mut measurement, report.residency, config.huge_pages);
            measurement.add_provenance("isa", report.isa);
            all.extend(points.iter().map(|(_, speed)| speed.ln()));
            lines.push((name.to_owned(), points));
        }
        measurement.set(Class::Throughput, "bandwidth", (all.iter().sum::<f64>() / all.len() as f64).exp());
        measurement.intervals = Some(seconds);
        for (level, size) in artefacts.json::<Vec<(u8, u64)>>(CACHES_FILE)? {
            measurement.set(Class::Check, &format!("cache-l{level}"), size as f64);
        }
        let axis = |name: &str, unit| (name.to_owned(), Unit::new(unit));
        measurement.curves.push(SampleCurve {
            title: CURVE_TITLE.to_owned(),
            x: axis("block size", "B"),
            y: axis("bandwidth", "MB/s"),
            lines,
        });
        Ok(measurement)
    }

    fn solve(&self, cells: &[EvaluatedCell<'_>]) -> Vec<Conclusion> {
        cells.iter().flat_map(find_cache_levels).collect()
    }
}

/// Bytes of the largest data cache of each level.
fn data_caches(facts: &Facts) -> Vec<(u8, u64)> {
    let mut levels = BTreeMap::new();
    for cache in facts.caches.iter().filter(|cache| cache.kind != CacheKind::Instruction) {
        let largest: &mut u64 = levels.entry(cache.level).or_default();
        *largest = cache.size.0.max(*largest);
    }
    levels.into_iter().collect()
}

fn check_point(measurement: &mut Measurement, op: &str, point: &SweepPoint, threads: usize) {
    let size = Bytes(point.block_bytes);
    measurement.require(point.mismatches == 0, Gate::Answer, || {
        format!("{op} of {size}: {} of {threads} threads had wrong data", point.mismatches)
    });
    let bytes = point.block_bytes as f64 * point.passes as f64 * threads as f64;
    let by_time = bytes / point.seconds / 1e6;
    measurement.require((by_time / point.mb_per_s - 1.0).abs() < 1e-6, Gate::Plausibility, || {
        format!(
            "{op} of {size}: reported {} MB/s, but {bytes} bytes in {} s are {by_time} MB/s",
            point.mb_per_s, point.seconds
        )
    });
}

/// Cache levels that a curve shows by a drop in bandwidth, each with the closest one that the system reports. The first
/// drop need not be at the end of the L1, as a curve may not show it.
fn find_cache_levels(cell: &EvaluatedCell<'_>) -> Vec<Conclusion> {
    let size = |level: u8| cell.medians.get(&MetricKey::new(Class::Check, &format!("cache-l{level}")));
    let named: Vec<(u8, f64)> = (1..=4).filter_map(|level| Some((level, size(level)?.value))).collect();
    let lines = cell.curves.iter().filter(|(title, _)| title == CURVE_TITLE).flat_map(|(_, lines)| lines);
    let case = if cell.case.is_empty() { String::new() } else { format!(" ({})", cell.case) };
    let conclusions = |(op, points): &(String, Vec<CurvePoint>)| {
        let knees = knees::knees(points);
        let name = |index: usize| format!("{op}: drop {} of {} in bandwidth{case}", index + 1, knees.len());
        let drops = knees.iter().enumerate();
        drops.map(|(index, knee)| describe_cache_level(&name(index), *knee, &named)).collect::<Vec<_>>()
    };
    lines.flat_map(conclusions).collect()
}

fn describe_cache_level(name: &str, knee: knees::Knee, named: &[(u8, f64)]) -> Conclusion {
    let (bytes, speed) = (Unit::new("B"), Unit::new("MB/s"));
    let distance = |size: f64| (size / knee.x).ln().abs();
    let nearest = named.iter().min_by(|a, b| distance(a.1).total_cmp(&distance(b.1)));
    let matching = match nearest.filter(|(_, size)| distance(*size) <= 2.5f64.ln()) {
        Some((level, size)) => format!("the system reports an L{level} of {}", bytes.quantity(*size)),
        None => "the system reports no cache of about that size".to_owned(),
    };
    let (above, below) = (speed.quantity(knee.above), speed.quantity(knee.below));
    let because = format!("from {above} to {below} in blocks larger than {}; {matching}", bytes.quantity(knee.x));
    Conclusion {
        cells: String::new(),
        name: name.to_owned(),
        value: knee.x,
        interval: None,
        unit: bytes,
        explanation: because,
    }
}

#[cfg(test)]
mod tests {
    use wb_model::{Case, Validity};

    use super::*;
    use wb_test_artefacts::{artefact_folder, failed_gate, value};

    const CONFIG: &str =
        r#"{"op":"read","max-bytes":4096,"half-steps":false,"cpus":[0],"isa":"scalar","seconds":0.01}"#;

    fn report(op: &str) -> String {
        let point = |bytes: u64, speed: f64| {
            let seconds = bytes as f64 * 1000.0 / speed / 1e6;
            format!(
                r#"{{"block-bytes":{bytes},"passes":1000,"seconds":{seconds:e},"mb-per-s":{speed},"mismatches":0,"probe":{{"iterations":1,"seconds":1e-5}}}}"#
            )
        };
        let points = [point(1024, 4000.0), point(2048, 4000.0), point(4096, 1000.0)].join(",");
        format!(
            r#"{{"op":"{op}","threads":1,"isa":"scalar","points":[{points}],"residency":{{"bytes":4096,"huge-bytes":0}}}}"#
        )
    }

    fn study(read: &str, write: &str) -> Result<Measurement, Rejection> {
        let files = [
            ("read.json", CONFIG),
            ("write.json", CONFIG),
            (CACHES_FILE, "[[1,32768],[2,1048576]]"),
            ("read.stdout", read),
            ("write.stdout", write),
        ];
        let params = SweepParams { isa: Some(Isa::Scalar), ..SweepParams::default() };
        RamspeedSweep.study(&params, &Artefacts::new(artefact_folder(&files).path()))
    }

    #[test]
    fn both_operations_become_one_curve_and_one_primary_value() {
        let measurement = study(&report("read"), &report("write")).unwrap();
        assert_eq!(measurement.validity, Validity::Valid);
        let value = |name: &str| value(&measurement, name);
        assert!((value("throughput/bandwidth") - 2519.842).abs() < 1e-3, "{}", value("throughput/bandwidth"));
        assert_eq!((value("throughput/read-peak"), value("throughput/write-memory")), (4000.0, 1000.0));
        assert_eq!(value("check/cache-l2"), 1_048_576.0);
        let curve = &measurement.curves[0];
        assert_eq!((curve.lines.len(), curve.lines[0].0.as_str()), (2, "read"));
        assert_eq!(curve.lines[1].1, [(1024.0, 4000.0), (2048.0, 4000.0), (4096.0, 1000.0)]);
    }

    #[test]
    fn wrong_blocks_are_invalid() {
        for (from, to, gate) in [
            (r#""mismatches":0"#, r#""mismatches":1"#, Gate::Answer),
            (r#""mb-per-s":4000"#, r#""mb-per-s":4"#, Gate::Plausibility),
            (r#""op":"read""#, r#""op":"write""#, Gate::Work),
        ] {
            let changed = report("read").replace(from, to);
            assert_eq!(failed_gate(&study(&changed, &report("write")).unwrap()), Some(gate));
        }
        let none = r#"{"op":"read","threads":1,"isa":"scalar","points":[],"residency":{"bytes":0,"huge-bytes":0}}"#;
        for garbage in ["", "nan", none] {
            assert_eq!(study(garbage, &report("write")).unwrap_err().gate, Gate::Output);
        }
    }

    #[test]
    fn levels_are_matched_with_reported_caches() {
        let points: Vec<CurvePoint> = (10..24)
            .map(|power| {
                let speed = match power {
                    ..=15 => 100e3,
                    16..=20 => 40e3,
                    _ => 10e3,
                };
                CurvePoint { x: f64::from(1 << power), y: speed, spread: None }
            })
            .collect();
        let params = Params::new();
        let cell = EvaluatedCell {
            case: &Case::default(),
            params: &params,
            medians: BTreeMap::from([(
                MetricKey::new(Class::Check, "cache-l1"),
                wb_stats::Estimate { value: 32768.0, interval: Err(wb_stats::NoInterval::TooFewSamples { count: 1 }) },
            )]),
            values_by_round: BTreeMap::new(),
            curves: vec![(CURVE_TITLE.to_owned(), vec![("read".to_owned(), points)])],
        };
        let conclusions = RamspeedSweep.solve(&[cell]);
        assert_eq!(conclusions.iter().map(|conclusion| conclusion.value).collect::<Vec<_>>(), [32768.0, 1_048_576.0]);
        assert_eq!(
            conclusions.iter().map(|conclusion| conclusion.name.as_str()).collect::<Vec<_>>(),
            ["read: drop 1 of 2 in bandwidth", "read: drop 2 of 2 in bandwidth"],
            "the first need not be at the end of the L1"
        );
        assert_eq!(
            conclusions[0].explanation,
            "from 100 GB/s to 40 GB/s in blocks larger than 32 KiB; the system reports an L1 of 32 KiB"
        );
        assert!(conclusions[1].explanation.ends_with("the system reports no cache of about that size"));
    }

    #[test]
    fn blocks_share_the_time() {
        let params = SweepParams { array_size: Some(Bytes(1 << 20)), half_steps: false, ..SweepParams::default() };
        assert_eq!(params.blocks(), 11.0);
        assert_eq!(params.seconds(Nanos(2_200_000_000)), 0.1);
        assert_eq!(params.seconds(Nanos(1)), 0.004);
    }
}
