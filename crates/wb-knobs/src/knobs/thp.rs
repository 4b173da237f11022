//! Transparent huge pages.

use wb_sys::SysRoot;
use wb_sys::environment::memory::selected_option;

use crate::knob::{Assessment, Knob, KnobValue, Unsupported};
use crate::shell_commands::echo;
use crate::target::KnobTarget;
use crate::writes::{KnobWrites, choice};

const FOLDER: &str = "/sys/kernel/mm/transparent_hugepage";
const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const DEFRAG: &str = "/sys/kernel/mm/transparent_hugepage/defrag";
const ABSENT: &str = "the kernel has no transparent huge pages, or does not show them";

fn read(sys: &SysRoot, name: &str) -> Result<KnobValue, Unsupported> {
    Ok(KnobValue::Choice(selected_option(&sys.text(format!("{FOLDER}/{name}"))?).to_owned()))
}

fn targets(sys: &SysRoot, name: &str) -> Vec<KnobTarget> {
    sys.exists(format!("{FOLDER}/{name}")).then_some(KnobTarget::System).into_iter().collect()
}

/// Who gets them.
pub struct ThpEnabled;

impl Knob for ThpEnabled {
    fn name(&self) -> &'static str {
        "thp-enabled"
    }
    fn why(&self) -> &'static str {
        "whether a huge page is to be had depends on what ran before, and a background thread makes more of them while measuring"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, Transparent Hugepage Support; Kwon et al. (OSDI 2016) measured large gains and, from fragmentation and copying, worse tail latency in the same systems"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        targets(sys, "enabled")
    }
    fn unsupported_reason(&self) -> &'static str {
        ABSENT
    }
    fn read(&self, sys: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        read(sys, "enabled")
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        Assessment::when(*value != KnobValue::Choice("always".into()), "give huge pages to those that ask for them")
    }
    fn writes(&self, sys: &SysRoot, _: &KnobTarget, wanted: &str) -> KnobWrites {
        choice(sys, ENABLED, ENABLED, wanted)
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        echo("madvise", &format!("{FOLDER}/enabled"))
    }
    /// The kernel keeps more memory free for huge pages (`set_recommended_min_free_kbytes` of its mm/khugepaged.c).
    fn dependents(&self, _: &SysRoot, _: &KnobTarget) -> Vec<String> {
        vec!["/proc/sys/vm/min_free_kbytes".to_owned()]
    }
}

/// How hard is tried to get one.
pub struct ThpDefrag;

impl Knob for ThpDefrag {
    fn name(&self) -> &'static str {
        "thp-defrag"
    }
    fn why(&self) -> &'static str {
        "a page fault may stop to move other memory out of the way, or wake threads that do so meanwhile"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, Transparent Hugepage Support: `always` reclaims and compacts within the fault, `defer` in the background; a stall takes up to milliseconds"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        targets(sys, "defrag")
    }
    fn unsupported_reason(&self) -> &'static str {
        ABSENT
    }
    fn read(&self, sys: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        read(sys, "defrag")
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        let KnobValue::Choice(choice) = value else { return Assessment::UNEXPECTED_VALUE };
        Assessment::when(matches!(choice.as_str(), "madvise" | "never"), "stall only those that ask for huge pages")
    }
    fn writes(&self, sys: &SysRoot, _: &KnobTarget, wanted: &str) -> KnobWrites {
        choice(sys, DEFRAG, DEFRAG, wanted)
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        echo("madvise", &format!("{FOLDER}/defrag"))
    }
}
