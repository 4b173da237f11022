//! Lists and removes images in the cache of a host.

use serde::{Deserialize, Serialize};
use wb_agent::Worker;
use wb_model::Bytes;

use super::request::{ImageRequest, send_request};
use super::{BaseImage, ImageError};

/// An image in the cache of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CachedImage {
    /// The name of its folder.
    pub name: String,
    /// Its folder.
    pub folder: String,
    /// Its size on disk.
    #[schemars(with = "String")]
    pub size: Bytes,
    /// The image; none if it is incomplete or its record cannot be read.
    pub base: Option<BaseImage>,
    /// When it was created, in RFC 3339; if incomplete, when it was last written to.
    pub created: String,
    /// When a guest was last created from it, in RFC 3339.
    pub last_used: String,
    /// What uses it, if anything does.
    pub in_use: Option<String>,
}

/// An entry that was not removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotRemoved {
    pub name: String,
    pub why: String,
}

/// Lists the cache of a worker's host by name. `cache` is as in [`super::ImageOptions`].
pub async fn list(worker: &Worker, cache: Option<&str>) -> Result<Vec<CachedImage>, ImageError> {
    send_request(worker, &ImageRequest::List, cache, &|_| ()).await
}

/// Removes entries; returns those that remain because they are in use or the system refuses.
pub async fn remove(worker: &Worker, names: Vec<String>, cache: Option<&str>) -> Result<Vec<NotRemoved>, ImageError> {
    send_request(worker, &ImageRequest::Remove { names }, cache, &|_| ()).await
}
