//! How much may be written to memory only.

use wb_model::Bytes;
use wb_sys::{SysRoot, facts};

use crate::knob::{Assessment, Knob, KnobValue, Unsupported};
use crate::shell_commands::sysctl;
use crate::target::KnobTarget;
use crate::writes::{KnobWrites, command, invalid, parse_number, parse_size, setting_write, shell};

/// How much may wait to be written before writers must wait themselves.
pub struct DirtyLimit;

/// What a disk of 200 MB/s writes in the five seconds of a sample.
const MAX_QUIET_DIRTY: Bytes = Bytes(1 << 30);

impl Knob for DirtyLimit {
    fn name(&self) -> &'static str {
        "dirty-limit"
    }
    fn why(&self) -> &'static str {
        "what one sample writes into memory reaches the disk during another, and a full cache stops writers suddenly"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, vm.dirty_ratio: by default 20 % of available memory may wait for up to 30 s, which is 12 GiB on a machine of 64 GiB"
    }
    fn targets(&self, _: &SysRoot) -> Vec<KnobTarget> {
        vec![KnobTarget::System]
    }
    fn unsupported_reason(&self) -> &'static str {
        "the kernel does not show its limits of writing back"
    }
    fn read(&self, sys: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        let bytes: u64 = sys.number("/proc/sys/vm/dirty_bytes").unwrap_or(0);
        if bytes > 0 {
            return Ok(KnobValue::Bytes(Bytes(bytes)));
        }
        let percent: u64 = sys.number("/proc/sys/vm/dirty_ratio")?;
        Ok(KnobValue::Bytes(Bytes(facts::memory::available(sys).0 / 100 * percent.min(100))))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        match value {
            KnobValue::Bytes(limit) => {
                Assessment::when(*limit <= MAX_QUIET_DIRTY, "let no more wait than the disk writes in a sample")
            }
            _ => Assessment::UNEXPECTED_VALUE,
        }
    }
    fn writes(&self, sys: &SysRoot, _: &KnobTarget, wanted: &str) -> KnobWrites {
        let Bytes(most) = parse_size(wanted)?;
        let least = 2 * rustix::param::page_size() as u64;
        if most < least {
            let expected = format!("at least {}, which is two pages of memory", KnobValue::Bytes(Bytes(least)));
            return Err(invalid(self.name(), wanted, &expected));
        }
        // One of each pair is zero: writing the other makes it so, and the kernel takes no zero.
        let read = shell(
            "cd /proc/sys/vm && echo $(cat dirty_background_ratio dirty_background_bytes dirty_ratio dirty_bytes)",
            &[],
        );
        let write = shell(
            "set -e; set -- $1; cd /proc/sys/vm; \
             if [ $2 = 0 ]; then echo $1 > dirty_background_ratio; else echo $2 > dirty_background_bytes; fi; \
             if [ $4 = 0 ]; then echo $3 > dirty_ratio; else echo $4 > dirty_bytes; fi",
            &["{}"],
        );
        // Writing back begins in the background at a quarter of it.
        command(sys, "dirty limits", "sh", [read, write], format!("0 {} 0 {most}\n", most / 4))
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        sysctl("vm.dirty_background_bytes=67108864 vm.dirty_bytes=268435456")
    }
}

/// How often the kernel looks for what is to be written.
pub struct WritebackInterval;

/// How long written data may stay in memory only.
pub struct WritebackExpiry;

const INTERVAL_PATH: &str = "/proc/sys/vm/dirty_writeback_centisecs";
const EXPIRY_PATH: &str = "/proc/sys/vm/dirty_expire_centisecs";

impl Knob for WritebackInterval {
    fn name(&self) -> &'static str {
        "writeback-interval"
    }
    fn why(&self) -> &'static str {
        "a thread wakes up as often as this says and writes what is old enough, whichever sample runs just then"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, vm.dirty_writeback_centisecs: 5 s by default; 0 wakes nobody up, and what is written then waits until memory is full or somebody asks"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        sys.exists(INTERVAL_PATH).then_some(KnobTarget::System).into_iter().collect()
    }
    fn unsupported_reason(&self) -> &'static str {
        "the kernel does not show how often it writes back"
    }
    fn read(&self, sys: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        millis(sys, INTERVAL_PATH)
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        match value {
            KnobValue::Millis(0) => {
                Assessment::Unknown { reason: "nothing written reaches the disk by itself, be it ever so old" }
            }
            _ => Assessment::Yes,
        }
    }
    fn writes(&self, _: &SysRoot, _: &KnobTarget, wanted: &str) -> KnobWrites {
        centiseconds(INTERVAL_PATH, self.name(), wanted)
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        sysctl("vm.dirty_writeback_centisecs=500")
    }
}

impl Knob for WritebackExpiry {
    fn name(&self) -> &'static str {
        "writeback-expiry"
    }
    fn why(&self) -> &'static str {
        "what a sample writes reaches the disk so much later, during another sample"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, vm.dirty_expire_centisecs: 30 s by default, several samples long"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        sys.exists(EXPIRY_PATH).then_some(KnobTarget::System).into_iter().collect()
    }
    fn unsupported_reason(&self) -> &'static str {
        "the kernel does not show how old written data may become"
    }
    fn read(&self, sys: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        millis(sys, EXPIRY_PATH)
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        match value {
            KnobValue::Millis(_) => Assessment::Yes,
            _ => Assessment::UNEXPECTED_VALUE,
        }
    }
    fn writes(&self, _: &SysRoot, _: &KnobTarget, wanted: &str) -> KnobWrites {
        centiseconds(EXPIRY_PATH, self.name(), wanted)
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        sysctl("vm.dirty_expire_centisecs=3000")
    }
}

fn millis(sys: &SysRoot, path: &str) -> Result<KnobValue, Unsupported> {
    Ok(KnobValue::Millis(sys.number::<u64>(path)?.saturating_mul(10)))
}

/// Milliseconds, as hundredths of a second.
fn centiseconds(path: &str, knob: &str, value: &str) -> KnobWrites {
    /// The kernel counts hundredths of a second in 32 bits.
    const LONGEST: i64 = i32::MAX as i64 * 10;
    let millis = parse_number(knob, value.trim_end_matches("ms").trim_end(), 0..=LONGEST)?;
    match millis % 10 {
        0 => setting_write(path, (millis / 10).to_string()),
        _ => Err(invalid(knob, value, "a multiple of 10 ms, in which the kernel counts")),
    }
}
