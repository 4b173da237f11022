//! How long the kernel holds received packets.

use wb_sys::SysRoot;

use crate::knob::{Assessment, Knob, KnobValue, Unsupported};
use crate::shell_commands::echo_each;
use crate::target::{self, KnobTarget};
use crate::writes::{KnobWrites, number_in, parse_number, setting_write};

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
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        target::interfaces(sys)
    }
    fn unsupported_reason(&self) -> &'static str {
        NO_DEVICE
    }
    fn read(&self, sys: &SysRoot, target: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Ok(KnobValue::Micros(sys.number::<u64>(path(&target.to_string(), TIMEOUT))?.div_ceil(1000)))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        Assessment::when(*value == KnobValue::Micros(0), "hand packets on as they come")
    }
    fn writes(&self, _: &SysRoot, target: &KnobTarget, wanted: &str) -> KnobWrites {
        let micros = parse_number(self.name(), wanted.trim_end_matches(" µs"), 0..=i64::MAX / 1000)?;
        setting_write(path(&target.to_string(), TIMEOUT), (micros * 1000).to_string())
    }
    fn shell_command(&self, _: &SysRoot, targets: &[KnobTarget]) -> String {
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
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        target::interfaces(sys)
    }
    fn unsupported_reason(&self) -> &'static str {
        NO_DEVICE
    }
    fn read(&self, sys: &SysRoot, target: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Ok(KnobValue::Number(sys.number(path(&target.to_string(), DEFER))?))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        Assessment::when(*value == KnobValue::Number(0), "interrupt as soon as packets come")
    }
    fn writes(&self, _: &SysRoot, target: &KnobTarget, wanted: &str) -> KnobWrites {
        number_in(path(&target.to_string(), DEFER), self.name(), wanted, 0..=i32::MAX.into())
    }
    fn shell_command(&self, _: &SysRoot, targets: &[KnobTarget]) -> String {
        echo_each("0", targets, |it| path(it, DEFER))
    }
}

const TIMEOUT: &str = "gro_flush_timeout";
const DEFER: &str = "napi_defer_hard_irqs";

fn path(interface: &str, file: &str) -> String {
    format!("/sys/class/net/{interface}/{file}")
}
