//! The words of the language: types of flowops, and options with what they mean something on.

use super::profile::Call;

/// What a type of flowop does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    Connect,
    Accept,
    Disconnect,
    Send(Call),
    Receive(Call),
    SendFiles,
    Think,
    Nop,
}

/// The types of flowops, as reports call them.
pub(super) const FLOWOPS: [(&str, Deed); 15] = [
    ("connect", Deed::Connect),
    ("accept", Deed::Accept),
    ("disconnect", Deed::Disconnect),
    ("read", Deed::Receive(Call::ReadWrite)),
    ("write", Deed::Send(Call::ReadWrite)),
    ("recv", Deed::Receive(Call::SendRecv)),
    ("send", Deed::Send(Call::SendRecv)),
    ("recvfrom", Deed::Receive(Call::SendToRecvFrom)),
    ("sendto", Deed::Send(Call::SendToRecvFrom)),
    ("readv", Deed::Receive(Call::Vectored)),
    ("writev", Deed::Send(Call::Vectored)),
    ("sendfile", Deed::SendFiles),
    ("sendfilev", Deed::SendFiles),
    ("think", Deed::Think),
    ("nop", Deed::Nop),
];

/// The type of this name. `redv` is how uperf's own table spells `readv`.
pub(super) fn flowop_type(name: &str) -> Option<(&'static str, Deed)> {
    let name = if name.eq_ignore_ascii_case("redv") { "readv" } else { name };
    FLOWOPS.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name))
}

/// What the other side calls a flowop of this name.
pub(crate) fn opposite(name: &str) -> &str {
    const PAIRS: [(&str, &str); 7] = [
        ("connect", "accept"),
        ("read", "write"),
        ("recv", "send"),
        ("recvfrom", "sendto"),
        ("readv", "writev"),
        ("recvfile", "sendfile"),
        ("recvfilev", "sendfilev"),
    ];
    PAIRS
        .into_iter()
        .find_map(|(one, other)| if name == one { Some(other) } else { (name == other).then_some(one) })
        .unwrap_or(name)
}

/// Types of flowops that take the same options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// connect, accept
    Open,
    /// disconnect
    Close,
    /// read, write, …
    Message,
    /// sendfile, sendfilev
    Files,
    Think,
    Nop,
}

impl Deed {
    pub(super) fn family(self) -> Family {
        match self {
            Self::Connect | Self::Accept => Family::Open,
            Self::Disconnect => Family::Close,
            Self::Send(_) | Self::Receive(_) => Family::Message,
            Self::SendFiles => Family::Files,
            Self::Think => Family::Think,
            Self::Nop => Family::Nop,
        }
    }
}

/// An option of flowops.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) name: &'static str,
    /// Whether it stands without a value.
    pub(super) flag: bool,
    /// What it means something on; elsewhere it is passed over.
    pub(super) on: &'static [Family],
}

const ALL: &[Family] = &[Family::Open, Family::Close, Family::Message, Family::Files, Family::Think, Family::Nop];
const CONNECTED: &[Family] = &[Family::Open, Family::Close, Family::Message, Family::Files];
const OPEN: &[Family] = &[Family::Open];
const MESSAGE: &[Family] = &[Family::Message];
const FILES: &[Family] = &[Family::Files];
const THINK: &[Family] = &[Family::Think];
const BLOCKING: &[Family] = &[Family::Open, Family::Message];

const fn value(name: &'static str, on: &'static [Family]) -> Word {
    Word { name, flag: false, on }
}

const fn flag(name: &'static str, on: &'static [Family]) -> Word {
    Word { name, flag: true, on }
}

/// Every option.
pub(super) const OPTIONS: &[Word] = &[
    value("remotehost", OPEN),
    value("localhost", OPEN),
    value("protocol", OPEN),
    value("port", OPEN),
    value("wndsz", OPEN),
    flag("tcp_nodelay", OPEN),
    value("cc", OPEN),
    value("stack", OPEN),
    value("bblog", OPEN),
    value("engine", OPEN),
    value("cipher", OPEN),
    value("method", OPEN),
    value("encaps", OPEN),
    value("conn", CONNECTED),
    value("size", &[Family::Message, Family::Files]),
    value("rsize", MESSAGE),
    value("batch_size", MESSAGE),
    value("count", ALL),
    value("repeat", ALL),
    value("rate", ALL),
    value("duration", &[Family::Message, Family::Files, Family::Think, Family::Nop]),
    flag("canfail", ALL),
    flag("non_blocking", BLOCKING),
    value("timeout", BLOCKING),
    value("poll_timeout", BLOCKING),
    flag("idle", THINK),
    flag("busy", THINK),
    value("dir", FILES),
    value("nfiles", FILES),
    value("sctp_rto_min", OPEN),
    value("sctp_rto_max", OPEN),
    value("sctp_rto_initial", OPEN),
    value("sctp_sack_delay", OPEN),
    value("sctp_sack_frequency", OPEN),
    value("sctp_max_burst_size", OPEN),
    value("sctp_max_fragment_size", OPEN),
    value("sctp_hb_interval", OPEN),
    value("sctp_path_mtu", OPEN),
    value("sctp_in_streams", OPEN),
    value("sctp_out_streams", OPEN),
    flag("sctp_nodelay", OPEN),
    value("sctp_stream_id", MESSAGE),
    flag("sctp_unordered", MESSAGE),
    value("sctp_pr_policy", MESSAGE),
    value("sctp_pr_value", MESSAGE),
];

/// What uperf had once and has no more: types of flowops, options and protocols.
pub(super) const REMOVED: [&str; 6] = ["wait", "async", "subtype", "waittype", "waitfor", "udapl"];
