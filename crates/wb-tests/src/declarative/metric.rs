//! Extraction of metric values from a command's output by regular expression or JSON path.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;
use toml::Spanned;
use wb_model::{Class, Metric, Unit};

use super::error::{DefinitionError, Diagnostic, SourceText};
use super::raw::{self, Reduction};
use super::sample_output::{OutputSource, SampleOutput};

/// A metric and where its figure comes from.
#[derive(Debug)]
pub(super) struct MetricDefinition {
    pub(super) metric: Metric,
    /// Nowhere for a runner, which says its figures itself.
    pub(super) source: Option<MetricSource>,
    pub(super) reduction: Reduction,
    pub(super) scale: f64,
    pub(super) units: BTreeMap<String, f64>,
    pub(super) optional: bool,
}

/// Where a figure comes from.
#[derive(Debug)]
pub(super) enum MetricSource {
    /// Text that the command left.
    Output(OutputSource, Extractor),
    /// How long the command ran, in seconds.
    Elapsed,
    /// Work per second that it ran.
    Rate,
    /// The CPU time it used, in seconds.
    CpuTime,
    /// The largest resident set of its processes, in bytes.
    MaxRss,
}

/// How a figure is found in a text.
#[derive(Debug)]
pub(super) enum Extractor {
    Regex(Regex),
    Json(Vec<String>),
}

impl MetricDefinition {
    pub(super) fn parse(text: &SourceText<'_>, raw: &raw::Metric, is_runner: bool) -> Result<Self, DefinitionError> {
        let name = raw.name.get_ref();
        let wrong = |fault| text.error_at(raw.name.span(), fault);
        if wb_model::TestName::new(name.as_str()).is_err() {
            return Err(wrong(
                Diagnostic::new(format!("`{name}` is not a name"))
                    .with_help("letters, digits, `_`, `.` and `-` are allowed"),
            ));
        }
        let source = parse_source(text, raw)?;
        if is_runner && source.is_some() {
            return Err(wrong(
                Diagnostic::new(format!("a runner says `{name}` itself")).with_help("remove where it is read from"),
            ));
        }
        if !is_runner && source.is_none() {
            let fault = Diagnostic::new(format!("nothing says where `{name}` is read from"));
            return Err(wrong(
                fault.with_help("add `regex`, `json`, or `from` with elapsed, rate, cpu-time or max-rss"),
            ));
        }
        let scale = raw.scale.as_ref().map_or(1.0, |scale| *scale.get_ref());
        if !scale.is_finite() || scale <= 0.0 || raw.units.values().any(|factor| !factor.is_finite() || *factor <= 0.0)
        {
            return Err(wrong(Diagnostic::new(format!("`{name}` has a factor that is no positive number"))));
        }
        let says_unit = match &source {
            Some(MetricSource::Output(_, Extractor::Regex(regex))) => {
                regex.capture_names().flatten().any(|name| name == "unit")
            }
            _ => is_runner,
        };
        if !is_runner && says_unit == raw.units.is_empty() {
            return Err(wrong(
                Diagnostic::new(format!("the unit of `{name}` is captured or converted, but not both"))
                    .with_help("a group `(?<unit>…)` needs `units = { \"MiB\" = 1048576 }`, and the other way round"),
            ));
        }
        Ok(Self {
            metric: build_metric(raw),
            source,
            reduction: raw.reduce.as_ref().map(|several| *several.get_ref()).unwrap_or_default(),
            scale,
            units: raw.units.clone(),
            optional: raw.optional,
        })
    }

    /// `CLASS/METRIC`.
    pub(super) fn key(&self) -> String {
        format!("{}/{}", self.metric.class, self.metric.name)
    }

