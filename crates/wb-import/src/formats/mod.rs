//! Formats, one module each, from text to [`ForeignResults`](crate::ForeignResults). A new one is a module here, with
//! its definition in [`ALL`].

use crate::format::Format;

pub(crate) mod fio;
pub(crate) mod google_benchmark;
pub(crate) mod hyperfine;
pub(crate) mod iperf3;
pub(crate) mod libp2p;
pub(crate) mod pbench;
pub(crate) mod phoronix;
pub(crate) mod resctl_bench;

/// All formats, in the order in which a text is compared with them.
pub(crate) const ALL: [Format; 8] = [
    pbench::FORMAT,
    fio::FORMAT,
    iperf3::FORMAT,
    hyperfine::FORMAT,
    google_benchmark::FORMAT,
    phoronix::FORMAT,
    libp2p::FORMAT,
    resctl_bench::FORMAT,
];
