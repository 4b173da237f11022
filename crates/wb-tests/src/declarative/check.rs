//! Checks of a definition: what a sample's output must say, and within what its figures must be.

use std::collections::BTreeSet;

use regex::Regex;
use toml::Spanned;
use wb_model::Gate;

use super::error::{DefinitionError, Fault, Text};
use super::left::{Left, Place};
use super::raw;
use super::reading::{Reading, regex, shortened};
use super::template::{Bindings, Builtin, Known, Template};
use crate::Measured;

/// Something that must hold for a sample to count.
#[derive(Debug)]
pub(super) struct Check {
    says: String,
    gate: Gate,
    rule: Rule,
}

#[derive(Debug)]
enum Rule {
    Says {
        place: Place,
        pattern: Regex,
        wanted: bool,
    },
    /// A metric, or its ratio to another, by `CLASS/METRIC`.
    Within {
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
    pub(super) fn read(
        text: &Text<'_>,
        raw: &Spanned<raw::Check>,
        readings: &[Reading],
        known: &Known<'_>,
        used: &mut BTreeSet<Builtin>,
        is_runner: bool,
    ) -> Result<Self, DefinitionError> {
        let (at, raw) = (raw.span(), raw.get_ref());
        let wrong = |fault| Err(text.wrong(at.clone(), fault));
        let place = Place::read(text, raw.from.as_ref(), raw.file.as_ref())?;
        let pattern = match (&raw.must, &raw.must_not) {
            (Some(_), Some(_)) => {
                return wrong(Fault::new("a check has `must` or `must-not`").with("write two checks"));
            }
            (Some(pattern), None) => Some((pattern, true)),
            (None, Some(pattern)) => Some((pattern, false)),
            (None, None) => None,
        };
        let (rule, gate) = match (pattern, &raw.metric) {
            (Some(_), _) if is_runner => {
                return wrong(Fault::new("a runner checks its output itself").with("it says so with an event `check`"));
            }
            (Some((pattern, wanted)), None) => {
                let place = place.unwrap_or(Place::Stdout);
                (Rule::Says { place, pattern: regex(text, pattern)?, wanted }, Gate::Answer)
            }
            (None, Some(metric)) => {
                let metric = named(text, metric, readings)?;
                let per = raw.per.as_ref().map(|per| named(text, per, readings)).transpose()?;
                let relations =
                    [(Relation::AtLeast, &raw.min), (Relation::AtMost, &raw.max), (Relation::Equal, &raw.equals)];
                let mut bounds = Vec::new();
                for (relation, bound) in relations.into_iter().filter_map(|(r, bound)| Some((r, bound.as_ref()?))) {
                    bounds.push((relation, self::bound(text, bound, known, used)?));
                }
                if bounds.is_empty() {
                    return wrong(Fault::new("this check has no bound").with("add `min`, `max` or `equals`"));
                }
                (Rule::Within { metric, per, bounds }, Gate::Possible)
            }
            _ => return wrong(Fault::new("a check is of a text, by `must` or `must-not`, or of a `metric`")),
        };
        Ok(Self { says: raw.says.get_ref().clone(), gate: raw.gate.unwrap_or(gate), rule })
    }

    /// The text that has to be kept for it.
    pub(super) fn place(&self) -> Option<&Place> {
        match &self.rule {
            Rule::Says { place, .. } => Some(place),
            Rule::Within { .. } => None,
        }
    }

    /// Puts a sample to it.
    pub(super) fn apply(&self, measured: &mut Measured, left: &Left<'_>, bindings: &Bindings<'_>) {
        match self.verdict(measured, left, bindings) {
            Ok(None) => {}
            Ok(Some(figures)) => measured.reject(self.gate, format!("{}: {figures}", self.says)),
            Err(why) => measured.reject(Gate::Output, format!("{}: {why}", self.says)),
        }
    }

    /// The figures that speak against the sample; an error where it cannot be told.
    fn verdict(&self, measured: &Measured, left: &Left<'_>, bindings: &Bindings<'_>) -> Result<Option<String>, String> {
        match &self.rule {
            Rule::Says { place, pattern, wanted } => {
                let text = left.text(place)?;
                let found = pattern.find(&text).map(|found| shortened(found.as_str()));
                Ok(match (found, wanted) {
                    (None, true) => Some(format!("{} does not match `{pattern}`", place.word())),
                    (Some(found), false) => Some(format!("{} says `{found}`", place.word())),
                    _ => None,
                })
            }
            Rule::Within { metric, per, bounds } => {
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
                    let bound = bound.number(bindings)?;
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
    fn number(&self, bindings: &Bindings<'_>) -> Result<f64, String> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Text(template) => {
                let text = template.text(bindings)?;
                text.parse().map_err(|_| format!("the bound `{text}` is no number"))
            }
        }
    }
}

fn bound(
    text: &Text<'_>,
    raw: &Spanned<raw::Bound>,
    known: &Known<'_>,
    used: &mut BTreeSet<Builtin>,
) -> Result<Bound, DefinitionError> {
    match raw.get_ref() {
        raw::Bound::Number(number) => Ok(Bound::Number(*number)),
        raw::Bound::Text(bound) => {
            Template::parse(bound, known, used).map(Bound::Text).map_err(|fault| text.wrong(raw.span(), fault))
        }
    }
}

/// The metric of this name, as `CLASS/METRIC`.
fn named(text: &Text<'_>, name: &Spanned<String>, readings: &[Reading]) -> Result<String, DefinitionError> {
    let given = name.get_ref();
    let same = |reading: &&Reading| reading.metric.name == *given || reading.key() == *given;
    let found: Vec<&Reading> = readings.iter().filter(same).collect();
    match found.as_slice() {
        [one] => Ok(one.key()),
        [] => {
            let all: Vec<&str> = readings.iter().map(|reading| reading.metric.name.as_str()).collect();
            Err(text.wrong(name.span(), Fault::unknown(format!("there is no metric `{given}`"), given, all)))
        }
        _ => Err(text.wrong(
            name.span(),
            Fault::new(format!("there are several metrics `{given}`")).with("put its class and a `/` before it"),
        )),
    }
}
