//! `weighbridge net serve`: serves the other side of network profiles.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use wb_net::{
    control::{ControlError, ControlLimits, ControlListener, Credentials, escape_control},
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

pub(super) struct ServerConfig {
    pub(super) address: SocketAddr,
    pub(super) credentials: Credentials,
    pub(super) limits: SessionLimits,
    pub(super) cpus: Vec<usize>,
    /// Whether clients choose the CPUs if `cpus` is empty.
    pub(super) client_cpus: bool,
    /// Whether data connections use the port of control connections.
    pub(super) one_port: bool,
    /// Interval between progress reports; `None` for that of the client.
    pub(super) progress_interval: Option<Duration>,
    pub(super) once: bool,
    /// How long no session may be in progress: then a server of one session ends, and another says that it listens.
    pub(super) idle_limit: Option<Duration>,
}

pub(super) enum ServerEnd {
    Once,
    /// It was to serve one session, and none began in time.
    Idle,
    /// A signal, with this number of sessions in progress.
    Signal(usize),
}

/// Serves clients until a signal, or one session.
pub(super) fn run_server(
    config: ServerConfig,
    on_listening: impl FnOnce(SocketAddr) -> Result<(), Error>,
    on_event: impl Fn(&ServerEvent) + Send + Sync + 'static,
    on_idle: impl Fn(),
) -> Result<ServerEnd, Error> {
    let ServerConfig { address, credentials, limits, cpus, client_cpus, one_port, progress_interval, once, idle_limit } =
        config;
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
            (listener, DataPorts::new(limits.ports.clone()))
        };
        let limits = SessionLimits { ports: ports.policy().clone(), ..limits };
        let server = Server { limits, once, cpus, client_cpus, progress_interval, child: child_command(), ports };
        on_listening(listener.local_addr())?;
        let done = Arc::new(tokio::sync::Notify::new());
        let session_over = done.clone();
        let changed = Arc::new(tokio::sync::Notify::new());
        let session_changed = changed.clone();
        let sessions = Arc::new(AtomicUsize::new(0));
        let active_sessions = sessions.clone();
        let report = move |event: ServerEvent| {
            match &event {
                ServerEvent::SessionStarted(..) => _ = sessions.fetch_add(1, Ordering::SeqCst),
                ServerEvent::SessionEnded(..) => _ = sessions.fetch_sub(1, Ordering::SeqCst),
                ServerEvent::Refused(..)
                | ServerEvent::Busy(..)
                | ServerEvent::RunAccepted(..)
                | ServerEvent::RunMeasured(..)
                | ServerEvent::StrandProgress(..) => {}
            }
            if matches!(event, ServerEvent::SessionStarted(..) | ServerEvent::SessionEnded(..)) {
                session_changed.notify_one();
            }
            on_event(&event);
            if once && matches!(event, ServerEvent::SessionEnded(..)) {
                session_over.notify_one();
            }
        };
        let idle = async {
            let Some(limit) = idle_limit else { return std::future::pending().await };
            loop {
                let is_idle = active_sessions.load(Ordering::SeqCst) == 0;
                match tokio::time::timeout(limit, changed.notified()).await {
                    Err(_) if is_idle && once => return,
                    Err(_) if is_idle => on_idle(),
                    _ => {}
                }
            }
        };
        tokio::select! {
            () = server.serve(&listener, report) => {
                Err(Error::Internal("the listening socket is broken".to_owned()))
            }
            () = done.notified() => Ok(ServerEnd::Once),
            () = idle => Ok(ServerEnd::Idle),
            () = wait_for_signal() => Ok(ServerEnd::Signal(active_sessions.load(Ordering::SeqCst))),
        }
    })
}

