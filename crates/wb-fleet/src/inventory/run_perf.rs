//! Host parameters in run-perf's formats: `hosts/ADDRESS.yaml` in an asset folder, and `--force-params`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::Value;
use wb_diagnostics::{Diagnostic, SourceText, humanize_serde_error};

use super::{Host, HostParams, ParamError, asset_paths};

/// Reads the parameters of the host at an address from the first asset folder that has a file for it; none without one.
pub fn read_host_file(address: &str, folders: &[PathBuf]) -> Result<Option<HostParams>, Diagnostic> {
    let name = format!("hosts/{address}.yaml");
    let Some(path) = asset_paths(folders, &name).find(|path| path.exists()) else { return Ok(None) };
    let unreadable =
        |error: &dyn std::fmt::Display| Diagnostic::new(format!("cannot read `{}`: {error}", path.display()));
    let text = std::fs::read_to_string(&path).map_err(|error| unreadable(&error))?;
    parse_yaml(&path, &text).map(Some)
}

fn parse_yaml(path: &Path, text: &str) -> Result<HostParams, Diagnostic> {
    let source = SourceText::new(&path.display().to_string(), text);
    let error_at = |span, message: String| Diagnostic::at(&source, span, message, "here");
    let entries: BTreeMap<String, serde_saphyr::Spanned<Value>> = serde_saphyr::from_str(text).map_err(|error| {
        let span = error.location().and_then(|location| source.rest_of_line(location.line(), location.column()));
        error_at(span.unwrap_or(0..0), format!("cannot parse this host file: {}", error.without_snippet()))
            .with_help("expected one `name: value` per line, such as `guest_cpus: 4`")
    })?;
    let mut params = HostParams::default();
    for (name, value) in entries {
        let location = value.referenced;
        let span = source.rest_of_line(location.line(), location.column()).unwrap_or(0..0);
        params
            .set_or_store(&name, value.value)
            .map_err(|error| error_at(span, error.to_string()).with_suggestion(error.suggestion()))?;
    }
    Ok(params)
}

