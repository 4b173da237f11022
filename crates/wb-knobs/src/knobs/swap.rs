use wb_sys::SysRoot;
use wb_sys::environment::memory::swaps;
use wb_sys::proc::swaps::{SwapArea, areas};
use wb_sys::proc::unescape;

use crate::file_knob::{FileFormat, FileKnob};
use crate::knob::{Assessment, Knob, KnobDescription, KnobValue};
use crate::target::KnobTarget;
use crate::unsupported::Unsupported;
use crate::writes::{KnobWrites, command, parse_switch, shell};

/// Whether swap is enabled.
pub struct Swap;

impl Knob for Swap {
    fn description(&self) -> &KnobDescription {
        &KnobDescription {
            name: "swap",
            why: "a page that was swapped out must be read back at its next use, in the middle of a sample",
            evidence: "device and memory latencies: about 100 µs from a solid-state disk and 10 ms from a rotating one, against 0.1 µs from memory",
            unsupported_reason: "the kernel does not report its swap devices",
        }
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        sys.exists("/proc/swaps").then_some(KnobTarget::System).into_iter().collect()
    }
    fn read(&self, sys: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Ok(KnobValue::Switch(!swaps(sys).is_empty()))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        Assessment::quiet_if(
            *value == KnobValue::Switch(false),
            "switch swap off while measuring; a test that does not fit into memory then fails visibly",
        )
    }
    fn check_value(&self, value: &str) -> Result<(), Unsupported> {
        parse_switch(value).map(drop)
    }
    fn writes(&self, sys: &SysRoot, _: &KnobTarget, value: &str) -> KnobWrites {
        if parse_switch(value)? {
            return Err(Unsupported("swap can only be switched off: use `swapon` to enable devices".to_owned()));
        }
        let text = sys.text("/proc/swaps")?;
        let areas = in_order(parse(&text)?);
        // Reverting happens in the opposite order.
        let writes = areas.iter().rev().map(|area| swap_off(sys, area)).collect::<Result<Vec<_>, _>>()?;
        Ok(writes.into_iter().flatten().collect())
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        "sudo swapoff --all".to_owned()
    }
}

fn parse(text: &str) -> Result<Vec<SwapArea<'_>>, Unsupported> {
    let malformed_line = |line| Unsupported(format!("invalid line in `/proc/swaps`: `{line}`"));
    areas(text).map(|area| area.map_err(malformed_line)).collect()
}

/// The order in which areas must be enabled to restore their listing and ranking: the order of the listing, but areas
/// with a priority from the kernel are sorted by it.
fn in_order(mut areas: Vec<SwapArea<'_>>) -> Vec<SwapArea<'_>> {
    let mut ranked: Vec<SwapArea> = areas.iter().filter(|area| area.priority < 0).copied().collect();
    ranked.sort_by_key(|area| -area.priority);
    for (slot, area) in areas.iter_mut().filter(|area| area.priority < 0).zip(ranked) {
        *slot = area;
    }
    areas
}

/// The write that disables an area, and enables it again with its priority when it is reverted.
fn swap_off(sys: &SysRoot, area: &SwapArea<'_>) -> KnobWrites {
    if area.name.ends_with("\\040(deleted)") {
        return Err(Unsupported(format!("{} was deleted while in use and could not be enabled again", area.name)));
    }
    let read = shell(
        "while read -r name kind size used priority; do [ \"$name\" != \"$1\" ] || \
         case $priority in -*) echo automatic; exit;; *) echo \"$priority\"; exit;; esac; done < /proc/swaps; echo off",
        &[area.name],
    );
    let write = shell(
        "case $1 in off) swapoff \"$2\";; automatic) swapon \"$2\";; *) swapon --priority \"$1\" \"$2\";; esac",
        &["{}", &unescape(area.name)],
    );
    command(sys, &format!("swapping to {}", unescape(area.name)), "swapon", [read, write], "off\n".to_owned())
}

/// Up to this value the kernel prefers to drop file pages, until hardly any are left.
const MAX_QUIET_SWAPPINESS: i64 = 10;

/// How readily the kernel swaps out memory of programs in favour of the page cache.
pub const SWAPPINESS: FileKnob = FileKnob {
    description: KnobDescription {
        name: "swappiness",
        why: "the page cache of one sample can displace memory of the next one's program to disk",
        evidence: "kernel documentation, vm.swappiness: 0 to 200, the relative cost of swapping and of rereading files; 60 by default, 1 is nearly never",
        unsupported_reason: "no swap device is enabled",
    },
    path: "/proc/sys/vm/swappiness",
    format: FileFormat::Number(0..=200),
    targets: |sys| (!swaps(sys).is_empty()).then_some(KnobTarget::System).into_iter().collect(),
    assess: |value| match value {
        KnobValue::Number(number) => {
            Assessment::quiet_if(*number <= MAX_QUIET_SWAPPINESS, "swap only as a last resort")
        }
        _ => Assessment::UNEXPECTED_VALUE,
    },
    suggestion: "1",
    dependents: None,
};

#[cfg(test)]
mod tests {
    use wb_model::Bytes;

    use super::*;

    #[test]
    fn areas_are_enabled_in_listed_and_ranked_order() {
        let text = "Filename\tType\tSize\tUsed\tPriority\n/a file\tfile 1 0 5\n";
        assert_eq!(parse(text).unwrap()[0].priority, 5);
        let names = |text| -> Vec<&str> { in_order(parse(text).unwrap()).into_iter().map(|area| area.name).collect() };
        let listed = "Filename\n/dev/a partition 9 0 -3\n/dev/b partition 9 0 10\n/dev/c partition 9 0 -2\n";
        assert_eq!(names(listed), ["/dev/c", "/dev/b", "/dev/a"]);
        assert!(parse("Filename\n/dev/a partition 9 0 high").unwrap_err().0.contains("invalid line"));
    }

    #[test]
    fn an_area_whose_file_was_deleted_is_refused() {
        let deleted = SwapArea { name: "/gone\\040(deleted)", size: Bytes(0), priority: 1 };
        assert!(swap_off(&SysRoot::real(), &deleted).unwrap_err().0.contains("was deleted"));
    }
}
