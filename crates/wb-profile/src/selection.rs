//! Parses `--profiles` arguments: `NAME` or `NAME:{JSON}`, such as `TunedLibvirt:{"force_guest_cpus": 2}`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use wb_diagnostics::{Suggestion, help_with_suggestion, suggest};
use wb_knobs::KnobSet;
use wb_model::{Bytes, Nanos, ProfileName};

use crate::catalog::{ProfileCatalog, ProfileCatalogError};
use crate::image::{ImageFormat, ImageSpec};
use crate::profile::{GuestCount, GuestsConfig, NamedProfile, ProfileFault, ProfileKnobValue, VirtType};

#[derive(Debug, thiserror::Error)]
pub enum ProfileSelectionError {
    #[error("invalid value `{0}` of --profiles: expected the name of a profile")]
    Empty(String),
    #[error(transparent)]
    Profile(#[from] ProfileCatalogError),
    #[error("`{text}`: {what}")]
    Params { text: String, what: String, suggestion: Option<Suggestion> },
    #[error("duplicate profile `{0}`: its cells would have the same names")]
    Duplicate(String),
    #[error("unknown knob set `{set}`")]
    Set { set: String, suggestion: Option<Suggestion> },
}

impl ProfileSelectionError {
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Empty { .. } => Some(
                "`weighbridge profile list` lists all profiles; without --profiles the host is measured unchanged"
                    .to_owned(),
            ),
            Self::Profile(bad) => bad.help(),
            Self::Params { suggestion, .. } => {
                let expected = format!("expected NAME or NAME:{{JSON}} with the parameters {}", PARAM_NAMES.join(", "));
                Some(help_with_suggestion(suggestion.as_ref(), &expected))
            }
            Self::Duplicate(name) => {
                Some(format!("rename one with `{name}:{{\"name\": \"{name}2\"}}`, or write your own profile NAME.toml"))
            }
            Self::Set { suggestion, .. } => {
                Some(help_with_suggestion(suggestion.as_ref(), "`weighbridge tune status` lists the sets"))
            }
        }
    }
}

/// Parameters of a profile in a `--profiles` argument. Names are those of run-perf, with `-` or `_`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct ProfileParams {
    name: Option<ProfileName>,
    force_guest_cpus: Option<u32>,
    force_guest_mem: Option<u64>,
    force_no_vms: Option<u32>,
    qemu_bin: Option<String>,
    image_format: Option<ImageFormat>,
    virt_install_extra: Option<String>,
    xml: Option<String>,
    tuned_adm_profile: Option<String>,
    irqbalance: Option<bool>,
    #[serde(alias = "kernel-arguments")]
    grub_args: Option<StringOrList>,
    image: Option<ImageSpec>,
    disk: Option<Bytes>,
    network: Option<String>,
    virt_type: Option<VirtType>,
    limit: Option<Nanos>,
    sets: Option<Vec<String>>,
    knobs: BTreeMap<String, ProfileKnobValue>,
    tests: Option<Vec<String>>,
}

const PARAM_NAMES: [&str; 19] = [
    "name",
    "force-guest-cpus",
    "force-guest-mem (MiB)",
    "force-no-vms",
    "qemu-bin",
    "image-format",
    "virt-install-extra",
    "xml",
    "tuned-adm-profile",
    "irqbalance",
    "grub-args",
    "image",
    "disk",
    "network",
    "virt-type",
    "limit",
    "sets",
    "knobs",
    "tests",
];

/// Parses `--profiles` arguments into profiles; an argument can contain several, separated by commas.
pub fn parse_profiles(
    words: &[String],
    catalog: &ProfileCatalog,
    sets: &[KnobSet],
) -> Result<Vec<NamedProfile>, ProfileSelectionError> {
    let mut all: Vec<NamedProfile> = Vec::new();
    if let Some(text) = words.iter().find(|word| split_list(word).is_empty()) {
        return Err(ProfileSelectionError::Empty(text.clone()));
    }
    for text in words.iter().flat_map(|word| split_list(word)) {
        let named = parse_profile(text, catalog)?;
        if all.iter().any(|existing| existing.name == named.name) {
            return Err(ProfileSelectionError::Duplicate(named.name.to_string()));
        }
        if let Some(set) = named.profile.sets.iter().find(|name| sets.iter().all(|set| set.name != **name)) {
            let suggestion = suggest(set, sets.iter().map(|set| set.name.as_str()));
            return Err(ProfileSelectionError::Set { set: set.clone(), suggestion });
        }
        all.push(named);
    }
    Ok(all)
}