    /// The figure in what a command left; none where an optional one is not there. An error says why there is none.
    pub(super) fn value(&self, source: &MetricSource, left: &SampleOutput<'_>) -> Result<Option<f64>, String> {
        let found = match source {
            MetricSource::Elapsed => vec![left.measured_process()?.elapsed],
            MetricSource::CpuTime => vec![left.measured_process()?.cpu_seconds()],
            MetricSource::MaxRss => vec![left.measured_process()?.usage.max_rss as f64],
            MetricSource::Rate => {
                let work = left.work.ok_or("no work is recorded")?;
                vec![work as f64 / left.measured_process()?.elapsed]
            }
            MetricSource::Output(place, way) => {
                let text = left.text(place)?;
                let found = way.extract(&text)?;
                found
                    .iter()
                    .map(|(number, unit)| self.parse_number(number, unit.as_deref()))
                    .collect::<Result<_, _>>()?
            }
        };
        self.reduce(found)
    }

    /// The one figure that several come to.
    pub(super) fn reduce(&self, found: Vec<f64>) -> Result<Option<f64>, String> {
        let (first, last) = match (found.first(), found.last()) {
            (Some(first), Some(last)) => (*first, *last),
            _ if self.optional => return Ok(None),
            _ => return Err("it is not there".to_owned()),
        };
        let sum: f64 = found.iter().sum();
        let value = match self.reduction {
            Reduction::Single if found.len() > 1 => {
                return Err(format!("{} figures match where one was expected", found.len()));
            }
            Reduction::Single | Reduction::First => first,
            Reduction::Last => last,
            Reduction::Sum => sum,
            Reduction::Mean => sum / found.len() as f64,
            Reduction::Min => found.iter().copied().fold(f64::INFINITY, f64::min),
            Reduction::Max => found.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        };
        Ok(Some(value * self.scale))
    }

    fn parse_number(&self, text: &str, unit: Option<&str>) -> Result<f64, String> {
        let number: f64 = text.trim().parse().map_err(|_| format!("`{}` is no number", truncate(text)))?;
        if !number.is_finite() {
            return Err(format!("it is {number}"));
        }
        match unit {
            None => Ok(number),
            Some(unit) => self.convert(number, unit),
        }
    }

    /// A figure that came with its unit, in the declared one.
    pub(super) fn convert(&self, number: f64, unit: &str) -> Result<f64, String> {
        if let Some(factor) = self.units.get(unit) {
            return Ok(number * factor);
        }
        if unit == self.metric.unit.as_str() && !unit.is_empty() {
            return Ok(number);
        }
        let known: Vec<&str> = self.units.keys().map(String::as_str).collect();
        let known = if known.is_empty() { self.metric.unit.as_str().to_owned() } else { known.join(", ") };
        Err(format!("it is {number} in `{}`, and only {known} is known", truncate(unit)))
    }
}

