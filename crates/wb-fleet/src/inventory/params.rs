//! Parameters of a host: detected, unless a file or an option overrides them.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wb_agent::{Worker, WorkerError};
use wb_diagnostics::{Suggestion, suggest};
use wb_model::{Bytes, Facts};
use wb_sys::facts::cpu_list;
use wb_sys::proc::meminfo;

/// Names of the parameters, and the values that each accepts.
const PARAMETERS: [(&str, &str); 9] = [
    ("hugepage-kb", "a number of KiB from 1"),
    ("numa-nodes", "a number from 1"),
    ("host-cpus", "a number of CPUs from 1, or a list such as \"0-3,8\""),
    ("guest-cpus", "a number of CPUs from 1, or a list such as \"0-3,8\""),
    ("guest-mem-m", "a number of MiB from 1"),
    ("arch", "a name such as \"x86_64\""),
    ("disable-smt", "true or false"),
    ("distro", "a name such as \"debian-12\""),
    ("guest-distro", "a name such as \"debian-12\""),
];

/// Parameters of a host that profiles use. Names are as in run-perf's host files, with `-` or `_`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct HostParams {
    /// Size of the huge pages for guests, in KiB; its default size by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hugepage_kb: Option<u64>,
    /// Number of its NUMA nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa_nodes: Option<u32>,
    /// Its CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_cpus: Option<CpuSpec>,
    /// CPUs for guests; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest_cpus: Option<CpuSpec>,
    /// Memory for guests, in MiB; 90 % of the available memory by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest_mem_m: Option<u64>,
    /// Its architecture, as printed by `uname -m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
    /// Whether to disable SMT; detected: whether each core runs one thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_smt: Option<bool>,
    /// Its distribution: ID and VERSION_ID of `/etc/os-release`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distro: Option<String>,
    /// The distribution of its guests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest_distro: Option<String>,
    /// Further keys of the user.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Value>,
}

/// A set of CPUs, by number or by list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CpuSpec {
    /// Number of CPUs.
    Count(u32),
    /// List of CPUs in the kernel's format: `0-3,8`.
    List(
        #[serde(with = "list")]
        #[schemars(with = "String")]
        Vec<u32>,
    ),
}

impl CpuSpec {
    pub fn count(&self) -> usize {
        match self {
            Self::Count(count) => *count as usize,
            Self::List(list) => list.len(),
        }
    }

    /// Whether both can describe the same CPUs; if one is only a number, the numbers are compared.
    fn agrees_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::List(one), Self::List(two)) => one == two,
            _ => self.count() == other.count(),
        }
    }
}

impl fmt::Display for CpuSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::List(list) => f.write_str(&cpu_list::format(list)),
        }
    }
}

mod list {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use wb_sys::facts::cpu_list;

    pub(super) fn serialize<S: Serializer>(list: &[u32], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&cpu_list::format(list))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u32>, D::Error> {
        let text = String::deserialize(deserializer)?;
        cpu_list::parse(&text).filter(|list| !list.is_empty()).ok_or_else(|| D::Error::custom("invalid list of CPUs"))
    }
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ParamError {
    #[error("unknown host parameter `{name}`")]
    Unknown { name: String, suggestion: Option<Suggestion> },
    #[error("invalid value {given} for `{name}`: expected {expected}")]
    InvalidValue {
        name: &'static str,
        /// The values that are accepted.
        expected: &'static str,
        given: Value,
    },
    #[error("ambiguous value {given} for `{name}`: expected a number without quotes, or a list such as \"0-3,8\"")]
    AmbiguousCpus { name: &'static str, given: Value },
}

impl ParamError {
    pub(crate) fn suggestion(&self) -> Option<Suggestion> {
        if let Self::Unknown { suggestion, .. } = self { suggestion.clone() } else { None }
    }
}

/// A configured parameter that differs from the detected one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct HostParamMismatch {
    /// The parameter.
    pub parameter: String,
    /// The configured value, which is used.
    pub given: Value,
    /// The detected value.
    pub found: Value,
}

impl fmt::Display for HostParamMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { parameter, given, found } = self;
        write!(f, "`{parameter}` is set to {given}, but {found} was detected")
    }
}