/// Splits at commas outside of braces, brackets and quotes.
fn split_list(word: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut escaped) = (0_i32, false, false);
    word.split(|c: char| {
        let was_escaped = std::mem::take(&mut escaped);
        match c {
            '\\' if quoted => escaped = !was_escaped,
            '"' if !was_escaped && depth > 0 => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => depth -= 1,
            ',' => return depth == 0,
            _ => {}
        }
        false
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
    .collect()
}

fn parse_profile(text: &str, catalog: &ProfileCatalog) -> Result<NamedProfile, ProfileSelectionError> {
    let (name, json) = text.split_once(':').map_or((text, None), |(name, json)| (name, Some(json)));
    let mut named = catalog.get(name)?.clone();
    let Some(json) = json else { return Ok(named) };
    let invalid = |ProfileFault { message: what, suggestion }| ProfileSelectionError::Params {
        text: text.to_owned(),
        what,
        suggestion,
    };
    let object: Map<String, Value> =
        serde_json::from_str(json).map_err(|error| invalid(ProfileFault::from_serde(&error.to_string())))?;
    parse_params(object).map_err(invalid)?.apply_to(&mut named).map_err(|message| invalid(message.into()))?;
    if let Some(fault) = named.profile.validate() {
        return Err(invalid(fault));
    }
    Ok(named)
}

/// Parses the parameters of a profile, each by itself so that messages name it as it was written.
fn parse_params(object: Map<String, Value>) -> Result<ProfileParams, ProfileFault> {
    let mut params = Map::new();
    for (written, value) in object {
        let name = written.replace('_', "-");
        let single = Map::from_iter([(name.clone(), value.clone())]);
        if let Err(error) = serde_json::from_value::<ProfileParams>(Value::Object(single)) {
            return Err(param_fault(&written, &error.to_string()));
        }
        if params.insert(name, value).is_some() {
            return Err(ProfileFault::from(format!("duplicate parameter `{written}`")));
        }
    }
    serde_json::from_value(Value::Object(params)).map_err(|error| ProfileFault::from_serde(&error.to_string()))
}

/// The error about a parameter, with the name as written instead of serde's spelling.
fn param_fault(written: &str, message: &str) -> ProfileFault {
    let fault = ProfileFault::from_serde(message);
    let message = if message.starts_with(&format!("unknown field `{}`", written.replace('_', "-"))) {
        format!("unknown parameter `{written}`")
    } else {
        format!("`{written}`: {}", fault.message)
    };
    ProfileFault { message, ..fault }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum StringOrList {
    One(String),
    Each(Vec<String>),
}

impl StringOrList {
    fn list(self) -> Vec<String> {
        match self {
            Self::One(text) => text.split_whitespace().map(str::to_owned).collect(),
            Self::Each(words) => words,
        }
    }
}

fn is_multiple(count: GuestCount) -> bool {
    matches!(count, GuestCount::Times(_))
}

impl ProfileParams {
    fn apply_to(self, NamedProfile { name, profile }: &mut NamedProfile) -> Result<(), String> {
        *name = self.name.unwrap_or_else(|| name.clone());
        profile.sets = self.sets.unwrap_or(std::mem::take(&mut profile.sets));
        profile.tests = self.tests.or(profile.tests.take());
        profile.knobs.extend(self.knobs);
        let tuned = self.tuned_adm_profile.map(|name| ("tuned-profile".to_owned(), ProfileKnobValue::Text(name)));
        let balanced = self.irqbalance.map(|on| ("irqbalance".to_owned(), ProfileKnobValue::Flag(on)));
        profile.knobs.extend(tuned.into_iter().chain(balanced));
        profile.kernel_arguments =
            self.grub_args.map_or_else(|| std::mem::take(&mut profile.kernel_arguments), StringOrList::list);
        let default_guests = GuestsConfig::default();
        let mut guests = profile.guests.clone().unwrap_or(default_guests);
        let before = guests.clone();
        if self.force_no_vms.is_some() && guests.cpus.or(self.force_guest_cpus).is_none() && is_multiple(guests.count) {
            return Err("`force-no-vms` requires `force-guest-cpus` here: the profile's number of guests follows from their CPUs".to_owned());
        }
        // A number of guests in place of `fill` also replaces the size that filled the host, as in run-perf.
        let divides_cpus = self.force_no_vms.is_some() && guests.count == GuestCount::Fill;
        guests.cpus = self.force_guest_cpus.or(guests.cpus.filter(|_| !divides_cpus));
        guests.memory = self.force_guest_mem.map(|mib| Bytes(mib << 20)).or(guests.memory);
        guests.count = self.force_no_vms.map_or(guests.count, GuestCount::Exactly);
        guests.qemu_bin = self.qemu_bin.or(guests.qemu_bin);
        guests.image_format = self.image_format.unwrap_or(guests.image_format);
        guests.virt_install_extra = self.virt_install_extra.unwrap_or(guests.virt_install_extra);
        guests.xml = self.xml.or(guests.xml);
        guests.image = self.image.or(guests.image);
        guests.disk = self.disk.unwrap_or(guests.disk);
        guests.network = self.network.unwrap_or(guests.network);
        guests.virt_type = self.virt_type.unwrap_or(guests.virt_type);
        guests.limit = self.limit.unwrap_or(guests.limit);
        if guests.cpus == Some(0) || guests.count == GuestCount::Exactly(0) || guests.memory == Some(Bytes(0)) {
            return Err("invalid guests: expected at least one guest with at least one CPU and some memory".to_owned());
        }
        match &mut profile.guests {
            Some(existing) => *existing = guests,
            None if guests == before => {}
            None => return Err("this profile has no guests".to_owned()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Vec<NamedProfile>, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        parse_profiles(&words, &ProfileCatalog::load(&[]).unwrap(), &KnobSet::builtin())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn one_argument_can_contain_several_profiles_and_commas_in_braces() {
        let all = parse(&[
            r#"Localhost,DefaultLibvirt:{"force_guest_cpus":2,"force-guest-mem":512,"virt-install-extra":"--x a,b}"}"#,
            "TunedHost",
        ])
        .unwrap();
        let names: Vec<&str> = all.iter().map(|named| named.name.as_str()).collect();
        assert_eq!(names, ["Localhost", "DefaultLibvirt", "TunedHost"]);
        let guests = all[1].profile.guests.as_ref().unwrap();
        assert_eq!((guests.cpus, guests.memory), (Some(2), Some(Bytes(512 << 20))));
        assert_eq!(guests.virt_install_extra, "--x a,b}");
    }

    #[test]
    fn number_of_guests_in_place_of_fill_divides_the_cpus() {
        let cpus = |word: &str| parse(&[word]).unwrap()[0].profile.guests.as_ref().unwrap().cpus;
        assert_eq!(cpus("DefaultLibvirtMulti"), Some(2));
        assert_eq!(cpus(r#"DefaultLibvirtMulti:{"force_no_vms":2}"#), None);
        assert_eq!(cpus(r#"DefaultLibvirtMulti:{"force_no_vms":2,"force_guest_cpus":3}"#), Some(3));
        assert_eq!(cpus(r#"Overcommit1_5:{"force_no_vms":2,"force_guest_cpus":3}"#), Some(3));
        assert!(parse(&[r#"Overcommit1_5:{"force_no_vms":2}"#]).unwrap_err().contains("requires `force-guest-cpus`"));
    }

    #[test]
    fn profile_can_be_renamed() {
        let all = parse(&["Localhost", r#"Localhost:{"name":"Quiet","knobs":{"thp":"never"}}"#]).unwrap();
        assert_eq!((all[1].name.as_str(), all[1].profile.knobs.len()), ("Quiet", 1));
        assert!(parse(&[r#"Localhost:{"name":"a/b"}"#]).unwrap_err().contains("invalid name `a/b`"));
    }

    #[test]
    fn run_perf_parameters_become_knobs() {
        let all = parse(&[
            r#"TunedHost:{"tuned_adm_profile":"latency-performance","irqbalance":false,"knobs":{"thp":"never"}}"#,
        ]);
        let knobs: Vec<String> =
            all.unwrap()[0].profile.knobs.iter().map(|(knob, value)| format!("{knob}={value}")).collect();
        assert_eq!(knobs, ["irqbalance=off", "thp=never", "tuned-profile=latency-performance"]);
    }

    #[test]
    fn kernel_arguments_are_words_or_a_list_of_them() {
        for params in [r#"{"grub_args":"nosmt hugepages=4"}"#, r#"{"kernel-arguments":["nosmt","hugepages=4"]}"#] {
            let all = parse(&[&format!("Localhost:{params}")]).unwrap();
            assert_eq!(all[0].profile.kernel_arguments, ["nosmt", "hugepages=4"]);
        }
    }

    #[test]
    fn invalid_arguments_are_refused() {
        let message = |word: &str| parse(&[word]).unwrap_err();
        assert!(message("Localhost:{\"force_guest_cpus\":2}").ends_with("this profile has no guests"));
        assert!(message("DefaultLibvirt:{\"force_guest_cpu\":2}").ends_with("unknown parameter `force_guest_cpu`"));
        assert!(message("DefaultLibvirt:{\"force_no_vms\":0}").contains("at least one"));
        assert!(message("TunedHost:{\"grub_args\":[\"a b\"]}").contains("invalid kernel parameter"));
        assert!(message("Localhost,Localhost").contains("duplicate profile"));
        assert_eq!(message("Nope"), "unknown profile `Nope`");
    }

    #[test]
    fn parameter_errors_name_it_as_written_and_its_type() {
        let all = [
            r#"DefaultLibvirt:{"force_guest_cpus":"2"}"#,
            r#"DefaultLibvirt:{"force_guest_cpus":-1}"#,
            r#"DefaultLibvirt:{"__NAME__":1}"#,
            r#"DefaultLibvirt:{"force_guest_cpus":1,"force-guest-cpus":2}"#,
            r#"DefaultLibvirt:["force_guest_cpus"]"#,
            r#"DefaultLibvirt:{"irqbalance":"no"}"#,
            "",
            ",",
        ];
        insta::assert_snapshot!(all.map(|word| parse(&[word]).unwrap_err()).join("\n"), @r#"
        `DefaultLibvirt:{"force_guest_cpus":"2"}`: `force_guest_cpus`: invalid value "2": expected a whole number from 0 to 4294967295
        `DefaultLibvirt:{"force_guest_cpus":-1}`: `force_guest_cpus`: invalid value `-1`: expected a whole number from 0 to 4294967295
        `DefaultLibvirt:{"__NAME__":1}`: unknown parameter `__NAME__`
        `DefaultLibvirt:{"force_guest_cpus":1,"force-guest-cpus":2}`: duplicate parameter `force-guest-cpus`
        `DefaultLibvirt:["force_guest_cpus"]`: invalid value of a list: expected names and values at line 1 column 0
        `DefaultLibvirt:{"irqbalance":"no"}`: `irqbalance`: invalid value "no": expected true or false
        invalid value `` of --profiles: expected the name of a profile
        invalid value `,` of --profiles: expected the name of a profile
        "#);
    }

    #[test]
    fn similar_names_are_suggested() {
        for (word, near) in [
            ("DefaultLibvirt:{\"force_guest_cpu\":2}", "force-guest-cpus"),
            ("TunedHost:{\"knobs\":{\"swapiness\":1}}", "swappiness"),
            ("TunedHost:{\"sets\":[\"latncy\"]}", "latency"),
        ] {
            let error = parse_profiles(&[word.to_owned()], &ProfileCatalog::load(&[]).unwrap(), &KnobSet::builtin())
                .unwrap_err();
            assert!(error.help().unwrap().starts_with(&format!("did you mean `{near}`? ")), "{:?}", error.help());
        }
    }
}
