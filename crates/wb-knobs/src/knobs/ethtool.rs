//! What network cards do to packets, by the program `ethtool`.

use std::collections::BTreeMap;
use std::process::Command;

use wb_sys::SysRoot;

use crate::knob::{Assessment, Knob, KnobValue, Unsupported};
use crate::target::{self, KnobTarget};
use crate::writes::{KnobWrites, command, parse_number, parse_switch, require_program, shell};

const NO_DEVICE: &str = "no network interface has a device behind it";

/// Some features of a card that are switched together.
pub struct OffloadFeatures {
    name: &'static str,
    why: &'static str,
    evidence: &'static str,
    /// Their names, as `ethtool -k` has them, sorted.
    features: &'static [&'static str],
    /// How measuring fares with them on.
    on: Assessment,
    /// And off.
    off: Assessment,
}

/// Cutting and joining packets.
pub const OFFLOADS: OffloadFeatures = OffloadFeatures {
    name: "offloads",
    why: "packets that are joined and cut by the card or driver change rate and CPU time, and hold single packets back",
    evidence: "kernel documentation, Segmentation Offloads: one pass through the stack for up to 64 KiB instead of for each 1,500 bytes",
    features: &["generic-receive-offload", "generic-segmentation-offload", "tcp-segmentation-offload"],
    on: Assessment::Yes,
    off: Assessment::Unknown { reason: "single packets are handed on at once, and many cost far more CPU time" },
};

/// Joining packets in the card, where what they were is lost.
pub const LARGE_RECEIVE: OffloadFeatures = OffloadFeatures {
    name: "large-receive-offload",
    why: "packets that the card joins are held back, and cannot be told apart again where they are to be forwarded",
    evidence: "kernel documentation, Segmentation Offloads: large receive offload loses headers; drivers give it up where packets are forwarded",
    features: &["large-receive-offload"],
    on: Assessment::No { advice: "let the kernel join packets, which it can do without loss" },
    off: Assessment::Yes,
};

/// Checksums by the card.
pub const CHECKSUMS: OffloadFeatures = OffloadFeatures {
    name: "checksum-offloads",
    why: "without them every byte is read once more by a CPU, and packets can no longer be cut by the card",
    evidence: "kernel documentation, Checksum Offloads: sending in segments needs checksums that the card fills in",
    features: &["rx-checksumming", "tx-checksumming"],
    on: Assessment::Yes,
    off: Assessment::Unknown { reason: "throughput measures the checksums as well" },
};

impl Knob for OffloadFeatures {
    fn name(&self) -> &'static str {
        self.name
    }
    fn why(&self) -> &'static str {
        self.why
    }
    fn evidence(&self) -> &'static str {
        self.evidence
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        target::interfaces(sys)
    }
    fn unsupported_reason(&self) -> &'static str {
        NO_DEVICE
    }
    fn read(&self, sys: &SysRoot, target: &KnobTarget) -> Result<KnobValue, Unsupported> {
        let known = parse(&ethtool(sys, "-k", target)?);
        let states = self.features.iter().map(|name| feature_state(&known, name)).collect::<Result<Vec<_>, _>>()?;
        let on = |feature: &FeatureState| feature.on;
        Ok(match (states.iter().all(on), states.iter().any(on)) {
            (true, _) => KnobValue::Switch(true),
            (_, false) => KnobValue::Switch(false),
            _ => {
                let named = self.features.iter().zip(states);
                let shown = named.map(|(name, feature)| format!("{name} {}", KnobValue::Switch(feature.on)));
                KnobValue::Choice(shown.collect::<Vec<_>>().join(", "))
            }
        })
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        match value {
            KnobValue::Switch(true) => self.on.clone(),
            KnobValue::Switch(false) => self.off.clone(),
            _ => Assessment::Unknown { reason: "some are on and some are off" },
        }
    }
    fn writes(&self, sys: &SysRoot, target: &KnobTarget, wanted: &str) -> KnobWrites {
        let on = parse_switch(wanted)?;
        let interface = target.to_string();
        let known = parse(&ethtool(sys, "-k", target)?);
        for name in self.features {
            let feature = feature_state(&known, name)?;
            if feature.fixed && feature.on != on {
                return Err(Unsupported(format!("the driver keeps {name} {}", KnobValue::Switch(feature.on))));
            }
        }
        let pattern = format!("^({}):", self.features.join("|"));
        let read = shell("ethtool -k \"$1\" | grep -E \"$2\" | sed 's/ \\[.*//' | sort", &[&interface, &pattern]);
        let write = shell("ethtool -K \"$1\" $(printf '%s\\n' \"$2\" | tr -d ':')", &[&interface, "{}"]);
        let state = self.features.iter().map(|name| format!("{name}: {}\n", KnobValue::Switch(on))).collect();
        command(sys, &format!("{} of {interface}", self.name), "ethtool", [read, write], state)
    }
    fn shell_command(&self, _: &SysRoot, targets: &[KnobTarget]) -> String {
        let features = self.features.join(" off ");
        let commands = targets.iter().map(|interface| format!("sudo ethtool -K {interface} {features} off"));
        commands.collect::<Vec<_>>().join(" && ")
    }
}

