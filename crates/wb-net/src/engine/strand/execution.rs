//! Executions of flowops: when one begins, and what it does.

use super::{StepResult, Strand, StrandContext, StrandOperation};
use crate::engine::clock::{self, Nanos};
use crate::engine::plan::FlowopPlan;
use crate::transport::WaitCondition;
use wb_net_profile::FlowopAction;

impl Strand {
    #[inline]
    pub(super) fn execute(&mut self, flowop: &FlowopPlan, context: &mut StrandContext<'_>) -> StepResult {
        // Messages are paced where a transfer begins.
        let is_message = matches!(flowop.flowop.action, FlowopAction::Send(_) | FlowopAction::Receive(_));
        let is_paced = flowop.period.is_some() && !is_message;
        if is_paced && matches!(self.operation, StrandOperation::Idle | StrandOperation::Pacing) {
            match self.intended_start(flowop) {
                Ok(intended) => self.position.execution_intended = intended,
                Err(wait) => return StepResult::Wait(wait),
            }
        }
        let result = match &flowop.flowop.action {
            FlowopAction::Send(message) => self.send(flowop, message, context),
            FlowopAction::Receive(message) => self.receive(flowop, message, context),
            FlowopAction::Connect(endpoint) => self.connect(flowop, endpoint),
            FlowopAction::Accept(endpoint) => self.accept(flowop, endpoint),
            FlowopAction::Disconnect => self.disconnect(flowop),
            FlowopAction::SendFiles(files) => self.send_files(flowop, files, context),
            FlowopAction::ReceiveFiles(sizes) => self.receive_files(flowop, sizes, context),
            FlowopAction::Think { duration, busy } => self.think(clock::nanos(*duration), *busy),
            FlowopAction::Nop | FlowopAction::Skip => {
                StepResult::Done { messages: 1, began: self.now, intended: None, sent: 0, received: 0 }
            }
        };
        match result {
            StepResult::Done { messages, began, sent, received, .. } if is_paced => {
                StepResult::Done { messages, began, intended: self.position.execution_intended, sent, received }
            }
            result => result,
        }
    }

    fn think(&mut self, duration: Nanos, busy: bool) -> StepResult {
        let (began, until) = match self.operation {
            StrandOperation::Thinking { began, until } => (began, until),
            _ => (self.now, self.now + duration),
        };
        if !busy {
            if self.now < until {
                self.operation = StrandOperation::Thinking { began, until };
                return StepResult::Wait(WaitCondition::until(until));
            }
        } else {
            while self.now < until {
                std::hint::spin_loop();
                self.now = clock::now();
                if self.is_over() {
                    return StepResult::TransactionOver;
                }
            }
        }
        self.operation = StrandOperation::Idle;
        StepResult::Done { messages: 1, began, intended: None, sent: 0, received: 0 }
    }
}
