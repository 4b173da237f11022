//! The controller's end of the pipe: sends calls and matches responses to callers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot, watch};
use wb_model::{Nanos, WorkerName};

use crate::frame;
use crate::keepalive::{ActivityReader, LastActivity, keepalive_interval};
use crate::protocol::{
    EncodedReply, Fault, Hello, HelloReply, Request, RequestMessage, ResponseMessage, SessionConfig, VERSION, call,
};

use super::WorkerError;
use super::connection::Connection;

/// How long the transport may take to report why the pipe ended.
const EXIT_REASON_TIMEOUT: Duration = Duration::from_secs(3);

/// Pipe to an agent. Dropping it closes the agent's input.
#[derive(Debug)]
pub(super) struct PipeConnection {
    worker: WorkerName,
    calls: mpsc::UnboundedSender<RequestMessage>,
    pending: Arc<Mutex<PendingCalls>>,
    next_id: AtomicU64,
    ended: watch::Receiver<()>,
}

/// Callers waiting for a response, or the reason why the connection is lost.
#[derive(Debug, Default)]
struct PendingCalls {
    callers: HashMap<u64, oneshot::Sender<Result<EncodedReply, Fault>>>,
    lost_reason: Option<String>,
}

impl PipeConnection {
    /// Performs the handshake and spawns the reader and writer tasks.
    pub(super) async fn new(
        worker: &WorkerName,
        input: impl AsyncRead + Unpin + Send + 'static,
        mut output: impl AsyncWrite + Unpin + Send + 'static,
        config: SessionConfig,
        exit_reason: impl Future<Output = Option<String>> + Send + 'static,
    ) -> Result<(Self, Hello), WorkerError> {
        let input = ActivityReader::new(input);
        let last_activity = input.last_activity();
        let mut input = frame::buffered(input);
        let idle_timeout = config.idle_timeout;
        let hello = match handshake(worker, &mut input, &mut output, config).await {
            Ok(hello) => hello,
            // The transport may have a more specific reason.
            Err(error @ (WorkerError::Lost { .. } | WorkerError::Handshake { .. })) => {
                let reason = tokio::time::timeout(EXIT_REASON_TIMEOUT, exit_reason).await.ok().flatten();
                return Err(reason.map_or(error, |reason| WorkerError::Lost { worker: worker.clone(), reason }));
            }
            Err(error) => return Err(error),
        };
        let (calls, queue) = mpsc::unbounded_channel();
        let pending = Arc::new(Mutex::new(PendingCalls::default()));
        let writer = tokio::spawn(write_calls(output, queue, pending.clone()));
        let (end, ended) = watch::channel(());
        let reader = ResponseReader { last_activity, idle_timeout, pending: pending.clone() };
        tokio::spawn(async move {
            reader.run(input, exit_reason).await;
            // Closes the output too, and with it the transport.
            writer.abort();
            drop(end);
        });
        if let Some(idle_timeout) = idle_timeout {
            tokio::spawn(send_keepalives(calls.downgrade(), keepalive_interval(idle_timeout.into())));
        }
        Ok((Self { worker: worker.clone(), calls, pending, next_id: AtomicU64::new(0), ended }, hello))
    }

    fn lost(&self, reason: &str) -> WorkerError {
        WorkerError::Lost { worker: self.worker.clone(), reason: reason.to_owned() }
    }
}

#[async_trait]
impl Connection for PipeConnection {
    async fn call(&self, request: Request) -> Result<EncodedReply, WorkerError> {
        let (sender, receiver) = oneshot::channel();
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        {
            let mut pending = lock(&self.pending);
            if let Some(reason) = &pending.lost_reason {
                return Err(self.lost(reason));
            }
            pending.callers.insert(id, sender);
        }
        // If the writer has ended, the reader ends soon too, and it gives the callers the reason.
        let _ = self.calls.send(RequestMessage { id, request });
        let Ok(reply) = receiver.await else {
            let reason = lock(&self.pending).lost_reason.clone();
            return Err(self.lost(&reason.unwrap_or_default()));
        };
        reply.map_err(|fault| WorkerError::Fault { worker: self.worker.clone(), fault })
    }

    fn notify(&self, request: Request) {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        // Without a writer the connection is closed, and the notification is moot.
        let _ = self.calls.send(RequestMessage { id, request });
    }

    async fn closed(&self) {
        // No value is ever sent: the sender is dropped.
        let _ = self.ended.clone().changed().await;
    }
}

