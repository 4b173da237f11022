//! Request queues of disks: scheduler, writeback throttling, depth and read-ahead.

use wb_model::Bytes;

use crate::dependents::queue_settings;
use crate::file_knob::{FileFormat, FileKnob};
use crate::knob::{Assessment, KnobDescription, KnobValue};
use crate::target;

const NO_DISK: &str = "no disks: only memory, loop and container devices";

pub const IO_SCHEDULER: FileKnob = FileKnob {
    description: KnobDescription {
        name: "io-scheduler",
        why: "reorders and delays requests; changes latency tails and the meaning of iodepth",
        evidence: "Ren et al. (ICPE 2024) measured Linux's schedulers on NVMe: each costs CPU time and locking on every request, and limits the rate before the device does",
        unsupported_reason: NO_DISK,
    },
    path: "/sys/block/{}/queue/scheduler",
    format: FileFormat::SelectedOption { known: &[] },
    targets: target::disks,
    assess: |value| {
        Assessment::quiet_if(*value == KnobValue::Choice("none".into()), "pass requests to the device as they arrive")
    },
    suggestion: "none",
    dependents: Some(|sys, disk| queue_settings(sys, &disk.to_string())),
};

/// Writeback throttling: background writes are delayed when reads become slow.
pub const WRITE_THROTTLING: FileKnob = FileKnob {
    description: KnobDescription {
        name: "wbt",
        why: "buffered writes are throttled by the latency of earlier reads, so that their rate depends on the past",
        evidence: "kernel documentation, ABI sysfs-block: wbt_lat_usec is the target read latency, by default 2 ms on solid-state and 75 ms on rotating disks; 0 is off",
        unsupported_reason: NO_DISK,
    },
    path: "/sys/block/{}/queue/wbt_lat_usec",
    // The kernel reports -1 or an error where the device is not throttled at all, and accepts -1 for its own default,
    // which it then reports.
    format: FileFormat::Micros(1),
    targets: target::disks,
    assess: |value| Assessment::quiet_if(*value == KnobValue::Micros(0), "do not throttle writes while measuring"),
    suggestion: "0",
    dependents: None,
};

/// The highest queue depth of common tests.
const COMMON_QUEUE_DEPTH: i64 = 64;
/// The minimum, to which the kernel raises lower values (`BLKDEV_MIN_RQ` of its linux/blkdev.h).
const MIN_REQUESTS: i64 = 4;

pub const NR_REQUESTS: FileKnob = FileKnob {
    description: KnobDescription {
        name: "nr-requests",
        why: "where a test keeps more requests in flight, its latency includes the wait for a free one",
        evidence: "kernel documentation, ABI sysfs-block: submitters sleep when nr_requests are allocated; devices with one short queue have 31 or 32 by default",
        unsupported_reason: NO_DISK,
    },
    path: "/sys/block/{}/queue/nr_requests",
    format: FileFormat::Number(MIN_REQUESTS..=u32::MAX as i64),
    targets: target::disks,
    assess: |value| match value {
        KnobValue::Number(COMMON_QUEUE_DEPTH..) => Assessment::Quiet,
        _ => Assessment::Unknown { reason: "a test with more in flight also measures the wait for a free request" },
    },
    suggestion: "256",
    dependents: Some(|sys, disk| queue_settings(sys, &disk.to_string())),
};

/// The largest quiet read-ahead size: four times the kernel's default.
const MAX_QUIET_READ_AHEAD: Bytes = Bytes(512 << 10);

pub const READ_AHEAD: FileKnob = FileKnob {
    description: KnobDescription {
        name: "read-ahead",
        why: "it changes the speed of buffered reads independently of the device",
        evidence: "kernel documentation, ABI sysfs-block: read_ahead_kb is 128 by default; it makes small sequential reads large, and has no effect on direct ones",
        unsupported_reason: NO_DISK,
    },
    path: "/sys/block/{}/queue/read_ahead_kb",
    format: FileFormat::Kibibytes,
    targets: target::disks,
    assess: |value| match value {
        KnobValue::Bytes(ahead) if *ahead <= MAX_QUIET_READ_AHEAD => Assessment::Quiet,
        _ => Assessment::Unknown {
            reason: "far above the default of 128 KiB: buffered reads depend on it more than on the disk",
        },
    },
    suggestion: "128",
    dependents: None,
};
