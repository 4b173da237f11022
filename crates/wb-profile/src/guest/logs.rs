//! Lists and removes libvirt's logs of our former guests, left by killed hosts and by versions that did not remove
//! them.

use wb_agent::{Command, Worker, WorkerError};
use wb_model::{Bytes, Nanos};

/// The log of a guest of ours, recognised by the name of its domain alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestLog {
    pub path: String,
    pub size: Bytes,
    /// When it was last written to, in seconds since 1970.
    pub written_s: u64,
    pub is_running: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GuestLogs {
    pub logs: Vec<GuestLog>,
    /// The folder of libvirt's logs, if this user cannot read it.
    pub unreadable: Option<String>,
}

/// The default log folder of the system's libvirt.
const FOLDER: &str = "/var/log/libvirt/qemu";
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

/// The logs of our guests on a worker's host, in this folder or in libvirt's default one.
pub async fn guest_logs(worker: &Worker, folder: Option<&str>) -> Result<GuestLogs, WorkerError> {
    let text = shell(worker, ["sh", "-c", LIST, "sh", folder.unwrap_or(FOLDER)].map(str::to_owned).to_vec()).await?;
    Ok(parse(&text))
}

/// Removes logs, except those of running guests.
pub async fn remove_guest_logs(worker: &Worker, logs: &[GuestLog]) -> Result<(), WorkerError> {
    let paths = logs.iter().filter(|log| !log.is_running).map(|log| log.path.clone());
    shell(worker, ["rm", "-f", "--"].map(str::to_owned).into_iter().chain(paths).collect()).await.map(drop)
}

async fn shell(worker: &Worker, words: Vec<String>) -> Result<String, WorkerError> {
    let finished = worker.run(Command::new(words), LIMIT).await?;
    Ok(String::from_utf8_lossy(&finished.stdout).into_owned())
}

fn parse(text: &str) -> GuestLogs {
    let mut logs = GuestLogs::default();
    for line in text.lines() {
        if let Some(folder) = line.strip_prefix("unreadable ") {
            logs.unreadable = Some(folder.to_owned());
            continue;
        }
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let [state, size, written, path] = words[..] else { continue };
        let (Ok(size), Ok(written_s)) = (size.parse(), written.parse()) else { continue };
        logs.logs.push(GuestLog {
            path: path.to_owned(),
            size: Bytes(size),
            written_s,
            is_running: state == "running",
        });
    }
    logs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listing_is_parsed() {
        let parsed = parse("gone 5944 1700000000 /var/log/a b.log\nrunning 1 2 /x.log\nlogin says hello\n");
        let paths: Vec<(&str, bool)> = parsed.logs.iter().map(|log| (log.path.as_str(), log.is_running)).collect();
        assert_eq!(paths, [("/var/log/a b.log", false), ("/x.log", true)]);
        assert_eq!(
            (parsed.logs[0].size, parsed.logs[0].written_s, parsed.unreadable),
            (Bytes(5944), 1_700_000_000, None)
        );
        assert_eq!(parse("unreadable /var/log\n").unreadable.as_deref(), Some("/var/log"));
    }
}
