//! The way to an agent.

use std::fmt;

use async_trait::async_trait;

use crate::protocol::Request;

use super::WorkerError;

/// An agent's reply: its value in JSON, and its payload.
pub type Reply = (serde_json::Value, Vec<u8>);

/// A connection to an agent: carries each request there and its reply back. A [`super::Worker`] drives its machine through
/// one, whatever it is made of: the pipe to a process, or an agent that is simulated.
#[async_trait]
pub trait Connection: fmt::Debug + Send + Sync {
    /// Sends a request with its payload, and waits for the reply.
    ///
    /// # Errors
    /// [`WorkerError::Fault`] where the agent refuses, [`WorkerError::Lost`] where it cannot be reached any more.
    async fn call(&self, request: Request, payload: Vec<u8>) -> Result<Reply, WorkerError>;

    /// Sends a request whose reply does not matter, without waiting.
    fn notify(&self, request: Request);

    /// Returns when nothing can be sent any more.
    async fn closed(&self);
}
