//! Plan files: TOML with a table `[sampling]`, one `[[test]]` per test, and one `[[peers]]` per matrix of
//! implementations, which is a test named `peers`.
//!
//! ```toml
//! name = "nightly"
//! summary = "what this plan is for"
//! tools = ["sar 1"]            # around the samples of every test
//! publish = "upload.sh"        # after each test, and at the end
//! on = ["a", "b"]              # the workers that measure every test without an `on` of its own
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
use wb_diagnostics::{
    Diagnostic, DiagnosticCollector, Diagnostics, SourceText, UnknownKind, UnknownName, humanize_serde_error,
};
use wb_model::ParamValue;

use crate::criteria::{METRICS, RequestedMetric, THRESHOLDS};
use crate::expand::KNOBS;
use crate::request::{SpannedValue, ValueForm};
use crate::tools::{self, ToolGroups};
use crate::{Request, RequestCriteria, Sampling, SpannedParam, spec};

/// The test that each `[[peers]]` requests.
pub const PEERS: &str = "peers";

#[derive(Debug, Clone, PartialEq)]
pub struct PlanFile {
    /// The file stem if the file has no name.
    pub name: String,
    pub summary: String,
    pub sampling: Sampling,
    /// The command that publishes the results, after each test and at the end.
    pub publish: Option<String>,
    /// In the order of the file.
    pub requests: Vec<Request>,
}

/// The header of a plan file. Tools, workers and tests are parsed separately to keep their spans.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PlanHead {
    name: Option<String>,
    #[serde(default)]
    summary: String,
    #[serde(rename = "tools")]
    _tools: Option<toml::Value>,
    #[serde(rename = "on")]
    _on: Option<toml::Value>,
    publish: Option<Spanned<String>>,
    #[serde(default)]
    sampling: Sampling,
    #[serde(default)]
    tool_groups: ToolGroups,
    #[serde(default, rename = "test")]
    _tests: Vec<toml::Table>,
    #[serde(default, rename = "peers")]
    _peers: Vec<toml::Table>,
}

/// Parses a plan file. `name` is its path, for messages.
pub fn parse(name: &str, text: &str) -> Result<PlanFile, Diagnostics> {
    let source = SourceText::new(name, text);
    let table = DeTable::parse(text).map_err(|error| toml_error(&source, &error))?.into_inner();
    check_group_names(&source, &table)?;
    let head: PlanHead = toml::from_str(text).map_err(|error| key_error(&source, &error))?;
    let mut errors = DiagnosticCollector::default();
    if let Some(fault) = head.sampling.validate() {
        let index = sampling_key_span(&table, &fault.keys);
        errors.push(Diagnostic::at(&source, index, fault.message, "here"));
    }
    errors.ok(tools::validate_groups(&source, &head.tool_groups));
    if let Some(line) = head.publish.as_ref().filter(|line| tools::split_words(line.get_ref()).is_none()) {
        let message = "invalid `publish` command: expected a non-empty command line with closed quotes";
        errors.push(Diagnostic::at(&source, line.span(), message, "here"));
    }
    let plan_tools =
        |value| parse_value(&source, value).and_then(|value| tools::expand_tools(&source, &value, &head.tool_groups));
    let plan_tools = table.get("tools").and_then(|value| errors.ok(plan_tools(value))).unwrap_or_default();
    let on = table.get_key_value("on").and_then(|(name, value)| {
        let value = errors.ok(parse_value(&source, value))?;
        Some(SpannedParam { name: name.get_ref().to_string(), name_span: name.span(), value })
    });
    let mut requests = Vec::new();
    for (key, default_name) in [("test", None), ("peers", Some(PEERS))] {
        let Some(DeValue::Array(tests)) = table.get(key).map(Spanned::get_ref) else { continue };
        for test in tests {
            let request = errors.ok(parse_request(&source, test, default_name, &head.tool_groups));
            let Some(mut request) = request else { continue };
            request.tools.splice(0..0, plan_tools.iter().cloned());
            request.default_on.clone_from(&on);
            requests.push(request);
        }
    }
    // In the order of the file, whatever the key.
    requests.sort_by_key(|request: &Request| request.test_span.start);
    errors.finish()?;
    let stem = std::path::Path::new(name).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = head.name.or(stem).unwrap_or_default();
    let publish = head.publish.map(Spanned::into_inner);
    Ok(PlanFile { name, summary: head.summary, sampling: head.sampling, publish, requests })
}

