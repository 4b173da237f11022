//! Execution plans: a group's transactions, with everything precomputed that a strand must not compute while measured.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::protocol::Side;
use wb_net_profile::{Endpoint, Extent, Flowop, FlowopAction, Group, Message, MessageSize};

/// A group from the point of view of one side.
#[derive(Debug)]
pub(crate) struct GroupPlan {
    pub(crate) name: String,
    pub(crate) index: u32,
    /// Number of strands of the whole group.
    pub(crate) strands: u32,
    pub(crate) transactions: Vec<TransactionPlan>,
    /// The hosts of the profile; on a server, only the client.
    hosts: Vec<String>,
    /// The largest buffer that a flowop needs, in bytes.
    pub(crate) buffer: usize,
}

#[derive(Debug)]
pub(crate) struct TransactionPlan {
    pub(crate) name: String,
    pub(crate) extent: Extent,
    /// Nanoseconds between the starts of two rounds of a strand.
    pub(crate) period: Option<f64>,
    pub(crate) flowops: Vec<FlowopPlan>,
    pub(crate) is_data_phase: bool,
    /// Whether none of its flowops concerns this side.
    pub(crate) idle: bool,
}

#[derive(Debug)]
pub(crate) struct FlowopPlan {
    pub(crate) flowop: Flowop,
    /// Of a connect or accept; the links of all strands share it.
    pub(crate) endpoint: Option<Arc<Endpoint>>,
    /// Its number in the group, the same on both sides.
    pub(crate) id: u32,
    pub(crate) executions: Executions,
    /// Nanoseconds between the starts of two executions.
    pub(crate) period: Option<f64>,
    /// The other side's host, by position among the client's hosts.
    pub(crate) host: u32,
    pub(crate) batch: u64,
    /// Whether a disconnect follows a receive that ended by time, so that the other side may still send.
    pub(crate) drains: bool,
    /// Whether a connect is followed by a message of this side on the same connection, at once.
    pub(crate) defers_cookie: bool,
}

