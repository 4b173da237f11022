//! What can be wrong with a group only when its connections are followed.

use super::connections::{Link, links};
use super::profile::{Action, Extent, Flowop, Group, Protocol};
use super::scope::{Scope, Wrong};
use super::text::Span;

/// What a datagram of UDP holds over IPv4.
pub const LARGEST_DATAGRAM: u32 = 65_507;

/// Reports what uses a connection that is certainly not open, or cannot pass through the one that is.
///
/// `places` are each flowop's own and that of the name of its connection.
pub(super) fn follow_connections(scope: &mut Scope, group: &Group, places: &[Vec<(Span, Span)>]) {
    for ((transaction, links), places) in group.transactions.iter().zip(links(group)).zip(places) {
        if transaction.extent == Extent::Iterations(0) {
            continue;
        }
        for ((flowop, link), (span, connection_span)) in transaction.flowops.iter().zip(links).zip(places) {
            match link {
                Link::Closed(last) if !flowop.can_fail => {
                    scope.fault(connection_span.clone(), closed(flowop, last.is_some()));
                }
                Link::Uses(endpoint) if endpoint.protocol == Protocol::Udp => datagram(scope, flowop, span),
                _ => {}
            }
        }
    }
}

fn closed(flowop: &Flowop, was_open: bool) -> Wrong {
    let connection = flowop.connection.map_or("a connection without a name".to_owned(), |conn| format!("conn={conn}"));
    let why = if was_open { "it is disconnected before" } else { "nothing before opens it" };
    let open = flowop.connection.map_or(String::new(), |conn| format!("conn={conn} "));
    Wrong::new(format!("`{}` uses {connection}, which is not open", flowop.name), why).help(format!(
        "open it earlier in this group: `<flowop type=\"connect\" options=\"{open}remotehost=… protocol=…\"/>`"
    ))
}

fn datagram(scope: &mut Scope, flowop: &Flowop, span: &Span) {
    let (Action::Send(message) | Action::Receive(message)) = &flowop.action else { return };
    if message.size.max() > LARGEST_DATAGRAM {
        let wrong =
            Wrong::new(format!("a message of {} bytes over UDP", message.size.max()), "too large for a datagram");
        scope.fault(span.clone(), wrong.help(format!("at most {LARGEST_DATAGRAM} bytes fit into one")));
    }
}
