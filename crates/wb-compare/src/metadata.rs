//! Metadata of a run: `RUNPERF_METADATA`, lines of `key:value`.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use wb_model::secrets::mask_command_line;
use wb_model::{Facts, System};
use wb_results::comparison::{BASE_ENVIRONMENT, Environments, MachineEnvironment};
use wb_sys::Environment;

/// Metadata of a run. Keys without a field of their own are in `others`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    /// The number or name of the build that was measured.
    pub build: Option<String>,
    /// Where the results are published.
    pub url: Option<String>,
    pub machine: Option<String>,
    /// Where the machine is described.
    pub machine_url: Option<String>,
    /// The host's distribution.
    pub distro: Option<String>,
    pub guest_distro: Option<String>,
    /// The version of the measuring program.
    pub version: Option<String>,
    /// The command line of that program, with secrets masked.
    pub command: Option<String>,
    /// The SHA-256 of that program, which only a run of this program records.
    pub program_sha256: Option<String>,
    /// The SHA-256 of its agents, likewise.
    pub agent_sha256: Option<String>,
    pub environment: Environments,
    /// The systems of the machines in [`BASE_ENVIRONMENT`], as far as it describes them.
    pub systems: Vec<System>,
    pub others: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    #[error("invalid line {line}: expected `key:value`")]
    NoKey {
        /// From 1.
        line: usize,
    },
    #[error("invalid environment `{key}`: {reason}")]
    NoEnvironment { key: String, reason: String },
}

const PROFILE: &str = "environment_profile_";
const WORLD: &str = "environment_world";

impl Metadata {
    /// Skips invalid lines and returns their errors.
    pub fn parse(text: &str) -> (Self, Vec<MetadataError>) {
        let (mut metadata, mut bad) = (Self::default(), Vec::new());
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let result = match line.split_once(':') {
                Some((key, value)) => metadata.set(key, value.trim_end()),
                None => Err(MetadataError::NoKey { line: index + 1 }),
            };
            bad.extend(result.err());
        }
        metadata.systems =
            metadata.environment.get(BASE_ENVIRONMENT).into_iter().flatten().map(describe_system).collect();
        (metadata, bad)
    }

    /// run-perf needs a value for some of the keys: its placeholders stand for what is missing, and are read as values.
    /// Line breaks in values become spaces.
    pub fn to_lines(&self) -> String {
        const UNKNOWN: &str = "Unknown";
        let text = |value: &Option<String>, default: &str| value.clone().unwrap_or_else(|| default.to_owned());
        let machine = text(&self.machine, UNKNOWN);
        let optional = [("build", &self.build), ("url", &self.url)];
        let optional = optional.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value.clone()?)));
        let known = [
            ("distro", text(&self.distro, UNKNOWN)),
            // run-perf's word for the distribution of the host.
            ("guest_distro", text(&self.guest_distro, "DISTRO")),
            ("runperf_version", text(&self.version, UNKNOWN)),
            ("runperf_cmd", text(&self.command, UNKNOWN)),
            ("machine_url", text(&self.machine_url, &machine)),
            ("machine", machine),
        ];
        let known = known.map(|(key, value)| (key.to_owned(), value));
        let environments = self.environment.iter().map(|(name, machines)| {
            let key = if name == BASE_ENVIRONMENT { WORLD.to_owned() } else { format!("{PROFILE}{name}") };
            let machines: Vec<BTreeMap<&String, String>> = machines.iter().map(section_texts).collect();
            (key, serde_json::to_string(&machines).expect("plain texts have a JSON form"))
        });
        let others = self.others.clone().into_iter();
        let all = others.chain(optional).chain(known).chain(environments);
        all.map(|(key, value)| {
            format!("{}:{}\n", key.replace([':', '\n', '\r'], "_"), value.replace(['\n', '\r'], " "))
        })
        .collect()
    }

    /// The kernel's release, if recorded in the environment.
    pub fn kernel(&self) -> Option<String> {
        let machines = self.environment.get(BASE_ENVIRONMENT).or_else(|| self.environment.values().next());
        kernel_release(machines?.first()?)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), MetadataError> {
        let field = match key {
            "build" => &mut self.build,
            "url" => &mut self.url,
            "machine" => &mut self.machine,
            "machine_url" => &mut self.machine_url,
            "distro" => &mut self.distro,
            "guest_distro" => &mut self.guest_distro,
            "runperf_version" => &mut self.version,
            "runperf_cmd" => &mut self.command,
            WORLD => return self.set_environment(key, BASE_ENVIRONMENT, value),
            _ => {
                if let Some(profile) = key.strip_prefix(PROFILE) {
                    return self.set_environment(key, profile, value);
                }
                self.others.insert(key.to_owned(), value.to_owned());
                return Ok(());
            }
        };
        *field = Some(if key == "runperf_cmd" { mask_command_line(value) } else { value.to_owned() });
        Ok(())
    }

    fn set_environment(&mut self, key: &str, name: &str, value: &str) -> Result<(), MetadataError> {
        let invalid = |reason: String| MetadataError::NoEnvironment { key: key.to_owned(), reason };
        let machines = match serde_json::from_str(value).map_err(|error| invalid(error.to_string()))? {
            Json::Array(machines) => machines,
            Json::Object(sections) if sections.is_empty() => Vec::new(),
            _ => return Err(invalid("expected a list of machines".to_owned())),
        };
        let machines = machines.into_iter().map(parse_machine).collect();
        self.environment.insert(name.to_owned(), machines);
        Ok(())
    }
}

