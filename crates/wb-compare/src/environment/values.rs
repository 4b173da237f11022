//! Flattens recorded sections into values that can be compared by name.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::is_compared;

/// The values of a section by name: the set of values in the runs of a build, a single one if all runs agree.
pub(crate) type Values = BTreeMap<String, BTreeSet<String>>;

pub(crate) fn collect(section: &Value, into: &mut Values) {
    let mut values = Vec::new();
    match section {
        Value::String(text) => parse_listing(text, &mut values),
        other => flatten_json("", other, &mut values),
    }
    for (name, value) in values {
        into.entry(name).or_default().insert(value);
    }
}

/// Flattens a document into its leaves, by path: `frequency.policy0.governor`.
fn flatten_json(path: &str, value: &Value, values: &mut Vec<(String, String)>) {
    let child_path = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            let entries = fields.iter().filter(|(name, _)| is_compared(name));
            entries.for_each(|(name, value)| flatten_json(&child_path(name), value, values));
        }
        Value::Array(list) => match index_by_name(list) {
            Some(by_name) => by_name.iter().for_each(|(name, value)| flatten_json(&child_path(name), value, values)),
            None => values.push((path.to_owned(), value.to_string())),
        },
        Value::String(text) => values.push((path.to_owned(), text.clone())),
        other => values.push((path.to_owned(), other.to_string())),
    }
}

/// Indexes the objects of a list by their name or path; `None` if it is not a list of such objects.
fn index_by_name(list: &[Value]) -> Option<BTreeMap<String, Value>> {
    let name = |fields: &Map<String, Value>| {
        let key = ["name", "path"].into_iter().find(|key| fields.get(*key).is_some_and(Value::is_string))?;
        let name = fields.get(key)?.as_str()?.to_owned();
        let rest: Map<String, Value> = fields
            .iter()
            .filter(|(field, _)| *field != key)
            .map(|(field, value)| (field.clone(), value.clone()))
            .collect();
        Some((name, Value::Object(rest)))
    };
    let all: BTreeMap<String, Value> = list.iter().map(|one| one.as_object().and_then(name)).collect::<Option<_>>()?;
    (all.len() == list.len() && !all.is_empty()).then_some(all)
}

/// Parses a text of independent lines, as run-perf records the output of commands: packages, settings and units by
/// name, and all other lines together without a name.
fn parse_listing(text: &str, values: &mut Vec<(String, String)>) {
    if text.trim_start().starts_with('<') {
        values.push((String::new(), text.trim().to_owned()));
        return;
    }
    let mut by_name: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut rest = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match parse_package(line).or_else(|| parse_setting(line)).or_else(|| parse_unit(line)) {
            Some((name, value)) => by_name.entry(name).or_default().push(value.to_owned()),
            None => rest.push(line),
        }
    }
    if !rest.is_empty() {
        values.push((String::new(), rest.join("\n")));
    }
    // A package may be installed in several versions.
    values.extend(by_name.into_iter().map(|(name, texts)| (name, texts.join(", "))));
}

/// RPM's architectures of packages.
const ARCHITECTURES: [&str; 9] =
    ["noarch", "x86_64", "i686", "i386", "aarch64", "armv7hl", "ppc64le", "s390x", "riscv64"];

/// Parses `NAME-VERSION-RELEASE.ARCH` of rpm into name (with a secondary architecture) and version with release.
fn parse_package(line: &str) -> Option<(String, &str)> {
    if line.contains(char::is_whitespace) {
        return None;
    }
    let (full, arch) = line.rsplit_once('.').filter(|(_, arch)| ARCHITECTURES.contains(arch))?;
    let (rest, _) = full.rsplit_once('-')?;
    let (name, _) = rest.rsplit_once('-')?;
    let version = &full[name.len() + 1..];
    let is_version = version.starts_with(|first: char| first.is_ascii_digit());
    let name = if matches!(arch, "i686" | "i386") { format!("{name}.{arch}") } else { name.to_owned() };
    (is_version && !name.is_empty()).then_some((name, version))
}

/// Parses `NAME:VALUE`, or `NAME: VALUE` if the name contains a space.
fn parse_setting(line: &str) -> Option<(String, &str)> {
    let (name, value) = line
        .split_once(':')
        .filter(|(name, value)| !name.contains(char::is_whitespace) && !value.starts_with("//"))
        .or_else(|| line.split_once(": "))?;
    (!name.is_empty()).then(|| (name.trim().to_owned(), value.trim()))
}

/// Parses a unit as listed by systemctl: `sshd.service loaded active running …`.
fn parse_unit(line: &str) -> Option<(String, &str)> {
    const KINDS: [&str; 9] =
        [".service", ".socket", ".target", ".mount", ".timer", ".scope", ".slice", ".path", ".device"];
    // A failed unit has a marker before its name.
    let line = line.trim_start_matches(['●', '*', ' ']);
    let (name, state) = line.split_once(char::is_whitespace)?;
    KINDS.iter().any(|kind| name.ends_with(kind)).then(|| (name.to_owned(), state.trim()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn values(section: &Value) -> Vec<(String, String)> {
        let mut collected = Values::new();
        collect(section, &mut collected);
        let join = |values: BTreeSet<String>| values.into_iter().collect::<Vec<_>>().join(" | ");
        collected.into_iter().map(|(name, values)| (name, join(values))).collect()
    }

    fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn leaves_have_paths_and_lists_of_named_objects_have_names() {
        let section = json!({
            "smt": {"control": "on", "cpus": [1, 2]},
            "files": [{"path": "/etc/x", "text": "a\nb", "mode": "0644"}],
            "turbo": null,
        });
        let expected = [
            ("files./etc/x.mode", "0644"),
            ("files./etc/x.text", "a\nb"),
            ("smt.control", "on"),
            ("smt.cpus", "[1,2]"),
        ];
        assert_eq!(values(&section), pairs(&expected));
    }

    #[test]
    fn lines_are_packages_settings_units_or_text() {
        let rpm = "kernel-5.0.9-301.fc30.x86_64\nkernel-5.1.2-300.fc30.x86_64\nglibc-2.29-9.fc30.i686\n\
                   glibc-2.29-9.fc30.x86_64\ngpg-pubkey-cfc659b9-5b6eac67\n";
        let expected = [
            ("", "gpg-pubkey-cfc659b9-5b6eac67"),
            ("glibc", "2.29-9.fc30"),
            ("glibc.i686", "2.29-9.fc30"),
            ("kernel", "5.0.9-301.fc30, 5.1.2-300.fc30"),
        ];
        assert_eq!(values(&json!(rpm)), pairs(&expected));
        let mixed = "Name:foo\n/sys/vulnerabilities/l1tf:Mitigation: PTE\n#1 SMP Tue Apr 23 23:57:35 UTC 2019\n\
                     sshd.service loaded active running OpenSSH";
        let expected = [
            ("", "#1 SMP Tue Apr 23 23:57:35 UTC 2019"),
            ("/sys/vulnerabilities/l1tf", "Mitigation: PTE"),
            ("Name", "foo"),
            ("sshd.service", "loaded active running OpenSSH"),
        ];
        assert_eq!(values(&json!(mixed)), pairs(&expected));
    }
}
