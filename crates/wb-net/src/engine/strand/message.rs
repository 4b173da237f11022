//! Messages: a number of bytes of a stream, or a datagram.

use std::io::ErrorKind;

use super::connections::find_connection;
use super::datagram_header::{self, DatagramHeader};
use super::{DATAGRAM_GRACE, Intent, Message, StepResult, Strand, StrandContext, StrandOperation, io_error};
use crate::engine::clock::{self, Nanos};
use crate::engine::plan::{ByteTotal, Executions, FlowopPlan};
use crate::engine::protocol::Side;
use crate::engine::random::RandomKey;
use crate::transport::cookie::resembles_cookie;
use wb_net_profile::MessageSize;

#[derive(Debug, Clone, Copy)]
pub(super) struct MessageTransfer {
    began: Nanos,
    /// Intended start, given by a rate.
    intended: Option<Nanos>,
    /// Bytes moved so far, of `size`.
    moved: usize,
    size: usize,
}

impl Strand {
    pub(super) fn send(
        &mut self,
        flowop: &FlowopPlan,
        message: &Message,
        context: &mut StrandContext<'_>,
    ) -> StepResult {
        let mut transfer = match self.begin_message(flowop, message) {
            Ok(transfer) => transfer,
            Err(wait) => return StepResult::Wait(wait),
        };
        let messages = self.batch_size(flowop);
        let MessageTransfer { began, intended, size: goal, .. } = transfer;
        let Some(open) = find_connection(&mut self.open, flowop) else { return self.connection_not_open(flowop) };
        if open.datagrams {
            let (position, size) = (&self.position, goal / messages as usize);
            if transfer.moved == 0 && size >= datagram_header::LENGTH && open.has_headers {
                for (datagram, execution) in context.buffer[..goal].chunks_exact_mut(size).zip(position.execution..) {
                    DatagramHeader::new(position.transaction, position.round, position.flowop, execution)
                        .write(datagram);
                    DatagramHeader::write_time(datagram, began);
                }
            }
            while transfer.moved < goal {
                let sent = match messages {
                    1 => open.transport.send(&context.buffer[..goal], message).map(|_| 1),
                    _ => open.transport.send_many(&context.buffer[transfer.moved..goal], size, message),
                };
                match sent {
                    Ok(sent) => {
                        open.sent += sent as u64;
                        transfer.moved += sent * size;
                    }
                    Err(error) => return self.handle_interruption(flowop, message, Intent::Send, transfer, error),
                }
            }
            return StepResult::Done { messages, began, intended, sent: goal as u64, received: 0 };
        }
        while open.unsent > 0 {
            // The rest of a message that was given up: the other side expects whole messages.
            match open.transport.send(&context.buffer[..open.unsent.min(context.buffer.len())], message) {
                Ok(moved) => {
                    open.sent += moved as u64;
                    open.unsent -= moved;
                }
                Err(error) => return self.handle_interruption(flowop, message, Intent::Send, transfer, error),
            }
        }
        while transfer.moved < goal {
            match open.transport.send(&context.buffer[transfer.moved..goal], message) {
                Ok(moved) => {
                    open.sent += moved as u64;
                    transfer.moved += moved;
                }
                Err(error) => return self.handle_interruption(flowop, message, Intent::Send, transfer, error),
            }
        }
        StepResult::Done { messages, began, intended, sent: goal as u64, received: 0 }
    }

