//! The recorded metadata and environments of a Weighbridge run.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use wb_model::ProfileName;
use wb_model::secrets::mask_arguments;
use wb_record::{JournalEvent, RunFile, RunFolder, RunRecords};
use wb_results::comparison::MachineEnvironment;

use super::warning::{Warning, WarningKind};
use crate::distinct::distinct;
use crate::metadata::Metadata;

/// Unreadable files are skipped with a warning.
pub(super) fn metadata(run: &RunFolder, records: &RunRecords) -> (Metadata, Vec<Warning>) {
    let run_file = &records.run_file;
    let mut metadata = Metadata::default();
    let Some(last) = run_file.invocations.last() else { return (metadata, Vec::new()) };
    for (name, value) in run_file.invocations.iter().flat_map(|invocation| &invocation.metadata) {
        let field = match name.as_str() {
            "build" => &mut metadata.build,
            "url" => &mut metadata.url,
            "machine-url" => &mut metadata.machine_url,
            "distro" => &mut metadata.distro,
            "guest-distro" => &mut metadata.guest_distro,
            _ => {
                metadata.others.insert(name.clone(), value.clone());
                continue;
            }
        };
        *field = Some(value.clone());
    }
    // Several machines may have one host name.
    let hosts = distinct(last.facts.values().map(|facts| facts.hostname.as_str()).filter(|host| !host.is_empty()));
    metadata.machine = Some(hosts.join(", ")).filter(|hosts| !hosts.is_empty());
    metadata.version = Some(last.version.clone());
    metadata.program_sha256 = Some(last.program_sha256.clone()).filter(|hash| !hash.is_empty());
    metadata.agent_sha256 = last.agent_sha256.clone().filter(|hash| !hash.is_empty());
    metadata.command = Some(mask_arguments(&last.command).join(" "));
    metadata.others.insert("started".to_owned(), last.started.clone());
    metadata.systems = wb_record::systems(run, &run_file.invocations);
    let mut warnings = Vec::new();
    for (profile, invocation) in judged_invocations(records) {
        let machines = machines(run, run_file, invocation, &mut warnings);
        if !machines.is_empty() {
            metadata.environment.insert(profile.to_string(), machines);
        }
    }
    (metadata, warnings)
}

/// The invocation of each profile whose environment applies to its results: the last one that took samples or, if none
/// did, the last one with machines for the profile.
fn judged_invocations(RunRecords { run_file, lines, .. }: &RunRecords) -> BTreeMap<ProfileName, u32> {
    let profiles: BTreeSet<&ProfileName> =
        run_file.invocations.iter().flat_map(|invocation| &invocation.cells).map(|cell| &cell.profile).collect();
    let mut judged: BTreeMap<ProfileName, u32> = profiles
        .into_iter()
        .filter_map(|profile| Some((profile.clone(), run_file.last_invocation_for(profile)?.0 as u32)))
        .collect();
    let mut current = 0;
    for line in lines {
        match &line.event {
            JournalEvent::InvocationStarted { invocation, .. } => current = *invocation,
            JournalEvent::AttemptEnded(ended) => drop(judged.insert(ended.cell.profile.clone(), current)),
            _ => {}
        }
    }
    judged
}

/// Workers and the hosts below them before an invocation started, each with the effects of its profile.
fn machines(
    run: &RunFolder,
    run_file: &RunFile,
    invocation: u32,
    warnings: &mut Vec<Warning>,
) -> Vec<MachineEnvironment> {
    let mut read = |name: &str| {
        let path = run.environment_path(name);
        run.read_json::<Value>(&path).unwrap_or_else(|error| {
            warnings.push(Warning { path, kind: WarningKind::unreadable(error) });
            None
        })
    };
    let worlds = run.recorded_environments(invocation, "before");
    let facts = run_file.invocations.get(invocation as usize).map(|invocation| &invocation.facts);
    let mut machines: Vec<MachineEnvironment> = Vec::new();
    for (worker, name) in &worlds {
        let Some(sections) = read(name) else { continue };
        // The first worker's file has no name: it is the worker without a named file.
        let has_file = |name: &str| worlds.iter().any(|(worker, _)| worker.as_deref() == Some(name));
        let first = || facts?.keys().map(ToString::to_string).find(|name| !has_file(name));
        machines.push(MachineEnvironment { worker: worker.clone().or_else(first), sections: into_fields(sections) });
    }
    if let Some(Value::Array(states)) = read(&format!("profile-{invocation}")) {
        states.iter().for_each(|state| add_host_state(&mut machines, state));
    }
    machines
}

