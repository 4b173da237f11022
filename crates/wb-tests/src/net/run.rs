//! One run: servers, the client, and what is kept of both.

use wb_agent::{Command, Ending, Finished};
use wb_model::Placement;
use wb_net::control::Token;
use wb_net::result::RunStatus;

use super::nodes::Nodes;
use super::server::{Server, TOKEN};
use super::values::printed;
use crate::attempt::check;
use crate::{Attempt, Failure};

/// Under this name the output of the client is kept: the result.
pub(super) const CLIENT: &str = "client";
/// What it is called when it fails.
const PROGRAM: &str = "weighbridge net";
/// Under this name response times are kept.
const RESPONSE_TIMES: &str = "response-times.txt";

/// What one run does.
#[derive(Debug)]
pub(crate) struct Workload {
    /// What follows `weighbridge net`.
    pub(crate) arguments: Vec<String>,
    /// The hosts that it names; each is a server of its own.
    pub(crate) hosts: Vec<String>,
    /// Where the sides run.
    pub(crate) nodes: Nodes,
    /// Whether every response time is kept.
    pub(crate) response_times: bool,
}

/// Starts the servers, runs the client with them, and sees that all of them end.
pub(crate) async fn run(workload: &Workload, attempt: &mut Attempt) -> Result<(), Failure> {
    let at_client = workload.nodes.client(&attempt.site.placement, &attempt.site.facts).map_err(Failure::refused)?;
    let token = Token::generate().map_err(|error| Failure::refused(error.to_string()))?;
    let mut servers = Vec::new();
    for number in 0..workload.hosts.len() {
        let site = attempt.site.server(number);
        let at_server = workload.nodes.server(&site.placement, &site.facts).map_err(Failure::refused)?;
        let is_here = site.worker().name() == attempt.site.worker().name();
        let server = Server::start(&at_server, &token, site, is_here).await?;
        server.keep(&format!("server-{number}"), attempt).await?;
        servers.push(server);
    }
    let ran = client(workload, &servers, at_client, &token, attempt).await;
    for (number, server) in servers.into_iter().enumerate() {
        // One that no client came to ends with the attempt.
        let log = if ran.is_ok() { server.end(&attempt.site).await? } else { server.log().await };
        attempt.keep(&format!("server-{number}.stderr"), log);
    }
    ran?;
    attempt.worked(1);
    Ok(())
}

async fn client(
    workload: &Workload,
    servers: &[Server],
    placement: Placement,
    token: &Token,
    attempt: &mut Attempt,
) -> Result<(), Failure> {
    let program = attempt.site.worker().program().to_owned();
    let mut argv = vec![program, "net".to_owned()];
    argv.extend(workload.arguments.iter().cloned());
    for (host, server) in workload.hosts.iter().zip(servers) {
        argv.extend(["--server".to_owned(), format!("{host}={}", server.address())]);
    }
    let response_times = attempt.site.path(RESPONSE_TIMES);
    if workload.response_times {
        argv.extend(["--raw".to_owned(), response_times.clone()]);
    }
    argv.push("--json".to_owned());
    let command = Command::new(argv).placement(placement.clone()).env(TOKEN, token.reveal());
    let finished = attempt.run_to_end(CLIENT, command, &placement).await?;
    judge(&finished)?;
    if workload.response_times {
        let times = attempt.site.get(&response_times).await?;
        attempt.keep(RESPONSE_TIMES, times);
    }
    Ok(())
}

/// Whether the run went to its end, or was cut: whether it was to be is asked when its values are read.
fn judge(finished: &Finished) -> Result<(), Failure> {
    if matches!(finished.ending, Ending::TimedOut { .. }) {
        return check(PROGRAM, finished);
    }
    let Ok(result) = printed(&finished.stdout) else {
        check(PROGRAM, finished)?;
        return Err(Failure::crashed(format!("{PROGRAM}: what it printed is no result")));
    };
    match result.outcome {
        RunStatus::Completed | RunStatus::Cut => Ok(()),
        RunStatus::Unsupported { why } => Err(Failure::refused(why)),
        RunStatus::Failed { why } | RunStatus::Lost { why } => Err(Failure::crashed(format!("{PROGRAM}: {why}"))),
        RunStatus::Interrupted => Err(Failure::crashed(format!("{PROGRAM}: somebody interrupted it"))),
    }
}