/// Parses a machine in run-perf's format; any value that is not an object becomes one unnamed section.
fn parse_machine(machine: Json) -> MachineEnvironment {
    let sections = match machine {
        Json::Object(sections) => sections.into_iter().map(|(name, value)| (name, parse_section(value))).collect(),
        other => BTreeMap::from([(String::new(), other)]),
    };
    MachineEnvironment { worker: None, sections }
}

/// What [`section_texts`] made a text of is an object or a list again.
fn parse_section(section: Json) -> Json {
    let parsed = section.as_str().and_then(|text| serde_json::from_str::<Json>(text).ok());
    parsed.filter(|parsed| parsed.is_object() || parsed.is_array()).unwrap_or(section)
}

/// The release is the first line of run-perf's section, and a value of ours.
fn kernel_release(machine: &MachineEnvironment) -> Option<String> {
    match machine.sections.get("kernel")? {
        Json::String(text) => text.lines().next().map(str::to_owned),
        section => section.get("release")?.as_str().map(str::to_owned),
    }
}

/// The sections of a machine as text, which run-perf compares line by line.
fn section_texts(machine: &MachineEnvironment) -> BTreeMap<&String, String> {
    let text = |value: &Json| match value {
        Json::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).expect("JSON has a text form"),
    };
    machine.sections.iter().map(|(name, value)| (name, text(value))).collect()
}

