//! Changes are reverted byte for byte, whenever the process that made them is killed.
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use wb_sys::fake_root::contents;
use wb_sys::process::{Owner, tree};
use wb_sys::undo::{ConflictPolicy, ManagedResource, RevertOutcome};
use wb_sys::{SysRoot, UndoLog};

const BOOT: &str = "/proc/sys/kernel/random/boot_id";
const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const SWAPPINESS: &str = "/proc/sys/vm/swappiness";

fn put(root: &Path, path: &str, text: &str) {
    let full = root.join(path.trim_start_matches('/'));
    fs::create_dir_all(full.parent().unwrap()).unwrap();
    fs::write(full, text).unwrap();
}

fn get(root: &Path, path: &str) -> String {
    fs::read_to_string(root.join(path.trim_start_matches('/'))).unwrap()
}

fn machine() -> (tempfile::TempDir, SysRoot) {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), BOOT, "one\n");
    put(folder.path(), THP, "always [madvise] never\n");
    put(folder.path(), SWAPPINESS, "60\n");
    fs::create_dir(folder.path().join("etc")).unwrap();
    let root = SysRoot::at(folder.path());
    (folder, root)
}

fn new_file() -> ManagedResource {
    ManagedResource::File { path: "/etc/made".to_owned(), mode: 0o644 }
}

fn undone(log: &mut UndoLog) -> Vec<RevertOutcome> {
    log.revert().unwrap().into_iter().map(|(_, how)| how).collect()
}

#[test]
fn changes_are_reverted_and_no_files_are_left() {
    let (folder, root) = machine();
    let before = contents(folder.path());
    let mut log = UndoLog::open(&root, "a test").unwrap();
    assert!(log.change(ManagedResource::setting(THP), Some(b"never")).unwrap());
    assert!(log.change(ManagedResource::setting(SWAPPINESS), Some(b"1")).unwrap());
    assert!(!log.change(ManagedResource::setting(SWAPPINESS), Some(b"1\n")).unwrap(), "unchanged");
    assert!(log.change(new_file(), Some(b"whole")).unwrap());
    assert_eq!((get(folder.path(), THP), get(folder.path(), SWAPPINESS)), ("never".to_owned(), "1".to_owned()));
    assert_eq!(UndoLog::changes(&root).unwrap().len(), 3);
    drop(log);
    // As another process would.
    let mut log = UndoLog::open(&root, "another").unwrap();
    let undone = log.revert().unwrap();
    assert!(undone.iter().all(|(_, how)| *how == RevertOutcome::Restored) && undone.len() == 3, "{undone:?}");
    assert!(
        undone[0].0.resource.description() == "/etc/made" && undone[2].0.resource.description() == THP,
        "the last first"
    );
    drop(log);
    assert_eq!(contents(folder.path()), before);
    assert!(!folder.path().join("var/lib/weighbridge").exists());
}

#[test]
fn settings_changed_by_others_are_left_and_reported() {
    let (folder, root) = machine();
    let mut log = UndoLog::open(&root, "a test").unwrap();
    log.change(ManagedResource::setting(THP), Some(b"never")).unwrap();
    log.change(ManagedResource::setting(SWAPPINESS), Some(b"1")).unwrap();
    put(folder.path(), SWAPPINESS, "10\n");
    assert_eq!(undone(&mut log), [RevertOutcome::Conflict { found: "10".to_owned() }, RevertOutcome::Restored]);
    assert_eq!(get(folder.path(), SWAPPINESS), "10\n");
}

#[test]
fn a_kept_conflict_stays_in_the_log_until_it_is_overwritten() {
    let (folder, root) = machine();
    let before = contents(folder.path());
    let mut log = UndoLog::open(&root, "a test").unwrap();
    log.change(ManagedResource::setting(THP), Some(b"never")).unwrap();
    log.change(ManagedResource::setting(SWAPPINESS), Some(b"1")).unwrap();
    put(folder.path(), SWAPPINESS, "10\n");
    let mut revert = |conflict| {
        let undone = log.revert_with(conflict).unwrap();
        (undone.into_iter().map(|(_, how)| how).collect::<Vec<_>>(), get(folder.path(), SWAPPINESS))
    };
    let left = || RevertOutcome::Conflict { found: "10".to_owned() };
    assert_eq!(revert(ConflictPolicy::Keep), (vec![left(), RevertOutcome::Restored], "10\n".to_owned()));
    assert_eq!(revert(ConflictPolicy::Keep), (vec![left()], "10\n".to_owned()), "the original value is not lost");
    assert_eq!(revert(ConflictPolicy::Overwrite).0, [RevertOutcome::Restored]);
    assert_eq!(revert(ConflictPolicy::Overwrite).0, []);
    drop(log);
    assert_eq!(contents(folder.path()), before);
}

