//! Profiles as they are asked for: `TunedLibvirt:{"force_guest_cpus": 2}`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use wb_knobs::KnobSet;
use wb_model::{Bytes, Nanos, ProfileName};
use wb_plan::suggestion::suggest;

use crate::catalog::{ProfileCatalog, ProfileCatalogError};
use crate::image::{ImageFormat, ImageSpec};
use crate::profile::{GuestCount, GuestsConfig, NamedProfile, ProfileFault, ProfileKnobValue, VirtType, did_you_mean};

/// Why what was asked for is no profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileSelectionError {
    /// No profile is named.
    #[error("invalid value `{text}` of --profiles: expected the name of a profile")]
    Empty {
        /// As it was written.
        text: String,
    },
    /// There is none such.
    #[error(transparent)]
    Profile(#[from] ProfileCatalogError),
    /// What is said after the colon.
    #[error("`{text}`: {what}")]
    Params {
        /// As it was written.
        text: String,
        /// What is wrong.
        what: String,
        /// A name that may have been meant.
        near: Option<String>,
    },
    /// One is asked for twice under one name.
    #[error("the profile `{name}` is asked for twice, and its cells would have the same names")]
    Duplicate {
        /// Which.
        name: String,
    },
    /// A set of knobs that there is not.
    #[error("there is no set of knobs `{set}`")]
    Set {
        /// Its name.
        set: String,
        /// One that may have been meant.
        near: Option<String>,
    },
}

impl ProfileSelectionError {
    /// The way out.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Empty { .. } => Some(
                "`weighbridge profile list` shows all; without --profiles the host is measured as it is".to_owned(),
            ),
            Self::Profile(bad) => bad.help(),
            Self::Params { near, .. } => {
                let near = did_you_mean(near.as_deref());
                Some(format!("{near}a profile is written NAME or NAME:{{JSON}}, with {}", PARAM_NAMES.join(", ")))
            }
            Self::Duplicate { name } => Some(format!(
                "name the other: `{name}:{{\"name\": \"{name}2\"}}`, or write a profile of your own: NAME.toml"
            )),
            Self::Set { near, .. } => {
                Some(format!("{}`weighbridge tune status` lists the sets", did_you_mean(near.as_deref())))
            }
        }
    }
}

/// What can be said of a profile where it is asked for. Names as in run-perf, with `-` or `_`.
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

/// The profiles that words of a command line mean; several can be in one, with commas between.
///
/// # Errors
/// When a word names none, one is unknown, or one is there twice.
pub fn parse_profiles(
    words: &[String],
    shelf: &ProfileCatalog,
    sets: &[KnobSet],
) -> Result<Vec<NamedProfile>, ProfileSelectionError> {
    let mut all: Vec<NamedProfile> = Vec::new();
    if let Some(text) = words.iter().find(|word| split_list(word).is_empty()) {
        return Err(ProfileSelectionError::Empty { text: text.clone() });
    }
    for text in words.iter().flat_map(|word| split_list(word)) {
        let named = parse_profile(text, shelf)?;
        if all.iter().any(|known| known.name == named.name) {
            return Err(ProfileSelectionError::Duplicate { name: named.name.to_string() });
        }
        if let Some(set) = named.profile.sets.iter().find(|name| sets.iter().all(|set| set.name != **name)) {
            let near = suggest(set, sets.iter().map(|set| set.name.as_str())).map(str::to_owned);
            return Err(ProfileSelectionError::Set { set: set.clone(), near });
        }
        all.push(named);
    }
    Ok(all)
}

/// What stands between commas that are in no braces, brackets or quotes.
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

fn parse_profile(text: &str, shelf: &ProfileCatalog) -> Result<NamedProfile, ProfileSelectionError> {
    let (name, json) = text.split_once(':').map_or((text, None), |(name, json)| (name, Some(json)));
    let mut named = shelf.get(name)?.clone();
    let Some(json) = json else { return Ok(named) };
    let bad = |ProfileFault { what, near }| ProfileSelectionError::Params { text: text.to_owned(), what, near };
    let given: Map<String, Value> =
        serde_json::from_str(json).map_err(|error| bad(ProfileFault::of_serde(&error.to_string())))?;
    parse_params(given).map_err(bad)?.apply_to(&mut named).map_err(|what| bad(what.into()))?;
    if let Some(fault) = named.profile.validate() {
        return Err(bad(fault));
    }
    Ok(named)
}

/// Reads the parameters of a profile. Each of them is read by itself, so that a message names it as it was written.
fn parse_params(given: Map<String, Value>) -> Result<ProfileParams, ProfileFault> {
    let mut all = Map::new();
    for (written, value) in given {
        let name = written.replace('_', "-");
        let alone = Map::from_iter([(name.clone(), value.clone())]);
        if let Err(error) = serde_json::from_value::<ProfileParams>(Value::Object(alone)) {
            return Err(param_fault(&written, &error.to_string()));
        }
        if all.insert(name, value).is_some() {
            return Err(ProfileFault::from(format!("`{written}` is given twice")));
        }
    }
    serde_json::from_value(Value::Object(all)).map_err(|error| ProfileFault::of_serde(&error.to_string()))
}

