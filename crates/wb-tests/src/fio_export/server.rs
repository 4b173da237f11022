//! The server of an export, its target, and its socket in a private folder.

use wb_agent::{Command, Scratch, Stream};
use wb_model::Nanos;

use super::ExportTest;
use crate::attempt::lost;
use crate::fio::targets::{Target, make_one_ready};
use crate::{Attempt, Failure, Service, Site};

/// Longest time that a server has to start, and to end.
const PATIENCE: Nanos = Nanos(10_000_000_000);

/// What a server is to export, and where.
#[derive(Debug)]
pub struct Paths<'a> {
    /// The file or device.
    pub target: &'a str,
    /// Whether that is a block device.
    pub is_device: bool,
    /// The socket.
    pub socket: &'a str,
    /// A file that the server may write once it is ready.
    pub ready: &'a str,
}

/// How a server is started.
#[derive(Debug)]
pub struct Server {
    /// Its command line.
    pub argv: Vec<String>,
    /// A command that succeeds once it is ready.
    pub probe: Vec<String>,
}

/// A target that is exported by a running server.
#[derive(Debug)]
pub(super) struct Export {
    /// The socket that fio connects to.
    pub socket: String,
    /// What is exported.
    pub target: Target,
    folder: Scratch,
    server: Service,
}

impl Export {
    /// Prepares the target and starts the server.
    pub(super) async fn start<T: ExportTest>(site: &Site, params: &T::Params) -> Result<Self, Failure> {
        let job = T::job(params, "");
        let target = make_one_ready(site, &job, T::target(params), T::allow_destroy(params)).await?;
        let folder = site.worker().scratch(None).await.map_err(lost)?;
        let (socket, ready) = (folder.join("export.sock"), folder.join("ready"));
        let paths = Paths { target: &target.path, is_device: target.is_device(), socket: &socket, ready: &ready };
        let Server { argv, probe } = T::server(params, &paths);
        let program = argv.first().cloned().unwrap_or_default();
        let server = site.serve(site.command(argv)).await?;
        let export = Self { socket, target, folder, server };
        export.wait_until_ready(site, &program, &probe).await?;
        Ok(export)
    }

    /// Waits until the probe succeeds, or the server has ended.
    async fn wait_until_ready(&self, site: &Site, program: &str, probe: &[String]) -> Result<(), Failure> {
        let succeeds = || async move {
            let probed = site.finish(Command::new(probe.iter().cloned())).await.ok()?;
            probed.ending.is_success().then_some(())
        };
        let failure = tokio::select! {
            ready = site.wait_until(program, PATIENCE, succeeds) => match ready {
                Ok(()) => return Ok(()),
                Err(failure) => failure,
            },
            ended = self.server.wait(None) => {
                let ending = ended.map_err(lost)?.ending;
                Failure::crashed(format!("{program}: {ending} before it was ready"))
            }
        };
        let stderr = self.server.so_far(Stream::Stderr).await.map_err(lost)?;
        match (failure, String::from_utf8_lossy(&stderr).trim()) {
            (Failure::Crashed { status }, stderr) if !stderr.is_empty() => {
                Err(Failure::crashed(format!("{status}: {stderr}")))
            }
            (failure, _) => Err(failure),
        }
    }

    /// Records how the server runs.
    pub(super) async fn keep(&self, attempt: &mut Attempt) -> Result<(), Failure> {
        attempt.keep_service("server", &self.server).await
    }

    /// Ends the server and removes the socket, and the target where it is a private file.
    pub(super) async fn end(self) -> Result<(), Failure> {
        const SIGTERM: i32 = 15;
        self.server.signal(SIGTERM).await.map_err(lost)?;
        self.server.wait(Some(PATIENCE)).await.map_err(lost)?;
        self.target.remove().await?;
        self.folder.close().await.map_err(lost)
    }
}
