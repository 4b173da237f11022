//! What network cards and their drivers do to packets.

use wb_sys::SysRoot;

use crate::change::echo_each;
use crate::knob::{Knob, Quiet, Unsupported, Value};
use crate::set::{Writes, command, number, one, shell, switch};
use crate::target::{self, Target};

const NO_DEVICE: &str = "no network interface has a device behind it";

/// Whether packets are cut and joined by the card.
pub struct Offloads;

impl Knob for Offloads {
    fn name(&self) -> &'static str {
        "offloads"
    }
    fn why(&self) -> &'static str {
        "packets that are joined and cut by the card or driver change rate and CPU time, and hold single packets back"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, Segmentation Offloads: one pass through the stack for up to 64 KiB instead of for each 1,500 bytes"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<Target> {
        target::interfaces(sys)
    }
    fn absent(&self) -> &'static str {
        NO_DEVICE
    }
    fn read(&self, _: &SysRoot, _: &Target) -> Result<Value, Unsupported> {
        Err(Unsupported("the kernel does not show them in /sys: `ethtool -k INTERFACE` does".to_owned()))
    }
    fn quiet(&self, _: &Value) -> Quiet {
        Quiet::STRANGE
    }
    fn set(&self, sys: &SysRoot, target: &Target, wanted: &str) -> Writes {
        let features = ["generic-receive-offload", "generic-segmentation-offload", "tcp-segmentation-offload"];
        let on = switch(wanted)?;
        let interface = target.to_string();
        let read = shell(
            "ethtool -k \"$1\" | grep -E '^(generic-receive|generic-segmentation|tcp-segmentation)-offload:' | sort",
            &[&interface],
        );
        let write = shell(
            "printf '%s\\n' \"$2\" | while IFS=': ' read -r feature state rest; do \
             ethtool -K \"$1\" \"$feature\" \"$state\" || exit 1; done",
            &[&interface, "{}"],
        );
        let state = features.map(|feature| format!("{feature}: {}\n", if on { "on" } else { "off" })).concat();
        command(sys, &format!("offloads of {interface}"), "ethtool", [read, write], state)
    }
    fn change(&self, _: &SysRoot, targets: &[Target]) -> String {
        let commands = targets.iter().map(|interface| format!("sudo ethtool -K {interface} gro off lro off"));
        commands.collect::<Vec<_>>().join(" && ")
    }
}

/// How long received packets are held to be joined.
pub struct Coalescing;

impl Knob for Coalescing {
    fn name(&self) -> &'static str {
        "gro-flush-timeout"
    }
    fn why(&self) -> &'static str {
        "received packets wait for others to be joined with, which adds to every single one's latency"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, NAPI: gro_flush_timeout is how long, in ns, packets are held after a poll; 0, the default, holds none"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<Target> {
        target::interfaces(sys)
    }
    fn absent(&self) -> &'static str {
        NO_DEVICE
    }
    fn read(&self, sys: &SysRoot, target: &Target) -> Result<Value, Unsupported> {
        Ok(Value::Micros(sys.number::<u64>(path(&target.to_string()))?.div_ceil(1000)))
    }
    fn quiet(&self, value: &Value) -> Quiet {
        Quiet::when(*value == Value::Micros(0), "hand packets on as they come")
    }
    fn set(&self, _: &SysRoot, target: &Target, wanted: &str) -> Writes {
        one(path(&target.to_string()), (number(wanted.trim_end_matches(" µs"))? * 1000).to_string())
    }
    fn change(&self, _: &SysRoot, targets: &[Target]) -> String {
        echo_each("0", targets, path)
    }
}

fn path(interface: &str) -> String {
    format!("/sys/class/net/{interface}/gro_flush_timeout")
}
