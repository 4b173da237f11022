//! Transparent huge pages.

use wb_sys::SysRoot;
use wb_sys::environment::memory::chosen;

use crate::change::echo;
use crate::knob::{Knob, Quiet, Unsupported, Value};
use crate::set::{Writes, choice};
use crate::target::Target;

const FOLDER: &str = "/sys/kernel/mm/transparent_hugepage";
const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const DEFRAG: &str = "/sys/kernel/mm/transparent_hugepage/defrag";
const ABSENT: &str = "the kernel has no transparent huge pages, or does not show them";

fn read(sys: &SysRoot, name: &str) -> Result<Value, Unsupported> {
    Ok(Value::Choice(chosen(&sys.text(format!("{FOLDER}/{name}"))?).to_owned()))
}

fn targets(sys: &SysRoot, name: &str) -> Vec<Target> {
    sys.exists(format!("{FOLDER}/{name}")).then_some(Target::System).into_iter().collect()
}

/// Who gets them.
pub struct Enabled;

impl Knob for Enabled {
    fn name(&self) -> &'static str {
        "thp-enabled"
    }
    fn why(&self) -> &'static str {
        "whether a huge page is to be had depends on what ran before, and a background thread makes more of them while measuring"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, Transparent Hugepage Support; Kwon et al. (OSDI 2016) measured large gains and, from fragmentation and copying, worse tail latency in the same systems"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<Target> {
        targets(sys, "enabled")
    }
    fn absent(&self) -> &'static str {
        ABSENT
    }
    fn read(&self, sys: &SysRoot, _: &Target) -> Result<Value, Unsupported> {
        read(sys, "enabled")
    }
    fn quiet(&self, value: &Value) -> Quiet {
        Quiet::when(*value != Value::Choice("always".into()), "give huge pages to those that ask for them")
    }
    fn set(&self, sys: &SysRoot, _: &Target, wanted: &str) -> Writes {
        choice(sys, ENABLED, ENABLED, wanted)
    }
    fn change(&self, _: &SysRoot, _: &[Target]) -> String {
        echo("madvise", &format!("{FOLDER}/enabled"))
    }
    /// The kernel keeps more memory free for huge pages (`set_recommended_min_free_kbytes` of its mm/khugepaged.c).
    fn dependents(&self, _: &SysRoot, _: &Target) -> Vec<String> {
        vec!["/proc/sys/vm/min_free_kbytes".to_owned()]
    }
}

/// How hard is tried to get one.
pub struct Defrag;

impl Knob for Defrag {
    fn name(&self) -> &'static str {
        "thp-defrag"
    }
    fn why(&self) -> &'static str {
        "a page fault may stop to move other memory out of the way, or wake threads that do so meanwhile"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, Transparent Hugepage Support: `always` reclaims and compacts within the fault, `defer` in the background; a stall takes up to milliseconds"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<Target> {
        targets(sys, "defrag")
    }
    fn absent(&self) -> &'static str {
        ABSENT
    }
    fn read(&self, sys: &SysRoot, _: &Target) -> Result<Value, Unsupported> {
        read(sys, "defrag")
    }
    fn quiet(&self, value: &Value) -> Quiet {
        let Value::Choice(choice) = value else { return Quiet::STRANGE };
        Quiet::when(matches!(choice.as_str(), "madvise" | "never"), "stall only those that ask for huge pages")
    }
    fn set(&self, sys: &SysRoot, _: &Target, wanted: &str) -> Writes {
        choice(sys, DEFRAG, DEFRAG, wanted)
    }
    fn change(&self, _: &SysRoot, _: &[Target]) -> String {
        echo("madvise", &format!("{FOLDER}/defrag"))
    }
}
