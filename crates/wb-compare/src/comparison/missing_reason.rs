//! Reasons why a check has no verdict.

use std::collections::HashMap;

use super::FinalVerdict;
use super::decide::CheckDecision;
use crate::build::{Build, Builds, MetricIndex};
use crate::id::{CheckId, Statistic};
use crate::statistical::{self, ENOUGH_SAMPLES};

/// The messages of a build's errors, by location.
struct BuildErrors<'a> {
    build: &'a str,
    messages: HashMap<&'a str, &'a str>,
}

/// The errors of the last build, and of the first.
pub(super) struct MissingReasons<'a> {
    builds: &'a Builds,
    errors: [Option<BuildErrors<'a>>; 2],
}

impl<'a> MissingReasons<'a> {
    pub(super) fn new(builds: &'a Builds) -> Self {
        let errors = |build: &'a Build| BuildErrors {
            build: &build.name,
            messages: build.errors().map(|error| (error.location.as_str(), error.message.as_str())).collect(),
        };
        Self { builds, errors: [builds.list().last(), builds.list().first()].map(|build| build.map(errors)) }
    }

    /// Why a check with these values of the reference and of the judged build has no verdict; `None` if it has one, or
    /// if no error explains the missing value.
    pub(super) fn of(
        &self,
        row: MetricIndex,
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
        let CheckId { profile, test, serial, .. } = self.builds.id(row, Statistic::Mean);
        let serial = format!("{profile}/{test}/{serial}");
        let cell = self.builds.cell(row);
        let counterpart = self.builds.within_run().and_then(|within| within.counterpart(cell));
        let cases = [cell, counterpart.unwrap_or(cell)].map(|cell| self.builds.cell_name(cell));
        let parts = self.builds.within_run().map(|within| within.sides(row));
        let sides = self.errors.iter().zip(&cases).zip([(1, judged), (0, reference)]);
        let without_value = sides.filter(|(_, (_, value))| value.is_none());
        without_value.filter_map(|((errors, case), (side, _))| Some((errors.as_ref()?, case, side))).find_map(|it| {
            let (BuildErrors { build, messages }, case, side) = it;
            let name = parts.map_or(*build, |parts| parts[side]);
            let message = [case, &serial].into_iter().find_map(|location| messages.get(location.as_str()))?;
            Some(format!("`{name}` failed: {message}"))
        })
    }
}
