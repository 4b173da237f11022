//! Offloads and interrupt coalescing of network cards, by the program `ethtool`.

use std::collections::BTreeMap;
use std::process::Command;

use wb_sys::SysRoot;

use crate::knob::{Assessment, Knob, KnobDescription, KnobValue};
use crate::target::{self, KnobTarget};
use crate::unsupported::Unsupported;
use crate::writes::{KnobWrites, command, parse_number, parse_switch, require_program, shell};

const NO_DEVICE: &str = "no network interface is backed by a device";

/// Features of a network card that are switched together.
pub struct OffloadFeatures {
    description: KnobDescription,
    /// Their names in `ethtool -k`, sorted.
    features: &'static [&'static str],
    on: Assessment,
    off: Assessment,
}

pub const OFFLOADS: OffloadFeatures = OffloadFeatures {
    description: KnobDescription {
        name: "offloads",
        why: "packets that the card or driver merges and splits change rate and CPU time, and delay single packets",
        evidence: "kernel documentation, Segmentation Offloads: one pass through the stack for up to 64 KiB instead of for each 1,500 bytes",
        unsupported_reason: NO_DEVICE,
    },
    features: &["generic-receive-offload", "generic-segmentation-offload", "tcp-segmentation-offload"],
    on: Assessment::Quiet,
    off: Assessment::Unknown {
        reason: "single packets are delivered at once, but many packets cost far more CPU time",
    },
};

/// Large receive offload: lossy merging of packets by the card.
pub const LARGE_RECEIVE: OffloadFeatures = OffloadFeatures {
    description: KnobDescription {
        name: "large-receive-offload",
        why: "packets that the card merges are delayed, and cannot be split again when they are forwarded",
        evidence: "kernel documentation, Segmentation Offloads: large receive offload loses headers; drivers disable it where packets are forwarded",
        unsupported_reason: NO_DEVICE,
    },
    features: &["large-receive-offload"],
    on: Assessment::Noisy { advice: "let the kernel merge packets, which it does without loss" },
    off: Assessment::Quiet,
};

pub const CHECKSUMS: OffloadFeatures = OffloadFeatures {
    description: KnobDescription {
        name: "checksum-offloads",
        why: "without them a CPU reads every byte once more, and the card can no longer segment packets",
        evidence: "kernel documentation, Checksum Offloads: segmentation offload requires checksums by the card",
        unsupported_reason: NO_DEVICE,
    },
    features: &["rx-checksumming", "tx-checksumming"],
    on: Assessment::Quiet,
    off: Assessment::Unknown { reason: "throughput includes the cost of checksums" },
};

impl Knob for OffloadFeatures {
    fn description(&self) -> &KnobDescription {
        &self.description
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        target::interfaces(sys)
    }
    fn read(&self, sys: &SysRoot, target: &KnobTarget) -> Result<KnobValue, Unsupported> {
        let current = parse(&ethtool(sys, "-k", target)?);
        let states = self.features.iter().map(|name| feature_state(&current, name)).collect::<Result<Vec<_>, _>>()?;
        let on = |feature: &FeatureState| feature.on;
        Ok(match (states.iter().all(on), states.iter().any(on)) {
            (true, _) => KnobValue::Switch(true),
            (_, false) => KnobValue::Switch(false),
            _ => {
                let features = self.features.iter().zip(states);
                let described = features.map(|(name, feature)| format!("{name} {}", KnobValue::Switch(feature.on)));
                KnobValue::Choice(described.collect::<Vec<_>>().join(", "))
            }
        })
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        match value {
            KnobValue::Switch(true) => self.on.clone(),
            KnobValue::Switch(false) => self.off.clone(),
            _ => Assessment::Unknown { reason: "some features are on and some are off" },
        }
    }
    fn check_value(&self, value: &str) -> Result<(), Unsupported> {
        parse_switch(value).map(drop)
    }
    fn writes(&self, sys: &SysRoot, target: &KnobTarget, value: &str) -> KnobWrites {
        let on = parse_switch(value)?;
        let interface = target.to_string();
        let current = parse(&ethtool(sys, "-k", target)?);
        for name in self.features {
            let feature = feature_state(&current, name)?;
            if feature.fixed && feature.on != on {
                return Err(Unsupported(format!(
                    "the driver does not allow changing {name} from {}",
                    KnobValue::Switch(feature.on)
                )));
            }
        }
        let pattern = format!("^({}):", self.features.join("|"));
        let read = shell("ethtool -k \"$1\" | grep -E \"$2\" | sed 's/ \\[.*//' | sort", &[&interface, &pattern]);
        let write = shell("ethtool -K \"$1\" $(printf '%s\\n' \"$2\" | tr -d ':')", &[&interface, "{}"]);
        let state = self.features.iter().map(|name| format!("{name}: {}\n", KnobValue::Switch(on))).collect();
        command(sys, &format!("{} of {interface}", self.name()), "ethtool", [read, write], state)
    }
    fn shell_command(&self, _: &SysRoot, targets: &[KnobTarget]) -> String {
        let features = self.features.join(" off ");
        let commands = targets.iter().map(|interface| format!("sudo ethtool -K {interface} {features} off"));
        commands.collect::<Vec<_>>().join(" && ")
    }
}

