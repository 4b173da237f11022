//! What a controller has this program do on a host, and what is told back: one JSON line each.
//!
//! `weighbridge images ORDER` carries an [`Order`] out as one process there, because locks, hashes and renames belong to
//! where the files are. It writes lines of [`Word`]s and ends with one that is no progress.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wb_agent::{Command, Stream, Worker};
use wb_model::{Bytes, Nanos};

use super::failure::format_size;
use super::{ImageError, ImageFailure, ImageSpec};

/// Variables that are the host's own, wherever the order comes from.
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

/// Names another folder than the usual one for what stays on a machine.
pub(super) const CACHE_VARIABLE: &str = "WEIGHBRIDGE_CACHE";

/// The longest that an order is waited for: fetching ends before by itself where it does not move.
const REQUEST_TIMEOUT: Nanos = Nanos(6 * 3_600_000_000_000);

/// What is to be done in the cache of a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum ImageRequest {
    /// Have an image: a [`super::Base`].
    Prepare {
        /// Which.
        image: ImageSpec,
        /// How long a server may send next to nothing.
        stall: Nanos,
    },
    /// See whether an image can be had, without fetching or building it: nothing.
    Check {
        /// Which.
        image: ImageSpec,
        /// How long a server may take to answer.
        stall: Nanos,
    },
    /// Say what is there: a list of [`super::cache::Entry`].
    List,
    /// Remove entries by name, those that nobody uses: a list of [`super::cache::Left`].
    Remove {
        /// Their names.
        names: Vec<String>,
    },
}

/// What is told back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImageEvent {
    /// How far it is.
    Progress(ImageProgress),
    /// It is done; this came of it.
    Done(Value),
    /// It could not be done.
    Failed(ImageFailure),
}

/// How far it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum ImageProgress {
    /// Somebody else makes the same, and is waited for.
    Waiting,
    /// It is fetched.
    Fetching {
        /// From where.
        url: String,
        /// So much is there.
        got: Bytes,
        /// Of so much, where the server says it.
        of: Option<Bytes>,
    },
    /// Something is done that takes a while.
    Doing {
        /// What.
        what: String,
    },
}

impl fmt::Display for ImageProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting => f.write_str("waiting for somebody else who makes the same image"),
            Self::Fetching { url, got, of: None } => write!(f, "fetching {url}: {}", format_size(got)),
            Self::Fetching { url, got, of: Some(of) } => {
                write!(f, "fetching {url}: {} of {}", format_size(got), format_size(of))
            }
            Self::Doing { what } => f.write_str(what),
        }
    }
}

/// Has an order carried out on a worker's host.
pub(super) async fn send_request<T: DeserializeOwned>(
    worker: &Worker,
    order: &ImageRequest,
    cache: Option<&str>,
    told: &(dyn Fn(&ImageProgress) + Sync),
) -> Result<T, ImageError> {
    let order = serde_json::to_string(order).map_err(|error| invalid_reply(worker, &error))?;
    let mut command = Command::new([worker.program(), "images", &order]).inherit(INHERITED);
    if let Some(cache) = cache {
        command = command.env(CACHE_VARIABLE, cache);
    }
    let group = worker.new_group().await?;
    let process = group.spawn(command).await?;
    let is_last = |line: &str| match serde_json::from_str(line) {
        Ok(ImageEvent::Progress(progress)) => {
            told(&progress);
            false
        }
        Ok(ImageEvent::Done(_) | ImageEvent::Failed(_)) => true,
        Err(_) => false,
    };
    let line = process.wait_for_line(Stream::Stdout, REQUEST_TIMEOUT, is_last).await?;
    let Some(line) = line else {
        let finished = process.wait(Some(Nanos(0))).await?;
        let said = String::from_utf8_lossy(&finished.stderr).trim().to_owned();
        return Err(ImageError::Exited { worker: worker.name().clone(), ending: finished.ending, said });
    };
    group.teardown().await?;
    match serde_json::from_str(&line) {
        Ok(ImageEvent::Done(value)) => serde_json::from_value(value).map_err(|error| invalid_reply(worker, &error)),
        Ok(ImageEvent::Failed(failure)) => Err(ImageError::Failed { worker: worker.name().clone(), failure }),
        Ok(ImageEvent::Progress(_)) => Err(invalid_reply(worker, &"progress was told as the end")),
        Err(error) => Err(invalid_reply(worker, &error)),
    }
}

fn invalid_reply(worker: &Worker, why: &dyn fmt::Display) -> ImageError {
    ImageError::InvalidReply { worker: worker.name().clone(), why: why.to_string() }
}
