//! Affinities of interrupts.

use wb_sys::SysRoot;
use wb_sys::facts::cpu_list;

use crate::knob::{Assessment, Knob, KnobDescription, KnobValue};
use crate::target::KnobTarget;
use crate::unsupported::Unsupported;
use crate::writes::{KnobWrites, setting_write};

/// The CPUs that an interrupt may be delivered to.
pub struct IrqAffinity;

/// The affinity of future interrupts, as a mask.
const DEFAULT_AFFINITY: &str = "/proc/irq/default_smp_affinity";

impl Knob for IrqAffinity {
    fn description(&self) -> &KnobDescription {
        &KnobDescription {
            name: "irq-affinity",
            why: "an interrupt stops the program on its CPU, evicts its cache, and causes deferred work there",
            evidence: "kernel documentation, SMP IRQ affinity and Reducing OS jitter: only affinity keeps interrupts, and the deferred work that each starts on its CPU, away from a CPU",
            unsupported_reason: "the kernel has no interrupts with a configurable affinity",
        }
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        let all = sys.numbered_entries("/proc/irq", "").into_iter().filter(|number| sys.exists(path(*number)));
        let new = sys.exists(DEFAULT_AFFINITY).then_some(KnobTarget::NewInterrupts);
        all.map(KnobTarget::Interrupt).chain(new).collect()
    }
    fn read(&self, sys: &SysRoot, target: &KnobTarget) -> Result<KnobValue, Unsupported> {
        let cpus = match target {
            KnobTarget::Interrupt(number) => sys.text(path(*number))?,
            _ => {
                let mask = sys.text(DEFAULT_AFFINITY)?;
                cpu_list::format(&parse(&mask).ok_or_else(|| {
                    Unsupported(format!("invalid value `{mask}` in `{DEFAULT_AFFINITY}`: expected a CPU mask"))
                })?)
            }
        };
        Ok(KnobValue::Choice(cpus))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        match value {
            KnobValue::Choice(cpus) if cpu_list::parse(cpus).is_some_and(|cpus| cpus.len() > 1) => {
                Assessment::Unknown { reason: "it may be delivered to a measured CPU" }
            }
            KnobValue::Choice(_) => Assessment::Quiet,
            _ => Assessment::UNEXPECTED_VALUE,
        }
    }
    fn check_value(&self, value: &str) -> Result<(), Unsupported> {
        if value == "all" { Ok(()) } else { parse_cpu_list(value).map(drop) }
    }
    fn writes(&self, sys: &SysRoot, target: &KnobTarget, value: &str) -> KnobWrites {
        let cpus = parse_cpus(sys, value)?;
        match target {
            KnobTarget::Interrupt(number) => setting_write(path(*number), cpu_list::format(&cpus)),
            _ => setting_write(DEFAULT_AFFINITY, mask(&cpus, &sys.text(DEFAULT_AFFINITY)?)),
        }
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        "sudo weighbridge tune apply irq-affinity=CPUS".to_owned()
    }
    /// Not all can be moved: timers of CPUs, queues that the kernel distributes itself, and chips that support only one
    /// CPU.
    fn allows_partial(&self) -> bool {
        true
    }
}

fn path(number: u32) -> String {
    format!("/proc/irq/{number}/smp_affinity_list")
}

pub(super) fn parse_cpu_list(value: &str) -> Result<Vec<u32>, Unsupported> {
    let cpus = cpu_list::parse(value).filter(|cpus| !cpus.is_empty());
    cpus.ok_or_else(|| Unsupported(format!("invalid CPU list `{value}`: expected a list such as 0-3,8, or all")))
}

/// Parses CPUs, `0-3,8` or `all`, which must be online.
pub(super) fn parse_cpus(sys: &SysRoot, value: &str) -> Result<Vec<u32>, Unsupported> {
    let online: Vec<u32> = sys.numbers("/sys/devices/system/cpu/online")?;
    if value == "all" {
        return Ok(online);
    }
    let cpus = parse_cpu_list(value)?;
    match cpus.iter().find(|cpu| !online.contains(cpu)) {
        Some(cpu) => Err(Unsupported(format!(
            "no such CPU: `{}`: {} are online",
            KnobTarget::Cpu(*cpu),
            cpu_list::format(&online)
        ))),
        None => Ok(cpus),
    }
}

