//! Rounds of a transaction: when each begins, given by a rate, and what is recorded at its end.

use super::{Strand, StrandContext, StrandOperation, StrandPosition};
use crate::engine::clock::{self, Nanos};
use crate::engine::latencies::{LatencyEntry, LatencyKind};
use crate::engine::latency::LatencyHistogram;
use crate::engine::plan::{Executions, FlowopPlan, TransactionPlan};
use crate::engine::protocol::Side;
use crate::transport::WaitCondition;
use wb_net_profile::Extent;

pub(super) enum RoundStart {
    Now,
    At(Nanos),
    Never,
}

impl Strand {
    pub(super) fn begin_round(&mut self, transaction: &TransactionPlan) -> RoundStart {
        let is_last = matches!(transaction.extent, Extent::Iterations(rounds) if self.position.round >= rounds);
        if let Some(period) = transaction.period {
            // Computed from the number of the round, not from the last start: an open loop catches up.
            let phase = self.plan.phase(self.index);
            let intended = self.position.began + ((self.position.round as f64 + phase) * period) as Nanos;
            // Also after the last round, whose period belongs to the transaction.
            if self.now < intended {
                self.now = clock::now();
                if self.now < intended {
                    self.operation = StrandOperation::Pacing;
                    return RoundStart::At(intended);
                }
            }
            self.position.round_intended = intended;
            if let Extent::Iterations(rounds) = transaction.extent {
                let is_overdue = self.now >= self.position.began + (rounds as f64 * period) as Nanos;
                self.position.overdue_rounds += u64::from(is_overdue && !is_last);
            }
        }
        if is_last {
            return RoundStart::Never;
        }
        self.operation = StrandOperation::Idle;
        if !self.takes_turns(transaction) {
            self.position.round_began = self.now.max(self.position.began);
        }
        // Not again after a wait for the rate of the first flowop, whose schedule would begin anew with it.
        if !self.position.is_round_open {
            self.position.flowop_began = self.now;
        }
        self.position.is_round_open = true;
        RoundStart::Now
    }

    /// Whether its next round begins when the one before ends, or with the window, although it may have to wait for its
    /// turn in an event loop: without a rate a strand always has a round in progress.
    fn takes_turns(&self, transaction: &TransactionPlan) -> bool {
        let is_window = matches!(transaction.extent, Extent::Window(_));
        !self.own_thread && is_window && !transaction.idle && transaction.period.is_none()
    }

    /// The intended start of an execution, or the condition to wait for if it has not come yet.
    pub(super) fn intended_start(&mut self, flowop: &FlowopPlan) -> Result<Option<Nanos>, WaitCondition> {
        let Some(period) = flowop.period else { return Ok(None) };
        if self.position.execution == 0 {
            // The schedule begins with the flowop, at least a period after its last execution in the round before.
            let earliest = self.schedules.get(self.position.flowop).copied().unwrap_or(0);
            self.position.flowop_intended = self.position.flowop_began.max(earliest);
        }
        let intended = self.position.flowop_intended + (self.position.execution as f64 * period) as Nanos;
        // What is due at the end of the flowop or later does not begin: the flowop ends then.
        let is_in_time = self.flowop_end(flowop).is_none_or(|end| intended < end);
        if self.now < intended {
            self.now = clock::now();
        }
        if self.now < intended || !is_in_time {
            return Err(WaitCondition::until(intended));
        }
        if self.position.execution == 0 && matches!(flowop.executions, Executions::AsWritten(1)) {
            let earliest = self.schedules.get(self.position.flowop).copied().unwrap_or(0);
            self.position.slipped = self.position.flowop_began.saturating_sub(earliest);
        }
        if let (Executions::AsWritten(executions), None) = (flowop.executions, flowop.flowop.duration) {
            let is_overdue = self.now >= self.position.flowop_intended + (executions as f64 * period) as Nanos;
            self.position.overdue_executions += u64::from(is_overdue);
        }
        Ok(Some(intended))
    }

