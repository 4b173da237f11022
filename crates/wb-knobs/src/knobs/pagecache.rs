//! What memory holds of files.

use wb_sys::SysRoot;

use crate::knob::{Assessment, Knob, KnobKind, KnobValue, Unsupported};
use crate::shell_commands::sysctl;
use crate::target::KnobTarget;
use crate::writes::{KnobAction, KnobWrite, KnobWrites};

/// Dropping what memory holds of files, so that a sample finds none of it.
pub struct DropCaches;

impl Knob for DropCaches {
    fn name(&self) -> &'static str {
        "drop-caches"
    }
    fn why(&self) -> &'static str {
        "what an earlier sample has read is in memory, and the next one measures memory instead of the disk"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, vm.drop_caches: 1 drops the page cache, 2 directory entries and inodes, 3 both, each only as far as it is written already"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        sys.exists("/proc/sys/vm/drop_caches").then_some(KnobTarget::System).into_iter().collect()
    }
    fn unsupported_reason(&self) -> &'static str {
        "the kernel does not offer to drop its caches"
    }
    fn read(&self, _: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Err(Unsupported("it is an action: there is nothing to read".to_owned()))
    }
    fn assess(&self, _: &KnobValue) -> Assessment {
        Assessment::UNEXPECTED_VALUE
    }
    fn writes(&self, _: &SysRoot, _: &KnobTarget, wanted: &str) -> KnobWrites {
        let what = match wanted {
            "none" => return Ok(Vec::new()),
            "pages" => 1,
            "entries" => 2,
            "all" => 3,
            other => return Err(Unsupported(format!("`{other}` is not among none, pages, entries, all"))),
        };
        Ok(vec![KnobWrite::Action(KnobAction::DropCaches(what))])
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
    use crate::tune::{KnobOutcome, KnobSetting, apply};

    #[test]
    fn dropping_is_done_each_time_and_leaves_nothing_to_put_back() {
        let path = "/proc/sys/vm/drop_caches";
        let made = fake_root::laptop().file(path, "0\n");
        let sys = made.root();
        let mut log = UndoLog::open(&sys, "a test").unwrap();
        let mut ask = |value: &str| {
            let knobs = vec![KnobSetting::new("drop-caches", value.to_owned()).unwrap()];
            let set = KnobSet { name: String::new(), summary: String::new(), knobs };
            apply(&sys, &set, &mut log).unwrap().remove(0).outcome
        };
        assert_eq!(
            [ask("none"), ask("all"), ask("all")],
            [KnobOutcome::Unchanged, KnobOutcome::Done, KnobOutcome::Done]
        );
        assert_eq!(sys.text(path).unwrap(), "3");
        let told = KnobOutcome::Unsupported { reason: "`some` is not among none, pages, entries, all".to_owned() };
        assert_eq!(ask("some"), told);
        assert_eq!(log.open_changes().count(), 0);
    }
}