/// How long a card waits before it interrupts.
pub struct Coalescing;

impl Knob for Coalescing {
    fn name(&self) -> &'static str {
        "interrupt-coalescing"
    }
    fn why(&self) -> &'static str {
        "a card that waits for more packets before it interrupts adds that wait to the latency of each, and changes it by the load where it adapts"
    }
    fn evidence(&self) -> &'static str {
        "ethtool(8), --coalesce: rx-usecs is the wait after a packet; drivers' defaults go from 0 to 250 µs, and adaptive ones follow the rate"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        target::interfaces(sys)
    }
    fn unsupported_reason(&self) -> &'static str {
        NO_DEVICE
    }
    fn read(&self, sys: &SysRoot, target: &KnobTarget) -> Result<KnobValue, Unsupported> {
        let known = parse_coalescing(&ethtool(sys, "-c", target)?);
        if known.iter().any(|(name, value)| name.starts_with("adaptive") && value == "on") {
            return Ok(KnobValue::Choice("adaptive".to_owned()));
        }
        let longest = known.iter().filter_map(|(_, value)| value.parse::<u64>().ok()).max();
        longest
            .map(KnobValue::Micros)
            .ok_or_else(|| Unsupported("the driver does not say how long it waits".to_owned()))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        match value {
            KnobValue::Micros(0) => Assessment::Yes,
            KnobValue::Micros(_) => Assessment::Unknown { reason: "steady, and part of every latency over this card" },
            _ => Assessment::No { advice: "a wait that is always the same" },
        }
    }
    fn writes(&self, sys: &SysRoot, target: &KnobTarget, wanted: &str) -> KnobWrites {
        let micros = match wanted {
            "adaptive" => None,
            micros => Some(parse_number(self.name(), micros.trim_end_matches("µs").trim_end(), 0..=u32::MAX.into())?),
        };
        let interface = target.to_string();
        let known = parse_coalescing(&ethtool(sys, "-c", target)?);
        if known.is_empty() || micros.is_none() && !known.iter().any(|(name, _)| name.starts_with("adaptive")) {
            return Err(Unsupported(format!("the driver of {interface} does not offer that")));
        }
        let wanted = |name: &str, now: &str| match (name.starts_with("adaptive"), micros) {
            (true, None) => "on".to_owned(),
            (true, Some(_)) => "off".to_owned(),
            (false, Some(micros)) => micros.to_string(),
            (false, None) => now.to_owned(),
        };
        let state = known.iter().map(|(name, now)| format!("{name}: {}\n", wanted(name, now))).collect();
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

/// What ethtool shows of an interface.
fn ethtool(sys: &SysRoot, what: &str, interface: &KnobTarget) -> Result<String, Unsupported> {
    let program = require_program(sys, "ethtool")?;
    let output = Command::new(program).args([what, &interface.to_string()]).env("LC_ALL", "C").output();
    let output = output.map_err(|error| Unsupported(format!("`ethtool`: {error}")))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
            Err(Unsupported(format!("`ethtool {what} {interface}`: {said}")))
        }
    }
}

