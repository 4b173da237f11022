//! A fake disk queue whose depth is reset whenever its scheduler is switched, as the kernel does it; done by a shell.
use std::fs;
use std::path::PathBuf;

use wb_sys::undo::{Change, ConflictPolicy, ManagedResource, ResetSetting, RevertOutcome};
use wb_sys::{SysRoot, UndoLog};

const DEPTH: &str = "/queue/depth";
const EXPIRE: &str = "/queue/iosched/expire";
const AHEAD: &str = "/queue/ahead";

/// Switches the scheduler in `$2` to `$1`: the depth becomes the default, the depth can no longer be set where a file
/// `stuck` exists, and only `deadline` has settings of its own.
const SWITCH: &str = r#"
cd "$2" && rm -rf iosched && echo "$1" > scheduler
case $1 in
    deadline) echo 256 > depth; mkdir iosched; echo 500 > iosched/expire;;
    none) echo 128 > depth;;
esac
[ ! -e stuck ] || { rm depth; mkdir depth; }
"#;

struct Queue {
    folder: tempfile::TempDir,
}

impl Queue {
    /// A queue with the scheduler `deadline` and unusual values.
    fn new() -> Self {
        let queue = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(queue.full("/queue/iosched")).unwrap();
        for (path, value) in [("/queue/scheduler", "deadline"), (DEPTH, "200"), (EXPIRE, "123"), (AHEAD, "77")] {
            fs::write(queue.full(path), format!("{value}\n")).unwrap();
        }
        queue
    }

    fn full(&self, path: &str) -> PathBuf {
        self.folder.path().join(path.trim_start_matches('/'))
    }

    fn root(&self) -> SysRoot {
        SysRoot::at(self.folder.path())
    }

    fn values(&self) -> [String; 4] {
        ["/queue/scheduler", DEPTH, EXPIRE, AHEAD]
            .map(|path| fs::read_to_string(self.full(path)).map_or("-".to_owned(), |text| text.trim().to_owned()))
    }

    fn scheduler(&self) -> ManagedResource {
        let folder = self.full("/queue").display().to_string();
        let words = |words: [&str; 6]| words.map(str::to_owned).to_vec();
        ManagedResource::Command {
            name: "the scheduler".to_owned(),
            read: words(["sh", "-c", "cat \"$2/scheduler\"", "sh", "", &folder]),
            write: words(["sh", "-c", SWITCH, "sh", "{}", &folder]),
        }
    }

    fn switch(&self, log: &mut UndoLog, to: &str) -> Option<Vec<ResetSetting>> {
        let dependents = [DEPTH, AHEAD, EXPIRE].map(str::to_owned);
        log.change_with(self.scheduler(), Some(format!("{to}\n").as_bytes()), &dependents).unwrap()
    }

    fn open(&self) -> UndoLog {
        UndoLog::open(&self.root(), "a test").unwrap()
    }
}

fn summary(undone: &[(Change, RevertOutcome)]) -> Vec<(String, RevertOutcome)> {
    undone.iter().map(|(change, how)| (change.resource.description(), how.clone())).collect()
}

const UNUSUAL: [&str; 4] = ["deadline", "200", "123", "77"];

#[test]
fn reset_settings_are_reported_and_restored_in_the_right_order() {
    let queue = Queue::new();
    let mut log = queue.open();
    let reset = queue.switch(&mut log, "none").unwrap();
    let reset_of = |path: &str, was: &str, now: Option<&str>| ResetSetting {
        path: path.to_owned(),
        before: was.to_owned(),
        after: now.map(str::to_owned),
    };
    assert_eq!(reset, [reset_of(DEPTH, "200", Some("128")), reset_of(EXPIRE, "123", None)]);
    assert_eq!(queue.values(), ["none", "128", "-", "77"]);
    assert_eq!(queue.switch(&mut log, "none"), None, "unchanged");
    // As another process would.
    drop(log);
    let undone = queue.open().revert().unwrap();
    let restored = ["the scheduler", DEPTH, EXPIRE].map(|what| (what.to_owned(), RevertOutcome::Restored));
    assert_eq!((summary(&undone), queue.values()), (restored.to_vec(), UNUSUAL.map(str::to_owned)));
}