    pub(super) fn receive(
        &mut self,
        flowop: &FlowopPlan,
        message: &Message,
        context: &mut StrandContext<'_>,
    ) -> StepResult {
        let mut transfer = match self.begin_message(flowop, message) {
            Ok(transfer) => transfer,
            Err(wait) => return StepResult::Wait(wait),
        };
        let messages = self.batch_size(flowop);
        let MessageTransfer { began, intended, size: goal, .. } = transfer;
        let Some(open) = find_connection(&mut self.open, flowop) else { return self.connection_not_open(flowop) };
        if open.datagrams {
            return self.receive_datagram(flowop, message, context, transfer);
        }
        while transfer.moved < goal {
            // A message that was given up is dropped when it arrives: this one follows it.
            let (from, to) =
                if open.overdue > 0 { (0, open.overdue.min(context.buffer.len())) } else { (transfer.moved, goal) };
            match open.transport.receive(&mut context.buffer[from..to], message) {
                // The other side's time was over first.
                Ok(0) if flowop.flowop.duration.is_some() => return StepResult::TimeUp,
                Ok(0) => {
                    return StepResult::Failed(io_error(
                        ErrorKind::UnexpectedEof,
                        "the other side closed the connection",
                    ));
                }
                Ok(moved) if open.overdue > 0 => {
                    open.received += moved as u64;
                    open.overdue -= moved;
                }
                Ok(moved) => {
                    open.received += moved as u64;
                    transfer.moved += moved;
                }
                Err(error) => return self.handle_interruption(flowop, message, Intent::Receive, transfer, error),
            }
        }
        StepResult::Done { messages, began, intended, sent: 0, received: goal as u64 }
    }

    fn receive_datagram(
        &mut self,
        flowop: &FlowopPlan,
        message: &Message,
        context: &mut StrandContext<'_>,
        transfer: MessageTransfer,
    ) -> StepResult {
        loop {
            let Some(open) = find_connection(&mut self.open, flowop) else { return self.connection_not_open(flowop) };
            let moved = match open.transport.receive(context.buffer, message) {
                Ok(moved) => moved,
                Err(error) => return self.handle_interruption(flowop, message, Intent::Receive, transfer, error),
            };
            if resembles_cookie(&context.buffer[..moved]) {
                // A late copy of the one that set up the link.
                continue;
            }
            open.received += 1;
            open.last_received = self.now;
            let position = DatagramHeader::read(&context.buffer[..moved]).filter(|_| open.has_headers);
            if let Some(position) = position {
                let transaction = &self.plan.transactions[self.position.transaction];
                let sent = DatagramHeader::read_time(&context.buffer[..moved]);
                let arrived = clock::now();
                open.record_arrival(transaction, &self.position, position, (sent, arrived));
                context.live_counters.set_datagrams(open.arrivals.counts, arrived);
            }
            if position.is_none_or(|position| self.resync(flowop, position, context)) {
                let MessageTransfer { began, intended, .. } = transfer;
                return StepResult::Done { messages: 1, began, intended, sent: 0, received: moved as u64 };
            }
        }
    }

    /// Whether a datagram is the expected one, or a later one; then the strand continues from its position.
    fn resync(&mut self, flowop: &FlowopPlan, position: DatagramHeader, context: &mut StrandContext<'_>) -> bool {
        let index = &mut self.position;
        let expected = (0, index.flowop as u16, index.execution as u16);
        let actual = (position.rounds_ahead(index.round), position.flowop, position.execution);
        if position.transaction != index.transaction as u8 || actual < expected {
            index.tally(context.transactions).late += 1;
            return false;
        }
        if actual != expected {
            // A server sends only in response to requests, so a client keeps its position; a server follows.
            let flowops = &self.plan.transactions[index.transaction].flowops;
            let same_action = flowops.get(position.flowop as usize).is_some_and(|other| {
                std::mem::discriminant(&other.flowop.action) == std::mem::discriminant(&flowop.flowop.action)
            });
            if !same_action {
                index.tally(context.transactions).late += 1;
                return false;
            }
            index.round += actual.0.unsigned_abs();
            index.flowop = position.flowop as usize;
            index.execution = u64::from(position.execution);
        }
        true
    }

    #[inline]
    fn begin_message(
        &mut self,
        flowop: &FlowopPlan,
        message: &Message,
    ) -> Result<MessageTransfer, crate::transport::WaitCondition> {
        if let StrandOperation::Message(transfer) = self.operation {
            return Ok(transfer);
        }
        let intended = self.intended_start(flowop)?;
        Ok(MessageTransfer { began: self.now, intended, moved: 0, size: self.target_size(flowop, message) })
    }

    /// Number of messages that the next system call moves: a batch, or the rest of the executions.
    #[inline]
    fn batch_size(&self, flowop: &FlowopPlan) -> u64 {
        match flowop.executions {
            Executions::AsWritten(executions) if flowop.batch > 1 => {
                flowop.batch.min(executions.saturating_sub(self.position.execution)).max(1)
            }
            _ => 1,
        }
    }

