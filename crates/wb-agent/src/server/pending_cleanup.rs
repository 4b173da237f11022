//! Cleanup commands of groups: they undo what a group's processes do outside of its folder.
//!
//! They are recorded in the agent's folder before there is anything to clean up, and run when the group is torn down,
//! unless the controller has run them and withdrawn the record. If the agent is killed before, the next one of its user
//! runs them at its start. A command may run twice if it was interrupted. The undo log is no place for them: they need
//! the scratch folder that is there, and users who are not root have them, too.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};
use wb_sys::file_lock::FileLock;
use wb_sys::process::Owner;
use wb_sys::{AtomicFile, SysRoot};

use crate::protocol::{CleanupCommand, Fault};

use super::files::{self, file_fault};
use super::output::create_memfd;

/// Extension of the records.
const EXTENSION: &str = "cleanup";
/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(60);
/// Maximum length of a record, in bytes.
const MAX_LENGTH: u64 = 1 << 20;

/// The cleanup commands of a group.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PendingCleanup {
    /// The working directory.
    pub(super) folder: PathBuf,
    /// The whole environment.
    pub(super) env: Vec<(String, String)>,
    pub(super) commands: Vec<CleanupCommand>,
}

impl PendingCleanup {
    /// Records the commands of a group in the agent's folder; none withdraws the record.
    pub(super) fn record(&self, agent_folder: &Path, group: u32) -> Result<(), Fault> {
        let path = record_path(agent_folder, group);
        let fault = |error: io::Error| file_fault(path.display(), &error);
        if self.commands.is_empty() {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(fault(error)),
                _ => Ok(()),
            };
        }
        let json = serde_json::to_vec(self).map_err(|error| Fault::Refused { why: error.to_string() })?;
        let file = AtomicFile::create(&path, path.with_extension("new"), 0o600).map_err(fault)?;
        file.persist(&json).map_err(fault)
    }

    /// Runs the commands in order, even after a failure; returns the failures. Commands that may fail are run for their
    /// effect only.
    pub(super) fn run(&self) -> Vec<String> {
        self.commands.iter().filter_map(|command| self.run_command(command).err()).collect()
    }

    fn run_command(&self, command: &CleanupCommand) -> Result<(), String> {
        let CleanupCommand { argv, may_fail } = command;
        let name = argv.first().map_or("", String::as_str);
        let failed = |reason: String| format!("cleanup `{}`: {reason}", argv.join(" "));
        let result = || -> io::Result<(Option<ExitStatus>, String)> {
            let folder = if self.folder.is_dir() { self.folder.as_path() } else { Path::new("/") };
            let path = self.env.iter().find(|(name, _)| name == "PATH").map_or("", |(_, path)| path);
            let program = files::find_program(name, path, folder).ok_or(io::ErrorKind::NotFound)?;
            let mut stderr = create_memfd()?;
            let mut child = Command::new(program)
                .args(&argv[1..])
                .env_clear()
                .envs(self.env.iter().map(|(name, value)| (name, value)))
                .current_dir(folder)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(stderr.try_clone()?)
                .process_group(0)
                .spawn()?;
            let status = wait(&mut child, LIMIT)?;
            let mut text = Vec::new();
            stderr.rewind()?;
            stderr.take(MAX_LENGTH).read_to_end(&mut text)?;
            let text = String::from_utf8_lossy(&text);
            Ok((status, text.trim().lines().last().unwrap_or_default().to_owned()))
        }();
        match result {
            _ if *may_fail => Ok(()),
            Err(error) => Err(failed(error.to_string())),
            Ok((None, _)) => Err(failed(format!("killed after {} s", LIMIT.as_secs()))),
            Ok((Some(status), _)) if status.success() => Ok(()),
            Ok((Some(status), line)) if line.is_empty() => Err(failed(status.to_string())),
            Ok((Some(status), line)) => Err(failed(format!("{status}: {line}"))),
        }
    }
}

/// Waits for a child, and kills its process group after the limit; returns its status, or none if it was killed.
fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > limit {
            if let Some(pid) = Pid::from_raw(child.id().cast_signed()) {
                // It may have exited in this moment.
                let _ = kill_process_group(pid, Signal::KILL);
            }
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Runs the commands that dead agents of this user left behind, starting with the last group; returns the commands that
/// ran, and those that failed.
pub(super) fn run_stale(root: &SysRoot, base: &Path) -> (Vec<String>, Vec<String>) {
    let (mut ran, mut failed) = (Vec::new(), Vec::new());
    for folder in stale_folders(root, base) {
        let mut records = records(&folder);
        records.sort();
        for path in records.into_iter().rev() {
            match claim(&path) {
                Ok((cleanup, _lock)) => {
                    ran.extend(cleanup.commands.iter().map(|command| command.argv.join(" ")));
                    failed.extend(cleanup.run());
                    // What is left of it is removed with the folder.
                    let _ = fs::remove_file(&path);
                }
                // Another agent that has started runs them.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    failed.push(format!("{}: {error}", path.display()));
                    let _ = fs::remove_file(&path);
                }
            }
        }
    }
    (ran, failed)
}

