//! A log that cannot be read or written, and a folder that is not as it should be: each has an error of its own, and
//! nothing is changed without its original on disk.
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use wb_sys::undo::{RevertOutcome, Step, UndoError};
use wb_sys::{SysRoot, UndoLog};

/// A made machine of settings, all of them 60.
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

    /// Changes one setting, and leaves it so.
    fn changed(self) -> Self {
        let mut log = UndoLog::open(&self.root(), "a test").unwrap();
        log.change(step(0), Some(b"1")).unwrap();
        drop(log);
        self
    }

    fn holds(&self, number: u32) -> String {
        fs::read_to_string(self.setting(number)).unwrap()
    }

    /// What is said, of a log that is left as it is.
    fn refuses(&self) -> String {
        let before = fs::read(self.log()).unwrap();
        let error = UndoLog::open(&self.root(), "b").unwrap_err();
        assert_eq!(fs::read(self.log()).unwrap(), before);
        error.to_string().replace(&self.folder.path().display().to_string(), "")
    }
}

fn step(number: u32) -> Step {
    Step::setting(format!("/proc/{number}"))
}

#[test]
fn a_torn_last_line_is_forgiven_and_a_torn_one_elsewhere_named() {
    let machine = Machine::new().changed();
    let text = fs::read_to_string(machine.log()).unwrap();
    fs::write(machine.log(), format!("{text}{{\"line\":\"cha")).unwrap();
    assert_eq!(UndoLog::open(&machine.root(), "b").unwrap().open_changes().count(), 1);
    assert_eq!(fs::read_to_string(machine.log()).unwrap(), text, "it is cut off once");
    fs::write(machine.log(), text.replacen("{\"line\"", "{\"line\n\"", 1)).unwrap();
    assert!(machine.refuses().starts_with("/var/lib/weighbridge/undo/log.jsonl: line 2: "), "{}", machine.refuses());
    fs::write(machine.log(), text.replacen("60", "6\u{0}0", 1)).unwrap();
    assert!(machine.refuses().contains("line 2"));
}

#[test]
fn a_log_of_a_newer_format_and_one_that_is_not_ours_are_left_alone() {
    let machine = Machine::new().changed();
    let text = fs::read_to_string(machine.log()).unwrap();
    fs::write(machine.log(), text.replacen(":1}", ":2}", 1)).unwrap();
    assert_eq!(
        machine.refuses(),
        "/var/lib/weighbridge/undo/log.jsonl is an undo log of format 2, and this version knows up to 1: revert with the \
         version that wrote it"
    );
    let foreign =
        "/var/lib/weighbridge/undo/log.jsonl is no undo log: move it away, since nothing of this program is in it";
    let without_first = text.split_once('\n').unwrap().1.as_bytes();
    for other in [b"somebody's notes\n".as_slice(), b"no line's end", b"\xff\xfe\n", b"\n", without_first] {
        fs::write(machine.log(), other).unwrap();
        assert_eq!(machine.refuses(), foreign);
    }
    assert_eq!(machine.holds(0), "1");
}

#[test]
fn whoever_was_killed_before_the_first_change_or_after_the_last_undoing_leaves_nothing_to_undo() {
    let machine = Machine::new().changed();
    let text = fs::read_to_string(machine.log()).unwrap();
    let first = text.find('\n').unwrap();
    for cut in 0..=first {
        fs::create_dir_all(machine.undo()).unwrap();
        fs::write(machine.log(), &text[..cut]).unwrap();
        assert!(UndoLog::exists(&machine.root()).unwrap());
        assert_eq!(UndoLog::open(&machine.root(), "b").unwrap().open_changes().count(), 0, "{cut}");
        assert!(!UndoLog::exists(&machine.root()).unwrap() && !machine.undo().exists(), "nothing of it stays");
    }
    fs::create_dir_all(machine.undo()).unwrap();
    fs::write(machine.log(), format!("{text}{{\"line\":\"undone\",\"number\":0,\"how\":\"restored\"}}\n")).unwrap();
    drop(UndoLog::open(&machine.root(), "b").unwrap());
    assert!(!UndoLog::exists(&machine.root()).unwrap());
    // Between the making of one folder and the other.
    fs::create_dir_all(machine.undo().parent().unwrap()).unwrap();
    assert!(UndoLog::exists(&machine.root()).unwrap());
    drop(UndoLog::open(&machine.root(), "b").unwrap());
    assert!(!UndoLog::exists(&machine.root()).unwrap());
}

