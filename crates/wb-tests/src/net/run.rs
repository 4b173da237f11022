//! One run: servers, the client, and what is kept of both.

use wb_agent::{Command, ExitReason, ProcessOutput};
use wb_model::Placement;
use wb_net::control::Token;
use wb_net::result::RunStatus;

use super::nodes::SideNodes;
use super::server::{NetServer, TOKEN_VARIABLE};
use super::values::parse_result;
use crate::attempt::check_success;
use crate::{Attempt, Failure};

/// Under this name the output of the client is kept: the result.
pub(super) const CLIENT_NAME: &str = "client";
/// What it is called when it fails.
const PROGRAM: &str = "weighbridge net";
/// Under this name response times are kept.
const RESPONSE_TIMES: &str = "response-times.txt";

/// What one run does.
#[derive(Debug)]
pub(crate) struct NetWorkload {
    /// What follows `weighbridge net`.
    pub(crate) arguments: Vec<String>,
    /// The hosts that it names; each is a server of its own.
    pub(crate) hosts: Vec<String>,
    /// Where the sides run.
    pub(crate) nodes: SideNodes,
    /// Whether every response time is kept.
    pub(crate) response_times: bool,
}

/// Starts the servers, runs the client with them, and sees that all of them end.
pub(crate) async fn run(workload: &NetWorkload, attempt: &mut Attempt) -> Result<(), Failure> {
    let at_client =
        workload.nodes.client(&attempt.context.placement, &attempt.context.facts).map_err(Failure::refused)?;
    let token = Token::generate().map_err(|error| Failure::refused(error.to_string()))?;
    let mut servers = Vec::new();
    for number in 0..workload.hosts.len() {
        let site = attempt.context.server(number);
        let at_server = workload.nodes.server(&site.placement, &site.facts).map_err(Failure::refused)?;
        let is_here = site.worker().name() == attempt.context.worker().name();
        let server = NetServer::start(&at_server, &token, site, is_here).await?;
        server.record(&format!("server-{number}"), attempt).await?;
        servers.push(server);
    }
    let ran = run_client(workload, &servers, at_client, &token, attempt).await;
    for (number, server) in servers.into_iter().enumerate() {
        // One that no client came to ends with the attempt.
        let log = if ran.is_ok() { server.wait_for_exit(&attempt.context).await? } else { server.log().await };
        attempt.add_artefact(&format!("server-{number}.stderr"), log);
    }
    ran?;
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

/// Whether the run went to its end, or was cut: whether it was to be is asked when its values are read.
fn check_result(finished: &ProcessOutput) -> Result<(), Failure> {
    if matches!(finished.ending, ExitReason::TimedOut { .. }) {
        return check_success(PROGRAM, finished);
    }
    let Ok(result) = parse_result(&finished.stdout) else {
        check_success(PROGRAM, finished)?;
        return Err(Failure::crashed(format!("{PROGRAM}: what it printed is no result")));
    };
    match result.outcome {
        RunStatus::Completed | RunStatus::Truncated => Ok(()),
        RunStatus::Unsupported { reason: why } => Err(Failure::refused(why)),
        RunStatus::Failed { reason: why } | RunStatus::Lost { reason: why } => {
            Err(Failure::crashed(format!("{PROGRAM}: {why}")))
        }
        RunStatus::Interrupted => Err(Failure::crashed(format!("{PROGRAM}: somebody interrupted it"))),
    }
}
