//! himeno: pressure solver, bound by memory bandwidth.

use std::collections::BTreeMap;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_kernels::Isa;
use wb_kernels::himeno::{Config, Grid, HimenoReport};
use wb_model::outcome::Gate;
use wb_model::{Axis, Class, Facts, Metric, Nanos, ParamValue, Params, Placement, Scope};
use wb_results::Conclusion;
use wb_test::{Artefacts, Attempt, EvaluatedCell, Failure, Measurement, Rejection, TestInfo, TypedTest, WorkerContext};

use crate::native;

/// Himeno: Jacobi iterations of a 19-point stencil (R. Himeno, RIKEN, 1996). Bound by memory bandwidth.
pub struct Himeno;

/// How a himeno cell is measured
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct HimenoParams {
    /// Grid size; memory from 3.7 MB (XS) to 15 GB (XL)
    grid: Axis<Grid>,
    /// Threads, each pinned to a separate core if there are enough
    #[schemars(range(min = 1), extend("x-axis" = true, "x-default" = "one, and one per core"))]
    threads: Option<u32>,
    /// Instruction set of the measured loops
    #[schemars(extend("x-default" = "the widest of the worker's CPU"))]
    isa: Option<Isa>,
}

impl Default for HimenoParams {
    fn default() -> Self {
        Self { grid: Axis(Grid::M), threads: None, isa: None }
    }
}

/// Memory of the fourteen arrays of 32-bit numbers.
fn memory_bytes(grid: Grid) -> u64 {
    14 * 4 * grid.extent().iter().map(|extent| *extent as u64).product::<u64>()
}

#[async_trait]
impl TypedTest for Himeno {
    type Params = HimenoParams;
    type Prepared = ();

    fn info(&self) -> TestInfo {
        TestInfo {
            name: "himeno",
            summary: "pressure solver; memory bandwidth of one process",
            version: 1,
            scope: Scope::Sample,
            is_native: true,
        }
    }

    fn resolve(&self, _: &Params, facts: &Facts) -> BTreeMap<String, Vec<ParamValue>> {
        BTreeMap::from([
            ("threads".to_owned(), native::default_threads(facts)),
            ("isa".to_owned(), vec![native::widest_isa(facts)]),
        ])
    }

    fn unsupported(&self, params: &HimenoParams, _: &Placement, facts: &Facts) -> Option<String> {
        native::unsupported_isa(params.isa, facts)
            .or_else(|| native::unsupported_threads(params.threads, facts))
            .or_else(|| native::unsupported_memory(memory_bytes(*params.grid), facts))
    }

    fn estimate(&self, params: &HimenoParams, min_time: Nanos) -> Nanos {
        // At least one sweep, at 3 GFLOPS; calibration; and the initial state, at about 1 GB/s, twice.
        let sweep = params.grid.flops_per_iteration() / 3;
        let total = min_time.0.max(sweep);
        Nanos(total.saturating_add(total / 8).saturating_add(2 * memory_bytes(*params.grid) + 50_000_000))
    }

    fn metrics(&self, _: &HimenoParams) -> Vec<Metric> {
        vec![
            Metric::throughput("throughput", "mflops").primary(),
            Metric::check("gosa", ""),
            native::residency_metric(),
        ]
    }

    async fn prepare(&self, _: &HimenoParams, _: &WorkerContext) -> Result<(), Failure> {
        Ok(())
    }

    async fn sample(&self, params: &HimenoParams, (): &mut (), attempt: &mut Attempt) -> Result<(), Failure> {
        let config = Config {
            grid: *params.grid,
            cpus: native::thread_cpus(params.threads.unwrap_or(1), &attempt.context.placement, &attempt.context.facts),
            isa: params.isa.unwrap_or(Isa::Scalar),
            huge_pages: native::huge_pages(&attempt.context.placement),
            work: native::requested_work(attempt),
        };
        attempt.add_json("config.json", &config)?;
        let report: HimenoReport = native::exec(attempt, "himeno", &config).await?;
        attempt.record_work(report.iterations);
        Ok(())
    }

    fn study(&self, params: &HimenoParams, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
        let config: Config = artefacts.json("config.json")?;
        let report: HimenoReport = native::report(artefacts)?;
        let mut measurement = Measurement::default()
            .with_value(Class::Throughput, "throughput", report.mflops)
            .with_value(Class::Check, "gosa", report.gosa)
            .with_duration(report.seconds);
        native::record_residency(&mut measurement, report.residency, config.huge_pages);
        native::check_effort(&mut measurement, report.probe, report.iterations, report.seconds);
        let isa = params.isa.map_or("none", |isa| isa.name());
        measurement.require(Some(report.isa) == params.isa, Gate::Work, || {
            format!("instruction set {} used, {isa} requested", report.isa)
        });
        let checks = report.checkpoints.iter().map(|c| (c.iterations, c.gosa, &c.gosa_check));
        for (iterations, gosa, verdict) in checks.chain([(report.iterations, report.gosa, &report.gosa_check)]) {
            if let Some(verdict) = verdict {
                measurement.require(verdict.passed, Gate::Answer, || {
                    format!("gosa is {gosa:e} after {iterations} iterations, expected {:e}", verdict.expected)
                });
            }
        }
        measurement.require(report.rises == 0, Gate::Answer, || format!("gosa rose in {} sweeps", report.rises));
        measurement.add_provenance("isa", report.isa);
        measurement.add_provenance("iterations", report.iterations);
        Ok(measurement)
    }

    fn solve(&self, cells: &[EvaluatedCell<'_>]) -> Vec<Conclusion> {
        native::scaling(cells, "throughput", "mflops")
    }
}
