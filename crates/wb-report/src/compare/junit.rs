//! Writes comparisons as JUnit XML for continuous integration.

use std::io;

use quick_xml::Writer;
use quick_xml::events::BytesText;
use wb_compare::comparison::FailOn;
use wb_model::escape_bidi_controls;
use wb_results::comparison::{CheckResult, ComparisonMethod, ComparisonResult, FinalVerdict, Status};

use super::figures::{describe_error, explain_check, explain_group};
use super::threshold_range::ThresholdRange;
use crate::xml_chars::replace_forbidden;

struct TestCase<'a> {
    /// The class by which reports of continuous integration are sorted.
    class: String,
    name: &'a str,
    outcome: TestCaseOutcome,
    text: String,
}

enum TestCaseOutcome {
    Passed,
    Failed,
    Error,
    Skipped,
}

/// Separates the serial and the case in run-perf's identifiers.
const RUN_PERF_CASE: &str = ":./";

/// Writes primary checks, groups and errors, in one class for each test. They are named as run-perf names them if its
/// method is requested and their identifiers are its own. What is worse is a failure; a missing, invalid or
/// incomparable check is an error, also if only some runs of the last build lack it. A new one is skipped, and so is an
/// unconfirmed or inconclusive one unless `fail_on` lets it fail. Each has an explanation, which begins with the
/// verdict.
pub fn junit(outcome: &ComparisonResult, fail_on: FailOn) -> io::Result<String> {
    // run-perf's own program compares by tolerances; other comparisons of its results have classes by test.
    let is_of_run_perf = |id: &str| outcome.method == Some(ComparisonMethod::Tolerance) && id.contains(RUN_PERF_CASE);
    let primary = outcome.checks.iter().filter(|check| check.primary);
    let checks = primary.map(|check| TestCase {
        class: if is_of_run_perf(&check.id) { split_metric(&check.id).0.to_owned() } else { class_name(&check.id) },
        name: if is_of_run_perf(&check.id) { split_metric(&check.id).1 } else { &check.id },
        outcome: case_outcome(check, fail_on),
        text: format!("{}: {}", check.final_verdict.as_str(), explain_check(check)),
    });
    let groups = outcome.groups.iter().filter(|group| group.decides).map(|group| TestCase {
        class: if is_of_run_perf(&group.id) { split_metric(&group.id).0 } else { "groups" }.to_owned(),
        name: if is_of_run_perf(&group.id) { split_metric(&group.id).1 } else { &group.id },
        outcome: match group.status {
            Status::Regressed => TestCaseOutcome::Failed,
            Status::Improved if fail_on.gain => TestCaseOutcome::Failed,
            _ => TestCaseOutcome::Passed,
        },
        text: format!("{}: {}", group.final_verdict.as_str(), explain_group(group)),
    });
    // run-perf's identifier of an error is that of a check. The places of a Weighbridge run have a case of their own.
    let is_error_of_run_perf =
        |location: &str| outcome.method == Some(ComparisonMethod::Tolerance) && !location.contains(':');
    let errors = outcome.errors().map(|(build, location, text)| TestCase {
        class: if is_error_of_run_perf(location) {
            format!("{location}{RUN_PERF_CASE}ERROR/ERROR")
        } else {
            class_name(location)
        },
        name: if is_error_of_run_perf(location) { "ERROR.error" } else { location },
        outcome: TestCaseOutcome::Error,
        text: describe_error(&build, text),
    });
    let cases: Vec<TestCase<'_>> = checks.chain(groups).chain(errors).collect();
    let count =
        |is_kind: fn(&TestCaseOutcome) -> bool| cases.iter().filter(|case| is_kind(&case.outcome)).count().to_string();
    let totals = [
        ("tests", cases.len().to_string()),
        ("failures", count(|kind| matches!(kind, TestCaseOutcome::Failed))),
        ("errors", count(|kind| matches!(kind, TestCaseOutcome::Error))),
        ("skipped", count(|kind| matches!(kind, TestCaseOutcome::Skipped))),
    ];
    let names: Vec<&str> = outcome.builds.iter().map(|build| build.name.as_str()).collect();
    let names = names.join(" → ");
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 1);
    let attributes =
        || std::iter::once(("name", names.as_str())).chain(totals.iter().map(|(name, count)| (*name, count.as_str())));
    writer.create_element("testsuites").with_attributes(attributes()).write_inner_content(|writer| {
        writer.create_element("testsuite").with_attributes(attributes()).write_inner_content(|writer| {
            write_thresholds(writer, outcome)?;
            cases.iter().try_for_each(|case| write_case(writer, case))
        })?;
        Ok(())
    })?;
    let body = String::from_utf8(writer.into_inner()).map_err(io::Error::other)?;
    let body = replace_forbidden(&body);
    let body = escape_bidi_controls(&body);
    Ok(format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{body}\n"))
}

/// Class and name of an identifier of run-perf: `PROFILE/TEST/SERIAL:./CASE/CLASS` and `METRIC.mean`.
fn split_metric(id: &str) -> (&str, &str) {
    id.rsplit_once('/').unwrap_or(("", id))
}

fn class_name(id: &str) -> String {
    let mut parts = id.split('/');
    let (profile, test) = (parts.next().unwrap_or_default(), parts.next().unwrap_or("*"));
    format!("{profile}.{test}")
}

fn case_outcome(check: &CheckResult, fail_on: FailOn) -> TestCaseOutcome {
    match check.final_verdict {
        compared if compared.is_compared() && fail_on.fails_check(check) => TestCaseOutcome::Failed,
        _ if check.is_partly_missing() => TestCaseOutcome::Error,
        FinalVerdict::Missing | FinalVerdict::Invalid | FinalVerdict::Incomparable => TestCaseOutcome::Error,
        FinalVerdict::New | FinalVerdict::Differs | FinalVerdict::Unconfirmed | FinalVerdict::Inconclusive => {
            TestCaseOutcome::Skipped
        }
        _ => TestCaseOutcome::Passed,
    }
}

fn write_thresholds(writer: &mut Writer<Vec<u8>>, outcome: &ComparisonResult) -> io::Result<()> {
    let Some(thresholds) = ThresholdRange::of_primary(outcome) else { return Ok(()) };
    writer.create_element("properties").write_inner_content(|writer| {
        let attributes = [("name", "thresholds"), ("value", &thresholds.to_string())];
        writer.create_element("property").with_attributes(attributes).write_empty().map(drop)
    })?;
    Ok(())
}

fn write_case(writer: &mut Writer<Vec<u8>>, case: &TestCase<'_>) -> io::Result<()> {
    let element =
        writer.create_element("testcase").with_attributes([("classname", case.class.as_str()), ("name", case.name)]);
    let element_name = match case.outcome {
        TestCaseOutcome::Passed => {
            element.write_inner_content(|writer| {
                writer.create_element("system-out").write_text_content(BytesText::new(&case.text)).map(drop)
            })?;
            return Ok(());
        }
        TestCaseOutcome::Failed => "failure",
        TestCaseOutcome::Error => "error",
        TestCaseOutcome::Skipped => "skipped",
    };
    element.write_inner_content(|writer| {
        let element = writer.create_element(element_name).with_attribute(("message", case.text.as_str()));
        element.write_text_content(BytesText::new(&case.text)).map(drop)
    })?;
    Ok(())
}
