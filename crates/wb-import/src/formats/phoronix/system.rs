//! The Phoronix Test Suite's description of a system, as facts and environment of a machine.

use serde::Deserialize;
use serde_json::{Map, Value};
use wb_model::{Bytes, Facts};
use wb_sys::Environment;
use wb_sys::environment::block::BlockDevice;
use wb_sys::environment::cpu::FrequencyPolicy;
use wb_sys::environment::mounts::Mount;
use wb_sys::environment::network::Interface;
use wb_sys::environment::tools::ToolVersion;

use crate::foreign::ForeignMachine;

/// Section of the environment with everything that this program does not record itself.
const OTHERS: &str = "phoronix";

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct System {
    pub(super) identifier: String,
    /// `Processor: X (4 Cores), Memory: 8GB`.
    pub(super) hardware: String,
    /// `OS: Debian 12, Kernel: 6.1.0-9 (x86_64)`.
    pub(super) software: String,
    pub(super) time_stamp: String,
    /// Such as `{"kernel-extra-details": "Transparent Huge Pages: madvise"}`.
    #[serde(rename = "JSON")]
    attributes: String,
}

impl System {
    pub(super) fn kernel(&self) -> &str {
        part(&self.software, "Kernel").map_or("", |kernel| split_architecture(kernel).0)
    }

    /// The machine, with the properties that this program records under their own names.
    pub(super) fn machine(&self) -> ForeignMachine {
        let mut description = Description::default();
        for (name, value) in parts(&self.hardware).chain(parts(&self.software)) {
            description.add_part(name, value);
        }
        let attributes: Option<Map<String, Value>> = serde_json::from_str(&self.attributes).ok();
        for (name, value) in attributes.into_iter().flatten() {
            match value {
                Value::String(text) if !text.trim().is_empty() => description.add_attribute(&name, text.trim()),
                Value::String(_) | Value::Null => {}
                other => description.add_other(&name, &other.to_string()),
            }
        }
        description.finish()
    }
}

/// Parts of a description of hardware or software, in which values may have commas, too.
fn parts(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text.trim();
    std::iter::from_fn(move || {
        let (name, value) = rest.split_once(": ")?;
        // The next part begins after the last comma before its name.
        let end = value.find(": ").and_then(|next| value[..next].rfind(", ")).unwrap_or(value.len());
        rest = value.get(end + 2..).unwrap_or_default();
        Some((name.trim(), value[..end].trim()))
    })
}

fn part<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    parts(text).find(|(other, _)| *other == name).map(|(_, value)| value)
}

/// Splits `6.1.0-9-amd64 (x86_64)`.
fn split_architecture(kernel: &str) -> (&str, &str) {
    kernel.split_once(" (").map_or((kernel, ""), |(release, arch)| (release, arch.trim_end_matches(')')))
}

#[derive(Default)]
struct Description {
    facts: Facts,
    environment: Environment,
    others: Map<String, Value>,
}

impl Description {
    fn add_part(&mut self, name: &str, value: &str) {
        let text = || Some(value.to_owned());
        match name {
            // Of the environment it would say that frequencies were read.
            "Processor" => self.facts.cpu_model = value.to_owned(),
            "Motherboard" => self.environment.board.model = text(),
            "Chipset" => self.environment.board.chipset = text(),
            "Memory" => match memory(value) {
                Some(total) => (self.facts.memory, self.environment.memory.total) = (total, total),
                None => self.add_other(name, value),
            },
            "Disk" => {
                let devices = numbered("disk", value);
                self.environment.block = devices
                    .map(|(name, model)| (name, BlockDevice { model: Some(model), ..BlockDevice::default() }))
                    .collect();
            }
            "Network" => {
                let interfaces = numbered("adapter", value);
                self.environment.network = interfaces
                    .map(|(name, model)| (name, Interface { model: Some(model), ..Interface::default() }))
                    .collect();
            }
            "OS" => self.environment.kernel.distribution = text(),
            "Kernel" => {
                let (release, arch) = split_architecture(value);
                (self.facts.kernel, self.facts.arch) = (release.to_owned(), arch.to_owned());
                self.environment.kernel.release = Some(release.to_owned());
            }
            "Compiler" => {
                let compiler = |version: &str| {
                    let name = version.split_whitespace().next()?.to_lowercase();
                    Some((name, ToolVersion { version: Some(version.to_owned()), ..ToolVersion::default() }))
                };
                self.environment.tools = value.split(" + ").filter_map(compiler).collect();
            }
            "File-System" => self.root().kind = value.to_owned(),
            "System Layer" => {
                self.facts.hypervisor = text();
                self.environment.kernel.hypervisor = text();
            }
            _ => self.add_other(name, value),
        }
    }

