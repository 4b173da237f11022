//! The redis through which endpoints of libp2p's suites find each other: a private server for one sample.

use wb_agent::Command;
use wb_agent::signal::SIGTERM;
use wb_model::Nanos;
use wb_test::port::{find_free_port, wait_for_listener};
use wb_test::{Failure, RunningService, WorkerContext};

use crate::failure::FailureKind;

/// Time limit for the server to listen, and to exit.
const LIMIT: Nanos = Nanos(30_000_000_000);

pub(super) struct Rendezvous {
    process: RunningService,
    host: String,
    port: u16,
}

impl Rendezvous {
    /// Starts a server on a free port of a worker. It listens on loopback, and on `host` if the dialer is elsewhere.
    pub(super) async fn start(host: &str, context: &WorkerContext) -> Result<Self, Failure> {
        let port = find_free_port(context).await?;
        let number = port.to_string();
        let mut argv = vec!["redis-server", "--port", &number, "--save", "", "--appendonly", "no", "--daemonize", "no"];
        argv.extend([
            "--logfile",
            "",
            "--protected-mode",
            "no",
            "--dir",
            context.group.folder(),
            "--bind",
            "127.0.0.1",
        ]);
        if host != "127.0.0.1" {
            argv.push(host);
        }
        let process = context.start_service(Command::new(argv)).await?;
        let server = Self { process, host: host.to_owned(), port };
        wait_for_listener(context, "redis-server", port, LIMIT).await?;
        Ok(server)
    }

    pub(super) fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    pub(super) async fn wait_for_key(
        &self,
        key: &str,
        limit: Nanos,
        listener: &RunningService,
        context: &WorkerContext,
    ) -> Result<(), Failure> {
        let port = self.port.to_string();
        let exists = || async {
            let query = Command::new(["redis-cli", "-p", &port, "EXISTS", key]);
            let reply = context.run(query).await.ok()?;
            (String::from_utf8_lossy(&reply).trim() == "1").then_some(())
        };
        let name = format!("key `{key}`");
        tokio::select! {
            ready = context.poll_until(&name, limit, exists) => ready.map_err(|failure| match failure {
                Failure::Crashed { .. } => {
                    FailureKind::Timeout.failure(format!("the listener announced no address within {limit}"), &[])
                }
                other => other,
            }),
            ended = listener.wait(None) => {
                let ended = ended?;
                let what = format!("the listener ended with {} before it announced its address", ended.exit_reason);
                Err(FailureKind::Crash.failure(what, &[("listener", &ended.stderr)]))
            }
            ended = self.process.wait(None) => Err(Self::failure(ended?.exit_reason)),
        }
    }

    /// Checks that it still runs: without it the sides cannot find each other.
    pub(super) async fn check(&self, context: &WorkerContext) -> Result<(), Failure> {
        let port = self.port.to_string();
        let ping = Command::new(["redis-cli", "-p", &port, "PING"]);
        if context.run_to_end(ping).await?.exit_reason.is_success() {
            Ok(())
        } else {
            let ended = self.process.wait(Some(LIMIT)).await?;
            Err(Self::failure(ended.exit_reason))
        }
    }

    fn failure(reason: wb_agent::ExitReason) -> Failure {
        FailureKind::Crash.failure(format!("the redis of the endpoints ended with {reason}"), &[])
    }

    pub(super) async fn stop(self) -> Result<(), Failure> {
        self.process.signal(SIGTERM).await?;
        self.process.wait(Some(LIMIT)).await?;
        Ok(())
    }
}
