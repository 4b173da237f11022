//! Keywords of uperf profiles: the types of flowops, and the options with the flowops that they apply to.
//!
//! A flowop is one operation on a connection, such as `read`. A profile lists them for each thread.

use super::profile::SyscallFamily;

/// What a flowop does, which several types of flowops have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlowopKind {
    Connect,
    Accept,
    Disconnect,
    Send(SyscallFamily),
    Receive(SyscallFamily),
    SendFiles,
    Think,
    Nop,
}

/// The types of flowops by name, in the spelling used in reports.
pub(super) const FLOWOP_KINDS: [(&str, FlowopKind); 15] = [
    ("connect", FlowopKind::Connect),
    ("accept", FlowopKind::Accept),
    ("disconnect", FlowopKind::Disconnect),
    ("read", FlowopKind::Receive(SyscallFamily::ReadWrite)),
    ("write", FlowopKind::Send(SyscallFamily::ReadWrite)),
    ("recv", FlowopKind::Receive(SyscallFamily::SendRecv)),
    ("send", FlowopKind::Send(SyscallFamily::SendRecv)),
    ("recvfrom", FlowopKind::Receive(SyscallFamily::SendToRecvFrom)),
    ("sendto", FlowopKind::Send(SyscallFamily::SendToRecvFrom)),
    ("readv", FlowopKind::Receive(SyscallFamily::Vectored)),
    ("writev", FlowopKind::Send(SyscallFamily::Vectored)),
    ("sendfile", FlowopKind::SendFiles),
    ("sendfilev", FlowopKind::SendFiles),
    ("think", FlowopKind::Think),
    ("nop", FlowopKind::Nop),
];

/// Finds a type of flowops by its name. `redv` is how uperf's own table spells `readv`.
pub(super) fn find_flowop(name: &str) -> Option<(&'static str, FlowopKind)> {
    let name = if name.eq_ignore_ascii_case("redv") { "readv" } else { name };
    FLOWOP_KINDS.into_iter().find(|(candidate, _)| candidate.eq_ignore_ascii_case(name))
}

/// The flowop that the peer executes meanwhile: `write` for `read`. Flowops without a counterpart keep their name.
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
        .find_map(|(left, right)| if name == left { Some(right) } else { (name == right).then_some(left) })
        .unwrap_or(name)
}

/// Group of types of flowops that take the same options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlowopFamily {
    Open,
    Close,
    /// read, write, …
    Message,
    /// sendfile, sendfilev
    Files,
    Think,
    Nop,
}

impl FlowopKind {
    pub(super) fn family(self) -> FlowopFamily {
        match self {
            Self::Connect | Self::Accept => FlowopFamily::Open,
            Self::Disconnect => FlowopFamily::Close,
            Self::Send(_) | Self::Receive(_) => FlowopFamily::Message,
            Self::SendFiles => FlowopFamily::Files,
            Self::Think => FlowopFamily::Think,
            Self::Nop => FlowopFamily::Nop,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct OptionSpec {
    pub(super) name: &'static str,
    pub(super) is_flag: bool,
    /// The flowops that it applies to; it is ignored on others.
    pub(super) applies_to: &'static [FlowopFamily],
}

const ALL: &[FlowopFamily] = &[
    FlowopFamily::Open,
    FlowopFamily::Close,
    FlowopFamily::Message,
    FlowopFamily::Files,
    FlowopFamily::Think,
    FlowopFamily::Nop,
];
const CONNECTED: &[FlowopFamily] =
    &[FlowopFamily::Open, FlowopFamily::Close, FlowopFamily::Message, FlowopFamily::Files];
const OPEN: &[FlowopFamily] = &[FlowopFamily::Open];
const MESSAGE: &[FlowopFamily] = &[FlowopFamily::Message];
const FILES: &[FlowopFamily] = &[FlowopFamily::Files];
const THINK: &[FlowopFamily] = &[FlowopFamily::Think];
const BLOCKING: &[FlowopFamily] = &[FlowopFamily::Open, FlowopFamily::Message];

const fn value(name: &'static str, applies_to: &'static [FlowopFamily]) -> OptionSpec {
    OptionSpec { name, is_flag: false, applies_to }
}

const fn flag(name: &'static str, applies_to: &'static [FlowopFamily]) -> OptionSpec {
    OptionSpec { name, is_flag: true, applies_to }
}

pub(super) const OPTIONS: &[OptionSpec] = &[
    value("remotehost", OPEN),
    value("localhost", OPEN),
    value("protocol", OPEN),
    value("port", OPEN),
    value("wndsz", OPEN),
    flag("tcp_nodelay", OPEN),
    value("cc", OPEN),
    value("mss", OPEN),
    value("tos", OPEN),
    flag("gso", OPEN),
    value("stack", OPEN),
    value("bblog", OPEN),
    value("engine", OPEN),
    value("cipher", OPEN),
    value("method", OPEN),
    value("encaps", OPEN),
    value("conn", CONNECTED),
    value("size", &[FlowopFamily::Message, FlowopFamily::Files]),
    value("rsize", MESSAGE),
    value("batch_size", MESSAGE),
    value("count", ALL),
    value("repeat", ALL),
    value("rate", ALL),
    value("duration", &[FlowopFamily::Message, FlowopFamily::Files, FlowopFamily::Think, FlowopFamily::Nop]),
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

/// The help for a keyword that uperf has removed: a type of flowops, an option or a protocol; `None` for other words.
pub(super) fn removed_help(name: &str) -> Option<String> {
    const REMOVED: [&str; 6] = ["wait", "async", "subtype", "waittype", "waitfor", "udapl"];
    let is_removed = REMOVED.iter().any(|removed| removed.eq_ignore_ascii_case(name));
    is_removed.then(|| format!("`{name}` is a keyword of older uperf versions and is not supported"))
}
