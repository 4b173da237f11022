//! Background thread with the tokio runtime that drives all ssh connections.
//!
//! Agents consider a silent controller dead, so keepalives must not share a thread with long computations.

use std::io;
use std::sync::OnceLock;
use std::sync::mpsc;

use tokio::runtime::{Builder, Handle};

/// Returns the runtime of that thread, started on first use and kept until the process exits.
pub(crate) fn runtime() -> io::Result<&'static Handle> {
    static RUNTIME: OnceLock<Handle> = OnceLock::new();
    if let Some(handle) = RUNTIME.get() {
        return Ok(handle);
    }
    let handle = start()?;
    Ok(RUNTIME.get_or_init(|| handle))
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
