//! How requests reach a disk.

use wb_model::Bytes;
use wb_sys::SysRoot;
use wb_sys::environment::memory::selected_option;

use crate::dependents::of_queue;
use crate::knob::{Assessment, Knob, KnobValue, Unsupported};
use crate::shell_commands::echo_each;
use crate::target::{self, KnobTarget};
use crate::writes::{KnobWrites, choice, invalid, number_in, parse_size, setting_write};

const NO_DISK: &str = "there is no disk here, only memory, loops and what a container was given";

fn path(disk: &str, name: &str) -> String {
    format!("/sys/block/{disk}/queue/{name}")
}

fn read_number(sys: &SysRoot, disk: &KnobTarget, name: &str) -> Result<u64, Unsupported> {
    Ok(sys.number(path(&disk.to_string(), name))?)
}

/// What orders requests.
pub struct IoScheduler;

impl Knob for IoScheduler {
    fn name(&self) -> &'static str {
        "io-scheduler"
    }
    fn why(&self) -> &'static str {
        "reorders and delays requests; changes latency tails and what iodepth means"
    }
    fn evidence(&self) -> &'static str {
        "Ren et al. (ICPE 2024) measured Linux' schedulers on NVMe: each costs CPU time and locks on every request, and bounds the rate before the device does"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        target::disks(sys)
    }
    fn unsupported_reason(&self) -> &'static str {
        NO_DISK
    }
    fn read(&self, sys: &SysRoot, target: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Ok(KnobValue::Choice(selected_option(&sys.text(path(&target.to_string(), "scheduler"))?).to_owned()))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        Assessment::when(*value == KnobValue::Choice("none".into()), "hand requests to the device as they come")
    }
    fn writes(&self, sys: &SysRoot, target: &KnobTarget, wanted: &str) -> KnobWrites {
        let path = path(&target.to_string(), "scheduler");
        choice(sys, &path, &path, wanted)
    }
    fn shell_command(&self, _: &SysRoot, targets: &[KnobTarget]) -> String {
        echo_each("none", targets, |disk| path(disk, "scheduler"))
    }
    fn dependents(&self, sys: &SysRoot, target: &KnobTarget) -> Vec<String> {
        of_queue(sys, &target.to_string())
    }
}

/// Whether background writes are held back when reads become slow.
pub struct WriteThrottling;

impl Knob for WriteThrottling {
    fn name(&self) -> &'static str {
        "wbt"
    }
    fn why(&self) -> &'static str {
        "buffered writes are held back by what reads were seen to take, so that their rate depends on the past"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, ABI sysfs-block: wbt_lat_usec is the read latency aimed at, 2 ms on solid-state and 75 ms on turning disks by default, 0 is off"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        target::disks(sys)
    }
    fn unsupported_reason(&self) -> &'static str {
        NO_DISK
    }
    fn read(&self, sys: &SysRoot, target: &KnobTarget) -> Result<KnobValue, Unsupported> {
        // The kernel says -1 or refuses where the device is not throttled at all.
        let micros: i64 = sys.number(path(&target.to_string(), "wbt_lat_usec"))?;
        Ok(KnobValue::Micros(u64::try_from(micros).unwrap_or(0)))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        Assessment::when(*value == KnobValue::Micros(0), "let writes run while measuring")
    }
    fn writes(&self, _: &SysRoot, target: &KnobTarget, wanted: &str) -> KnobWrites {
        // The kernel takes -1 for its own default, which it then shows, and counts in nanoseconds.
        let range = 0..=i64::MAX / 1000;
        number_in(path(&target.to_string(), "wbt_lat_usec"), self.name(), wanted.trim_end_matches(" µs"), range)
    }
    fn shell_command(&self, _: &SysRoot, targets: &[KnobTarget]) -> String {
        echo_each("0", targets, |disk| path(disk, "wbt_lat_usec"))
    }
}

/// How many requests may wait.
pub struct NrRequests;

/// The most that common tests keep in flight.
const COMMON_QUEUE_DEPTH: i64 = 64;
/// What the kernel makes of fewer (`BLKDEV_MIN_RQ` of its linux/blkdev.h).
const MIN_REQUESTS: i64 = 4;

impl Knob for NrRequests {
    fn name(&self) -> &'static str {
        "nr-requests"
    }
    fn why(&self) -> &'static str {
        "where fewer may wait than a test keeps in flight, its latency is that of waiting to be let in"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, ABI sysfs-block: submitters sleep when nr_requests are allocated; devices of one short queue have 31 or 32 by default"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        target::disks(sys)
    }
    fn unsupported_reason(&self) -> &'static str {
        NO_DISK
    }
    fn read(&self, sys: &SysRoot, target: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Ok(KnobValue::Number(i64::try_from(read_number(sys, target, "nr_requests")?).unwrap_or(i64::MAX)))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        match value {
            KnobValue::Number(COMMON_QUEUE_DEPTH..) => Assessment::Yes,
            _ => Assessment::Unknown {
                reason: "a test with more in flight measures the wait for a free request as well",
            },
        }
    }
    fn writes(&self, _: &SysRoot, target: &KnobTarget, wanted: &str) -> KnobWrites {
        number_in(path(&target.to_string(), "nr_requests"), self.name(), wanted, MIN_REQUESTS..=u32::MAX.into())
    }
    fn shell_command(&self, _: &SysRoot, targets: &[KnobTarget]) -> String {
        echo_each("256", targets, |disk| path(disk, "nr_requests"))
    }
    fn dependents(&self, sys: &SysRoot, target: &KnobTarget) -> Vec<String> {
        of_queue(sys, &target.to_string())
    }
}

/// How much is read ahead of sequential readers.
pub struct ReadAhead;

/// Four times the kernel's default.
const MAX_QUIET_READ_AHEAD: Bytes = Bytes(512 << 10);

impl Knob for ReadAhead {
    fn name(&self) -> &'static str {
        "read-ahead"
    }
    fn why(&self) -> &'static str {
        "buffered reads are faster or slower by it, whatever the device does"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, ABI sysfs-block: read_ahead_kb is 128 by default; it makes small sequential reads large, and is without effect on direct ones"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        target::disks(sys)
    }
    fn unsupported_reason(&self) -> &'static str {
        NO_DISK
    }
    fn read(&self, sys: &SysRoot, target: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Ok(KnobValue::Bytes(Bytes(read_number(sys, target, "read_ahead_kb")?.saturating_mul(1024))))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        match value {
            KnobValue::Bytes(ahead) if *ahead <= MAX_QUIET_READ_AHEAD => Assessment::Yes,
            _ => Assessment::Unknown {
                reason: "far above the default of 128 KiB: buffered reads measure it more than the disk",
            },
        }
    }
    fn writes(&self, _: &SysRoot, target: &KnobTarget, wanted: &str) -> KnobWrites {
        match parse_size(wanted)?.0 {
            bytes if bytes % 1024 == 0 => {
                setting_write(path(&target.to_string(), "read_ahead_kb"), (bytes >> 10).to_string())
            }
            _ => Err(invalid(self.name(), wanted, "whole KiB, with their unit: `128k`")),
        }
    }
    fn shell_command(&self, _: &SysRoot, targets: &[KnobTarget]) -> String {
        echo_each("128", targets, |disk| path(disk, "read_ahead_kb"))
    }
}
