//! The controller's end of the pipe: calls go out, answers find their callers.

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
use crate::protocol::{Call, Fault, Hello, Request, Response, VERSION};
use crate::session::{HelloReply, SessionConfig};

use super::WorkerError;
use super::connection::{Connection, Reply};

type Calls = mpsc::UnboundedSender<(Call, Vec<u8>)>;

/// How long whoever carries the pipe may take to say why it ended.
const EXIT_REASON_TIMEOUT: Duration = Duration::from_secs(3);

/// The pipe to an agent. When it is dropped, the agent's input ends.
#[derive(Debug)]
pub(super) struct PipeConnection {
    worker: WorkerName,
    calls: Calls,
    waiting: Arc<Mutex<PendingCalls>>,
    last_id: AtomicU64,
    ended: watch::Receiver<()>,
}

/// The callers that wait, or why nobody can any more.
#[derive(Debug, Default)]
struct PendingCalls {
    callers: HashMap<u64, oneshot::Sender<Result<Reply, Fault>>>,
    lost: Option<String>,
}

impl PipeConnection {
    /// Exchanges greetings and starts to read and write.
    pub(super) async fn new(
        worker: &WorkerName,
        input: impl AsyncRead + Unpin + Send + 'static,
        mut output: impl AsyncWrite + Unpin + Send + 'static,
        terms: SessionConfig,
        why_ended: impl Future<Output = Option<String>> + Send + 'static,
    ) -> Result<(Self, Hello), WorkerError> {
        let mut input = ActivityReader::new(input);
        let silence = terms.idle_timeout;
        let hello = match handshake(worker, &mut input, &mut output, terms).await {
            Ok(hello) => hello,
            // Whoever carries the pipe may know better why.
            Err(error @ (WorkerError::Lost { .. } | WorkerError::Handshake { .. })) => {
                let why = tokio::time::timeout(EXIT_REASON_TIMEOUT, why_ended).await.ok().flatten();
                return Err(why.map_or(error, |why| WorkerError::Lost { worker: worker.clone(), why }));
            }
            Err(error) => return Err(error),
        };
        let (calls, queue) = mpsc::unbounded_channel();
        let waiting = Arc::new(Mutex::new(PendingCalls::default()));
        let writer = tokio::spawn(write_calls(output, queue, waiting.clone()));
        let (end, ended) = watch::channel(());
        let reading = ResponseReader { last_word: input.last_activity(), silence, waiting: waiting.clone() };
        tokio::spawn(async move {
            reading.run(input, why_ended).await;
            // The output ends too, and with it whoever carries the pipe.
            writer.abort();
            drop(end);
        });
        if let Some(silence) = silence {
            tokio::spawn(send_keepalives(calls.downgrade(), keepalive_interval(silence.into())));
        }
        Ok((Self { worker: worker.clone(), calls, waiting, last_id: AtomicU64::new(0), ended }, hello))
    }

    fn lost(&self, why: &str) -> WorkerError {
        WorkerError::Lost { worker: self.worker.clone(), why: why.to_owned() }
    }
}

#[async_trait]
impl Connection for PipeConnection {
    async fn call(&self, request: Request, payload: Vec<u8>) -> Result<Reply, WorkerError> {
        let (sender, receiver) = oneshot::channel();
        let id = self.last_id.fetch_add(1, Ordering::Relaxed);
        {
            let mut waiting = lock(&self.waiting);
            if let Some(why) = &waiting.lost {
                return Err(self.lost(why));
            }
            waiting.callers.insert(id, sender);
        }
        // When the writer is gone, so is the reader soon, and it tells the callers why.
        let _ = self.calls.send((Call { id, request }, payload));
        let Ok(reply) = receiver.await else {
            let why = lock(&self.waiting).lost.clone();
            return Err(self.lost(&why.unwrap_or_default()));
        };
        reply.map_err(|fault| WorkerError::Fault { worker: self.worker.clone(), fault })
    }

