//! The differences between two readings of the environment.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Environment;

/// A value that differs between two readings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedValue {
    /// Path of the value: `sysctl/vm.swappiness`.
    pub path: String,
    /// Value before; absent if it did not exist.
    pub before: Option<String>,
    /// Value after; absent if it no longer exists.
    pub after: Option<String>,
}

pub(super) fn diff(before: &Environment, after: &Environment) -> Vec<ChangedValue> {
    let (before, after) = without_unknown_versions(before, after);
    let (before, after) = (leaves(&before), leaves(&after));
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    paths
        .into_iter()
        .filter(|path| before.get(*path) != after.get(*path))
        .map(|path| ChangedValue {
            path: path.clone(),
            before: before.get(path).cloned(),
            after: after.get(path).cloned(),
        })
        .collect()
}

/// Both readings without the versions of programs that did not answer in one of them: an unknown value is no change. A
/// program that was replaced still differs by its hash.
fn without_unknown_versions(before: &Environment, after: &Environment) -> (Environment, Environment) {
    let (mut before, mut after) = (before.clone(), after.clone());
    for (name, one) in &mut before.tools {
        let Some(other) = after.tools.get_mut(name) else { continue };
        if one.version_unknown || other.version_unknown {
            for tool in [one, other] {
                (tool.version, tool.version_unknown) = (None, false);
            }
        }
    }
    (before, after)
}

/// All values by path, without the transient state.
fn leaves(environment: &Environment) -> BTreeMap<String, String> {
    let compared = Environment { transient: super::TransientState::default(), ..environment.clone() };
    let mut found = BTreeMap::new();
    let compared = serde_json::to_value(compared).expect("plain data has a JSON form");
    flatten(String::new(), &compared, &mut found);
    found
}

fn flatten(path: String, value: &Value, found: &mut BTreeMap<String, String>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| flatten(below(name), value, found)),
        Value::Null => {}
        Value::String(text) => drop(found.insert(path, text.clone())),
        other => drop(found.insert(path, other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::tools::{ToolVersion, VersionQueries};
    use crate::fake_root;

    // On a busy machine `clang --version` took too long for one of two readings, which then differed.
    #[test]
    fn an_unknown_version_is_no_change() {
        let tool = |version: Option<&str>, sha256: &str| ToolVersion {
            version: version.map(str::to_owned),
            version_unknown: version.is_none(),
            sha256: Some(sha256.to_owned()),
            ..ToolVersion::default()
        };
        let changes = |one: ToolVersion, other: ToolVersion| {
            let [one, other] = [one, other]
                .map(|tool| Environment { tools: [("clang".to_owned(), tool)].into(), ..Environment::default() });
            Environment::difference(&one, &other).into_iter().map(|change| change.path).collect::<Vec<_>>()
        };
        let (known, unknown) = (tool(Some("14.0.6"), "a"), tool(None, "a"));
        assert_eq!(changes(known.clone(), unknown.clone()), [""; 0]);
        assert_eq!(changes(unknown.clone(), known.clone()), [""; 0]);
        assert_eq!(changes(known.clone(), tool(None, "b")), ["tools/clang/sha256"]);
        assert_eq!(changes(known, tool(Some("15.0.0"), "a")), ["tools/clang/version"]);
        let removed = Environment { tools: [("clang".to_owned(), unknown)].into(), ..Environment::default() };
        let paths = Environment::difference(&removed, &Environment::default());
        assert!(paths.iter().any(|change| change.path == "tools/clang/sha256"), "{paths:?}");
    }

    #[test]
    fn a_change_has_a_path_and_both_values() {
        let before = fake_root::laptop();
        let first = Environment::read(&before.root(), &VersionQueries::new());
        let after = before
            .file("/proc/sys/vm/swappiness", "1")
            .file("/sys/devices/system/cpu/cpufreq/policy3/scaling_governor", "performance")
            .file("/proc/loadavg", "9.00 9.00 9.00 1/1 1")
            .without("/sys/block/nvme0n1");
        let second = Environment::read(&after.root(), &VersionQueries::new());
        let changes = Environment::difference(&first, &second);
        let find = |path: &str| changes.iter().find(|change| change.path == path).unwrap();
        let swappiness = find("sysctl/vm.swappiness");
        assert_eq!((swappiness.before.as_deref(), swappiness.after.as_deref()), (Some("60"), Some("1")));
        assert_eq!(find("cpu/frequency/policy3/governor").after.as_deref(), Some("performance"));
        assert_eq!(find("block/nvme0n1/scheduler").after, None);
        assert!(changes.iter().all(|change| !change.path.starts_with("transient")));
        assert!(changes.is_sorted_by_key(|change| &change.path));
        assert_eq!(Environment::difference(&first, &first), []);
    }
}