/// Whether commands in the folder of a dead agent are still being run.
pub(super) fn is_pending(folder: &Path) -> bool {
    !records(folder).is_empty()
}

/// Folders of dead agents of this user that nobody else can write to.
fn stale_folders(root: &SysRoot, base: &Path) -> Vec<PathBuf> {
    let uid = rustix::process::geteuid().as_raw();
    let is_stale = |folder: &PathBuf| {
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_private =
            |metadata: fs::Metadata| metadata.is_dir() && metadata.uid() == uid && metadata.mode() & 0o077 == 0;
        Owner::parse(name).is_some_and(|owner| owner.is_gone(root))
            && fs::symlink_metadata(folder).is_ok_and(is_private)
    };
    entries(base).filter(is_stale).collect()
}

fn records(folder: &Path) -> Vec<PathBuf> {
    entries(folder).filter(|path| path.extension().is_some_and(|extension| extension == EXTENSION)).collect()
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()))
}

fn record_path(agent_folder: &Path, group: u32) -> PathBuf {
    agent_folder.join(format!("{group:06}.{EXTENSION}"))
}

/// Locks and reads a record.
fn claim(path: &Path) -> io::Result<(PendingCleanup, FileLock)> {
    let open = || File::options().read(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(path);
    let lock = FileLock::try_acquire(path, open)?;
    let (metadata, mut json) = (lock.file().metadata()?, Vec::new());
    if !metadata.is_file() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("not written by an agent of this user"));
    }
    lock.file().take(MAX_LENGTH).read_to_end(&mut json)?;
    Ok((serde_json::from_slice(&json)?, lock))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleanup(commands: &[(&str, bool)], folder: &Path) -> PendingCleanup {
        let commands = commands.iter().map(|(script, may_fail)| CleanupCommand {
            argv: ["sh", "-c", script].map(str::to_owned).into(),
            may_fail: *may_fail,
        });
        let env = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned()), ("WHO".to_owned(), "me".to_owned())];
        PendingCleanup { folder: folder.to_owned(), env, commands: commands.collect() }
    }

    #[test]
    fn every_command_runs_and_failures_have_their_last_line() {
        let folder = tempfile::tempdir().unwrap();
        let commands = [("exit 1", true), ("echo one; echo no >&2; exit 3", false), ("echo $WHO > made", false)];
        let failed = cleanup(&commands, folder.path()).run();
        assert_eq!(failed, ["cleanup `sh -c echo one; echo no >&2; exit 3`: exit status: 3: no"]);
        assert_eq!(fs::read_to_string(folder.path().join("made")).unwrap(), "me\n");
    }

    #[test]
    fn commands_of_a_dead_agent_run_once_and_the_last_group_first() {
        let root = SysRoot::real();
        let base = tempfile::tempdir().unwrap();
        let mut gone = Command::new("true").spawn().unwrap();
        let pid = gone.id();
        gone.wait().unwrap();
        // The name of an agent whose process has exited.
        let own = Owner::current(&root).to_string();
        let dead = own.replacen(&format!("-{:08}-", std::process::id()), &format!("-{pid:08}-"), 1);
        assert!(Owner::parse(&dead).unwrap().is_gone(&root), "{dead}");
        for name in [&own, &dead] {
            let folder = base.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
            for group in [1, 2] {
                let script =
                    format!("echo {} >> {}", if *name == own { 0 } else { group }, base.path().join("log").display());
                cleanup(&[(&script, false)], &folder).record(&folder, group).unwrap();
            }
        }
        let (ran, failed) = run_stale(&root, base.path());
        assert_eq!((ran.len(), failed), (2, Vec::new()));
        assert_eq!(fs::read_to_string(base.path().join("log")).unwrap(), "2\n1\n");
        assert_eq!(run_stale(&root, base.path()).0, Vec::<String>::new());
        assert!(is_pending(&base.path().join(&own)) && !is_pending(&base.path().join(&dead)));
    }

    #[test]
    fn a_withdrawn_record_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut pending = cleanup(&[("true", false)], folder.path());
        pending.record(folder.path(), 7).unwrap();
        assert!(is_pending(folder.path()));
        pending.commands.clear();
        pending.record(folder.path(), 7).unwrap();
        pending.record(folder.path(), 7).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn commands_in_a_folder_that_others_can_write_to_never_run() {
        let root = SysRoot::real();
        let base = tempfile::tempdir().unwrap();
        let mut gone = Command::new("true").spawn().unwrap();
        let pid = gone.id();
        gone.wait().unwrap();
        let own = Owner::current(&root).to_string();
        let dead = own.replacen(&format!("-{:08}-", std::process::id()), &format!("-{pid:08}-"), 1);
        let folder = base.path().join(dead);
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o770)).unwrap();
        cleanup(&[("true", false)], &folder).record(&folder, 1).unwrap();
        assert_eq!(run_stale(&root, base.path()), (Vec::new(), Vec::new()));
    }
}
