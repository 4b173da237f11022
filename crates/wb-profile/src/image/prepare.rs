//! From what is asked for to what lies on a host.

use wb_agent::{ExitReason, Worker, WorkerError};
use wb_model::{Nanos, WorkerName};

use super::request::{ImageProgress, ImageRequest, send_request};
use super::{BaseImage, ImageFailure, ImageSpec};

/// How an image is had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageOptions {
    /// Another folder on the host than its usual cache.
    pub cache: Option<String>,
    /// How long a server may send next to nothing before it is given up.
    pub stall: Nanos,
}

impl Default for ImageOptions {
    fn default() -> Self {
        Self { cache: None, stall: Nanos(60_000_000_000) }
    }
}

/// Why an image is not on a host.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The host.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// It could not be had there.
    #[error("on `{worker}`: {failure}")]
    Failed {
        /// The host.
        worker: WorkerName,
        /// Why.
        failure: ImageFailure,
    },
    /// What should have made it ended without a word.
    #[error("on `{worker}`: the process that works on images ended with {ending}{}{said}", if .said.is_empty() { "" } else { ": " })]
    Exited {
        /// The host.
        worker: WorkerName,
        /// How.
        ending: ExitReason,
        /// What it wrote of errors.
        said: String,
    },
    /// An answer that nobody understands.
    #[error("on `{worker}`: the process that works on images told nonsense: {why}")]
    InvalidReply {
        /// The host.
        worker: WorkerName,
        /// What is wrong with it.
        why: String,
    },
}

impl ImageError {
    /// What there is to be done, where it can be told.
    pub fn help(&self) -> Option<String> {
        let Self::Failed { failure, .. } = self else { return None };
        let help = match failure {
            ImageFailure::ToolNotFound { package, .. } => {
                format!("install it there: `apt install {package}`, or what your distribution calls it")
            }
            ImageFailure::HostUnknown { .. } | ImageFailure::Unreachable { .. } => {
                "the host fetches by itself: it takes a way out, or `https_proxy` in its environment; or name a file that \
                 lies there"
                    .to_owned()
            }
            ImageFailure::Status { status: 404 | 410, .. } => {
                "it was moved or removed: name another image, or one by its URL and SHA-256".to_owned()
            }
            ImageFailure::Stalled { .. } => "the same again goes on where it stopped".to_owned(),
            ImageFailure::NoSpace { .. } => {
                "`weighbridge clean` shows what lies there; WEIGHBRIDGE_CACHE names another folder".to_owned()
            }
            ImageFailure::NotListed { .. } | ImageFailure::Hash { .. } => {
                "it may be changing right now: try again later; it is never used as it is".to_owned()
            }
            _ => return None,
        };
        Some(help)
    }
}

/// Has an image lie on a worker's host: the one of its cache if it is whole, else a new one. What takes its time there is
/// told while it goes on, about once a second.
///
/// # Errors
/// When it cannot be had, and why; the cache then has what can be gone on with, and nothing that looks whole.
pub async fn prepare(
    worker: &Worker,
    image: &ImageSpec,
    options: &ImageOptions,
    told: &(dyn Fn(&ImageProgress) + Sync),
) -> Result<BaseImage, ImageError> {
    let order = ImageRequest::Prepare { image: image.clone(), stall: options.stall };
    send_request(worker, &order, options.cache.as_deref(), told).await
}

/// Sees whether an image can be had on a worker's host, without fetching or building it.
///
/// # Errors
/// When it cannot, and why.
pub async fn check(worker: &Worker, image: &ImageSpec, options: &ImageOptions) -> Result<(), ImageError> {
    let order = ImageRequest::Check { image: image.clone(), stall: options.stall };
    send_request(worker, &order, options.cache.as_deref(), &|_: &ImageProgress| {}).await
}
