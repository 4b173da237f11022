//! Why nothing could be decided about a check.

use std::collections::HashMap;

use super::FinalVerdict;
use super::decide::CheckDecision;
use crate::build::{Build, Builds};
use crate::id::CheckId;
use crate::statistical::{self, ENOUGH_SAMPLES};

/// The texts of a build's errors by their places.
struct BuildErrors<'a> {
    build: &'a str,
    texts: HashMap<&'a str, &'a str>,
}

/// The errors of the last build, and of the first.
pub(super) struct MissingReasons<'a>([Option<BuildErrors<'a>>; 2]);

impl<'a> MissingReasons<'a> {
    pub(super) fn new(builds: &'a Builds) -> Self {
        let errors = |build: &'a Build| BuildErrors {
            build: &build.name,
            texts: build.errors().map(|error| (error.place.as_str(), error.text.as_str())).collect(),
        };
        Self([builds.list().last(), builds.list().first()].map(|build| build.map(errors)))
    }

    /// Why a check with the values `src` and `dst` has no verdict; none where it has one, or where no error of the side
    /// without a value explains it.
    pub(super) fn of(
        &self,
        id: &CheckId<'_>,
        decision: CheckDecision,
        found: Option<&statistical::MetricComparison>,
        [src, dst]: [Option<f64>; 2],
    ) -> Option<String> {
        if decision.too_few_samples {
            let counts = found.map(|found| format!("{} and {} samples: ", found.units.src, found.units.dst));
            return Some(format!("{}fewer than {ENOUGH_SAMPLES} a side decide nothing", counts.unwrap_or_default()));
        }
        if !matches!(decision.final_verdict, FinalVerdict::Missing | FinalVerdict::Invalid) {
            return None;
        }
        let serial = format!("{}/{}/{}", id.profile, id.test, id.serial);
        let case = format!("{serial}:{}", id.case);
        let without_value = self.0.iter().zip([dst, src]).filter(|(_, value)| value.is_none());
        without_value.filter_map(|(errors, _)| errors.as_ref()).find_map(|BuildErrors { build, texts }| {
            let text = [&case, &serial].into_iter().find_map(|place| texts.get(place.as_str()))?;
            Some(format!("`{build}` failed: {text}"))
        })
    }
}
