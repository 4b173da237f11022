//! Keepalive and idle timeout of a pipe. A broken link causes no end of file, so over ssh both sides send bytes every
//! few seconds, and give up the other side when none arrive.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, sleep_until};

/// Number of keepalives sent per idle timeout, so that some may be late.
const KEEPALIVES_PER_TIMEOUT: u32 = 6;

pub(crate) fn keepalive_interval(timeout: Duration) -> Duration {
    timeout / KEEPALIVES_PER_TIMEOUT
}

/// An [`AsyncRead`] wrapper that records the time of the last received byte. Bytes count, not messages, because a long
/// message may take longer than the timeout.
#[derive(Debug)]
pub(crate) struct ActivityReader<R> {
    inner: R,
    last: LastActivity,
}

impl<R> ActivityReader<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, last: LastActivity(Arc::new(Mutex::new(Instant::now()))) }
    }

    /// Returns a handle to the time of the last received byte, which stays up to date.
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

/// Shared time of the last received byte.
#[derive(Debug, Clone)]
pub(crate) struct LastActivity(Arc<Mutex<Instant>>);

impl LastActivity {
    /// Completes when no byte was received for `limit`; never without a limit.
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
