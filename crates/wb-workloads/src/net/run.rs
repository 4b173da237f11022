//! One run: starts the servers, runs the client, and records the output of both.

use wb_agent::{Command, ExitReason, ProcessOutput};
use wb_model::Placement;
use wb_net::control::Token;
use wb_results::net::RunStatus;
use wb_test::attempt::check_success;
use wb_test::{Attempt, Failure, WorkerContext};

use super::nodes::{SideNodes, place_on_node};
use super::output::{CLIENT_NAME, parse_result};
use super::server::{NetServer, TOKEN_VARIABLE};

const PROGRAM: &str = "weighbridge net";
const RESPONSE_TIMES: &str = "response-times.txt";

#[derive(Debug)]
pub struct NetWorkload {
    pub arguments: Vec<String>,
    /// Each has its own server.
    pub hosts: Vec<String>,
    /// Whether every response time is recorded.
    pub response_times: bool,
}

pub async fn run(workload: &NetWorkload, nodes: SideNodes, attempt: &mut Attempt) -> Result<(), Failure> {
    let place = |node, context: &WorkerContext| {
        place_on_node(node, &context.placement, &context.facts).map_err(Failure::refused)
    };
    let client = place(nodes.client, &attempt.context)?;
    let server = |number| place(nodes.server, attempt.context.server(number));
    let servers = (0..workload.hosts.len()).map(server).collect::<Result<Vec<_>, _>>()?;
    run_placed(workload, client, &servers, attempt).await
}

/// Starts a server with each of these placements, runs the client, and waits until all servers have exited.
pub async fn run_placed(
    workload: &NetWorkload,
    client: Placement,
    server_placements: &[Placement],
    attempt: &mut Attempt,
) -> Result<(), Failure> {
    let token = Token::generate().map_err(|error| Failure::refused(error.to_string()))?;
    let mut servers = Vec::new();
    for (number, placement) in server_placements.iter().enumerate() {
        let context = attempt.context.server(number);
        let is_local = context.worker().name() == attempt.context.worker().name();
        let server = NetServer::start(placement, &token, context, is_local).await?;
        server.record(&format!("server-{number}"), attempt).await?;
        servers.push(server);
    }
    let result = run_client(workload, &servers, client, &token, attempt).await;
    for (number, server) in servers.into_iter().enumerate() {
        // A server without a client is ended with the attempt.
        let log = if result.is_ok() { server.wait_for_exit(&attempt.context).await? } else { server.log().await };
        attempt.add_artefact(&format!("server-{number}.stderr"), log);
    }
    result?;
    attempt.record_work(1);
    Ok(())
}

async fn run_client(
    workload: &NetWorkload,
    servers: &[NetServer],
    placement: Placement,
    token: &Token,
    attempt: &mut Attempt,
) -> Result<(), Failure> {
    let program = attempt.context.worker().program().to_owned();
    let mut argv = vec![program, "net".to_owned()];
    argv.extend(workload.arguments.iter().cloned());
    for (host, server) in workload.hosts.iter().zip(servers) {
        argv.extend(["--server".to_owned(), format!("{host}={}", server.address())]);
    }
    let response_times = attempt.context.path(RESPONSE_TIMES);
    if workload.response_times {
        argv.extend(["--raw".to_owned(), response_times.clone()]);
    }
    argv.push("--json".to_owned());
    let command = Command::new(argv).placement(placement.clone()).env(TOKEN_VARIABLE, token.reveal());
    let finished = attempt.run_to_end(CLIENT_NAME, command, &placement).await?;
    check_result(&finished)?;
    if workload.response_times {
        let times = attempt.context.get(&response_times).await?;
        attempt.add_artefact(RESPONSE_TIMES, times);
    }
    Ok(())
}

/// Checks that the run completed or was cut short; whether it may be cut short is checked when it is evaluated.
fn check_result(finished: &ProcessOutput) -> Result<(), Failure> {
    if matches!(finished.exit_reason, ExitReason::TimedOut { .. }) {
        return check_success(PROGRAM, finished);
    }
    let Ok(result) = parse_result(&finished.stdout) else {
        check_success(PROGRAM, finished)?;
        return Err(Failure::crashed(format!("{PROGRAM}: invalid result in its output")));
    };
    match result.outcome {
        RunStatus::Completed | RunStatus::Truncated => Ok(()),
        RunStatus::Unsupported { reason } => Err(Failure::refused(reason)),
        RunStatus::Failed { reason } | RunStatus::Lost { reason } => {
            Err(Failure::crashed(format!("{PROGRAM}: {reason}")))
        }
        RunStatus::Interrupted => Err(Failure::crashed(format!("{PROGRAM}: interrupted"))),
    }
}
