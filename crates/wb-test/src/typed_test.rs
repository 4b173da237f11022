//! Tests written in Rust.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wb_model::{
    Declaration, Facts, Metric, Nanos, Param, ParamValue, Params, Placement, Requirement, Scope, TestName, Topology,
};
use wb_plan::CatalogCell;
use wb_results::Conclusion;
use wb_stats::SamplingRule;

use crate::shared_params::decode;
use crate::test::AnyPrepared;
use crate::{
    Artefacts, Attempt, EvaluatedCell, Failure, InvalidParams, Measurement, Rejection, SharedParams, Test, TestCell,
    WorkerContext,
};

/// Metadata of a test written in Rust, without its parameters.
#[derive(Debug, Clone)]
pub struct TestInfo {
    pub name: &'static str,
    /// What it measures, in one line.
    pub summary: &'static str,
    /// Increased whenever the test starts to measure differently.
    pub version: u32,
    /// Lifetime of what the test prepares.
    pub scope: Scope,
    /// Whether the agent's program itself is the workload.
    pub is_native: bool,
}

/// A test written in Rust. [`Test`] and [`TestCell`] document the methods that they share with it.
#[async_trait]
pub trait TypedTest: Send + Sync + 'static {
    /// The JSON Schema declares the parameters, `Default` has their default values.
    type Params: DeserializeOwned + Serialize + JsonSchema + Default + Send + Sync;

    /// Prepared once and passed to each sample.
    type Prepared: Send + 'static;

    fn info(&self) -> TestInfo;

    fn requires(&self, _params: &Self::Params) -> Vec<Requirement> {
        Vec::new()
    }

    fn resolve(&self, _given: &Params, _facts: &Facts) -> BTreeMap<String, Vec<ParamValue>> {
        BTreeMap::new()
    }

    /// Why a cell cannot be measured on this machine, if so.
    fn unsupported(&self, _params: &Self::Params, _placement: &Placement, _facts: &Facts) -> Option<String> {
        None
    }

    /// The sampling rule that the test's own parameters request, if any.
    fn rule(&self, _params: &Self::Params) -> Option<SamplingRule> {
        None
    }

    /// Duration of one sample.
    fn estimate(&self, _params: &Self::Params, min_time: Nanos) -> Nanos {
        min_time
    }

    fn sets_duration(&self, _params: &Self::Params) -> bool {
        false
    }

    fn shortening(&self, _params: &Self::Params) -> &'static str {
        crate::test::LOWER_MIN_TIME
    }

    /// One side, or a client and its servers.
    fn sides(&self, _params: &Self::Params) -> Topology {
        Topology::Single
    }

    fn metrics(&self, params: &Self::Params) -> Vec<Metric>;

    async fn prepare(&self, params: &Self::Params, context: &WorkerContext) -> Result<Self::Prepared, Failure>;

    async fn sample(
        &self,
        params: &Self::Params,
        prepared: &mut Self::Prepared,
        attempt: &mut Attempt,
    ) -> Result<(), Failure>;

    async fn cleanup(
        &self,
        _params: &Self::Params,
        _prepared: Self::Prepared,
        _context: &WorkerContext,
    ) -> Result<(), Failure> {
        Ok(())
    }

    fn study(&self, params: &Self::Params, artefacts: &Artefacts) -> Result<Measurement, Rejection>;

    fn solve(&self, _cells: &[EvaluatedCell<'_>]) -> Vec<Conclusion> {
        Vec::new()
    }
}

impl<T: TypedTest> Test for T {
    fn name(&self) -> &str {
        self.info().name
    }

    fn declaration(&self) -> Declaration {
        let TestInfo { name, summary, version, scope, is_native: _ } = self.info();
        let mut params = Param::from_schema::<T::Params>();
        params.extend(SharedParams::declarations());
        Declaration {
            // A unit test of the registry checks the names of built-in tests.
            name: TestName::new(name).unwrap_or_else(|_| unreachable!("`{name}` is a valid name")),
            summary: summary.to_owned(),
            version,
            params,
            scope,
            requires: TypedTest::requires(self, &T::Params::default()),
        }
    }

    fn resolve(&self, given: &Params, facts: &Facts) -> BTreeMap<String, Vec<ParamValue>> {
        TypedTest::resolve(self, given, facts)
    }

    fn cell(self: Arc<Self>, params: &Params) -> Result<Box<dyn TestCell>, InvalidParams> {
        let (own, shared) = SharedParams::split(params)?;
        Ok(Box::new(TypedCell { test: self, params: decode(&own)?, shared }))
    }

    fn is_native(&self) -> bool {
        self.info().is_native
    }

    fn solve(&self, cells: &[EvaluatedCell<'_>]) -> Vec<Conclusion> {
        TypedTest::solve(self, cells)
    }
}

/// A cell of a test written in Rust.
struct TypedCell<T: TypedTest> {
    test: Arc<T>,
    params: T::Params,
    shared: SharedParams,
}

impl<T: TypedTest> CatalogCell for TypedCell<T> {
    fn requires(&self) -> Vec<Requirement> {
        self.test.requires(&self.params)
    }

    fn unsupported(&self, facts: &Facts) -> Option<String> {
        let shared = &self.shared;
        shared.unsupported(facts).or_else(|| self.test.unsupported(&self.params, &shared.placement, facts))
    }

    fn topology(&self) -> Topology {
        self.test.sides(&self.params)
    }

    fn rule(&self) -> Option<SamplingRule> {
        self.test.rule(&self.params)
    }

    fn estimate(&self, min_time: Nanos) -> Nanos {
        self.test.estimate(&self.params, min_time)
    }
}

#[async_trait]
impl<T: TypedTest> TestCell for TypedCell<T> {
    fn test(&self) -> &dyn Test {
        self.test.as_ref()
    }

    fn shared_params(&self) -> &SharedParams {
        &self.shared
    }

    fn sets_duration(&self) -> bool {
        self.test.sets_duration(&self.params)
    }

    fn shortening(&self) -> Option<&'static str> {
        Some(self.test.shortening(&self.params))
    }

    fn metrics(&self) -> Vec<Metric> {
        self.test.metrics(&self.params)
    }

    async fn prepare(&self, context: &WorkerContext) -> Result<AnyPrepared, Failure> {
        Ok(Box::new(self.test.prepare(&self.params, context).await?))
    }

    async fn sample(&self, prepared: &mut AnyPrepared, attempt: &mut Attempt) -> Result<(), Failure> {
        let prepared = prepared.downcast_mut().ok_or_else(Failure::foreign_state)?;
        self.test.sample(&self.params, prepared, attempt).await
    }

    async fn cleanup(&self, prepared: AnyPrepared, context: &WorkerContext) -> Result<(), Failure> {
        let prepared = prepared.downcast().map_err(|_| Failure::foreign_state())?;
        self.test.cleanup(&self.params, *prepared, context).await
    }

    fn study(&self, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
        self.test.study(&self.params, artefacts)
    }
}
