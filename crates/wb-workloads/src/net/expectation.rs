use wb_model::Nanos;

/// Primary metric of a network test, which verdicts are based on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrimaryMetric {
    /// Bits received per second.
    Throughput,
    /// Rounds per second, of requests and responses.
    Rounds,
    /// Rounds per second, without data.
    EmptyRounds,
}

/// Expected properties of a run.
#[derive(Debug, Clone, Copy)]
pub struct RunExpectation {
    pub primary: PrimaryMetric,
    /// Minimum duration of the transfer.
    pub window: Option<Nanos>,
    pub may_be_truncated: bool,
    /// Of the latencies over time.
    pub interval: Nanos,
}
