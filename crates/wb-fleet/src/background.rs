//! The thread that carries what is said to hosts.
//!
//! Agents take a silent controller for gone. So what keeps the conversation up must not share a thread with what may
//! compute for a while.

use std::io;
use std::sync::OnceLock;
use std::sync::mpsc;

use tokio::runtime::{Builder, Handle};

/// The runtime of that thread, started with the first use and ending with the process.
pub(crate) fn runtime() -> io::Result<&'static Handle> {
    static RUNTIME: OnceLock<Handle> = OnceLock::new();
    if let Some(handle) = RUNTIME.get() {
        return Ok(handle);
    }
    let started = start()?;
    Ok(RUNTIME.get_or_init(|| started))
}

fn start() -> io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let (ready, is_ready) = mpsc::channel();
    std::thread::Builder::new().name("hosts".to_owned()).spawn(move || {
        let _ = ready.send(());
        runtime.block_on(std::future::pending::<()>())
    })?;
    is_ready.recv().map_err(io::Error::other)?;
    Ok(handle)
}