/// A feature of a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FeatureState {
    on: bool,
    /// Nobody can change it.
    fixed: bool,
}

fn feature_state(known: &BTreeMap<String, FeatureState>, name: &str) -> Result<FeatureState, Unsupported> {
    known.get(name).copied().ok_or_else(|| Unsupported(format!("ethtool does not show {name}")))
}

/// Understands `ethtool -k`: `tx-checksumming: on`, `large-receive-offload: off [fixed]`.
fn parse(text: &str) -> BTreeMap<String, FeatureState> {
    let feature = |line: &str| {
        let (name, state) = line.split_once(": ")?;
        let on = state.starts_with("on");
        let known = on || state.starts_with("off");
        known.then(|| (name.to_owned(), FeatureState { on, fixed: state.contains("[fixed]") }))
    };
    text.lines().filter_map(feature).collect()
}

/// Understands `ethtool -c`, of which only what the driver has: `adaptive-rx`, `adaptive-tx`, `rx-usecs`, `tx-usecs`.
fn parse_coalescing(text: &str) -> Vec<(String, String)> {
    let line = |start: &str| text.lines().find_map(|line| line.strip_prefix(start)).unwrap_or_default();
    let adaptive: Vec<&str> = line("Adaptive RX:").split_whitespace().filter(|word| *word != "TX:").collect();
    let word = |at: usize| adaptive.get(at).copied().unwrap_or("n/a");
    let all = [
        ("adaptive-rx", word(0)),
        ("adaptive-tx", word(1)),
        ("rx-usecs", line("rx-usecs:")),
        ("tx-usecs", line("tx-usecs:")),
    ];
    let known = all.into_iter().map(|(name, value)| (name.to_owned(), value.trim().to_owned()));
    known.filter(|(_, value)| !value.is_empty() && value != "n/a").collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn features_are_read_with_what_nobody_can_change() {
        let text = "Features for eth0:\nrx-checksumming: on [fixed]\ntx-checksumming: on\n\ttx-checksum-ipv4: off [fixed]\n\
                    tcp-segmentation-offload: off [requested on]\n";
        let known = parse(text);
        assert_eq!(known["rx-checksumming"], FeatureState { on: true, fixed: true });
        assert_eq!(known["tcp-segmentation-offload"], FeatureState { on: false, fixed: false });
        assert!(feature_state(&known, "large-receive-offload").unwrap_err().0.contains("does not show"));
    }

    #[test]
    fn waits_are_read_as_far_as_the_driver_has_them() {
        let text = "Coalesce parameters for eth0:\nAdaptive RX: off  TX: n/a\nstats-block-usecs:\tn/a\n\
                    rx-usecs:\t3\nrx-frames:\t1\nrx-usecs-irq:\tn/a\ntx-usecs:\tn/a\n";
        let known = [("adaptive-rx", "off"), ("rx-usecs", "3")];
        assert_eq!(parse_coalescing(text), known.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn made_machines_have_no_ethtool() {
        let told = OFFLOADS
            .read(&wb_sys::fake_root::laptop().root(), &KnobTarget::Interface("eth0".to_owned()))
            .unwrap_err()
            .0;
        assert_eq!(told, "`ethtool` is asked of running systems alone");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(Adaptive RX:|rx-usecs:|\\PC|[\t\n]|: on){0,12}") {
            let _ = parse(&text);
            let _ = parse_coalescing(&text);
        }
    }
}
