//! Messages: so many bytes of a stream, or a datagram.

use std::io::ErrorKind;

use super::{
    Context, Doing, Intent, Message, QUIET, Strand, Went, error,
    header::{self, Position},
    open::Open,
};
use crate::engine::{
    clock::{self, Nanos},
    plan::{Executions, FlowopPlan, Total},
    sizes::Question,
    work::Side,
};
use crate::language::Size;

/// A message that is being moved.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moving {
    began: Nanos,
    /// When a rate wanted it to begin.
    intended: Option<Nanos>,
    /// Bytes moved, of `goal`.
    done: usize,
    goal: usize,
}

impl Strand {
    pub(super) fn send(&mut self, flowop: &FlowopPlan, message: &Message, context: &mut Context<'_>) -> Went {
        let mut moving = match self.message_begins(flowop, message) {
            Ok(moving) => moving,
            Err(wait) => return Went::Waits(wait),
        };
        let messages = self.messages(flowop);
        let Moving { began, intended, goal, .. } = moving;
        let Some(open) = find(&mut self.open, flowop) else { return no_such(flowop) };
        if open.datagrams {
            let (at, size) = (&self.at, goal / messages as usize);
            if moving.done == 0 && size >= header::LENGTH && open.numbered {
                for (datagram, execution) in context.buffer[..goal].chunks_exact_mut(size).zip(at.execution..) {
                    Position::new(at.transaction, at.round, at.flowop, execution).write(datagram);
                }
            }
            while moving.done < goal {
                let sent = match messages {
                    1 => open.transport.send(&context.buffer[..goal], message).map(|_| 1),
                    _ => open.transport.send_many(&context.buffer[moving.done..goal], size, message),
                };
                match sent {
                    Ok(sent) => {
                        open.sent += sent as u64;
                        moving.done += sent * size;
                    }
                    Err(error) => return self.stopped(flowop, message, Intent::Send, moving, error),
                }
            }
            return Went::Done { messages, began, intended, sent: goal as u64, received: 0 };
        }
        while moving.done < goal {
            match open.transport.send(&context.buffer[moving.done..goal], message) {
                Ok(moved) => {
                    open.sent += moved as u64;
                    moving.done += moved;
                }
                Err(error) => return self.stopped(flowop, message, Intent::Send, moving, error),
            }
        }
        Went::Done { messages, began, intended, sent: goal as u64, received: 0 }
    }

    pub(super) fn receive(&mut self, flowop: &FlowopPlan, message: &Message, context: &mut Context<'_>) -> Went {
        let mut moving = match self.message_begins(flowop, message) {
            Ok(moving) => moving,
            Err(wait) => return Went::Waits(wait),
        };
        let messages = self.messages(flowop);
        let Moving { began, intended, goal, .. } = moving;
        let Some(open) = find(&mut self.open, flowop) else { return no_such(flowop) };
        if open.datagrams {
            return self.receive_datagram(flowop, message, context, moving);
        }
        while moving.done < goal {
            match open.transport.receive(&mut context.buffer[moving.done..goal], message) {
                Ok(0) => return Went::Failed(error(ErrorKind::UnexpectedEof, "the other side closed the connection")),
                Ok(moved) => {
                    open.received += moved as u64;
                    moving.done += moved;
                }
                Err(error) => return self.stopped(flowop, message, Intent::Receive, moving, error),
            }
        }
        Went::Done { messages, began, intended, sent: 0, received: goal as u64 }
    }

    fn receive_datagram(
        &mut self,
        flowop: &FlowopPlan,
        message: &Message,
        context: &mut Context<'_>,
        moving: Moving,
    ) -> Went {
        loop {
            let Some(open) = find(&mut self.open, flowop) else { return no_such(flowop) };
            let moved = match open.transport.receive(context.buffer, message) {
                Ok(moved) => moved,
                Err(error) => return self.stopped(flowop, message, Intent::Receive, moving, error),
            };
            open.received += 1;
            open.last_received = self.now;
            let numbered = open.numbered;
            let position = Position::read(&context.buffer[..moved]).filter(|_| numbered);
            if position.is_none_or(|position| self.follows(flowop, position, context)) {
                let Moving { began, intended, .. } = moving;
                return Went::Done { messages: 1, began, intended, sent: 0, received: moved as u64 };
            }
        }
    }

    /// Whether a datagram is the one that is waited for, or one after it; then this strand goes on from there.
    fn follows(&mut self, flowop: &FlowopPlan, position: Position, context: &mut Context<'_>) -> bool {
        let at = &mut self.at;
        let here = (0, at.flowop as u16, at.execution as u16);
        let there = (position.rounds_ahead(at.round), position.flowop, position.execution);
        if position.transaction != at.transaction as u8 || there < here {
            context.transactions[at.transaction].flowops[at.flowop].late += 1;
            return false;
        }
        if there != here {
            // It sends again only what it is asked for, so a client goes on where it is; a server follows.
            let flowops = &self.plan.transactions[at.transaction].flowops;
            let known = flowops.get(position.flowop as usize).is_some_and(|other| {
                std::mem::discriminant(&other.flowop.action) == std::mem::discriminant(&flowop.flowop.action)
            });
            if !known {
                context.transactions[at.transaction].flowops[at.flowop].late += 1;
                return false;
            }
            at.round += there.0.unsigned_abs();
            at.flowop = position.flowop as usize;
            at.execution = u64::from(position.execution);
        }
        true
    }