    fn add_attribute(&mut self, name: &str, value: &str) {
        let cpu = &mut self.environment.cpu;
        match name {
            "kernel-extra-details" => match value.split_once("Transparent Huge Pages: ") {
                Some((before, after)) => {
                    let (option, rest) = after.split_at(after.find([' ', ',', ';']).unwrap_or(after.len()));
                    self.environment.memory.transparent_huge_pages.insert("enabled".to_owned(), option.to_owned());
                    let rest = format!("{before}{rest}");
                    let rest = rest.trim_matches(|c: char| c.is_whitespace() || "-,;".contains(c));
                    if !rest.is_empty() {
                        self.add_other(name, rest);
                    }
                }
                None => self.add_other(name, value),
            },
            "security" => {
                let state = |entry: &str| {
                    let (name, state) = entry.split_once(": ")?;
                    // The Test Suite replaces the kernel's colon.
                    let state = state.replacen("Mitigation of ", "Mitigation: ", 1);
                    Some((name.trim().to_owned(), state.trim().to_owned()))
                };
                self.environment.mitigations = value.split(" + ").filter_map(state).collect();
            }
            "cpu-microcode" => cpu.microcode = Some(value.to_owned()),
            "cpu-scaling-governor" => drop(cpu.frequency.insert("all".to_owned(), policy(value))),
            "disk-mount-options" => self.root().options = value.to_owned(),
            _ => self.add_other(name, value),
        }
    }

    fn add_other(&mut self, name: &str, value: &str) {
        self.others.insert(name.to_owned(), value.into());
    }

    /// The file system that tests ran on.
    fn root(&mut self) -> &mut Mount {
        self.environment.mounts.entry("/".to_owned()).or_default()
    }

    fn finish(self) -> ForeignMachine {
        let recorded = serde_json::to_value(&self.environment).unwrap_or_else(|error| unreachable!("{error}"));
        let Value::Object(mut environment) = recorded else { unreachable!("an environment has sections") };
        if !self.others.is_empty() {
            environment.insert(OTHERS.to_owned(), Value::Object(self.others));
        }
        let is_known = self.environment != Environment::default() || environment.contains_key(OTHERS);
        ForeignMachine { facts: self.facts, environment: is_known.then_some(environment) }
    }
}

/// Devices joined by ` + `, numbered: `disk`, `disk-2`.
fn numbered<'a>(name: &'a str, value: &'a str) -> impl Iterator<Item = (String, String)> + 'a {
    let name = move |number: usize| if number == 0 { name.to_owned() } else { format!("{name}-{}", number + 1) };
    value.split(" + ").enumerate().map(move |(number, model)| (name(number), model.trim().to_owned()))
}

/// Parses `8GB`, `8192MB`, `12 x 16 GB DDR4-2666MT/s`, `1 x 16GB + 2 x 8GB`.
fn memory(text: &str) -> Option<Bytes> {
    let module = |text: &str| -> Option<u64> {
        let (count, size) = text.split_once(" x ").unwrap_or(("1", text));
        let digits = size.trim_start();
        let (number, unit) = digits.split_at(digits.find(|c: char| !c.is_ascii_digit())?);
        let unit = match unit.trim_start().get(..2)? {
            "TB" => 1_u64 << 40,
            "GB" => 1 << 30,
            "MB" => 1 << 20,
            _ => return None,
        };
        count.trim().parse::<u64>().ok()?.checked_mul(number.parse().ok()?)?.checked_mul(unit)
    };
    text.split(" + ").map(module).try_fold(0_u64, |sum, size| sum.checked_add(size?)).map(Bytes)
}

