//! Translates profiles of run-perf: `DefaultLibvirt:{"RUNPERF_TESTS": ["fio"]}`.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use wb_diagnostics::Diagnostic;

use crate::test::{self, NAME_KEY, TranslatedTest, sanitize_name, split_params};

/// The profile whose number of guests follows from the host's CPUs.
const OVERCOMMIT: &str = "Overcommit1_5";
/// The profile whose guests share the CPUs for guests in run-perf, too.
const MULTI: &str = "DefaultLibvirtMulti";
const DEFAULT: &str = "default";
/// Numeric parameters that run-perf also accepts as strings.
const NUMERIC_PARAMS: [&str; 3] = ["force-guest-cpus", "force-guest-mem", "force-no-vms"];

#[derive(Debug, Default, PartialEq, Eq)]
pub struct TranslatedProfile {
    /// Name and parameters; `None` for the default profile.
    pub argument: Option<String>,
    /// Differences from run-perf, one sentence each.
    pub notes: Vec<String>,
    pub has_guests: bool,
    /// The tests that the profile defines itself.
    pub tests: Vec<TranslatedTest>,
}

/// Translates `NAME` or `NAME:JSON`, given the addresses of the hosts and the folders of host files.
pub fn translate(text: &str, addresses: &[String], folders: &[PathBuf]) -> Result<TranslatedProfile, Diagnostic> {
    let (name, run_perf_params) = split_params("profile", text)?;
    let mut profile = TranslatedProfile {
        has_guests: name.contains("Libvirt") || name == OVERCOMMIT,
        ..TranslatedProfile::default()
    };
    let mut params = Map::new();
    for (key, value) in run_perf_params {
        match key.as_str() {
            "RUNPERF_TESTS" => {
                profile.tests = parse_tests(&name, &value)?;
                params.insert("tests".to_owned(), profile.tests.iter().map(|test| test.spec.clone()).collect());
            }
            NAME_KEY => {
                params.insert("name".to_owned(), Value::String(sanitize_name(&text_of(&value))));
            }
            "__KEEP_ASSETS__" => profile.notes.push(format!(
                "`{key}` of `{name}` has no effect: images always stay in the cache until `weighbridge clean` removes them"
            )),
            "xml_suffix" => {
                params.insert("xml".to_owned(), Value::String(guest_xml_path(&text_of(&value))));
            }
            "rc_local_file" | "rc_local_file_params" => {
                let message = format!("`{key}` of `{name}` is not supported: rc.local of hosts is never changed");
                let help = "write a custom profile with [[commands]]; see docs/profiles.md";
                return Err(Diagnostic::new(message).with_help(help));
            }
            _ => {
                let key = key.replace('_', "-");
                let value = match key.as_str() {
                    name if NUMERIC_PARAMS.contains(&name) => parse_quoted_number(value),
                    "irqbalance" => parse_flag(value),
                    _ => value,
                };
                params.insert(key, value);
            }
        }
    }
    if name == OVERCOMMIT && params.remove("force-no-vms").is_some() {
        profile.notes.push(format!("`force_no_vms` of `{name}` has no effect, as in run-perf"));
    } else if name != MULTI && params.contains_key("force-no-vms") && !params.contains_key("force-guest-cpus") {
        profile.notes.push(format!(
            "the guests of `{name}` share the CPUs for guests; in run-perf each has all of them: \
             `force_guest_cpus` sets their number"
        ));
    }
    // The user's run-perf definition of the tuned guest, if one exists for these hosts.
    let suffix = "-tuned";
    if name == "TunedLibvirt" && !params.contains_key("xml") && has_guest_xml(suffix, addresses, folders) {
        params.insert("xml".to_owned(), Value::String(guest_xml_path(suffix)));
    }
    profile.argument = match (name.as_str(), params.is_empty()) {
        (DEFAULT, true) => None,
        (DEFAULT, false) => Some(format!("Localhost:{}", Value::Object(params))),
        (name, true) => Some(name.to_owned()),
        (name, false) => Some(format!("{name}:{}", Value::Object(params))),
    };
    Ok(profile)
}

/// Parses the tests of a profile: names, names with parameters, and `$@` for those of the command line.
fn parse_tests(profile: &str, value: &Value) -> Result<Vec<TranslatedTest>, Diagnostic> {
    let one = |entry: &Value| match entry {
        Value::String(all) if all == "$@" => Ok(TranslatedTest { spec: all.clone(), ..TranslatedTest::default() }),
        Value::String(name) => test::translate_test(name, Map::new()),
        Value::Array(pair) => match &pair[..] {
            [Value::String(name)] => test::translate_test(name, Map::new()),
            [Value::String(name), Value::Object(params)] => test::translate_test(name, params.clone()),
            _ => Err(tests_error(profile, entry)),
        },
        _ => Err(tests_error(profile, entry)),
    };
    match value {
        Value::Array(list) => list.iter().map(one).collect(),
        name @ Value::String(_) => Ok(vec![one(name)?]),
        other => Err(tests_error(profile, other)),
    }
}

