//! The controller's end of the pipe: calls go out, answers find their callers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use wb_model::WorkerName;

use crate::frame;
use crate::protocol::{Answer, Call, Fault, Hello, Request, VERSION};

use super::WorkerError;

type Reply = Result<(Value, Vec<u8>), Fault>;

/// The pipe to an agent. When it is dropped, the agent's input ends.
#[derive(Debug)]
pub(super) struct Link {
    worker: WorkerName,
    calls: mpsc::UnboundedSender<(Call, Vec<u8>)>,
    waiting: Arc<Mutex<Waiting>>,
    last_id: AtomicU64,
}

/// The callers that wait, or why nobody can any more.
#[derive(Debug, Default)]
struct Waiting {
    callers: HashMap<u64, oneshot::Sender<Reply>>,
    lost: Option<String>,
}

impl Link {
    /// Exchanges greetings and starts to read and write.
    pub(super) async fn new(
        worker: &WorkerName,
        mut input: impl AsyncRead + Unpin + Send + 'static,
        mut output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> Result<(Self, Hello), WorkerError> {
        let wrong = |source| WorkerError::Hello { worker: worker.clone(), source };
        let lost = |why: &str| WorkerError::Lost { worker: worker.clone(), why: why.to_owned() };
        frame::write(&mut output, &Hello::ours(), &[]).await.map_err(wrong)?;
        let hello = frame::read::<Hello>(&mut input).await.map_err(wrong)?;
        let (hello, _) = hello.ok_or_else(|| lost("its agent ended before it said a word"))?;
        if hello.protocol != VERSION {
            let Hello { protocol, release, .. } = hello;
            return Err(WorkerError::Version { worker: worker.clone(), release, protocol });
        }
        let (calls, queue) = mpsc::unbounded_channel();
        let waiting = Arc::new(Mutex::new(Waiting::default()));
        tokio::spawn(write_calls(output, queue, waiting.clone()));
        tokio::spawn(read_answers(input, waiting.clone()));
        Ok((Self { worker: worker.clone(), calls, waiting, last_id: AtomicU64::new(0) }, hello))
    }

    /// Asks, and waits for the answer.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        request: Request,
        payload: Vec<u8>,
    ) -> Result<(T, Vec<u8>), WorkerError> {
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
        let (value, payload) = reply.map_err(|fault| WorkerError::Fault { worker: self.worker.clone(), fault })?;
        let value = serde_json::from_value(value).map_err(|error| self.nonsense(&error))?;
        Ok((value, payload))
    }

    /// Asks, and does not care for the answer.
    pub(super) fn tell(&self, request: Request) {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed);
        let _ = self.calls.send((Call { id, request }, Vec::new()));
    }

    /// An answer that is not what was asked for.
    pub(super) fn nonsense(&self, error: &serde_json::Error) -> WorkerError {
        self.lost(&format!("it answered nonsense: {error}"))
    }

    fn lost(&self, why: &str) -> WorkerError {
        WorkerError::Lost { worker: self.worker.clone(), why: why.to_owned() }
    }
}

async fn write_calls(
    mut output: impl AsyncWrite + Unpin,
    mut queue: mpsc::UnboundedReceiver<(Call, Vec<u8>)>,
    waiting: Arc<Mutex<Waiting>>,
) {
    while let Some((call, payload)) = queue.recv().await {
        if let Err(error) = frame::write(&mut output, &call, &payload).await {
            return lose(&waiting, &error.to_string());
        }
    }
}

async fn read_answers(mut input: impl AsyncRead + Unpin, waiting: Arc<Mutex<Waiting>>) {
    let why = loop {
        match frame::read::<Answer>(&mut input).await {
            Ok(Some((Answer { id, result }, payload))) => {
                if let Some(caller) = lock(&waiting).callers.remove(&id) {
                    let _ = caller.send(result.map(|value| (value, payload)));
                }
            }
            Ok(None) => break "its agent ended".to_owned(),
            Err(error) => break error.to_string(),
        }
    };
    lose(&waiting, &why);
}

/// Lets all callers know, those to come too. The first reason stays.
fn lose(waiting: &Mutex<Waiting>, why: &str) {
    let mut waiting = lock(waiting);
    waiting.lost.get_or_insert_with(|| why.to_owned());
    waiting.callers.clear();
}

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}