/// What serde does not like about a parameter, which it may know by another spelling than the one that was written.
fn param_fault(written: &str, message: &str) -> ProfileFault {
    let ProfileFault { what, near } = ProfileFault::of_serde(message);
    match message.starts_with(&format!("unknown field `{}`", written.replace('_', "-"))) {
        true => ProfileFault { what: format!("unknown parameter `{written}`"), near },
        false => ProfileFault { what: format!("`{written}`: {what}"), near },
    }
}

/// Words, in one text or each by itself.
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
        let of_guests = GuestsConfig::default();
        let mut guests = profile.guests.clone().unwrap_or(of_guests);
        let before = guests.clone();
        guests.cpus = self.force_guest_cpus.or(guests.cpus);
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
            return Err("a guest has at least one CPU and some memory, and there is at least one".to_owned());
        }
        match &mut profile.guests {
            Some(known) => *known = guests,
            None if guests == before => {}
            None => return Err("this profile has no guests".to_owned()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked_of(words: &[&str]) -> Result<Vec<NamedProfile>, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        parse_profiles(&words, &ProfileCatalog::load(&[]).unwrap(), &KnobSet::builtin()).map_err(|bad| bad.to_string())
    }

    #[test]
    fn several_stand_in_one_word_and_braces_keep_their_commas() {
        let all = asked_of(&[
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
    fn a_profile_can_have_another_name() {
        let all = asked_of(&["Localhost", r#"Localhost:{"name":"Quiet","knobs":{"thp":"never"}}"#]).unwrap();
        assert_eq!((all[1].name.as_str(), all[1].profile.knobs.len()), ("Quiet", 1));
        assert!(asked_of(&[r#"Localhost:{"name":"a/b"}"#]).unwrap_err().contains("`a/b` is not a name"));
    }

    #[test]
    fn names_of_run_perf_become_knobs() {
        let all = asked_of(&[
            r#"TunedHost:{"tuned_adm_profile":"latency-performance","irqbalance":false,"knobs":{"thp":"never"}}"#,
        ]);
        let knobs: Vec<String> =
            all.unwrap()[0].profile.knobs.iter().map(|(knob, value)| format!("{knob}={value}")).collect();
        assert_eq!(knobs, ["irqbalance=off", "thp=never", "tuned-profile=latency-performance"]);
    }

    #[test]
    fn kernel_arguments_are_words_or_a_list_of_them() {
        for given in [r#"{"grub_args":"nosmt hugepages=4"}"#, r#"{"kernel-arguments":["nosmt","hugepages=4"]}"#] {
            let all = asked_of(&[&format!("Localhost:{given}")]).unwrap();
            assert_eq!(all[0].profile.kernel_arguments, ["nosmt", "hugepages=4"]);
        }
    }

    #[test]
    fn what_means_nothing_is_refused() {
        let said = |word: &str| asked_of(&[word]).unwrap_err();
        assert!(said("Localhost:{\"force_guest_cpus\":2}").ends_with("this profile has no guests"));
        assert!(said("DefaultLibvirt:{\"force_guest_cpu\":2}").ends_with("unknown parameter `force_guest_cpu`"));
        assert!(said("DefaultLibvirt:{\"force_no_vms\":0}").contains("at least one"));
        assert!(said("TunedHost:{\"grub_args\":[\"a b\"]}").contains("no kernel argument"));
        assert!(said("Localhost,Localhost").contains("twice"));
        assert_eq!(said("Nope"), "there is no profile `Nope`");
    }

    #[test]
    fn a_parameter_is_named_as_it_was_written_with_what_it_takes() {
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
        insta::assert_snapshot!(all.map(|word| asked_of(&[word]).unwrap_err()).join("\n"), @r#"
        `DefaultLibvirt:{"force_guest_cpus":"2"}`: `force_guest_cpus`: invalid value "2": expected a whole number from 0 to 4294967295
        `DefaultLibvirt:{"force_guest_cpus":-1}`: `force_guest_cpus`: invalid value `-1`: expected a whole number from 0 to 4294967295
        `DefaultLibvirt:{"__NAME__":1}`: unknown parameter `__NAME__`
        `DefaultLibvirt:{"force_guest_cpus":1,"force-guest-cpus":2}`: `force-guest-cpus` is given twice
        `DefaultLibvirt:["force_guest_cpus"]`: invalid value of a list: expected names and values at line 1 column 0
        `DefaultLibvirt:{"irqbalance":"no"}`: `irqbalance`: invalid value "no": expected true or false
        invalid value `` of --profiles: expected the name of a profile
        invalid value `,` of --profiles: expected the name of a profile
        "#);
    }

    #[test]
    fn what_may_have_been_meant_is_said() {
        for (word, near) in [
            ("DefaultLibvirt:{\"force_guest_cpu\":2}", "force-guest-cpus"),
            ("TunedHost:{\"knobs\":{\"swapiness\":1}}", "swappiness"),
            ("TunedHost:{\"sets\":[\"latncy\"]}", "latency"),
        ] {
            let bad = parse_profiles(&[word.to_owned()], &ProfileCatalog::load(&[]).unwrap(), &KnobSet::builtin())
                .unwrap_err();
            assert!(bad.help().unwrap().starts_with(&format!("did you mean `{near}`? ")), "{:?}", bad.help());
        }
    }
}
