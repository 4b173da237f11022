//! Checks of a test definition: patterns that a sample's output has to match, and bounds of its metrics.

use std::collections::BTreeSet;

use regex::Regex;
use toml::Spanned;
use wb_diagnostics::{Diagnostic, SourceText};
use wb_model::{Gate, Metric, MetricKey};
use wb_test::Measurement;

use super::error::unknown_name;
use super::metric::{MetricDefinition, compile_regex, truncate};
use super::raw;
use super::sample_output::{OutputSource, SampleOutput};
use super::template::{Bindings, Builtin, Template, TemplateScope};

/// A condition that a sample must satisfy, or else its values are rejected.
#[derive(Debug)]
pub(super) struct Check {
    description: String,
    /// Gate that a violation fails. By default [`Gate::Answer`] for output, [`Gate::Plausibility`] for metrics.
    gate: Gate,
    predicate: Predicate,
}

#[derive(Debug)]
enum Predicate {
    /// A pattern that the output has to match, or must not match.
    Output { source: OutputSource, pattern: Regex, must_match: bool },
    /// Bounds of a metric, or of its ratio to `divisor`.
    Metric { metric: MetricKey, divisor: Option<MetricKey>, bounds: Vec<(Relation, Bound)> },
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
    Template(Template),
}

impl Check {
    /// Validates a check of a definition. Builtins of its templates are added to `used_builtins`.
    pub(super) fn parse(
        text: &SourceText,
        raw: &Spanned<raw::Check>,
        metrics: &[MetricDefinition],
        scope: &TemplateScope<'_>,
        used_builtins: &mut BTreeSet<Builtin>,
        is_runner: bool,
    ) -> Result<Self, Diagnostic> {
        let (span, raw) = (raw.span(), raw.get_ref());
        let error = |diagnostic| Err(text.locate(span.clone(), diagnostic));
        let source = OutputSource::parse(text, raw.from.as_ref(), raw.file.as_ref())?;
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
        let (predicate, gate) = match (pattern, &raw.metric) {
            (Some(_), _) if is_runner => {
                return error(
                    Diagnostic::new("a runner cannot have checks of its output")
                        .with_help("emit `check` events from the runner instead"),
                );
            }
            (Some((pattern, must_match)), None) => {
                let source = source.unwrap_or(OutputSource::Stdout);
                (Predicate::Output { source, pattern: compile_regex(text, pattern)?, must_match }, Gate::Answer)
            }
            (None, Some(metric)) => {
                let metric = find_metric(text, metric, metrics)?;
                let divisor = raw.per.as_ref().map(|per| find_metric(text, per, metrics)).transpose()?;
                let relations =
                    [(Relation::AtLeast, &raw.min), (Relation::AtMost, &raw.max), (Relation::Equal, &raw.equals)];
                let mut bounds = Vec::new();
                for (relation, bound) in
                    relations.into_iter().filter_map(|(relation, bound)| Some((relation, bound.as_ref()?)))
                {
                    bounds.push((relation, parse_bound(text, bound, scope, used_builtins)?));
                }
                if bounds.is_empty() {
                    return error(Diagnostic::new("the check has no bound").with_help("add `min`, `max` or `equals`"));
                }
                (Predicate::Metric { metric, divisor, bounds }, Gate::Plausibility)
            }
            _ => return error(Diagnostic::new("invalid check: expected one of `must`, `must-not` and `metric`")),
        };
        Ok(Self { description: raw.description.get_ref().clone(), gate: raw.gate.unwrap_or(gate), predicate })
    }

    /// The output that the check reads; `None` for a check of a metric.
    pub(super) fn output_source(&self) -> Option<&OutputSource> {
        match &self.predicate {
            Predicate::Output { source, .. } => Some(source),
            Predicate::Metric { .. } => None,
        }
    }

