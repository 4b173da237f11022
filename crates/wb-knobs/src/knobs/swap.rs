//! Memory that is put on a disk.

use wb_sys::SysRoot;
use wb_sys::environment::memory::swaps;

use crate::change::sysctl;
use crate::knob::{Knob, Quiet, Unsupported, Value};
use crate::set::{Writes, command, number_in, shell, switch};
use crate::target::Target;

/// Whether there is swap.
pub struct Swap;

impl Knob for Swap {
    fn name(&self) -> &'static str {
        "swap"
    }
    fn why(&self) -> &'static str {
        "a page that was put away must be fetched at its next use, in the middle of a sample"
    }
    fn evidence(&self) -> &'static str {
        "device and memory latencies: about 100 µs from a solid-state disk and 10 ms from a turning one, against 0.1 µs from memory"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<Target> {
        sys.exists("/proc/swaps").then_some(Target::System).into_iter().collect()
    }
    fn absent(&self) -> &'static str {
        "the kernel does not show its swap devices"
    }
    fn read(&self, sys: &SysRoot, _: &Target) -> Result<Value, Unsupported> {
        Ok(Value::Switch(!swaps(sys).is_empty()))
    }
    fn quiet(&self, value: &Value) -> Quiet {
        Quiet::when(
            *value == Value::Switch(false),
            "no swap while measuring; a test that does not fit then fails visibly",
        )
    }
    fn set(&self, sys: &SysRoot, _: &Target, wanted: &str) -> Writes {
        if switch(wanted)? {
            return Err(Unsupported("which devices are to be swapped to is for `swapon` to say".to_owned()));
        }
        let read = shell("swapon --show=NAME,PRIO --noheadings --raw", &[]);
        // Each device with the priority it had; a negative one was given by the kernel.
        let write = shell(
            "swapoff --all; printf '%s\\n' \"$1\" | while read -r name priority; do [ -z \"$name\" ] || \
             case $priority in -*) swapon \"$name\";; *) swapon --priority \"$priority\" \"$name\";; esac; done",
            &["{}"],
        );
        command(sys, "swap", "swapon", [read, write], String::new())
    }
    fn change(&self, _: &SysRoot, _: &[Target]) -> String {
        "sudo swapoff --all".to_owned()
    }
}

/// How readily memory of programs is put away in favour of the page cache.
pub struct Swappiness;

/// From here on the kernel rather drops file pages, down to nearly none left.
const RELUCTANT: i64 = 10;

impl Knob for Swappiness {
    fn name(&self) -> &'static str {
        "swappiness"
    }
    fn why(&self) -> &'static str {
        "the page cache of one sample can push memory of the next one's program to disk"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, vm.swappiness: 0 to 200, the cost of swapping against that of rereading files; 60 by default, 1 is nearly never"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<Target> {
        (!swaps(sys).is_empty()).then_some(Target::System).into_iter().collect()
    }
    fn absent(&self) -> &'static str {
        "there is no swap that it could apply to"
    }
    fn read(&self, sys: &SysRoot, _: &Target) -> Result<Value, Unsupported> {
        Ok(Value::Number(sys.number("/proc/sys/vm/swappiness")?))
    }
    fn quiet(&self, value: &Value) -> Quiet {
        match value {
            Value::Number(number) => Quiet::when(*number <= RELUCTANT, "swap only where nothing else helps"),
            _ => Quiet::STRANGE,
        }
    }
    fn set(&self, _: &SysRoot, _: &Target, wanted: &str) -> Writes {
        number_in("/proc/sys/vm/swappiness", wanted)
    }
    fn change(&self, _: &SysRoot, _: &[Target]) -> String {
        sysctl("vm.swappiness=1")
    }
}