    #[inline]
    fn target_size(&self, flowop: &FlowopPlan, message: &Message) -> usize {
        match (flowop.executions, message.size) {
            (Executions::InPieces { piece, total: ByteTotal::Endless, .. }, _) => piece as usize,
            (Executions::InPieces { piece, total: ByteTotal::Round(total), .. }, _) => {
                u64::from(piece).min(total - self.position.piece_bytes) as usize
            }
            (Executions::AsWritten(_), MessageSize::Fixed(size)) => size as usize * self.batch_size(flowop) as usize,
            (Executions::AsWritten(executions), MessageSize::Random { min, max }) => {
                let execution = self.position.round.wrapping_mul(executions).wrapping_add(self.position.execution);
                let (seed, group, strand) = (self.seed, self.plan.index, self.index);
                let key = RandomKey { seed, group, strand, flowop: flowop.id, execution };
                key.uniform(u64::from(min), u64::from(max)) as usize
            }
        }
    }

    /// Handles a system call that returned no message: none is there, a signal interrupted it, or it failed.
    #[cold]
    fn handle_interruption(
        &mut self,
        flowop: &FlowopPlan,
        message: &Message,
        intent: Intent,
        transfer: MessageTransfer,
        error: std::io::Error,
    ) -> StepResult {
        let began = transfer.began;
        self.operation = StrandOperation::Message(transfer);
        if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) {
            self.operation = StrandOperation::Idle;
            return StepResult::Failed(error);
        }
        self.now = clock::now();
        if self.is_over() {
            return StepResult::TransactionOver;
        }
        if self.flowop_end(flowop).is_some_and(|end| self.now >= end) {
            // The flowop's own time limit has expired: the message is abandoned.
            self.operation = StrandOperation::Idle;
            return StepResult::TimeUp;
        }
        let Some(open) = find_connection(&mut self.open, flowop) else { return self.connection_not_open(flowop) };
        let datagrams = open.datagrams;
        let deadline = match (message.timeout, intent) {
            (Some(timeout), _) => Some(began + clock::nanos(timeout)),
            (None, Intent::Receive) if datagrams && self.side == Side::Client => Some(began + self.datagram_timeout),
            (None, _) => None,
        };
        if deadline.is_some_and(|deadline| self.now >= deadline) {
            self.operation = StrandOperation::Idle;
            if datagrams && intent == Intent::Receive {
                return StepResult::Lost;
            }
            let left = transfer.size - transfer.moved;
            let action = match intent {
                Intent::Receive => {
                    open.overdue += left;
                    "receiving"
                }
                // Nothing of it has been sent: the other side waits for the next one instead.
                Intent::Send if transfer.moved == 0 => "sending",
                Intent::Send => {
                    open.unsent += left;
                    "sending"
                }
            };
            return StepResult::Failed(io_error(ErrorKind::TimedOut, &format!("timed out {action}")));
        }
        let (received, ordinal, host, last) = (open.received, open.ordinal, open.host, open.last_received);
        let wait = open.transport.wait_condition(intent);
        if self.signals.finish.load(std::sync::atomic::Ordering::Relaxed)
            && self.is_peer_done(intent, host, ordinal, received, datagrams.then_some(last))
        {
            return StepResult::TransactionOver;
        }
        let wait = deadline.map_or(wait, |deadline| wait.or_until(deadline));
        StepResult::Wait(if datagrams && self.side == Side::Server {
            wait.or_until(self.now + DATAGRAM_GRACE)
        } else {
            wait
        })
    }

    /// Whether the other side has finished and will neither send nor receive any more.
    fn is_peer_done(&self, intent: Intent, host: u32, ordinal: u32, received: u64, last: Option<Nanos>) -> bool {
        let totals = self.signals.peer_totals.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let Some(totals) = totals.as_ref() else { return false };
        let peer = totals.connections.iter().find(|peer| (peer.host, peer.ordinal) == (host, ordinal));
        match (intent, peer) {
            (Intent::Send, _) | (_, None) => true,
            (Intent::Receive, Some(peer)) => {
                peer.sent <= received
                    || last.is_some_and(|last| self.now >= last.max(self.position.began) + DATAGRAM_GRACE)
            }
        }
    }
}
