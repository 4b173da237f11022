//! What `connect` and `accept` say of a connection.

use super::context::{ParseContext, ParseError};
use super::flowop::FlowopSource;
use super::keywords::REMOVED;
use super::options::FlowopOptions;
use super::profile::{Endpoint, Protocol, SctpEndpoint};
use super::quantity::{parse_duration, parse_integer, parse_scaled_integer, parse_size};

/// Reads an endpoint; `None` if what it cannot be without is missing.
pub(super) fn parse_endpoint(scope: &mut ParseContext, what: &FlowopSource, processes: u32) -> Option<Endpoint> {
    what.require(scope, "remotehost", "write `remotehost=HOST`, where the other side runs");
    what.require(scope, "protocol", "write `protocol=tcp`, or udp, ssl, sctp, unix, unix-dgram, vsock, quic");
    let options = what.options;
    let port = options.get(scope, "port", |text| parse_integer(text, 1..=u64::from(u16::MAX)));
    if let (true, Some(_), Some(span)) = (processes > 1, port, options.span("port")) {
        let wrong =
            ParseError::new(format!("{processes} processes cannot all accept at one port"), "fixed for all of them")
                .help("leave `port` away, so that each is given its own, or use `nthreads`");
        scope.report(span, wrong);
    }
    let protocol = options.get(scope, "protocol", parse_protocol);
    let endpoint = Endpoint {
        remote: options.word("remotehost").unwrap_or_default(),
        local: options.word("localhost"),
        protocol: protocol.unwrap_or(Protocol::Tcp),
        port: port.map(|port| port as u16),
        window: options.get(scope, "wndsz", parse_size),
        no_delay: options.has("tcp_nodelay"),
        congestion: options.word("cc"),
        non_blocking: options.has("non_blocking"),
        kernel_tls: is_kernel_tls(options),
        timeout: parse_timeout(scope, options),
        sctp: parse_sctp(scope, options),
    };
    let protocol = protocol?;
    note_ignored_options(scope, options, protocol);
    Some(endpoint)
}

/// `engine=ktls`, the only engine of which there is a choice.
fn is_kernel_tls(options: &FlowopOptions) -> bool {
    options.word("engine").is_some_and(|engine| engine.eq_ignore_ascii_case("ktls"))
}

fn parse_protocol(name: &str) -> Result<Protocol, ParseError> {
    const ALIASES: [(&str, Protocol); 2] = [("tls", Protocol::Tls), ("unixgram", Protocol::UnixDgram)];
    let name = name.trim();
    let names = || Protocol::ALL.map(|protocol| (protocol.name(), protocol)).into_iter().chain(ALIASES);
    names().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, protocol)| protocol).ok_or_else(|| {
        let wrong = ParseError::new(format!("there is no protocol `{name}`"), "unknown");
        if REMOVED.iter().any(|removed| removed.eq_ignore_ascii_case(name)) {
            return wrong.help(format!("`{name}` belongs to a dialect that uperf no longer speaks either"));
        }
        let known = Protocol::ALL.map(Protocol::name).join(", ");
        wrong.suggest(name, names().map(|(name, _)| name)).help(format!("known are {known}"))
    })
}

/// `timeout`, which has two names.
pub(super) fn parse_timeout(scope: &mut ParseContext, options: &FlowopOptions) -> Option<std::time::Duration> {
    if let (true, Some(span)) = (options.has("timeout"), options.span("poll_timeout")) {
        let wrong = ParseError::new("`poll_timeout` is another name of `timeout`", "`timeout` is given, too");
        scope.report(span, wrong.help("leave one away"));
    }
    let name = if options.has("timeout") { "timeout" } else { "poll_timeout" };
    options.get_with_note(scope, name, parse_duration)
}

fn parse_sctp(scope: &mut ParseContext, options: &FlowopOptions) -> SctpEndpoint {
    let mut figure = |name| {
        options.get(scope, name, |text| parse_scaled_integer(text, 0..=u64::from(u32::MAX))).map(|figure| figure as u32)
    };
    let mut sctp = SctpEndpoint {
        rto_min: figure("sctp_rto_min"),
        rto_max: figure("sctp_rto_max"),
        rto_initial: figure("sctp_rto_initial"),
        sack_delay: figure("sctp_sack_delay"),
        sack_frequency: figure("sctp_sack_frequency"),
        max_burst: figure("sctp_max_burst_size"),
        max_fragment: figure("sctp_max_fragment_size"),
        heartbeat: figure("sctp_hb_interval"),
        path_mtu: figure("sctp_path_mtu"),
        no_delay: options.has("sctp_nodelay"),
        ..SctpEndpoint::default()
    };
    let mut short = |name| {
        options.get(scope, name, |text| parse_scaled_integer(text, 1..=u64::from(u16::MAX))).map(|figure| figure as u16)
    };
    sctp.in_streams = short("sctp_in_streams");
    sctp.out_streams = short("sctp_out_streams");
    sctp.encapsulation = short("encaps");
    sctp
}

/// Says which options change nothing: those of another protocol or of another system.
fn note_ignored_options(scope: &mut ParseContext, options: &FlowopOptions, protocol: Protocol) {
    let tcp = matches!(protocol, Protocol::Tcp | Protocol::Tls);
    let name = protocol.name();
    for (given, of_this_protocol) in [("tcp_nodelay", tcp), ("cc", tcp), ("encaps", protocol == Protocol::Sctp)] {
        if let (false, Some(span)) = (of_this_protocol, options.span(given)) {
            scope.add_note(span, format!("`{given}` means nothing with protocol {name}"));
        }
    }
    for given in ["engine", "cipher", "method"] {
        if given == "engine" && is_kernel_tls(options) {
            continue;
        }
        if let Some(span) = options.span(given) {
            scope.add_note(span, format!("`{given}` is OpenSSL's and is passed over: TLS is done by rustls"));
        }
    }
    for given in ["stack", "bblog"] {
        if let Some(span) = options.span(given) {
            scope.add_note(span, format!("`{given}` is FreeBSD's and is passed over: Linux has one TCP stack"));
        }
    }
    if let (true, Some(span)) = (protocol != Protocol::Sctp, options.first_with_prefix("sctp_")) {
        scope.add_note(span, format!("options of SCTP mean nothing with protocol {name}"));
    }
}
