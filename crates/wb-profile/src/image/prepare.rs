//! Prepares images on hosts.

use wb_agent::{ExitReason, Worker, WorkerError};
use wb_model::{Nanos, WorkerName};

use super::request::{ImageProgress, ImageRequest, send_request};
use super::{BaseImage, ImageFailure, ImageSpec};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageOptions {
    /// Overrides the host's default cache folder.
    pub cache: Option<String>,
    /// How long a download may stall before it fails.
    pub stall: Nanos,
}

impl Default for ImageOptions {
    fn default() -> Self {
        Self { cache: None, stall: Nanos(60_000_000_000) }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    #[error(transparent)]
    Worker(#[from] WorkerError),
    #[error("on `{worker}`: {failure}")]
    Failed { worker: WorkerName, failure: ImageFailure },
    #[error("on `{worker}`: the process that prepares images ended with {ending}{}{stderr}", if .stderr.is_empty() { "" } else { ": " })]
    Exited { worker: WorkerName, ending: ExitReason, stderr: String },
    #[error("on `{worker}`: invalid reply from the process that prepares images: {reason}")]
    InvalidReply { worker: WorkerName, reason: String },
}

impl ImageError {
    pub fn help(&self) -> Option<String> {
        let Self::Failed { failure, .. } = self else { return None };
        let help = match failure {
            ImageFailure::ToolNotFound { package, .. } => {
                format!("install it on the host: `apt install {package}`, or your distribution's equivalent")
            }
            ImageFailure::HostUnknown { .. } | ImageFailure::Unreachable { .. } => {
                "the host downloads directly and needs network access, or `https_proxy` in its environment; or name a file on \
                 the host"
                    .to_owned()
            }
            ImageFailure::Status { status: 404 | 410, .. } => {
                "the image was moved or removed: name another one, or give a URL and SHA-256".to_owned()
            }
            ImageFailure::Stalled { .. } => "repeat the command to resume the download".to_owned(),
            ImageFailure::NoSpace { .. } => {
                "`weighbridge clean` lists the cached files; WEIGHBRIDGE_CACHE sets another folder".to_owned()
            }
            ImageFailure::UntrustedStore { .. } => {
                "give that path to root (`chown`) and to nobody else (`chmod go-w`); WEIGHBRIDGE_CACHE sets another folder"
                    .to_owned()
            }
            ImageFailure::NotListed { .. } | ImageFailure::Hash { .. } => {
                "the image may be being replaced right now: try again later".to_owned()
            }
            _ => return None,
        };
        Some(help)
    }
}

/// Prepares an image on a worker's host, from its cache if complete, otherwise by fetching or building it. `report` is
/// called with the progress about once a second. After a failure the cache has at most a partial download that can be
/// resumed.
pub async fn prepare(
    worker: &Worker,
    image: &ImageSpec,
    options: &ImageOptions,
    report: &(dyn Fn(&ImageProgress) + Sync),
) -> Result<BaseImage, ImageError> {
    let request = ImageRequest::Prepare { image: image.clone(), stall: options.stall };
    send_request(worker, &request, options.cache.as_deref(), report).await
}

/// Checks that an image is available on a worker's host, without fetching or building it.
pub async fn check(worker: &Worker, image: &ImageSpec, options: &ImageOptions) -> Result<(), ImageError> {
    let request = ImageRequest::Check { image: image.clone(), stall: options.stall };
    send_request(worker, &request, options.cache.as_deref(), &|_: &ImageProgress| {}).await
}