    /// Where a message begins or goes on.
    #[inline]
    fn message_begins(&mut self, flowop: &FlowopPlan, message: &Message) -> Result<Moving, crate::transport::Wait> {
        if let Doing::Message(moving) = self.doing {
            return Ok(moving);
        }
        let intended = self.pace(flowop)?;
        Ok(Moving { began: self.now, intended, done: 0, goal: self.goal(flowop, message) })
    }

    /// How many messages the next system call moves: as many as one batch, or what is left of the row.
    #[inline]
    fn messages(&self, flowop: &FlowopPlan) -> u64 {
        match flowop.executions {
            Executions::AsWritten(executions) if flowop.batch > 1 => {
                flowop.batch.min(executions.saturating_sub(self.at.execution)).max(1)
            }
            _ => 1,
        }
    }

    /// How many bytes this execution moves.
    #[inline]
    fn goal(&self, flowop: &FlowopPlan, message: &Message) -> usize {
        match (flowop.executions, message.size) {
            (Executions::InPieces { piece, total: Total::Endless, .. }, _) => piece as usize,
            (Executions::InPieces { piece, total: Total::Round(total), .. }, _) => {
                u64::from(piece).min(total - self.at.moved) as usize
            }
            (Executions::AsWritten(_), Size::Fixed(size)) => size as usize * self.messages(flowop) as usize,
            (Executions::AsWritten(executions), Size::Random { min, max }) => {
                let execution = self.at.round.wrapping_mul(executions).wrapping_add(self.at.execution);
                let question = Question { seed: self.seed, strand: self.index, place: flowop.place, execution };
                question.between(u64::from(min), u64::from(max)) as usize
            }
        }
    }

    /// A system call came back without a message: because there is none, because of a signal, or of a failure.
    #[cold]
    fn stopped(
        &mut self,
        flowop: &FlowopPlan,
        message: &Message,
        intent: Intent,
        moving: Moving,
        failure: std::io::Error,
    ) -> Went {
        let began = moving.began;
        self.doing = Doing::Message(moving);
        if !matches!(failure.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) {
            self.doing = Doing::Nothing;
            return Went::Failed(failure);
        }
        self.now = clock::now();
        if self.is_over() {
            return Went::Over;
        }
        if self.flowop_end(flowop).is_some_and(|end| self.now >= end) {
            // The flowop's own time is up: it is left where it is.
            self.doing = Doing::Nothing;
            return Went::Left;
        }
        let Some(open) = find(&mut self.open, flowop) else { return no_such(flowop) };
        let datagrams = open.datagrams;
        let deadline = match (message.timeout, intent) {
            (Some(timeout), _) => Some(began + clock::nanos(timeout)),
            (None, Intent::Receive) if datagrams && self.side == Side::Client => Some(began + self.deadline),
            (None, _) => None,
        };
        if deadline.is_some_and(|deadline| self.now >= deadline) {
            self.doing = Doing::Nothing;
            if datagrams && intent == Intent::Receive {
                return Went::Lost;
            }
            let what = "nothing came within its timeout";
            return Went::Failed(error(
                ErrorKind::TimedOut,
                if intent == Intent::Receive { what } else { "it could not be sent within its timeout" },
            ));
        }
        let (received, ordinal, host, last) = (open.received, open.ordinal, open.host, open.last_received);
        let wait = open.transport.waits(intent);
        if self.signals.finish.load(std::sync::atomic::Ordering::Relaxed)
            && self.nothing_more(intent, host, ordinal, received, datagrams.then_some(last))
        {
            return Went::Over;
        }
        let wait = deadline.map_or(wait, |deadline| wait.or_until(deadline));
        Went::Waits(if datagrams && self.side == Side::Server { wait.or_until(self.now + QUIET) } else { wait })
    }

    /// Whether the other side, which is done, has sent or will take nothing more.
    fn nothing_more(&self, intent: Intent, host: u32, ordinal: u32, received: u64, last: Option<Nanos>) -> bool {
        let totals = self.signals.totals.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let Some(totals) = totals.as_ref() else { return false };
        let theirs = totals.connections.iter().find(|theirs| (theirs.host, theirs.ordinal) == (host, ordinal));
        match (intent, theirs) {
            (Intent::Send, _) | (_, None) => true,
            (Intent::Receive, Some(theirs)) => {
                theirs.sent <= received || last.is_some_and(|last| self.now >= last.max(self.at.began) + QUIET)
            }
        }
    }
}

/// The connection that a flowop is about.
#[inline]
pub(super) fn find<'a>(open: &'a mut [Open], flowop: &FlowopPlan) -> Option<&'a mut Open> {
    open.iter_mut().find(|open| open.name == flowop.flowop.connection)
}

pub(super) fn no_such(flowop: &FlowopPlan) -> Went {
    let name = flowop.flowop.connection.map_or("without a name".to_owned(), |name| format!("conn={name}"));
    Went::Failed(error(ErrorKind::NotConnected, &format!("no connection {name} is open")))
}
