//! uperf: the workloads of pbench-uperf with its parameters, executed by Weighbridge's network engine.
//!
//! Each cell is a preset of `weighbridge net`. Start with [`params`]; execution and evaluation are those of
//! [`crate::net`].

mod params;

use std::collections::BTreeMap;

use async_trait::async_trait;
use wb_model::{AttemptPurpose, Facts, Metric, Nanos, ParamValue, Params, Placement, Scope, Topology};
use wb_stats::SamplingRule;

use crate::fio::record_sysinfo;
use crate::fio::sysinfo;
use crate::net::run::{self, NetWorkload};
use crate::net::{SETUP_SECONDS, values};
use wb_test::start_barrier::BarrierSlot;
use wb_test::{Artefacts, Attempt, Failure, Measurement, Rejection, TestInfo, TypedTest, WorkerContext};

pub use params::UperfParams;

/// The test `uperf`: streams, and requests with responses, with the parameters of pbench-uperf.
pub struct Uperf;

/// Host name of the server in the client's arguments.
const SERVER: &str = "server";

#[async_trait]
impl TypedTest for Uperf {
    type Params = UperfParams;
    type Prepared = ();

    fn info(&self) -> TestInfo {
        TestInfo {
            name: "uperf",
            summary: "network: streams, and requests with responses, after pbench-uperf",
            version: 1,
            scope: Scope::Sample,
            is_native: true,
        }
    }

    fn resolve(&self, given: &Params, _: &Facts) -> BTreeMap<String, Vec<ParamValue>> {
        let texts = |texts: &[&str]| texts.iter().map(|text| ParamValue::Text((*text).to_owned())).collect();
        let is_udp = given.get("test-types").is_some_and(|value| value.to_string() == "udp-rr");
        let protocols: &[&str] = if is_udp { &["udp"] } else { &["tcp", "udp"] };
        BTreeMap::from([
            ("test-types".to_owned(), texts(&["stream", "maerts", "bidirec", "rr"])),
            ("message-sizes".to_owned(), texts(&["1", "64", "16k"])),
            ("protocols".to_owned(), texts(protocols)),
            ("instances".to_owned(), [1, 8, 64].map(ParamValue::Integer).to_vec()),
        ])
    }

    fn unsupported(&self, params: &UperfParams, placement: &Placement, facts: &Facts) -> Option<String> {
        // Which worker has which of several nodes is known when it measures.
        let is_one = params.server_nodes.len().max(params.client_nodes.len()) <= 1;
        let unsupported_nodes = || params.nodes(0).placements(placement, facts).err().filter(|_| is_one);
        params.contradiction().or_else(|| sysinfo::contradiction(&params.sysinfo)).or_else(unsupported_nodes)
    }

    fn sides(&self, _: &UperfParams) -> Topology {
        Topology::ClientServer { servers: 1 }
    }

    fn rule(&self, params: &UperfParams) -> Option<SamplingRule> {
        params.rule()
    }

    fn estimate(&self, params: &UperfParams, _: Nanos) -> Nanos {
        Nanos::from_seconds(params.runtime.seconds() + SETUP_SECONDS)
    }

    fn sets_duration(&self, _: &UperfParams) -> bool {
        true
    }

    fn shortening(&self, _: &UperfParams) -> &'static str {
        wb_test::test::LOWER_RUNTIME
    }

    fn metrics(&self, params: &UperfParams) -> Vec<Metric> {
        values::metrics(params.test_type().primary_metric())
    }

    async fn prepare(&self, _: &UperfParams, _: &WorkerContext) -> Result<(), Failure> {
        Ok(())
    }

    async fn sample(&self, params: &UperfParams, (): &mut (), attempt: &mut Attempt) -> Result<(), Failure> {
        // Once per cell: collected here, as the cell needs no other prepared state.
        if attempt.purpose == AttemptPurpose::Sample && attempt.sample == 0 {
            let mut collected = sysinfo::collect(&attempt.context, &params.sysinfo).await?;
            record_sysinfo(attempt, &mut collected);
        }
        let workload = NetWorkload {
            arguments: params.arguments(SERVER),
            hosts: vec![SERVER.to_owned()],
            response_times: params.log_response_times,
        };
        let position = attempt.context.barrier_slot.as_ref().map_or(0, BarrierSlot::number);
        run::run(&workload, params.nodes(position), attempt).await
    }

    fn study(&self, params: &UperfParams, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
        values::study(params.expectation(), artefacts)
    }
}
