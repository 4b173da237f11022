//! A sample: the ceiling of the path, a listener with the dialers of each scenario, and the ceiling again.

use wb_agent::ExitReason;
use wb_peers::{Dialect, EndpointCommand};

use super::ceiling::CeilingServer;
use super::cell::{CellLaunch, PeersCell};
use super::endpoint::{Dial, Listener, dial, listen_host};
use super::failure::FailureKind;
use super::params::ScenarioRun;
use super::traffic::{InterfaceBytes, Traffic};
use super::{engine, suite};
use crate::{Attempt, Failure};

/// Artefact name of the listener's output.
pub(super) const LISTENER: &str = "listener";
/// Largest recorded log of a listener, of which the end is kept.
const MAX_LOG: usize = 64 << 10;

/// Artefact name of a scenario's traffic.
pub(super) fn traffic_name(scenario: &str) -> String {
    format!("{scenario}.traffic.json")
}

/// Artefact name of a scenario's probe.
pub(super) fn probe_name(scenario: &str) -> String {
    format!("{scenario}-probe")
}

/// The dialers of a sample, in order, with the names of their artefacts.
pub(super) fn dials(cell: &PeersCell) -> Vec<(String, ScenarioRun)> {
    let mut all = Vec::new();
    for run in cell.scenario_runs() {
        let name = run.scenario.name().to_owned();
        all.extend(run.probe().map(|probe| (probe_name(&name), probe)));
        all.push((name, run));
    }
    all
}

/// Takes a sample of a cell.
pub(super) async fn take(cell: &PeersCell, attempt: &mut Attempt) -> Result<(), Failure> {
    let launch = match cell.launch().map_err(Failure::refused)? {
        CellLaunch::Engine => return engine::take(cell, attempt).await,
        CellLaunch::Processes(launch) if launch.dialect == Dialect::Weighbridge => launch,
        CellLaunch::Processes(launch) => return suite::take(cell, &launch, attempt).await,
    };
    let host = listen_host(&attempt.context, attempt.context.server(0))?;
    let ceiling = CeilingServer::start(cell, &host, attempt).await?;
    let listener = Listener::start(cell, &launch.listener, &host, attempt.context.server(0)).await?;
    listener.record(attempt).await?;
    let result = run_dialers(cell, &launch.dialer, &listener, attempt).await;
    let streams = dials(cell).iter().map(|(_, run)| run.iterations as usize).sum();
    let expected = if result.is_ok() { streams } else { 0 };
    let log = listener.stop(expected, &attempt.context).await?;
    record_listener_output(log.stdout, &log.stderr, attempt);
    match (log.irregular_end, result) {
        (None, result) => result?,
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

async fn run_dialers(
    cell: &PeersCell,
    endpoint: &EndpointCommand,
    listener: &Listener,
    attempt: &mut Attempt,
) -> Result<(), Failure> {
    for (name, run) in dials(cell) {
        let before = InterfaceBytes::read(&attempt.context).await?;
        dial(cell, endpoint, &Dial { name: &name, run, listener }, attempt).await?;
        let after = InterfaceBytes::read(&attempt.context).await?;
        let json = serde_json::to_vec(&Traffic { before, after });
        attempt.add_artefact(&traffic_name(&name), json.map_err(|error| Failure::refused(error.to_string()))?);
    }
    Ok(())
}
