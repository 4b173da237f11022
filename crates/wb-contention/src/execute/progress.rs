//! What a sequence reports while it is executed.

use std::path::Path;

use crate::Parameters;
use crate::answer::BenchResult;
use crate::format::Times;
use crate::runner::StageFailure;
use crate::sequence::PlannedJob;
use crate::stage::Instance;

/// A step of a sequence.
#[derive(Debug, Clone, Copy)]
pub enum SequenceProgress<'a> {
    /// A bench begins: its stages with their signs.
    BenchPlanned(&'a PlannedJob),
    /// An attempt at a stage starts.
    StageStarted {
        instance: &'a Instance,
        /// The stage.
        label: &'a str,
        /// Whether it goes on at a checkpoint.
        resumed: bool,
    },
    /// A stage has a result.
    StageEnded {
        instance: &'a Instance,
        /// The stage.
        label: &'a str,
    },
    StageFailed {
        instance: &'a Instance,
        /// The stage.
        label: &'a str,
        failure: &'a StageFailure,
        /// What follows.
        next: AfterFailure,
    },
    /// A bench has a result.
    BenchEnded {
        result: &'a BenchResult,
        /// When it started and ended.
        times: Option<Times<'a>>,
        /// Whether it was there already.
        was_present: bool,
    },
    /// Later benches use these parameters.
    Applied(&'a Parameters),
    /// The parameters are kept for later sequences, in this file.
    Committed(&'a Path),
}

/// What follows the failure of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    /// Another attempt.
    Retry,
    /// The stage has no result, and the sequence goes on.
    GiveUp,
    /// The sequence ends.
    Stop,
}
