//! How deep CPUs sleep.

use wb_sys::SysRoot;

use crate::knob::{Knob, Quiet, Unsupported, Value};
use crate::set::{Write, Writes, number};
use crate::target::{self, Target};

/// How long the deepest idle state that may be entered takes to be left.
pub struct IdleStates;

/// A request for quick waking that some process holds, in µs, as a 32-bit number.
const LATENCY: &str = "/dev/cpu_dma_latency";

/// Waking within this is below what a system call and a context switch take together.
const SHALLOW: u64 = 10;

impl Knob for IdleStates {
    fn name(&self) -> &'static str {
        "idle-states"
    }
    fn why(&self) -> &'static str {
        "a CPU that sleeps deeply answers late and with cold caches; which state is chosen is a guess each time"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, CPU Idle Time Management: drivers state exit latencies from 1 µs (C1) to hundreds (C6 and deeper), paid at every wake-up"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<Target> {
        let has = |cpu: &Target| !sys.numbered(folder(cpu), "state").is_empty();
        target::cpus(sys).into_iter().filter(has).collect()
    }
    fn absent(&self) -> &'static str {
        "the kernel shows no idle state, as is usual in a virtual machine; the host decides how deep it sleeps"
    }
    fn read(&self, sys: &SysRoot, target: &Target) -> Result<Value, Unsupported> {
        let folder = folder(target);
        let state = |index: u32| {
            let disabled = sys.number::<u8>(format!("{folder}/state{index}/disable")).is_ok_and(|flag| flag != 0);
            sys.number::<u64>(format!("{folder}/state{index}/latency")).map(|micros| if disabled { 0 } else { micros })
        };
        let states = sys.numbered(&folder, "state");
        let latencies = states.into_iter().map(state).collect::<Result<Vec<u64>, _>>()?;
        let bound = wanted(sys).unwrap_or(u64::MAX);
        Ok(Value::Micros(latencies.into_iter().filter(|micros| *micros <= bound).max().unwrap_or(0)))
    }
    fn quiet(&self, value: &Value) -> Quiet {
        match value {
            Value::Micros(micros) => Quiet::when(*micros <= SHALLOW, "allow only states that are left within 10 µs"),
            _ => Quiet::STRANGE,
        }
    }
    fn set(&self, sys: &SysRoot, target: &Target, wanted: &str) -> Writes {
        let folder = folder(target);
        let most = number(self.name(), wanted.trim_end_matches(" µs"), 0..=i64::MAX)?.unsigned_abs();
        let state = |index: u32| {
            let micros: u64 = sys.number(format!("{folder}/state{index}/latency"))?;
            let disable = if micros > most { "1" } else { "0" };
            Ok(Write::setting(format!("{folder}/state{index}/disable"), disable))
        };
        sys.numbered(&folder, "state").into_iter().map(state).collect()
    }
    fn change(&self, _: &SysRoot, _: &[Target]) -> String {
        format!("sudo cpupower idle-set --disable-by-latency {}", SHALLOW + 1)
    }
}

fn folder(cpu: &Target) -> String {
    format!("/sys/devices/system/cpu/{cpu}/cpuidle")
}

/// The latency that is asked for, where it may be read.
fn wanted(sys: &SysRoot) -> Option<u64> {
    let bytes = sys.bytes(LATENCY).ok()?;
    u64::try_from(i32::from_ne_bytes(bytes.try_into().ok()?)).ok()
}
