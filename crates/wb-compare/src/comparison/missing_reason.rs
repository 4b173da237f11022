//! Reasons why a check has no verdict.

use std::collections::HashMap;

use wb_model::strip_worker;
use wb_results::comparison::{CheckId, FinalVerdict, ParamDifference, Statistic};

use super::decide::CheckDecision;
use crate::build::{
    Build, Builds, DEFINING_PARAMS, InternedCell, METRIC_CLASS, METRIC_DIRECTION, MeasuredValue, MetricIndex,
};
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

    /// The verdict on a metric that only this build has, if no error is why the first build does not: a value is new, and
    /// without a valid one its attempts failed. Parts of one run are alternatives, of which none is newer.
    pub(super) fn judged_alone(&self, row: MetricIndex, statistic: Statistic, build: usize) -> Option<FinalVerdict> {
        let [reference, judged] = [0, build].map(|index| self.builds.list()[index].value(row, statistic));
        let [_, of_reference] = &self.errors;
        let failed =
            || of_reference.as_ref().is_some_and(|errors| self.message(errors, row, self.builds.cell(row)).is_some());
        match (reference, judged) {
            (MeasuredValue::Missing, MeasuredValue::Invalid) if !failed() => Some(FinalVerdict::Invalid),
            (MeasuredValue::Missing, MeasuredValue::Known(_)) if self.builds.within_run().is_none() && !failed() => {
                Some(FinalVerdict::New)
            }
            _ => None,
        }
    }

    /// The message of the error of a metric's cell, which has this name in the build, or of its serial.
    fn message(&self, errors: &BuildErrors<'a>, row: MetricIndex, cell: InternedCell) -> Option<&'a str> {
        let CheckId { profile, test, serial, .. } = self.builds.id(row, Statistic::Mean);
        let serial = format!("{profile}/{test}/{serial}");
        [self.builds.cell_name(cell), serial]
            .iter()
            .find_map(|location| errors.messages.get(location.as_str()).copied())
    }

    /// What can be done about a metric that both sides declare differently; `None` if they do not.
    fn describe_redeclared(&self, row: MetricIndex, differences: &[ParamDifference]) -> Option<String> {
        let differs = |name: &str| differences.iter().any(|difference| difference.name == name);
        let CheckId { class, metric, .. } = self.builds.id(row, Statistic::Mean);
        if differs(METRIC_CLASS) {
            return Some("both sides must declare the metric alike: measure or import one of them anew".to_owned());
        }
        let only_direction = || DEFINING_PARAMS.iter().all(|name| *name == METRIC_DIRECTION || !differs(name));
        (differs(METRIC_DIRECTION) && only_direction()).then(|| {
            format!("--direction {class}/{}=higher or =lower compares them all the same", strip_worker(metric))
        })
    }

    /// Why a check with these values of the reference and of the judged build has no verdict, or is worse without a value of
    /// the judged build; `None` if it has both, or if no error explains the missing value.
    pub(super) fn of(
        &self,
        row: MetricIndex,
        decision: CheckDecision,
        statistical_check: Option<&statistical::MetricComparison>,
        [reference, judged]: [Option<f64>; 2],
        differences: &[ParamDifference],
    ) -> Option<String> {
        if decision.final_verdict == FinalVerdict::Incomparable {
            return self.describe_redeclared(row, differences);
        }
        if decision.too_few_samples {
            let counts = statistical_check.map(|check| check.counts.samples).map(|samples| match samples {
                [1, 1] => "a single sample a side, whose noise is unknown: ".to_owned(),
                [reference, judged] => format!("{reference} and {judged} samples: "),
            });
            return Some(format!("{}at least {ENOUGH_SAMPLES} per side are required", counts.unwrap_or_default()));
        }
        // Without a value a check may be worse by its failed attempts.
        let is_worse_without_value = decision.final_verdict.is_worse() && judged.is_none();
        let has_no_verdict = matches!(decision.final_verdict, FinalVerdict::Missing | FinalVerdict::Invalid);
        if !has_no_verdict && !is_worse_without_value {
            return None;
        }
        let cell = self.builds.cell(row);
        let counterpart = self.builds.within_run().and_then(|within| within.counterpart(cell));
        let cells = [cell, counterpart.unwrap_or(cell)];
        let parts = self.builds.within_run().map(|within| within.sides(row));
        let sides = self.errors.iter().zip(cells).zip([(1, judged), (0, reference)]);
        let without_value = sides.filter(|(_, (_, value))| value.is_none());
        without_value.filter_map(|((errors, cell), (side, _))| Some((errors.as_ref()?, cell, side))).find_map(|it| {
            let (errors, cell, side) = it;
            let name = parts.map_or(errors.build, |parts| parts[side]);
            let message = self.message(errors, row, cell)?;
            Some(format!("`{name}` failed: {message}"))
        })
    }
}
