//! Who moves interrupts.

use wb_sys::SysRoot;

use crate::knob::{Knob, Quiet, Unsupported, Value};
use crate::moment;
use crate::set::{Writes, command, shell, switch};
use crate::target::Target;

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
    fn targets(&self, _: &SysRoot) -> Vec<Target> {
        vec![Target::System]
    }
    fn absent(&self) -> &'static str {
        "processes cannot be seen here"
    }
    fn read(&self, sys: &SysRoot, _: &Target) -> Result<Value, Unsupported> {
        match sys.numbered("/proc", "").is_empty() {
            true => Err(Unsupported(self.absent().to_owned())),
            false => Ok(Value::Switch(moment::runs(sys, "irqbalance"))),
        }
    }
    fn quiet(&self, value: &Value) -> Quiet {
        Quiet::when(*value == Value::Switch(false), "leave interrupts where they are while measuring")
    }
    fn set(&self, sys: &SysRoot, _: &Target, wanted: &str) -> Writes {
        let read = shell("systemctl is-active --quiet irqbalance && echo on || echo off", &[]);
        let write = shell("case $1 in on) systemctl start irqbalance;; *) systemctl stop irqbalance;; esac", &["{}"]);
        let state = if switch(wanted)? { "on\n" } else { "off\n" };
        command(sys, "irqbalance", "systemctl", [read, write], state.to_owned())
    }
    fn change(&self, _: &SysRoot, _: &[Target]) -> String {
        "sudo systemctl stop irqbalance".to_owned()
    }
}
