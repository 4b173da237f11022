use wb_sys::SysRoot;

use crate::knob::{Assessment, Knob, KnobDescription, KnobKind, KnobValue};
use crate::shell_commands::sysctl;
use crate::target::KnobTarget;
use crate::unsupported::Unsupported;
use crate::writes::{KnobAction, KnobWrite, KnobWrites, check_option};

/// Drops the page cache, so that a sample starts without cached files.
pub struct DropCaches;

impl Knob for DropCaches {
    fn description(&self) -> &KnobDescription {
        &KnobDescription {
            name: "drop-caches",
            why: "files that an earlier sample has read are cached, and the next one measures memory instead of the disk",
            evidence: "kernel documentation, vm.drop_caches: 1 drops the page cache, 2 directory entries and inodes, 3 both, each only as far as it is not dirty",
            unsupported_reason: "the kernel does not support dropping its caches",
        }
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        sys.exists("/proc/sys/vm/drop_caches").then_some(KnobTarget::System).into_iter().collect()
    }
    fn read(&self, _: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Err(Unsupported("it is an action and has no value".to_owned()))
    }
    fn assess(&self, _: &KnobValue) -> Assessment {
        Assessment::UNEXPECTED_VALUE
    }
    fn check_value(&self, value: &str) -> Result<(), Unsupported> {
        check_option(value, &["none", "pages", "entries", "all"])
    }
    fn writes(&self, _: &SysRoot, _: &KnobTarget, value: &str) -> KnobWrites {
        let mode = match value {
            "none" => return Ok(Vec::new()),
            "pages" => 1,
            "entries" => 2,
            "all" => 3,
            other => {
                return Err(Unsupported(format!("invalid value `{other}`: expected one of none, pages, entries, all")));
            }
        };
        Ok(vec![KnobWrite::Action(KnobAction::DropCaches(mode))])
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        format!("sync; {}", sysctl("vm.drop_caches=3"))
    }
    fn nature(&self) -> KnobKind {
        KnobKind::Action
    }
}

#[cfg(test)]
mod tests {
    use wb_sys::UndoLog;
    use wb_sys::fake_root;

    use crate::KnobSet;
    use crate::tune::{KnobOutcome, apply};

    #[test]
    fn caches_are_dropped_each_time_and_nothing_is_logged() {
        let path = "/proc/sys/vm/drop_caches";
        let fake = fake_root::laptop().file(path, "0\n");
        let sys = fake.root();
        let mut log = UndoLog::open(&sys, "a test").unwrap();
        let mut drop_caches = |value: &str| {
            let set = KnobSet::parse("", &format!("knobs.drop-caches = '{value}'")).unwrap();
            apply(&sys, &set, &mut log).unwrap().remove(0).outcome
        };
        assert_eq!(
            [drop_caches("none"), drop_caches("all"), drop_caches("all")],
            [KnobOutcome::Unchanged, KnobOutcome::Done, KnobOutcome::Done]
        );
        assert_eq!(sys.text(path).unwrap(), "3");
        let reason = KnobSet::parse("", "knobs.drop-caches = 'some'").unwrap_err().reason;
        assert_eq!(
            reason,
            "knob `drop-caches`: invalid value `some`: expected one of none, pages, entries, all; did you mean `none`?"
        );
        assert_eq!(log.open_changes().count(), 0);
    }
}
