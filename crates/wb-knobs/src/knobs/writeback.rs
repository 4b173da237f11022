use wb_model::Bytes;
use wb_sys::{SysRoot, facts};

use crate::file_knob::{FileFormat, FileKnob};
use crate::knob::{Assessment, Knob, KnobDescription, KnobValue};
use crate::shell_commands::sysctl;
use crate::target::{self, KnobTarget};
use crate::unsupported::Unsupported;
use crate::writes::{KnobWrites, command, invalid, parse_size, shell};

/// The amount of dirty memory at which writers are blocked.
pub struct DirtyLimit;

/// The amount that a disk with 200 MB/s writes in the five seconds of a sample.
const MAX_QUIET_DIRTY: Bytes = Bytes(1 << 30);

impl Knob for DirtyLimit {
    fn description(&self) -> &KnobDescription {
        &KnobDescription {
            name: "dirty-limit",
            why: "data that one sample writes to memory reaches the disk during another, and a full cache suddenly blocks writers",
            evidence: "kernel documentation, vm.dirty_ratio: by default 20 % of available memory may be dirty for up to 30 s, which is 12 GiB on a machine with 64 GiB",
            unsupported_reason: "the kernel does not report its writeback limits",
        }
    }
    fn read(&self, sys: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        let bytes: u64 = sys.number("/proc/sys/vm/dirty_bytes").unwrap_or(0);
        if bytes > 0 {
            return Ok(KnobValue::Bytes(Bytes(bytes)));
        }
        let percent: u64 = sys.number("/proc/sys/vm/dirty_ratio")?;
        // A share of what changes all the time: to whole MiB.
        let limit = facts::memory::available(sys).0 / 100 * percent.min(100);
        Ok(KnobValue::Bytes(Bytes(limit >> 20 << 20)))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        match value {
            KnobValue::Bytes(limit) => Assessment::quiet_if(
                *limit <= MAX_QUIET_DIRTY,
                "limit dirty memory to the amount that the disk writes in a sample",
            ),
            _ => Assessment::UNEXPECTED_VALUE,
        }
    }
    fn check_value(&self, value: &str) -> Result<(), Unsupported> {
        parse_size(value).map(drop)
    }
    fn writes(&self, sys: &SysRoot, _: &KnobTarget, value: &str) -> KnobWrites {
        let Bytes(limit) = parse_size(value)?;
        let minimum = 2 * rustix::param::page_size() as u64;
        if limit < minimum {
            let expected = format!("at least {}, which is two memory pages", KnobValue::Bytes(Bytes(minimum)));
            return Err(invalid(self.name(), value, &expected));
        }
        // One of each pair is zero: writing the other sets it to zero, and the kernel does not accept a zero.
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
        // Background writeback starts at a quarter of the limit.
        command(sys, "dirty limits", "sh", [read, write], format!("0 {} 0 {limit}\n", limit / 4))
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        sysctl("vm.dirty_background_bytes=67108864 vm.dirty_bytes=268435456")
    }
}

const INTERVAL_PATH: &str = "/proc/sys/vm/dirty_writeback_centisecs";
const EXPIRY_PATH: &str = "/proc/sys/vm/dirty_expire_centisecs";

/// How often the kernel looks for dirty pages to write.
pub const WRITEBACK_INTERVAL: FileKnob = FileKnob {
    description: KnobDescription {
        name: "writeback-interval",
        why: "a thread wakes up at this interval and writes old dirty pages, whichever sample is running",
        evidence: "kernel documentation, vm.dirty_writeback_centisecs: 5 s by default; 0 disables the thread, and data then stays in memory until it is full or synced",
        unsupported_reason: "the kernel does not report its writeback interval",
    },
    path: INTERVAL_PATH,
    format: FileFormat::Centiseconds,
    targets: |sys| target::system_with(sys, INTERVAL_PATH),
    assess: |value| match value {
        KnobValue::Millis(0) => Assessment::Unknown { reason: "written data never reaches the disk by itself" },
        _ => Assessment::Quiet,
    },
    suggestion: "500",
    dependents: None,
};

/// How long dirty pages may stay in memory.
pub const WRITEBACK_EXPIRY: FileKnob = FileKnob {
    description: KnobDescription {
        name: "writeback-expiry",
        why: "data that a sample writes reaches the disk after this time, during another sample",
        evidence: "kernel documentation, vm.dirty_expire_centisecs: 30 s by default, the length of several samples",
        unsupported_reason: "the kernel does not report its writeback expiry",
    },
    path: EXPIRY_PATH,
    format: FileFormat::Centiseconds,
    targets: |sys| target::system_with(sys, EXPIRY_PATH),
    assess: |value| match value {
        KnobValue::Millis(_) => Assessment::Quiet,
        _ => Assessment::UNEXPECTED_VALUE,
    },
    suggestion: "3000",
    dependents: None,
};
