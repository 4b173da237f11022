//! How long the kernel holds received packets.

use wb_sys::SysRoot;

use crate::change::echo_each;
use crate::knob::{Knob, Quiet, Unsupported, Value};
use crate::set::{Writes, number, number_in, one};
use crate::target::{self, Target};

const NO_DEVICE: &str = "no network interface has a device behind it";

/// How long received packets are held to be joined.
pub struct FlushTimeout;

impl Knob for FlushTimeout {
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
        Ok(Value::Micros(sys.number::<u64>(path(&target.to_string(), TIMEOUT))?.div_ceil(1000)))
    }
    fn quiet(&self, value: &Value) -> Quiet {
        Quiet::when(*value == Value::Micros(0), "hand packets on as they come")
    }
    fn set(&self, _: &SysRoot, target: &Target, wanted: &str) -> Writes {
        let micros = number(self.name(), wanted.trim_end_matches(" µs"), 0..=i64::MAX / 1000)?;
        one(path(&target.to_string(), TIMEOUT), (micros * 1000).to_string())
    }
    fn change(&self, _: &SysRoot, targets: &[Target]) -> String {
        echo_each("0", targets, |it| path(it, TIMEOUT))
    }
}

/// How often an interface is polled again before it interrupts again.
pub struct DeferInterrupts;

impl Knob for DeferInterrupts {
    fn name(&self) -> &'static str {
        "napi-defer-hard-irqs"
    }
    fn why(&self) -> &'static str {
        "an interface that is polled for a while after it fell silent interrupts less, and hands packets on later"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, NAPI: after so many polls without a packet interrupts are on again, each gro_flush_timeout apart; 0, the default, is at once"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<Target> {
        target::interfaces(sys)
    }
    fn absent(&self) -> &'static str {
        NO_DEVICE
    }
    fn read(&self, sys: &SysRoot, target: &Target) -> Result<Value, Unsupported> {
        Ok(Value::Number(sys.number(path(&target.to_string(), DEFER))?))
    }
    fn quiet(&self, value: &Value) -> Quiet {
        Quiet::when(*value == Value::Number(0), "interrupt as soon as packets come")
    }
    fn set(&self, _: &SysRoot, target: &Target, wanted: &str) -> Writes {
        number_in(path(&target.to_string(), DEFER), self.name(), wanted, 0..=i32::MAX.into())
    }
    fn change(&self, _: &SysRoot, targets: &[Target]) -> String {
        echo_each("0", targets, |it| path(it, DEFER))
    }
}

const TIMEOUT: &str = "gro_flush_timeout";
const DEFER: &str = "napi_defer_hard_irqs";

fn path(interface: &str, file: &str) -> String {
    format!("/sys/class/net/{interface}/{file}")
}