    fn notify(&self, request: Request) {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed);
        // Without a writer there is nobody to notify.
        let _ = self.calls.send((Call { id, request }, Vec::new()));
    }

    async fn closed(&self) {
        // Nothing is ever sent: the other end is dropped.
        let _ = self.ended.clone().changed().await;
    }
}

/// Says hello and what the terms are, and hears whether the agent takes them.
async fn handshake(
    worker: &WorkerName,
    input: &mut (impl AsyncRead + Unpin),
    output: &mut (impl AsyncWrite + Unpin),
    terms: SessionConfig,
) -> Result<Hello, WorkerError> {
    let wrong = |source| WorkerError::Handshake { worker: worker.clone(), source };
    let lost = |why: &str| WorkerError::Lost { worker: worker.clone(), why: why.to_owned() };
    frame::write(output, &Hello::new(terms), &[]).await.map_err(wrong)?;
    let hello = frame::read::<Hello>(input).await.map_err(wrong)?;
    let (hello, _) = hello.ok_or_else(|| lost("its agent ended before it said a word"))?;
    if hello.protocol != VERSION {
        let Hello { protocol, release, .. } = hello;
        return Err(WorkerError::Version { worker: worker.clone(), release, protocol });
    }
    match frame::read::<HelloReply>(input).await.map_err(wrong)? {
        Some((HelloReply::Ready, _)) => Ok(hello),
        Some((HelloReply::InUse(holder), _)) => Err(WorkerError::InUse { worker: worker.clone(), holder }),
        None => Err(lost("its agent ended before it was ready")),
    }
}

async fn write_calls(
    mut output: impl AsyncWrite + Unpin,
    mut queue: mpsc::UnboundedReceiver<(Call, Vec<u8>)>,
    waiting: Arc<Mutex<PendingCalls>>,
) {
    while let Some((call, payload)) = queue.recv().await {
        if let Err(error) = frame::write(&mut output, &call, &payload).await {
            return fail_pending(&waiting, &error.to_string());
        }
    }
}

/// Says something for as long as the link is there, so that silence means something.
async fn send_keepalives(calls: mpsc::WeakUnboundedSender<(Call, Vec<u8>)>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        // No caller waits for this id.
        let call = Call { id: u64::MAX, request: Request::Ping };
        if calls.upgrade().is_none_or(|calls| calls.send((call, Vec::new())).is_err()) {
            return;
        }
    }
}

/// What it takes to read answers.
struct ResponseReader {
    last_word: LastActivity,
    silence: Option<Nanos>,
    waiting: Arc<Mutex<PendingCalls>>,
}

impl ResponseReader {
    /// Hands answers out until there are no more, and tells those that still wait why.
    async fn run(self, mut input: impl AsyncRead + Unpin, why_ended: impl Future<Output = Option<String>>) {
        let silent = self.last_word.wait_until_idle(self.silence.map(Duration::from));
        let why = tokio::select! {
            why = self.read(&mut input) => {
                let told = tokio::time::timeout(EXIT_REASON_TIMEOUT, why_ended).await;
                told.ok().flatten().unwrap_or(why)
            }
            () = silent => {
                let silence = self.silence.unwrap_or_default();
                format!("it has said nothing for {silence}")
            }
        };
        fail_pending(&self.waiting, &why);
    }

    /// Reads until the end; why it came.
    async fn read(&self, input: &mut (impl AsyncRead + Unpin)) -> String {
        loop {
            match frame::read::<Response>(input).await {
                Ok(Some((Response { id, result }, payload))) => {
                    if let Some(caller) = lock(&self.waiting).callers.remove(&id) {
                        let _ = caller.send(result.map(|value| (value, payload)));
                    }
                }
                Ok(None) => return "its agent ended".to_owned(),
                Err(error) => return error.to_string(),
            }
        }
    }
}

/// Lets all callers know, those to come too. The first reason stays.
fn fail_pending(waiting: &Mutex<PendingCalls>, why: &str) {
    let mut waiting = lock(waiting);
    waiting.lost.get_or_insert_with(|| why.to_owned());
    waiting.callers.clear();
}

fn lock(waiting: &Mutex<PendingCalls>) -> MutexGuard<'_, PendingCalls> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}
