use wb_sys::SysRoot;

use crate::knob::{Assessment, Knob, KnobDescription, KnobValue};
use crate::target::{self, KnobTarget};
use crate::unsupported::Unsupported;
use crate::writes::{KnobWrite, KnobWrites, parse_number};

/// The exit latency of the deepest enabled idle state.
pub struct IdleStates;

/// The PM QoS latency requested by processes, in µs, as a 32-bit number.
const CPU_DMA_LATENCY: &str = "/dev/cpu_dma_latency";

/// Highest quiet exit latency, in µs: less than a system call and a context switch take together.
const MAX_QUIET_LATENCY_US: u64 = 10;

impl Knob for IdleStates {
    fn description(&self) -> &KnobDescription {
        &KnobDescription {
            name: "idle-states",
            why: "a CPU in a deep idle state wakes up late and with cold caches; the choice of the state is a guess each time",
            evidence: "kernel documentation, CPU Idle Time Management: drivers report exit latencies from 1 µs (C1) to hundreds (C6 and deeper), paid at every wake-up",
            unsupported_reason: "the kernel has no idle states, as is usual in a virtual machine, where the host selects them",
        }
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        let has = |cpu: &KnobTarget| !sys.numbered_entries(folder(cpu), "state").is_empty();
        target::cpus(sys).into_iter().filter(has).collect()
    }
    fn read(&self, sys: &SysRoot, target: &KnobTarget) -> Result<KnobValue, Unsupported> {
        let folder = folder(target);
        let state = |index: u32| {
            let disabled = sys.number::<u8>(format!("{folder}/state{index}/disable")).is_ok_and(|flag| flag != 0);
            sys.number::<u64>(format!("{folder}/state{index}/latency")).map(|micros| if disabled { 0 } else { micros })
        };
        let states = sys.numbered_entries(&folder, "state");
        let latencies = states.into_iter().map(state).collect::<Result<Vec<u64>, _>>()?;
        let limit = requested_latency(sys).unwrap_or(u64::MAX);
        Ok(KnobValue::Micros(latencies.into_iter().filter(|micros| *micros <= limit).max().unwrap_or(0)))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        match value {
            KnobValue::Micros(micros) => Assessment::quiet_if(
                *micros <= MAX_QUIET_LATENCY_US,
                "allow only states with an exit latency of at most 10 µs",
            ),
            _ => Assessment::UNEXPECTED_VALUE,
        }
    }
    fn check_value(&self, value: &str) -> Result<(), Unsupported> {
        parse_number(self.name(), value.trim_end_matches(" µs"), 0..=i64::MAX).map(drop)
    }
    fn writes(&self, sys: &SysRoot, target: &KnobTarget, value: &str) -> KnobWrites {
        let folder = folder(target);
        let max_latency = parse_number(self.name(), value.trim_end_matches(" µs"), 0..=i64::MAX)?.unsigned_abs();
        let state = |index: u32| {
            let micros: u64 = sys.number(format!("{folder}/state{index}/latency"))?;
            let disable = if micros > max_latency { "1" } else { "0" };
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

fn requested_latency(sys: &SysRoot) -> Option<u64> {
    let bytes = sys.bytes(CPU_DMA_LATENCY).ok()?;
    u64::try_from(i32::from_ne_bytes(bytes.try_into().ok()?)).ok()
}
