//! uperf: the workloads of pbench-uperf by its parameters, carried out by our own engine.
//!
//! Each cell is a preset of `weighbridge net`. Start with [`params`]; the means are those of `net`.

mod params;

use std::collections::BTreeMap;

use async_trait::async_trait;
use wb_model::{Facts, Metric, Nanos, Params as Given, Placement, Purpose, Scope, Sides, Value};
use wb_stats::Rule;

use crate::fio::keep_sysinfo;
use crate::fio::sysinfo;
use crate::net::run::{self, Workload};
use crate::net::{AROUND, values};
use crate::{About, Artefacts, Attempt, Failure, Measure, Measured, Rejected, Site};

pub use params::Params;

/// Streams, and requests with responses, with pbench-uperf's parameters.
pub struct Uperf;

/// What the client calls the server.
const SERVER: &str = "server";

#[async_trait]
impl Measure for Uperf {
    type Params = Params;
    type Prepared = ();

    fn about(&self) -> About {
        About {
            name: "uperf",
            summary: "network: streams, and requests with responses, after pbench-uperf",
            version: 1,
            scope: Scope::Sample,
        }
    }

    fn resolve(&self, given: &Given, _: &Facts) -> BTreeMap<String, Vec<Value>> {
        let texts = |texts: &[&str]| texts.iter().map(|text| Value::Text((*text).to_owned())).collect();
        let is_udp = given.get("test-types").is_some_and(|one| one.to_string() == "udp-rr");
        let protocols: &[&str] = if is_udp { &["udp"] } else { &["tcp", "udp"] };
        BTreeMap::from([
            ("test-types".to_owned(), texts(&["stream", "maerts", "bidirec", "rr"])),
            ("message-sizes".to_owned(), texts(&["1", "64", "16k"])),
            ("protocols".to_owned(), texts(protocols)),
            ("instances".to_owned(), [1, 8, 64].map(Value::Integer).to_vec()),
        ])
    }

    fn unsupported(&self, params: &Params, placement: &Placement, facts: &Facts) -> Option<String> {
        let misplaced = || params.nodes().placements(placement, facts).err();
        params.contradiction().or_else(|| sysinfo::contradiction(&params.sysinfo)).or_else(misplaced)
    }

    fn sides(&self, _: &Params) -> Sides {
        Sides::Served { servers: 1 }
    }

    fn rule(&self, params: &Params) -> Option<Rule> {
        params.rule()
    }

    fn estimate(&self, params: &Params, _: Nanos) -> Nanos {
        Nanos::from_seconds(params.runtime.seconds() + AROUND)
    }

    fn sets_duration(&self, _: &Params) -> bool {
        true
    }

    fn metrics(&self, params: &Params) -> Vec<Metric> {
        values::metrics(params.test_type().primary())
    }

    async fn prepare(&self, _: &Params, _: &Site) -> Result<(), Failure> {
        Ok(())
    }

    async fn sample(&self, params: &Params, (): &mut (), attempt: &mut Attempt) -> Result<(), Failure> {
        // Once per cell: nothing else of it would have to stay prepared from one sample to the next.
        if attempt.purpose == Purpose::Sample && attempt.sample == 0 {
            let mut collected = sysinfo::collect(&attempt.site, &params.sysinfo).await?;
            keep_sysinfo(attempt, &mut collected);
        }
        let workload = Workload {
            arguments: params.arguments(SERVER),
            hosts: vec![SERVER.to_owned()],
            nodes: params.nodes(),
            response_times: params.log_response_times,
        };
        run::run(&workload, attempt).await
    }

    fn study(&self, params: &Params, artefacts: &Artefacts) -> Result<Measured, Rejected> {
        values::study(params.asked(), artefacts)
    }
}
