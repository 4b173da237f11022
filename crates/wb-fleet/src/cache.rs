//! The cache folder of a host: deployed programs.

use wb_agent::{Command, EntryKind, Fault, Worker, WorkerError};
use wb_model::{Bytes, Nanos};
use wb_sys::user_folders;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedProgram {
    /// SHA-256 of its content, which is the name of its folder.
    pub sha256: String,
    pub folder: String,
    pub size: Bytes,
    /// Seconds since 1970 of its last deployment, check or start; none if the file system does not record it.
    pub last_used_s: Option<u64>,
    /// Whether the worker's agent runs from it.
    pub in_use: bool,
}

const COMMAND_LIMIT: Nanos = Nanos(60_000_000_000);

/// Shell script that removes folders, and their parents if empty; the user's cache only if it was created by us.
const REMOVE_SCRIPT: &str = r#"
    cache=$1; shift; cd / && rm -rf -- "$@"
    above=
    if [ "$(ls -A "$cache")" = made-cache ]; then rm -f "$cache/made-cache"; above=${cache%/*/*}; fi
    rmdir "$cache" "${cache%/*}" ${above:+"$above"} 2>/dev/null; true
"#;

/// Programs in the cache of a worker's host; on the local machine, those that other controllers have deployed.
pub async fn list(worker: &Worker) -> Result<Vec<CachedProgram>, WorkerError> {
    let Some((cache, own)) = cache_location(worker) else { return Ok(Vec::new()) };
    let entries = match worker.list(&cache).await {
        Err(error) if is_missing(&error) => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut programs = Vec::new();
    for entry in entries {
        if entry.kind == EntryKind::Folder && is_hash(&entry.name) {
            let folder = format!("{cache}/{}", entry.name);
            let size = worker.list(&folder).await?.iter().map(|file| file.size).sum();
            let in_use = own.as_ref() == Some(&entry.name);
            programs.push(CachedProgram { in_use, sha256: entry.name, folder, size: Bytes(size), last_used_s: None });
        }
    }
    read_last_used(worker, &mut programs).await?;
    Ok(programs)
}

fn is_missing(error: &WorkerError) -> bool {
    matches!(error.fault(), Some(Fault::File { missing: true, .. }))
}

async fn read_last_used(worker: &Worker, programs: &mut [CachedProgram]) -> Result<(), WorkerError> {
    if programs.is_empty() {
        return Ok(());
    }
    let files = programs.iter().map(|program| format!("{}/weighbridge", program.folder));
    let argv = ["stat", "-c", "%X %Y %n", "--"].map(str::to_owned).into_iter().chain(files);
    let finished = worker.run(Command::new(argv), COMMAND_LIMIT).await?;
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

/// Removes programs from the cache of a worker's host. A running one continues to run.
pub async fn remove(worker: &Worker, programs: &[CachedProgram]) -> Result<(), WorkerError> {
    let Some((cache, _)) = cache_location(worker) else { return Ok(()) };
    let valid = programs.iter().filter(|program| is_hash(&program.sha256));
    let folders = valid.map(|program| format!("{cache}/{}", program.sha256));
    let argv = ["sh", "-c", REMOVE_SCRIPT, "sh", &cache].map(str::to_owned).into_iter().chain(folders);
    worker.run(Command::new(argv), COMMAND_LIMIT).await.map(drop)
}

/// The cache folder of a worker's host, and the hash of the program that its agent runs from there, if it does.
fn cache_location(worker: &Worker) -> Option<(String, Option<String>)> {
    let running = || {
        let (folder, _) = worker.program().rsplit_once('/')?;
        let (cache, hash) = folder.rsplit_once('/')?;
        (is_hash(hash) && cache.ends_with("/weighbridge/agent")).then(|| (cache.to_owned(), Some(hash.to_owned())))
    };
    // The local agent runs from the installed program, and has the environment of this process.
    let local = || Some((local_cache_folder()?, None)).filter(|_| worker.agent_pid().is_some());
    running().or_else(local)
}

/// The cache of this machine when it is a host of other controllers.
fn local_cache_folder() -> Option<String> {
    user_folders::cache()?.join("agent").into_os_string().into_string().ok()
}

fn is_hash(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}
