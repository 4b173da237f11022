//! Which CPUs interrupts come to.

use wb_sys::SysRoot;
use wb_sys::facts::cpu_list;

use crate::knob::{Assessment, Knob, KnobValue, Unsupported};
use crate::target::KnobTarget;
use crate::writes::{KnobWrites, setting_write};

/// The CPUs that an interrupt may come to.
pub struct IrqAffinity;

/// What interrupts get that come to be, as a mask.
const DEFAULT_AFFINITY: &str = "/proc/irq/default_smp_affinity";

impl Knob for IrqAffinity {
    fn name(&self) -> &'static str {
        "irq-affinity"
    }
    fn why(&self) -> &'static str {
        "an interrupt stops what its CPU does, takes its cache, and is followed by the work that it announces"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, SMP IRQ affinity and Reducing OS jitter: interrupts, and the deferred work that each starts on its CPU, are kept away by affinity alone"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        let all = sys.numbered_entries("/proc/irq", "").into_iter().filter(|number| sys.exists(path(*number)));
        let new = sys.exists(DEFAULT_AFFINITY).then_some(KnobTarget::NewInterrupts);
        all.map(KnobTarget::Interrupt).chain(new).collect()
    }
    fn unsupported_reason(&self) -> &'static str {
        "the kernel shows no interrupts whose CPUs could be chosen"
    }
    fn read(&self, sys: &SysRoot, target: &KnobTarget) -> Result<KnobValue, Unsupported> {
        let cpus = match target {
            KnobTarget::Interrupt(number) => sys.text(path(*number))?,
            _ => {
                let mask = sys.text(DEFAULT_AFFINITY)?;
                cpu_list::format(
                    &parse(&mask)
                        .ok_or_else(|| Unsupported(format!("`{DEFAULT_AFFINITY}` holds `{mask}`, which is no mask")))?,
                )
            }
        };
        Ok(KnobValue::Choice(cpus))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        match value {
            KnobValue::Choice(cpus) if cpu_list::parse(cpus).is_some_and(|cpus| cpus.len() > 1) => {
                Assessment::Unknown { reason: "it may come to a CPU that is measured, unless that is kept out" }
            }
            KnobValue::Choice(_) => Assessment::Yes,
            _ => Assessment::UNEXPECTED_VALUE,
        }
    }
    fn writes(&self, sys: &SysRoot, target: &KnobTarget, wanted: &str) -> KnobWrites {
        let cpus = parse_cpus(sys, wanted)?;
        match target {
            KnobTarget::Interrupt(number) => setting_write(path(*number), cpu_list::format(&cpus)),
            _ => setting_write(DEFAULT_AFFINITY, mask(&cpus, &sys.text(DEFAULT_AFFINITY)?)),
        }
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        "sudo weighbridge tune apply irq-affinity=CPUS".to_owned()
    }
    /// Those of a CPU's own timer, of queues that the kernel spreads itself, and of chips that know one CPU.
    fn allows_partial(&self) -> bool {
        true
    }
}

fn path(number: u32) -> String {
    format!("/proc/irq/{number}/smp_affinity_list")
}

/// CPUs as people write them, `0-3,8` or `all`: they have to be there.
pub(super) fn parse_cpus(sys: &SysRoot, wanted: &str) -> Result<Vec<u32>, Unsupported> {
    let online: Vec<u32> = sys.numbers("/sys/devices/system/cpu/online")?;
    if wanted == "all" {
        return Ok(online);
    }
    let cpus = cpu_list::parse(wanted).filter(|cpus| !cpus.is_empty());
    let cpus = cpus.ok_or_else(|| Unsupported(format!("`{wanted}` is no list of CPUs: write 0-3,8 or all")))?;
    match cpus.iter().find(|cpu| !online.contains(cpu)) {
        Some(cpu) => {
            Err(Unsupported(format!("there is no {}: {} are online", KnobTarget::Cpu(*cpu), cpu_list::format(&online))))
        }
        None => Ok(cpus),
    }
}

