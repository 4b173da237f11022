//! fio-nbd: a fresh image, exported by qemu-nbd on the worker, and fio's nbd engine on it.

mod export;
mod params;

use std::collections::BTreeMap;

use async_trait::async_trait;
use wb_model::{Facts, Metric, Nanos, Params as Given, Placement, Requirement, Scope, Value};
use wb_stats::Rule;

use crate::fio::sysinfo::{self, Collected};
use crate::fio::values::{self, Written};
use crate::fio::{impossible, keep_sysinfo, run, what_pbench_does};
use crate::{About, Artefacts, Attempt, Failure, Measure, Measured, Rejected, Site};
use export::Export;
use params::{ENGINE, Params};

/// fio through a network block device of its own.
pub struct FioNbd;

/// What is prepared for all samples of a cell.
#[derive(Debug)]
pub struct Prepared {
    export: Export,
    sysinfo: Vec<Collected>,
}

#[async_trait]
impl Measure for FioNbd {
    type Params = Params;
    type Prepared = Prepared;

    fn about(&self) -> About {
        About {
            name: "fio-nbd",
            summary: "a network block device: fio through qemu-nbd on the same worker",
            version: 1,
            scope: Scope::Cell,
        }
    }

    fn requires(&self, _: &Params) -> Vec<Requirement> {
        vec![
            Requirement::new("fio", "fio", &["--version"]),
            Requirement::new("qemu-nbd", "qemu-utils", &["--version"]),
            Requirement::new("qemu-img", "qemu-utils", &["--version"]),
        ]
    }

    fn resolve(&self, _: &Given, _: &Facts) -> BTreeMap<String, Vec<Value>> {
        what_pbench_does()
    }

    fn unsupported(&self, params: &Params, _: &Placement, _: &Facts) -> Option<String> {
        sysinfo::contradiction(&params.sysinfo).or_else(|| impossible(&params.job(String::new())))
    }

    fn rule(&self, params: &Params) -> Option<Rule> {
        params.rule()
    }

    fn estimate(&self, params: &Params, _: Nanos) -> Nanos {
        params.job(String::new()).estimate()
    }

    fn sets_duration(&self, _: &Params) -> bool {
        true
    }

    fn metrics(&self, params: &Params) -> Vec<Metric> {
        values::metrics(params.test_types)
    }

    async fn prepare(&self, params: &Params, site: &Site) -> Result<Prepared, Failure> {
        run::check_engine(site, ENGINE).await?;
        let export = Export::start(site, &params.job(String::new())).await?;
        Ok(Prepared { export, sysinfo: sysinfo::collect(site, &params.sysinfo).await? })
    }

    async fn sample(&self, params: &Params, prepared: &mut Prepared, attempt: &mut Attempt) -> Result<(), Failure> {
        keep_sysinfo(attempt, &mut prepared.sysinfo);
        run::pre_iteration(attempt, &params.pre_iteration_script).await?;
        run::run(attempt, &params.job(prepared.export.uri.clone()).text(), ENGINE).await?;
        prepared.export.keep(attempt).await
    }

    async fn cleanup(&self, _: &Params, prepared: Prepared, _: &Site) -> Result<(), Failure> {
        prepared.export.end().await
    }

    fn study(&self, params: &Params, artefacts: &Artefacts) -> Result<Measured, Rejected> {
        values::study(&params.job(String::new()), Written::ByUs, artefacts)
    }
}
