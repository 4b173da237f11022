//! The connection to an agent, as a trait.

use std::fmt;

use async_trait::async_trait;

use crate::protocol::{EncodedReply, Request};

use super::WorkerError;

/// A connection to an agent: sends requests and returns their replies. A [`super::Worker`] uses one, be it a pipe to a
/// process or a simulated agent. So everything above it (groups, processes, scheduling, sampling, resume) is the same
/// code in a test of milliseconds and on a real machine.
#[async_trait]
pub trait Connection: fmt::Debug + Send + Sync {
    /// Sends a request and waits for the reply. The request is sent at the first poll: dropping the future while it
    /// waits does not withdraw it.
    async fn call(&self, request: Request) -> Result<EncodedReply, WorkerError>;

    /// Sends a request whose reply does not matter, without waiting.
    fn notify(&self, request: Request);

    /// Completes when the connection is closed.
    async fn closed(&self);
}
