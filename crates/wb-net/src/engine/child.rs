//! Strands that are processes: the parent's side and the child's side.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use super::engine_set::EngineSetInput;
use super::fork_server::{ForkServer, ForkedProcess};
use super::local::LocalEngine;
use super::plan::GroupPlan;
use super::protocol::{Assignment, EngineCommand, EngineEvent, HostSession};
use crate::transport::cookie::LinkKey;
use crate::transport::data_ports::{ChildRegistration, DataPorts, PortPolicy};
use crate::transport::handover::{Handover, HandoverReceiver, HandoverSender};
use crate::transport::socket::SocketConfig;
use crate::transport::unverified::CookieVerifier;
use wb_net_profile::FlowopAction;

/// A child process that executes strands. It reads commands, and writes events, one line of JSON each. With the
/// commands come the connections of a port that this process owns.
pub(super) struct ChildEngine {
    input: Option<HandoverSender>,
    links: Vec<ChildRegistration>,
    /// Dropped last: waits for the exit, which the end of the input causes.
    _process: ForkedProcess,
}

impl ChildEngine {
    /// Starts a process for the strands of an assignment, in which the ports that this process has opened for it are set.
    pub(super) fn start(
        processes: &mut ForkServer,
        member: usize,
        sender: Sender<EngineSetInput>,
        assignment: &mut Assignment,
        ports: &DataPorts,
    ) -> io::Result<Self> {
        let (input, stdin) = UnixStream::pair()?;
        let input = HandoverSender::new(input);
        let links = if ports.is_limited() { register_links(assignment, ports, &input)? } else { Vec::new() };
        let (output, stdout) = io::pipe()?;
        let process = processes.fork(stdin, stdout)?;
        thread::Builder::new().name("child".to_owned()).spawn(move || {
            for line in BufReader::new(output).lines() {
                let parsed = line.and_then(|line| serde_json::from_str(&line).map_err(io::Error::other));
                let input = match parsed {
                    Ok(event) => EngineSetInput::Event(member, event),
                    Err(error) => {
                        EngineSetInput::Exited(member, format!("invalid message from strand process: {error}"))
                    }
                };
                if sender.send(input).is_err() {
                    return;
                }
            }
            // Ignored: after the run nobody receives events.
            let _: Result<(), _> =
                sender.send(EngineSetInput::Exited(member, "strand process exited unexpectedly".to_owned()));
        })?;
        Ok(Self { input: Some(input), links, _process: process })
    }

    /// Ends its input, and so the process, without waiting for that.
    pub(super) fn close(&mut self) {
        self.links.clear();
        self.input = None;
    }

    pub(super) fn send(&mut self, command: &EngineCommand) {
        if self.input.as_ref().is_some_and(|input| input.send(command).is_err()) {
            // The process has exited; the reader of its output reports that.
            self.input = None;
        }
    }
}

/// Opens the ports for the strands of a child process, registers their links, and sets the ports in the assignment.
fn register_links(
    assignment: &mut Assignment,
    ports: &DataPorts,
    child: &HandoverSender,
) -> io::Result<Vec<ChildRegistration>> {
    let Assignment { profile, side, strands, hosts, .. } = assignment;
    let positions: BTreeMap<String, u32> = hosts.keys().cloned().zip(0..).collect();
    let sessions: Vec<&HostSession> = hosts.values().collect();
    let mut registrations = Vec::new();
    for ((index, group), strands) in profile.groups.iter_mut().enumerate().zip(strands) {
        let plan = GroupPlan::new(index, group, *side, &positions);
        let planned = plan.transactions.iter().flat_map(|transaction| &transaction.flowops);
        let flowops = group.transactions.iter_mut().flat_map(|transaction| &mut transaction.flowops);
        for (flowop, planned) in flowops.zip(planned) {
            let (FlowopAction::Accept(own), Some(endpoint)) = (&mut flowop.action, &planned.endpoint) else { continue };
            let Some(session) = sessions.get(planned.host as usize) else { continue };
            let config = SocketConfig { endpoint, local: session.local, blocking: false, receive_timeout: None };
            if !config.has_ports() {
                continue;
            }
            for strand in strands.clone() {
                let link = LinkKey { group: index as u32, flowop: planned.id, strand };
                let verifier = CookieVerifier::new(session.key, link);
                let registration = ports.register_for_child(&config, verifier, child)?;
                own.port = Some(registration.port);
                registrations.push(registration);
            }
        }
    }
    Ok(registrations)
}

/// Executes strands in this process, as a child of an engine set: reads commands from standard input, a UNIX socket,
/// until it ends. Fails if what arrives is not of this protocol, or events cannot be written.
pub fn run_child() -> io::Result<()> {
    let (sender, events) = channel::<EngineEvent>();
    let mut input = HandoverReceiver::new(io::stdin().as_fd().try_clone_to_owned()?);
    let Some(Handover::Command(first)) = input.receive::<EngineCommand>()? else { return Ok(()) };
    let policy = match &first {
        EngineCommand::Prepare(assignment) => assignment.settings.ports.clone(),
        _ => PortPolicy::Any,
    };
    let ports = DataPorts::of_child(policy);
    let engine = LocalEngine::start(ports.clone(), move |event| sender.send(event).is_ok())?;
    engine.send(first);
    let writer = thread::Builder::new().name("events".to_owned()).spawn(move || -> io::Result<()> {
        let mut output = io::stdout().lock();
        for event in events {
            serde_json::to_writer(&mut output, &event)?;
            output.write_all(b"\n")?;
            output.flush()?;
        }
        Ok(())
    })?;
    while let Some(received) = input.receive()? {
        match received {
            Handover::Command(command) => {
                if !engine.send(command) {
                    break;
                }
            }
            Handover::Connection(handed, descriptor) => ports.take_over(handed, descriptor),
        }
    }
    drop(engine);
    writer.join().unwrap_or_else(|_| Err(io::Error::other("the thread that writes events panicked")))
}