/// The CPUs of a mask as the kernel writes it: 32 to a group, the last group the lowest.
fn parse(mask: &str) -> Option<Vec<u32>> {
    let groups = mask.rsplit(',').map(|group| u32::from_str_radix(group, 16).ok()).collect::<Option<Vec<u32>>>()?;
    let bits = (0..)
        .zip(groups)
        .flat_map(|(at, group)| (0..32).filter(move |bit| group >> bit & 1 == 1).map(move |bit| at * 32 + bit));
    Some(bits.collect())
}

/// A mask that is as wide as another.
pub(super) fn mask(cpus: &[u32], like: &str) -> String {
    let group =
        |at: u32| (0..32).filter(|bit| cpus.contains(&(at * 32 + bit))).fold(0_u32, |group, bit| group | 1 << bit);
    let widths: Vec<usize> = like.split(',').map(str::len).collect();
    let highest = u32::try_from(widths.len()).unwrap_or(1);
    let groups = (0..highest).rev().zip(widths).map(|(at, width)| format!("{:0width$x}", group(at)));
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

    /// Three interrupts, of which the kernel moves one by itself.
    fn machine() -> FakeRoot {
        let made = FakeRoot::new()
            .file("/sys/devices/system/cpu/online", "0-63\n")
            .file(DEFAULT_AFFINITY, "ffffffff,ffffffff\n");
        let made = [1, 8, 24].iter().fold(made, |made, number| made.file(&path(*number), "0-63\n"));
        let bound = made.root().path(path(8)).unwrap();
        std::fs::set_permissions(bound, std::fs::Permissions::from_mode(0o444)).unwrap();
        made
    }

    #[test]
    fn all_that_can_be_moved_are_and_the_others_are_left_and_told() {
        let made = machine();
        let sys = made.root();
        let knobs = vec![KnobSetting::new("irq-affinity", "2,0,1".to_owned()).unwrap()];
        let set = KnobSet { name: String::new(), summary: String::new(), knobs };
        let mut log = UndoLog::open(&sys, "a test").unwrap();
        let tuned = apply(&sys, &set, &mut log).unwrap();
        let moved = KnobOutcome::Set { now: "0-2".to_owned() };
        let reason = "the kernel shows `/proc/irq/8/smp_affinity_list` and takes no value for it".to_owned();
        let of = |target: &str| tuned.iter().find(|one| one.target == target).unwrap().outcome.clone();
        assert_eq!([of("irq1"), of("irq24"), of("new")], [moved.clone(), moved.clone(), moved]);
        assert_eq!(of("irq8"), KnobOutcome::Skipped { reason: reason.clone() });
        assert_eq!(sys.text(DEFAULT_AFFINITY).unwrap(), "00000000,00000007");
        log.revert().unwrap();
        assert_eq!(
            (sys.text(DEFAULT_AFFINITY).unwrap(), sys.text(path(24)).unwrap()),
            ("ffffffff,ffffffff".into(), "0-63".into())
        );
        assert_eq!(check_settable(&sys, "irq-affinity", "1"), Ok(()));
        assert_eq!(
            check_settable(&sys, "irq-affinity@irq8", "1").unwrap_err().0,
            reason,
            "what is named has to be set"
        );
        assert_eq!(check_settable(&sys, "irq-affinity", "64").unwrap_err().0, "there is no cpu64: 0-63 are online");
        assert!(check_settable(&sys, "irq-affinity", "few").unwrap_err().0.contains("is no list of CPUs"));
    }

    proptest! {
        #[test]
        fn a_mask_is_read_as_it_was_written(cpus in proptest::collection::btree_set(0_u32..96, 0..96)) {
            let cpus: Vec<u32> = cpus.into_iter().collect();
            let written = mask(&cpus, "ffffffff,ffffffff,ffffffff");
            prop_assert_eq!(written.len(), 26);
            prop_assert_eq!(parse(&written), Some(cpus));
        }

        #[test]
        fn no_mask_panics(text in "[0-9a-f,]{0,30}|\\PC{0,20}") {
            let _ = parse(&text);
        }
    }
}