impl HostParams {
    pub(crate) fn set(&mut self, name: &str, value: Value) -> Result<(), ParamError> {
        let (name, expected) = lookup(name)
            .ok_or_else(|| ParamError::Unknown { name: name.to_owned(), suggestion: suggest_parameter(name) })?;
        let bad = |given| ParamError::InvalidValue { name, expected, given };
        // A key without a value would silently be as if it were not there, and no parameter can be zero.
        if value.is_null() || value.as_u64() == Some(0) {
            return Err(bad(value));
        }
        let mut all = self.to_object();
        all.insert(name.to_owned(), value.clone());
        *self = serde_json::from_value(Value::Object(all)).map_err(|_| bad(value))?;
        Ok(())
    }

    pub(crate) fn names() -> [&'static str; PARAMETERS.len()] {
        PARAMETERS.map(|(name, _)| name)
    }

    /// Like `set` for values in run-perf's notation.
    pub(crate) fn force(&mut self, name: &str, value: Value) -> Result<(), ParamError> {
        refuse_quoted_number(name, &value)?;
        self.set(name, value)
    }

    /// Like `force` for foreign files: an unknown name without a similar parameter is stored as a key of the user.
    /// Names shorter than 6 characters are similar to anything and count as unknown. A quoted number is not a list of
    /// one CPU: run-perf has no lists, and takes it as a number in some profiles.
    pub(crate) fn set_or_store(&mut self, name: &str, value: Value) -> Result<(), ParamError> {
        match self.force(name, value.clone()) {
            Err(ParamError::Unknown { suggestion, .. }) if suggestion.is_none() || name.len() < 6 => {
                self.extra.insert(name.to_owned(), value);
                Ok(())
            }
            other => other,
        }
    }

    /// Merges parameters; those of `other` take precedence.
    pub fn overridden_by(&self, other: &Self) -> Self {
        let mut all = self.to_object();
        all.extend(other.to_object());
        let own = self.extra.clone().into_iter().chain(other.extra.clone()).collect();
        Self { extra: own, ..serde_json::from_value(Value::Object(all)).unwrap_or_else(|_| other.clone()) }
    }

    pub async fn detect(worker: &Worker) -> Result<Self, WorkerError> {
        const SHORT: Bytes = Bytes(1 << 20);
        let facts = worker.facts().await?;
        let meminfo = worker.get("/proc/meminfo", SHORT).await.unwrap_or_default();
        let release = worker.get("/etc/os-release", SHORT).await.unwrap_or_default();
        Ok(Self::from_system(&facts, &String::from_utf8_lossy(&meminfo), &String::from_utf8_lossy(&release)))
    }

    fn from_system(facts: &Facts, meminfo: &str, os_release: &str) -> Self {
        let cpus: Vec<u32> = facts.cpus.iter().map(|cpu| cpu.id).collect();
        let cpus = (!cpus.is_empty()).then_some(CpuSpec::List(cpus));
        Self {
            hugepage_kb: meminfo::size(meminfo, "Hugepagesize").map(|size| size.0 / 1024),
            numa_nodes: u32::try_from(facts.nodes.len()).ok().filter(|nodes| *nodes > 0),
            guest_cpus: cpus.clone(),
            guest_mem_m: Some((facts.memory_available.0 / 10 * 9) >> 20).filter(|memory| *memory > 0),
            arch: Some(facts.arch.clone()).filter(|arch| !arch.is_empty()),
            disable_smt: cpus.is_some().then(|| facts.one_cpu_per_core().len() == facts.cpus.len()),
            distro: distribution(os_release),
            host_cpus: cpus,
            guest_distro: None,
            extra: BTreeMap::new(),
        }
    }