/// Finds a key of nested JSON objects, with its quotes: each name of the path after the one before it.
fn find_key(text: &str, path: &[&str]) -> Option<Range<usize>> {
    let mut from = 0;
    let mut found = None;
    for name in path {
        let key = Value::from(*name).to_string();
        let is_key = |position: &usize| text[position + key.len()..].trim_start().starts_with(':');
        let position = text[from..].match_indices(&key).map(|(position, _)| from + position).find(is_key)?;
        from = position + key.len();
        found = Some(position..from);
    }
    found
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct ForcedParams {
    all: HostParams,
    by_host: BTreeMap<String, HostParams>,
}

impl ForcedParams {
    /// Parses `{"HOST": {"param": value}}`, HOST being an address or a name, or `{"param": value}` for all hosts. Keys
    /// of the user are in `extra` of a host.
    pub fn parse(text: &str) -> Result<Self, Diagnostic> {
        let help = "expected `{\"HOST\": {\"guest-cpus\": 4}}`, or `{\"guest-cpus\": 4}` for all hosts";
        let invalid = |reason: String| Diagnostic::new(format!("invalid --force-params: {reason}")).with_help(help);
        let source = SourceText::new("--force-params", text);
        let invalid_param = |path: &[&str], error: ParamError| {
            let hosts: String = path[..path.len() - 1].iter().map(|host| format!("`{host}`: ")).collect();
            let index = find_key(text, path).unwrap_or(0..text.len());
            let label = if matches!(error, ParamError::Unknown { .. }) { "unknown" } else { "here" };
            Diagnostic::at(&source, index, format!("invalid --force-params: {hosts}{error}"), label)
                .with_suggestion(error.suggestion())
                .with_help(match error {
                    ParamError::Unknown { .. } => {
                        format!(
                            "host parameters: {}; keys of your own: `{{\"HOST\": {{\"extra\": {{…}}}}}}`",
                            HostParams::names().join(", ")
                        )
                    }
                    _ => help.to_owned(),
                })
        };
        let entries: BTreeMap<String, Value> =
            serde_json::from_str(text).map_err(|error| invalid(humanize_serde_error(&error.to_string())))?;
        let mut forced = Self::default();
        for (name, value) in entries {
            match value {
                Value::Object(host_params) => {
                    let params = forced.by_host.entry(name.clone()).or_default();
                    for (param, value) in host_params {
                        if let ("extra", Value::Object(keys)) = (param.as_str(), &value) {
                            params.extra.extend(keys.clone());
                            continue;
                        }
                        params.force(&param, value).map_err(|error| invalid_param(&[&name, &param], error))?;
                    }
                }
                value => {
                    forced.all.force(&name, value).map_err(|error| invalid_param(&[&name], error))?;
                }
            }
        }
        Ok(forced)
    }

    /// The parameters for the host's address override those for its name, and these the ones for all hosts.
    pub fn params_for(&self, host: &Host) -> HostParams {
        self.params_for_names(&[host.name.as_str(), host.address.host.as_str()])
    }

    /// Returns the parameters of a machine with several names; later names override earlier ones.
    pub fn params_for_names(&self, names: &[&str]) -> HostParams {
        let params = names.iter().filter_map(|name| self.by_host.get(*name));
        params.fold(self.all.clone(), |all, one| all.overridden_by(one))
    }

    /// The names and addresses that match none of these hosts.
    pub fn unmatched<'a>(&'a self, hosts: &'a [Host]) -> impl Iterator<Item = &'a str> {
        let matches = |key: &str| hosts.iter().any(|host| host.name.as_str() == key || host.address.host == key);
        self.by_host.keys().map(String::as_str).filter(move |key| !matches(key))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::inventory::{CpuSpec, Inventory};

    fn hosts() -> Vec<Host> {
        Inventory::default().select(&["a:root@10.0.0.1".to_owned(), "b:10.0.0.2".to_owned()]).unwrap()
    }

    #[test]
    fn a_host_file_of_run_perf_is_read() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()].map(|folder| folder.keep());
        std::fs::create_dir(folders[1].join("hosts")).unwrap();
        let text = "# a host\nhugepage_kb: 2048\nnuma_nodes: 2\nhost_cpus: 24\nguest_cpus: 12\n\
            guest_mem_m: 32768\narch: x86_64\ndisable_smt: true\nrack: B7\n";
        std::fs::write(folders[1].join("hosts/10.0.0.1.yaml"), text).unwrap();
        let params = read_host_file("10.0.0.1", &folders).unwrap().unwrap();
        assert_eq!((params.hugepage_kb, params.numa_nodes), (Some(2048), Some(2)));
        assert_eq!((params.host_cpus, params.guest_cpus), (Some(CpuSpec::Count(24)), Some(CpuSpec::Count(12))));
        assert_eq!((params.arch.as_deref(), params.disable_smt), (Some("x86_64"), Some(true)));
        assert_eq!(params.extra["rack"], json!("B7"));
        assert_eq!(read_host_file("10.0.0.2", &folders).unwrap(), None);
        folders.iter().for_each(|folder| std::fs::remove_dir_all(folder).unwrap());
    }

    #[test]
    fn errors_in_a_host_file_are_located() {
        let describe = |text: &str| {
            let error = parse_yaml(Path::new("h.yaml"), text).unwrap_err();
            format!("{error} | {}", error.excerpt())
        };
        assert_eq!(
            describe("arch: x86_64\nguest_cpus: many\n"),
            "invalid value \"many\" for `guest-cpus`: expected a number of CPUs from 1, or a list such as \"0-3,8\" | many"
        );
        assert_eq!(describe("guest_cpu: 3\n"), "unknown host parameter `guest_cpu` | 3");
        let error = parse_yaml(Path::new("h.yaml"), "guest_cpu: 3\n").unwrap_err();
        assert_eq!(error.label(), "did you mean `guest-cpus`?");
        assert!(describe("arch: [x\n").starts_with("cannot parse this host file: "));
        assert!(describe("- x\n").starts_with("cannot parse this host file: "));
    }

    #[test]
    fn no_value_of_a_host_file_has_another_meaning_than_in_run_perf() {
        let parse = |text: &str| parse_yaml(Path::new("h.yaml"), text).map_err(|error| error.to_string());
        // Numbers and truth values as PyYAML reads them.
        let params = parse("hugepage_kb: 0x800\nguest_mem_m: 32_768\nhost_cpus: 24\ndisable_smt: yes\n").unwrap();
        assert_eq!((params.hugepage_kb, params.guest_mem_m), (Some(2048), Some(32_768)));
        assert_eq!((params.host_cpus, params.disable_smt), (Some(CpuSpec::Count(24)), Some(true)));
        for (text, is_off) in [("on", true), ("True", true), ("no", false), ("off", false), ("FALSE", false)] {
            assert_eq!(parse(&format!("disable_smt: {text}\n")).unwrap().disable_smt, Some(is_off), "{text}");
        }
        let number = "expected a number of CPUs from 1, or a list such as \"0-3,8\"";
        let quoted = "expected a number without quotes, or a list such as \"0-3,8\"";
        for (text, message) in [
            ("guest_cpus: \"8\"", format!("ambiguous value \"8\" for `guest-cpus`: {quoted}")),
            ("host_cpus: '8'", format!("ambiguous value \"8\" for `host-cpus`: {quoted}")),
            ("guest_cpus:", format!("invalid value null for `guest-cpus`: {number}")),
            ("guest_cpus: 0", format!("invalid value 0 for `guest-cpus`: {number}")),
            ("host_cpus: 1.5", format!("invalid value 1.5 for `host-cpus`: {number}")),
            ("guest_mem_m: 0", "invalid value 0 for `guest-mem-m`: expected a number of MiB from 1".to_owned()),
            (
                "guest_mem_m: '1024'",
                "invalid value \"1024\" for `guest-mem-m`: expected a number of MiB from 1".to_owned(),
            ),
            ("hugepage_kb: 2M", "invalid value \"2M\" for `hugepage-kb`: expected a number of KiB from 1".to_owned()),
            ("numa_nodes: ~", "invalid value null for `numa-nodes`: expected a number from 1".to_owned()),
            ("arch: 86", "invalid value 86 for `arch`: expected a name such as \"x86_64\"".to_owned()),
            ("disable_smt: 2", "invalid value 2 for `disable-smt`: expected true or false".to_owned()),
        ] {
            assert_eq!(parse(&format!("{text}\n")).unwrap_err(), message);
        }
    }

    // A misspelt parameter was recorded as a key of the user, and changed nothing.
    #[test]
    fn every_unknown_forced_parameter_is_refused_at_its_place() {
        let describe = |text: &str| {
            let error = ForcedParams::parse(text).unwrap_err();
            let start = error.location().unwrap().span.start;
            format!("{error} | {start} | {} | {}", error.excerpt(), error.label())
        };
        let all = [
            r#"{"zebra": 1}"#,
            r#"{"guest_cpu": 1}"#,
            r#"{"arch": "x86_64", "a": {"arch": "arm", "numa_node": 2}}"#,
            r#"{"a": {"numa_nodes": 2}, "b": {"numa_nodes": 2, "rack": "B7"}}"#,
            r#"{"b": {"guest-mem-m": "much"}}"#,
        ];
        insta::assert_snapshot!(all.map(describe).join("\n"), @r#"
        invalid --force-params: unknown host parameter `zebra` | 1 | "zebra" | unknown
        invalid --force-params: unknown host parameter `guest_cpu` | 1 | "guest_cpu" | did you mean `guest-cpus`?
        invalid --force-params: `a`: unknown host parameter `numa_node` | 40 | "numa_node" | did you mean `numa-nodes`?
        invalid --force-params: `b`: unknown host parameter `rack` | 48 | "rack" | did you mean `arch`?
        invalid --force-params: `b`: invalid value "much" for `guest-mem-m`: expected a number of MiB from 1 | 7 | "guest-mem-m" | here
        "#);
    }

    #[test]
    fn forced_parameters_are_for_all_or_for_one() {
        let forced = ForcedParams::parse(
            r#"{"arch": "arm", "a": {"arch": "x86_64", "extra": {"rack": "B7"}}, "10.0.0.1": {"numa_nodes": 4}, "c": {}}"#,
        );
        let forced = forced.unwrap();
        let params_of = |host: &Host| (forced.params_for(host).arch.unwrap(), forced.params_for(host).numa_nodes);
        let hosts = hosts();
        assert_eq!(
            (params_of(&hosts[0]), params_of(&hosts[1])),
            (("x86_64".to_owned(), Some(4)), ("arm".to_owned(), None))
        );
        assert_eq!(forced.params_for(&hosts[0]).extra["rack"], json!("B7"));
        assert_eq!(forced.unmatched(&hosts).collect::<Vec<_>>(), ["c"]);
        let error = ForcedParams::parse(r#"{"a": {"numa_nodes": "many"}}"#).unwrap_err();
        assert_eq!(
            error.to_string(),
            "invalid --force-params: `a`: invalid value \"many\" for `numa-nodes`: expected a number from 1"
        );
        assert!(ForcedParams::parse("[]").is_err());
        let error = ForcedParams::parse(r#"{"guest_cpuss": 1}"#).unwrap_err();
        assert_eq!((error.label(), error.excerpt()), ("did you mean `guest-cpus`?", "\"guest_cpuss\""));
        assert!(ForcedParams::parse(r#"{"a": {"guest_cpus": "4"}}"#).unwrap_err().to_string().contains("ambiguous"));
    }
}
