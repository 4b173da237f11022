//! Comparisons as JUnit's XML, as continuous integration reads it.

use std::io;

use quick_xml::Writer;
use quick_xml::events::BytesText;
use wb_compare::Outcome;
use wb_compare::outcome::Decided;
use wb_compare::tolerance::Status;
use wb_model::counted;

use super::figures::{failed, signed, why};

/// A primary check or group as a test case.
struct Case<'a> {
    /// What reports of continuous integration sort by: `PROFILE.TEST`, a package and a class to them.
    class: String,
    name: &'a str,
    outcome: Kind,
    text: String,
}

enum Kind {
    Passed,
    Failed,
    Error,
    Skipped,
}

/// Primary checks, those of a test in a class of their own, groups and errors: a loss is a failure, what is missing, invalid
/// or defined otherwise an error, what cannot be told yet is skipped, each with its text.
pub fn junit(outcome: &Outcome, fail_on_gain: bool) -> io::Result<String> {
    let primary = outcome.checks.iter().filter(|check| check.primary);
    let checks = primary.map(|check| Case {
        class: class(&check.id),
        name: &check.id,
        outcome: kind(check.decided, fail_on_gain),
        text: why(check),
    });
    let groups = outcome.groups.iter().filter(|group| group.decides).map(|group| Case {
        class: "groups".to_owned(),
        name: &group.id,
        outcome: match group.status {
            Status::Regression => Kind::Failed,
            Status::Improvement if fail_on_gain => Kind::Failed,
            _ => Kind::Passed,
        },
        text: format!("{} % of ±{:.2} %, {}", signed(group.score), group.tolerance, counted(group.members, "check")),
    });
    let errors = outcome.errors().map(|(build, place, text)| Case {
        class: class(place),
        name: place,
        outcome: Kind::Error,
        text: failed(build, text),
    });
    let cases: Vec<Case<'_>> = checks.chain(groups).chain(errors).collect();
    let count = |wanted: fn(&Kind) -> bool| cases.iter().filter(|case| wanted(&case.outcome)).count().to_string();
    let totals = [
        ("tests", cases.len().to_string()),
        ("failures", count(|kind| matches!(kind, Kind::Failed))),
        ("errors", count(|kind| matches!(kind, Kind::Error))),
        ("skipped", count(|kind| matches!(kind, Kind::Skipped))),
    ];
    let names: Vec<&str> = outcome.builds.iter().map(|build| build.name.as_str()).collect();
    let names = names.join(" → ");
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 1);
    let attributes =
        || std::iter::once(("name", names.as_str())).chain(totals.iter().map(|(name, count)| (*name, count.as_str())));
    writer.create_element("testsuites").with_attributes(attributes()).write_inner_content(|writer| {
        writer
            .create_element("testsuite")
            .with_attributes(attributes())
            .write_inner_content(|writer| cases.iter().try_for_each(|case| written(writer, case)))?;
        Ok(())
    })?;
    let body = String::from_utf8(writer.into_inner()).map_err(io::Error::other)?;
    let body = body.replace(|character| !is_allowed(character), "\u{fffd}");
    Ok(format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{body}\n"))
}

/// Whether XML 1.0 (section 2.2, Char) allows a character, escaped or not: most control characters have no form in it.
fn is_allowed(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | '\u{20}'..='\u{fffd}' | '\u{10000}'..)
}

/// The profile and the test of a check or of the place of an error.
fn class(id: &str) -> String {
    let mut parts = id.split('/');
    let (profile, test) = (parts.next().unwrap_or_default(), parts.next().unwrap_or("*"));
    format!("{profile}.{test}")
}

fn kind(decided: Decided, fail_on_gain: bool) -> Kind {
    match decided {
        Decided::Loss => Kind::Failed,
        Decided::Gain if fail_on_gain => Kind::Failed,
        Decided::Gain | Decided::MinorGain | Decided::Equal | Decided::MinorLoss => Kind::Passed,
        Decided::Missing | Decided::Invalid | Decided::Incomparable => Kind::Error,
        Decided::Differs | Decided::Inconclusive => Kind::Skipped,
    }
}

fn written(writer: &mut Writer<Vec<u8>>, case: &Case<'_>) -> io::Result<()> {
    let element =
        writer.create_element("testcase").with_attributes([("classname", case.class.as_str()), ("name", case.name)]);
    let named = match case.outcome {
        Kind::Passed => {
            element.write_inner_content(|writer| {
                writer.create_element("system-out").write_text_content(BytesText::new(&case.text)).map(drop)
            })?;
            return Ok(());
        }
        Kind::Failed => "failure",
        Kind::Error => "error",
        Kind::Skipped => "skipped",
    };
    element.write_inner_content(|writer| {
        let element = writer.create_element(named).with_attribute(("message", case.text.as_str()));
        element.write_text_content(BytesText::new(&case.text)).map(drop)
    })?;
    Ok(())
}
