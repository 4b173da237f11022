//! fio through an export: a server on the worker opens a file or device, and an engine of fio connects to its socket.
//!
//! [`ExportTest`] has what differs between such tests; [`server`] starts and stops the server, [`params`] has their
//! common parameters.

pub mod params;
pub mod server;

use std::collections::BTreeMap;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wb_model::{Facts, Metric, Nanos, ParamValue, Params as RawParams, Placement, Requirement, Scope};
use wb_stats::SamplingRule;

use crate::fio::job::FioJob;
use crate::fio::sysinfo::{self, CollectorOutput};
use crate::fio::values::{self, JobFileOrigin};
use crate::fio::{job_error, pbench_defaults, record_sysinfo, run};
use params::ExportParams;
use server::{ExportPaths, RunningExport, ServerCommand};
use wb_test::{Artefacts, Attempt, Failure, Measurement, Rejection, TestInfo, TypedTest, WorkerContext};

/// A test that starts an export and measures it with fio.
pub trait ExportTest: Send + Sync + 'static {
    type Params: AsRef<ExportParams> + DeserializeOwned + Serialize + JsonSchema + Default + Send + Sync;

    const NAME: &'static str;
    /// What it measures, in one line.
    const SUMMARY: &'static str;
    /// fio's engine that connects to the export.
    const ENGINE: &'static str;

    fn server_programs() -> Vec<Requirement>;

    fn server(params: &Self::Params, paths: &ExportPaths<'_>) -> ServerCommand;

    /// The user's file, folder or block device to export; none: a scratch file.
    fn target(_params: &Self::Params) -> Option<&str> {
        None
    }

    fn allow_destroy(_params: &Self::Params) -> bool {
        false
    }

    fn job(params: &Self::Params, socket: &str) -> FioJob;

    /// Contradiction among the parameters, independent of the machine, if any.
    fn contradiction(_params: &Self::Params) -> Option<String> {
        None
    }
}

/// Prepared state of a cell.
#[derive(Debug)]
pub struct Prepared {
    export: RunningExport,
    sysinfo: Vec<CollectorOutput>,
}

/// The test of an export.
pub struct Export<T>(pub T);

#[async_trait]
impl<T: ExportTest> TypedTest for Export<T> {
    type Params = T::Params;
    type Prepared = Prepared;

    fn info(&self) -> TestInfo {
        TestInfo { name: T::NAME, summary: T::SUMMARY, version: 1, scope: Scope::Cell, is_native: false }
    }

    fn requires(&self, _: &T::Params) -> Vec<Requirement> {
        let mut programs =
            vec![Requirement::new("fio", "fio", &["--version"]).with_feature(run::engine_ability(T::ENGINE))];
        programs.extend(T::server_programs());
        programs
    }

    fn resolve(&self, _: &RawParams, _: &Facts) -> BTreeMap<String, Vec<ParamValue>> {
        pbench_defaults()
    }

    fn unsupported(&self, params: &T::Params, _: &Placement, _: &Facts) -> Option<String> {
        sysinfo::contradiction(&params.as_ref().sysinfo)
            .or_else(|| T::contradiction(params))
            .or_else(|| job_error(&T::job(params, "")))
    }

    fn rule(&self, params: &T::Params) -> Option<SamplingRule> {
        params.as_ref().rule()
    }

    fn estimate(&self, params: &T::Params, _: Nanos) -> Nanos {
        T::job(params, "").estimate()
    }

    fn sets_duration(&self, _: &T::Params) -> bool {
        true
    }

    fn shortening(&self, _: &T::Params) -> &'static str {
        wb_test::test::LOWER_RUNTIME
    }

    fn metrics(&self, params: &T::Params) -> Vec<Metric> {
        values::metrics(params.as_ref().test_types, params.as_ref().rate_iops > 0, false)
    }

    async fn prepare(&self, params: &T::Params, context: &WorkerContext) -> Result<Prepared, Failure> {
        run::check_engine(context, T::ENGINE).await?;
        let export = RunningExport::start::<T>(context, params).await?;
        Ok(Prepared { export, sysinfo: sysinfo::collect(context, &params.as_ref().sysinfo).await? })
    }

    async fn sample(&self, params: &T::Params, prepared: &mut Prepared, attempt: &mut Attempt) -> Result<(), Failure> {
        record_sysinfo(attempt, &mut prepared.sysinfo);
        run::run_pre_iteration_script(attempt, &params.as_ref().pre_iteration_script).await?;
        if let Some(warning) = prepared.export.target.ram_backed_warning() {
            attempt.add_finding(warning);
        }
        // The holder belongs to the attempt's group, which ends it with the attempt.
        prepared.export.target.hold_exclusively(&attempt.context).await?;
        run::run(attempt, &T::job(params, &prepared.export.socket).render(), T::ENGINE, false).await?;
        prepared.export.record(attempt).await
    }

    async fn cleanup(&self, _: &T::Params, prepared: Prepared, _: &WorkerContext) -> Result<(), Failure> {
        prepared.export.stop().await
    }

    fn study(&self, params: &T::Params, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
        values::study(&T::job(params, ""), JobFileOrigin::Generated, artefacts)
    }
}
