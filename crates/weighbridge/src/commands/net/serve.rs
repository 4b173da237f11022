//! `weighbridge net serve`: serves the other side of network profiles.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use wb_net::{
    control::{ControlError, ControlLimits, ControlListener, escape_control},
    session::{
        limits::SessionLimits,
        server::{Server, ServerEvent},
    },
    transport::data_ports::{DataPorts, PortPolicy},
};
use wb_session::program::runtime;

use super::refusal_log::RefusalLog;
use super::{child_command, trust};
use crate::cli::net::NetServeArgs;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::print_text;

/// Serves clients until a signal, or after one session with `--once`.
pub(super) fn serve(args: &NetServeArgs, console: &Console) -> Result<Exit, Error> {
    let (credentials, pairing_token) = trust::server_credentials(&args.trust, args.pair)?;
    let listen = if args.pair { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { args.listen };
    let fingerprint = credentials.identity.fingerprint();
    let policy = args.data_ports.clone().map_or(PortPolicy::Any, PortPolicy::Range);
    let limits = SessionLimits {
        sessions: args.max_sessions,
        strands: args.max_strands,
        memory: args.max_memory.0,
        duration: Duration::from_nanos(args.max_time.0),
        ports: policy.clone(),
        ..SessionLimits::default()
    };
    let cpus = args.cpus.iter().flat_map(|cpus| &cpus.0).map(|&cpu| cpu as usize).collect();
    let address = SocketAddr::new(listen, args.port);
    let (quiet, once, one_port) = (console.quiet, args.once, args.one_port);
    runtime()?.block_on(async {
        let bind_failed = |error: ControlError| Error::Usage {
            what: error.to_string(),
            help: "choose another address with --listen or another port with --port".to_owned(),
        };
        let control_limits = ControlLimits::default();
        let (listener, ports) = if one_port {
            ControlListener::bind_shared(address, &credentials, &control_limits).await.map_err(bind_failed)?
        } else {
            let listener = ControlListener::bind(address, &credentials, &control_limits).await.map_err(bind_failed)?;
            (listener, DataPorts::new(policy))
        };
        let limits = SessionLimits { ports: ports.policy().clone(), ..limits };
        let server = Server { limits, cpus, child: child_command(), ports };
        let at = listener.local_addr();
        crate::console::message!("serving at {at}, with the key {fingerprint}");
        if let Some(token) = pairing_token {
            let host = machine_address().map_or_else(|| "HOST".to_owned(), |address| address.to_string());
            crate::console::message!("on the other machine, run:");
            print_text(&format!("WEIGHBRIDGE_NET_TOKEN={} weighbridge net rr {host}:{}\n", token.reveal(), at.port()))?;
        } else if at.ip().is_loopback() && !quiet {
            let host = machine_address().map_or_else(|| "ADDRESS".to_owned(), |address| address.to_string());
            crate::console::message!("note: other machines cannot reach {}; `--listen {host}` lets them", at.ip());
        }
        let done = Arc::new(tokio::sync::Notify::new());
        let session_over = done.clone();
        let sessions = Arc::new(AtomicUsize::new(0));
        let active_sessions = sessions.clone();
        let refusals = Mutex::new(RefusalLog::default());
        let report = move |event: ServerEvent| {
            match &event {
                ServerEvent::SessionStarted(..) => _ = sessions.fetch_add(1, Ordering::SeqCst),
                ServerEvent::SessionEnded(..) => _ = sessions.fetch_sub(1, Ordering::SeqCst),
                ServerEvent::Refused(..) => {}
            }
            if !quiet {
                match &event {
                    ServerEvent::Refused(from, error) => {
                        if let Some(line) = refusals.lock().unwrap_or_else(PoisonError::into_inner).line(*from, error) {
                            crate::console::message!("{line}");
                        }
                    }
                    ServerEvent::SessionStarted(from, key) => {
                        crate::console::message!("{from}: session started, with the key {key}")
                    }
                    // Names of the client's profile may be part of the outcome.
                    ServerEvent::SessionEnded(from, outcome) => {
                        crate::console::message!("{from}: {}", escape_control(&outcome.to_string()))
                    }
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

/// The address of this machine on its default route; nothing is sent.
fn machine_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // An address for documentation (RFC 5737), so that it is behind the default route.
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|address| !address.is_loopback())
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