/// Interrupt coalescing: how long a card waits before it interrupts.
pub struct Coalescing;

impl Knob for Coalescing {
    fn description(&self) -> &KnobDescription {
        &KnobDescription {
            name: "interrupt-coalescing",
            why: "a card that waits for more packets before it interrupts adds that wait to the latency of each; adaptive coalescing changes it with the load",
            evidence: "ethtool(8), --coalesce: rx-usecs is the wait after a packet; drivers' defaults range from 0 to 250 µs, and adaptive ones follow the rate",
            unsupported_reason: NO_DEVICE,
        }
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        target::interfaces(sys)
    }
    fn read(&self, sys: &SysRoot, target: &KnobTarget) -> Result<KnobValue, Unsupported> {
        let current = parse_coalescing(&ethtool(sys, "-c", target)?);
        if current.iter().any(|(name, value)| name.starts_with("adaptive") && value == "on") {
            return Ok(KnobValue::Choice("adaptive".to_owned()));
        }
        let longest = current.iter().filter_map(|(_, value)| value.parse::<u64>().ok()).max();
        longest
            .map(KnobValue::Micros)
            .ok_or_else(|| Unsupported("the driver does not report its coalescing times".to_owned()))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        match value {
            KnobValue::Micros(0) => Assessment::Quiet,
            KnobValue::Micros(_) => {
                Assessment::Unknown { reason: "constant, and part of every latency over this card" }
            }
            _ => Assessment::Noisy { advice: "use a constant wait" },
        }
    }
    fn check_value(&self, value: &str) -> Result<(), Unsupported> {
        parse_micros(self.name(), value).map(drop)
    }
    fn writes(&self, sys: &SysRoot, target: &KnobTarget, value: &str) -> KnobWrites {
        let micros = parse_micros(self.name(), value)?;
        let interface = target.to_string();
        let current = parse_coalescing(&ethtool(sys, "-c", target)?);
        if current.is_empty() || micros.is_none() && !current.iter().any(|(name, _)| name.starts_with("adaptive")) {
            return Err(Unsupported(format!("the driver of {interface} does not support it")));
        }
        let setting = |name: &str, now: &str| match (name.starts_with("adaptive"), micros) {
            (true, None) => "on".to_owned(),
            (true, Some(_)) => "off".to_owned(),
            (false, Some(micros)) => micros.to_string(),
            (false, None) => now.to_owned(),
        };
        let state = current.iter().map(|(name, now)| format!("{name}: {}\n", setting(name, now))).collect();
        let read = shell(
            "ethtool -c \"$1\" | sed -nE -e 's,^Adaptive RX: (on|off|n/a) +TX: (on|off|n/a).*,adaptive-rx: \\1\\nadaptive-tx: \\2,p' \
             -e 's,^((rx|tx)-usecs):[[:space:]]*([0-9]+|n/a).*,\\1: \\3,p' | grep -v n/a",
            &[&interface],
        );
        let write = shell("ethtool -C \"$1\" $(printf '%s\\n' \"$2\" | tr -d ':')", &[&interface, "{}"]);
        command(sys, &format!("interrupt-coalescing of {interface}"), "ethtool", [read, write], state)
    }
    fn shell_command(&self, _: &SysRoot, targets: &[KnobTarget]) -> String {
        let commands =
            targets.iter().map(|it| format!("sudo ethtool -C {it} adaptive-rx off adaptive-tx off rx-usecs 0"));
        commands.collect::<Vec<_>>().join(" && ")
    }
}

