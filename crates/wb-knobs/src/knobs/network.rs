//! Delays of received packets in the kernel (NAPI).

use crate::file_knob::{FileFormat, FileKnob};
use crate::knob::{Assessment, KnobDescription, KnobValue};
use crate::target;

const NO_DEVICE: &str = "no network interface is backed by a device";

/// How long received packets are held to be merged (GRO).
pub const FLUSH_TIMEOUT: FileKnob = FileKnob {
    description: KnobDescription {
        name: "gro-flush-timeout",
        why: "received packets wait for others to be merged with, which adds to their latency",
        evidence: "kernel documentation, NAPI: gro_flush_timeout is how long packets are held after a poll, in ns; 0, the default, holds none",
        unsupported_reason: NO_DEVICE,
    },
    path: "/sys/class/net/{}/gro_flush_timeout",
    format: FileFormat::Micros(1000),
    targets: target::interfaces,
    assess: |value| Assessment::quiet_if(*value == KnobValue::Micros(0), "deliver packets as they arrive"),
    suggestion: "0",
    dependents: None,
};

/// How often an idle interface is polled before its interrupts are enabled again.
pub const DEFER_INTERRUPTS: FileKnob = FileKnob {
    description: KnobDescription {
        name: "napi-defer-hard-irqs",
        why: "an interface that is polled for a while after its last packet interrupts less, and delivers packets later",
        evidence: "kernel documentation, NAPI: after this number of polls without a packet, gro_flush_timeout apart, interrupts are enabled again; 0, the default, enables them at once",
        unsupported_reason: NO_DEVICE,
    },
    path: "/sys/class/net/{}/napi_defer_hard_irqs",
    format: FileFormat::Number(0..=i32::MAX as i64),
    targets: target::interfaces,
    assess: |value| Assessment::quiet_if(*value == KnobValue::Number(0), "interrupt as soon as packets arrive"),
    suggestion: "0",
    dependents: None,
};
