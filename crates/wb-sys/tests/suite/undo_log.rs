//! Unreadable and unwritable logs and invalid folders: each has an error of its own, and nothing is changed before its
//! original is on disk.
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use wb_sys::undo::{ManagedResource, RevertOutcome, UndoError};
use wb_sys::{SysRoot, UndoLog};

/// A fake machine with 100 settings, all of them 60.
struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(machine.folder.path().join("proc")).unwrap();
        (0..100).for_each(|number| fs::write(machine.setting(number), "60\n").unwrap());
        machine
    }

    fn root(&self) -> SysRoot {
        SysRoot::at(self.folder.path())
    }

    fn setting(&self, number: u32) -> PathBuf {
        self.folder.path().join(format!("proc/{number}"))
    }

    fn undo(&self) -> PathBuf {
        self.folder.path().join("var/lib/weighbridge/undo")
    }

    fn log(&self) -> PathBuf {
        self.undo().join("log.jsonl")
    }

    /// Changes one setting without reverting it.
    fn with_open_change(self) -> Self {
        let mut log = UndoLog::open(&self.root(), "a test").unwrap();
        log.change(resource(0), Some(b"1")).unwrap();
        drop(log);
        self
    }

    fn value(&self, number: u32) -> String {
        fs::read_to_string(self.setting(number)).unwrap()
    }

    /// The error when the log is opened, which must leave it unchanged.
    fn open_error(&self) -> String {
        let before = fs::read(self.log()).unwrap();
        let error = UndoLog::open(&self.root(), "b").unwrap_err();
        assert_eq!(fs::read(self.log()).unwrap(), before);
        error.to_string().replace(&self.folder.path().display().to_string(), "")
    }
}

fn resource(number: u32) -> ManagedResource {
    ManagedResource::setting(format!("/proc/{number}"))
}

#[test]
fn a_partial_last_line_is_truncated_and_a_damaged_one_elsewhere_is_an_error() {
    let machine = Machine::new().with_open_change();
    let text = fs::read_to_string(machine.log()).unwrap();
    fs::write(machine.log(), format!("{text}{{\"line\":\"cha")).unwrap();
    assert_eq!(UndoLog::open(&machine.root(), "b").unwrap().open_changes().count(), 1);
    assert_eq!(fs::read_to_string(machine.log()).unwrap(), text, "it is truncated once");
    fs::write(machine.log(), text.replacen("{\"line\"", "{\"line\n\"", 1)).unwrap();
    assert!(
        machine.open_error().starts_with("/var/lib/weighbridge/undo/log.jsonl: line 2: "),
        "{}",
        machine.open_error()
    );
    fs::write(machine.log(), text.replacen("60", "6\u{0}0", 1)).unwrap();
    assert!(machine.open_error().contains("line 2"));
}

#[test]
fn logs_of_a_newer_format_and_foreign_files_are_left_alone() {
    let machine = Machine::new().with_open_change();
    let text = fs::read_to_string(machine.log()).unwrap();
    fs::write(machine.log(), text.replacen(":1}", ":2}", 1)).unwrap();
    assert_eq!(
        machine.open_error(),
        "unsupported format 2 of the undo log /var/lib/weighbridge/undo/log.jsonl: expected at most 1: revert with the \
         version that wrote it"
    );
    let foreign = "invalid undo log /var/lib/weighbridge/undo/log.jsonl: not written by this program: move it away";
    let without_first = text.split_once('\n').unwrap().1.as_bytes();
    for other in [b"somebody's notes\n".as_slice(), b"no line's end", b"\xff\xfe\n", b"\n", without_first] {
        fs::write(machine.log(), other).unwrap();
        assert_eq!(machine.open_error(), foreign);
    }
    assert_eq!(machine.value(0), "1");
}

#[test]
fn remains_of_a_process_killed_before_or_after_all_changes_are_removed() {
    let machine = Machine::new().with_open_change();
    let text = fs::read_to_string(machine.log()).unwrap();
    let first = text.find('\n').unwrap();
    for cut in 0..=first {
        fs::create_dir_all(machine.undo()).unwrap();
        fs::write(machine.log(), &text[..cut]).unwrap();
        assert!(UndoLog::exists(&machine.root()).unwrap());
        assert_eq!(UndoLog::open(&machine.root(), "b").unwrap().open_changes().count(), 0, "{cut}");
        assert!(!UndoLog::exists(&machine.root()).unwrap() && !machine.undo().exists(), "no file is left");
    }
    fs::create_dir_all(machine.undo()).unwrap();
    fs::write(machine.log(), format!("{text}{{\"line\":\"undone\",\"number\":0,\"how\":\"restored\"}}\n")).unwrap();
    drop(UndoLog::open(&machine.root(), "b").unwrap());
    assert!(!UndoLog::exists(&machine.root()).unwrap());
    // Killed between creating one folder and the other.
    fs::create_dir_all(machine.undo().parent().unwrap()).unwrap();
    assert!(UndoLog::exists(&machine.root()).unwrap());
    drop(UndoLog::open(&machine.root(), "b").unwrap());
    assert!(!UndoLog::exists(&machine.root()).unwrap());
}

