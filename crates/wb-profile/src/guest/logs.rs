//! Logs that libvirt has kept of guests of ours which are gone: of hosts that were killed with their guests, and by
//! versions that did not remove them.

use wb_agent::{Command, Worker, WorkerError};
use wb_model::{Bytes, Nanos};

/// The log of a guest whose domain has a name as ours have: whether it was one of ours cannot be told otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestLog {
    /// Its file on the host.
    pub path: String,
    /// What it takes.
    pub size: Bytes,
    /// When it was last written to, in seconds since 1970.
    pub written_s: u64,
    /// Whether the guest runs.
    pub is_running: bool,
}

/// The logs on a host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GuestLogs {
    /// Those that can be seen.
    pub logs: Vec<GuestLog>,
    /// The folder of libvirt's logs, where this user cannot read it.
    pub unreadable: Option<String>,
}

/// Where libvirt of the system keeps them, unless it was built to do otherwise.
const FOLDER: &str = "/var/log/libvirt/qemu";
/// Lists them.
const LIST: &str = r#"
folder=$1
[ -e "$folder" ] || exit 0
[ -r "$folder" ] && [ -x "$folder" ] || { echo "unreadable $folder"; exit 0; }
for log in "$folder"/weighbridge-[0-9]*-*.log "$folder"/weighbridge-[0-9]*-*.log.[0-9]; do
    [ -f "$log" ] && [ ! -L "$log" ] || continue
    domain=${log##*/}
    state=gone
    [ ! -e "/run/libvirt/qemu/${domain%.log*}.pid" ] || state=running
    echo "$state $(stat -c '%s %Y' "$log") $log"
done
"#;

const LIMIT: Nanos = Nanos(60_000_000_000);

/// The logs of guests of ours on a worker's host, in this folder or where libvirt keeps them.
///
/// # Errors
/// When the worker cannot be asked.
pub async fn guest_logs(worker: &Worker, folder: Option<&str>) -> Result<GuestLogs, WorkerError> {
    let text = shell(worker, ["sh", "-c", LIST, "sh", folder.unwrap_or(FOLDER)].map(str::to_owned).to_vec()).await?;
    Ok(parse(&text))
}

/// Removes logs; those whose guests run are left.
///
/// # Errors
/// When the worker cannot be asked.
pub async fn remove_guest_logs(worker: &Worker, logs: &[GuestLog]) -> Result<(), WorkerError> {
    let paths = logs.iter().filter(|log| !log.is_running).map(|log| log.path.clone());
    shell(worker, ["rm", "-f", "--"].map(str::to_owned).into_iter().chain(paths).collect()).await.map(drop)
}

async fn shell(worker: &Worker, words: Vec<String>) -> Result<String, WorkerError> {
    let group = worker.new_group().await?;
    let finished = group.spawn(Command::new(words)).await?.wait(Some(LIMIT)).await?;
    group.teardown().await?;
    Ok(String::from_utf8_lossy(&finished.stdout).into_owned())
}

fn parse(text: &str) -> GuestLogs {
    let mut found = GuestLogs::default();
    for line in text.lines() {
        if let Some(folder) = line.strip_prefix("unreadable ") {
            found.unreadable = Some(folder.to_owned());
            continue;
        }
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let [state, size, written, path] = words[..] else { continue };
        let (Ok(size), Ok(written_s)) = (size.parse(), written.parse()) else { continue };
        found.logs.push(GuestLog {
            path: path.to_owned(),
            size: Bytes(size),
            written_s,
            is_running: state == "running",
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_lists_is_read() {
        let found = parse("gone 5944 1700000000 /var/log/a b.log\nrunning 1 2 /x.log\nlogin says hello\n");
        let paths: Vec<(&str, bool)> = found.logs.iter().map(|log| (log.path.as_str(), log.is_running)).collect();
        assert_eq!(paths, [("/var/log/a b.log", false), ("/x.log", true)]);
        assert_eq!((found.logs[0].size, found.logs[0].written_s, found.unreadable), (Bytes(5944), 1_700_000_000, None));
        assert_eq!(parse("unreadable /var/log\n").unreadable.as_deref(), Some("/var/log"));
    }
}
