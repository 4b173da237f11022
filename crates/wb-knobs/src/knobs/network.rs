//! Delays of received packets in the kernel (NAPI).

use wb_sys::SysRoot;

use crate::knob::{Assessment, Knob, KnobValue, Unsupported};
use crate::shell_commands::echo_each;
use crate::target::{self, KnobTarget};
use crate::writes::{KnobWrites, number_in, parse_number, setting_write};

const NO_DEVICE: &str = "no network interface is backed by a device";

/// How long received packets are held to be merged (GRO).
pub struct FlushTimeout;

impl Knob for FlushTimeout {
    fn name(&self) -> &'static str {
        "gro-flush-timeout"
    }
    fn why(&self) -> &'static str {
        "received packets wait for others to be merged with, which adds to their latency"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, NAPI: gro_flush_timeout is how long packets are held after a poll, in ns; 0, the default, holds none"
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
        Assessment::when(*value == KnobValue::Micros(0), "deliver packets as they arrive")
    }
    fn writes(&self, _: &SysRoot, target: &KnobTarget, value: &str) -> KnobWrites {
        let micros = parse_number(self.name(), value.trim_end_matches(" µs"), 0..=i64::MAX / 1000)?;
        setting_write(path(&target.to_string(), TIMEOUT), (micros * 1000).to_string())
    }
    fn shell_command(&self, _: &SysRoot, targets: &[KnobTarget]) -> String {
        echo_each("0", targets, |it| path(it, TIMEOUT))
    }
}

/// How often an idle interface is polled before its interrupts are enabled again.
pub struct DeferInterrupts;

impl Knob for DeferInterrupts {
    fn name(&self) -> &'static str {
        "napi-defer-hard-irqs"
    }
    fn why(&self) -> &'static str {
        "an interface that is polled for a while after its last packet interrupts less, and delivers packets later"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, NAPI: after this number of polls without a packet, gro_flush_timeout apart, interrupts are enabled again; 0, the default, enables them at once"
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
        Assessment::when(*value == KnobValue::Number(0), "interrupt as soon as packets arrive")
    }
    fn writes(&self, _: &SysRoot, target: &KnobTarget, value: &str) -> KnobWrites {
        number_in(path(&target.to_string(), DEFER), self.name(), value, 0..=i32::MAX.into())
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
