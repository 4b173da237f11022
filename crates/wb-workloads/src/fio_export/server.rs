//! The server of an export, its target, and its socket in a private folder.

use wb_agent::signal::SIGTERM;
use wb_agent::{Command, OutputStream, Scratch};
use wb_model::Nanos;
use wb_test::{Attempt, Failure, RunningService, WorkerContext};

use super::ExportTest;
use crate::fio::targets::{FioTarget, prepare_target};

/// Time limit for a server to start, and to stop.
const SERVER_TIMEOUT: Nanos = Nanos(10_000_000_000);

#[derive(Debug)]
pub struct ExportPaths<'a> {
    pub target: &'a str,
    pub is_device: bool,
    pub socket: &'a str,
    /// The server may write it once it is ready.
    pub ready: &'a str,
}

#[derive(Debug)]
pub struct ServerCommand {
    pub argv: Vec<String>,
    /// A command that succeeds once the server is ready.
    pub probe: Vec<String>,
}

#[derive(Debug)]
pub(super) struct RunningExport {
    pub socket: String,
    pub target: FioTarget,
    folder: Scratch,
    server: RunningService,
}

impl RunningExport {
    pub(super) async fn start<T: ExportTest>(context: &WorkerContext, params: &T::Params) -> Result<Self, Failure> {
        let job = T::job(params, "");
        let target = prepare_target(context, &job, T::target(params), T::allow_destroy(params)).await?;
        let folder = context.worker().new_scratch(None).await?;
        let (socket, ready) = (folder.join("export.sock"), folder.join("ready"));
        let paths = ExportPaths { target: &target.path, is_device: target.is_device(), socket: &socket, ready: &ready };
        let ServerCommand { argv, probe } = T::server(params, &paths);
        let program = argv.first().cloned().unwrap_or_default();
        let server = context.start_service(context.command(argv)).await?;
        let export = Self { socket, target, folder, server };
        export.wait_until_ready(context, &program, &probe).await?;
        Ok(export)
    }

    /// Waits until the probe succeeds; fails if the server ends first.
    async fn wait_until_ready(&self, context: &WorkerContext, program: &str, probe: &[String]) -> Result<(), Failure> {
        let succeeds = || async move {
            let probed = context.run_to_end(Command::new(probe.iter().cloned())).await.ok()?;
            probed.exit_reason.is_success().then_some(())
        };
        let failure = tokio::select! {
            ready = context.poll_until(program, SERVER_TIMEOUT, succeeds) => match ready {
                Ok(()) => return Ok(()),
                Err(failure) => failure,
            },
            ended = self.server.wait(None) => {
                let ending = ended?.exit_reason;
                Failure::crashed(format!("{program}: {ending} before it was ready"))
            }
        };
        let stderr = self.server.read_output(OutputStream::Stderr).await?;
        match (failure, String::from_utf8_lossy(&stderr).trim()) {
            (Failure::Crashed { status }, stderr) if !stderr.is_empty() => {
                Err(Failure::crashed(format!("{status}: {stderr}")))
            }
            (failure, _) => Err(failure),
        }
    }

    pub(super) async fn record(&self, attempt: &mut Attempt) -> Result<(), Failure> {
        attempt.record_service("server", &self.server).await
    }

    /// Stops the server, and removes the socket, and the target if it is a scratch file.
    pub(super) async fn stop(self) -> Result<(), Failure> {
        self.server.signal(SIGTERM).await?;
        self.server.wait(Some(SERVER_TIMEOUT)).await?;
        self.target.remove().await?;
        self.folder.close().await.map_err(Failure::from)
    }
}
