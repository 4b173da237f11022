//! Extraction of metric values from a command's output by regular expression or JSON path.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;
use toml::Spanned;
use wb_diagnostics::{Diagnostic, SourceText};
use wb_model::{Class, Metric, Unit};

use super::definition::DurationControl;
use super::raw::{self, Reduction};
use super::sample_output::{OutputSource, SampleOutput};

/// A metric, and how its value is extracted.
#[derive(Debug)]
pub(super) struct MetricDefinition {
    pub(super) metric: Metric,
    /// None for a runner, which reports its values.
    pub(super) source: Option<MetricSource>,
    pub(super) reduction: Reduction,
    pub(super) scale: f64,
    /// Whether the figure is divided by the amount of work.
    pub(super) per_work: bool,
    pub(super) units: BTreeMap<String, f64>,
    pub(super) optional: bool,
}

#[derive(Debug)]
pub(super) enum MetricSource {
    Output(OutputSource, Extractor),
    /// Seconds of run time.
    Elapsed,
    /// Work per second of run time.
    Rate,
    /// Seconds of CPU time.
    CpuTime,
    /// Maximum resident set size in bytes.
    MaxRss,
}

#[derive(Debug)]
pub(super) enum Extractor {
    Regex(Regex),
    Json(Vec<String>),
}

impl MetricDefinition {
    pub(super) fn parse(text: &SourceText, raw: &raw::Metric, is_runner: bool) -> Result<Self, Diagnostic> {
        let name = raw.name.get_ref();
        let error = |diagnostic| text.locate(raw.name.span(), diagnostic);
        if wb_model::TestName::new(name.as_str()).is_err() {
            return Err(error(
                Diagnostic::new(format!("invalid name `{name}`"))
                    .with_help("expected letters, digits, `_`, `.` and `-`"),
            ));
        }
        let source = parse_source(text, raw)?;
        if is_runner && source.is_some() {
            return Err(error(
                Diagnostic::new(format!("metric `{name}` of a runner cannot have a source"))
                    .with_help("remove the source"),
            ));
        }
        if !is_runner && source.is_none() {
            let diagnostic = Diagnostic::new(format!("missing source of metric `{name}`"));
            return Err(error(
                diagnostic.with_help("add `regex`, `json`, or `from` with elapsed, rate, cpu-time or max-rss"),
            ));
        }
        let scale = raw.scale.as_ref().map_or(1.0, |scale| *scale.get_ref());
        if !scale.is_finite() || scale <= 0.0 || raw.units.values().any(|factor| !factor.is_finite() || *factor <= 0.0)
        {
            return Err(error(Diagnostic::new(format!(
                "invalid factor of metric `{name}`: expected a positive number"
            ))));
        }
        let has_unit = match &source {
            Some(MetricSource::Output(_, Extractor::Regex(regex))) => {
                regex.capture_names().flatten().any(|name| name == "unit")
            }
            _ => is_runner,
        };
        if !is_runner && has_unit == raw.units.is_empty() {
            return Err(error(
                Diagnostic::new(format!("a group `unit` and `units` of metric `{name}` require each other"))
                    .with_help("for example `(?<unit>…)` with `units = { \"MiB\" = 1048576 }`"),
            ));
        }
        Ok(Self {
            metric: build_metric(raw),
            source,
            reduction: raw.reduce.as_ref().map(|several| *several.get_ref()).unwrap_or_default(),
            scale,
            per_work: raw.per_work,
            units: raw.units.clone(),
            optional: raw.optional,
        })
    }

    /// Extracts the value from a sample's output; none if an optional value is missing.
    pub(super) fn value(&self, source: &MetricSource, output: &SampleOutput<'_>) -> Result<Option<f64>, String> {
        let values = match source {
            MetricSource::Elapsed => vec![output.measured_process()?.elapsed],
            MetricSource::CpuTime => vec![output.measured_process()?.time().cpu],
            MetricSource::MaxRss => vec![output.measured_process()?.usage.max_rss as f64],
            MetricSource::Rate => {
                vec![output.work()? / output.measured_process()?.elapsed]
            }
            MetricSource::Output(stream, extractor) => {
                let text = output.text(stream)?;
                let values = extractor.extract(&text)?;
                values
                    .iter()
                    .map(|(number, unit)| self.parse_number(number, unit.as_deref()))
                    .collect::<Result<_, _>>()?
            }
        };
        let value = self.reduce(values)?;
        Ok(match value {
            Some(total) if self.per_work => Some(total / output.work()?),
            value => value,
        })
    }

