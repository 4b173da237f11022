//! Checks of a definition: patterns in a sample's output, and bounds of its metrics.

use std::collections::BTreeSet;

use regex::Regex;
use toml::Spanned;
use wb_diagnostics::{Diagnostic, SourceText};
use wb_model::{Gate, Metric, MetricKey};

use super::error::unknown_name;
use super::metric::{MetricDefinition, compile_regex, truncate};
use super::raw;
use super::sample_output::{OutputSource, SampleOutput};
use super::template::{Bindings, Builtin, Template, TemplateScope};
use crate::Measurement;

/// A condition for a sample to be valid.
#[derive(Debug)]
pub(super) struct Check {
    description: String,
    gate: Gate,
    rule: Predicate,
}

#[derive(Debug)]
enum Predicate {
    Output {
        source: OutputSource,
        pattern: Regex,
        must_match: bool,
    },
    /// A metric, or its ratio to another.
    Metric {
        metric: MetricKey,
        per: Option<MetricKey>,
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
        text: &SourceText,
        raw: &Spanned<raw::Check>,
        metrics: &[MetricDefinition],
        scope: &TemplateScope<'_>,
        used: &mut BTreeSet<Builtin>,
        is_runner: bool,
    ) -> Result<Self, Diagnostic> {
        let (at, raw) = (raw.span(), raw.get_ref());
        let error = |diagnostic| Err(text.locate(at.clone(), diagnostic));
        let place = OutputSource::parse(text, raw.from.as_ref(), raw.file.as_ref())?;
        let pattern = match (&raw.must, &raw.must_not) {
            (Some(_), Some(_)) => {
                return error(
                    Diagnostic::new("`must` and `must-not` are mutually exclusive").with_help("write two checks"),
                );
            }
            (Some(pattern), None) => Some((pattern, true)),
            (None, Some(pattern)) => Some((pattern, false)),
            (None, None) => None,
        };
        let (rule, gate) = match (pattern, &raw.metric) {
            (Some(_), _) if is_runner => {
                return error(
                    Diagnostic::new("a runner cannot have checks of its output")
                        .with_help("report events `check` instead"),
                );
            }
            (Some((pattern, must_match)), None) => {
                let place = place.unwrap_or(OutputSource::Stdout);
                (Predicate::Output { source: place, pattern: compile_regex(text, pattern)?, must_match }, Gate::Answer)
            }
            (None, Some(metric)) => {
                let metric = find_metric(text, metric, metrics)?;
                let per = raw.per.as_ref().map(|per| find_metric(text, per, metrics)).transpose()?;
                let relations =
                    [(Relation::AtLeast, &raw.min), (Relation::AtMost, &raw.max), (Relation::Equal, &raw.equals)];
                let mut bounds = Vec::new();
                for (relation, bound) in relations.into_iter().filter_map(|(r, bound)| Some((r, bound.as_ref()?))) {
                    bounds.push((relation, self::parse_bound(text, bound, scope, used)?));
                }
                if bounds.is_empty() {
                    return error(
                        Diagnostic::new("missing bound of the check").with_help("add `min`, `max` or `equals`"),
                    );
                }
                (Predicate::Metric { metric, per, bounds }, Gate::Possible)
            }
            _ => return error(Diagnostic::new("invalid check: expected one of `must`, `must-not` and `metric`")),
        };
        Ok(Self { description: raw.description.get_ref().clone(), gate: raw.gate.unwrap_or(gate), rule })
    }

    /// The output that it needs, if any.
    pub(super) fn output_source(&self) -> Option<&OutputSource> {
        match &self.rule {
            Predicate::Output { source: place, .. } => Some(place),
            Predicate::Metric { .. } => None,
        }
    }

    /// Checks a sample.
    pub(super) fn apply(&self, measurement: &mut Measurement, output: &SampleOutput<'_>, bindings: &Bindings<'_>) {
        match self.violation(measurement, output, bindings) {
            Ok(None) => {}
            Ok(Some(figures)) => measurement.reject(self.gate, format!("{}: {figures}", self.description)),
            Err(reason) => measurement.reject(Gate::Output, format!("{}: {reason}", self.description)),
        }
    }

    /// Figures that violate the check, if any; an error if it cannot be evaluated.
    fn violation(
        &self,
        measurement: &Measurement,
        output: &SampleOutput<'_>,
        bindings: &Bindings<'_>,
    ) -> Result<Option<String>, String> {
        match &self.rule {
            Predicate::Output { source: place, pattern, must_match } => {
                let text = output.text(place)?;
                let matched = pattern.find(&text).map(|matched| truncate(matched.as_str()));
                Ok(match (matched, must_match) {
                    (None, true) => Some(format!("{} does not match `{pattern}`", place.description())),
                    (Some(matched), false) => Some(format!("{} matches `{pattern}`: `{matched}`", place.description())),
                    _ => None,
                })
            }
            Predicate::Metric { metric, per, bounds } => {
                // A missing optional metric cannot be out of bounds.
                let Some(value) = measurement.values.get(metric) else { return Ok(None) };
                let (value, name) = match per {
                    None => (*value, metric.to_string()),
                    Some(per) => match measurement.values.get(per) {
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
                        return Ok(Some(format!("{name} is {value}, expected {word}{bound}")));
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
                text.parse().map_err(|_| format!("invalid bound `{text}`: expected a number"))
            }
        }
    }
}

fn parse_bound(
    text: &SourceText,
    raw: &Spanned<raw::Bound>,
    scope: &TemplateScope<'_>,
    used: &mut BTreeSet<Builtin>,
) -> Result<Bound, Diagnostic> {
    match raw.get_ref() {
        raw::Bound::Number(number) => Ok(Bound::Number(*number)),
        raw::Bound::Text(bound) => Template::parse(bound, scope, used)
            .map(Bound::Text)
            .map_err(|diagnostic| text.locate(raw.span(), diagnostic)),
    }
}

/// Finds a metric by its name or its key.
fn find_metric(
    text: &SourceText,
    name: &Spanned<String>,
    metrics: &[MetricDefinition],
) -> Result<MetricKey, Diagnostic> {
    let given = name.get_ref();
    let has_name = |metric: &&Metric| metric.name == *given || metric.key().to_string() == *given;
    let found: Vec<&Metric> = metrics.iter().map(|definition| &definition.metric).filter(has_name).collect();
    match found.as_slice() {
        [metric] => Ok(metric.key()),
        [] => {
            let all: Vec<&str> = metrics.iter().map(|metric| metric.metric.name.as_str()).collect();
            Err(text.locate(name.span(), unknown_name(format!("unknown metric `{given}`"), given, all)))
        }
        _ => Err(text.locate(
            name.span(),
            Diagnostic::new(format!("ambiguous metric `{given}`"))
                .with_help("prefix it with its class, as in `latency/mean`"),
        )),
    }
}