    /// The configured parameters that contradict the detected ones. Settings to apply to a host, such as one of its
    /// sizes of huge pages, and smaller resources for guests than available, are no contradictions.
    pub fn mismatches(&self, found: &Self) -> Vec<HostParamMismatch> {
        // Those of run-perf's files are often counted without SMT, which is still on here.
        let will_disable_smt = self.disable_smt == Some(true) && found.disable_smt == Some(false);
        let differences = [
            ("numa-nodes", differ(&self.numa_nodes, &found.numa_nodes)),
            ("arch", differ(&self.arch, &found.arch)),
            ("distro", differ(&self.distro, &found.distro)),
            (
                "host-cpus",
                zip_options(&self.host_cpus, &found.host_cpus).is_some_and(|(given, actual)| {
                    let may_be_less = will_disable_smt && given.count() < actual.count();
                    !given.agrees_with(actual) && !may_be_less
                }),
            ),
            (
                "guest-cpus",
                zip_options(&self.guest_cpus, &found.host_cpus)
                    .is_some_and(|(given, actual)| given.count() > actual.count()),
            ),
            (
                "guest-mem-m",
                zip_options(&self.guest_mem_m, &found.guest_mem_m).is_some_and(|(given, actual)| given > actual),
            ),
        ];
        let (given, actual) = (self.to_object(), found.to_object());
        let contradiction = |name: &str| HostParamMismatch {
            parameter: name.to_owned(),
            given: given.get(name).cloned().unwrap_or_default(),
            found: actual.get(name).cloned().unwrap_or_default(),
        };
        differences.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| contradiction(name)).collect()
    }

    /// The mismatch of `hugepage-kb` with the sizes of huge pages in KiB that the kernel supports.
    pub fn page_size_mismatch(&self, supported: &[u64]) -> Option<HostParamMismatch> {
        let given = self.hugepage_kb.filter(|given| !supported.contains(given))?;
        let found = match supported {
            [one] => Value::from(*one),
            all => Value::from(all),
        };
        Some(HostParamMismatch { parameter: "hugepage-kb".to_owned(), given: given.into(), found })
    }

    /// Detects the sizes of huge pages in KiB that a worker's kernel supports, in ascending order.
    pub async fn detect_page_sizes(worker: &Worker) -> Vec<u64> {
        // A kernel without huge pages has no such folder.
        let entries = worker.list("/sys/kernel/mm/hugepages").await.unwrap_or_default();
        let size = |name: &str| name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok();
        let mut sizes: Vec<u64> = entries.iter().filter_map(|entry| size(&entry.name)).collect();
        sizes.sort_unstable();
        sizes
    }

    fn to_object(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(all)) => all,
            _ => Map::new(),
        }
    }
}

fn refuse_quoted_number(name: &str, value: &Value) -> Result<(), ParamError> {
    let is_quoted_number = value.as_str().is_some_and(|text| text.trim().parse::<u64>().is_ok());
    match lookup(name) {
        Some((name @ ("host-cpus" | "guest-cpus"), _)) if is_quoted_number => {
            Err(ParamError::AmbiguousCpus { name, given: value.clone() })
        }
        _ => Ok(()),
    }
}

fn suggest_parameter(name: &str) -> Option<Suggestion> {
    suggest(name, PARAMETERS.iter().map(|(name, _)| *name))
}

fn lookup(name: &str) -> Option<(&'static str, &'static str)> {
    let name = name.replace('_', "-");
    PARAMETERS.into_iter().find(|(parameter, _)| *parameter == name)
}

fn zip_options<'a, T>(one: &'a Option<T>, other: &'a Option<T>) -> Option<(&'a T, &'a T)> {
    one.as_ref().zip(other.as_ref())
}

fn differ<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
    zip_options(one, other).is_some_and(|(one, other)| one != other)
}

