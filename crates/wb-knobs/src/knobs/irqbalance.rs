//! Who moves interrupts.

use wb_sys::SysRoot;

use crate::counters;
use crate::knob::{Assessment, Knob, KnobValue, Unsupported};
use crate::target::KnobTarget;
use crate::writes::{KnobWrites, command, parse_switch, shell};

/// Whether the daemon irqbalance runs.
pub struct Irqbalance;

impl Knob for Irqbalance {
    fn name(&self) -> &'static str {
        "irqbalance"
    }
    fn why(&self) -> &'static str {
        "interrupts move to other CPUs while measuring, also to those that are measured"
    }
    fn evidence(&self) -> &'static str {
        "irqbalance(1): it looks every 10 s by default and moves interrupts after the load it saw; samples before and after a move differ"
    }
    fn targets(&self, _: &SysRoot) -> Vec<KnobTarget> {
        vec![KnobTarget::System]
    }
    fn unsupported_reason(&self) -> &'static str {
        "processes cannot be seen here"
    }
    fn read(&self, sys: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        match sys.numbered_entries("/proc", "").is_empty() {
            true => Err(Unsupported(self.unsupported_reason().to_owned())),
            false => Ok(KnobValue::Switch(counters::is_running(sys, "irqbalance"))),
        }
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        Assessment::when(*value == KnobValue::Switch(false), "leave interrupts where they are while measuring")
    }
    fn writes(&self, sys: &SysRoot, _: &KnobTarget, wanted: &str) -> KnobWrites {
        let read = shell("systemctl is-active --quiet irqbalance && echo on || echo off", &[]);
        let write = shell("case $1 in on) systemctl start irqbalance;; *) systemctl stop irqbalance;; esac", &["{}"]);
        let state = if parse_switch(wanted)? { "on\n" } else { "off\n" };
        command(sys, "irqbalance", "systemctl", [read, write], state.to_owned())
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        "sudo systemctl stop irqbalance".to_owned()
    }
}
