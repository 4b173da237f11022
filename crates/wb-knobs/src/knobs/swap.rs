//! Memory that is put on a disk.

use wb_sys::SysRoot;
use wb_sys::environment::memory::swaps;

use crate::knob::{Assessment, Knob, KnobValue, Unsupported};
use crate::shell_commands::sysctl;
use crate::target::KnobTarget;
use crate::writes::{KnobWrites, command, number_in, parse_switch, shell};

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
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        sys.exists("/proc/swaps").then_some(KnobTarget::System).into_iter().collect()
    }
    fn unsupported_reason(&self) -> &'static str {
        "the kernel does not show its swap devices"
    }
    fn read(&self, sys: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Ok(KnobValue::Switch(!swaps(sys).is_empty()))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        Assessment::when(
            *value == KnobValue::Switch(false),
            "no swap while measuring; a test that does not fit then fails visibly",
        )
    }
    fn writes(&self, sys: &SysRoot, _: &KnobTarget, wanted: &str) -> KnobWrites {
        if parse_switch(wanted)? {
            return Err(Unsupported("which devices are to be swapped to is for `swapon` to say".to_owned()));
        }
        let areas = in_order(parse(&sys.text("/proc/swaps")?)?);
        // Put back in the opposite order.
        let writes = areas.iter().rev().map(|area| swap_off(sys, area)).collect::<Result<Vec<_>, _>>()?;
        Ok(writes.into_iter().flatten().collect())
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        "sudo swapoff --all".to_owned()
    }
}

/// A device or file that is swapped to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SwapArea {
    /// As the kernel writes it, with `\040` for a space.
    name: String,
    /// Areas of higher priority are used first; one below zero the kernel gave itself, each area lower than those before.
    priority: i64,
}

/// Understands `/proc/swaps` (proc_swaps(5)).
fn parse(text: &str) -> Result<Vec<SwapArea>, Unsupported> {
    let area = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [name, .., priority] = fields[..] else { return Err(malformed_line(line)) };
        Ok(SwapArea { name: name.to_owned(), priority: priority.parse().map_err(|_| malformed_line(line))? })
    };
    text.lines().skip(1).map(area).collect()
}

fn malformed_line(line: &str) -> Unsupported {
    Unsupported(format!("`/proc/swaps` has a line that is not understood: `{line}`"))
}

/// The order in which areas have to be switched on to be listed and to rank as they do: as listed, but those whose
/// priority the kernel gave by their rank.
fn in_order(mut areas: Vec<SwapArea>) -> Vec<SwapArea> {
    let mut ranked: Vec<SwapArea> = areas.iter().filter(|area| area.priority < 0).cloned().collect();
    ranked.sort_by_key(|area| -area.priority);
    for (place, area) in areas.iter_mut().filter(|area| area.priority < 0).zip(ranked) {
        *place = area;
    }
    areas
}

/// What switches an area off, and on again with its priority.
fn swap_off(sys: &SysRoot, area: &SwapArea) -> KnobWrites {
    if area.name.ends_with("\\040(deleted)") {
        return Err(Unsupported(format!(
            "{} was deleted while it is used, and could not be switched on again",
            area.name
        )));
    }
    let read = shell(
        "while read -r name kind size used priority; do [ \"$name\" != \"$1\" ] || \
         case $priority in -*) echo automatic; exit;; *) echo \"$priority\"; exit;; esac; done < /proc/swaps; echo off",
        &[&area.name],
    );
    let write = shell(
        "case $1 in off) swapoff \"$2\";; automatic) swapon \"$2\";; *) swapon --priority \"$1\" \"$2\";; esac",
        &["{}", &unescape(&area.name)],
    );
    command(sys, &format!("swapping to {}", unescape(&area.name)), "swapon", [read, write], "off\n".to_owned())
}

/// A name without the kernel's `\040` for a space (and the like).
fn unescape(name: &str) -> String {
    let (first, rest) = name.split_once('\\').map_or((name, None), |(first, rest)| (first, Some(rest)));
    match rest {
        None => first.to_owned(),
        Some(rest) => match rest.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => format!("{first}{}{}", byte as char, unescape(&rest[3..])),
            None => format!("{first}\\{}", unescape(rest)),
        },
    }
}

/// How readily memory of programs is put away in favour of the page cache.
pub struct Swappiness;

/// From here on the kernel rather drops file pages, down to nearly none left.
const MAX_QUIET_SWAPPINESS: i64 = 10;

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
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        (!swaps(sys).is_empty()).then_some(KnobTarget::System).into_iter().collect()
    }
    fn unsupported_reason(&self) -> &'static str {
        "there is no swap that it could apply to"
    }
    fn read(&self, sys: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Ok(KnobValue::Number(sys.number("/proc/sys/vm/swappiness")?))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        match value {
            KnobValue::Number(number) => {
                Assessment::when(*number <= MAX_QUIET_SWAPPINESS, "swap only where nothing else helps")
            }
            _ => Assessment::UNEXPECTED_VALUE,
        }
    }
    fn writes(&self, _: &SysRoot, _: &KnobTarget, wanted: &str) -> KnobWrites {
        number_in("/proc/sys/vm/swappiness", self.name(), wanted, 0..=200)
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        sysctl("vm.swappiness=1")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn areas_are_switched_on_again_as_they_are_listed_and_as_they_rank() {
        let text = "Filename\tType\tSize\tUsed\tPriority\n/a file\tfile 1 0 5\n";
        assert_eq!(parse(text).unwrap()[0].priority, 5);
        let names =
            |text: &str| -> Vec<String> { in_order(parse(text).unwrap()).into_iter().map(|area| area.name).collect() };
        let listed = "Filename\n/dev/a partition 9 0 -3\n/dev/b partition 9 0 10\n/dev/c partition 9 0 -2\n";
        assert_eq!(names(listed), ["/dev/c", "/dev/b", "/dev/a"]);
        assert!(parse("Filename\n/dev/a partition 9 0 high").unwrap_err().0.contains("not understood"));
    }

    #[test]
    fn names_are_read_as_the_kernel_writes_them() {
        assert_eq!(unescape("/my\\040swap\\134file"), "/my swap\\file");
        assert_eq!(unescape("/odd\\9"), "/odd\\9");
        let deleted = SwapArea { name: "/gone\\040(deleted)".to_owned(), priority: 1 };
        assert!(swap_off(&SysRoot::real(), &deleted).unwrap_err().0.contains("was deleted"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,80}", name in "(\\\\|[0-9]|\\PC){0,12}") {
            let _ = parse(&text);
            let _ = unescape(&name);
        }
    }
}
