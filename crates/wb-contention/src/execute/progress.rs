//! What a sequence reports while it is executed.

use std::path::Path;

use wb_results::contention::{BenchResult, Instance};

use crate::Parameters;
use crate::format::Times;
use crate::runner::StageFailure;
use crate::sequence::PlannedJob;

#[derive(Debug, Clone, Copy)]
pub enum SequenceProgress<'a> {
    /// A bench begins: its stages with their signs.
    BenchPlanned(&'a PlannedJob),
    StageStarted {
        instance: &'a Instance,
        label: &'a str,
        /// Goes on at a checkpoint.
        resumed: bool,
    },
    StageEnded {
        instance: &'a Instance,
        label: &'a str,
    },
    StageFailed {
        instance: &'a Instance,
        label: &'a str,
        failure: &'a StageFailure,
        next: AfterFailure,
    },
    BenchEnded {
        result: &'a BenchResult,
        times: Option<Times<'a>>,
        /// Whether the result was there already.
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
    Retry,
    /// The stage has no result, and the sequence goes on.
    GiveUp,
    Stop,
}
