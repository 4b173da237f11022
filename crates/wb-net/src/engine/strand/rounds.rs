//! Rounds of a transaction: when each begins, given by a rate, and what is recorded at its end.

use super::{Strand, StrandContext, StrandOperation};
use crate::engine::clock::{self, Nanos};
use crate::engine::latencies::{LatencyEntry, LatencyKind};
use crate::engine::plan::{FlowopPlan, TransactionPlan};
use crate::language::Extent;
use crate::transport::WaitCondition;

/// When the next round begins.
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
        }
        if is_last {
            return RoundStart::Never;
        }
        self.operation = StrandOperation::Idle;
        self.position.is_round_open = true;
        self.position.round_began = self.now.max(self.position.began);
        self.position.flowop_began = self.now;
        RoundStart::Now
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
        if self.now < intended {
            self.now = clock::now();
            if self.now < intended {
                return Err(WaitCondition::until(intended));
            }
        }
        Ok(Some(intended))
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

    pub(super) fn is_paced(&self) -> bool {
        self.plan.transactions[self.position.transaction].period.is_some()
    }
}