#[test]
fn a_folder_that_is_writable_by_others_is_refused() {
    let refusal = |prepare: &dyn Fn(&Path)| {
        let machine = Machine::new();
        fs::create_dir_all(machine.undo().parent().unwrap()).unwrap();
        prepare(&machine.undo());
        let error = UndoLog::open(&machine.root(), "b").unwrap_err();
        assert!(!machine.log().exists() && machine.value(0) == "60\n");
        error.to_string().replace(&machine.folder.path().display().to_string(), "")
    };
    let open = |mode: u32| {
        move |undo: &Path| {
            fs::create_dir(undo).unwrap();
            fs::set_permissions(undo, fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    let because = "an undo log is executed, so it must be in a folder that only its owner can write to";
    let undo = "/var/lib/weighbridge/undo";
    assert_eq!(refusal(&open(0o777)), format!("{undo} is writable by others (mode 777): {because}"));
    assert_eq!(refusal(&open(0o1775)), format!("{undo} is writable by others (mode 1775): {because}"));
    let link = |undo: &Path| {
        let elsewhere = undo.with_file_name("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        symlink(elsewhere, undo).unwrap();
    };
    assert_eq!(refusal(&link), format!("{undo} is not a folder: {because}"));
    let file = |undo: &Path| fs::write(undo, "").unwrap();
    assert!(refusal(&file).starts_with(&format!("cannot create {undo}: ")), "{}", refusal(&file));
    if !rustix::process::geteuid().is_root() {
        wb_test_skip::skip!("the undo log in a folder of another user: only root can change the owner of a folder");
        return;
    }
    let foreign = |undo: &Path| {
        fs::create_dir(undo).unwrap();
        std::os::unix::fs::chown(undo, Some(1234), None).unwrap();
    };
    assert_eq!(refusal(&foreign), format!("{undo} belongs to user 1234: {because}"));
}

/// A file system of 16 KiB, mounted at the folder of the log.
struct SmallFileSystem<'a> {
    at: &'a Path,
}

impl<'a> SmallFileSystem<'a> {
    fn at(at: &'a Path) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let mut mount = Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", "size=16k,mode=755", "small"]).arg(at).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self { at })
    }
}

impl Drop for SmallFileSystem<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.at).status();
    }
}

#[test]
fn on_a_full_disk_nothing_unlogged_is_changed_and_reverting_works() {
    full_disk(false);
    full_disk(true);
}

fn full_disk(killed: bool) {
    let machine = Machine::new();
    let mount_point = machine.undo();
    let Some(small) = SmallFileSystem::at(&mount_point) else {
        wb_test_skip::skip!("the undo log on a full disk: cannot mount a file system");
        return;
    };
    let mut log = UndoLog::open(&machine.root(), "a test").unwrap();
    let (changed, error) = (0..100)
        .map(|number| (number, log.change(resource(number), Some(b"1"))))
        .find_map(|(number, result)| Some((number, result.err()?)))
        .unwrap();
    let message = error.to_string().replace(&machine.folder.path().display().to_string(), "");
    assert_eq!(message, "cannot write /var/lib/weighbridge/undo/log.jsonl: No space left on device (os error 28)");
    // If the result could not be logged the setting is changed; if its original could not be logged it is not.
    let open_changes = UndoLog::changes(&machine.root()).unwrap();
    for number in 0..100 {
        let is_logged = open_changes.iter().any(|change| change.resource == resource(number));
        assert!(machine.value(number) == "60\n" || is_logged, "{number}");
        assert_eq!(machine.value(number), if number < changed || is_logged { "1" } else { "60\n" }, "{number}");
    }
    assert!(changed > 3 && fs::read_to_string(machine.log()).unwrap().ends_with('\n'), "no partial line is left");
    // It is reverted by the process that holds the log, or by the next one if that was killed.
    if !killed {
        assert!(log.revert().unwrap().iter().all(|(_, how)| *how == RevertOutcome::Restored));
        assert!(!machine.log().exists());
    }
    drop(log);
    UndoLog::open(&machine.root(), "b").unwrap().revert().unwrap();
    assert!((0..100).all(|number| machine.value(number) == "60\n"));
    assert!(!machine.log().exists());
    drop(small);
}

#[test]
fn without_a_writable_lock_nothing_is_changed() {
    let machine = Machine::new();
    let mount_point = machine.undo();
    let Some(small) = SmallFileSystem::at(&mount_point) else {
        wb_test_skip::skip!("the undo log on a full disk: cannot mount a file system");
        return;
    };
    fs::write(mount_point.join("other"), [0; 16384]).unwrap();
    let error = UndoLog::open(&machine.root(), "a test").unwrap_err();
    assert!(matches!(&error, UndoError::Io { operation: "lock", .. }), "{error}");
    assert!(!mount_point.join("lock").exists());
    drop(small);
}
