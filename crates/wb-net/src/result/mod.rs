//! The result of a run, assembled from what both ends counted.

mod assembly;
mod lack_of_success;
mod latency;
mod machine;
mod nested;
mod progress;
mod uncounted;

use wb_results::net::{RunResult, RunStatus, Totals};

use wb_net_profile::NetProfile;

pub use assembly::assemble;
pub(crate) use machine::data_seconds;
pub use progress::{CLOCK_TOLERANCE, SentByInterval};

/// The result of a run that was not started because this machine does not support it.
pub fn unsupported(profile: &NetProfile, reason: String) -> RunResult {
    RunResult {
        profile: profile.name.clone(),
        seed: 0,
        outcome: RunStatus::Unsupported { reason },
        notes: Vec::new(),
        totals: Totals::default(),
        groups: Vec::new(),
        machines: Vec::new(),
    }
}
