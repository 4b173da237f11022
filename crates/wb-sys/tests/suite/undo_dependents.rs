//! A made queue of a disk whose depth is reset whenever its scheduler is switched: what the kernel does, by a shell.
use std::fs;
use std::path::PathBuf;

use wb_sys::undo::{Change, ConflictPolicy, ResetSetting, RevertOutcome, Step};
use wb_sys::{SysRoot, UndoLog};

const DEPTH: &str = "/queue/depth";
const EXPIRE: &str = "/queue/iosched/expire";
const AHEAD: &str = "/queue/ahead";

/// Switches the scheduler in `$2` to `$1`: the depth becomes the default, a depth of 64 is refused from then on where
/// there is a file `stuck`, and only `deadline` has settings of its own.
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
    /// Under `deadline`, with odd values.
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

    fn holds(&self) -> [String; 4] {
        ["/queue/scheduler", DEPTH, EXPIRE, AHEAD]
            .map(|path| fs::read_to_string(self.full(path)).map_or("-".to_owned(), |text| text.trim().to_owned()))
    }

    fn scheduler(&self) -> Step {
        let folder = self.full("/queue").display().to_string();
        let words = |words: [&str; 6]| words.map(str::to_owned).to_vec();
        Step::Command {
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
    undone.iter().map(|(change, how)| (change.step.description(), how.clone())).collect()
}

const ODD: [&str; 4] = ["deadline", "200", "123", "77"];

#[test]
fn what_a_change_resets_is_reported_and_restored_with_it_in_the_right_order() {
    let queue = Queue::new();
    let mut log = queue.open();
    let reset = queue.switch(&mut log, "none").unwrap();
    let of = |path: &str, was: &str, now: Option<&str>| ResetSetting {
        path: path.to_owned(),
        before: was.to_owned(),
        after: now.map(str::to_owned),
    };
    assert_eq!(reset, [of(DEPTH, "200", Some("128")), of(EXPIRE, "123", None)]);
    assert_eq!(queue.holds(), ["none", "128", "-", "77"]);
    assert_eq!(queue.switch(&mut log, "none"), None, "it is so already");
    // Another process.
    drop(log);
    let undone = queue.open().revert().unwrap();
    let restored = ["the scheduler", DEPTH, EXPIRE].map(|what| (what.to_owned(), RevertOutcome::Restored));
    assert_eq!((summary(&undone), queue.holds()), (restored.to_vec(), ODD.map(str::to_owned)));
}

#[test]
fn whoever_was_killed_before_the_dependents_were_restored_has_them_restored_by_the_next() {
    // Before it was known what the change came to; and after the scheduler was put back.
    for cut in [true, false] {
        let queue = Queue::new();
        queue.switch(&mut queue.open(), "none").unwrap();
        if cut {
            let path = queue.full("/var/lib/weighbridge/undo/log.jsonl");
            let text = fs::read_to_string(&path).unwrap();
            let made = text.find("{\"line\":\"made\"").unwrap();
            fs::write(path, &text[..made]).unwrap();
        } else {
            let mut words = std::process::Command::new("sh");
            let switched = words.args(["-c", SWITCH, "sh", "deadline"]).arg(queue.full("/queue")).status();
            assert!(switched.unwrap().success());
            assert_eq!(queue.holds(), ["deadline", "256", "500", "77"]);
        }
        queue.open().revert().unwrap();
        assert_eq!(queue.holds(), ODD.map(str::to_owned), "cut: {cut}");
    }
}

#[test]
fn a_dependent_that_somebody_else_set_meanwhile_is_left_and_reported() {
    let queue = Queue::new();
    let mut log = queue.open();
    queue.switch(&mut log, "none").unwrap();
    fs::write(queue.full(DEPTH), "64\n").unwrap();
    // Nothing of ours, whatever it holds.
    fs::write(queue.full(AHEAD), "88\n").unwrap();
    let undone = summary(&log.revert().unwrap());
    assert_eq!(undone[1], (DEPTH.to_owned(), RevertOutcome::Conflict { found: "64".to_owned() }));
    assert_eq!(queue.holds(), ["deadline", "64", "123", "88"]);
}

#[test]
fn a_dependent_that_was_changed_through_the_log_is_restored_with_that_change() {
    let queue = Queue::new();
    queue.switch(&mut queue.open(), "none").unwrap();
    let mut tune = UndoLog::open(&queue.root(), "tune").unwrap();
    tune.change(Step::setting(DEPTH), Some(b"64")).unwrap();
    drop(tune);
    queue.open().revert_where(|change| change.owner == "a test").unwrap();
    assert_eq!(queue.holds(), ["deadline", "64", "123", "77"]);
    queue.open().revert().unwrap();
    assert_eq!(queue.holds(), ODD.map(str::to_owned));
}

#[test]
fn a_dependent_that_is_left_stays_in_the_log_by_itself_until_it_is_put_back() {
    let queue = Queue::new();
    queue.switch(&mut queue.open(), "none").unwrap();
    fs::write(queue.full(DEPTH), "64\n").unwrap();
    let left = (DEPTH.to_owned(), RevertOutcome::Conflict { found: "64".to_owned() });
    let undone = summary(&queue.open().revert_with(ConflictPolicy::Keep).unwrap());
    assert!(undone.contains(&left), "{undone:?}");
    assert_eq!(summary(&queue.open().revert_with(ConflictPolicy::Keep).unwrap()), [left]);
    queue.open().revert_with(ConflictPolicy::Overwrite).unwrap();
    assert_eq!(queue.holds(), ODD.map(str::to_owned));
}

#[test]
fn a_dependent_that_cannot_be_restored_is_named_and_the_rest_is_restored_and_reported() {
    let queue = Queue::new();
    fs::write(queue.full("/other"), "1\n").unwrap();
    let mut log = queue.open();
    log.change(Step::setting("/other"), Some(b"2")).unwrap();
    queue.switch(&mut log, "none").unwrap();
    fs::write(queue.full("/queue/stuck"), "").unwrap();
    let error = log.revert().unwrap_err();
    assert_eq!(error.failed.len(), 1);
    let message = error.to_string();
    assert!(
        message.starts_with(
            "not everything is as it was: `the scheduler` is as it was, and not everything that was reset with it: \
             `/queue/depth` holds nothing instead of `200` ("
        ),
        "{message}"
    );
    let restored = ["the scheduler", EXPIRE, "/other"].map(|what| (what.to_owned(), RevertOutcome::Restored));
    assert_eq!(summary(&error.undone), restored);
    assert_eq!(fs::read_to_string(queue.full("/other")).unwrap(), "1\n");
    // It stays in the log until it can be.
    fs::remove_dir(queue.full(DEPTH)).unwrap();
    fs::write(queue.full(DEPTH), "256\n").unwrap();
    log.revert().unwrap();
    assert_eq!((queue.holds(), log.open_changes().count()), (ODD.map(str::to_owned), 0));
}
