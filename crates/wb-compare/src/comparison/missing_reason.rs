//! Reasons why a check has no verdict.

use std::collections::HashMap;

use super::FinalVerdict;
use super::decide::CheckDecision;
use crate::build::{Build, Builds};
use crate::id::CheckId;
use crate::statistical::{self, ENOUGH_SAMPLES};

/// The messages of a build's errors, by location.
struct BuildErrors<'a> {
    build: &'a str,
    messages: HashMap<&'a str, &'a str>,
}

/// The errors of the last build, and of the first.
pub(super) struct MissingReasons<'a>([Option<BuildErrors<'a>>; 2]);

impl<'a> MissingReasons<'a> {
    pub(super) fn new(builds: &'a Builds) -> Self {
        let errors = |build: &'a Build| BuildErrors {
            build: &build.name,
            messages: build.errors().map(|error| (error.location.as_str(), error.message.as_str())).collect(),
        };
        Self([builds.list().last(), builds.list().first()].map(|build| build.map(errors)))
    }

    /// Why a check with these values of the reference and of the judged build has no verdict; `None` if it has one, or
    /// if no error explains the missing value.
    pub(super) fn of(
        &self,
        id: &CheckId<'_>,
        decision: CheckDecision,
        statistical_check: Option<&statistical::MetricComparison>,
        [reference, judged]: [Option<f64>; 2],
    ) -> Option<String> {
        if decision.too_few_samples {
            let counts = statistical_check
                .map(|check| check.counts.samples)
                .map(|[reference, judged]| format!("{reference} and {judged} samples: "));
            return Some(format!("{}at least {ENOUGH_SAMPLES} per side are required", counts.unwrap_or_default()));
        }
        if !matches!(decision.final_verdict, FinalVerdict::Missing | FinalVerdict::Invalid) {
            return None;
        }
        let serial = format!("{}/{}/{}", id.profile, id.test, id.serial);
        let case = format!("{serial}:{}", id.case);
        let without_value = self.0.iter().zip([judged, reference]).filter(|(_, value)| value.is_none());
        without_value.filter_map(|(errors, _)| errors.as_ref()).find_map(|BuildErrors { build, messages }| {
            let message = [&case, &serial].into_iter().find_map(|location| messages.get(location.as_str()))?;
            Some(format!("`{build}` failed: {message}"))
        })
    }
}