    /// Rejects what depends on the amount of work without being related to it: each machine and run has an amount of
    /// its own.
    pub(super) fn check_work(&self, duration_control: DurationControl) -> Result<(), Diagnostic> {
        let has_work = matches!(duration_control, DurationControl::Work(_));
        match self.source {
            None if self.per_work => {
                Err(Diagnostic::new("a runner reports figures as they are recorded").with_help("remove `per-work`"))
            }
            Some(MetricSource::Rate) if !has_work => {
                Err(Diagnostic::new("`from = \"rate\"` requires `{work}` in the command"))
            }
            Some(MetricSource::Rate) if self.per_work => {
                Err(Diagnostic::new("`from = \"rate\"` is related to the work already").with_help("remove `per-work`"))
            }
            _ if self.per_work && !has_work => Err(Diagnostic::new("`per-work` requires `{work}` in the command")),
            Some(MetricSource::Elapsed | MetricSource::CpuTime) if has_work && !self.per_work => {
                let name = &self.metric.name;
                Err(Diagnostic::new(format!("`{name}` depends on the amount of work, which differs between runs"))
                    .with_help("add `per-work = true`: the time of one unit of work; or use `from = \"rate\"`"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn reduce(&self, values: Vec<f64>) -> Result<Option<f64>, String> {
        let (first, last) = match (values.first(), values.last()) {
            (Some(first), Some(last)) => (*first, *last),
            _ if self.optional => return Ok(None),
            _ => return Err("not found in the output".to_owned()),
        };
        let sum: f64 = values.iter().sum();
        let value = match self.reduction {
            Reduction::Single if values.len() > 1 => {
                return Err(format!("expected one match, found {}", values.len()));
            }
            Reduction::Single | Reduction::First => first,
            Reduction::Last => last,
            Reduction::Sum => sum,
            Reduction::Mean => sum / values.len() as f64,
            Reduction::Min => values.iter().copied().fold(f64::INFINITY, f64::min),
            Reduction::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        };
        Ok(Some(value * self.scale))
    }

    fn parse_number(&self, text: &str, unit: Option<&str>) -> Result<f64, String> {
        let number: f64 = text.trim().parse().map_err(|_| format!("invalid number `{}`", truncate(text)))?;
        if !number.is_finite() {
            return Err(format!("invalid number `{number}`"));
        }
        match unit {
            None => Ok(number),
            Some(unit) => self.convert(number, unit),
        }
    }

    /// Converts a figure from its unit to the declared one.
    pub(super) fn convert(&self, number: f64, unit: &str) -> Result<f64, String> {
        if let Some(factor) = self.units.get(unit) {
            return Ok(number * factor);
        }
        if unit == self.metric.unit.as_str() && !unit.is_empty() {
            return Ok(number);
        }
        let expected: Vec<&str> = self.units.keys().map(String::as_str).collect();
        let expected = if expected.is_empty() { self.metric.unit.as_str().to_owned() } else { expected.join(", ") };
        Err(format!("unknown unit `{}` of {number}: expected {expected}", truncate(unit)))
    }
}

fn build_metric(raw: &raw::Metric) -> Metric {
    let name = raw.name.get_ref();
    let mut metric = match raw.class {
        Class::Throughput => Metric::throughput(name, &raw.unit),
        // There are no histograms to merge.
        Class::Latency => Metric { aggregate: wb_model::Aggregate::Max, ..Metric::latency(name, &raw.unit) },
        Class::Resource => Metric::resource(name, &raw.unit),
        Class::Check => Metric::check(name, &raw.unit),
    };
    metric.unit = Unit::new(&raw.unit);
    metric.primary = raw.primary;
    metric.direction = raw.direction.unwrap_or(metric.direction);
    metric.aggregate = raw.over_workers.unwrap_or(metric.aggregate);
    metric
}

fn parse_source(text: &SourceText, raw: &raw::Metric) -> Result<Option<MetricSource>, Diagnostic> {
    let extractor = parse_extractor(text, raw.regex.as_ref(), raw.json.as_ref())?;
    let output = OutputSource::parse(text, raw.from.as_ref(), raw.file.as_ref())?;
    let from = raw.from.as_ref().map(|from| *from.get_ref());
    let process = match from {
        Some(raw::FigureSource::Elapsed) => Some(MetricSource::Elapsed),
        Some(raw::FigureSource::Rate) => Some(MetricSource::Rate),
        Some(raw::FigureSource::CpuTime) => Some(MetricSource::CpuTime),
        Some(raw::FigureSource::MaxRss) => Some(MetricSource::MaxRss),
        _ => None,
    };
    let position = raw.name.span();
    match (process, output, extractor) {
        (Some(source), _, None) => Ok(Some(source)),
        (Some(_), _, Some(_)) => Err(text.locate(
            position,
            Diagnostic::new("`regex` and `json` are not possible with this `from`").with_help("remove them, or `from`"),
        )),
        (None, output, Some(extractor)) => {
            Ok(Some(MetricSource::Output(output.unwrap_or(OutputSource::Stdout), extractor)))
        }
        (None, Some(_), None) => Err(text.locate(position, Diagnostic::new("missing `regex` or `json`"))),
        (None, None, None) => Ok(None),
    }
}

fn parse_extractor(
    text: &SourceText,
    pattern: Option<&Spanned<String>>,
    path: Option<&Spanned<String>>,
) -> Result<Option<Extractor>, Diagnostic> {
    match (pattern, path) {
        (None, None) => Ok(None),
        (Some(_), Some(path)) => Err(text
            .locate(path.span(), Diagnostic::new("`regex` and `json` are mutually exclusive").with_help("remove one"))),
        (Some(pattern), None) => {
            let compiled = compile_regex(text, pattern)?;
            let has_value_group = compiled.capture_names().flatten().any(|name| name == "value");
            if !has_value_group && compiled.captures_len() != 2 {
                return Err(text.locate(
                    pattern.span(),
                    Diagnostic::new("missing capture group of the value")
                        .with_help("use `(…)`, or `(?<value>…)` with several groups"),
                ));
            }
            Ok(Some(Extractor::Regex(compiled)))
        }
        (None, Some(path)) => match path.get_ref().strip_prefix('/') {
            Some(rest) => {
                let part = |part: &str| part.replace("~1", "/").replace("~0", "~");
                Ok(Some(Extractor::Json(rest.split('/').map(part).collect())))
            }
            None => Err(text.locate(
                path.span(),
                Diagnostic::new("invalid JSON path").with_help("expected a path such as `/end/0/bytes`"),
            )),
        },
    }
}

/// Compiles a regular expression in multi-line mode: `^` and `$` match at lines.
pub(super) fn compile_regex(text: &SourceText, pattern: &Spanned<String>) -> Result<Regex, Diagnostic> {
    regex::RegexBuilder::new(pattern.get_ref()).multi_line(true).size_limit(1 << 20).build().map_err(|error| {
        let message = error.to_string();
        let last = message.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        text.locate(pattern.span(), Diagnostic::new(format!("invalid regular expression: {last}")))
    })
}

impl Extractor {
    /// Extracts all figures from a text, each with its unit, if any.
    fn extract(&self, text: &str) -> Result<Vec<(String, Option<String>)>, String> {
        match self {
            Self::Regex(regex) => {
                let figures = regex.captures_iter(text).filter_map(|captures| {
                    let value = captures.name("value").or_else(|| captures.get(1))?;
                    let unit = captures.name("unit").map(|unit| unit.as_str().to_owned());
                    Some((value.as_str().to_owned(), unit))
                });
                Ok(figures.collect())
            }
            Self::Json(path) => {
                let json: Value =
                    serde_json::from_str(text.trim()).map_err(|error| format!("invalid JSON: {error}"))?;
                let mut figures = Vec::new();
                collect_figures(&json, path, &mut figures);
                Ok(figures.into_iter().map(|number| (number, None)).collect())
            }
        }
    }
}

/// Collects the figures at a path, in which `*` stands for every element.
fn collect_figures(json: &Value, path: &[String], figures: &mut Vec<String>) {
    let Some((step, rest)) = path.split_first() else {
        match json {
            Value::Number(number) => figures.push(number.to_string()),
            Value::String(text) => figures.push(text.clone()),
            _ => {}
        }
        return;
    };
    match json {
        Value::Array(list) if step == "*" => list.iter().for_each(|element| collect_figures(element, rest, figures)),
        Value::Object(fields) if step == "*" => {
            fields.values().for_each(|element| collect_figures(element, rest, figures))
        }
        Value::Array(list) => {
            if let Some(element) = step.parse().ok().and_then(|position: usize| list.get(position)) {
                collect_figures(element, rest, figures);
            }
        }
        Value::Object(fields) => {
            if let Some(element) = fields.get(step) {
                collect_figures(element, rest, figures);
            }
        }
        _ => {}
    }
}

pub(super) fn truncate(text: &str) -> String {
    const MAX_CHARS: usize = 60;
    let short: String = text.chars().take(MAX_CHARS).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}
