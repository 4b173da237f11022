//! A sample: the ceiling of the path, a listener with the dialers of each scenario, and the ceiling again.

use wb_agent::ExitReason;
use wb_net::ceiling::Ceiling;
use wb_peers::{Dialect, EndpointCommand};
use wb_test::{Attempt, Failure};

use super::ceiling::CeilingServer;
use super::cell::{CellLaunch, PeersCell};
use super::effort::SizeComparison;
use super::endpoint::{Dial, Listener, dial, listen_host};
use super::failure::FailureKind;
use super::output::EndpointOutput;
use super::params::ScenarioRun;
use super::study::ScenarioOutput;
use super::traffic::{InterfaceBytes, Traffic};
use super::{engine, suite};

pub(super) const LISTENER: &str = "listener";
/// Bytes of a listener's log, of which the end is kept.
const MAX_LOG: usize = 64 << 10;

pub(super) fn traffic_name(scenario: &str) -> String {
    format!("{scenario}.traffic.json")
}

pub(super) fn arrivals_name(dial: &str) -> String {
    format!("{dial}.arrivals.json")
}

pub(super) fn probe_name(scenario: &str) -> String {
    format!("{scenario}-probe")
}

/// Dialers of a sample in order, with the names of their artefacts.
pub(super) fn dials(cell: &PeersCell) -> Vec<(String, ScenarioRun)> {
    let mut all = Vec::new();
    for run in cell.scenario_runs() {
        let name = run.scenario.name().to_owned();
        all.extend(run.probe().map(|probe| (probe_name(&name), probe)));
        all.push((name, run));
    }
    all
}

pub(super) fn repeat_prefix(name: &str) -> String {
    format!("{name}-again-")
}

/// Rounds in which a transfer and its probe are repeated before their times make a sample invalid.
const ROUNDS: u32 = 5;

/// A scenario and its probe in one round, with equally many iterations and the names of their artefacts.
fn round(run: &ScenarioRun, probe: &ScenarioRun, round: u32) -> [(String, ScenarioRun); 2] {
    let full = ScenarioRun { iterations: probe.iterations, ..run.clone() };
    let name = run.scenario.name();
    let again = |name: &str| format!("{}{round}", repeat_prefix(name));
    [(again(name), full), (again(&probe_name(name)), probe.clone())]
}

/// All repetitions that a sample may have, with the names of their artefacts.
pub(super) fn repeats(cell: &PeersCell) -> Vec<(String, ScenarioRun)> {
    let of_run = |run: ScenarioRun| {
        let probe = run.probe();
        probe.into_iter().flat_map(move |probe| {
            (1..=ROUNDS).flat_map({
                let run = run.clone();
                move |position| round(&run, &probe, position)
            })
        })
    };
    cell.scenario_runs().into_iter().flat_map(of_run).collect()
}

pub(super) async fn take(cell: &PeersCell, attempt: &mut Attempt) -> Result<(), Failure> {
    let launch = match cell.launch().map_err(Failure::refused)? {
        CellLaunch::Engine => return engine::take(cell, attempt).await,
        CellLaunch::Processes(launch) if launch.dialect == Dialect::Weighbridge => launch,
        CellLaunch::Processes(launch) => return suite::take(cell, &launch, attempt).await,
    };
    let host = listen_host(&attempt.context, attempt.context.server(0))?;
    let (ceiling, first_ceiling) = CeilingServer::start(cell, &host, attempt).await?;
    let listener = Listener::start(cell, &launch.listener, &host, attempt.context.server(0)).await?;
    listener.record(attempt).await?;
    let result = run_dialers(cell, &launch.dialer, &listener, &first_ceiling, attempt).await;
    let expected = *result.as_ref().unwrap_or(&0);
    let log = listener.stop(expected, &attempt.context).await?;
    record_listener_output(log.stdout, &log.stderr, attempt);
    match (log.irregular_end, result) {
        (None, result) => drop(result?),
        (Some(_), Err(failure @ (Failure::Cancelled | Failure::Lost { .. }))) => return Err(failure),
        (Some(end), result) => {
            // The cause of whatever the dialer reports.
            let consequence = result.err().map(|failure| format!("; then {failure}")).unwrap_or_default();
            let hint = match (&launch.listener.container, end) {
                (Some(_), ExitReason::TimedOut { .. }) => {
                    ": it has to end at SIGTERM, which the first process of a container ignores without `--init`"
                }
                _ => "",
            };
            let what = format!("the listener of `{}` ended with {end}{hint}{consequence}", cell.listener);
            return Err(FailureKind::Crash.failure(what, &[]));
        }
    }
    ceiling.finish(attempt).await?;
    attempt.record_work(1);
    Ok(())
}

/// Records the output of a listener, of its log the end.
pub(super) fn record_listener_output(stdout: Vec<u8>, stderr: &[u8], attempt: &mut Attempt) {
    attempt.add_artefact(&format!("{LISTENER}.stdout"), stdout);
    attempt.add_artefact(&format!("{LISTENER}.stderr"), &stderr[stderr.len().saturating_sub(MAX_LOG)..]);
}

/// Runs the dialers of a sample; returns the number of streams.
async fn run_dialers(
    cell: &PeersCell,
    endpoint: &EndpointCommand,
    listener: &Listener,
    ceiling: &Ceiling,
    attempt: &mut Attempt,
) -> Result<usize, Failure> {
    let mut all = Vec::new();
    for (name, run) in dials(cell) {
        all.push(run_dialer(cell, endpoint, listener, (name, run), attempt).await?);
    }
    for run in cell.scenario_runs() {
        let Some(probe) = run.probe().filter(|_| SizeComparison::new(cell, &run, &all, ceiling).is_suspicious()) else {
            continue;
        };
        for position in 1..=ROUNDS {
            for repeated in round(&run, &probe, position) {
                all.push(run_dialer(cell, endpoint, listener, repeated, attempt).await?);
            }
        }
    }
    Ok(all.iter().map(|one| one.run.iterations as usize).sum())
}

async fn run_dialer(
    cell: &PeersCell,
    endpoint: &EndpointCommand,
    listener: &Listener,
    (name, run): (String, ScenarioRun),
    attempt: &mut Attempt,
) -> Result<ScenarioOutput, Failure> {
    let before = InterfaceBytes::read(&attempt.context).await?;
    let finished = dial(cell, endpoint, &Dial { name: &name, run: run.clone(), listener }, attempt).await?;
    let traffic = Traffic::since(before, attempt).await?;
    attempt.add_json(&traffic_name(&name), &traffic)?;
    attempt.add_json(&arrivals_name(&name), &finished.arrivals)?;
    let output = EndpointOutput::parse(&finished.stdout);
    Ok(ScenarioOutput::new(name, run, output, traffic, finished.elapsed().seconds(), &finished.arrivals))
}
