//! Checks of a definition: what a sample's output must say, and within what its figures must be.

use std::collections::BTreeSet;

use regex::Regex;
use toml::Spanned;
use wb_model::Gate;

use super::error::{DefinitionError, Diagnostic, SourceText};
use super::metric::{MetricDefinition, compile_regex, truncate};
use super::raw;
use super::sample_output::{OutputSource, SampleOutput};
use super::template::{Bindings, Builtin, Template, TemplateScope};
use crate::Measurement;

/// Something that must hold for a sample to count.
#[derive(Debug)]
pub(super) struct Check {
    description: String,
    gate: Gate,
    rule: Predicate,
}

#[derive(Debug)]
enum Predicate {
    Output {
        place: OutputSource,
        pattern: Regex,
        must_match: bool,
    },
    /// A metric, or its ratio to another, by `CLASS/METRIC`.
    Metric {
        metric: String,
        per: Option<String>,
        bounds: Vec<(Relation, Bound)>,
    },
}

#[derive(Debug, Clone, Copy)]
enum Relation {
    AtLeast,
    AtMost,
    Equal,
}

#[derive(Debug)]
enum Bound {
    Number(f64),
    Text(Template),
}

impl Check {
    pub(super) fn parse(
        text: &SourceText<'_>,
        raw: &Spanned<raw::Check>,
        readings: &[MetricDefinition],
        known: &TemplateScope<'_>,
        used: &mut BTreeSet<Builtin>,
        is_runner: bool,
    ) -> Result<Self, DefinitionError> {
        let (at, raw) = (raw.span(), raw.get_ref());
        let wrong = |fault| Err(text.error_at(at.clone(), fault));
        let place = OutputSource::parse(text, raw.from.as_ref(), raw.file.as_ref())?;
        let pattern = match (&raw.must, &raw.must_not) {
            (Some(_), Some(_)) => {
                return wrong(Diagnostic::new("a check has `must` or `must-not`").with_help("write two checks"));
            }
            (Some(pattern), None) => Some((pattern, true)),
            (None, Some(pattern)) => Some((pattern, false)),
            (None, None) => None,
        };
        let (rule, gate) = match (pattern, &raw.metric) {
            (Some(_), _) if is_runner => {
                return wrong(
                    Diagnostic::new("a runner checks its output itself").with_help("it says so with an event `check`"),
                );
            }
            (Some((pattern, wanted)), None) => {
                let place = place.unwrap_or(OutputSource::Stdout);
                (Predicate::Output { place, pattern: compile_regex(text, pattern)?, must_match: wanted }, Gate::Answer)
            }
            (None, Some(metric)) => {
                let metric = find_metric(text, metric, readings)?;
                let per = raw.per.as_ref().map(|per| find_metric(text, per, readings)).transpose()?;
                let relations =
                    [(Relation::AtLeast, &raw.min), (Relation::AtMost, &raw.max), (Relation::Equal, &raw.equals)];
                let mut bounds = Vec::new();
                for (relation, bound) in relations.into_iter().filter_map(|(r, bound)| Some((r, bound.as_ref()?))) {
                    bounds.push((relation, self::parse_bound(text, bound, known, used)?));
                }
                if bounds.is_empty() {
                    return wrong(Diagnostic::new("this check has no bound").with_help("add `min`, `max` or `equals`"));
                }
                (Predicate::Metric { metric, per, bounds }, Gate::Possible)
            }
            _ => return wrong(Diagnostic::new("a check is of a text, by `must` or `must-not`, or of a `metric`")),
        };
        Ok(Self { description: raw.description.get_ref().clone(), gate: raw.gate.unwrap_or(gate), rule })
    }

    /// The text that has to be kept for it.
    pub(super) fn output_source(&self) -> Option<&OutputSource> {
        match &self.rule {
            Predicate::Output { place, .. } => Some(place),
            Predicate::Metric { .. } => None,
        }
    }

    /// Puts a sample to it.
    pub(super) fn apply(&self, measured: &mut Measurement, left: &SampleOutput<'_>, bindings: &Bindings<'_>) {
        match self.violation(measured, left, bindings) {
            Ok(None) => {}
            Ok(Some(figures)) => measured.reject(self.gate, format!("{}: {figures}", self.description)),
            Err(why) => measured.reject(Gate::Output, format!("{}: {why}", self.description)),
        }
    }

    /// The figures that speak against the sample; an error where it cannot be told.
    fn violation(
        &self,
        measured: &Measurement,
        left: &SampleOutput<'_>,
        bindings: &Bindings<'_>,
    ) -> Result<Option<String>, String> {
        match &self.rule {
            Predicate::Output { place, pattern, must_match: wanted } => {
                let text = left.text(place)?;
                let found = pattern.find(&text).map(|found| truncate(found.as_str()));
                Ok(match (found, wanted) {
                    (None, true) => Some(format!("{} does not match `{pattern}`", place.description())),
                    (Some(found), false) => Some(format!("{} says `{found}`", place.description())),
                    _ => None,
                })
            }
            Predicate::Metric { metric, per, bounds } => {
                // An optional metric that was not printed cannot be out of bounds.
                let Some(value) = measured.values.get(metric) else { return Ok(None) };
                let (value, name) = match per {
                    None => (*value, metric.clone()),
                    Some(per) => match measured.values.get(per) {
                        Some(divisor) => (value / divisor, format!("{metric} ({value}) per {per} ({divisor})")),
                        None => return Ok(None),
                    },
                };
                for (relation, bound) in bounds {
                    let bound = bound.evaluate(bindings)?;
                    let (holds, word) = match relation {
                        Relation::AtLeast => (value >= bound, "at least "),
                        Relation::AtMost => (value <= bound, "at most "),
                        Relation::Equal => (value == bound, ""),
                    };
                    if !holds {
                        return Ok(Some(format!("{name} is {value}, {word}{bound} was expected")));
                    }
                }
                Ok(None)
            }
        }
    }
}

impl Bound {
    fn evaluate(&self, bindings: &Bindings<'_>) -> Result<f64, String> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Text(template) => {
                let text = template.text(bindings)?;
                text.parse().map_err(|_| format!("the bound `{text}` is no number"))
            }
        }
    }
}

fn parse_bound(
    text: &SourceText<'_>,
    raw: &Spanned<raw::Bound>,
    known: &TemplateScope<'_>,
    used: &mut BTreeSet<Builtin>,
) -> Result<Bound, DefinitionError> {
    match raw.get_ref() {
        raw::Bound::Number(number) => Ok(Bound::Number(*number)),
        raw::Bound::Text(bound) => {
            Template::parse(bound, known, used).map(Bound::Text).map_err(|fault| text.error_at(raw.span(), fault))
        }
    }
}

/// The metric of this name, as `CLASS/METRIC`.
fn find_metric(
    text: &SourceText<'_>,
    name: &Spanned<String>,
    readings: &[MetricDefinition],
) -> Result<String, DefinitionError> {
    let given = name.get_ref();
    let same = |reading: &&MetricDefinition| reading.metric.name == *given || reading.key() == *given;
    let found: Vec<&MetricDefinition> = readings.iter().filter(same).collect();
    match found.as_slice() {
        [one] => Ok(one.key()),
        [] => {
            let all: Vec<&str> = readings.iter().map(|reading| reading.metric.name.as_str()).collect();
            Err(text.error_at(name.span(), Diagnostic::unknown(format!("there is no metric `{given}`"), given, all)))
        }
        _ => Err(text.error_at(
            name.span(),
            Diagnostic::new(format!("there are several metrics `{given}`"))
                .with_help("put its class and a `/` before it"),
        )),
    }
}
