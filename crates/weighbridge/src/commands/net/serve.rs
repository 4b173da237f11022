//! `weighbridge net serve`: serves the other side of network profiles.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use wb_net::{
    control::{ControlLimits, ControlListener},
    session::{
        limits::SessionLimits,
        server::{Server, ServerEvent},
    },
};
use wb_session::program::runtime;

use super::{child_command, trust};
use crate::cli::net::NetServeArgs;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

/// Serves clients until a signal, or after one session with `--once`.
pub(super) fn serve(args: &NetServeArgs, console: &Console) -> Result<Exit, Error> {
    let credentials = trust::credentials(&args.trust)?;
    let fingerprint = credentials.identity.fingerprint();
    let server = Server {
        limits: SessionLimits {
            sessions: args.max_sessions,
            strands: args.max_strands,
            memory: args.max_memory.0,
            duration: Duration::from_nanos(args.max_time.0),
            ports: args.data_ports.clone(),
            ..SessionLimits::default()
        },
        cpus: args.cpus.iter().flat_map(|cpus| &cpus.0).map(|&cpu| cpu as usize).collect(),
        child: child_command(),
    };
    let address = SocketAddr::new(args.listen, args.port);
    let (quiet, once) = (console.quiet, args.once);
    runtime()?.block_on(async {
        let listener = ControlListener::bind(address, &credentials, &ControlLimits::default()).await;
        let listener = listener.map_err(|error| Error::Usage {
            what: error.to_string(),
            help: "choose another address with --listen or another port with --port".to_owned(),
        })?;
        let at = listener.local_addr();
        crate::console::message!("serving at {at}, with the key {fingerprint}");
        let done = Arc::new(tokio::sync::Notify::new());
        let session_over = done.clone();
        let sessions = Arc::new(AtomicUsize::new(0));
        let active_sessions = sessions.clone();
        let report = move |event: ServerEvent| {
            match &event {
                ServerEvent::SessionStarted(..) => _ = sessions.fetch_add(1, Ordering::SeqCst),
                ServerEvent::SessionEnded(..) => _ = sessions.fetch_sub(1, Ordering::SeqCst),
                ServerEvent::Refused(..) => {}
            }
            if !quiet {
                match &event {
                    ServerEvent::Refused(from, error) => crate::console::message!("{from}: refused: {error}"),
                    ServerEvent::SessionStarted(from, key) => {
                        crate::console::message!("{from}: session started, with the key {key}")
                    }
                    ServerEvent::SessionEnded(from, outcome) => crate::console::message!("{from}: {outcome}"),
                }
            }
            if once && matches!(event, ServerEvent::SessionEnded(..)) {
                session_over.notify_one();
            }
        };
        tokio::select! {
            () = server.serve(&listener, report) => {
                Err(Error::Internal("the listening socket is broken".to_owned()))
            }
            () = done.notified() => Ok(Exit::Success),
            () = wait_for_signal() => {
                if !quiet {
                    let active = wb_model::pluralize(active_sessions.load(Ordering::SeqCst), "session");
                    crate::console::message!("stopped by a signal, with {active} in progress");
                }
                Ok(Exit::Success)
            }
        }
    })
}

/// Waits for SIGINT or SIGTERM.
pub(super) async fn wait_for_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