fn tests_error(profile: &str, entry: &Value) -> Diagnostic {
    let expected = "expected a name or [NAME, PARAMETERS]";
    let example = json!(["fio", "$@", ["uperf", {"runtime": 10}]]);
    Diagnostic::new(format!("invalid `RUNPERF_TESTS` of `{profile}`: {expected}, not {entry}"))
        .with_help(format!("a test is NAME or [NAME, PARAMETERS]: {example}"))
}

fn guest_xml_path(suffix: &str) -> String {
    format!("libvirt/%(address)s{suffix}.xml")
}

fn has_guest_xml(suffix: &str, addresses: &[String], folders: &[PathBuf]) -> bool {
    let file = |folder: &Path, address: &String| folder.join(guest_xml_path(suffix).replace("%(address)s", address));
    addresses.iter().any(|address| folders.iter().any(|folder| file(folder, address).is_file()))
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn parse_quoted_number(value: Value) -> Value {
    let number = value.as_str().and_then(|text| text.trim().parse::<u64>().ok());
    number.map_or(value, Value::from)
}

/// Converts 0 and 1, which run-perf accepts for a truth value, to one.
fn parse_flag(value: Value) -> Value {
    match value.as_u64() {
        Some(flag @ (0 | 1)) => Value::from(flag == 1),
        _ => value,
    }
}

#[cfg(test)]
mod checks {
    use super::*;

    fn word(text: &str) -> String {
        translate(text, &[], &[]).unwrap().argument.unwrap_or_default()
    }

    #[test]
    fn run_perf_keys_become_parameters() {
        let all = [
            "Localhost",
            "default",
            r#"default:{"RUNPERF_TESTS":["fio"]}"#,
            r#"DefaultLibvirt:{"force_guest_cpus":"2","force_no_vms":1,"qemu_bin":"/opt/qemu","__NAME__":"My VM"}"#,
            r#"TunedLibvirt:{"xml_suffix":"-big","irqbalance":false,"grub_args":["nosmt"]}"#,
            r#"Localhost:{"irqbalance":1,"tuned_adm_profile":"virtual-host"}"#,
            r#"Localhost:{"RUNPERF_TESTS":["$@","linpack",["fio",{"type":"read","runtime":"1"}]]}"#,
        ];
        insta::assert_snapshot!(all.map(word).join("\n"), @r#"
        Localhost

        Localhost:{"tests":["fio:ramptime=10,runtime=180,samples=3,test-types=[read,write,rw]"]}
        DefaultLibvirt:{"force-guest-cpus":2,"force-no-vms":1,"qemu-bin":"/opt/qemu","name":"My_VM"}
        TunedLibvirt:{"xml":"libvirt/%(address)s-big.xml","irqbalance":false,"grub-args":["nosmt"]}
        Localhost:{"irqbalance":true,"tuned-adm-profile":"virtual-host"}
        Localhost:{"tests":["$@","linpack:run-samples=3","fio:ramptime=10,runtime=1,samples=3,test-types=read"]}
        "#);
    }

    #[test]
    fn number_of_guests_is_translated_with_its_difference() {
        let translated = |text: &str| translate(text, &[], &[]).unwrap();
        let notes = |text: &str| translated(text).notes.len();
        assert_eq!(notes(r#"DefaultLibvirt:{"force_no_vms":2}"#), 1);
        assert_eq!(notes(r#"DefaultLibvirt:{"force_no_vms":2,"force_guest_cpus":4}"#), 0);
        assert_eq!(notes(r#"DefaultLibvirtMulti:{"force_no_vms":2}"#), 0);
        let ignored = translated(r#"Overcommit1_5:{"force_no_vms":2}"#);
        assert_eq!((ignored.argument.as_deref(), ignored.notes.len()), (Some("Overcommit1_5"), 1));
    }

    #[test]
    fn guest_xml_of_a_host_is_used() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("libvirt")).unwrap();
        std::fs::write(dir.path().join("libvirt/10.0.0.1-tuned.xml"), "<domain/>").unwrap();
        let word_for = |address: &str| {
            translate("TunedLibvirt", &[address.to_owned()], &[dir.path().to_owned()]).unwrap().argument.unwrap()
        };
        assert_eq!(word_for("10.0.0.1"), r#"TunedLibvirt:{"xml":"libvirt/%(address)s-tuned.xml"}"#);
        assert_eq!(word_for("10.0.0.2"), "TunedLibvirt");
    }

    #[test]
    fn unsupported_and_invalid_profiles_are_refused() {
        let message = |text: &str| translate(text, &[], &[]).unwrap_err().to_string();
        assert!(message(r#"Localhost:{"rc_local_file":"x"}"#).contains("is not supported"));
        assert_eq!(
            message(r#"Localhost:{"RUNPERF_TESTS":[1]}"#),
            "invalid `RUNPERF_TESTS` of `Localhost`: expected a name or [NAME, PARAMETERS], not 1"
        );
        assert!(message("Localhost:{").contains("cannot be read"));
        assert_eq!(translate(r#"X:{"__KEEP_ASSETS__":"yes"}"#, &[], &[]).unwrap().notes.len(), 1);
    }
}