/// Parses `intel_pstate powersave (EPP: performance)`: driver, governor and details.
fn policy(text: &str) -> FrequencyPolicy {
    let (governor, details) = text.split_once(" (").unwrap_or((text, ""));
    let (driver, governor) =
        governor.split_once(' ').map_or((None, governor), |(driver, governor)| (Some(driver.to_owned()), governor));
    let preference = details.split_once("EPP: ").map(|(_, rest)| rest.split([')', ',', ' ']).next().unwrap_or(rest));
    FrequencyPolicy {
        driver,
        governor: Some(governor.to_owned()),
        energy_preference: preference.map(str::to_owned),
        ..FrequencyPolicy::default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn table(system: &System) -> BTreeMap<String, String> {
        let machine = system.machine();
        let environment = serde_json::from_value(Value::Object(machine.environment.unwrap())).unwrap();
        wb_sys::system(&machine.facts, &environment).properties.into_iter().collect()
    }

    #[test]
    fn hardware_software_and_attributes_are_rows_of_the_table_of_the_system() {
        let system = System {
            identifier: "a".to_owned(),
            hardware: "Processor: 2 x Xeon Gold, 6 GHz (8 Cores / 16 Threads), Motherboard: X1 (2.3 BIOS), Chipset: C6, \
                       Memory: 12 x 16 GB DDR4-2666MT/s, Disk: 960GB SSD + 2 x 4001GB HDD, Graphics: none, Network: I350"
                .to_owned(),
            software: "OS: Oracle Linux 8.5, Kernel: 5.4.17-2136.el8uek (x86_64), Compiler: GCC 8.5.0 + Clang 12, \
                       File-System: xfs, System Layer: KVM, Screen Resolution: 1024x768"
                .to_owned(),
            time_stamp: String::new(),
            attributes: r#"{"kernel-extra-details": "Transparent Huge Pages: always",
                "security": "l1tf: Not affected + spectre_v2: Mitigation of Retpolines IBPB: conditional + mds: Vulnerable",
                "cpu-scaling-governor": "intel_pstate powersave (EPP: performance)", "cpu-microcode": "0x1",
                "compiler-configuration": "--enable-lto", "disk-mount-options": "noatime,rw", "python": ""}"#
                .to_owned(),
        };
        let table = table(&system);
        let expected = [
            ("processor", "2 x Xeon Gold, 6 GHz (8 Cores / 16 Threads), microcode 0x1"),
            ("motherboard", "X1 (2.3 BIOS)"),
            ("chipset", "C6"),
            ("virtualisation", "KVM"),
            ("memory", "192 GiB"),
            ("disk", "disk: 960GB SSD; disk-2: 2 x 4001GB HDD"),
            ("file system", "xfs on / (noatime,rw)"),
            ("network", "adapter: I350"),
            ("distribution", "Oracle Linux 8.5"),
            ("kernel", "5.4.17-2136.el8uek x86_64"),
            ("compiler", "GCC 8.5.0; Clang 12"),
            ("governor", "powersave (intel_pstate) preferring performance"),
            ("huge pages", "transparent always"),
            ("mitigations", "mds: Vulnerable + spectre_v2: Retpolines IBPB: conditional + not affected by 1 other"),
        ];
        assert_eq!(table, expected.map(|(name, text)| (name.to_owned(), text.to_owned())).into());
        let others = system.machine().environment.unwrap()[OTHERS].clone();
        let expected = serde_json::json!({"Graphics": "none", "Screen Resolution": "1024x768",
            "compiler-configuration": "--enable-lto"});
        assert_eq!(others, expected);
    }

    #[test]
    fn an_unknown_description_says_nothing() {
        assert_eq!(System::default().machine(), ForeignMachine::default());
        let broken = System { attributes: "{".to_owned(), hardware: "Processor".to_owned(), ..System::default() };
        assert_eq!(broken.machine(), ForeignMachine::default());
    }

    #[test]
    fn sizes_of_memory_are_added_up() {
        let gib = |text: &str| memory(text).map(|bytes| bytes.0 >> 30);
        assert_eq!(
            ["8GB", "8192MB", "2 x 16 GB DDR4-2666MT/s", "1 x 16GB + 2 x 8GB", "1TB", "much", "1 x 16GB + ?"].map(gib),
            [Some(8), Some(8), Some(32), Some(32), Some(1024), None, None]
        );
    }

    #[test]
    fn huge_pages_stand_among_other_details_of_the_kernel() {
        let details = |text: &str| {
            let attributes = serde_json::json!({"kernel-extra-details": text}).to_string();
            let environment = System { attributes, ..System::default() }.machine().environment.unwrap();
            let pages = environment["memory"]["transparent-huge-pages"]["enabled"].as_str().map(str::to_owned);
            (pages, environment.get(OTHERS).map(|others| others["kernel-extra-details"].clone()))
        };
        assert_eq!(details("Transparent Huge Pages: never"), (Some("never".to_owned()), None));
        assert_eq!(
            details("amdgpu.dpm=1 - Transparent Huge Pages: madvise"),
            (Some("madvise".to_owned()), Some("amdgpu.dpm=1".into()))
        );
        assert_eq!(details("amdgpu.dpm=1"), (None, Some("amdgpu.dpm=1".into())));
    }
}
