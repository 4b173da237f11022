use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use wb_model::{Facts, Metric, Nanos, Params, Requirement};
use wb_plan::CatalogCell;
use wb_test::test::{AnyPrepared, NamedFile};
use wb_test::{
    Artefacts, Attempt, BuildInputs, Failure, Measurement, Rejection, SharedParams, Test, TestCell, WorkerContext,
};

use super::DeclarativeTest;
use super::prepare::Prepared;

pub(super) struct DeclarativeCell {
    pub(super) test: Arc<DeclarativeTest>,
    /// Also the shared ones, which commands can refer to.
    pub(super) params: Params,
    pub(super) shared: SharedParams,
}

impl CatalogCell for DeclarativeCell {
    fn requires(&self) -> Vec<Requirement> {
        self.test.definition.requirements(&self.params)
    }

    fn unsupported(&self, facts: &Facts) -> Option<String> {
        let machine_params = &self.test.definition.machine_params;
        let unknown = machine_params.iter().find_map(|param| param.unsupported(&self.params, facts));
        unknown.or_else(|| self.shared.unsupported(facts))
    }

    fn estimate(&self, min_time: Nanos) -> Nanos {
        self.test.definition.estimate(min_time)
    }

    fn calibration_time(&self, min_time: Nanos) -> Nanos {
        self.test.definition.calibration_time(min_time)
    }

    fn is_estimated(&self) -> bool {
        self.test.definition.is_estimated()
    }
}

#[async_trait]
impl TestCell for DeclarativeCell {
    fn test(&self) -> &dyn Test {
        self.test.as_ref()
    }

    fn shared_params(&self) -> &SharedParams {
        &self.shared
    }

    fn files(&self) -> Vec<NamedFile> {
        self.test.definition.named_files(&self.params)
    }

    fn source_hashes(&self) -> BTreeMap<String, String> {
        self.test.definition.source_hashes(&self.params)
    }

    fn shortening(&self) -> Option<&'static str> {
        self.test.definition.follows_min_time().then_some(wb_test::test::LOWER_MIN_TIME)
    }

    fn build_inputs(&self) -> BuildInputs {
        self.test.definition.build_inputs(&self.params)
    }

    fn metrics(&self) -> Vec<Metric> {
        self.test.definition.metrics.iter().map(|definition| definition.metric.clone()).collect()
    }

    async fn build(&self, context: &WorkerContext) -> Result<BTreeMap<String, String>, Failure> {
        self.test.definition.build_programs(&self.params, context).await
    }

    async fn prepare(&self, context: &WorkerContext) -> Result<AnyPrepared, Failure> {
        Ok(Box::new(self.test.definition.prepare(&self.params, context).await?))
    }

    async fn sample(&self, prepared: &mut AnyPrepared, attempt: &mut Attempt) -> Result<(), Failure> {
        let prepared: &mut Prepared = prepared.downcast_mut().ok_or_else(Failure::foreign_state)?;
        self.test.definition.sample(&self.params, prepared, attempt).await
    }

    async fn cleanup(&self, prepared: AnyPrepared, context: &WorkerContext) -> Result<(), Failure> {
        let prepared: Box<Prepared> = prepared.downcast().map_err(|_| Failure::foreign_state())?;
        self.test.definition.clean_up(&self.params, *prepared, context).await
    }

    fn study(&self, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
        self.test.definition.study(&self.params, artefacts)
    }
}