/// Performs the handshake: exchanges hellos and waits for the agent to accept the session configuration.
async fn handshake(
    worker: &WorkerName,
    input: &mut (impl AsyncRead + Unpin),
    output: &mut (impl AsyncWrite + Unpin),
    config: SessionConfig,
) -> Result<Hello, WorkerError> {
    let invalid = |source| WorkerError::Handshake { worker: worker.clone(), source };
    let lost = |reason: &str| WorkerError::Lost { worker: worker.clone(), reason: reason.to_owned() };
    let sent = frame::write(output, &Hello::new(config), &[]).await;
    // An agent of another version, or another program, may have ended already: what it has written says why.
    let hello = frame::read::<Hello>(input).await.map_err(invalid)?;
    let (hello, _) = hello.ok_or_else(|| lost("its agent ended before the handshake"))?;
    if hello.protocol != VERSION {
        let Hello { protocol, release, .. } = hello;
        return Err(WorkerError::Version { worker: worker.clone(), release, protocol });
    }
    sent.map_err(invalid)?;
    match frame::read::<HelloReply>(input).await.map_err(invalid)? {
        Some((HelloReply::Ready, _)) => Ok(hello),
        Some((HelloReply::InUse(holder), _)) => Err(WorkerError::InUse { worker: worker.clone(), holder }),
        None => Err(lost("its agent ended before it was ready")),
    }
}

async fn write_calls(
    mut output: impl AsyncWrite + Unpin,
    mut queue: mpsc::UnboundedReceiver<RequestMessage>,
    pending: Arc<Mutex<PendingCalls>>,
) {
    while let Some(mut message) = queue.recv().await {
        let payload = message.request.take_bytes();
        match frame::write(&mut output, &message, &payload).await {
            Ok(()) => {}
            // Nothing of it was written: the connection is as before.
            Err(error) if error.is_of_message() => {
                if let Some(caller) = lock(&pending).callers.remove(&message.id) {
                    // A caller that was cancelled meanwhile needs no reply.
                    let _ = caller.send(Err(Fault::Refused { why: error.to_string() }));
                }
            }
            Err(error) => return fail_pending(&pending, &error.to_string()),
        }
    }
}

/// Sends keepalives as long as the connection exists.
async fn send_keepalives(calls: mpsc::WeakUnboundedSender<RequestMessage>, interval: Duration) {
    loop {
        tokio::time::sleep(interval).await;
        // No caller waits for this id.
        let ping = RequestMessage { id: u64::MAX, request: call::Ping {}.into() };
        if calls.upgrade().is_none_or(|calls| calls.send(ping).is_err()) {
            return;
        }
    }
}

struct ResponseReader {
    last_activity: LastActivity,
    idle_timeout: Option<Nanos>,
    pending: Arc<Mutex<PendingCalls>>,
}

impl ResponseReader {
    /// Delivers responses until the pipe ends, then fails all pending calls with the reason.
    async fn run(self, mut input: impl AsyncRead + Unpin, exit_reason: impl Future<Output = Option<String>>) {
        let idle = self.last_activity.wait_until_idle(self.idle_timeout.map(Duration::from));
        let reason = tokio::select! {
            reason = self.read(&mut input) => {
                let exit_reason = tokio::time::timeout(EXIT_REASON_TIMEOUT, exit_reason).await;
                exit_reason.ok().flatten().unwrap_or(reason)
            }
            () = idle => {
                let limit = self.idle_timeout.unwrap_or_default();
                format!("no data received for {limit}")
            }
        };
        fail_pending(&self.pending, &reason);
    }

    /// Reads responses until the pipe ends; returns the reason for its end.
    async fn read(&self, input: &mut (impl AsyncRead + Unpin)) -> String {
        loop {
            match frame::read::<ResponseMessage>(input).await {
                Ok(Some((response, payload))) => {
                    if let Some(caller) = lock(&self.pending).callers.remove(&response.id) {
                        // A caller that was cancelled meanwhile needs no reply.
                        let _ = caller.send(response.into_result(payload));
                    }
                }
                Ok(None) => return "its agent ended".to_owned(),
                Err(error) => return error.to_string(),
            }
        }
    }
}

/// Fails all pending and future calls. The first reason is kept.
fn fail_pending(pending: &Mutex<PendingCalls>, reason: &str) {
    let mut pending = lock(pending);
    pending.lost_reason.get_or_insert_with(|| reason.to_owned());
    pending.callers.clear();
}

fn lock(pending: &Mutex<PendingCalls>) -> MutexGuard<'_, PendingCalls> {
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    /// The error of a handshake with a program that has ended after it wrote this.
    fn handshake_error(written: &[u8]) -> WorkerError {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (mut output, agent) = tokio::io::duplex(16);
            drop(agent);
            handshake(&WorkerName::local(), &mut &*written, &mut output, SessionConfig::default()).await.unwrap_err()
        })
    }

    // An agent of another version may end before it is sent anything: the error was a broken pipe.
    #[test]
    fn what_an_agent_wrote_before_it_ended_is_read() {
        let hello = br#"{"protocol":99,"release":"9.9","program":"/x"}"#;
        let frame = [&(hello.len() as u32).to_le_bytes()[..], &[0; 4], hello].concat();
        let error = handshake_error(&frame);
        assert!(matches!(error, WorkerError::Version { protocol: 99, .. }), "{error:?}");
        let error = handshake_error(b"Welcome to this host");
        let WorkerError::Handshake { source: frame::FrameError::InvalidLength(text), .. } = error else {
            panic!("{error:?}")
        };
        assert_eq!(text, "Welcome ");
        assert!(matches!(handshake_error(b""), WorkerError::Lost { .. }));
    }
}