/// Describes the system of a machine from the sections that run-perf writes: `Name:` and `Distro:` in `general`, the
/// release in the first line of `kernel`, and in `mitigations` a line of path and text for each vulnerability; or from
/// our own, which are objects.
fn describe_system(machine: &MachineEnvironment) -> System {
    let lines = |section: &str| machine.sections.get(section).and_then(Json::as_str).unwrap_or_default().lines();
    let general =
        |name: &str| lines("general").find_map(|line| line.strip_prefix(name)).map(|text| text.trim().to_owned());
    let vulnerability = |line: &str| {
        let (path, state) = line.split_once(':')?;
        Some((path.rsplit('/').next()?.to_owned(), state.trim().to_owned()))
    };
    let mut environment = Environment::default();
    let own = |section: &str, name: &str| machine.sections.get(section)?.get(name)?.as_str().map(str::to_owned);
    environment.kernel.distribution = general("Distro:").or_else(|| own("kernel", "distribution"));
    environment.kernel.release = kernel_release(machine);
    let own_mitigations = machine.sections.get("mitigations").and_then(Json::as_object).into_iter().flatten();
    let own_mitigations = own_mitigations.filter_map(|(name, state)| Some((name.clone(), state.as_str()?.to_owned())));
    environment.mitigations = lines("mitigations").filter_map(vulnerability).chain(own_mitigations).collect();
    let facts = Facts { hostname: general("Name:").unwrap_or_default(), ..Facts::default() };
    wb_sys::system(&facts, &environment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_is_read_from_run_perfs_sections() {
        let machine = r#"[{"general": "Name:foo\nDistro:Fedora-30", "kernel": "5.0.9-301.fc30.x86_64\n#1 SMP\n",
            "mitigations": "/sys/devices/system/cpu/vulnerabilities/meltdown:Mitigation: PTI\n"}]"#;
        let (metadata, bad) = Metadata::parse(&format!("environment_world:{}", machine.replace('\n', "")));
        let [system] = &metadata.systems[..] else { panic!("one system, {bad:?}") };
        let properties =
            [("distribution", "Fedora-30"), ("kernel", "5.0.9-301.fc30.x86_64"), ("mitigations", "meltdown: PTI")];
        assert_eq!(system.host, "foo");
        assert_eq!(system.properties, properties.map(|(name, text)| (name.to_owned(), text.to_owned())));
    }

    #[test]
    fn lines_become_fields_and_invalid_lines_are_reported() {
        let text = "# made by hand\nbuild:1\nurl:https://x/y:1\nodd\nrunperf_cmd:run-perf --default-password abc\n\
                    environment_world:[{\"kernel\": \"5.0\", \"params\": {\"cpus\": 3}}]\n\
                    environment_profile_Tuned:{\nproject:p";
        let (metadata, bad) = Metadata::parse(text);
        assert_eq!(metadata.build.as_deref(), Some("1"));
        assert_eq!(metadata.url.as_deref(), Some("https://x/y:1"));
        assert_eq!(metadata.command.as_deref(), Some("run-perf --default-password ***"));
        assert_eq!(metadata.kernel().as_deref(), Some("5.0"));
        assert_eq!(metadata.environment[BASE_ENVIRONMENT][0].sections["params"], serde_json::json!({"cpus": 3}));
        assert_eq!(metadata.others["project"], "p");
        assert_eq!(bad[0], MetadataError::NoKey { line: 4 });
        assert!(matches!(&bad[1], MetadataError::NoEnvironment { key, .. } if key == "environment_profile_Tuned"));
    }

    #[test]
    fn lines_of_metadata_are_read_again() {
        let machine = |sections: &[(&str, Json)]| MachineEnvironment {
            worker: None,
            sections: sections.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        };
        let written = Metadata {
            build: Some("7".to_owned()),
            distro: Some("Fedora-30".to_owned()),
            machine: Some("foo, bar".to_owned()),
            command: Some("weighbridge run fio".to_owned()),
            version: Some("0.1".to_owned()),
            others: BTreeMap::from([("project".to_owned(), "a\nb:c".to_owned())]),
            environment: BTreeMap::from([
                (BASE_ENVIRONMENT.to_owned(), vec![machine(&[("kernel", "5.0\nSMP".into())])]),
                (
                    "Tuned".to_owned(),
                    vec![
                        machine(&[("kernel", serde_json::json!({"release": "6.1"})), ("raw", serde_json::json!([1]))]),
                        machine(&[]),
                    ],
                ),
            ]),
            ..Metadata::default()
        };
        let text = written.to_lines();
        let (read, bad) = Metadata::parse(&text);
        assert!(bad.is_empty(), "{bad:?}");
        assert_eq!((&read.build, &read.distro, &read.machine), (&written.build, &written.distro, &written.machine));
        assert_eq!((&read.command, &read.version), (&written.command, &written.version));
        assert_eq!((read.guest_distro.as_deref(), read.machine_url.as_deref()), (Some("DISTRO"), Some("foo, bar")));
        assert_eq!(read.others["project"], "a b:c");
        assert_eq!(read.environment, written.environment);
        let releases = ["Tuned", BASE_ENVIRONMENT].map(|name| kernel_release(&read.environment[name][0]));
        assert_eq!(releases, [Some("6.1".to_owned()), Some("5.0".to_owned())]);
    }

    #[test]
    fn the_system_is_read_from_our_own_sections() {
        let sections = [
            ("kernel", serde_json::json!({"release": "6.1", "distribution": "Debian 12"})),
            ("mitigations", serde_json::json!({"meltdown": "Mitigation: PTI"})),
        ];
        let machine = MachineEnvironment {
            worker: None,
            sections: sections.map(|(name, value)| (name.to_owned(), value)).into(),
        };
        let environment = BTreeMap::from([(BASE_ENVIRONMENT.to_owned(), vec![machine.clone()])]);
        let (read, bad) = Metadata::parse(&Metadata { environment, ..Metadata::default() }.to_lines());
        assert!(bad.is_empty(), "{bad:?}");
        assert_eq!(read.systems, [describe_system(&machine)]);
        let shown = serde_json::to_string(&read.systems).unwrap();
        for value in ["6.1", "Debian 12", "meltdown: PTI"] {
            assert!(shown.contains(value), "{value}: {shown}");
        }
    }
}
