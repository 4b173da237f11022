//! How requests reach a disk.

use wb_model::Bytes;
use wb_sys::SysRoot;
use wb_sys::environment::memory::chosen;

use crate::change::echo_each;
use crate::dependents::of_queue;
use crate::knob::{Knob, Quiet, Unsupported, Value};
use crate::set::{Writes, choice, invalid, number_in, one, size};
use crate::target::{self, Target};

const NO_DISK: &str = "there is no disk here, only memory, loops and what a container was given";

fn path(disk: &str, name: &str) -> String {
    format!("/sys/block/{disk}/queue/{name}")
}

fn shown(sys: &SysRoot, disk: &Target, name: &str) -> Result<u64, Unsupported> {
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
    fn targets(&self, sys: &SysRoot) -> Vec<Target> {
        target::disks(sys)
    }
    fn absent(&self) -> &'static str {
        NO_DISK
    }
    fn read(&self, sys: &SysRoot, target: &Target) -> Result<Value, Unsupported> {
        Ok(Value::Choice(chosen(&sys.text(path(&target.to_string(), "scheduler"))?).to_owned()))
    }
    fn quiet(&self, value: &Value) -> Quiet {
        Quiet::when(*value == Value::Choice("none".into()), "hand requests to the device as they come")
    }
    fn set(&self, sys: &SysRoot, target: &Target, wanted: &str) -> Writes {
        let path = path(&target.to_string(), "scheduler");
        choice(sys, &path, &path, wanted)
    }
    fn change(&self, _: &SysRoot, targets: &[Target]) -> String {
        echo_each("none", targets, |disk| path(disk, "scheduler"))
    }
    fn dependents(&self, sys: &SysRoot, target: &Target) -> Vec<String> {
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
    fn targets(&self, sys: &SysRoot) -> Vec<Target> {
        target::disks(sys)
    }
    fn absent(&self) -> &'static str {
        NO_DISK
    }
    fn read(&self, sys: &SysRoot, target: &Target) -> Result<Value, Unsupported> {
        // The kernel says -1 or refuses where the device is not throttled at all.
        let micros: i64 = sys.number(path(&target.to_string(), "wbt_lat_usec"))?;
        Ok(Value::Micros(u64::try_from(micros).unwrap_or(0)))
    }
    fn quiet(&self, value: &Value) -> Quiet {
        Quiet::when(*value == Value::Micros(0), "let writes run while measuring")
    }
    fn set(&self, _: &SysRoot, target: &Target, wanted: &str) -> Writes {
        // The kernel takes -1 for its own default, which it then shows, and counts in nanoseconds.
        let range = 0..=i64::MAX / 1000;
        number_in(path(&target.to_string(), "wbt_lat_usec"), self.name(), wanted.trim_end_matches(" µs"), range)
    }
    fn change(&self, _: &SysRoot, targets: &[Target]) -> String {
        echo_each("0", targets, |disk| path(disk, "wbt_lat_usec"))
    }
}

/// How many requests may wait.
pub struct Requests;

/// The most that common tests keep in flight.
const DEEP: i64 = 64;
/// What the kernel makes of fewer (`BLKDEV_MIN_RQ` of its linux/blkdev.h).
const FEWEST: i64 = 4;

impl Knob for Requests {
    fn name(&self) -> &'static str {
        "nr-requests"
    }
    fn why(&self) -> &'static str {
        "where fewer may wait than a test keeps in flight, its latency is that of waiting to be let in"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, ABI sysfs-block: submitters sleep when nr_requests are allocated; devices of one short queue have 31 or 32 by default"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<Target> {
        target::disks(sys)
    }
    fn absent(&self) -> &'static str {
        NO_DISK
    }
    fn read(&self, sys: &SysRoot, target: &Target) -> Result<Value, Unsupported> {
        Ok(Value::Number(i64::try_from(shown(sys, target, "nr_requests")?).unwrap_or(i64::MAX)))
    }
    fn quiet(&self, value: &Value) -> Quiet {
        match value {
            Value::Number(DEEP..) => Quiet::Yes,
            _ => Quiet::Unknown { reason: "a test with more in flight measures the wait for a free request as well" },
        }
    }
    fn set(&self, _: &SysRoot, target: &Target, wanted: &str) -> Writes {
        number_in(path(&target.to_string(), "nr_requests"), self.name(), wanted, FEWEST..=u32::MAX.into())
    }
    fn change(&self, _: &SysRoot, targets: &[Target]) -> String {
        echo_each("256", targets, |disk| path(disk, "nr_requests"))
    }
    fn dependents(&self, sys: &SysRoot, target: &Target) -> Vec<String> {
        of_queue(sys, &target.to_string())
    }
}

/// How much is read ahead of sequential readers.
pub struct ReadAhead;

/// Four times the kernel's default.
const FAR: Bytes = Bytes(512 << 10);

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
    fn targets(&self, sys: &SysRoot) -> Vec<Target> {
        target::disks(sys)
    }
    fn absent(&self) -> &'static str {
        NO_DISK
    }
    fn read(&self, sys: &SysRoot, target: &Target) -> Result<Value, Unsupported> {
        Ok(Value::Bytes(Bytes(shown(sys, target, "read_ahead_kb")?.saturating_mul(1024))))
    }
    fn quiet(&self, value: &Value) -> Quiet {
        match value {
            Value::Bytes(ahead) if *ahead <= FAR => Quiet::Yes,
            _ => Quiet::Unknown {
                reason: "far above the default of 128 KiB: buffered reads measure it more than the disk",
            },
        }
    }
    fn set(&self, _: &SysRoot, target: &Target, wanted: &str) -> Writes {
        match size(wanted)?.0 {
            bytes if bytes % 1024 == 0 => one(path(&target.to_string(), "read_ahead_kb"), (bytes >> 10).to_string()),
            _ => Err(invalid(self.name(), wanted, "whole KiB, with their unit: `128k`")),
        }
    }
    fn change(&self, _: &SysRoot, targets: &[Target]) -> String {
        echo_each("128", targets, |disk| path(disk, "read_ahead_kb"))
    }
}
