//! Parses the options of `connect` and `accept`.

use wb_diagnostics::{Diagnostic, suggest};

use super::context::ParseContext;
use super::flowop_source::FlowopSource;
use super::keywords::removed_help;
use super::options::FlowopOptions;
use super::profile::{Endpoint, Protocol, SctpEndpoint};
use super::quantity::{parse_duration, parse_integer, parse_scaled_integer, parse_size, parse_type_of_service};

/// The maximum segment sizes that Linux accepts (tcp(7)).
const MSS_RANGE: std::ops::RangeInclusive<u64> = 88..=32_767;

/// Parses an endpoint; `None` if a required option is missing.
pub(super) fn parse_endpoint(scope: &mut ParseContext, source: &FlowopSource, processes: u32) -> Option<Endpoint> {
    source.require(scope, "remotehost", "write `remotehost=HOST`, where the other side runs");
    source.require(scope, "protocol", "write `protocol=tcp`, or udp, ssl, sctp, unix, unix-dgram, vsock, quic");
    let options = source.options;
    let port = options.get(scope, "port", |text| parse_integer(text, 1..=u64::from(u16::MAX)));
    if let (true, Some(_), Some(span)) = (processes > 1, port, options.span("port")) {
        let error = Diagnostic::labelled(
            format!("{processes} processes cannot all accept on one port"),
            "fixed for all of them",
        )
        .with_help("omit `port`, so that each gets its own, or use `nthreads`");
        scope.report(span, error);
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
        mss: options.get(scope, "mss", |text| parse_integer(text, MSS_RANGE)).map(|size| size as u32),
        tos: options.get(scope, "tos", |text| {
            let invalid = || Diagnostic::labelled(format!("invalid type of service `{text}`"), "not a byte");
            parse_type_of_service(text)
                .ok_or_else(|| invalid().with_help("expected a number from 0 to 255, also as 0x…"))
        }),
        gso: options.has("gso"),
        local_port: None,
        pacing: None,
        user_timeout: None,
        dont_fragment: false,
        non_blocking: options.has("non_blocking"),
        kernel_tls: is_kernel_tls(options),
        timeout: parse_timeout(scope, options),
        sctp: parse_sctp(scope, options),
    };
    let protocol = protocol?;
    note_ignored_options(scope, options, protocol);
    Some(endpoint)
}

/// Whether `engine=ktls` is given, the only supported engine.
fn is_kernel_tls(options: &FlowopOptions) -> bool {
    options.word("engine").is_some_and(|engine| engine.eq_ignore_ascii_case("ktls"))
}

fn parse_protocol(name: &str) -> Result<Protocol, Diagnostic> {
    const ALIASES: [(&str, Protocol); 2] = [("tls", Protocol::Tls), ("unixgram", Protocol::UnixDgram)];
    let name = name.trim();
    let names = || Protocol::ALL.map(|protocol| (protocol.name(), protocol)).into_iter().chain(ALIASES);
    names().find(|(candidate, _)| candidate.eq_ignore_ascii_case(name)).map(|(_, protocol)| protocol).ok_or_else(|| {
        let error = Diagnostic::labelled(format!("unknown protocol `{name}`"), "unknown");
        if let Some(help) = removed_help(name) {
            return error.with_help(help);
        }
        let names_list = Protocol::ALL.map(Protocol::name).join(", ");
        error
            .with_suggestion(suggest(name, names().map(|(name, _)| name)))
            .with_help(format!("expected one of {names_list}"))
    })
}

/// Parses `timeout`, which has two names.
pub(super) fn parse_timeout(scope: &mut ParseContext, options: &FlowopOptions) -> Option<std::time::Duration> {
    if let (true, Some(span)) = (options.has("timeout"), options.span("poll_timeout")) {
        let error = Diagnostic::labelled("`poll_timeout` is another name of `timeout`", "`timeout` is given, too");
        scope.report(span, error.with_help("remove one of them"));
    }
    let name = if options.has("timeout") { "timeout" } else { "poll_timeout" };
    options.get_with_note(scope, name, parse_duration)
}

fn parse_sctp(scope: &mut ParseContext, options: &FlowopOptions) -> SctpEndpoint {
    let mut number = |name| {
        options.get(scope, name, |text| parse_scaled_integer(text, 0..=u64::from(u32::MAX))).map(|number| number as u32)
    };
    let mut sctp = SctpEndpoint {
        rto_min: number("sctp_rto_min"),
        rto_max: number("sctp_rto_max"),
        rto_initial: number("sctp_rto_initial"),
        sack_delay: number("sctp_sack_delay"),
        sack_frequency: number("sctp_sack_frequency"),
        max_burst: number("sctp_max_burst_size"),
        max_fragment: number("sctp_max_fragment_size"),
        heartbeat: number("sctp_hb_interval"),
        path_mtu: number("sctp_path_mtu"),
        no_delay: options.has("sctp_nodelay"),
        ..SctpEndpoint::default()
    };
    let mut short = |name| {
        options.get(scope, name, |text| parse_scaled_integer(text, 1..=u64::from(u16::MAX))).map(|number| number as u16)
    };
    sctp.in_streams = short("sctp_in_streams");
    sctp.out_streams = short("sctp_out_streams");
    sctp.encapsulation = short("encaps");
    sctp
}

fn has_ip_header(protocol: Protocol) -> bool {
    !matches!(protocol, Protocol::Unix | Protocol::UnixDgram | Protocol::Vsock)
}

/// Adds notes on options without effect: those of another protocol or another system.
fn note_ignored_options(scope: &mut ParseContext, options: &FlowopOptions, protocol: Protocol) {
    let tcp = matches!(protocol, Protocol::Tcp | Protocol::Tls);
    let name = protocol.name();
    for (option, of_this_protocol) in [
        ("tcp_nodelay", tcp),
        ("cc", tcp),
        ("mss", tcp),
        ("tos", has_ip_header(protocol)),
        ("gso", protocol == Protocol::Udp),
        ("encaps", protocol == Protocol::Sctp),
    ] {
        if let (false, Some(span)) = (of_this_protocol, options.span(option)) {
            scope.add_note(span, format!("`{option}` has no effect with protocol {name}"));
        }
    }
    for option in ["engine", "cipher", "method"] {
        if option == "engine" && is_kernel_tls(options) {
            continue;
        }
        if let Some(span) = options.span(option) {
            scope.add_note(
                span,
                format!("`{option}` is an OpenSSL option and is ignored: TLS is implemented by rustls"),
            );
        }
    }
    for option in ["stack", "bblog"] {
        if let Some(span) = options.span(option) {
            scope.add_note(span, format!("`{option}` is a FreeBSD option and is ignored: Linux has one TCP stack"));
        }
    }
    if let (true, Some(span)) = (protocol != Protocol::Sctp, options.first_with_prefix("sctp_")) {
        scope.add_note(span, format!("SCTP options have no effect with protocol {name}"));
    }
}
