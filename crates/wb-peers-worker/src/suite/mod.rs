//! Endpoints of libp2p's performance suites: environment variables, an address in a redis, statistics in YAML.

mod rendezvous;
mod study;

use wb_agent::ExitReason;
use wb_agent::signal::SIGTERM;
use wb_model::Sha256;
use wb_peers::{Dialect, EndpointCommand};

use super::ceiling::CeilingServer;
use super::cell::{PeersCell, ProcessLaunch, Side};
use super::endpoint::{EXIT_LIMIT, EndpointProcess, is_regular_end, listen_host, placement};
use super::failure::FailureKind;
use super::sample::{LISTENER, record_listener_output, traffic_name};
use super::traffic::{InterfaceBytes, Traffic};
use rendezvous::Rendezvous;
use wb_test::{Attempt, Failure};

pub(super) use study::{BYTES_PER_GIGABIT, study};

pub(super) const SUITE_PROCESS: &str = "suite";
const ADDRESS_KEY: &str = "listener_multiaddr";
/// Seconds that the suites pass to their programs, which transfer fixed bytes.
const SUITE_DURATION: &str = "20";
const KEY_DIGITS: usize = 8;

/// Distinguishes the keys of a cell in the redis: the first digits of the SHA-256 of its name and a newline.
fn test_key(cell: &PeersCell) -> String {
    Sha256::digest(format!("{}\n", cell.name).as_bytes()).to_string().chars().take(KEY_DIGITS).collect()
}

fn address_key(dialect: Dialect, cell: &PeersCell) -> String {
    match dialect {
        Dialect::UnifiedTesting => format!("{}_{ADDRESS_KEY}", test_key(cell)),
        Dialect::Weighbridge | Dialect::TestPlans | Dialect::Engine => ADDRESS_KEY.to_owned(),
    }
}

fn common_variables(cell: &PeersCell, redis: &str, is_dialer: bool) -> Vec<(&'static str, String)> {
    let mut variables = vec![
        ("IS_DIALER", is_dialer.to_string()),
        ("REDIS_ADDR", redis.to_owned()),
        ("TEST_KEY", test_key(cell)),
        ("DEBUG", "false".to_owned()),
    ];
    let axes = [("transport", "TRANSPORT"), ("security", "SECURE_CHANNEL"), ("muxer", "MUXER")];
    let of_axes = axes.into_iter().filter_map(|(axis, variable)| Some((variable, cell.values.get(axis)?.clone())));
    variables.extend(of_axes);
    variables
}

fn dialer_variables(cell: &PeersCell) -> Vec<(&'static str, String)> {
    let params = &cell.params;
    vec![
        ("UPLOAD_BYTES", params.upload_bytes.0.to_string()),
        ("DOWNLOAD_BYTES", params.download_bytes.0.to_string()),
        ("UPLOAD_ITERATIONS", params.iterations.to_string()),
        ("DOWNLOAD_ITERATIONS", params.iterations.to_string()),
        ("LATENCY_ITERATIONS", params.latency_iterations.to_string()),
        ("DURATION", SUITE_DURATION.to_owned()),
    ]
}

/// Takes a sample: one process of the dialer does all scenarios.
pub(super) async fn take(cell: &PeersCell, launch: &ProcessLaunch, attempt: &mut Attempt) -> Result<(), Failure> {
    let ProcessLaunch { dialect, dialer, listener } = launch;
    let host = listen_host(&attempt.context, attempt.context.server(0))?;
    let (ceiling, _) = CeilingServer::start(cell, &host, attempt).await?;
    let context = attempt.context.server(0);
    let redis = Rendezvous::start(&host, context).await?;
    let mut variables = common_variables(cell, &redis.address(), false);
    variables.push(("LISTENER_IP", host.clone()));
    let (name, values) = (LISTENER, Vec::new());
    let process = EndpointProcess { cell, side: Side::Listener, endpoint: listener, name, values, variables };
    let start = process.start_command(context).await?;
    let process = context.start_service(start.command.clone()).await?;
    redis.wait_for_key(&address_key(*dialect, cell), cell.params.ready_limit, &process, context).await?;
    start.record(LISTENER, attempt)?;
    attempt.record_service(LISTENER, &process).await?;
    let result = run_dialer(cell, dialer, &redis, attempt).await;
    process.signal(SIGTERM).await?;
    let ended = process.wait(Some(EXIT_LIMIT)).await?;
    record_listener_output(ended.stdout, &ended.stderr, attempt);
    result?;
    redis.stop().await?;
    ceiling.finish(attempt).await?;
    attempt.record_work(1);
    Ok(())
}

async fn run_dialer(
    cell: &PeersCell,
    endpoint: &EndpointCommand,
    redis: &Rendezvous,
    attempt: &mut Attempt,
) -> Result<(), Failure> {
    let mut variables = common_variables(cell, &redis.address(), true);
    variables.extend(dialer_variables(cell));
    let placement = placement(Side::Dialer, cell, &attempt.context.placement, &attempt.context.facts);
    let (name, values) = (SUITE_PROCESS, Vec::new());
    let process = EndpointProcess { cell, side: Side::Dialer, endpoint, name, values, variables };
    let command = process.start_command(&attempt.context).await?.record(SUITE_PROCESS, attempt)?;
    let before = InterfaceBytes::read(&attempt.context).await?;
    let finished = attempt.run_to_end(SUITE_PROCESS, command, &placement).await?;
    attempt.add_json(&traffic_name(SUITE_PROCESS), &Traffic::since(before, attempt).await?)?;
    match finished.exit_reason {
        reason if is_regular_end(reason) => {
            if !reason.is_success() {
                attempt.add_finding(format!("the dialer of `{}` ended with {reason}", cell.dialer));
            }
            Ok(())
        }
        reason => {
            // Without its redis a dialer fails in ways of its own.
            redis.check(attempt.context.server(0)).await?;
            let kind = match reason {
                ExitReason::TimedOut { .. } => FailureKind::Timeout,
                _ => FailureKind::Crash,
            };
            Err(kind.failure(format!("the dialer of `{}`: {reason}", cell.dialer), &[("dialer", &finished.stderr)]))
        }
    }
}
