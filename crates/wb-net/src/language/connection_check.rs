//! Checks that every flowop of a group uses a connection that is open.

use super::connections::{ConnectionUse, connection_uses};
use super::context::{ParseContext, ParseError};
use super::profile::{Extent, Flowop, FlowopAction, Group, Protocol};
use super::spanned_text::Span;

/// What a datagram of UDP holds over IPv4.
pub const MAX_UDP_PAYLOAD: u32 = 65_507;

/// Reports what uses a connection that is certainly not open, or cannot pass through the one that is.
///
/// `places` are each flowop's own and that of the name of its connection.
pub(super) fn check_connections(scope: &mut ParseContext, group: &Group, places: &[Vec<(Span, Span)>]) {
    for ((transaction, links), places) in group.transactions.iter().zip(connection_uses(group)).zip(places) {
        if transaction.extent == Extent::Iterations(0) {
            continue;
        }
        for ((flowop, link), (span, connection_span)) in transaction.flowops.iter().zip(links).zip(places) {
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

fn not_open_error(flowop: &Flowop, was_open: bool) -> ParseError {
    let connection = flowop.connection.map_or("a connection without a name".to_owned(), |conn| format!("conn={conn}"));
    let why = if was_open { "it is disconnected before" } else { "nothing before opens it" };
    let open = flowop.connection.map_or(String::new(), |conn| format!("conn={conn} "));
    ParseError::new(format!("`{}` uses {connection}, which is not open", flowop.name), why).help(format!(
        "open it earlier in this group: `<flowop type=\"connect\" options=\"{open}remotehost=… protocol=…\"/>`"
    ))
}

fn check_datagram(scope: &mut ParseContext, flowop: &Flowop, span: &Span) {
    let (FlowopAction::Send(message) | FlowopAction::Receive(message)) = &flowop.action else { return };
    if message.size.max() > MAX_UDP_PAYLOAD {
        let wrong =
            ParseError::new(format!("a message of {} bytes over UDP", message.size.max()), "too large for a datagram");
        scope.report(span.clone(), wrong.help(format!("at most {MAX_UDP_PAYLOAD} bytes fit into one")));
    }
}
