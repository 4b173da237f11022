//! Parser of `/proc/cpuinfo`, whose keys differ between architectures.

use std::collections::{BTreeMap, BTreeSet};

use wb_model::Bytes;

use crate::SysRoot;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuInfo {
    /// Name of the processor; several, joined by `+`, where cores differ.
    pub model: String,
    /// CPU flags (features), as named by the kernel.
    pub flags: BTreeSet<String>,
    pub microcode: Option<String>,
    /// Vendor of the processor, where reported: `GenuineIntel`.
    pub vendor: Option<String>,
    /// Size of a cache, where reported; its level depends on the vendor.
    pub cache: Option<Bytes>,
    /// The listed CPUs with their package and core, where reported.
    pub processors: BTreeMap<u32, (Option<u32>, Option<u32>)>,
}

/// Values of one CPU by lower-case key.
type Block = BTreeMap<String, String>;

impl CpuInfo {
    /// Reads `/proc/cpuinfo`; empty where it cannot be read.
    pub fn read(root: &SysRoot) -> Self {
        Self::parse(&root.text("/proc/cpuinfo").unwrap_or_default())
    }

    pub fn parse(text: &str) -> Self {
        let blocks: Vec<Block> = text.split("\n\n").map(block).collect();
        let first = |keys: &[&str]| {
            keys.iter().find_map(|key| blocks.iter().find_map(|block| block.get(*key))).filter(|text| !text.is_empty())
        };
        let number = |block: &Block, key: &str| block.get(key)?.parse().ok();
        let processors = blocks.iter().filter_map(|block| {
            Some((number(block, "processor")?, (number(block, "physical id"), number(block, "core id"))))
        });
        let of_isa = || first(&["isa"]).map(|isa| isa.split('_').collect::<Vec<_>>());
        let flags = first(&["flags", "features"]).map(|flags| flags.split_whitespace().collect()).or_else(of_isa);
        Self {
            model: model(&blocks),
            flags: flags.into_iter().flatten().map(str::to_owned).collect(),
            microcode: first(&["microcode"]).cloned(),
            vendor: first(&["vendor_id"]).cloned(),
            cache: first(&["cache size"]).and_then(|size| size.parse().ok()),
            processors: processors.collect(),
        }
    }
}

/// The frequencies in kHz, by CPU: read for each telemetry reading, therefore without the rest.
pub(crate) fn frequencies(text: &str) -> BTreeMap<u32, u64> {
    let mut found = BTreeMap::new();
    let mut cpu = None;
    for line in text.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        match name.trim() {
            "processor" => cpu = value.trim().parse().ok(),
            "cpu MHz" => {
                if let (Some(cpu), Ok(mhz)) = (cpu, value.trim().parse::<f64>()) {
                    found.insert(cpu, (mhz * 1000.0) as u64);
                }
            }
            _ => {}
        }
    }
    found
}

fn block(text: &str) -> Block {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(key, value)| (key.trim().to_ascii_lowercase(), value.trim().to_owned())).collect()
}

fn model(blocks: &[Block]) -> String {
    let mut names: Vec<String> = Vec::new();
    for block in blocks {
        let name = ["model name", "cpu", "uarch", "cpu model"]
            .iter()
            .find_map(|key| block.get(*key).cloned())
            .or_else(|| arm(block.get("cpu implementer")?, block.get("cpu part")?));
        if let Some(name) = name.filter(|name| !name.is_empty())
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    names.join(" + ")
}

/// The name of an ARM core by two fields of its MIDR_EL1 register (Arm ARM, D19.2).
fn arm(implementer: &str, part: &str) -> Option<String> {
    let (vendor, cores): (&str, &[(&str, &str)]) = match implementer {
        "0x41" => ("ARM", ARM_CORES),
        "0x46" => ("Fujitsu", &[("0x001", "A64FX")]),
        "0x48" => ("HiSilicon", &[("0xd01", "Kunpeng-920")]),
        "0x51" => ("Qualcomm", &[("0x001", "Oryon")]),
        "0x61" => ("Apple", &[("0x022", "M1 Icestorm"), ("0x023", "M1 Firestorm")]),
        "0xc0" => ("Ampere", &[("0xac3", "Ampere-1"), ("0xac4", "Ampere-1a")]),
        "0x00" => ("QEMU", &[("0x051", "TCG CPU")]),
        _ => return Some(format!("ARM, implementer {implementer} part {part}")),
    };
    let core = cores.iter().find(|(number, _)| *number == part).map_or(part, |(_, name)| name);
    Some(format!("{vendor} {core}"))
}

const ARM_CORES: &[(&str, &str)] = &[
    ("0xd03", "Cortex-A53"),
    ("0xd04", "Cortex-A35"),
    ("0xd05", "Cortex-A55"),
    ("0xd07", "Cortex-A57"),
    ("0xd08", "Cortex-A72"),
    ("0xd09", "Cortex-A73"),
    ("0xd0a", "Cortex-A75"),
    ("0xd0b", "Cortex-A76"),
    ("0xd0c", "Neoverse-N1"),
    ("0xd40", "Neoverse-V1"),
    ("0xd41", "Cortex-A78"),
    ("0xd44", "Cortex-X1"),
    ("0xd49", "Neoverse-N2"),
    ("0xd4f", "Neoverse-V2"),
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_of_each_architecture_are_understood() {
        let power = CpuInfo::parse("processor\t: 0\ncpu\t\t: POWER9, altivec supported\n");
        assert_eq!(power.model, "POWER9, altivec supported");
        let riscv =
            CpuInfo::parse("processor\t: 3\nhart\t: 0\nisa\t\t: rv64imafdc_zicsr_zba\nuarch\t: sifive,u74-mc\n");
        assert_eq!((riscv.model.as_str(), riscv.flags.len()), ("sifive,u74-mc", 3));
        assert!(riscv.processors.contains_key(&3));
        let unknown = CpuInfo::parse("processor: 0\nCPU implementer: 0x99\nCPU part: 0x1\n");
        assert_eq!(unknown.model, "ARM, implementer 0x99 part 0x1");
    }

    // Only the `isa` of RISC-V is a list with underscores.
    #[test]
    fn a_flag_with_an_underscore_is_not_split() {
        let info = CpuInfo::parse("processor: 0\nmodel name: x\nmicrocode: 0x1\nflags: sse4_2 avx\n");
        assert!(info.flags.contains("sse4_2"));
        assert_eq!(info.microcode.as_deref(), Some("0x1"));
    }

    #[test]
    fn frequencies_are_in_khz() {
        assert_eq!(frequencies("processor\t: 1\ncpu MHz\t\t: 2500.002\n"), BTreeMap::from([(1, 2_500_002)]));
    }

    proptest! {
        #[test]
        fn arbitrary_input_does_not_panic(text in "(([a-z ]{0,12}|processor|flags|cpu part|cpu MHz|cache size)[:\t ]{0,3}\\PC{0,20}\n{1,2}){0,20}") {
            let _ = (CpuInfo::parse(&text), frequencies(&text));
        }
    }
}
