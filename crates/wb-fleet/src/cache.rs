//! What lies in the cache folder of a host.

use wb_agent::{Command, EntryKind, Fault, Worker, WorkerError};
use wb_model::{Bytes, Nanos};

/// A program of ours in the cache of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedProgram {
    /// The SHA-256 of its content, which its folder is called.
    pub sha256: String,
    /// Its folder.
    pub folder: String,
    /// What it takes.
    pub size: Bytes,
    /// When it was last put there, checked or started, in seconds since 1970, as far as the file system keeps that.
    pub last_used_s: Option<u64>,
    /// Whether it is the one that runs.
    pub in_use: bool,
}

/// Removes folders, and those above when nothing is left in them: the user's cache only where it was made for us.
const REMOVE_SCRIPT: &str = r#"
    cache=$1; shift; cd / && rm -rf -- "$@"
    above=
    if [ "$(ls -A "$cache")" = made-cache ]; then rm -f "$cache/made-cache"; above=${cache%/*/*}; fi
    rmdir "$cache" "${cache%/*}" ${above:+"$above"} 2>/dev/null; true
"#;

/// The programs in the cache of a worker's host, by hash. On this machine those are what others have put here.
pub async fn list(worker: &Worker) -> Result<Vec<CachedProgram>, WorkerError> {
    let Some((cache, own)) = cache_location(worker) else { return Ok(Vec::new()) };
    let entries = match worker.list(&cache).await {
        Err(error) if is_missing(&error) => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        if entry.kind == EntryKind::Folder && is_hash(&entry.name) {
            let folder = format!("{cache}/{}", entry.name);
            let size = worker.list(&folder).await?.iter().map(|file| file.size).sum();
            let in_use = own.as_ref() == Some(&entry.name);
            found.push(CachedProgram { in_use, sha256: entry.name, folder, size: Bytes(size), last_used_s: None });
        }
    }
    read_last_used(worker, &mut found).await?;
    Ok(found)
}

fn is_missing(error: &WorkerError) -> bool {
    matches!(error.fault(), Some(Fault::File { missing: true, .. }))
}

/// Asks when programs were last read or written.
async fn read_last_used(worker: &Worker, programs: &mut [CachedProgram]) -> Result<(), WorkerError> {
    if programs.is_empty() {
        return Ok(());
    }
    let files = programs.iter().map(|program| format!("{}/weighbridge", program.folder));
    let argv = ["stat", "-c", "%X %Y %n", "--"].map(str::to_owned).into_iter().chain(files);
    let group = worker.new_group().await?;
    let finished = group.spawn(Command::new(argv)).await?.wait(Some(Nanos(60_000_000_000))).await?;
    group.teardown().await?;
    for line in String::from_utf8_lossy(&finished.stdout).lines() {
        let mut words = line.splitn(3, ' ');
        let (read, written, file) = (words.next(), words.next(), words.next().unwrap_or_default());
        let last = [read, written].into_iter().flatten().filter_map(|time| time.parse().ok()).max();
        if let Some(program) = programs.iter_mut().find(|program| file.starts_with(&program.folder)) {
            program.last_used_s = last;
        }
    }
    Ok(())
}

/// Removes programs from the cache of a worker's host. One that runs goes on to its end.
pub async fn remove(worker: &Worker, programs: &[CachedProgram]) -> Result<(), WorkerError> {
    let Some((cache, _)) = cache_location(worker) else { return Ok(()) };
    let group = worker.new_group().await?;
    let ours = programs.iter().filter(|program| is_hash(&program.sha256));
    let folders = ours.map(|program| format!("{cache}/{}", program.sha256));
    let argv = ["sh", "-c", REMOVE_SCRIPT, "sh", &cache].map(str::to_owned).into_iter().chain(folders);
    group.spawn(Command::new(argv)).await?.wait(Some(Nanos(60_000_000_000))).await?;
    group.teardown().await?;
    Ok(())
}

/// The cache folder of a worker's host, and the hash of the program that runs from there, if it does.
fn cache_location(worker: &Worker) -> Option<(String, Option<String>)> {
    let running = || {
        let (folder, _) = worker.program().rsplit_once('/')?;
        let (cache, hash) = folder.rsplit_once('/')?;
        (is_hash(hash) && cache.ends_with("/weighbridge/agent")).then(|| (cache.to_owned(), Some(hash.to_owned())))
    };
    // The agent of this machine runs from where it is, and has our environment.
    let here = || Some((local_cache_folder()?, None)).filter(|_| worker.agent_pid().is_some());
    running().or_else(here)
}

/// Where programs of ours lie on this machine when others have put them here.
fn local_cache_folder() -> Option<String> {
    let set = |name: &str| std::env::var(name).ok().filter(|path| path.starts_with('/'));
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(format!("{}/.cache", set("HOME")?)))?;
    Some(format!("{cache}/weighbridge/agent"))
}

fn is_hash(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}
