//! Which connection each flowop of a group is about, followed in straight-line order.
//!
//! Every strand has connections of its own. A flowop means the one that its `conn` names, or the first open one
//! that has no name. Where it depends on the run what is open, as after a window of connects, this assumes more
//! open connections rather than fewer, so that what it calls [`Link::Closed`] certainly is.

use std::collections::{BTreeMap, VecDeque};

use super::profile::{Endpoint, Extent, Flowop, FlowopAction, Group, Transaction};

/// What a flowop has to do with connections.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ConnectionUse<'a> {
    /// It needs none.
    None,
    /// It opens one.
    Opens(&'a Endpoint),
    /// It uses or closes an open one.
    Uses(&'a Endpoint),
    /// What it uses is not open; this is what was, last.
    Closed(Option<&'a Endpoint>),
}

impl<'a> ConnectionUse<'a> {
    /// The endpoint that is meant, open or not.
    pub(crate) fn endpoint(self) -> Option<&'a Endpoint> {
        match self {
            ConnectionUse::None => None,
            ConnectionUse::Opens(endpoint) | ConnectionUse::Uses(endpoint) => Some(endpoint),
            ConnectionUse::Closed(last) => last,
        }
    }
}

/// The link of every flowop, by transaction and position.
pub(crate) fn connection_uses(group: &Group) -> Vec<Vec<ConnectionUse<'_>>> {
    let mut open = OpenConnections::default();
    group.transactions.iter().map(|transaction| open.apply_transaction(transaction)).collect()
}

/// The connections of a strand that are open.
#[derive(Clone, Default)]
struct OpenConnections<'a> {
    named: BTreeMap<u32, NamedConnection<'a>>,
    /// How many in a row to the same endpoint, the oldest first.
    anonymous: VecDeque<(&'a Endpoint, u64)>,
    /// The last that was opened without a name.
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
        let links = transaction.flowops.iter().map(|flowop| self.apply_flowop(flowop)).collect();
        match before {
            // What never runs opens and closes nothing, and nothing in it can go wrong.
            Some(before) => *self = before,
            None => self.apply_further_rounds(transaction),
        }
        links
    }

    fn apply_flowop(&mut self, flowop: &'a Flowop) -> ConnectionUse<'a> {
        match &flowop.action {
            FlowopAction::Connect(endpoint) | FlowopAction::Accept(endpoint) => {
                self.open(flowop.connection, endpoint, flowop.executions());
                ConnectionUse::Opens(endpoint)
            }
            FlowopAction::Disconnect => {
                let link = self.find(flowop.connection);
                self.close(flowop.connection, flowop.executions());
                link
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

    /// What the rounds after the first leave behind. Names are bound after one round as after many.
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
            // Any number of rounds: as many as leave most open.
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
