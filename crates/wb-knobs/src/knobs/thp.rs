use crate::file_knob::{FileFormat, FileKnob};
use crate::knob::{Assessment, KnobDescription, KnobValue};
use crate::target;

const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const DEFRAG: &str = "/sys/kernel/mm/transparent_hugepage/defrag";
const ABSENT: &str = "the kernel has no transparent huge pages, or does not report them";

/// Which mappings get transparent huge pages.
pub const THP_ENABLED: FileKnob = FileKnob {
    description: KnobDescription {
        name: "thp-enabled",
        why: "the availability of huge pages depends on earlier programs, and a background thread creates more of them while measuring",
        evidence: "kernel documentation, Transparent Hugepage Support; Kwon et al. (OSDI 2016) measured large gains and, from fragmentation and copying, worse tail latency in the same systems",
        unsupported_reason: ABSENT,
    },
    path: ENABLED,
    format: FileFormat::SelectedOption { known: &["always", "madvise", "never"] },
    targets: |sys| target::system_with(sys, ENABLED),
    assess: |value| {
        Assessment::quiet_if(
            *value != KnobValue::Choice("always".into()),
            "give huge pages only to programs that request them",
        )
    },
    suggestion: "madvise",
    // The kernel keeps more memory free for huge pages (`set_recommended_min_free_kbytes` of its mm/khugepaged.c).
    dependents: Some(|_, _| vec!["/proc/sys/vm/min_free_kbytes".to_owned()]),
};

/// The effort to allocate a huge page.
pub const THP_DEFRAG: FileKnob = FileKnob {
    description: KnobDescription {
        name: "thp-defrag",
        why: "a page fault may stall to compact memory, or wake up threads that do so in the background",
        evidence: "kernel documentation, Transparent Hugepage Support: `always` reclaims and compacts within the fault, `defer` in the background; a stall takes up to milliseconds",
        unsupported_reason: ABSENT,
    },
    path: DEFRAG,
    format: FileFormat::SelectedOption { known: &["always", "defer", "defer+madvise", "madvise", "never"] },
    targets: |sys| target::system_with(sys, DEFRAG),
    assess: |value| {
        let KnobValue::Choice(choice) = value else { return Assessment::UNEXPECTED_VALUE };
        Assessment::quiet_if(
            matches!(choice.as_str(), "madvise" | "never"),
            "stall only programs that request huge pages",
        )
    },
    suggestion: "madvise",
    dependents: None,
};