#[test]
fn a_reboot_resets_settings_but_not_files() {
    let (folder, root) = machine();
    let mut log = UndoLog::open(&root, "a test").unwrap();
    log.change(ManagedResource::setting(SWAPPINESS), Some(b"1")).unwrap();
    log.change(new_file(), Some(b"whole")).unwrap();
    drop(log);
    put(folder.path(), BOOT, "two\n");
    put(folder.path(), SWAPPINESS, "60\n");
    assert_eq!(undone(&mut UndoLog::open(&root, "b").unwrap()), [RevertOutcome::Restored, RevertOutcome::Gone]);
    assert!(!folder.path().join("etc/made").exists());
}

#[test]
fn one_process_at_a_time_changes_a_machine() {
    let (_folder, root) = machine();
    let mut first = UndoLog::open(&root, "tune apply quiet").unwrap();
    first.change(ManagedResource::setting(SWAPPINESS), Some(b"1")).unwrap();
    let error = UndoLog::open(&root, "run").unwrap_err();
    let pid = std::process::id();
    let message = format!("this machine is being changed by `weighbridge tune apply quiet` (process {pid}, since 2");
    assert!(error.to_string().starts_with(&message), "{error}");
    drop(first);
    assert_eq!(UndoLog::open(&root, "run").unwrap().open_changes().count(), 1);
}

#[test]
fn a_file_keeps_its_permissions_and_leaves_no_temporary_file() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, root) = machine();
    put(folder.path(), "/etc/there", "old");
    let full = folder.path().join("etc/there");
    fs::set_permissions(&full, fs::Permissions::from_mode(0o640)).unwrap();
    let mode = || fs::metadata(&full).unwrap().permissions().mode() & 0o7777;
    let mut log = UndoLog::open(&root, "a test").unwrap();
    log.change(ManagedResource::File { path: "/etc/there".to_owned(), mode: 0o600 }, Some(b"new")).unwrap();
    assert_eq!((get(folder.path(), "/etc/there").as_str(), mode()), ("new", 0o640));
    // Left by a writer that was killed before it renamed its file.
    put(folder.path(), "/etc/there.weighbridge-new", "ne");
    log.revert().unwrap();
    assert_eq!((get(folder.path(), "/etc/there").as_str(), mode()), ("old", 0o640));
    assert!(!folder.path().join("etc/there.weighbridge-new").exists());
}

#[test]
fn a_restored_file_has_its_modification_time_and_attributes() {
    let (folder, root) = machine();
    put(folder.path(), "/etc/there", "old");
    let full = folder.path().join("etc/there");
    let modified = std::time::UNIX_EPOCH + std::time::Duration::from_nanos(1_577_836_800_123_456_789);
    fs::File::options().write(true).open(&full).unwrap().set_modified(modified).unwrap();
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(&full, "user.label", b"ours", flags).unwrap();
    let label = || {
        let mut value = [0; 16];
        let length = rustix::fs::getxattr(&full, "user.label", &mut value[..]).unwrap();
        String::from_utf8_lossy(&value[..length]).into_owned()
    };
    let mut log = UndoLog::open(&root, "a test").unwrap();
    log.change(ManagedResource::File { path: "/etc/there".to_owned(), mode: 0o600 }, Some(b"new")).unwrap();
    assert_eq!(label(), "ours");
    assert_ne!(fs::metadata(&full).unwrap().modified().unwrap(), modified);
    log.revert().unwrap();
    assert_eq!((label().as_str(), fs::metadata(&full).unwrap().modified().unwrap()), ("ours", modified));
}

