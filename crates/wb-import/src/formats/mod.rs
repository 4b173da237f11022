//! Parsers of formats, one module each, from text to [`crate::ForeignResults`].

pub(crate) mod fio;
pub(crate) mod google_benchmark;
pub(crate) mod hyperfine;
pub(crate) mod iperf3;
pub(crate) mod libp2p;
pub(crate) mod pbench;
pub(crate) mod phoronix;
