//! Plans as files: TOML with a table `[sampling]` and one `[[test]]` per test.
//!
//! ```toml
//! name = "nightly"
//! summary = "what this plan is for"
//!
//! [sampling]
//! min-time = "2s"
//!
//! [tool-groups]
//! cache = ["perf stat -a -e cache-misses"]
//!
//! [[test]]
//! name = "fio"
//! rw = ["read", "randwrite"]
//! tools = ["cache"]
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use wb_model::Value;

use crate::nearest::nearest;
use crate::request::{Form, Written};
use crate::{Given, PlanError, Request, Sampling, Source, spec};

/// A plan as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanFile {
    /// Its name; the file's stem where it gives none.
    pub name: String,
    /// What it is for.
    pub summary: String,
    /// How it samples.
    pub sampling: Sampling,
    /// Its tests, in order.
    pub requests: Vec<Request>,
}

/// Everything but the tests, which keep the places of all they say.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Head {
    name: Option<String>,
    #[serde(default)]
    summary: String,
    #[serde(default)]
    sampling: Option<Spanned<Sampling>>,
    #[serde(default)]
    tool_groups: BTreeMap<String, Vec<String>>,
    #[serde(default, rename = "test")]
    _tests: Vec<toml::Table>,
}

/// Reads a plan. `name` is the file's path, for messages.
pub fn parse(name: &str, text: &str) -> Result<PlanFile, PlanError> {
    let source = Source::new(name, text);
    let malformed = |error: toml::de::Error| {
        let span = error.span().unwrap_or(0..0);
        PlanError::at(&source, span, format!("this plan cannot be read: {}", error.message()), "here")
            .with_help("a plan has `name`, `summary`, [sampling], [tool-groups] and one [[test]] per test")
    };
    let table = DeTable::parse(text).map_err(malformed)?.into_inner();
    let head: Head = toml::from_str(text).map_err(malformed)?;
    let sampling = match head.sampling {
        None => Sampling::default(),
        Some(sampling) => match sampling.get_ref().fault() {
            None => sampling.into_inner(),
            Some(fault) => return Err(PlanError::at(&source, sampling.span(), fault, "in this table")),
        },
    };
    let tests = match table.get("test").map(Spanned::get_ref) {
        Some(DeValue::Array(tests)) => tests.iter().map(|test| request(&source, test, &head.tool_groups)).collect(),
        _ => Ok(Vec::new()),
    };
    let stem = std::path::Path::new(name).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    Ok(PlanFile { name: head.name.or(stem).unwrap_or_default(), summary: head.summary, sampling, requests: tests? })
}

fn request(
    source: &Source,
    test: &Spanned<DeValue>,
    groups: &BTreeMap<String, Vec<String>>,
) -> Result<Request, PlanError> {
    let DeValue::Table(entries) = test.get_ref() else {
        return Err(PlanError::at(source, test.span(), "a test is a table", "`[[test]]` is expected"));
    };
    let mut request = Request {
        source: source.clone(),
        test: String::new(),
        test_at: test.span(),
        id: None,
        given: Vec::new(),
        stages: Vec::new(),
        tools: Vec::new(),
    };
    for (name, value) in entries {
        let value = written(source, value)?;
        match name.get_ref().as_ref() {
            "name" => (request.test, request.test_at) = (value.value().to_string(), value.at),
            "id" => request.id = Some(spec::pinned(source, &value)?),
            "tools" => request.tools = tools(source, &value, groups)?,
            other => request.given.push(Given { name: other.to_owned(), name_at: name.span(), value }),
        }
    }
    if request.test.is_empty() {
        return Err(PlanError::at(source, test.span(), "this test has no name", "`name = \"…\"` is missing"));
    }
    request.given.sort_by_key(|given| given.name_at.start);
    Ok(request)
}

/// Command lines, or names of groups of them.
fn tools(source: &Source, value: &Written, groups: &BTreeMap<String, Vec<String>>) -> Result<Vec<String>, PlanError> {
    let listed = match &value.form {
        Form::Many(list) => list.clone(),
        Form::One(_) => vec![value.clone()],
    };
    let mut commands = Vec::new();
    for entry in listed {
        let text = entry.value().to_string();
        match groups.get(&text) {
            Some(group) => commands.extend(group.iter().cloned()),
            None => match nearest(&text, groups.keys().map(String::as_str)) {
                Some(near) if !text.contains(' ') => {
                    let message = format!("there is no tool group `{text}`");
                    return Err(PlanError::at(source, entry.at, message, format!("did you mean `{near}`?")));
                }
                _ => commands.push(text),
            },
        }
    }
    Ok(commands)
}

fn written(source: &Source, value: &Spanned<DeValue>) -> Result<Written, PlanError> {
    let at = value.span();
    let unusable =
        |at: Range<usize>| PlanError::at(source, at, "a parameter takes a value or a list of values", "not this");
    let form = match value.get_ref() {
        DeValue::String(text) => Form::One(Value::Text(text.to_string())),
        DeValue::Boolean(value) => Form::One(Value::Bool(*value)),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map(|number| Form::One(Value::Integer(number)))
            .map_err(|_| unusable(at.clone()))?,
        DeValue::Float(number) => {
            number.as_str().parse().map(|n| Form::One(Value::Number(n))).map_err(|_| unusable(at.clone()))?
        }
        DeValue::Array(list) => Form::Many(list.iter().map(|value| written(source, value)).collect::<Result<_, _>>()?),
        DeValue::Datetime(_) | DeValue::Table(_) => return Err(unusable(at)),
    };
    Ok(Written { form, at })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_plan_keeps_the_places_of_what_it_says() {
        let text =
            "[sampling]\nmin-time = \"2s\"\n\n[[test]]\nname = \"fio\"\nrw = [\"read\", \"write\"]\nid = \"night\"\n";
        let plan = parse("/x/nightly.toml", text).unwrap();
        assert_eq!(plan.name, "nightly");
        assert_eq!(plan.sampling.min_time.seconds(), 2.0);
        let request = &plan.requests[0];
        assert_eq!(&text[request.test_at.clone()], "\"fio\"");
        assert_eq!(&text[request.given[0].name_at.clone()], "rw");
        assert_eq!(&text[request.given[0].value.at.clone()], "[\"read\", \"write\"]");
        assert_eq!(request.id.as_ref().unwrap().as_str(), "night");
    }

    #[test]
    fn tool_groups_are_unfolded_and_wrong_ones_found() {
        let plan = |tools: &str| {
            let text = format!("[tool-groups]\ncache = [\"perf stat\"]\n[[test]]\nname = \"fio\"\ntools = {tools}\n");
            parse("p.toml", &text)
        };
        assert_eq!(plan("[\"cache\", \"sar 1\"]").unwrap().requests[0].tools, ["perf stat", "sar 1"]);
        assert!(plan("\"cahce\"").is_err());
    }

    #[test]
    fn mistakes_are_errors_with_a_place() {
        for bad in [
            "x = 1",
            "[sampling]\nmin-tim = 1",
            "[sampling]\nmin-samples = 9\nmax-samples = 3",
            "[[test]]\nrw = 1",
            "[",
            "test = 3",
        ] {
            assert!(parse("p.toml", bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String) {
            let _ = parse("p.toml", &text);
        }
    }
}
