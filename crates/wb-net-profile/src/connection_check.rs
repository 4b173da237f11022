//! Checks that every flowop of a group uses a connection that is open.

use wb_diagnostics::Diagnostic;

use super::connections::{ConnectionUse, connection_uses};
use super::context::ParseContext;
use super::profile::{Extent, Flowop, FlowopAction, Group, Protocol};
use super::spanned_text::Span;

/// The largest UDP payload over IPv4, in bytes.
pub const MAX_UDP_PAYLOAD: u32 = 65_507;

/// Reports flowops whose connection is certainly not open, or whose messages cannot pass through it. `spans` holds two
/// spans for each flowop: its own, and that of its connection's name.
pub(super) fn check_connections(scope: &mut ParseContext, group: &Group, spans: &[Vec<(Span, Span)>]) {
    for ((transaction, links), spans) in group.transactions.iter().zip(connection_uses(group)).zip(spans) {
        if transaction.extent == Extent::Iterations(0) {
            continue;
        }
        for ((flowop, link), (span, connection_span)) in transaction.flowops.iter().zip(links).zip(spans) {
            match link {
                ConnectionUse::Closed(last) if !flowop.can_fail => {
                    scope.report(connection_span.clone(), not_open_error(flowop, last.is_some()));
                }
                ConnectionUse::Uses(endpoint) if endpoint.protocol == Protocol::Udp => {
                    check_datagram(scope, flowop, span)
                }
                _ => {}
            }
        }
    }
}

fn not_open_error(flowop: &Flowop, was_open: bool) -> Diagnostic {
    let connection = flowop.connection.map_or("a connection without a name".to_owned(), |conn| format!("conn={conn}"));
    let reason = if was_open { "it was disconnected earlier" } else { "nothing opens it earlier" };
    let open = flowop.connection.map_or(String::new(), |conn| format!("conn={conn} "));
    Diagnostic::labelled(format!("`{}` uses {connection}, which is not open", flowop.name), reason).with_help(format!(
        "open it earlier in this group: `<flowop type=\"connect\" options=\"{open}remotehost=… protocol=…\"/>`"
    ))
}

fn check_datagram(scope: &mut ParseContext, flowop: &Flowop, span: &Span) {
    let (FlowopAction::Send(message) | FlowopAction::Receive(message)) = &flowop.action else { return };
    if message.size.max() > MAX_UDP_PAYLOAD {
        let error = Diagnostic::labelled(
            format!("a message of {} bytes over UDP", message.size.max()),
            "too large for a datagram",
        );
        scope.report(span.clone(), error.with_help(format!("at most {MAX_UDP_PAYLOAD} bytes fit into one")));
    }
}
