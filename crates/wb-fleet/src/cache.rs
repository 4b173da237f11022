//! What lies in the cache folder of a host.

use wb_agent::{Command, EntryKind, Worker, WorkerError};
use wb_model::{Bytes, Nanos};

/// A program of ours in the cache of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cached {
    /// The SHA-256 of its content, which its folder is called.
    pub sha256: String,
    /// Its folder.
    pub folder: String,
    /// What it takes.
    pub size: Bytes,
    /// Whether it is the one that runs.
    pub in_use: bool,
}

/// The programs in the cache of a worker's host, by hash; none on this machine, whose agent runs from where it is.
pub async fn cached(worker: &Worker) -> Result<Vec<Cached>, WorkerError> {
    let Some((cache, own)) = place(worker.program()) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in worker.list(cache).await? {
        if entry.kind == EntryKind::Folder && is_hash(&entry.name) {
            let folder = format!("{cache}/{}", entry.name);
            let size = worker.list(&folder).await?.iter().map(|file| file.size).sum();
            found.push(Cached { in_use: entry.name == own, sha256: entry.name, folder, size: Bytes(size) });
        }
    }
    Ok(found)
}

/// Removes programs from the cache of a worker's host. One that runs goes on to its end.
pub async fn remove(worker: &Worker, programs: &[Cached]) -> Result<(), WorkerError> {
    let Some((cache, _)) = place(worker.program()) else { return Ok(()) };
    let group = worker.group().await?;
    let ours = programs.iter().filter(|program| is_hash(&program.sha256));
    let folders = ours.map(|program| format!("{cache}/{}", program.sha256));
    // The folders above go too when nothing is left in them.
    let script = "cache=$1; shift; cd /; rm -rf -- \"$@\"; rmdir \"$cache\" \"${cache%/*}\" 2>/dev/null; true";
    let argv = ["sh", "-c", script, "sh", cache].map(str::to_owned).into_iter().chain(folders);
    group.spawn(Command::new(argv)).await?.wait(Some(Nanos(60_000_000_000))).await?;
    group.teardown().await?;
    Ok(())
}

/// The cache folder that a program is in, and its hash.
fn place(program: &str) -> Option<(&str, &str)> {
    let (folder, _) = program.rsplit_once('/')?;
    let (cache, hash) = folder.rsplit_once('/')?;
    (is_hash(hash) && cache.ends_with("/weighbridge/agent")).then_some((cache, hash))
}

fn is_hash(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}