/// Decodes a plan file; invalid UTF-8 is an error at its first invalid byte.
pub fn decode_utf8(name: &str, bytes: Vec<u8>) -> Result<String, Diagnostic> {
    String::from_utf8(bytes).map_err(|error| {
        let index = error.utf8_error().valid_up_to();
        let byte = error.as_bytes()[index];
        // The text before the invalid byte is the same in the replacement text.
        let source = SourceText::new(name, &String::from_utf8_lossy(error.as_bytes()));
        let span = index..index + char::REPLACEMENT_CHARACTER.len_utf8();
        Diagnostic::at(&source, span, "the plan is not valid UTF-8", format!("invalid UTF-8 byte 0x{byte:02x}"))
            .with_help("save the file in UTF-8")
    })
}

/// The keys of a plan that are no tables: below the first table, they are keys of that table.
const PLAN_KEYS: [&str; 5] = ["name", "summary", "tools", "on", "publish"];

fn key_error(source: &SourceText, error: &toml::de::Error) -> Diagnostic {
    let unknown = UnknownName::parse(error.message().trim()).filter(|unknown| PLAN_KEYS.contains(&unknown.given));
    match error.span().filter(|_| unknown.is_some()) {
        Some(span) => misplaced(source, span),
        None => toml_error(source, error),
    }
}

/// A key of the plan below a table.
fn misplaced(source: &SourceText, span: Range<usize>) -> Diagnostic {
    let key = &source.text[span.clone()];
    let error = Diagnostic::at(source, span, format!("misplaced key `{key}`"), "move it above the first table");
    if ["tools", "on"].contains(&key) {
        error.with_help("above the first table it applies to all tests, inside a [[test]] to that test alone")
    } else {
        error
    }
}

/// Refuses groups of tools that have the name of a key of the plan.
fn check_group_names(source: &SourceText, table: &DeTable) -> Result<(), Diagnostic> {
    let Some(DeValue::Table(groups)) = table.get("tool-groups").map(Spanned::get_ref) else { return Ok(()) };
    let key = groups.keys().find(|key| PLAN_KEYS.contains(&key.get_ref().as_ref()));
    key.map_or(Ok(()), |key| Err(misplaced(source, key.span())))
}

/// Converts an error of the TOML parser, with a spelling suggestion for an unknown name.
fn toml_error(source: &SourceText, error: &toml::de::Error) -> Diagnostic {
    let at = error.span().unwrap_or(0..0);
    let message = error.message().trim().replace('\n', ", ");
    let Some(unknown) = UnknownName::parse(&message) else {
        let message = humanize_serde_error(&message);
        return Diagnostic::at(source, at, format!("invalid plan: {message}"), "here").with_help(
            "a plan has `name`, `summary`, `tools`, `on`, `publish`, [sampling], [tool-groups], one [[test]] per test and one [[peers]] per matrix",
        );
    };
    let kind = match unknown.kind {
        UnknownKind::Field => "key",
        UnknownKind::Variant => "value",
    };
    Diagnostic::at(source, at, format!("unknown {kind} `{}`", unknown.given), "unknown")
        .with_suggestion(unknown.suggestion())
        .with_help(format!("expected one of {}", unknown.expected.join(", ")))
}

/// Of the first of `keys` that is present.
fn sampling_key_span(table: &DeTable, keys: &[&str]) -> Range<usize> {
    let Some((name, DeValue::Table(entries))) = table.get_key_value("sampling").map(|(k, v)| (k, v.get_ref())) else {
        return 0..0;
    };
    let entry = keys.iter().find_map(|key| entries.get_key_value(*key));
    entry.map_or(name.span(), |(key, value)| key.span().start..value.span().end)
}

/// Parses the table of one test. `default_name` is its name if the key of the table implies it.
fn parse_request(
    source: &SourceText,
    test: &Spanned<DeValue>,
    default_name: Option<&str>,
    groups: &ToolGroups,
) -> Result<Request, Diagnostics> {
    let DeValue::Table(entries) = test.get_ref() else {
        let message = "invalid test: expected a table";
        return Err(Diagnostic::at(source, test.span(), message, "expected `[[test]]`").into());
    };
    let mut request = Request {
        source: source.clone(),
        test: default_name.unwrap_or_default().to_owned(),
        test_span: test.span(),
        id: None,
        params: Vec::new(),
        stages: Vec::new(),
        tools: Vec::new(),
        criteria: RequestCriteria::default(),
        programs: BTreeMap::new(),
        default_on: None,
    };
    let mut errors = DiagnosticCollector::default();
    for (name, value) in entries {
        if let ("knobs", DeValue::Table(knobs)) = (name.get_ref().as_ref(), value.get_ref()) {
            for (knob, value) in knobs {
                let (given, name_at) = (format!("{KNOBS}{}", knob.get_ref()), knob.span());
                let Some(value) = errors.ok(parse_value(source, value)) else { continue };
                request.params.push(SpannedParam { name: given, name_span: name_at, value });
            }
            continue;
        }
        if name.get_ref() == THRESHOLDS {
            errors.ok(add_thresholds(source, value, &mut request.criteria));
            continue;
        }
        let Some(value) = errors.ok(parse_value(source, value)) else { continue };
        match name.get_ref().as_ref() {
            "name" if default_name.is_none() => {
                (request.test, request.test_span) = (value.value().to_string(), value.span)
            }
            "id" => request.id = errors.ok(spec::parse_id(source, &value)),
            METRICS => drop(errors.ok(request.criteria.add_metrics(source, &value))),
            "tools" => request.tools.extend(errors.ok(tools::expand_tools(source, &value, groups)).unwrap_or_default()),
            // pbench's name, used by fio and uperf: it starts the group and remains a parameter.
            "tool-group" => {
                request.tools.extend(errors.ok(tools::expand_group(source, &value, groups)).unwrap_or_default());
                request.params.push(SpannedParam { name: name.get_ref().to_string(), name_span: name.span(), value });
            }
            other => request.params.push(SpannedParam { name: other.to_owned(), name_span: name.span(), value }),
        }
    }
    if request.test.is_empty() {
        let unnamed = Diagnostic::at(source, test.span(), "missing test name", "missing `name = \"…\"`");
        errors.push(unnamed);
    }
    errors.finish()?;
    request.params.sort_by_key(|given| given.name_span.start);
    Ok(request)
}

