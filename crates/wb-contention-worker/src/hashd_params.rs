//! `hashd-params`: the parameters with which hashd loads a machine fully, and the footprint that it can serve.
//!
//! Sizing is `weighbridge-agent exec hashd-params` (`wb_hashd::sizing`) in the workload's control group. Its lines are
//! passed on as they come: with the finished rounds, an interrupted sizing is resumed.

use std::collections::VecDeque;

use tokio::time::sleep;
use wb_hashd::sizing::{SizingLine, SizingRequest, SizingResult};
use wb_model::Bytes;
use wb_sys::clock::unix_time;

use super::ContentionError;
use super::memory_profile::MemoryShare;
use super::prepared_worker::{PreparedWorker, Slice};
use super::workload::{Balloon, POLL, Reporter};

/// The largest of the last readings of memory counts, because memory drops when a sizing ends.
const USAGE_READINGS: usize = 10;

#[derive(Debug, Clone, PartialEq)]
pub struct SizingOutcome {
    pub result: SizingResult,
    /// The memory that hashd had at the end.
    pub usage: Bytes,
    /// Begin and end of the last round, in seconds since the epoch.
    pub last_round: (f64, f64),
}

/// Sizes hashd while a balloon leaves it the memory of a share. The control groups of [`super::storage::slices`] must
/// exist. `on_line` gets the resolved configuration and each finished round.
pub async fn measure(
    prepared: &PreparedWorker,
    memory: &MemoryShare,
    request: &SizingRequest,
    on_line: impl FnMut(SizingLine),
) -> Result<SizingOutcome, ContentionError> {
    let balloon = Balloon::inflate(prepared, memory.sizing_balloon()).await?;
    let outcome = size(prepared, request, on_line).await;
    balloon.deflate().await?;
    outcome
}

/// Sizes hashd with the memory that there is.
pub async fn size(
    prepared: &PreparedWorker,
    request: &SizingRequest,
    mut on_line: impl FnMut(SizingLine),
) -> Result<SizingOutcome, ContentionError> {
    const PROGRAM: &str = "hashd-params";
    let mut sizing = Reporter::start(prepared, Slice::Workload, PROGRAM, request).await?;
    let mut usages = VecDeque::new();
    let mut last_round = (unix_time(), unix_time());
    let mut result = None;
    loop {
        let is_running = sizing.is_running(prepared).await?;
        for line in sizing.new_reports().await? {
            match line {
                SizingLine::Result(found) => result = Some(*found),
                line => {
                    if let SizingLine::Round(round) = &line {
                        last_round = (unix_time() - round.seconds, unix_time());
                    }
                    on_line(line);
                }
            }
        }
        if !is_running {
            break;
        }
        usages.push_front(prepared.memory_usage(Slice::Workload).await?);
        usages.truncate(USAGE_READINGS);
        sleep(POLL).await;
    }
    sizing.wait::<SizingLine>(prepared).await?;
    let result = result.ok_or_else(|| ContentionError::output(PROGRAM, "it has no result"))?;
    Ok(SizingOutcome { result, usage: usages.into_iter().max().unwrap_or_default(), last_round })
}