#[test]
fn a_folder_that_others_can_write_to_is_refused() {
    let refusal = |prepare: &dyn Fn(&Path)| {
        let machine = Machine::new();
        fs::create_dir_all(machine.undo().parent().unwrap()).unwrap();
        prepare(&machine.undo());
        let error = UndoLog::open(&machine.root(), "b").unwrap_err();
        assert!(!machine.log().exists() && machine.holds(0) == "60\n");
        error.to_string().replace(&machine.folder.path().display().to_string(), "")
    };
    let open = |mode: u32| {
        move |undo: &Path| {
            fs::create_dir(undo).unwrap();
            fs::set_permissions(undo, fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    let because =
        "what an undo log says is carried out, so that it must be in a folder that only its user can write to";
    let undo = "/var/lib/weighbridge/undo";
    assert_eq!(refusal(&open(0o777)), format!("{undo} can be written to by others (mode 777): {because}"));
    assert_eq!(refusal(&open(0o1775)), format!("{undo} can be written to by others (mode 1775): {because}"));
    let link = |undo: &Path| {
        let elsewhere = undo.with_file_name("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        symlink(elsewhere, undo).unwrap();
    };
    assert_eq!(refusal(&link), format!("{undo} is no folder: {because}"));
    let file = |undo: &Path| fs::write(undo, "").unwrap();
    assert!(refusal(&file).starts_with(&format!("cannot make {undo}: ")), "{}", refusal(&file));
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: the undo log in a folder of another user: folders are given away by root alone");
        return;
    }
    let given = |undo: &Path| {
        fs::create_dir(undo).unwrap();
        std::os::unix::fs::chown(undo, Some(1234), None).unwrap();
    };
    assert_eq!(refusal(&given), format!("{undo} belongs to user 1234: {because}"));
}

/// A file system of two pages, which is mounted where the log is.
struct Small<'a> {
    at: &'a Path,
}

impl<'a> Small<'a> {
    fn at(at: &'a Path) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let mut mount = Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", "size=16k,mode=755", "small"]).arg(at).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self { at })
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.at).status();
    }
}

#[test]
fn a_full_disk_changes_nothing_whose_original_is_not_on_it_and_hinders_no_undoing() {
    full_disk(false);
    full_disk(true);
}

fn full_disk(killed: bool) {
    let machine = Machine::new();
    let at = machine.undo();
    let Some(small) = Small::at(&at) else {
        eprintln!("SKIPPED: the undo log on a full disk: no file system can be mounted here");
        return;
    };
    let mut log = UndoLog::open(&machine.root(), "a test").unwrap();
    let (changed, error) = (0..100)
        .map(|number| (number, log.change(step(number), Some(b"1"))))
        .find_map(|(number, made)| Some((number, made.err()?)))
        .unwrap();
    let told = error.to_string().replace(&machine.folder.path().display().to_string(), "");
    assert_eq!(told, "cannot write /var/lib/weighbridge/undo/log.jsonl: No space left on device (os error 28)");
    // Where what it came to could not be written, it was changed; where what was there could not, it was not.
    let known = UndoLog::changes(&machine.root()).unwrap();
    for number in 0..100 {
        let noted = known.iter().any(|change| change.step == step(number));
        assert!(machine.holds(number) == "60\n" || noted, "{number}");
        assert_eq!(machine.holds(number), if number < changed || noted { "1" } else { "60\n" }, "{number}");
    }
    assert!(changed > 3 && fs::read_to_string(machine.log()).unwrap().ends_with('\n'), "no torn line stays");
    // It is put back by who has it open, and what was changed by somebody who was killed then by who comes next.
    if !killed {
        assert!(log.revert().unwrap().iter().all(|(_, how)| *how == RevertOutcome::Restored));
        assert!(!machine.log().exists());
    }
    drop(log);
    UndoLog::open(&machine.root(), "b").unwrap().revert().unwrap();
    assert!((0..100).all(|number| machine.holds(number) == "60\n"));
    assert!(!machine.log().exists());
    drop(small);
}

#[test]
fn where_not_even_the_lock_can_be_written_nothing_is_changed() {
    let machine = Machine::new();
    let at = machine.undo();
    let Some(small) = Small::at(&at) else {
        eprintln!("SKIPPED: the undo log on a full disk: no file system can be mounted here");
        return;
    };
    fs::write(at.join("other"), [0; 16384]).unwrap();
    let error = UndoLog::open(&machine.root(), "a test").unwrap_err();
    assert!(matches!(&error, UndoError::Io { what: "take", .. }), "{error}");
    assert!(!at.join("lock").exists());
    drop(small);
}
