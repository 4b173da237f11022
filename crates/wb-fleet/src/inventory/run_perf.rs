//! run-perf's ways to say something of a host: `hosts/ADDRESS.yaml` in an asset folder, and `--force-params`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use wb_model::serde_message::humanize_serde_error;
use wb_plan::{PlanError, SourceText};

use super::{Host, HostParams, asset_paths};

/// The parameters in the first file of these asset folders for the host at an address; none without such a file.
///
/// # Errors
/// When the file cannot be read, or says what nothing can be made of.
pub fn read_host_file(address: &str, folders: &[PathBuf]) -> Result<Option<HostParams>, PlanError> {
    let name = format!("hosts/{address}.yaml");
    let Some(path) = asset_paths(folders, &name).find(|path| path.exists()) else { return Ok(None) };
    let unreadable =
        |error: &dyn std::fmt::Display| PlanError::without_location(format!("cannot read {}: {error}", path.display()));
    let text = std::fs::read_to_string(&path).map_err(|error| unreadable(&error))?;
    parse_yaml(&path, &text).map(Some)
}

fn parse_yaml(path: &Path, text: &str) -> Result<HostParams, PlanError> {
    let source = SourceText::new(&path.display().to_string(), text);
    let wrong = |at, message: String| PlanError::at(&source, at, message, "here");
    let said: BTreeMap<String, serde_saphyr::Spanned<Value>> = serde_saphyr::from_str(text).map_err(|error| {
        let at = error.location().and_then(|location| span_at(text, location.line(), location.column()));
        wrong(at.unwrap_or(0..0), format!("this host file cannot be read: {}", error.without_snippet()))
            .with_help("it has one `name: value` per line, such as `guest_cpus: 4`")
    })?;
    let mut params = HostParams::default();
    for (name, value) in said {
        let location = value.referenced;
        let at = span_at(text, location.line(), location.column()).unwrap_or(0..0);
        params.set_or_keep(&name, value.value).map_err(|error| wrong(at, error.to_string()))?;
    }
    Ok(params)
}

/// The rest of the line from a place on, counted from 1 in lines and characters.
fn span_at(text: &str, line: u64, column: u64) -> Option<std::ops::Range<usize>> {
    let (line, column) = (usize::try_from(line).ok()?.checked_sub(1)?, usize::try_from(column).ok()?.checked_sub(1)?);
    let found = text.split('\n').nth(line)?;
    let start = found.as_ptr() as usize - text.as_ptr() as usize;
    let first = found.char_indices().nth(column).map_or(found.len(), |(at, _)| at);
    Some(start + first..start + found.trim_end().len().max(first))
}

/// What `--force-params` says of hosts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ForcedParams {
    all: HostParams,
    by_host: BTreeMap<String, HostParams>,
}

impl ForcedParams {
    /// Reads `{"HOST": {"param": value}}`, HOST being an address or a name, or `{"param": value}` for all hosts.
    ///
    /// # Errors
    /// When it is no JSON, or a parameter takes something else.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        let help = "`{\"HOST\": {\"guest-cpus\": 4}}` is expected, or `{\"guest-cpus\": 4}` for all hosts";
        let wrong = |why: String| PlanError::without_location(format!("`--force-params`: {why}")).with_help(help);
        let said: BTreeMap<String, Value> =
            serde_json::from_str(text).map_err(|error| wrong(humanize_serde_error(&error.to_string())))?;
        let mut forced = Self::default();
        for (name, value) in said {
            match value {
                Value::Object(of_host) => {
                    let params = forced.by_host.entry(name.clone()).or_default();
                    for (param, value) in of_host {
                        params.set_or_keep(&param, value).map_err(|error| wrong(format!("`{name}`: {error}")))?;
                    }
                }
                value => forced.all.set_or_keep(&name, value).map_err(|error| wrong(error.to_string()))?,
            }
        }
        Ok(forced)
    }

    /// What it says of a host: by its address before its name before all.
    pub fn params_for(&self, host: &Host) -> HostParams {
        self.params_for_names(&[host.name.as_str(), host.address.host.as_str()])
    }

    /// The parameters of a machine with several names, of which a later one counts before those in front of it.
    pub fn params_for_names(&self, names: &[&str]) -> HostParams {
        let own = names.iter().filter_map(|name| self.by_host.get(*name));
        own.fold(self.all.clone(), |all, one| all.overridden_by(one))
    }

    /// The names and addresses that are none of these hosts'.
    pub fn unmatched<'a>(&'a self, hosts: &'a [Host]) -> impl Iterator<Item = &'a str> {
        let known = |key: &str| hosts.iter().any(|host| host.name.as_str() == key || host.address.host == key);
        self.by_host.keys().map(String::as_str).filter(move |key| !known(key))
    }
}

#[cfg(test)]
mod tests {
    use miette::Diagnostic;
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
    fn what_is_wrong_with_a_host_file_is_shown_at_its_place() {
        let said = |text: &str| {
            let error = parse_yaml(Path::new("h.yaml"), text).unwrap_err();
            let label = error.labels().unwrap().next().unwrap();
            format!("{error} | {}", &text[label.offset()..label.offset() + label.len()])
        };
        assert_eq!(
            said("arch: x86_64\nguest_cpus: many\n"),
            "`guest-cpus` takes a number of CPUs, or a list such as \"0-3,8\", not \"many\" | many"
        );
        assert_eq!(said("guest_cpu: 3\n"), "a host has no parameter `guest_cpu` | 3");
        assert!(said("arch: [x\n").starts_with("this host file cannot be read: "));
        assert!(said("- x\n").starts_with("this host file cannot be read: "));
    }

    #[test]
    fn forced_parameters_are_for_all_or_for_one() {
        let forced =
            ForcedParams::parse(r#"{"arch": "arm", "a": {"arch": "x86_64"}, "10.0.0.1": {"numa_nodes": 4}, "c": {}}"#);
        let forced = forced.unwrap();
        let of = |host: &Host| (forced.params_for(host).arch.unwrap(), forced.params_for(host).numa_nodes);
        let hosts = hosts();
        assert_eq!((of(&hosts[0]), of(&hosts[1])), (("x86_64".to_owned(), Some(4)), ("arm".to_owned(), None)));
        assert_eq!(forced.unmatched(&hosts).collect::<Vec<_>>(), ["c"]);
        let error = ForcedParams::parse(r#"{"a": {"numa_nodes": "many"}}"#).unwrap_err();
        assert_eq!(error.to_string(), "`--force-params`: `a`: `numa-nodes` takes a number, not \"many\"");
        assert!(ForcedParams::parse("[]").is_err());
    }
}