fn add_host_state(machines: &mut Vec<MachineEnvironment>, state: &Value) {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    if let Some(host) = text(state, "host") {
        let sections = &mut machine(machines, host).sections;
        let mut profile = into_fields(state.get("profile").cloned().unwrap_or_default());
        // These two do not affect the host.
        for key in ["summary", "tests"] {
            profile.remove(key);
        }
        let profile = profile.into_iter().filter(|(_, value)| !value.is_null()).collect();
        sections.insert("profile".to_owned(), Value::Object(profile));
        let knobs = state.get("knobs").and_then(Value::as_array).cloned().unwrap_or_default();
        sections.insert("knobs".to_owned(), Value::Object(knobs.iter().filter_map(knob_value).collect()));
        sections.insert("knobs_raw".to_owned(), Value::Array(knobs));
    }
    for guest in state.get("guests").and_then(Value::as_array).into_iter().flatten() {
        let Some(name) = text(guest, "name") else { continue };
        let xml = text(guest, "xml").unwrap_or_default();
        let domain = text(guest, "domain").unwrap_or_default();
        let sections = &mut machine(machines, name.clone()).sections;
        let stable = ["cpus", "memory", "virt-type", "image"];
        let stable = stable.into_iter().filter_map(|key| Some((key.to_owned(), guest.get(key)?.clone())));
        sections.insert("guest".to_owned(), Value::Object(stable.collect()));
        let all = into_fields(guest.clone()).into_iter().filter(|(key, _)| key != "xml");
        sections.insert("guest_raw".to_owned(), Value::Object(all.collect()));
        sections.insert("libvirt_xml".to_owned(), json!(stable_xml(&xml, &name, &domain)));
        sections.insert("libvirt_xml_raw".to_owned(), json!(xml));
    }
}

/// Added if missing.
fn machine(machines: &mut Vec<MachineEnvironment>, worker: String) -> &mut MachineEnvironment {
    let index = machines.iter().position(|machine| machine.worker.as_ref() == Some(&worker)).unwrap_or_else(|| {
        machines.push(MachineEnvironment { worker: Some(worker), sections: BTreeMap::new() });
        machines.len() - 1
    });
    &mut machines[index]
}

/// The name `KNOB@TARGET` and value of a knob in the profile.
fn knob_value(tuned: &Value) -> Option<(String, Value)> {
    let text = |key: &str| tuned.get(key).and_then(Value::as_str);
    let name = match text("target").unwrap_or_default() {
        "" => text("knob")?.to_owned(),
        target => format!("{}@{target}", text("knob")?),
    };
    let target_value = text("requested").unwrap_or_default();
    let value = match (text("outcome"), text("now"), text("reason")) {
        (_, _, Some(reason)) => format!("not {target_value}: {reason}"),
        (_, Some(now), _) => now.to_owned(),
        _ => target_value.to_owned(),
    };
    Some((name, Value::String(value)))
}