#[test]
fn dependents_left_by_a_killed_process_are_restored_by_the_next() {
    // Killed before the result of the change was logged, or after the scheduler was restored.
    for cut in [true, false] {
        let queue = Queue::new();
        queue.switch(&mut queue.open(), "none").unwrap();
        if cut {
            let path = queue.full("/var/lib/weighbridge/undo/log.jsonl");
            let text = fs::read_to_string(&path).unwrap();
            let record = text.find("{\"line\":\"applied\"").unwrap();
            fs::write(path, &text[..record]).unwrap();
        } else {
            let mut command = std::process::Command::new("sh");
            let status = command.args(["-c", SWITCH, "sh", "deadline"]).arg(queue.full("/queue")).status();
            assert!(status.unwrap().success());
            assert_eq!(queue.values(), ["deadline", "256", "500", "77"]);
        }
        queue.open().revert().unwrap();
        assert_eq!(queue.values(), UNUSUAL.map(str::to_owned), "cut: {cut}");
    }
}

#[test]
fn a_dependent_that_another_process_set_is_left_and_reported() {
    let queue = Queue::new();
    let mut log = queue.open();
    queue.switch(&mut log, "none").unwrap();
    fs::write(queue.full(DEPTH), "64\n").unwrap();
    // Not a dependent that was reset, whatever its value.
    fs::write(queue.full(AHEAD), "88\n").unwrap();
    let undone = summary(&log.revert().unwrap());
    assert_eq!(undone[1], (DEPTH.to_owned(), RevertOutcome::Conflict { found: "64".to_owned() }));
    assert_eq!(queue.values(), ["deadline", "64", "123", "88"]);
}

#[test]
fn a_dependent_with_a_change_of_its_own_is_restored_with_that() {
    let queue = Queue::new();
    queue.switch(&mut queue.open(), "none").unwrap();
    let mut tune = UndoLog::open(&queue.root(), "tune").unwrap();
    tune.change(ManagedResource::setting(DEPTH), Some(b"64")).unwrap();
    drop(tune);
    queue.open().revert_where(|change| change.owner == "a test").unwrap();
    assert_eq!(queue.values(), ["deadline", "64", "123", "77"]);
    queue.open().revert().unwrap();
    assert_eq!(queue.values(), UNUSUAL.map(str::to_owned));
}

#[test]
fn a_kept_dependent_stays_in_the_log_until_it_is_overwritten() {
    let queue = Queue::new();
    queue.switch(&mut queue.open(), "none").unwrap();
    fs::write(queue.full(DEPTH), "64\n").unwrap();
    let left = (DEPTH.to_owned(), RevertOutcome::Conflict { found: "64".to_owned() });
    let undone = summary(&queue.open().revert_with(ConflictPolicy::Keep).unwrap());
    assert!(undone.contains(&left), "{undone:?}");
    assert_eq!(summary(&queue.open().revert_with(ConflictPolicy::Keep).unwrap()), [left]);
    queue.open().revert_with(ConflictPolicy::Overwrite).unwrap();
    assert_eq!(queue.values(), UNUSUAL.map(str::to_owned));
}

#[test]
fn a_dependent_that_cannot_be_restored_is_named_and_the_others_are_restored() {
    let queue = Queue::new();
    fs::write(queue.full("/other"), "1\n").unwrap();
    let mut log = queue.open();
    log.change(ManagedResource::setting("/other"), Some(b"2")).unwrap();
    queue.switch(&mut log, "none").unwrap();
    fs::write(queue.full("/queue/stuck"), "").unwrap();
    let error = log.revert().unwrap_err();
    assert_eq!(error.failed.len(), 1);
    let message = error.to_string();
    assert!(
        message.starts_with(
            "not everything was restored: `the scheduler` was restored, but not all settings that were reset with it: \
             `/queue/depth` is unreadable instead of `200` ("
        ),
        "{message}"
    );
    let restored = ["the scheduler", EXPIRE, "/other"].map(|what| (what.to_owned(), RevertOutcome::Restored));
    assert_eq!(summary(&error.undone), restored);
    assert_eq!(fs::read_to_string(queue.full("/other")).unwrap(), "1\n");
    // It stays in the log until it can be restored.
    fs::remove_dir(queue.full(DEPTH)).unwrap();
    fs::write(queue.full(DEPTH), "256\n").unwrap();
    log.revert().unwrap();
    assert_eq!((queue.values(), log.open_changes().count()), (UNUSUAL.map(str::to_owned), 0));
}