/// ID and VERSION_ID of an `os-release`, as in `debian-12`.
fn distribution(os_release: &str) -> Option<String> {
    let value_of = |key: &str| {
        let value = os_release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
        Some(value.trim_matches(['"', '\'']).to_owned()).filter(|value| !value.is_empty())
    };
    let id = value_of("ID")?;
    Some(value_of("VERSION_ID").map_or(id.clone(), |version| format!("{id}-{version}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wb_model::facts::{Cpu, Node};

    use super::*;

    fn configured(all: &[(&str, Value)]) -> HostParams {
        let mut params = HostParams::default();
        all.iter().for_each(|(name, value)| params.set(name, value.clone()).unwrap());
        params
    }

    fn detected() -> HostParams {
        let cpus = (0..4).map(|id| Cpu { id, core: id / 2, package: 0, node: 0 }).collect();
        let nodes = vec![Node { id: 0, cpus: (0..4).collect(), memory: Bytes(12 << 30) }];
        let memory_available = Bytes(10 << 30);
        let facts = Facts { cpus, nodes, arch: "x86_64".to_owned(), memory_available, ..Facts::default() };
        HostParams::from_system(&facts, "Hugepagesize:       2048 kB\n", "NAME=x\nID=debian\nVERSION_ID=\"12\"\n")
    }

    #[test]
    fn all_parameters_are_detected() {
        let expected = json!({
            "hugepage-kb": 2048, "numa-nodes": 1, "host-cpus": "0-3", "guest-cpus": "0-3", "guest-mem-m": 9216,
            "arch": "x86_64", "disable-smt": false, "distro": "debian-12",
        });
        assert_eq!(Value::Object(detected().to_object()), expected);
    }

    #[test]
    fn configured_parameters_win_and_contradictions_are_reported() {
        let given = configured(&[
            ("hugepage_kb", json!(1_048_576)),
            ("numa_nodes", json!(2)),
            ("host-cpus", json!(4)),
            ("guest-cpus", json!("0-1")),
            ("guest_mem_m", json!(20_000)),
            ("disable_smt", json!(true)),
        ]);
        let messages: Vec<String> = given.mismatches(&detected()).iter().map(HostParamMismatch::to_string).collect();
        assert_eq!(
            messages,
            ["`numa-nodes` is set to 2, but 1 was detected", "`guest-mem-m` is set to 20000, but 9216 was detected"]
        );
        let without_smt = configured(&[("host-cpus", json!(2)), ("disable-smt", json!(true))]);
        assert_eq!(without_smt.mismatches(&detected()), []);
        assert_eq!(configured(&[("host-cpus", json!(2))]).mismatches(&detected()).len(), 1);
        let merged = detected().overridden_by(&given);
        assert_eq!((merged.hugepage_kb, merged.guest_cpus), (Some(1_048_576), Some(CpuSpec::List(vec![0, 1]))));
        assert_eq!((merged.arch.as_deref(), merged.host_cpus), (Some("x86_64"), Some(CpuSpec::Count(4))));
    }

    // 12345 and 0 passed in silence.
    #[test]
    fn page_sizes_that_the_kernel_lacks_are_reported() {
        let message = |given: u64, supported: &[u64]| {
            configured(&[("hugepage_kb", json!(given))]).page_size_mismatch(supported).map(|found| found.to_string())
        };
        for given in [12345, 4] {
            assert_eq!(
                message(given, &[2048, 1_048_576]).unwrap(),
                format!("`hugepage-kb` is set to {given}, but [2048,1048576] was detected")
            );
        }
        assert_eq!(message(4, &[2048]).unwrap(), "`hugepage-kb` is set to 4, but 2048 was detected");
        assert_eq!((message(2048, &[2048, 1_048_576]), message(1_048_576, &[2048, 1_048_576])), (None, None));
        assert_eq!(HostParams::default().page_size_mismatch(&[2048]), None);
    }

    #[test]
    fn unknown_parameters_and_invalid_values_are_reported() {
        let error = |name: &str, value: Value| HostParams::default().set(name, value).unwrap_err();
        assert_eq!(
            error("numa-node", json!(1)),
            ParamError::Unknown { name: "numa-node".into(), suggestion: Some(Suggestion::new("numa-nodes")) }
        );
        assert_eq!(
            error("host_cpus", json!("0-")).to_string(),
            "invalid value \"0-\" for `host-cpus`: expected a number of CPUs from 1, or a list such as \"0-3,8\""
        );
        let mut params = HostParams::default();
        params.set_or_store("rack", json!("B7")).unwrap();
        assert_eq!(params.extra["rack"], json!("B7"));
        assert!(params.set_or_store("guest_cpu", json!(3)).is_err());
    }
}