    /// Rejects the measurement of a sample that violates the check, or for which the check cannot be evaluated.
    pub(super) fn apply(&self, measurement: &mut Measurement, output: &SampleOutput<'_>, bindings: &Bindings<'_>) {
        if let Predicate::Metric { metric, divisor, .. } = &self.predicate {
            let missing = [Some(metric), divisor.as_ref()].into_iter().flatten();
            let missing = missing.into_iter().find(|metric| !measurement.values.contains_key(*metric));
            if let Some(missing) = missing {
                measurement.findings.push(format!("not checked: {}: the sample has no {missing}", self.description));
            }
        }
        match self.violation(measurement, output, bindings) {
            Ok(None) => {}
            Ok(Some(violation)) => measurement.reject(self.gate, format!("{}: {violation}", self.description)),
            Err(error) => measurement.reject(Gate::Output, format!("{}: {error}", self.description)),
        }
    }

    /// Describes how a sample violates the check; `None` if it does not.
    fn violation(
        &self,
        measurement: &Measurement,
        output: &SampleOutput<'_>,
        bindings: &Bindings<'_>,
    ) -> Result<Option<String>, String> {
        match &self.predicate {
            Predicate::Output { source, pattern, must_match } => {
                let text = output.text(source)?;
                let matched = pattern.find(&text).map(|matched| truncate(matched.as_str()));
                Ok(match (matched, must_match) {
                    (None, true) => Some(format!("{} does not match `{pattern}`", source.description())),
                    (Some(matched), false) => {
                        Some(format!("{} matches `{pattern}`: `{matched}`", source.description()))
                    }
                    _ => None,
                })
            }
            Predicate::Metric { metric, divisor, bounds } => {
                // A missing optional metric cannot be out of bounds.
                let Some(value) = measurement.values.get(metric) else { return Ok(None) };
                let (value, name) = match divisor {
                    None => (*value, metric.to_string()),
                    Some(divisor) => match measurement.values.get(divisor) {
                        Some(divisor_value) => {
                            (value / divisor_value, format!("{metric} ({value}) per {divisor} ({divisor_value})"))
                        }
                        None => return Ok(None),
                    },
                };
                for (relation, bound) in bounds {
                    let bound = bound.evaluate(bindings)?;
                    let (holds, qualifier) = match relation {
                        Relation::AtLeast => (value >= bound, "at least "),
                        Relation::AtMost => (value <= bound, "at most "),
                        Relation::Equal => (value == bound, ""),
                    };
                    if !holds {
                        return Ok(Some(format!("{name} is {value}, expected {qualifier}{bound}")));
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
            Self::Template(template) => {
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
    used_builtins: &mut BTreeSet<Builtin>,
) -> Result<Bound, Diagnostic> {
    match raw.get_ref() {
        raw::Bound::Number(number) => Ok(Bound::Number(*number)),
        raw::Bound::Text(template) => Template::parse(template, scope, used_builtins)
            .map(Bound::Template)
            .map_err(|diagnostic| text.locate(raw.span(), diagnostic)),
    }
}

/// Finds a metric by its name or its key.
fn find_metric(
    text: &SourceText,
    name: &Spanned<String>,
    metrics: &[MetricDefinition],
) -> Result<MetricKey, Diagnostic> {
    let span = name.span();
    let name = name.get_ref();
    let has_name = |metric: &&Metric| metric.name == *name || metric.key().to_string() == *name;
    let matching: Vec<&Metric> = metrics.iter().map(|definition| &definition.metric).filter(has_name).collect();
    match matching.as_slice() {
        [metric] => Ok(metric.key()),
        [] => {
            let known: Vec<&str> = metrics.iter().map(|definition| definition.metric.name.as_str()).collect();
            Err(text.locate(span, unknown_name(format!("unknown metric `{name}`"), name, known)))
        }
        _ => Err(text.locate(
            span,
            Diagnostic::new(format!("ambiguous metric `{name}`"))
                .with_help("prefix it with its class, as in `latency/mean`"),
        )),
    }
}
