//! Figures out of what a command left: by regular expression or JSON path, in the unit that was declared.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;
use toml::Spanned;
use wb_model::{Class, Metric, Unit};

use super::error::{DefinitionError, Fault, Text};
use super::left::{Left, Place};
use super::raw::{self, Several};

/// A metric and where its figure comes from.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) metric: Metric,
    /// Nowhere for a runner, which says its figures itself.
    pub(super) source: Option<Source>,
    pub(super) several: Several,
    pub(super) scale: f64,
    pub(super) units: BTreeMap<String, f64>,
    pub(super) optional: bool,
}

/// Where a figure comes from.
#[derive(Debug)]
pub(super) enum Source {
    /// Text that the command left.
    Found(Place, Way),
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
pub(super) enum Way {
    Regex(Regex),
    Json(Vec<String>),
}

impl Reading {
    pub(super) fn read(text: &Text<'_>, raw: &raw::Metric, is_runner: bool) -> Result<Self, DefinitionError> {
        let name = raw.name.get_ref();
        let wrong = |fault| text.wrong(raw.name.span(), fault);
        if wb_model::TestName::new(name.as_str()).is_err() {
            return Err(wrong(
                Fault::new(format!("`{name}` is not a name")).with("letters, digits, `_`, `.` and `-` are allowed"),
            ));
        }
        let source = source(text, raw)?;
        if is_runner && source.is_some() {
            return Err(wrong(
                Fault::new(format!("a runner says `{name}` itself")).with("remove where it is read from"),
            ));
        }
        if !is_runner && source.is_none() {
            let fault = Fault::new(format!("nothing says where `{name}` is read from"));
            return Err(wrong(fault.with("add `regex`, `json`, or `from` with elapsed, rate, cpu-time or max-rss")));
        }
        let scale = raw.scale.as_ref().map_or(1.0, |scale| *scale.get_ref());
        if !scale.is_finite() || scale <= 0.0 || raw.units.values().any(|factor| !factor.is_finite() || *factor <= 0.0)
        {
            return Err(wrong(Fault::new(format!("`{name}` has a factor that is no positive number"))));
        }
        let says_unit = match &source {
            Some(Source::Found(_, Way::Regex(regex))) => regex.capture_names().flatten().any(|name| name == "unit"),
            _ => is_runner,
        };
        if !is_runner && says_unit == raw.units.is_empty() {
            return Err(wrong(
                Fault::new(format!("the unit of `{name}` is captured or converted, but not both"))
                    .with("a group `(?<unit>…)` needs `units = { \"MiB\" = 1048576 }`, and the other way round"),
            ));
        }
        Ok(Self {
            metric: metric(raw),
            source,
            several: raw.several.as_ref().map(|several| *several.get_ref()).unwrap_or_default(),
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
    pub(super) fn value(&self, source: &Source, left: &Left<'_>) -> Result<Option<f64>, String> {
        let found = match source {
            Source::Elapsed => vec![left.process()?.elapsed],
            Source::CpuTime => vec![left.process()?.cpu_seconds()],
            Source::MaxRss => vec![left.process()?.usage.max_rss as f64],
            Source::Rate => {
                let work = left.work.ok_or("no work is recorded")?;
                vec![work as f64 / left.process()?.elapsed]
            }
            Source::Found(place, way) => {
                let text = left.text(place)?;
                let found = way.find(&text)?;
                found.iter().map(|(number, unit)| self.number(number, unit.as_deref())).collect::<Result<_, _>>()?
            }
        };
        self.one_of(found)
    }

    /// The one figure that several come to.
    pub(super) fn one_of(&self, found: Vec<f64>) -> Result<Option<f64>, String> {
        let (first, last) = match (found.first(), found.last()) {
            (Some(first), Some(last)) => (*first, *last),
            _ if self.optional => return Ok(None),
            _ => return Err("it is not there".to_owned()),
        };
        let sum: f64 = found.iter().sum();
        let value = match self.several {
            Several::Refused if found.len() > 1 => {
                return Err(format!("{} figures match where one was expected", found.len()));
            }
            Several::Refused | Several::First => first,
            Several::Last => last,
            Several::Sum => sum,
            Several::Mean => sum / found.len() as f64,
            Several::Min => found.iter().copied().fold(f64::INFINITY, f64::min),
            Several::Max => found.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        };
        Ok(Some(value * self.scale))
    }

    fn number(&self, text: &str, unit: Option<&str>) -> Result<f64, String> {
        let number: f64 = text.trim().parse().map_err(|_| format!("`{}` is no number", shortened(text)))?;
        if !number.is_finite() {
            return Err(format!("it is {number}"));
        }
        match unit {
            None => Ok(number),
            Some(unit) => self.in_unit(number, unit),
        }
    }

    /// A figure that came with its unit, in the declared one.
    pub(super) fn in_unit(&self, number: f64, unit: &str) -> Result<f64, String> {
        if let Some(factor) = self.units.get(unit) {
            return Ok(number * factor);
        }
        if unit == self.metric.unit.as_str() && !unit.is_empty() {
            return Ok(number);
        }
        let known: Vec<&str> = self.units.keys().map(String::as_str).collect();
        let known = if known.is_empty() { self.metric.unit.as_str().to_owned() } else { known.join(", ") };
        Err(format!("it is {number} in `{}`, and only {known} is known", shortened(unit)))
    }
}

fn metric(raw: &raw::Metric) -> Metric {
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

fn source(text: &Text<'_>, raw: &raw::Metric) -> Result<Option<Source>, DefinitionError> {
    let way = way(text, raw.regex.as_ref(), raw.json.as_ref())?;
    let place = Place::read(text, raw.from.as_ref(), raw.file.as_ref())?;
    let from = raw.from.as_ref().map(|from| *from.get_ref());
    let process = match from {
        Some(raw::From::Elapsed) => Some(Source::Elapsed),
        Some(raw::From::Rate) => Some(Source::Rate),
        Some(raw::From::CpuTime) => Some(Source::CpuTime),
        Some(raw::From::MaxRss) => Some(Source::MaxRss),
        _ => None,
    };
    let at = raw.name.span();
    match (process, place, way) {
        (Some(source), _, None) => Ok(Some(source)),
        (Some(_), _, Some(_)) => {
            Err(text.wrong(at, Fault::new("this needs no `regex` and no `json`").with("remove them, or `from`")))
        }
        (None, place, Some(way)) => Ok(Some(Source::Found(place.unwrap_or(Place::Stdout), way))),
        (None, Some(_), None) => Err(text.wrong(at, Fault::new("this needs a `regex` or a `json`"))),
        (None, None, None) => Ok(None),
    }
}

fn way(
    text: &Text<'_>,
    pattern: Option<&Spanned<String>>,
    path: Option<&Spanned<String>>,
) -> Result<Option<Way>, DefinitionError> {
    match (pattern, path) {
        (None, None) => Ok(None),
        (Some(_), Some(path)) => {
            Err(text.wrong(path.span(), Fault::new("a figure is read by `regex` or by `json`").with("remove one")))
        }
        (Some(pattern), None) => {
            let compiled = regex(text, pattern)?;
            let named = compiled.capture_names().flatten().any(|name| name == "value");
            if !named && compiled.captures_len() != 2 {
                return Err(text.wrong(
                    pattern.span(),
                    Fault::new("the figure is what the one group captures")
                        .with("put it into `(…)`, or into `(?<value>…)` where there are several groups"),
                ));
            }
            Ok(Some(Way::Regex(compiled)))
        }
        (None, Some(path)) => match path.get_ref().strip_prefix('/') {
            Some(rest) => {
                let part = |part: &str| part.replace("~1", "/").replace("~0", "~");
                Ok(Some(Way::Json(rest.split('/').map(part).collect())))
            }
            None => {
                Err(text.wrong(path.span(), Fault::new("a JSON path starts with `/`").with("as in `/end/0/bytes`")))
            }
        },
    }
}

/// Compiles a regular expression, whose `^` and `$` are those of lines.
pub(super) fn regex(text: &Text<'_>, pattern: &Spanned<String>) -> Result<Regex, DefinitionError> {
    regex::RegexBuilder::new(pattern.get_ref()).multi_line(true).size_limit(1 << 20).build().map_err(|error| {
        let message = error.to_string();
        let last = message.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        text.wrong(pattern.span(), Fault::new(format!("this is no regular expression: {last}")))
    })
}

impl Way {
    /// All figures in a text, each with the unit that it came with.
    fn find(&self, text: &str) -> Result<Vec<(String, Option<String>)>, String> {
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
                walk(&json, path, &mut found);
                Ok(found.into_iter().map(|number| (number, None)).collect())
            }
        }
    }
}

/// The figures at a path, in which `*` is every element.
fn walk(json: &Value, path: &[String], found: &mut Vec<String>) {
    let Some((step, rest)) = path.split_first() else {
        match json {
            Value::Number(number) => found.push(number.to_string()),
            Value::String(text) => found.push(text.clone()),
            _ => {}
        }
        return;
    };
    match json {
        Value::Array(list) if step == "*" => list.iter().for_each(|one| walk(one, rest, found)),
        Value::Object(fields) if step == "*" => fields.values().for_each(|one| walk(one, rest, found)),
        Value::Array(list) => {
            if let Some(one) = step.parse().ok().and_then(|at: usize| list.get(at)) {
                walk(one, rest, found);
            }
        }
        Value::Object(fields) => {
            if let Some(one) = fields.get(step) {
                walk(one, rest, found);
            }
        }
        _ => {}
    }
}

pub(super) fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    let short: String = text.chars().take(MOST).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}
