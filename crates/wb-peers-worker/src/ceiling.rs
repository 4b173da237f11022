//! The ceiling of a sample: what one TCP connection does between the same CPUs, before and after the endpoints.

use wb_agent::signal::SIGKILL;
use wb_agent::{Command, OutputStream};
use wb_model::{Nanos, Placement};
use wb_net::ceiling::{Ceiling, TOKEN_VARIABLE};
use wb_net::control::Token;
use wb_test::{Attempt, Failure, RunningService};

use super::cell::{PeersCell, Side};
use super::endpoint::placement;

pub(super) const CEILINGS: [&str; 2] = ["ceiling-before", "ceiling-after"];
/// Time limit for the server to listen, and to end.
const LIMIT: Nanos = Nanos(10_000_000_000);

/// The server of the ceiling, which waits for connections until the end of a sample. After a failure it ends with the
/// processes of the attempt.
pub(super) struct CeilingServer {
    server: RunningService,
    address: String,
    token: Token,
    client_placement: Placement,
}

impl CeilingServer {
    /// Starts the server, and measures for the first time.
    pub(super) async fn start(cell: &PeersCell, host: &str, attempt: &mut Attempt) -> Result<(Self, Ceiling), Failure> {
        let token = Token::generate().map_err(|error| Failure::refused(error.to_string()))?;
        let context = attempt.context.server(0);
        let server_placement = placement(Side::Listener, cell, &context.placement, &context.facts);
        let program = context.worker().program();
        let server =
            context.start_service(command([program, "exec", "ceiling-server", host], &token, &server_placement));
        let server = server.await?;
        let listening = server.wait_for_line(OutputStream::Stdout, LIMIT, |line| !line.is_empty());
        let address = context.until_cancelled(listening).await??;
        let address = address.ok_or_else(|| Failure::crashed("the server of the ceiling does not listen"))?;
        let client_placement = placement(Side::Dialer, cell, &attempt.context.placement, &attempt.context.facts);
        let ceiling = Self { server, address, token, client_placement };
        let first = ceiling.measure(CEILINGS[0], attempt).await?;
        Ok((ceiling, first))
    }

    pub(super) async fn finish(self, attempt: &mut Attempt) -> Result<(), Failure> {
        self.measure(CEILINGS[1], attempt).await?;
        // It serves until it is ended, and has nothing to report.
        self.server.signal(SIGKILL).await?;
        self.server.wait(Some(LIMIT)).await?;
        Ok(())
    }

    async fn measure(&self, name: &str, attempt: &mut Attempt) -> Result<Ceiling, Failure> {
        let config = serde_json::to_string(&self.address).map_err(|error| Failure::refused(error.to_string()))?;
        let program = attempt.context.worker().program().to_owned();
        let client = command([&program, "exec", "ceiling-client", &config], &self.token, &self.client_placement);
        let measured = attempt.run(name, client).await?;
        serde_json::from_slice(&measured.stdout)
            .map_err(|error| Failure::crashed(format!("the client of the ceiling printed no result: {error}")))
    }
}

fn command(argv: [&str; 4], token: &Token, placement: &Placement) -> Command {
    Command::new(argv).placement(placement.clone()).env(TOKEN_VARIABLE, token.reveal())
}
