//! Lists and removes the entries of the image store.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

use jiff::Timestamp;
use wb_model::Bytes;

use crate::image::ImageFailure;
use crate::image::cache::{CachedImage, NotRemoved};

use super::store::{ImageStore, remove_all};
use super::users;

pub(super) fn list(folder: &ImageStore) -> Result<Vec<CachedImage>, ImageFailure> {
    let names = names(folder)?;
    names.into_iter().map(|name| entry(folder, name)).collect()
}

/// Removes entries by name, including incomplete ones; returns those that remain, with the reason.
pub(super) fn remove(folder: &ImageStore, names: &[String]) -> Result<Vec<NotRemoved>, ImageFailure> {
    let mut remaining = Vec::new();
    let existing = self::names(folder)?;
    for name in names.iter().filter(|name| existing.contains(*name)) {
        if let Err(why) = remove_one(folder, name) {
            remaining.push(NotRemoved { name: name.clone(), why });
        }
    }
    folder.remove_if_empty();
    Ok(remaining)
}

fn remove_one(folder: &ImageStore, name: &str) -> Result<(), String> {
    let message = |failure: ImageFailure| failure.to_string();
    let Some(_lock) = folder.try_lock(name).map_err(message)? else {
        return Err("it is being created".to_owned());
    };
    if let Some(user) = users::find_user(&folder.entry_path(name)) {
        return Err(format!("in use by {user}"));
    }
    remove_all(&folder.entry_path(name)).map_err(message)?;
    remove_all(&folder.partial_path(name)).map_err(message)
}

/// The names of all entries, complete or not; hidden files belong to the entry in their name.
fn names(folder: &ImageStore) -> Result<BTreeSet<String>, ImageFailure> {
    let entries = match fs::read_dir(folder.path()) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(error) => return Err(ImageFailure::file(folder.path(), &error)),
    };
    let name = |entry: fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        match name.strip_prefix('.') {
            None => Some(name),
            Some(hidden) => hidden.strip_suffix(".part").or_else(|| hidden.strip_suffix(".lock")).map(str::to_owned),
        }
    };
    Ok(entries.flatten().filter_map(name).collect())
}

fn entry(folder: &ImageStore, name: String) -> Result<CachedImage, ImageFailure> {
    let (complete, part) = (folder.entry_path(&name), folder.partial_path(&name));
    let record = folder.record(&name);
    let changed = || {
        let paths = [&complete, &part, &folder.lock_file(&name)];
        let last =
            paths.into_iter().filter_map(|path| path.metadata().and_then(|metadata| metadata.modified()).ok()).max();
        Timestamp::try_from(last.unwrap_or(SystemTime::UNIX_EPOCH)).unwrap_or_default()
    };
    let is_busy = folder.try_lock(&name)?.is_none();
    let in_use = if is_busy { Some("the process that creates it".to_owned()) } else { users::find_user(&complete) };
    let (created, used) =
        record.as_ref().map_or_else(|| (changed(), changed()), |record| (record.created, record.last_used));
    Ok(CachedImage {
        folder: complete.display().to_string(),
        size: Bytes(disk_usage(&complete) + disk_usage(&part)),
        base: record.map(|record| record.base),
        created: created.to_string(),
        last_used: used.to_string(),
        in_use,
        name,
    })
}

/// The disk space that the files of a folder use, without holes.
fn disk_usage(path: &Path) -> u64 {
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => disk_usage(&entry.path()),
        Ok(metadata) => metadata.len().min(metadata.blocks() * 512),
        Err(_) => 0,
    };
    fs::read_dir(path).into_iter().flatten().flatten().map(size).sum()
}
