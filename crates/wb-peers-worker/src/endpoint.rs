//! Processes of both sides: a listener that runs during a sample, and the dialers of its scenarios.

use std::time::Duration;

use tokio::time::Instant;
use wb_agent::signal::SIGTERM;
use wb_agent::{Command, ExitReason, OutputStream, ProcessOutput};
use wb_model::{Bytes, Facts, Nanos, Placement};
use wb_peers::launch::Values;
use wb_peers::{DURATION, EndpointCommand};
use wb_test::port::find_free_port;
use wb_test::{Attempt, Failure, RunningService, WorkerContext};

use super::cell::{PeersCell, Side};
use super::container::Container;
use super::failure::FailureKind;
use super::output::{EndpointOutput, parse_listening};
use super::params::{Amount, ScenarioRun};
use super::sample::LISTENER;

/// Exit status of a program that a shell or a runtime ended by SIGTERM.
const TERMINATED: i32 = 128 + SIGTERM;
/// Time limit for a listener to exit after SIGTERM.
pub(super) const EXIT_LIMIT: Nanos = Nanos(5_000_000_000);
/// Longest wait for a listener to report its streams after the dialer has ended.
const REPORT_LIMIT: Duration = Duration::from_secs(2);
/// Bytes of an endpoint's output that are kept; a program that writes more is ended.
const OUTPUT_LIMIT: Bytes = Bytes(32 << 20);

/// Whether a program ended by itself, or by SIGTERM.
pub(super) fn is_regular_end(reason: ExitReason) -> bool {
    matches!(reason, ExitReason::Exited { status: 0 | TERMINATED } | ExitReason::Signalled { signal: SIGTERM })
}

/// The placement of one side: its own CPUs, or half of those of the worker.
pub(super) fn placement(side: Side, cell: &PeersCell, requested: &Placement, facts: &Facts) -> Placement {
    let own = match side {
        Side::Dialer => &cell.params.dialer_cpus,
        Side::Listener => &cell.params.listener_cpus,
    };
    if !own.is_empty() {
        return Placement { cpus: own.clone(), ..requested.clone() };
    }
    let all: Vec<u32> =
        if requested.cpus.is_empty() { facts.cpus.iter().map(|cpu| cpu.id).collect() } else { requested.cpus.clone() };
    let (first, second) = all.split_at(all.len().div_ceil(2));
    let cpus = match side {
        // A single CPU serves both.
        Side::Listener if !second.is_empty() => second.to_vec(),
        Side::Dialer | Side::Listener => first.to_vec(),
    };
    Placement { cpus, ..requested.clone() }
}

pub(super) struct EndpointProcess<'a> {
    pub(super) cell: &'a PeersCell,
    pub(super) side: Side,
    pub(super) endpoint: &'a EndpointCommand,
    pub(super) name: &'a str,
    /// In addition to those that both sides have.
    pub(super) values: Vec<(&'static str, String)>,
    /// In addition to those of the peers file.
    pub(super) variables: Vec<(&'static str, String)>,
}

pub(super) struct StartCommand {
    pub(super) command: Command,
    pub(super) container: Option<Container>,
}

impl StartCommand {
    /// Its command; what was created for it is recorded with the process of this name.
    pub(super) fn record(self, name: &str, attempt: &mut Attempt) -> Result<Command, Failure> {
        if let Some(container) = &self.container {
            container.record(name, attempt)?;
        }
        Ok(self.command)
    }
}

impl EndpointProcess<'_> {
    /// The command that starts it on a worker, in a container if the endpoint is an image.
    pub(super) async fn start_command(&self, context: &WorkerContext) -> Result<StartCommand, Failure> {
        let placement = placement(self.side, self.cell, &context.placement, &context.facts);
        let variables = self.variables.iter().cloned();
        let command = fill_command(self.cell, self.endpoint, &self.values, &placement)?;
        let command = variables.fold(command, |command, (name, value)| command.env(name, value));
        let Some(image) = &self.endpoint.container else { return Ok(StartCommand { command, container: None }) };
        let engine = self.cell.params.container_engine;
        let (container, command) = Container::create(self.name, engine, image, command, context).await?;
        Ok(StartCommand { command, container: Some(container) })
    }
}