fn build_metric(raw: &raw::Metric) -> Metric {
    let name = raw.name.get_ref();
    let mut metric = match raw.class {
        Class::Throughput => Metric::throughput(name, &raw.unit),
        // There is no histogram to merge.
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

fn parse_source(text: &SourceText<'_>, raw: &raw::Metric) -> Result<Option<MetricSource>, DefinitionError> {
    let way = parse_extractor(text, raw.regex.as_ref(), raw.json.as_ref())?;
    let place = OutputSource::parse(text, raw.from.as_ref(), raw.file.as_ref())?;
    let from = raw.from.as_ref().map(|from| *from.get_ref());
    let process = match from {
        Some(raw::FigureSource::Elapsed) => Some(MetricSource::Elapsed),
        Some(raw::FigureSource::Rate) => Some(MetricSource::Rate),
        Some(raw::FigureSource::CpuTime) => Some(MetricSource::CpuTime),
        Some(raw::FigureSource::MaxRss) => Some(MetricSource::MaxRss),
        _ => None,
    };
    let at = raw.name.span();
    match (process, place, way) {
        (Some(source), _, None) => Ok(Some(source)),
        (Some(_), _, Some(_)) => Err(text
            .error_at(at, Diagnostic::new("this needs no `regex` and no `json`").with_help("remove them, or `from`"))),
        (None, place, Some(way)) => Ok(Some(MetricSource::Output(place.unwrap_or(OutputSource::Stdout), way))),
        (None, Some(_), None) => Err(text.error_at(at, Diagnostic::new("this needs a `regex` or a `json`"))),
        (None, None, None) => Ok(None),
    }
}

fn parse_extractor(
    text: &SourceText<'_>,
    pattern: Option<&Spanned<String>>,
    path: Option<&Spanned<String>>,
) -> Result<Option<Extractor>, DefinitionError> {
    match (pattern, path) {
        (None, None) => Ok(None),
        (Some(_), Some(path)) => Err(text.error_at(
            path.span(),
            Diagnostic::new("a figure is read by `regex` or by `json`").with_help("remove one"),
        )),
        (Some(pattern), None) => {
            let compiled = compile_regex(text, pattern)?;
            let named = compiled.capture_names().flatten().any(|name| name == "value");
            if !named && compiled.captures_len() != 2 {
                return Err(text.error_at(
                    pattern.span(),
                    Diagnostic::new("the figure is what the one group captures")
                        .with_help("put it into `(…)`, or into `(?<value>…)` where there are several groups"),
                ));
            }
            Ok(Some(Extractor::Regex(compiled)))
        }
        (None, Some(path)) => match path.get_ref().strip_prefix('/') {
            Some(rest) => {
                let part = |part: &str| part.replace("~1", "/").replace("~0", "~");
                Ok(Some(Extractor::Json(rest.split('/').map(part).collect())))
            }
            None => Err(text.error_at(
                path.span(),
                Diagnostic::new("a JSON path starts with `/`").with_help("as in `/end/0/bytes`"),
            )),
        },
    }
}

/// Compiles a regular expression, whose `^` and `$` are those of lines.
pub(super) fn compile_regex(text: &SourceText<'_>, pattern: &Spanned<String>) -> Result<Regex, DefinitionError> {
    regex::RegexBuilder::new(pattern.get_ref()).multi_line(true).size_limit(1 << 20).build().map_err(|error| {
        let message = error.to_string();
        let last = message.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        text.error_at(pattern.span(), Diagnostic::new(format!("this is no regular expression: {last}")))
    })
}

impl Extractor {
    /// All figures in a text, each with the unit that it came with.
    fn extract(&self, text: &str) -> Result<Vec<(String, Option<String>)>, String> {
        match self {
            Self::Regex(regex) => {
                let found = regex.captures_iter(text).filter_map(|captures| {
                    let value = captures.name("value").or_else(|| captures.get(1))?;
                    let unit = captures.name("unit").map(|unit| unit.as_str().to_owned());
                    Some((value.as_str().to_owned(), unit))
                });
                Ok(found.collect())
            }
            Self::Json(path) => {
                let json: Value =
                    serde_json::from_str(text.trim()).map_err(|error| format!("it is no JSON: {error}"))?;
                let mut found = Vec::new();
                collect_figures(&json, path, &mut found);
                Ok(found.into_iter().map(|number| (number, None)).collect())
            }
        }
    }
}

/// The figures at a path, in which `*` is every element.
fn collect_figures(json: &Value, path: &[String], found: &mut Vec<String>) {
    let Some((step, rest)) = path.split_first() else {
        match json {
            Value::Number(number) => found.push(number.to_string()),
            Value::String(text) => found.push(text.clone()),
            _ => {}
        }
        return;
    };
    match json {
        Value::Array(list) if step == "*" => list.iter().for_each(|one| collect_figures(one, rest, found)),
        Value::Object(fields) if step == "*" => fields.values().for_each(|one| collect_figures(one, rest, found)),
        Value::Array(list) => {
            if let Some(one) = step.parse().ok().and_then(|at: usize| list.get(at)) {
                collect_figures(one, rest, found);
            }
        }
        Value::Object(fields) => {
            if let Some(one) = fields.get(step) {
                collect_figures(one, rest, found);
            }
        }
        _ => {}
    }
}

pub(super) fn truncate(text: &str) -> String {
    const MOST: usize = 60;
    let short: String = text.chars().take(MOST).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}