/// Parses a CPU mask in the kernel's format: groups of 32 bits, the lowest group last.
fn parse(mask: &str) -> Option<Vec<u32>> {
    let groups = mask.rsplit(',').map(|group| u32::from_str_radix(group, 16).ok()).collect::<Option<Vec<u32>>>()?;
    let bits = (0..)
        .zip(groups)
        .flat_map(|(index, group)| (0..32).filter(move |bit| group >> bit & 1 == 1).map(move |bit| index * 32 + bit));
    Some(bits.collect())
}

/// Formats a CPU mask of the same width as another.
pub(super) fn mask(cpus: &[u32], template: &str) -> String {
    let group = |index: u32| {
        (0..32).filter(|bit| cpus.contains(&(index * 32 + bit))).fold(0_u32, |group, bit| group | 1 << bit)
    };
    let widths: Vec<usize> = template.split(',').map(str::len).collect();
    let highest = u32::try_from(widths.len()).unwrap_or(1);
    let groups = (0..highest).rev().zip(widths).map(|(index, width)| format!("{:0width$x}", group(index)));
    groups.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use proptest::prelude::*;
    use wb_sys::UndoLog;
    use wb_sys::fake_root::FakeRoot;

    use super::*;
    use crate::KnobSet;
    use crate::tune::{KnobOutcome, KnobSetting, apply, check_settable};

    /// A machine with three interrupts, one of which cannot be moved.
    fn machine() -> FakeRoot {
        let fake = FakeRoot::new()
            .file("/sys/devices/system/cpu/online", "0-63\n")
            .file(DEFAULT_AFFINITY, "ffffffff,ffffffff\n");
        let fake = [1, 8, 24].iter().fold(fake, |fake, number| fake.file(&path(*number), "0-63\n"));
        let bound = fake.root().path(path(8)).unwrap();
        std::fs::set_permissions(bound, std::fs::Permissions::from_mode(0o444)).unwrap();
        fake
    }

    #[test]
    fn movable_interrupts_are_moved_and_the_others_skipped() {
        let fake = machine();
        let sys = fake.root();
        let set = KnobSet::parse("", "knobs.\'irq-affinity\' = \'2,0,1\'").unwrap();
        let mut log = UndoLog::open(&sys, "a test").unwrap();
        let tuned = apply(&sys, &set, &mut log).unwrap();
        let set_outcome = KnobOutcome::Set { now: "0-2".to_owned() };
        let reason = "the kernel provides `/proc/irq/8/smp_affinity_list` read-only".to_owned();
        let outcome_of = |target: &str| tuned.iter().find(|one| one.target == target).unwrap().outcome.clone();
        assert_eq!(
            [outcome_of("irq1"), outcome_of("irq24"), outcome_of("new")],
            [set_outcome.clone(), set_outcome.clone(), set_outcome]
        );
        assert_eq!(outcome_of("irq8"), KnobOutcome::Skipped { reason: reason.clone() });
        assert_eq!(sys.text(DEFAULT_AFFINITY).unwrap(), "00000000,00000007");
        log.revert().unwrap();
        assert_eq!(
            (sys.text(DEFAULT_AFFINITY).unwrap(), sys.text(path(24)).unwrap()),
            ("ffffffff,ffffffff".into(), "0-63".into())
        );
        let check = |target: Option<KnobTarget>, cpus: &str| {
            check_settable(&sys, &KnobSetting::for_knob(&IrqAffinity, target.as_ref(), cpus))
                .map_err(|refusal| refusal.reason)
        };
        assert_eq!(check(None, "1"), Ok(()));
        assert_eq!(check(Some(KnobTarget::Interrupt(8)), "1"), Err(reason), "a named target must be settable");
        assert_eq!(check(None, "64").unwrap_err(), "no such CPU: `cpu64`: 0-63 are online");
        assert!(check(None, "few").unwrap_err().contains("invalid CPU list"));
    }

    proptest! {
        #[test]
        fn a_formatted_mask_is_parsed_back(cpus in proptest::collection::btree_set(0_u32..96, 0..96)) {
            let cpus: Vec<u32> = cpus.into_iter().collect();
            let written = mask(&cpus, "ffffffff,ffffffff,ffffffff");
            prop_assert_eq!(written.len(), 26);
            prop_assert_eq!(parse(&written), Some(cpus));
        }

        #[test]
        fn arbitrary_masks_do_not_panic(text in "[0-9a-f,]{0,30}|\\PC{0,20}") {
            let _ = parse(&text);
        }
    }
}
