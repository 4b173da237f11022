//! What lies in the cache of a host.

use serde::{Deserialize, Serialize};
use wb_agent::Worker;
use wb_model::Bytes;

use super::request::{ImageRequest, send_request};
use super::{BaseImage, ImageError};

/// An image in the cache of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CachedImage {
    /// What its folder is called.
    pub name: String,
    /// Its folder.
    pub folder: String,
    /// What it takes.
    #[schemars(with = "String")]
    pub size: Bytes,
    /// What it is; none of what is in the making, was given up, or cannot be read.
    pub base: Option<BaseImage>,
    /// When it was made, in RFC 3339; when it was last written to, where it is not whole.
    pub created: String,
    /// When a guest was last made of it, the same way.
    pub last_used: String,
    /// Who uses it, if anybody does.
    pub in_use: Option<String>,
}

/// An entry that was not removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotRemoved {
    /// Its name.
    pub name: String,
    /// Why.
    pub why: String,
}

/// What is in the cache of a worker's host, by name. `cache` is as in [`super::Options`].
pub async fn list(worker: &Worker, cache: Option<&str>) -> Result<Vec<CachedImage>, ImageError> {
    send_request(worker, &ImageRequest::List, cache, &|_| ()).await
}

/// Removes entries; those that are left, because somebody uses them or the system does not let us.
pub async fn remove(worker: &Worker, names: Vec<String>, cache: Option<&str>) -> Result<Vec<NotRemoved>, ImageError> {
    send_request(worker, &ImageRequest::Remove { names }, cache, &|_| ()).await
}