fn ethtool(sys: &SysRoot, option: &str, interface: &KnobTarget) -> Result<String, Unsupported> {
    let program = require_program(sys, "ethtool")?;
    let output = Command::new(program).args([option, &interface.to_string()]).env("LC_ALL", "C").output();
    let output = output.map_err(|error| Unsupported(format!("`ethtool`: {error}")))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let message = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
        Err(Unsupported(format!("`ethtool {option} {interface}`: {message}")))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FeatureState {
    on: bool,
    fixed: bool,
}

fn feature_state(features: &BTreeMap<String, FeatureState>, name: &str) -> Result<FeatureState, Unsupported> {
    features.get(name).copied().ok_or_else(|| Unsupported(format!("ethtool does not report {name}")))
}

/// Parses the output of `ethtool -k`: `tx-checksumming: on`, `large-receive-offload: off [fixed]`.
fn parse(text: &str) -> BTreeMap<String, FeatureState> {
    let feature = |line: &str| {
        let (name, state) = line.split_once(": ")?;
        let on = state.starts_with("on");
        let is_state = on || state.starts_with("off");
        is_state.then(|| (name.to_owned(), FeatureState { on, fixed: state.contains("[fixed]") }))
    };
    text.lines().filter_map(feature).collect()
}

/// Parses the settings in `ethtool -c` that the driver supports: `adaptive-rx`, `adaptive-tx`, `rx-usecs`, `tx-usecs`.
fn parse_coalescing(text: &str) -> Vec<(String, String)> {
    let line = |start: &str| text.lines().find_map(|line| line.strip_prefix(start)).unwrap_or_default();
    let adaptive: Vec<&str> = line("Adaptive RX:").split_whitespace().filter(|word| *word != "TX:").collect();
    let word = |index: usize| adaptive.get(index).copied().unwrap_or("n/a");
    let all = [
        ("adaptive-rx", word(0)),
        ("adaptive-tx", word(1)),
        ("rx-usecs", line("rx-usecs:")),
        ("tx-usecs", line("tx-usecs:")),
    ];
    let settings = all.into_iter().map(|(name, value)| (name.to_owned(), value.trim().to_owned()));
    settings.filter(|(_, value)| !value.is_empty() && value != "n/a").collect()
}

/// Parses a time in microseconds; `None` for `adaptive`.
fn parse_micros(knob: &str, value: &str) -> Result<Option<i64>, Unsupported> {
    match value {
        "adaptive" => Ok(None),
        micros => parse_number(knob, micros.trim_end_matches("µs").trim_end(), 0..=u32::MAX.into()).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn features_are_parsed_with_fixed_ones() {
        let text = "Features for eth0:\nrx-checksumming: on [fixed]\ntx-checksumming: on\n\ttx-checksum-ipv4: off [fixed]\n\
                    tcp-segmentation-offload: off [requested on]\n";
        let features = parse(text);
        assert_eq!(features["rx-checksumming"], FeatureState { on: true, fixed: true });
        assert_eq!(features["tcp-segmentation-offload"], FeatureState { on: false, fixed: false });
        assert!(feature_state(&features, "large-receive-offload").unwrap_err().0.contains("does not report"));
    }

    #[test]
    fn only_supported_coalescing_settings_are_parsed() {
        let text = "Coalesce parameters for eth0:\nAdaptive RX: off  TX: n/a\nstats-block-usecs:\tn/a\n\
                    rx-usecs:\t3\nrx-frames:\t1\nrx-usecs-irq:\tn/a\ntx-usecs:\tn/a\n";
        let expected = [("adaptive-rx", "off"), ("rx-usecs", "3")];
        assert_eq!(parse_coalescing(text), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn fake_machines_have_no_ethtool() {
        let message = OFFLOADS
            .read(&wb_sys::fake_root::laptop().root(), &KnobTarget::Interface("eth0".to_owned()))
            .unwrap_err()
            .0;
        assert_eq!(message, "`ethtool` is used only on the running system");
    }

    proptest! {
        #[test]
        fn arbitrary_input_does_not_panic(text in "(Adaptive RX:|rx-usecs:|\\PC|[\t\n]|: on){0,12}") {
            let _ = parse(&text);
            let _ = parse_coalescing(&text);
        }
    }
}