pub(super) fn serve(args: &NetServeArgs, console: &Console) -> Result<Exit, Error> {
    let (credentials, pairing_token) = trust::server_credentials(&args.trust, args.pair)?;
    let mut address = if args.pair { SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0) } else { args.listen };
    address.set_port(args.port);
    let fingerprint = credentials.identity.fingerprint();
    let config = ServerConfig {
        address,
        credentials,
        limits: SessionLimits {
            sessions: args.max_sessions,
            strands: args.max_strands,
            memory: args.max_memory.0,
            duration: Duration::from_nanos(args.max_time.0),
            ports: args.data_ports.clone().map_or(PortPolicy::Any, PortPolicy::Range),
            ..SessionLimits::default()
        },
        cpus: args.cpus.iter().flat_map(|cpus| &cpus.0).map(|&cpu| cpu as usize).collect(),
        client_cpus: false,
        one_port: args.one_port,
        progress_interval: None,
        once: args.once,
        idle_limit: None,
    };
    let quiet = console.quiet;
    let on_listening = |listening: SocketAddr| {
        crate::console::message!("serving at {listening}, with the key {fingerprint}");
        if let Some(token) = pairing_token {
            let main = machine_address();
            let host = main.map_or_else(|| "HOST".to_owned(), |address| address.to_string());
            crate::console::message!("on the other machine, run:");
            print_text(&format!(
                "WEIGHBRIDGE_NET_TOKEN={} weighbridge net rr {host}:{}\n",
                token.reveal(),
                listening.port()
            ))?;
            let others: Vec<String> = machine_addresses().into_iter().filter(|other| *other != host).collect();
            if !others.is_empty() {
                crate::console::message!("other addresses of this machine: {}", others.join(", "));
            }
        } else if listening.ip().is_loopback() && !quiet {
            let host = machine_address().map_or_else(|| "ADDRESS".to_owned(), |address| address.to_string());
            crate::console::message!(
                "note: other machines cannot reach {}; `--listen {host}` lets them",
                listening.ip()
            );
        }
        Ok(())
    };
    let log = SessionLog::default();
    let end = run_server(
        config,
        on_listening,
        move |event| {
            if !quiet {
                log.print(event);
            }
        },
        || {},
    )?;
    if let (ServerEnd::Signal(active), false) = (end, quiet) {
        let active = wb_model::pluralize(active, "session");
        crate::console::message!("stopped by a signal, with {active} in progress");
    }
    Ok(Exit::Success)
}

/// The log of a server, on standard error.
#[derive(Debug, Default)]
pub(super) struct SessionLog {
    refusals: Mutex<RefusalLog>,
}

impl SessionLog {
    /// Prints that a client was refused, if its source has not been named just before.
    pub(super) fn print_refusal(&self, from: SocketAddr, reason: &impl std::fmt::Display) {
        let line = self.refusals.lock().unwrap_or_else(PoisonError::into_inner).line(from, reason);
        if let Some(line) = line {
            crate::console::message!("{line}");
        }
    }

    pub(super) fn print(&self, event: &ServerEvent) {
        match event {
            ServerEvent::Refused(from, error) => self.print_refusal(*from, error),
            ServerEvent::Busy(from, error) => self.print_refusal(*from, error),
            ServerEvent::SessionStarted(from, key) => {
                crate::console::message!("{from}: session started, with the key {key}")
            }
            // Names of the client's profile may be part of the outcome.
            ServerEvent::SessionEnded(from, outcome) => {
                crate::console::message!("{from}: {}", escape_control(&outcome.to_string()))
            }
            ServerEvent::RunAccepted(..) | ServerEvent::RunMeasured(..) | ServerEvent::StrandProgress(..) => {}
        }
    }
}

/// This machine's addresses without loopback, link-local ones with interfaces; none that the kernel does not show.
fn machine_addresses() -> Vec<String> {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let mut addresses: Vec<String> = Vec::new();
    let (routes, mut last) = (read("/proc/net/fib_trie"), "");
    for line in routes.lines().map(str::trim) {
        match line.strip_prefix("|-- ") {
            Some(address) => last = address,
            // A route to one address, which is this machine.
            None if line == "/32 host LOCAL" && !last.starts_with("127.") => addresses.push(last.to_owned()),
            None => {}
        }
    }
    for line in read("/proc/net/if_inet6").lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [address, _, _, _, _, interface] = words[..] else { continue };
        let Ok(address) = u128::from_str_radix(address, 16).map(Ipv6Addr::from) else { continue };
        if address.is_unicast_link_local() {
            addresses.push(format!("[{address}%{interface}]"));
        } else if !address.is_loopback() {
            addresses.push(format!("[{address}]"));
        }
    }
    let mut seen = BTreeSet::new();
    addresses.retain(|address| seen.insert(address.clone()));
    addresses
}

/// The address of this machine on its default route; nothing is sent.
fn machine_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // An address for documentation (RFC 5737), so that it is behind the default route.
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|address| !address.is_loopback())
}

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
