use clap::ValueEnum;

/// Built-in compute kernels, the request workload and what competes with it, and the raw transfers that limit what implementations of a protocol can reach
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kernel {
    /// Jacobi iterations of a 19-point stencil
    Himeno,
    /// Memory bandwidth of passes over arrays
    Ramspeed,
    /// Reads and writes of blocks of growing size
    RamspeedSweep,
    /// LU factorisation and solve
    Linpack,
    /// Transfers over one TCP connection, the side that listens
    CeilingServer,
    /// Transfers over one TCP connection, the side that measures
    CeilingClient,
    /// The request workload, one report each second
    Hashd,
    /// Finding the parameters of the request workload, one line per round
    HashdParams,
    /// A process whose memory grows at a given rate, one report each second
    MemoryHog,
    /// Latencies of a block device from the kernel's histograms, one report each second
    IoLatency,
    /// A block device that is kept open exclusively
    HoldDevice,
}
