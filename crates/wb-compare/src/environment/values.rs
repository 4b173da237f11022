//! From a recorded section to values that can be compared by name.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::is_compared;

/// The values of a section by name, each as the runs of a build have it: one value where all runs agree.
pub(crate) type Values = BTreeMap<String, BTreeSet<String>>;

/// Adds the values of a section as one run recorded it.
pub(crate) fn collect(section: &Value, into: &mut Values) {
    let mut found = Vec::new();
    match section {
        Value::String(text) => parse_listing(text, &mut found),
        other => flatten_json("", other, &mut found),
    }
    for (name, value) in found {
        into.entry(name).or_default().insert(value);
    }
}

/// The leaves of a document by their paths: `frequency.policy0.governor`.
fn flatten_json(path: &str, value: &Value, found: &mut Vec<(String, String)>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            let compared = fields.iter().filter(|(name, _)| is_compared(name));
            compared.for_each(|(name, value)| flatten_json(&below(name), value, found));
        }
        Value::Array(list) => match index_by_name(list) {
            Some(named) => named.iter().for_each(|(name, value)| flatten_json(&below(name), value, found)),
            None => found.push((path.to_owned(), value.to_string())),
        },
        Value::String(text) => found.push((path.to_owned(), text.clone())),
        other => found.push((path.to_owned(), other.to_string())),
    }
}

/// The objects of a list by what tells them apart; none where it is no list of such objects.
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

/// The values of a text in which each line stands for itself, as run-perf records what commands print: packages,
/// settings and units by name, and all other lines together under no name.
fn parse_listing(text: &str, found: &mut Vec<(String, String)>) {
    if text.trim_start().starts_with('<') {
        found.push((String::new(), text.trim().to_owned()));
        return;
    }
    let mut named: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut rest = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match parse_package(line).or_else(|| parse_setting(line)).or_else(|| parse_unit(line)) {
            Some((name, value)) => named.entry(name).or_default().push(value.to_owned()),
            None => rest.push(line),
        }
    }
    if !rest.is_empty() {
        found.push((String::new(), rest.join("\n")));
    }
    // A package may be installed in several versions.
    found.extend(named.into_iter().map(|(name, values)| (name, values.join(", "))));
}

/// RPM's architectures, as far as they name what packages are built for.
const ARCHITECTURES: [&str; 9] =
    ["noarch", "x86_64", "i686", "i386", "aarch64", "armv7hl", "ppc64le", "s390x", "riscv64"];

/// `NAME-VERSION-RELEASE.ARCH`, as rpm lists packages: the name, with the architecture where it is a second one
/// beside that of the system, and the version with its release.
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

/// `NAME:VALUE`, or `NAME: VALUE` where a blank is in the name.
fn parse_setting(line: &str) -> Option<(String, &str)> {
    let (name, value) = line
        .split_once(':')
        .filter(|(name, value)| !name.contains(char::is_whitespace) && !value.starts_with("//"))
        .or_else(|| line.split_once(": "))?;
    (!name.is_empty()).then(|| (name.trim().to_owned(), value.trim()))
}

/// A unit as systemctl lists it: `sshd.service loaded active running …`.
fn parse_unit(line: &str) -> Option<(String, &str)> {
    const KINDS: [&str; 9] =
        [".service", ".socket", ".target", ".mount", ".timer", ".scope", ".slice", ".path", ".device"];
    // Some lines begin with a mark of a unit that failed.
    let line = line.trim_start_matches(['●', '*', ' ']);
    let (name, state) = line.split_once(char::is_whitespace)?;
    KINDS.iter().any(|kind| name.ends_with(kind)).then(|| (name.to_owned(), state.trim()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn values(section: &Value) -> Vec<(String, String)> {
        let mut found = Values::new();
        collect(section, &mut found);
        let one = |values: BTreeSet<String>| values.into_iter().collect::<Vec<_>>().join(" | ");
        found.into_iter().map(|(name, values)| (name, one(values))).collect()
    }

    fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn leaves_have_paths_and_lists_of_named_things_have_names() {
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
