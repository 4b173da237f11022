//! net: a profile in uperf's language, between a client and servers of its own on one worker.
//!
//! Start with [`params`]; then [`run`] starts both sides and sees that they end, [`values`] reads the result and
//! [`gates`] judges it. `uperf` measures by the same means.

mod gates;
pub(crate) mod nodes;
mod params;
pub(crate) mod run;
mod server;
#[cfg(test)]
mod testing;
pub(crate) mod values;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use wb_model::{Facts, Metric, Nanos, Params as Given, Placement, Scope, Sides, Value};
use wb_net::mirror::hosts;

use crate::{About, Artefacts, Attempt, Failure, Measure, Measured, Rejected, Site};
use run::Workload;

pub use params::Params;

/// A profile of one's own.
#[derive(Debug, Default)]
pub struct Net {
    beside: PathBuf,
}

/// Beside the windows: starting both sides, letting each other in, ending.
pub(crate) const AROUND: f64 = 0.3;

/// Under this name the profile is kept.
const PROFILE: &str = "profile.xml";

impl Net {
    /// Looks for profiles in this folder.
    pub fn beside(folder: &Path) -> Self {
        Self { beside: folder.to_owned() }
    }
}

#[async_trait]
impl Measure for Net {
    type Params = Params;
    type Prepared = ();

    fn about(&self) -> About {
        About {
            name: "net",
            summary: "network: a profile in uperf's language, counted at both ends",
            version: 1,
            scope: Scope::Sample,
        }
    }

    fn resolve(&self, given: &Given, _: &Facts) -> BTreeMap<String, Vec<Value>> {
        let Some(path) = given.get("profile") else { return BTreeMap::new() };
        let text = std::fs::read_to_string(self.beside.join(path.to_string()));
        text.map(|text| ("profile-text".to_owned(), vec![Value::Text(text)])).into_iter().collect()
    }

    fn unsupported(&self, params: &Params, placement: &Placement, facts: &Facts) -> Option<String> {
        params.read().err().or_else(|| params.nodes().placements(placement, facts).err())
    }

    fn sides(&self, params: &Params) -> Sides {
        Sides::Served { servers: params.read().map_or(1, |profile| hosts(&profile).len().max(1)) }
    }

    fn estimate(&self, params: &Params, min_time: Nanos) -> Nanos {
        Nanos::from_seconds(params.seconds(min_time) + AROUND)
    }

    fn sets_duration(&self, params: &Params) -> bool {
        params.sets_duration()
    }

    fn metrics(&self, params: &Params) -> Vec<Metric> {
        values::metrics(params.asked().primary)
    }

    async fn prepare(&self, _: &Params, _: &Site) -> Result<(), Failure> {
        Ok(())
    }

    async fn sample(&self, params: &Params, (): &mut (), attempt: &mut Attempt) -> Result<(), Failure> {
        let profile = params.read().map_err(Failure::refused)?;
        let text = params.profile_text.as_deref().unwrap_or_default();
        attempt.keep(PROFILE, text);
        let path = attempt.site.path(PROFILE);
        attempt.site.put(&path, text.as_bytes()).await?;

        let mut arguments = vec!["run".to_owned(), path, "--interval".to_owned(), params.interval.to_string()];
        for (name, value) in params.variables().map_err(Failure::refused)? {
            arguments.extend(["--var".to_owned(), format!("{name}={value}")]);
        }
        if params.max_duration.0 > 0 {
            arguments.extend(["--max-duration".to_owned(), params.max_duration.to_string()]);
        }
        let workload = Workload { arguments, hosts: hosts(&profile), nodes: params.nodes(), response_times: false };
        run::run(&workload, attempt).await
    }

    fn study(&self, params: &Params, artefacts: &Artefacts) -> Result<Measured, Rejected> {
        values::study(params.asked(), artefacts)
    }
}
