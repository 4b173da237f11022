//! What memory holds of files.

use wb_sys::SysRoot;

use crate::change::sysctl;
use crate::knob::{Knob, Nature, Quiet, Unsupported, Value};
use crate::set::{Action, Write, Writes};
use crate::target::Target;

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
    fn targets(&self, sys: &SysRoot) -> Vec<Target> {
        sys.exists("/proc/sys/vm/drop_caches").then_some(Target::System).into_iter().collect()
    }
    fn absent(&self) -> &'static str {
        "the kernel does not offer to drop its caches"
    }
    fn read(&self, _: &SysRoot, _: &Target) -> Result<Value, Unsupported> {
        Err(Unsupported("it is an action: there is nothing to read".to_owned()))
    }
    fn quiet(&self, _: &Value) -> Quiet {
        Quiet::STRANGE
    }
    fn set(&self, _: &SysRoot, _: &Target, wanted: &str) -> Writes {
        let what = match wanted {
            "none" => return Ok(Vec::new()),
            "pages" => 1,
            "entries" => 2,
            "all" => 3,
            other => return Err(Unsupported(format!("`{other}` is not among none, pages, entries, all"))),
        };
        Ok(vec![Write::Action(Action::DropCaches(what))])
    }
    fn change(&self, _: &SysRoot, _: &[Target]) -> String {
        format!("sync; {}", sysctl("vm.drop_caches=3"))
    }
    fn nature(&self) -> Nature {
        Nature::Action
    }
}

#[cfg(test)]
mod tests {
    use wb_sys::UndoLog;
    use wb_sys::made;

    use crate::KnobSet;
    use crate::tune::{Outcome, Wanted, apply};

    #[test]
    fn dropping_is_done_each_time_and_leaves_nothing_to_put_back() {
        let path = "/proc/sys/vm/drop_caches";
        let made = made::laptop().file(path, "0\n");
        let sys = made.root();
        let mut log = UndoLog::open(&sys, "a test").unwrap();
        let mut ask = |value: &str| {
            let knobs = vec![Wanted::new("drop-caches", value.to_owned()).unwrap()];
            let set = KnobSet { name: String::new(), summary: String::new(), knobs };
            apply(&sys, &set, &mut log).unwrap().remove(0).outcome
        };
        assert_eq!([ask("none"), ask("all"), ask("all")], [Outcome::Already, Outcome::Done, Outcome::Done]);
        assert_eq!(sys.text(path).unwrap(), "3");
        let told = Outcome::Unsupported { reason: "`some` is not among none, pages, entries, all".to_owned() };
        assert_eq!(ask("some"), told);
        assert_eq!(log.open_changes().count(), 0);
    }
}
