//! A fresh image and the server that exports it, in a private folder.

use wb_agent::{Command, Scratch, Stream};
use wb_model::Nanos;

use crate::attempt::lost;
use crate::fio::job::Job;
use crate::fio::targets::lay_out;
use crate::{Attempt, Failure, Service, Site};

/// An image that is served.
#[derive(Debug)]
pub(super) struct Export {
    /// Where.
    pub uri: String,
    folder: Scratch,
    server: Service,
}

impl Export {
    /// Makes an image, written whole, and serves it to as many connections as there are jobs and one more.
    pub(super) async fn start(site: &Site, job: &Job) -> Result<Self, Failure> {
        let folder = site.worker().scratch(None).await.map_err(lost)?;
        let (image, socket) = (folder.join("disk.img"), folder.join("nbd.sock"));
        let size = job.file_size.0.to_string();
        site.succeed(Command::new(["qemu-img", "create", "-q", "-f", "raw", &image, &size])).await?;
        lay_out(site, job, &image, job.file_size).await?;
        let shared = format!("--shared={}", job.numjobs.saturating_add(1));
        let socket_is = format!("--socket={socket}");
        let argv = ["qemu-nbd", "--persistent", &shared, "--format=raw", &socket_is, &image];
        let server = site.serve(site.command(argv)).await?;
        let export = Self { uri: format!("nbd+unix:///?socket={socket}"), folder, server };
        export.answers(site).await?;
        Ok(export)
    }

    /// Waits until the server has answered.
    async fn answers(&self, site: &Site) -> Result<(), Failure> {
        const PATIENCE: Nanos = Nanos(10_000_000_000);
        let uri = &self.uri;
        let asked = site.wait_until("qemu-nbd", PATIENCE, || async move {
            let info = Command::new(["qemu-img", "info", "--format=raw", uri]);
            site.finish(info).await.ok().filter(|finished| finished.ending.is_success()).map(|_| ())
        });
        let Err(failure) = asked.await else { return Ok(()) };
        let said = self.server.so_far(Stream::Stderr).await.map_err(lost)?;
        match (failure, String::from_utf8_lossy(&said).trim()) {
            (Failure::Crashed { status }, said) if !said.is_empty() => {
                Err(Failure::crashed(format!("{status}: {said}")))
            }
            (failure, _) => Err(failure),
        }
    }

    /// Keeps where and how the server runs.
    pub(super) async fn keep(&self, attempt: &mut Attempt) -> Result<(), Failure> {
        attempt.keep_service("server", &self.server).await
    }

    /// Ends the server and removes the image.
    pub(super) async fn end(self) -> Result<(), Failure> {
        const SIGTERM: i32 = 15;
        const PATIENCE: Nanos = Nanos(10_000_000_000);
        self.server.signal(SIGTERM).await.map_err(lost)?;
        self.server.wait(Some(PATIENCE)).await.map_err(lost)?;
        self.folder.close().await.map_err(lost)
    }
}
