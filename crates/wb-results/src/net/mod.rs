//! Results of network runs, as both ends counted them.

mod connection;
mod counters;
mod group;
pub mod histogram;
mod latency;
mod machine;
mod nested;
mod progress;
mod rounds;
mod run;
mod sweep;
mod transaction;
mod usage;

pub use connection::ConnectionInfo;
pub use counters::{InterfaceCounters, NetworkCounters, ProtocolCounters};
pub use group::{DatagramCounts, GroupResult, StrandResult};
pub use latency::{LatencySummary, Percentiles};
pub use machine::{MachineResult, ProgressPoint};
pub use nested::{NestedLatency, NestedRow};
pub use progress::{ConnectionSnapshot, DatagramProgress, StrandProgress, TcpSnapshot};
pub use rounds::{PendingRounds, ScheduledExecutions, ScheduledRounds, is_notable_share};
pub use run::{RunResult, RunStatus, Totals};
pub use sweep::{Sweep, SweepPoint};
pub use transaction::{FlowopResult, FlowopSide, IntervalLatency, TransactionResult};
pub use usage::Usage;
