//! How deep CPUs sleep.

use wb_sys::SysRoot;

use crate::knob::{Assessment, Knob, KnobValue, Unsupported};
use crate::target::{self, KnobTarget};
use crate::writes::{KnobWrite, KnobWrites, parse_number};

/// How long the deepest idle state that may be entered takes to be left.
pub struct IdleStates;

/// A request for quick waking that some process holds, in µs, as a 32-bit number.
const CPU_DMA_LATENCY: &str = "/dev/cpu_dma_latency";

/// Waking within this is below what a system call and a context switch take together.
const MAX_QUIET_LATENCY_US: u64 = 10;

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
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        let has = |cpu: &KnobTarget| !sys.numbered_entries(folder(cpu), "state").is_empty();
        target::cpus(sys).into_iter().filter(has).collect()
    }
    fn unsupported_reason(&self) -> &'static str {
        "the kernel shows no idle state, as is usual in a virtual machine; the host decides how deep it sleeps"
    }
    fn read(&self, sys: &SysRoot, target: &KnobTarget) -> Result<KnobValue, Unsupported> {
        let folder = folder(target);
        let state = |index: u32| {
            let disabled = sys.number::<u8>(format!("{folder}/state{index}/disable")).is_ok_and(|flag| flag != 0);
            sys.number::<u64>(format!("{folder}/state{index}/latency")).map(|micros| if disabled { 0 } else { micros })
        };
        let states = sys.numbered_entries(&folder, "state");
        let latencies = states.into_iter().map(state).collect::<Result<Vec<u64>, _>>()?;
        let bound = requested_latency(sys).unwrap_or(u64::MAX);
        Ok(KnobValue::Micros(latencies.into_iter().filter(|micros| *micros <= bound).max().unwrap_or(0)))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        match value {
            KnobValue::Micros(micros) => {
                Assessment::when(*micros <= MAX_QUIET_LATENCY_US, "allow only states that are left within 10 µs")
            }
            _ => Assessment::UNEXPECTED_VALUE,
        }
    }
    fn writes(&self, sys: &SysRoot, target: &KnobTarget, wanted: &str) -> KnobWrites {
        let folder = folder(target);
        let most = parse_number(self.name(), wanted.trim_end_matches(" µs"), 0..=i64::MAX)?.unsigned_abs();
        let state = |index: u32| {
            let micros: u64 = sys.number(format!("{folder}/state{index}/latency"))?;
            let disable = if micros > most { "1" } else { "0" };
            Ok(KnobWrite::setting(format!("{folder}/state{index}/disable"), disable))
        };
        sys.numbered_entries(&folder, "state").into_iter().map(state).collect()
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        format!("sudo cpupower idle-set --disable-by-latency {}", MAX_QUIET_LATENCY_US + 1)
    }
}

fn folder(cpu: &KnobTarget) -> String {
    format!("/sys/devices/system/cpu/{cpu}/cpuidle")
}

/// The latency that is asked for, where it may be read.
fn requested_latency(sys: &SysRoot) -> Option<u64> {
    let bytes = sys.bytes(CPU_DMA_LATENCY).ok()?;
    u64::try_from(i32::from_ne_bytes(bytes.try_into().ok()?)).ok()
}
