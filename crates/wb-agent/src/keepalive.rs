//! Whether the other side of a pipe still says something.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, sleep_until};

/// How many words are said in the time after which silence counts: some may be late.
const KEEPALIVES_PER_TIMEOUT: u32 = 6;

/// The time between two words where so long a silence ends it all.
pub(crate) fn keepalive_interval(silence: Duration) -> Duration {
    silence / KEEPALIVES_PER_TIMEOUT
}

/// A reader that remembers when it got something. Bytes count, not messages: a long one may take its time.
#[derive(Debug)]
pub(crate) struct ActivityReader<R> {
    inner: R,
    last: LastActivity,
}

impl<R> ActivityReader<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, last: LastActivity(Arc::new(Mutex::new(Instant::now()))) }
    }

    /// When it got something last, now and later.
    pub(crate) fn last_activity(&self) -> LastActivity {
        self.last.clone()
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for ActivityReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(context, buffer);
        if buffer.filled().len() > before {
            *self.last.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        }
        polled
    }
}

/// When something was heard last.
#[derive(Debug, Clone)]
pub(crate) struct LastActivity(Arc<Mutex<Instant>>);

impl LastActivity {
    /// Returns when nothing was heard for so long; never without a limit.
    pub(crate) async fn wait_until_idle(&self, limit: Option<Duration>) {
        let Some(limit) = limit else { return std::future::pending().await };
        loop {
            let due = *self.0.lock().unwrap_or_else(PoisonError::into_inner) + limit;
            if due <= Instant::now() {
                return;
            }
            sleep_until(due).await;
        }
    }
}
