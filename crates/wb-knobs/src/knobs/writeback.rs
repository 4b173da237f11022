//! How much may be written to memory only.

use wb_model::Bytes;
use wb_sys::{SysRoot, facts};

use crate::change::sysctl;
use crate::knob::{Knob, Quiet, Unsupported, Value};
use crate::set::{Writes, command, shell, size};
use crate::target::Target;

/// How much may wait to be written before writers must wait themselves.
pub struct Dirty;

/// What a disk of 200 MB/s writes in the five seconds of a sample.
const MUCH: Bytes = Bytes(1 << 30);

impl Knob for Dirty {
    fn name(&self) -> &'static str {
        "dirty-limit"
    }
    fn why(&self) -> &'static str {
        "what one sample writes into memory reaches the disk during another, and a full cache stops writers suddenly"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, vm.dirty_ratio: by default 20 % of available memory may wait for up to 30 s, which is 12 GiB on a machine of 64 GiB"
    }
    fn targets(&self, _: &SysRoot) -> Vec<Target> {
        vec![Target::System]
    }
    fn absent(&self) -> &'static str {
        "the kernel does not show its limits of writing back"
    }
    fn read(&self, sys: &SysRoot, _: &Target) -> Result<Value, Unsupported> {
        let bytes: u64 = sys.number("/proc/sys/vm/dirty_bytes").unwrap_or(0);
        if bytes > 0 {
            return Ok(Value::Bytes(Bytes(bytes)));
        }
        let percent: u64 = sys.number("/proc/sys/vm/dirty_ratio")?;
        Ok(Value::Bytes(Bytes(facts::memory::available(sys).0 / 100 * percent.min(100))))
    }
    fn quiet(&self, value: &Value) -> Quiet {
        match value {
            Value::Bytes(limit) => Quiet::when(*limit <= MUCH, "let no more wait than the disk writes in a sample"),
            _ => Quiet::STRANGE,
        }
    }
    fn set(&self, sys: &SysRoot, _: &Target, wanted: &str) -> Writes {
        let Bytes(most) = size(wanted)?;
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
    fn change(&self, _: &SysRoot, _: &[Target]) -> String {
        sysctl("vm.dirty_background_bytes=67108864 vm.dirty_bytes=268435456")
    }
}
