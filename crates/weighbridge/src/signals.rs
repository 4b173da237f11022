use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use wb_session::program::runtime;

/// Calls `on_signal` for each SIGINT, SIGTERM and SIGHUP, from a thread of its own. Returns whether there has been one.
pub(crate) fn listen_for_signals(on_signal: impl Fn() + Send + 'static) -> Arc<AtomicBool> {
    use tokio::signal::unix::{SignalKind, signal};
    let is_cancelled = Arc::new(AtomicBool::new(false));
    let flag = is_cancelled.clone();
    let (ready, is_ready) = channel();
    thread::spawn(move || {
        let Ok(runtime) = runtime() else { return };
        runtime.block_on(async {
            let listen = |kind| signal(kind).ok();
            let (Some(mut interrupt), Some(mut terminate), Some(mut hangup)) =
                (listen(SignalKind::interrupt()), listen(SignalKind::terminate()), listen(SignalKind::hangup()))
            else {
                return;
            };
            drop(ready);
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
                }
                flag.store(true, Ordering::Relaxed);
                on_signal();
            }
        });
    });
    // From here on, a signal ends the command in order. An error means that the thread is ready, or has ended.
    let _ = is_ready.recv_timeout(Duration::from_secs(5)).map(|(): ()| ());
    is_cancelled
}
