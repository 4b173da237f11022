//! What is said of a host, and what is found: each detected, unless a file or an option says otherwise.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wb_agent::{Worker, WorkerError};
use wb_model::{Bytes, Facts};
use wb_plan::suggestion::suggest;
use wb_sys::facts::{cpu_list, memory};

/// The names of what can be said, and what each takes.
const PARAMETERS: [(&str, &str); 9] = [
    ("hugepage-kb", "a number of KiB"),
    ("numa-nodes", "a number"),
    ("host-cpus", "a number of CPUs, or a list such as \"0-3,8\""),
    ("guest-cpus", "a number of CPUs, or a list such as \"0-3,8\""),
    ("guest-mem-m", "a number of MiB"),
    ("arch", "a name such as \"x86_64\""),
    ("disable-smt", "true or false"),
    ("distro", "a name such as \"debian-12\""),
    ("guest-distro", "a name such as \"debian-12\""),
];

/// What profiles go by on a host. Names as in run-perf's host files, with `-` or `_`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct HostParams {
    /// The size of its huge pages, in KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hugepage_kb: Option<u64>,
    /// How many NUMA nodes it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa_nodes: Option<u32>,
    /// Its CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_cpus: Option<CpuSpec>,
    /// The CPUs for guests: all, where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest_cpus: Option<CpuSpec>,
    /// The memory for guests, in MiB: nine tenths of what is free, where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest_mem_m: Option<u64>,
    /// Its architecture, as `uname -m` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
    /// Whether its cores are to run one thread each; found: whether they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_smt: Option<bool>,
    /// Its distribution: ID and VERSION_ID of `/etc/os-release`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distro: Option<String>,
    /// The distribution of its guests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest_distro: Option<String>,
    /// What else its owner wants to say.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Value>,
}

/// CPUs: so many, or these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CpuSpec {
    /// So many.
    Count(u32),
    /// These, as the kernel lists them: `0-3,8`.
    List(
        #[serde(with = "list")]
        #[schemars(with = "String")]
        Vec<u32>,
    ),
}

impl CpuSpec {
    /// How many they are.
    pub fn count(&self) -> usize {
        match self {
            Self::Count(count) => *count as usize,
            Self::List(list) => list.len(),
        }
    }

    /// Whether both can be true of one thing: numbers are compared where one is only a number.
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
        cpu_list::parse(&text).filter(|list| !list.is_empty()).ok_or_else(|| D::Error::custom("no list of CPUs"))
    }
}

/// Why something cannot be said of a host.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ParamError {
    /// There is no such thing to say.
    #[error("a host has no parameter `{name}`")]
    Unknown {
        /// What was given.
        name: String,
        /// What may have been meant.
        near: Option<&'static str>,
    },
    /// It takes something else.
    #[error("`{name}` takes {expected}, not {given}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// What it takes.
        expected: &'static str,
        /// What was given.
        given: Value,
    },
}

/// Something that is said of a host and is not so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ParamMismatch {
    /// The parameter.
    pub parameter: String,
    /// What is said, which counts.
    pub given: Value,
    /// What was found.
    pub found: Value,
}

impl fmt::Display for ParamMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { parameter, given, found } = self;
        write!(f, "`{parameter}` is given as {given}, and found to be {found}")
    }
}

impl HostParams {
    /// Says one thing.
    pub(crate) fn set(&mut self, name: &str, value: Value) -> Result<(), ParamError> {
        let (name, wanted) =
            lookup(name).ok_or_else(|| ParamError::Unknown { name: name.to_owned(), near: suggest_parameter(name) })?;
        let bad = |given| ParamError::Value { name, expected: wanted, given };
        let mut all = self.to_object();
        all.insert(name.to_owned(), value.clone());
        *self = serde_json::from_value(Value::Object(all)).map_err(|_| bad(value))?;
        Ok(())
    }

    /// The same for foreign files, where whatever nothing here is like is somebody's own. Short words are like any.
    pub(crate) fn set_or_keep(&mut self, name: &str, value: Value) -> Result<(), ParamError> {
        match self.set(name, value.clone()) {
            Err(ParamError::Unknown { near, .. }) if near.is_none() || name.len() < 6 => {
                self.extra.insert(name.to_owned(), value);
                Ok(())
            }
            other => other,
        }
    }

    /// With what `other` says in the place of what this says.
    pub fn overridden_by(&self, other: &Self) -> Self {
        let mut all = self.to_object();
        all.extend(other.to_object());
        let own = self.extra.clone().into_iter().chain(other.extra.clone()).collect();
        Self { extra: own, ..serde_json::from_value(Value::Object(all)).unwrap_or_else(|_| other.clone()) }
    }

    /// What can be found of a worker's host.
    pub async fn detect(worker: &Worker) -> Result<Self, WorkerError> {
        const SHORT: Bytes = Bytes(1 << 20);
        let facts = worker.facts().await?;
        let meminfo = worker.get("/proc/meminfo", SHORT).await.unwrap_or_default();
        let release = worker.get("/etc/os-release", SHORT).await.unwrap_or_default();
        Ok(Self::from_system(&facts, &String::from_utf8_lossy(&meminfo), &String::from_utf8_lossy(&release)))
    }

