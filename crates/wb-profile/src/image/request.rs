//! Protocol between the controller and the process on a host that manages images: one JSON line per message.
//!
//! `weighbridge-agent images REQUEST` executes an [`ImageRequest`] in one process on the host, next to the files that
//! it locks, hashes and renames. It writes [`ImageEvent`]s as lines; the last one is the result.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wb_agent::{Command, OutputStream, Worker};
use wb_model::{Bytes, Nanos};

use super::failure::format_size;
use super::{ImageError, ImageFailure, ImageSpec};

/// Environment variables taken from the host.
const INHERITED: [&str; 12] = [
    CACHE_VARIABLE,
    "XDG_CACHE_HOME",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// Environment variable that overrides the cache folder of a machine.
pub(super) const CACHE_VARIABLE: &str = "WEIGHBRIDGE_CACHE";

/// Time limit of a request; stalled downloads fail earlier.
const REQUEST_TIMEOUT: Nanos = Nanos(6 * 3_600_000_000_000);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum ImageRequest {
    /// Prepare an image; returns a [`super::BaseImage`].
    Prepare {
        image: ImageSpec,
        /// How long a download may stall.
        stall: Nanos,
    },
    /// Check that an image is available, without fetching or building it; returns nothing.
    Check {
        image: ImageSpec,
        /// Time limit for a server's response.
        stall: Nanos,
    },
    /// List the cache; returns a list of [`super::cache::CachedImage`].
    List,
    /// Remove unused entries by name; returns a list of [`super::cache::NotRemoved`].
    Remove { names: Vec<String> },
}

/// A message from the process that executes a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImageEvent {
    Progress(ImageProgress),
    /// Success, with the result.
    Done(Value),
    Failed(ImageFailure),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum ImageProgress {
    /// Waiting for another process that creates the same image.
    Waiting,
    Fetching {
        url: String,
        received: Bytes,
        /// None if the server does not report it.
        total: Option<Bytes>,
    },
    Step {
        description: String,
    },
}

impl fmt::Display for ImageProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting => f.write_str("waiting for another process that creates the same image"),
            Self::Fetching { url, received: got, total: None } => write!(f, "fetching {url}: {}", format_size(got)),
            Self::Fetching { url, received: got, total: Some(total) } => {
                write!(f, "fetching {url}: {} of {}", format_size(got), format_size(total))
            }
            Self::Step { description: what } => f.write_str(what),
        }
    }
}

/// Executes a request on a worker's host; `report` is called with its progress.
pub(super) async fn send_request<T: DeserializeOwned>(
    worker: &Worker,
    request: &ImageRequest,
    cache: Option<&str>,
    report: &(dyn Fn(&ImageProgress) + Sync),
) -> Result<T, ImageError> {
    let request = serde_json::to_string(request).map_err(|error| invalid_reply(worker, &error))?;
    let mut command = Command::new([worker.program(), "images", &request]).inherit(INHERITED);
    if let Some(cache) = cache {
        command = command.env(CACHE_VARIABLE, cache);
    }
    let group = worker.new_group().await?;
    let process = group.spawn(command).await?;
    let is_last = |line: &str| match serde_json::from_str(line) {
        Ok(ImageEvent::Progress(progress)) => {
            report(&progress);
            false
        }
        Ok(ImageEvent::Done(_) | ImageEvent::Failed(_)) => true,
        Err(_) => false,
    };
    let line = process.wait_for_line(OutputStream::Stdout, REQUEST_TIMEOUT, is_last).await?;
    let Some(line) = line else {
        let finished = process.wait(Some(Nanos(0))).await?;
        let message = String::from_utf8_lossy(&finished.stderr).trim().to_owned();
        return Err(ImageError::Exited {
            worker: worker.name().clone(),
            ending: finished.exit_reason,
            stderr: message,
        });
    };
    group.close().await?;
    match serde_json::from_str(&line) {
        Ok(ImageEvent::Done(value)) => serde_json::from_value(value).map_err(|error| invalid_reply(worker, &error)),
        Ok(ImageEvent::Failed(failure)) => Err(ImageError::Failed { worker: worker.name().clone(), failure }),
        Ok(ImageEvent::Progress(_)) => Err(invalid_reply(worker, &"progress in place of a result")),
        Err(error) => Err(invalid_reply(worker, &error)),
    }
}

fn invalid_reply(worker: &Worker, reason: &dyn fmt::Display) -> ImageError {
    ImageError::InvalidReply { worker: worker.name().clone(), reason: reason.to_string() }
}