#[test]
fn only_regular_files_with_a_single_link_are_replaced() {
    let (folder, root) = machine();
    put(folder.path(), "/etc/real", "old");
    put(folder.path(), "/etc/one", "text");
    let full = |path: &str| folder.path().join(path);
    std::os::unix::fs::symlink("real", full("etc/link")).unwrap();
    std::os::unix::fs::symlink("nowhere", full("etc/dangling")).unwrap();
    fs::hard_link(full("etc/one"), full("etc/other")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, full("etc/fifo"), 0o600.into()).unwrap();
    let mut log = UndoLog::open(&root, "a test").unwrap();
    let own_log = "/var/lib/weighbridge/undo/log.jsonl";
    for (path, why) in [
        ("/etc/link", "symbolic link to `real`: name the file itself"),
        ("/etc/dangling", "symbolic link to `nowhere`: name the file itself"),
        ("/etc/fifo", "not a regular file"),
        ("/etc/other", "it has 2 hard links, which replacing it would separate"),
        (own_log, "files below /var/lib/weighbridge belong to the undo log"),
    ] {
        let resource = ManagedResource::File { path: path.to_owned(), mode: 0o644 };
        assert_eq!(resource.refusal(&root).map(|refusal| refusal.to_string()).as_deref(), Some(why));
        let error = log.change(resource, Some(b"new")).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot set `{path}` to `new`: {why}"));
    }
    assert_eq!(log.open_changes().count(), 0);
    assert_eq!(
        (get(folder.path(), "/etc/real").as_str(), fs::read_link(full("etc/link")).unwrap().to_str()),
        ("old", Some("real"))
    );
}

#[test]
fn a_superseded_change_is_reverted_with_the_later_one() {
    let (folder, root) = machine();
    put(folder.path(), "/etc/set", "found");
    let resource = || ManagedResource::setting("/etc/set");
    let mut log = UndoLog::open(&root, "run").unwrap();
    log.change(resource(), Some(b"of the run")).unwrap();
    drop(log);
    let mut log = UndoLog::open(&root, "tune").unwrap();
    log.change(resource(), Some(b"of tune")).unwrap();
    drop(log);
    // The next run reverts the changes of the killed one.
    let mut log = UndoLog::open(&root, "run").unwrap();
    let undone = log.revert_where(|change| change.owner == "run").unwrap();
    let by = "tune".to_owned();
    assert_eq!(undone.into_iter().map(|(_, how)| how).collect::<Vec<_>>(), [RevertOutcome::Superseded { by }]);
    assert_eq!(get(folder.path(), "/etc/set"), "of tune");
    drop(log);
    let mut log = UndoLog::open(&root, "tune").unwrap();
    assert_eq!(self::undone(&mut log), [RevertOutcome::Restored]);
    assert_eq!(get(folder.path(), "/etc/set"), "found");
}

#[test]
fn a_new_file_has_the_requested_permissions_whatever_the_umask() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, root) = machine();
    let mut log = UndoLog::open(&root, "a test").unwrap();
    // Any common umask would change the first of these.
    for mode in [0o666, 0o755, 0o4711, 0o400] {
        log.change(ManagedResource::File { path: "/etc/made".to_owned(), mode }, Some(b"text")).unwrap();
        let found = fs::metadata(folder.path().join("etc/made")).unwrap().permissions().mode() & 0o7777;
        assert_eq!(format!("{found:o}"), format!("{mode:o}"));
        log.revert().unwrap();
    }
}

#[test]
fn a_missing_folder_is_reported_and_not_created() {
    let (folder, root) = machine();
    let mut log = UndoLog::open(&root, "a test").unwrap();
    let resource = ManagedResource::File { path: "/etc/of/ours".to_owned(), mode: 0o644 };
    let error = log.change(resource, Some(b"text")).unwrap_err();
    assert_eq!(error.to_string(), "cannot set `/etc/of/ours` to `text`: no such folder: `/etc/of`");
    drop(log);
    assert!(!folder.path().join("etc/of").exists() && !folder.path().join("var/lib/weighbridge").exists());
}

