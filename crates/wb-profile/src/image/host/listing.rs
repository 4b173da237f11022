//! What is in the folder, and its removal.

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

/// What is there, by name.
pub(super) fn list(folder: &ImageStore) -> Result<Vec<CachedImage>, ImageFailure> {
    let names = names(folder)?;
    names.into_iter().map(|name| entry(folder, name)).collect()
}

/// Removes entries of these names, with what was begun of them; what is left, and why.
pub(super) fn remove(folder: &ImageStore, names: &[String]) -> Result<Vec<NotRemoved>, ImageFailure> {
    let mut left = Vec::new();
    let there = self::names(folder)?;
    for name in names.iter().filter(|name| there.contains(*name)) {
        if let Err(why) = remove_one(folder, name) {
            left.push(NotRemoved { name: name.clone(), why });
        }
    }
    folder.remove_if_empty();
    Ok(left)
}

fn remove_one(folder: &ImageStore, name: &str) -> Result<(), String> {
    let told = |failure: ImageFailure| failure.to_string();
    let Some(_lock) = folder.try_lock(name).map_err(told)? else {
        return Err("it is being made".to_owned());
    };
    if let Some(user) = users::find_user(&folder.entry_path(name)) {
        return Err(format!("{user} uses it"));
    }
    remove_all(&folder.entry_path(name)).map_err(told)?;
    remove_all(&folder.partial_path(name)).map_err(told)
}

/// The names of all entries, whole or not: what is hidden belongs to the one in its name.
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
    let (whole, part) = (folder.entry_path(&name), folder.partial_path(&name));
    let record = folder.record(&name);
    let changed = || {
        let paths = [&whole, &part, &folder.lock_file(&name)];
        let last = paths.into_iter().filter_map(|path| path.metadata().and_then(|of| of.modified()).ok()).max();
        Timestamp::try_from(last.unwrap_or(SystemTime::UNIX_EPOCH)).unwrap_or_default()
    };
    let is_made = folder.try_lock(&name)?.is_none();
    let in_use = if is_made { Some("whoever makes it".to_owned()) } else { users::find_user(&whole) };
    let (made, used) = record.as_ref().map_or_else(|| (changed(), changed()), |record| (record.made, record.used));
    Ok(CachedImage {
        folder: whole.display().to_string(),
        size: Bytes(disk_usage(&whole) + disk_usage(&part)),
        base: record.map(|record| record.base),
        created: made.to_string(),
        last_used: used.to_string(),
        in_use,
        name,
    })
}

/// What the files of a folder take of the disk, holes not counted.
fn disk_usage(path: &Path) -> u64 {
    let of_one = |entry: fs::DirEntry| match entry.metadata() {
        Ok(of) if of.is_dir() => disk_usage(&entry.path()),
        Ok(of) => of.len().min(of.blocks() * 512),
        Err(_) => 0,
    };
    fs::read_dir(path).into_iter().flatten().flatten().map(of_one).sum()
}
