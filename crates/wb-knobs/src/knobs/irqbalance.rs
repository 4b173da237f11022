use wb_sys::SysRoot;

use crate::counters;
use crate::knob::{Assessment, Knob, KnobDescription, KnobValue};
use crate::target::KnobTarget;
use crate::unsupported::Unsupported;
use crate::writes::{KnobWrites, command, parse_switch, shell};

/// Whether the irqbalance daemon is running.
pub struct Irqbalance;

impl Knob for Irqbalance {
    fn description(&self) -> &KnobDescription {
        &KnobDescription {
            name: "irqbalance",
            why: "interrupts move to other CPUs while measuring, including the measured ones",
            evidence: "irqbalance(1): it moves interrupts according to the load, by default every 10 s; samples before and after a move differ",
            unsupported_reason: "processes are not visible here",
        }
    }
    fn read(&self, sys: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        if sys.numbered_entries("/proc", "").is_empty() {
            Err(self.unsupported())
        } else {
            Ok(KnobValue::Switch(counters::is_running(sys, "irqbalance")))
        }
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        Assessment::quiet_if(*value == KnobValue::Switch(false), "leave interrupts where they are while measuring")
    }
    fn check_value(&self, value: &str) -> Result<(), Unsupported> {
        parse_switch(value).map(drop)
    }
    fn writes(&self, sys: &SysRoot, _: &KnobTarget, value: &str) -> KnobWrites {
        let read = shell("systemctl is-active --quiet irqbalance && echo on || echo off", &[]);
        let write = shell("case $1 in on) systemctl start irqbalance;; *) systemctl stop irqbalance;; esac", &["{}"]);
        let state = if parse_switch(value)? { "on\n" } else { "off\n" };
        command(sys, "irqbalance", "systemctl", [read, write], state.to_owned())
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        "sudo systemctl stop irqbalance".to_owned()
    }
}