/// Starts a command in a group of its own with the lock as its standard input; the lock's record names process `pid`.
fn start_with_lock_of(folder: &Path, pid: u32, script: &str) -> std::process::Child {
    use std::os::unix::process::CommandExt;
    let lock = folder.join("var/lib/weighbridge/undo/lock");
    fs::create_dir_all(lock.parent().unwrap()).unwrap();
    let started = |pid| tree::read_stat(&SysRoot::real(), pid).unwrap().started;
    let id_and_start = |pid| format!("-{pid:08}-{:012}-", started(pid));
    let own = Owner::current(&SysRoot::real()).to_string();
    let owner = own.replace(&id_and_start(std::process::id()), &id_and_start(pid));
    let line =
        format!("{{\"owner\":\"{owner}\",\"group\":{pid},\"what\":\"run\",\"since\":\"2026-01-02T03:04:05Z\"}}\n");
    fs::write(&lock, line).unwrap();
    let file = fs::File::open(&lock).unwrap();
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
    std::process::Command::new("sh").args(["-c", script]).stdin(file).process_group(0).spawn().unwrap()
}

#[test]
fn commands_of_a_dead_holder_are_killed_with_their_descendants() {
    let (folder, root) = machine();
    let output = folder.path().join("late");
    // One of its processes no longer has the lock.
    let script =
        format!("sh -c 'sleep 100; echo done > {0}' < /dev/null & sleep 100; echo done > {0}", output.display());
    let mut zombie = std::process::Command::new("true").spawn().unwrap();
    let is_zombie = || tree::read_stat(&SysRoot::real(), zombie.id()).is_some_and(|entry| entry.is_zombie());
    while !is_zombie() {
        std::thread::yield_now();
    }
    let mut command = start_with_lock_of(folder.path(), zombie.id(), &script);
    let group = command.id();
    UndoLog::open(&root, "b").unwrap();
    assert!(!command.wait().unwrap().success());
    let in_group = || {
        let all = tree::all(&SysRoot::real());
        all.into_iter().filter(|entry| entry.group == group && !entry.is_zombie()).count()
    };
    while in_group() > 0 {
        std::thread::yield_now();
    }
    assert!(!output.exists());
    zombie.wait().unwrap();
}

#[test]
fn a_live_holder_is_named_and_its_command_continues() {
    let (folder, root) = machine();
    let mut holder = std::process::Command::new("sleep").arg("100").spawn().unwrap();
    let mut command = start_with_lock_of(folder.path(), holder.id(), "sleep 100");
    let error = UndoLog::open(&root, "tune revert").unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "this machine is being changed by `weighbridge run` (process {}, since 2026-01-02T03:04:05Z)",
            holder.id()
        )
    );
    assert!(command.try_wait().unwrap().is_none());
    for child in [&mut holder, &mut command] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn states_of_commands_are_changed_and_reverted() {
    let (folder, root) = machine();
    let file = folder.path().join("state");
    fs::write(&file, "old\n").unwrap();
    let path = file.display().to_string();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let resource = ManagedResource::Command {
        name: "a state".to_owned(),
        read: words(&["cat", &path]),
        write: words(&["sh", "-c", "echo \"$1\" > \"$2\"", "sh", "{}", &path]),
    };
    let mut log = UndoLog::open(&root, "a test").unwrap();
    log.change(resource, Some(b"new\n")).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "new\n");
    log.revert().unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "old\n");
    let failing =
        ManagedResource::Command { name: "failing".to_owned(), read: words(&["cat", &path]), write: words(&["false"]) };
    assert!(log.change(failing, Some(b"x")).is_err());
    assert_eq!(log.open_changes().count(), 0, "a failed change does not stay in the log");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// A log that is cut anywhere is that of a process killed there: the changes made until then are reverted.
    #[test]
    fn a_log_that_is_cut_anywhere_restores_all_changes(cut in 0.0..1.0_f64, changed in any::<bool>()) {
        let (folder, root) = machine();
        let mut log = UndoLog::open(&root, "a test").unwrap();
        log.change(ManagedResource::setting(SWAPPINESS), Some(b"1")).unwrap();
        drop(log);
        let path = folder.path().join("var/lib/weighbridge/undo/log.jsonl");
        let text = fs::read(&path).unwrap();
        let first = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(1).unwrap().0 + 1;
        // The first line is the header. Before the record of the change is complete nothing is changed; after it the
        // change may or may not have been made.
        let length = first + ((text.len() - first) as f64 * cut) as usize;
        fs::write(&path, &text[..length]).unwrap();
        if !changed && length < text.len() {
            put(folder.path(), SWAPPINESS, "60\n");
        }
        UndoLog::open(&root, "b").unwrap().revert().unwrap();
        prop_assert_eq!(get(folder.path(), SWAPPINESS), "60\n");
    }
}
