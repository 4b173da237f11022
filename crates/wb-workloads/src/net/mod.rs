//! net: a profile in uperf's language, between a client and private servers.
//!
//! Start with [`params`]; then [`run`] runs both sides, [`values`] evaluates the result, and [`gates`] checks it. The
//! test `uperf` uses the same modules.

pub mod expectation;
mod gates;
pub mod nodes;
pub mod output;
mod params;
pub mod run;
mod server;
#[cfg(test)]
mod testing;
pub mod values;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use wb_model::{Facts, Metric, Nanos, ParamValue, Params, Placement, Scope, Topology};
use wb_net_profile::mirror::hosts;

use run::NetWorkload;
use wb_test::{Artefacts, Attempt, Failure, Measurement, Rejection, TestInfo, TypedTest, WorkerContext};

pub use params::NetParams;

/// The test `net`: a network profile written by the user.
#[derive(Debug, Default)]
pub struct Net {
    profile_folder: PathBuf,
}

/// Seconds beside the windows: start, handshake and end of both sides.
pub(crate) const SETUP_SECONDS: f64 = 0.3;

const PROFILE: &str = "profile.xml";

impl Net {
    /// Creates the test with a folder that relative paths of profiles refer to.
    pub fn with_profile_folder(folder: &Path) -> Self {
        Self { profile_folder: folder.to_owned() }
    }
}

#[async_trait]
impl TypedTest for Net {
    type Params = NetParams;
    type Prepared = ();

    fn info(&self) -> TestInfo {
        TestInfo {
            name: "net",
            summary: "network: a profile in uperf's language, counted at both ends",
            version: 1,
            scope: Scope::Sample,
            is_native: true,
        }
    }

    fn resolve(&self, given: &Params, _: &Facts) -> BTreeMap<String, Vec<ParamValue>> {
        let Some(path) = given.get("profile") else { return BTreeMap::new() };
        let text = std::fs::read_to_string(self.profile_folder.join(path.to_string()));
        text.map(|text| ("profile-text".to_owned(), vec![ParamValue::Text(text)])).into_iter().collect()
    }

    fn unsupported(&self, params: &NetParams, placement: &Placement, facts: &Facts) -> Option<String> {
        params.parse_profile().err().or_else(|| params.nodes().placements(placement, facts).err())
    }

    fn sides(&self, params: &NetParams) -> Topology {
        Topology::ClientServer { servers: params.parse_profile().map_or(1, |profile| hosts(&profile).len().max(1)) }
    }

    fn estimate(&self, params: &NetParams, min_time: Nanos) -> Nanos {
        Nanos::from_seconds(params.seconds(min_time) + SETUP_SECONDS)
    }

    fn sets_duration(&self, params: &NetParams) -> bool {
        params.sets_duration()
    }

    fn shortening(&self, params: &NetParams) -> &'static str {
        if params.sets_duration() {
            "lower the durations of the profile, or `max-duration`"
        } else {
            wb_test::test::LOWER_MIN_TIME
        }
    }

    fn metrics(&self, params: &NetParams) -> Vec<Metric> {
        values::metrics(params.expectation().primary)
    }

    async fn prepare(&self, _: &NetParams, _: &WorkerContext) -> Result<(), Failure> {
        Ok(())
    }

    async fn sample(&self, params: &NetParams, (): &mut (), attempt: &mut Attempt) -> Result<(), Failure> {
        let profile = params.parse_profile().map_err(Failure::refused)?;
        let text = params.profile_text.as_deref().unwrap_or_default();
        attempt.add_artefact(PROFILE, text);
        let path = attempt.context.path(PROFILE);
        attempt.context.put(&path, text.as_bytes()).await?;

        let mut arguments = vec!["run".to_owned(), path, "--interval".to_owned(), params.interval.to_string()];
        for (name, value) in params.variables().map_err(Failure::refused)? {
            arguments.extend(["--var".to_owned(), format!("{name}={value}")]);
        }
        if params.max_duration.0 > 0 {
            arguments.extend(["--max-duration".to_owned(), params.max_duration.to_string()]);
        }
        let workload = NetWorkload { arguments, hosts: hosts(&profile), response_times: false };
        run::run(&workload, params.nodes(), attempt).await
    }

    fn study(&self, params: &NetParams, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
        values::study(params.expectation(), artefacts)
    }
}