/// The number of executions of a flowop, and their size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Executions {
    AsWritten(u64),
    /// The number of bytes that the profile gives, in pieces of another size (`rsize`).
    InPieces {
        executions: u64,
        total: ByteTotal,
        piece: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ByteTotal {
    Round(u64),
    /// Unlimited, for as long as the window is open.
    Endless,
}

impl GroupPlan {
    pub(crate) fn new(group_index: usize, group: &Group, side: Side, hosts: &BTreeMap<String, u32>) -> Self {
        let mut next_id = 0;
        let mut connections =
            PlannedConnections { hosts, named: BTreeMap::new(), anonymous: PlannedConnection::default() };
        let data_phase: Vec<usize> = group.data_phase().collect();
        let transactions: Vec<TransactionPlan> = group
            .transactions
            .iter()
            .enumerate()
            .map(|(index, transaction)| {
                let alone = transaction.flowops.iter().filter(|flowop| is_message(flowop)).count() == 1
                    && transaction.flowops.iter().all(|flowop| {
                        is_message(flowop) || matches!(flowop.action, FlowopAction::Nop | FlowopAction::Skip)
                    });
                let mut extent = transaction.extent;
                let flowops: Vec<FlowopPlan> = transaction
                    .flowops
                    .iter()
                    .enumerate()
                    .map(|(position, flowop)| {
                        let defers_cookie = defers_cookie(flowop, transaction.flowops.get(position + 1));
                        let drains = follows_timed_receive(&transaction.flowops[..=position]);
                        let executions = executions(flowop, side, alone, &mut extent);
                        next_id += 1;
                        let PlannedConnection { host, datagrams } = connections.resolve(flowop);
                        let received_alone = datagrams && matches!(flowop.action, FlowopAction::Receive(_));
                        FlowopPlan {
                            id: next_id - 1,
                            executions,
                            period: flowop.rate.map(|rate| 1e9 / rate),
                            host,
                            batch: if received_alone { 1 } else { flowop.batch() },
                            flowop: with_polling(flowop),
                            endpoint: flowop.endpoint().cloned().map(Arc::new),
                            defers_cookie,
                            drains,
                        }
                    })
                    .collect();
                TransactionPlan {
                    name: transaction.name.clone(),
                    extent,
                    period: transaction.rate.map(|rate| 1e9 / rate),
                    is_data_phase: data_phase.contains(&index),
                    idle: transaction.flowops.iter().all(|flowop| matches!(flowop.action, FlowopAction::Skip)),
                    flowops,
                }
            })
            .collect();
        let buffers = group.flowops().filter_map(|flowop| {
            let message = message(flowop)?;
            Some(message.size.max().max(message.remote_size.unwrap_or(0)) as usize * flowop.batch() as usize)
        });
        Self {
            name: group.name.clone(),
            index: group_index as u32,
            strands: group.strands,
            transactions,
            hosts: hosts.keys().cloned().collect(),
            buffer: buffers.max().unwrap_or(0).max(MIN_BUFFER),
        }
    }

    pub(crate) fn host(&self, flowop: &FlowopPlan) -> &str {
        self.hosts.get(flowop.host as usize).map_or("nobody", String::as_str)
    }
}

impl TransactionPlan {
    pub(crate) fn moves_data(&self) -> bool {
        self.flowops.iter().any(|flowop| flowop.flowop.action.moves_data())
    }
}

impl GroupPlan {
    /// The part of a period by which a strand's schedule is delayed. It spreads the strands of a group over the period.
    pub(crate) fn phase(&self, strand: u32) -> f64 {
        f64::from(strand) / f64::from(self.strands.max(1))
    }

    pub(crate) fn is_data_phase(&self, transaction: usize) -> bool {
        self.transactions[transaction].is_data_phase
    }
}

/// The minimum buffer size in bytes: the buffer also serves for discarding data and reading files.
const MIN_BUFFER: usize = 1 << 16;

pub(crate) fn message(flowop: &Flowop) -> Option<&Message> {
    match &flowop.action {
        FlowopAction::Send(message) | FlowopAction::Receive(message) => Some(message),
        _ => None,
    }
}

/// Whether a connect is executed once and followed by a message of its side, which is sent at once.
fn defers_cookie(flowop: &Flowop, next: Option<&Flowop>) -> bool {
    next.is_some_and(|next| {
        flowop.executions() == 1
            && next.rate.is_none()
            && next.connection == flowop.connection
            && matches!(next.action, FlowopAction::Send(_))
    })
}

/// Whether the last of these flowops is a disconnect, and another one received on the connection until a point in time.
fn follows_timed_receive(flowops: &[Flowop]) -> bool {
    let Some((last, before)) = flowops.split_last() else { return false };
    matches!(last.action, FlowopAction::Disconnect)
        && before.iter().filter(|flowop| flowop.connection == last.connection).any(|flowop| match &flowop.action {
            FlowopAction::Receive(message) => flowop.duration.is_some() || message.timeout.is_some(),
            FlowopAction::ReceiveFiles(_) => flowop.duration.is_some(),
            _ => false,
        })
}

/// Makes a flowop with a time limit non-blocking, so that it can be polled for its end.
fn with_polling(flowop: &Flowop) -> Flowop {
    let mut flowop = flowop.clone();
    let timed = flowop.duration.is_some();
    if let FlowopAction::Send(message) | FlowopAction::Receive(message) = &mut flowop.action {
        message.non_blocking |= timed || message.timeout.is_some();
    }
    flowop
}

fn is_message(flowop: &Flowop) -> bool {
    message(flowop).is_some()
}

/// The executions of a flowop on one side: on a server, with `rsize`, the same bytes in messages of another size. A
/// message that is alone in its transaction is one long stream, whose pieces need not align with rounds.
fn executions(flowop: &Flowop, side: Side, alone: bool, extent: &mut Extent) -> Executions {
    let written = Executions::AsWritten(flowop.executions());
    let Some(Message { size: MessageSize::Fixed(piece), remote_size: Some(size), .. }) = message(flowop) else {
        return written;
    };
    if side == Side::Client || flowop.duration.is_some() {
        return written;
    }
    let round = u64::from(*size).saturating_mul(flowop.executions());
    let pieces = |total: u64| Executions::InPieces {
        executions: total.div_ceil(u64::from(*piece)),
        total: ByteTotal::Round(total),
        piece: *piece,
    };
    match *extent {
        Extent::Window(_) if alone => {
            Executions::InPieces { executions: u64::MAX, total: ByteTotal::Endless, piece: *piece }
        }
        Extent::Iterations(rounds) if alone && rounds > 0 => {
            *extent = Extent::Iterations(1);
            pieces(round.saturating_mul(rounds))
        }
        _ => pieces(round),
    }
}

/// The host and kind of a connection, before it is opened.
#[derive(Debug, Clone, Copy, Default)]
struct PlannedConnection {
    host: u32,
    datagrams: bool,
}

/// The connections of a strand, in the order of the profile.
struct PlannedConnections<'a> {
    hosts: &'a BTreeMap<String, u32>,
    named: BTreeMap<u32, PlannedConnection>,
    anonymous: PlannedConnection,
}

impl PlannedConnections<'_> {
    fn resolve(&mut self, flowop: &Flowop) -> PlannedConnection {
        if let Some(endpoint) = flowop.endpoint() {
            let host = self.hosts.get(&endpoint.remote).copied().unwrap_or(0);
            let connection = PlannedConnection { host, datagrams: endpoint.protocol.is_datagram() };
            match flowop.connection {
                Some(name) => {
                    self.named.insert(name, connection);
                }
                None => self.anonymous = connection,
            }
        }
        flowop.connection.and_then(|name| self.named.get(&name).copied()).unwrap_or(self.anonymous)
    }
}