/// Without the parts that change at each start: name, UUID, hardware addresses, and the folder of its files.
fn stable_xml(xml: &str, guest: &str, domain: &str) -> String {
    let is_stable = |line: &&str| {
        let line = line.trim();
        !["<uuid>", "<mac address="].iter().any(|start| line.starts_with(start))
    };
    let lines = xml.lines().filter(is_stable).map(|line| {
        let line = if domain.is_empty() { line.to_owned() } else { line.replace(domain, guest) };
        strip_folder(&line, guest)
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn strip_folder(line: &str, guest: &str) -> String {
    let file = ["disk", "seed", "console"].iter().find_map(|kind| line.find(&format!("/{guest}.{kind}")));
    let Some(end) = file else { return line.to_owned() };
    let start = line[..end].rfind(['"', '\'', '>', '=']).map_or(0, |position| position + 1);
    format!("{}{}", &line[..start], &line[end + 1..])
}

fn into_fields(value: Value) -> BTreeMap<String, Value> {
    match value {
        Value::Object(fields) => fields.into_iter().collect(),
        other => BTreeMap::from([(String::new(), other)]),
    }
}

#[cfg(test)]
mod tests {
    use wb_results::comparison::{Environments, SectionDifference};

    use super::*;
    use crate::environment::differences;

    const XML: &str = "<domain type='kvm'>\n  <name>weighbridge-PID-vm1</name>\n  <uuid>UUID</uuid>\n  \
                       <memory unit='KiB'>1048576</memory>\n  <source file='/var/lib/wb-PID/vm1.disk'/>\n  \
                       <mac address='52:54:00:00:00:PID'/>\n</domain>";

    /// The state of host `h` after a process with this number applied a profile.
    fn state(pid: &str, edit: impl Fn(&str) -> String) -> Vec<MachineEnvironment> {
        let state = json!({
            "name": "Tuned", "host": "h",
            "profile": {
                "summary": pid, "sets": ["quiet"], "tests": [pid], "guests": {"count": 1},
                "files": [{"path": "/etc/x", "text": "one\ntwo\n", "mode": "0644"}],
                "commands": [{"name": "flag", "check": "true", "apply": "touch /f", "revert": "rm /f"}],
            },
            "knobs": [{"knob": "governor", "target": "cpu0", "before": pid, "requested": "performance", "outcome": "set", "now": "performance"}],
            "guests": [{
                "name": "vm1", "domain": format!("weighbridge-{pid}-vm1"), "address": pid, "cpus": 2, "started-in": pid,
                "xml": XML.replace("PID", pid).replace("UUID", pid),
            }],
        });
        let mut machines = Vec::new();
        add_host_state(&mut machines, &serde_json::from_str(&edit(&state.to_string())).unwrap());
        machines
    }

    fn differing(before: Vec<MachineEnvironment>, after: Vec<MachineEnvironment>) -> Vec<String> {
        let environments = |machines| Environments::from([("Tuned".to_owned(), machines)]);
        let (before, after) = (environments(before), environments(after));
        let all = differences(&[&before], &[&after]);
        let of = |section: &SectionDifference| {
            section.changes.iter().map(|change| format!("{}: {}", section.section, change.name)).collect::<Vec<_>>()
        };
        all.iter().flat_map(of).collect()
    }

    #[test]
    fn applying_a_profile_twice_makes_no_difference() {
        let same = |text: &str| text.to_owned();
        assert_eq!(differing(state("100", same), state("2345", same)), [""; 0]);
    }

    #[test]
    fn every_effect_of_a_profile_on_hosts_and_guests_is_a_difference() {
        for (from, to, expected) in [
            ("\"now\":\"performance\"", "\"now\":\"powersave\"", "knobs: governor@cpu0"),
            ("two\\n", "three\\n", "profile: files./etc/x.text"),
            ("touch /f", "touch /g", "profile: commands.flag.apply"),
            ("[\"quiet\"]", "[\"loud\"]", "profile: sets"),
            ("1048576", "2097152", "libvirt_xml: "),
            ("\"cpus\":2", "\"cpus\":4", "guest: cpus"),
        ] {
            let old = state("1", str::to_owned);
            let new = state("1", |text| {
                assert!(text.contains(from), "{from} is in {text}");
                text.replace(from, to)
            });
            assert_eq!(differing(old, new), [expected], "{to}");
        }
    }
}
