//! Determines which connection each flowop of a group uses, in straight-line order.
//!
//! Every strand (a thread or process of a group, in uperf's words) has connections of its own. A flowop uses the one
//! that its `conn` names, or the first open one without a name. Where the set of open connections depends on the run,
//! as after a window of connects, this assumes more open connections rather than fewer, so that what it reports as
//! [`ConnectionUse::Closed`] certainly is.

use std::collections::{BTreeMap, VecDeque};

use super::profile::{Endpoint, Extent, Flowop, FlowopAction, Group, Transaction};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ConnectionUse<'a> {
    None,
    Opens(&'a Endpoint),
    /// The flowop uses or closes an open connection.
    Uses(&'a Endpoint),
    /// The flowop uses a connection that is not open; this was the last one, if any.
    Closed(Option<&'a Endpoint>),
}

impl<'a> ConnectionUse<'a> {
    /// The endpoint of the connection, open or not.
    pub(crate) fn endpoint(self) -> Option<&'a Endpoint> {
        match self {
            ConnectionUse::None => None,
            ConnectionUse::Opens(endpoint) | ConnectionUse::Uses(endpoint) => Some(endpoint),
            ConnectionUse::Closed(last) => last,
        }
    }
}

/// The connection use of every flowop, by transaction and position.
pub(crate) fn connection_uses(group: &Group) -> Vec<Vec<ConnectionUse<'_>>> {
    let mut open = OpenConnections::default();
    group.transactions.iter().map(|transaction| open.apply_transaction(transaction)).collect()
}

#[derive(Clone, Default)]
struct OpenConnections<'a> {
    named: BTreeMap<u32, NamedConnection<'a>>,
    /// Unnamed connections, the oldest first; consecutive ones to the same endpoint are counted.
    anonymous: VecDeque<(&'a Endpoint, u64)>,
    /// The last connection that was opened without a name.
    last: Option<&'a Endpoint>,
}

#[derive(Clone, Copy)]
struct NamedConnection<'a> {
    endpoint: &'a Endpoint,
    open: bool,
}

impl<'a> OpenConnections<'a> {
    fn apply_transaction(&mut self, transaction: &'a Transaction) -> Vec<ConnectionUse<'a>> {
        let before = (transaction.extent == Extent::Iterations(0)).then(|| self.clone());
        let uses = transaction.flowops.iter().map(|flowop| self.apply_flowop(flowop)).collect();
        match before {
            // A transaction that never runs opens and closes nothing, and cannot fail.
            Some(before) => *self = before,
            None => self.apply_further_rounds(transaction),
        }
        uses
    }

    fn apply_flowop(&mut self, flowop: &'a Flowop) -> ConnectionUse<'a> {
        match &flowop.action {
            FlowopAction::Connect(endpoint) | FlowopAction::Accept(endpoint) => {
                self.open(flowop.connection, endpoint, flowop.executions());
                ConnectionUse::Opens(endpoint)
            }
            FlowopAction::Disconnect => {
                let connection_use = self.find(flowop.connection);
                self.close(flowop.connection, flowop.executions());
                connection_use
            }
            FlowopAction::Send(_)
            | FlowopAction::Receive(_)
            | FlowopAction::SendFiles(_)
            | FlowopAction::ReceiveFiles(_) => self.find(flowop.connection),
            FlowopAction::Think { .. } | FlowopAction::Nop | FlowopAction::Skip => ConnectionUse::None,
        }
    }

    fn open(&mut self, name: Option<u32>, endpoint: &'a Endpoint, times: u64) {
        match name {
            Some(name) => _ = self.named.insert(name, NamedConnection { endpoint, open: true }),
            None => {
                self.anonymous.push_back((endpoint, times));
                self.last = Some(endpoint);
            }
        }
    }

    fn close(&mut self, name: Option<u32>, mut times: u64) {
        if let Some(name) = name {
            self.named.entry(name).and_modify(|named| named.open = false);
            return;
        }
        while let (true, Some((_, open))) = (times > 0, self.anonymous.front_mut()) {
            let closed = times.min(*open);
            *open -= closed;
            times -= closed;
            if *open == 0 {
                self.anonymous.pop_front();
            }
        }
    }

    fn find(&self, name: Option<u32>) -> ConnectionUse<'a> {
        match name {
            None => self
                .anonymous
                .front()
                .map_or(ConnectionUse::Closed(self.last), |(endpoint, _)| ConnectionUse::Uses(endpoint)),
            Some(name) => match self.named.get(&name) {
                Some(named) if named.open => ConnectionUse::Uses(named.endpoint),
                closed => ConnectionUse::Closed(closed.map(|named| named.endpoint)),
            },
        }
    }

    /// Applies the rounds after the first. For named connections, further rounds change nothing.
    fn apply_further_rounds(&mut self, transaction: &'a Transaction) {
        let anonymous = |opening: bool| {
            let of_kind = transaction.flowops.iter().filter(move |flowop| match flowop.action {
                FlowopAction::Connect(_) | FlowopAction::Accept(_) => opening && flowop.connection.is_none(),
                FlowopAction::Disconnect => !opening && flowop.connection.is_none(),
                _ => false,
            });
            of_kind.map(Flowop::executions).fold(0, u64::saturating_add)
        };
        let (opened, closed) = (anonymous(true), anonymous(false));
        let further = match transaction.extent {
            Extent::Iterations(rounds) => rounds.saturating_sub(1),
            // Any number of rounds: assume the number that leaves most connections open.
            Extent::Window(_) if opened > closed => u64::MAX,
            Extent::Window(_) => 0,
        };
        if let (true, Some(last)) = (opened > closed && further > 0, self.last) {
            self.open(None, last, further.saturating_mul(opened - closed));
        }
        if closed > opened {
            self.close(None, further.saturating_mul(closed - opened));
        }
    }
}