fn add_thresholds(
    source: &SourceText,
    thresholds: &Spanned<DeValue>,
    criteria: &mut RequestCriteria,
) -> Result<(), Diagnostics> {
    let DeValue::Table(entries) = thresholds.get_ref() else {
        let message = format!("invalid `{THRESHOLDS}`: expected a percentage for each metric");
        let label = "expected a table such as `{ p99 = 10 }`";
        return Err(Diagnostic::at(source, thresholds.span(), message, label).into());
    };
    let mut errors = DiagnosticCollector::default();
    for (metric, value) in entries {
        let metric = RequestedMetric { text: metric.get_ref().to_string(), span: metric.span() };
        let Some(value) = errors.ok(parse_value(source, value)) else { continue };
        errors.ok(criteria.add_threshold(source, metric, &value));
    }
    errors.finish()
}

fn parse_value(source: &SourceText, value: &Spanned<DeValue>) -> Result<SpannedValue, Diagnostic> {
    let at = value.span();
    let invalid = |at: Range<usize>| {
        Diagnostic::at(source, at, "invalid parameter value: expected a value or a list of values", "unsupported value")
    };
    let form = match value.get_ref() {
        DeValue::String(text) => ValueForm::Single(ParamValue::Text(text.to_string())),
        DeValue::Boolean(value) => ValueForm::Single(ParamValue::Bool(*value)),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map(|number| ValueForm::Single(ParamValue::Integer(number)))
            .map_err(|_| invalid(at.clone()))?,
        DeValue::Float(number) => number
            .as_str()
            .parse()
            .map(|n| ValueForm::Single(ParamValue::Number(n)))
            .map_err(|_| invalid(at.clone()))?,
        DeValue::Array(list) => {
            ValueForm::List(list.iter().map(|value| parse_value(source, value)).collect::<Result<_, _>>()?)
        }
        DeValue::Datetime(_) | DeValue::Table(_) => return Err(invalid(at)),
    };
    Ok(SpannedValue { form, span: at })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn requests_keep_their_spans() {
        let text =
            "[sampling]\nmin-time = \"2s\"\n\n[[test]]\nname = \"fio\"\nrw = [\"read\", \"write\"]\nid = \"night\"\n";
        let plan = parse("/x/nightly.toml", text).unwrap();
        assert_eq!(plan.name, "nightly");
        assert_eq!(plan.sampling.min_time.seconds(), 2.0);
        let request = &plan.requests[0];
        assert_eq!(&text[request.test_span.clone()], "\"fio\"");
        assert_eq!(&text[request.params[0].name_span.clone()], "rw");
        assert_eq!(&text[request.params[0].value.span.clone()], "[\"read\", \"write\"]");
        assert_eq!(request.id.as_ref().unwrap().as_str(), "night");
    }

    #[test]
    fn tool_groups_are_expanded_and_tools_of_the_plan_apply_to_all_tests() {
        let text = "tools = [\"sh -c true\"]\n[tool-groups]\ncache = [\"perf stat\"]\n\
            [[test]]\nname = \"fio\"\ntools = [\"cache\", \"sar 1\"]\n[[test]]\nname = \"net\"\n";
        let plan = parse("p.toml", text).unwrap();
        assert_eq!(plan.requests[0].tools, ["sh -c true", "perf stat", "sar 1"]);
        assert_eq!(plan.requests[1].tools, ["sh -c true"]);
    }

    #[test]
    fn the_tool_group_of_a_test_is_expanded() {
        let plan = |group: &str| {
            format!("[tool-groups]\ncache = [\"perf stat\"]\n[[test]]\nname = \"fio\"\ntool-group = \"{group}\"\n")
        };
        let tools = |group: &str| parse("p.toml", &plan(group)).unwrap().requests[0].tools.clone();
        assert_eq!((tools("cache"), tools("default")), (vec!["perf stat".to_owned()], Vec::new()));
        assert_eq!(rendered(&plan("cahce")), "unknown tool group `cahce` | \"cahce\" | did you mean `cache`?");
    }

    /// The message, the marked text and the label of a plan's error.
    fn rendered(text: &str) -> String {
        let errors = parse("p.toml", text).unwrap_err();
        let first = &errors.as_slice()[0];
        format!("{errors} | {} | {}", first.excerpt(), first.label())
    }

    #[test]
    fn an_error_is_shown_at_its_key_with_a_suggestion() {
        let tools = |tools: &str| {
            format!("[tool-groups]\ncache = [\"perf stat\"]\n[[test]]\nname = \"fio\"\ntools = [{tools}]\n")
        };
        let sampling = |line: &str| format!("[sampling]\nwarm-up = 2\n{line}\n");
        let all = [
            tools("\"cahce\""),
            tools("\"nosuchgroup\""),
            tools("\"\""),
            tools("\"sar '1\""),
            "[tool-groups]\nx = [\" \"]".to_owned(),
            sampling("min-tme = \"1s\""),
            sampling("zebra = 1"),
            sampling("tools = [\"sar\"]"),
            sampling("precision = -1"),
            sampling("min-samples = 0"),
            sampling("max-samples = 3"),
            sampling("min-time = 0"),
            sampling("limit = \"0s\""),
            sampling("order = \"interleavd\""),
            sampling("budget = \"soon\""),
            "[[tests]]\nname = \"fio\"".to_owned(),
            "publish = \"upload '\"".to_owned(),
        ];
        insta::assert_snapshot!(all.map(|text| rendered(&text)).join("\n"), @r#"
        unknown tool group or program `cahce` | "cahce" | did you mean `cache`?
        unknown tool group or program `nosuchgroup` | "nosuchgroup" | unknown
        empty tool command | "" | expected a command line or a tool group
        invalid tool command `sar '1` | "sar '1" | unclosed quote
        empty tool command | " " | expected a command line or a tool group
        unknown key `min-tme` | min-tme | did you mean `min-time`?
        unknown key `zebra` | zebra | unknown
        misplaced key `tools` | tools | move it above the first table
        invalid `precision` -1: expected a positive percentage | precision = -1 | here
        invalid `min-samples` 0: expected a value greater than 0 | min-samples = 0 | here
        `max-samples` (3) is less than `min-samples` (6) | max-samples = 3 | here
        invalid `min-time` 0: expected a value greater than 0 | min-time = 0 | here
        invalid `limit` 0: expected a value greater than 0 | limit = "0s" | here
        unknown value `interleavd` | "interleavd" | did you mean `interleaved`?
        invalid plan: invalid time `soon`: expected a number with ns, us, ms, s, min, h, d or w, or plain seconds | "soon" | here
        unknown key `tests` | tests | did you mean `test`?
        invalid `publish` command: expected a non-empty command line with closed quotes | "upload '" | here
        "#);
    }

    #[test]
    fn a_plan_in_another_encoding_is_an_error_at_its_first_invalid_byte() {
        let error = decode_utf8("p.toml", b"name = \"caf\xe9\"".to_vec()).unwrap_err();
        assert_eq!((error.location().unwrap().span.start, error.label()), (11, "invalid UTF-8 byte 0xe9"));
    }

    #[test]
    fn invalid_plans_are_refused() {
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

    // A list below `[tool-groups]` defined a group with the name of the key.
    #[test]
    fn keys_of_the_plan_are_misplaced_below_tables_of_other_keys() {
        for table in ["sampling", "tool-groups"] {
            for (key, value) in PLAN_KEYS.iter().flat_map(|key| [(*key, "[\"sar 1\"]"), (*key, "\"x\"")]) {
                let errors = parse("p.toml", &format!("[{table}]\n{key} = {value}\n")).unwrap_err();
                let [error] = errors.as_slice() else { panic!("{table} {key}: {errors:?}") };
                assert_eq!(error.message(), format!("misplaced key `{key}`"), "{table}, {value}");
                assert_eq!((error.excerpt(), error.label()), (key, "move it above the first table"), "{table}");
            }
        }
        let error = parse("p.toml", "publish.command = \"x\"\n").unwrap_err();
        assert!(!error.to_string().contains("misplaced"), "{error}");
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String) {
            let _ = parse("p.toml", &text);
        }
    }
}
