use crate::file_knob::{FileFormat, FileKnob};
use crate::knob::{Assessment, KnobDescription, KnobValue};
use crate::target;

/// Address-space layout randomisation.
pub const ASLR: FileKnob = FileKnob {
    description: KnobDescription {
        name: "aslr",
        why: "the memory layout affects a program's speed; it is either randomised for every sample or biased in the same way in all",
        evidence: "Mytkowicz, Diwan, Hauswirth and Sweeney (ASPLOS 2009): layout alone can turn a speed-up into a slow-down; Curtsinger and Berger (ASPLOS 2013): randomising it repeatedly turns the bias into variance that statistics can handle",
        unsupported_reason: "the kernel does not report its address randomisation",
    },
    path: "/proc/sys/kernel/randomize_va_space",
    // The kernel accepts any number; those above 2 act like 2.
    format: FileFormat::NumberOrOff(0..=2),
    targets: target::system,
    assess: |value| match value {
        KnobValue::Number(1 | 2) => Assessment::Quiet,
        _ => Assessment::Unknown { reason: "all samples share one layout: steady, but biased by that layout" },
    },
    suggestion: "2",
    dependents: None,
};