/// The command of an endpoint of a cell. `values` are placeholders in addition to those that both sides have.
fn fill_command(
    cell: &PeersCell,
    endpoint: &EndpointCommand,
    further: &[(&'static str, String)],
    placement: &Placement,
) -> Result<Command, Failure> {
    let mut values: Values<'_> = cell.values.iter().map(|(axis, value)| (axis.as_str(), value.clone())).collect();
    values.insert("folder", cell.folder().display().to_string());
    values.extend(further.iter().cloned());
    let mut argv = endpoint.fill(&values).map_err(|error| Failure::refused(error.to_string()))?;
    let is_on_host = endpoint.container.is_none();
    for (position, argument) in argv.iter_mut().enumerate().filter(|_| is_on_host) {
        if position == 0 || argument.starts_with("./") || argument.starts_with("../") {
            *argument = cell.program(argument);
        }
    }
    let command = Command::new(argv).placement(placement.clone()).output_limit(OUTPUT_LIMIT);
    Ok(endpoint.fill_env(&values).into_iter().fold(command, |command, (name, value)| command.env(name, value)))
}

pub(super) fn listen_host(dialer: &WorkerContext, listener: &WorkerContext) -> Result<String, Failure> {
    if listener.worker().name() == dialer.worker().name() {
        return Ok("127.0.0.1".to_owned());
    }
    listener.address.clone().ok_or_else(|| {
        let worker = listener.worker().name();
        Failure::refused(format!("missing address of `{worker}` for other workers: set `data-address` in hosts.toml"))
    })
}

pub(super) struct Listener {
    process: RunningService,
    container: Option<Container>,
    address: String,
}

pub(super) struct ListenerLog {
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    /// How it ended, if not as it should.
    pub(super) irregular_end: Option<ExitReason>,
}

impl Listener {
    /// Starts the listener of a cell, and waits until it accepts connections.
    pub(super) async fn start(
        cell: &PeersCell,
        endpoint: &EndpointCommand,
        host: &str,
        context: &WorkerContext,
    ) -> Result<Self, Failure> {
        let port = find_free_port(context).await?;
        let values = vec![("host", host.to_owned()), ("port", port.to_string())];
        let (name, variables) = (LISTENER, Vec::new());
        let process = EndpointProcess { cell, side: Side::Listener, endpoint, name, values, variables };
        let StartCommand { command, container } = process.start_command(context).await?;
        let process = context.start_service(command).await?;
        let begin = Instant::now();
        let find_address = |line: &str| match &endpoint.ready {
            None => parse_listening(line),
            Some(ready) => {
                let captured = ready.captures(line)?;
                let address = captured.name("address").map(|address| address.as_str().to_owned());
                Some(address.unwrap_or_else(|| format!("{host}:{port}")))
            }
        };
        let limit = cell.params.ready_limit;
        let ready = process.wait_for_line(OutputStream::Stdout, limit, |line| find_address(line).is_some());
        match context.until_cancelled(ready).await??.as_deref().and_then(find_address) {
            Some(address) => Ok(Self { process, container, address }),
            None => {
                let log = process.read_output(OutputStream::Stderr).await?;
                let id = &cell.listener;
                let logs: [(&str, &[u8]); 1] = [("listener", &log)];
                Err(if begin.elapsed() < Duration::from(limit) {
                    FailureKind::Crash.failure(format!("`{id}` ended before it accepted connections"), &logs)
                } else {
                    FailureKind::Timeout.failure(format!("`{id}` accepted no connections within {limit}"), &logs)
                })
            }
        }
    }

    pub(super) async fn record(&self, attempt: &mut Attempt) -> Result<(), Failure> {
        if let Some(container) = &self.container {
            container.record(LISTENER, attempt)?;
        }
        attempt.record_service(LISTENER, &self.process).await
    }

    pub(super) async fn log(&self) -> Result<Vec<u8>, Failure> {
        Ok(self.process.read_output(OutputStream::Stderr).await?)
    }

    /// Ends it after it has reported a number of streams, or a short time.
    pub(super) async fn stop(self, streams: usize, context: &WorkerContext) -> Result<ListenerLog, Failure> {
        let begin = Instant::now();
        while begin.elapsed() < REPORT_LIMIT {
            let output = self.process.read_output(OutputStream::Stdout).await?;
            if EndpointOutput::parse(&output).served.len() >= streams {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.process.signal(SIGTERM).await?;
        let finished = context.until_cancelled(self.process.wait(Some(EXIT_LIMIT))).await??;
        let irregular_end = Some(finished.exit_reason).filter(|reason| !is_regular_end(*reason));
        Ok(ListenerLog { stdout: finished.stdout, stderr: finished.stderr, irregular_end })
    }
}

pub(super) struct Dial<'a> {
    pub(super) name: &'a str,
    pub(super) run: ScenarioRun,
    pub(super) listener: &'a Listener,
}

/// Runs the dialer of a cell to its end, and checks how it ended.
pub(super) async fn dial(
    cell: &PeersCell,
    endpoint: &EndpointCommand,
    dial: &Dial<'_>,
    attempt: &mut Attempt,
) -> Result<ProcessOutput, Failure> {
    let Dial { name, run, listener } = dial;
    let placement = placement(Side::Dialer, cell, &attempt.context.placement, &attempt.context.facts);
    let iteration_limit = run.iteration_limit(cell.params.iteration_limit);
    let mut values = vec![
        ("address", listener.address.clone()),
        ("scenario", run.scenario.name().to_owned()),
        ("iterations", run.iterations.to_string()),
        ("timeout", iteration_limit.seconds().to_string()),
    ];
    values.extend(match run.amount {
        Amount::Bytes { send, receive } => vec![("send", send.to_string()), ("receive", receive.to_string())],
        Amount::Time(time) => vec![
            ("direction", run.scenario.name().to_owned()),
            (DURATION, time.duration.seconds().to_string()),
            ("interval", time.interval().seconds().to_string()),
        ],
    });
    let process = EndpointProcess { cell, side: Side::Dialer, endpoint, name, values, variables: Vec::new() };
    let command = process.start_command(&attempt.context).await?.record(name, attempt)?.times_output();
    let limit = attempt.context.limit;
    let iterations = iteration_limit.0.saturating_mul(u64::from(run.iterations));
    attempt.context.limit = Nanos(iterations.min(limit.0));
    let finished = attempt.run_to_end(name, command, &placement).await;
    let dialer_limit = std::mem::replace(&mut attempt.context.limit, limit);
    let finished = finished?;
    let output = EndpointOutput::parse(&finished.stdout);
    let log = listener.log().await?;
    let logs: [(&str, &[u8]); 2] = [("dialer", &finished.stderr), ("listener", &log)];
    let done = output.iterations.iter().filter(|iteration| iteration.error.is_none()).count();
    let count = format!("{done} of {} iterations", run.iterations);
    let failed = output.iterations.iter().find_map(|iteration| Some((iteration, iteration.error.as_deref()?)));
    if let Some((iteration, error)) = failed {
        let kind = FailureKind::of_iteration(iteration.t_connect.or(iteration.t_open).is_some(), error);
        return Err(kind.failure(format!("{name}: {error} (after {count})"), &logs));
    }
    match finished.exit_reason {
        ExitReason::TimedOut { .. } => {
            Err(FailureKind::Timeout.failure(format!("{name}: {count} within {dialer_limit}"), &logs))
        }
        reason if is_regular_end(reason) => {
            if !reason.is_success() {
                attempt.add_finding(format!("{name}: the dialer of `{}` ended with {reason}", cell.dialer));
            }
            Ok(finished)
        }
        reason => Err(FailureKind::Crash.failure(format!("{name}: {reason} after {count}"), &logs)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sigterm_is_a_regular_end() {
        let regular = [
            ExitReason::Exited { status: 0 },
            ExitReason::Exited { status: 143 },
            ExitReason::Signalled { signal: 15 },
        ];
        assert!(regular.into_iter().all(is_regular_end));
        assert!(!is_regular_end(ExitReason::Exited { status: 1 }));
        assert!(!is_regular_end(ExitReason::Signalled { signal: 9 }));
    }
}