    /// By a host's facts, its `/proc/meminfo` and its `/etc/os-release`.
    fn from_system(facts: &Facts, meminfo: &str, os_release: &str) -> Self {
        let cpus: Vec<u32> = facts.cpus.iter().map(|cpu| cpu.id).collect();
        let cpus = (!cpus.is_empty()).then_some(CpuSpec::List(cpus));
        Self {
            hugepage_kb: memory::meminfo(meminfo).get("Hugepagesize").map(|size| size.0 / 1024),
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

    /// What is said here that is not so by what was found. What a host is to be like, and less for guests than there
    /// is, is no contradiction.
    pub fn mismatches(&self, found: &Self) -> Vec<ParamMismatch> {
        let wrong = [
            ("hugepage-kb", differ(&self.hugepage_kb, &found.hugepage_kb)),
            ("numa-nodes", differ(&self.numa_nodes, &found.numa_nodes)),
            ("arch", differ(&self.arch, &found.arch)),
            ("distro", differ(&self.distro, &found.distro)),
            (
                "host-cpus",
                zip_options(&self.host_cpus, &found.host_cpus).is_some_and(|(said, is)| !said.agrees_with(is)),
            ),
            (
                "guest-cpus",
                zip_options(&self.guest_cpus, &found.host_cpus).is_some_and(|(said, is)| said.count() > is.count()),
            ),
            ("guest-mem-m", zip_options(&self.guest_mem_m, &found.guest_mem_m).is_some_and(|(said, is)| said > is)),
        ];
        let (given, is) = (self.to_object(), found.to_object());
        let of = |name: &str| ParamMismatch {
            parameter: name.to_owned(),
            given: given.get(name).cloned().unwrap_or_default(),
            found: is.get(name).cloned().unwrap_or_default(),
        };
        wrong.into_iter().filter(|(_, wrong)| *wrong).map(|(name, _)| of(name)).collect()
    }

    /// What is said, by name.
    fn to_object(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(all)) => all,
            _ => Map::new(),
        }
    }
}

/// The nearest name of a parameter, if one is like it.
fn suggest_parameter(name: &str) -> Option<&'static str> {
    suggest(name, PARAMETERS.iter().map(|(name, _)| *name))
}

fn lookup(name: &str) -> Option<(&'static str, &'static str)> {
    let name = name.replace('_', "-");
    PARAMETERS.into_iter().find(|(known, _)| *known == name)
}

fn zip_options<'a, T>(one: &'a Option<T>, other: &'a Option<T>) -> Option<(&'a T, &'a T)> {
    one.as_ref().zip(other.as_ref())
}

fn differ<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
    zip_options(one, other).is_some_and(|(one, other)| one != other)
}

/// ID and VERSION_ID of an `os-release`, as in `debian-12`.
fn distribution(os_release: &str) -> Option<String> {
    let of = |key: &str| {
        let value = os_release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
        Some(value.trim_matches(['"', '\'']).to_owned()).filter(|value| !value.is_empty())
    };
    let id = of("ID")?;
    Some(of("VERSION_ID").map_or(id.clone(), |version| format!("{id}-{version}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wb_model::facts::Cpu;

    use super::*;

    fn said(all: &[(&str, Value)]) -> HostParams {
        let mut params = HostParams::default();
        all.iter().for_each(|(name, value)| params.set(name, value.clone()).unwrap());
        params
    }

    fn found() -> HostParams {
        let cpus = (0..4).map(|id| Cpu { id, core: id / 2, package: 0, node: 0 }).collect();
        let facts = Facts { cpus, arch: "x86_64".to_owned(), memory_available: Bytes(10 << 30), ..Facts::default() };
        HostParams::from_system(&facts, "Hugepagesize:       2048 kB\n", "NAME=x\nID=debian\nVERSION_ID=\"12\"\n")
    }

    #[test]
    fn all_is_found_of_a_host() {
        let expected = json!({
            "hugepage-kb": 2048, "host-cpus": "0-3", "guest-cpus": "0-3", "guest-mem-m": 9216,
            "arch": "x86_64", "disable-smt": false, "distro": "debian-12",
        });
        assert_eq!(Value::Object(found().to_object()), expected);
    }

    #[test]
    fn what_is_said_counts_and_what_is_not_so_is_told() {
        let given = said(&[
            ("hugepage_kb", json!(1_048_576)),
            ("host-cpus", json!(4)),
            ("guest-cpus", json!("0-1")),
            ("guest_mem_m", json!(20_000)),
            ("disable_smt", json!(true)),
        ]);
        let told: Vec<String> = given.mismatches(&found()).iter().map(ParamMismatch::to_string).collect();
        assert_eq!(
            told,
            [
                "`hugepage-kb` is given as 1048576, and found to be 2048",
                "`guest-mem-m` is given as 20000, and found to be 9216"
            ]
        );
        let counts = found().overridden_by(&given);
        assert_eq!((counts.hugepage_kb, counts.guest_cpus), (Some(1_048_576), Some(CpuSpec::List(vec![0, 1]))));
        assert_eq!((counts.arch.as_deref(), counts.host_cpus), (Some("x86_64"), Some(CpuSpec::Count(4))));
    }

    #[test]
    fn what_is_no_parameter_or_no_value_of_one_is_named() {
        let error = |name: &str, value: Value| HostParams::default().set(name, value).unwrap_err();
        assert_eq!(
            error("numa-node", json!(1)),
            ParamError::Unknown { name: "numa-node".into(), near: Some("numa-nodes") }
        );
        assert_eq!(
            error("host_cpus", json!("0-")).to_string(),
            "`host-cpus` takes a number of CPUs, or a list such as \"0-3,8\", not \"0-\""
        );
        let mut params = HostParams::default();
        params.set_or_keep("rack", json!("B7")).unwrap();
        assert_eq!(params.extra["rack"], json!("B7"));
        assert!(params.set_or_keep("guest_cpu", json!(3)).is_err());
    }
}
