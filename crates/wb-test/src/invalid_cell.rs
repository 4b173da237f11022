use std::sync::Arc;

use async_trait::async_trait;
use wb_model::{Facts, Metric};
use wb_plan::CatalogCell;

use crate::test::AnyPrepared;
use crate::{
    Artefacts, Attempt, Failure, InvalidParams, Measurement, Rejection, SharedParams, Test, TestCell, WorkerContext,
};

/// A cell that cannot be measured because its parameters are invalid. Its existing samples, from another version of the
/// test, are rejected.
pub(crate) struct InvalidCell {
    test: Arc<dyn Test>,
    reason: String,
    shared: SharedParams,
}

impl InvalidCell {
    pub(crate) fn new(test: Arc<dyn Test>, invalid: &InvalidParams) -> Self {
        Self { test, reason: invalid.to_string(), shared: SharedParams::default() }
    }
}

impl CatalogCell for InvalidCell {
    fn unsupported(&self, _facts: &Facts) -> Option<String> {
        Some(self.reason.clone())
    }
}

#[async_trait]
impl TestCell for InvalidCell {
    fn test(&self) -> &dyn Test {
        self.test.as_ref()
    }

    fn shared_params(&self) -> &SharedParams {
        &self.shared
    }

    // They depend on the parameters.
    fn metrics(&self) -> Vec<Metric> {
        Vec::new()
    }

    async fn prepare(&self, _context: &WorkerContext) -> Result<AnyPrepared, Failure> {
        Err(Failure::refused(&self.reason))
    }

    async fn sample(&self, _prepared: &mut AnyPrepared, _attempt: &mut Attempt) -> Result<(), Failure> {
        Err(Failure::refused(&self.reason))
    }

    async fn cleanup(&self, _prepared: AnyPrepared, _context: &WorkerContext) -> Result<(), Failure> {
        Err(Failure::refused(&self.reason))
    }

    fn study(&self, _artefacts: &Artefacts) -> Result<Measurement, Rejection> {
        Err(Rejection::output(&self.reason))
    }
}
