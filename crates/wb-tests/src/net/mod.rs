//! net: a profile in uperf's language, between a client and private servers.
//!
//! Start with [`params`]; then [`run`] runs both sides, [`values`] evaluates the result, and [`gates`] checks it. The
//! test `uperf` uses the same modules.

pub(crate) mod expectation;
mod gates;
pub(crate) mod nodes;
pub(crate) mod output;
mod params;
pub(crate) mod run;
mod server;
#[cfg(test)]
mod testing;
pub(crate) mod values;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use wb_model::{Facts, Metric, Nanos, ParamValue, Params as RawParams, Placement, Scope, Topology};
use wb_net::mirror::hosts;

use crate::{Artefacts, Attempt, Failure, Measurement, Rejection, TestInfo, TypedTest, WorkerContext};
use run::NetWorkload;

pub use params::Params;

/// The test `net`: a network profile written by the user.
#[derive(Debug, Default)]
pub struct Net {
    profile_folder: PathBuf,
}

/// Time in seconds beside the windows: start, handshake and end of both sides.
pub(crate) const SETUP_SECONDS: f64 = 0.3;

/// Artefact name of the profile.
const PROFILE: &str = "profile.xml";

impl Net {
    /// Creates the test with a folder that relative paths of profiles refer to.
    pub fn with_profile_folder(folder: &Path) -> Self {
        Self { profile_folder: folder.to_owned() }
    }
}

#[async_trait]
impl TypedTest for Net {
    type Params = Params;
    type Prepared = ();

    fn info(&self) -> TestInfo {
        TestInfo {
            name: "net",
            summary: "network: a profile in uperf's language, counted at both ends",
            version: 1,
            scope: Scope::Sample,
        }
    }

    fn resolve(&self, given: &RawParams, _: &Facts) -> BTreeMap<String, Vec<ParamValue>> {
        let Some(path) = given.get("profile") else { return BTreeMap::new() };
        let text = std::fs::read_to_string(self.profile_folder.join(path.to_string()));
        text.map(|text| ("profile-text".to_owned(), vec![ParamValue::Text(text)])).into_iter().collect()
    }

    fn unsupported(&self, params: &Params, placement: &Placement, facts: &Facts) -> Option<String> {
        params.parse_profile().err().or_else(|| params.nodes().placements(placement, facts).err())
    }

    fn sides(&self, params: &Params) -> Topology {
        Topology::ClientServer { servers: params.parse_profile().map_or(1, |profile| hosts(&profile).len().max(1)) }
    }

    fn estimate(&self, params: &Params, min_time: Nanos) -> Nanos {
        Nanos::from_seconds(params.seconds(min_time) + SETUP_SECONDS)
    }

    fn sets_duration(&self, params: &Params) -> bool {
        params.sets_duration()
    }

    fn shortening(&self, params: &Params) -> &'static str {
        if params.sets_duration() {
            "lower the durations of the profile, or `max-duration`"
        } else {
            crate::test::LOWER_MIN_TIME
        }
    }

    fn metrics(&self, params: &Params) -> Vec<Metric> {
        values::metrics(params.expectation().primary)
    }

    async fn prepare(&self, _: &Params, _: &WorkerContext) -> Result<(), Failure> {
        Ok(())
    }

    async fn sample(&self, params: &Params, (): &mut (), attempt: &mut Attempt) -> Result<(), Failure> {
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

    fn study(&self, params: &Params, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
        values::study(params.expectation(), artefacts)
    }
}