    /// Records how many executions were due, on the side that measures: at the end of the flowop or of the window.
    pub(super) fn record_schedule(&mut self, flowop: &FlowopPlan, end: Option<Nanos>, context: &mut StrandContext<'_>) {
        let Some(period) = flowop.period else { return };
        let overdue = std::mem::take(&mut self.position.overdue_executions);
        let slipped = std::mem::take(&mut self.position.slipped);
        if self.side != Side::Client {
            return;
        }
        let StrandPosition { execution, flowop_intended, .. } = self.position;
        let is_open = !matches!(self.operation, StrandOperation::Idle | StrandOperation::Pacing);
        let begun = execution + u64::from(is_open);
        // Like a round, what is due at the end itself does not begin.
        let until = |end: Nanos| (end.saturating_sub(flowop_intended) as f64 / period - 1e-6).ceil() as u64;
        let scheduled = self.flowop_end(flowop).into_iter().chain(end).min().map(until);
        let due = match (flowop.flowop.duration, flowop.executions) {
            (None, Executions::AsWritten(executions)) => {
                scheduled.map_or(executions, |scheduled| scheduled.min(executions))
            }
            _ => scheduled.unwrap_or(begun),
        };
        let schedule = &mut self.position.tally(context.transactions).schedule;
        schedule.due += due.max(begun);
        schedule.missed += due.saturating_sub(begun) + overdue;
        schedule.slipped += slipped;
    }

    pub(super) fn end_round(&mut self, transaction: &TransactionPlan, context: &mut StrandContext<'_>) {
        if self.position.round_failed {
            context.transactions[self.position.transaction].failed_rounds += 1;
        } else {
            self.record_round(transaction, context);
        }
        self.position.flowop = 0;
        self.position.round += 1;
        self.position.round_failed = false;
        self.position.is_round_open = false;
        // Without a rate the next round begins when this one ends.
        self.position.round_began = self.now;
    }

    #[inline]
    pub(super) fn record_round(&mut self, transaction: &TransactionPlan, context: &mut StrandContext<'_>) {
        let duration = self.now.saturating_sub(self.position.round_began);
        if self.position.is_data_phase {
            self.tally.record_round(duration);
        }
        if context.record {
            let entry = LatencyEntry {
                transaction: self.position.transaction as u32,
                kind: LatencyKind::Round { now: self.now },
                nanos: duration,
            };
            context.latencies.push(entry, context.transactions);
            if transaction.period.is_some()
                && let tally = &mut context.transactions[self.position.transaction]
                && let (Some(response), Some(lag)) = (&mut tally.response, &mut tally.lag)
            {
                response.record(self.now.saturating_sub(self.position.round_intended));
                lag.record(self.position.round_began.saturating_sub(self.position.round_intended));
            }
        }
    }

    /// Records the rounds that are pending at the end of the window, on the side that measures them: the open round,
    /// and rounds that were due by the rate and never began.
    pub(super) fn record_pending(&mut self, end: Option<Nanos>, context: &mut StrandContext<'_>) {
        if self.side != Side::Client {
            return;
        }
        let group = self.plan.clone();
        let plan = &group.transactions[self.position.transaction];
        if self.position.is_round_open && self.position.execution > 0 {
            // Otherwise the flowop has no execution that was due: its schedule begins with the first.
            self.record_schedule(&plan.flowops[self.position.flowop], end, context);
        }
        let pending = &mut context.transactions[self.position.transaction].pending;
        pending.overdue += self.position.overdue_rounds;
        let Some(end) = end else {
            pending.due += plan.period.map_or(0, |_| self.position.round);
            return;
        };
        let tally = &mut context.transactions[self.position.transaction];
        let StrandPosition { began, round, is_round_open, round_began, round_intended, .. } = self.position;
        let since = |start: Nanos| end.saturating_sub(start);
        // Allocated here, after what is measured: most transactions have no such round.
        let record = |times: &mut Option<LatencyHistogram>, age: Nanos| {
            times.get_or_insert_with(|| tally.rounds.empty_like()).record(age);
        };
        if (is_round_open || self.takes_turns(plan)) && context.record {
            record(&mut tally.pending.open, since(round_began));
            if plan.period.is_some() {
                record(&mut tally.pending.open_response, since(round_intended));
            }
        }
        let Some(period) = plan.period else { return };
        let phase = self.plan.phase(self.index);
        // A round that is due at the end itself belongs to no window, also if the division is inexact.
        let scheduled = (since(began) as f64 / period - phase - 1e-6).ceil().max(0.0) as u64;
        let due = match plan.extent {
            Extent::Iterations(rounds) => scheduled.min(rounds),
            Extent::Window(_) => scheduled,
        };
        let begun = round + u64::from(is_round_open);
        tally.pending.due += due.max(begun);
        if let Some(count @ 1..) = due.checked_sub(begun) {
            let last = began + (((due - 1) as f64 + phase) * period) as Nanos;
            let times = tally.pending.not_started.get_or_insert_with(|| tally.rounds.empty_like());
            times.record_series(since(last), period, count);
        }
    }
}
