//! `pack`, `unpack` and `snapshot`: archives of runs, and measuring again from one.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};

use crate::lab::{CommandResult, KillOnDrop, Lab, copy_folder};

const QUICK: &str = "--min-time 1ms --warm-up 0 --samples 6 --retakes 0 --precision 100";

fn lab_with_run() -> Lab {
    let lab = Lab::new();
    lab.weighbridge(&format!("run steady:kind=[a,b] {QUICK} --into R")).expect_code(0);
    lab
}

/// The number of lines of a compressed file with one of these texts.
fn lines_with(path: &Path, texts: &[&str]) -> usize {
    let mut decoder = Command::new("gzip").arg("-dc").arg(path).stdout(Stdio::piped()).spawn().unwrap();
    let mut search = Command::new("grep");
    search.args(["--text", "--count", "--fixed-strings", &texts.join("\n")]).stdin(decoder.stdout.take().unwrap());
    let found = search.output().unwrap();
    assert!(decoder.wait().unwrap().success());
    String::from_utf8_lossy(&found.stdout).trim().parse().unwrap()
}

/// Runs `./rerun` of an extracted snapshot, without the configuration and the programs of the lab.
pub(crate) fn rerun(lab: &Lab, folder: &str, arguments: &[&str]) -> CommandResult {
    let mut command = Command::new(lab.path(folder).join("rerun"));
    command
        .args(arguments)
        .current_dir("/")
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .env("WEIGHBRIDGE_LOCKS", lab.path(""));
    command.env_remove("NO_COLOR");
    command.output().unwrap().into()
}

#[test]
fn packed_run_is_read_elsewhere_as_it_was() {
    let lab = lab_with_run();
    copy_folder(&lab.path("R"), &lab.path("before"));
    let packed = lab.weighbridge("pack R").expect_code(0);
    packed.expect_stdout("R.tar.gz: ");
    lab.weighbridge("pack R -o again.tar.gz").expect_code(0);
    assert!(std::fs::read(lab.path("R.tar.gz")).unwrap() == std::fs::read(lab.path("again.tar.gz")).unwrap());
    let differences = Command::new("diff").args(["-r", "R", "before"]).current_dir(lab.path("")).output().unwrap();
    assert!(differences.status.success(), "{}", String::from_utf8_lossy(&differences.stdout));
    lab.weighbridge("unpack R.tar.gz -C elsewhere").expect_code(0).expect_stdout("elsewhere: ");
    let summary = |run: &str| lab.weighbridge(&format!("summary {run} --json")).json()["cells"].clone();
    assert_eq!(summary("elsewhere/run"), summary("R"));
    let manifest = lab.read_json("elsewhere/manifest.json");
    assert_eq!(manifest["run"]["plans"][0], "steady:kind=[a,b]");
    lab.weighbridge("unpack again.tar.gz").expect_code(0);
    assert!(lab.path("again/run/journal.jsonl").exists());
}

#[test]
fn archives_that_would_overwrite_something_are_refused() {
    let lab = lab_with_run();
    lab.weighbridge("pack R").expect_code(0);
    lab.weighbridge("unpack R.tar.gz -C x").expect_code(0);
    let lines = [
        "pack R",
        "pack R -o R/x.tar.gz",
        "pack nosuch",
        "pack bin",
        "unpack R.tar.gz -C x",
        "unpack R.tar.gz -C R.tar.gz",
    ];
    std::fs::create_dir_all(lab.path("bin")).unwrap();
    std::fs::write(lab.path("bin/x"), "").unwrap();
    let all: String = lines.iter().map(|line| format!("$ {line}\n{}", lab.weighbridge(line).transcript())).collect();
    insta::assert_snapshot!(all, @r"
    $ pack R
    exit 1
    error: R.tar.gz exists already
    help: choose another file with -o
    $ pack R -o R/x.tar.gz
    exit 1
    error: invalid archive R/x.tar.gz: it would be in the run folder, which is not changed
    help: choose another file with -o
    $ pack nosuch
    exit 1
    error: cannot read run `nosuch`: no such folder
    help: `weighbridge run --into` creates a run folder
    $ pack bin
    exit 1
    error: `bin` is not a run folder: it has no run.json
    help: name the folder of `weighbridge run --into`
    $ unpack R.tar.gz -C x
    exit 1
    error: x is not empty
    help: choose a new or empty folder with -C
    $ unpack R.tar.gz -C R.tar.gz
    exit 1
    error: R.tar.gz is not a folder
    help: choose a new or empty folder with -C
    ");
}

#[test]
fn damaged_archives_are_refused_and_leave_nothing() {
    let lab = lab_with_run();
    lab.weighbridge("pack R").expect_code(0);
    let archive = std::fs::read(lab.path("R.tar.gz")).unwrap();
    std::fs::write(lab.path("half.tar.gz"), &archive[..archive.len() / 2]).unwrap();
    std::fs::write(lab.path("more.tar.gz"), [&archive[..], b"more"].concat()).unwrap();
    lab.write("text.tar.gz", "no archive at all");
    let other = Command::new("tar").args(["czf", "other.tar.gz", "R"]).current_dir(lab.path("")).status().unwrap();
    assert!(other.success());
    lab.write("name", "no archive");
    let lines = [
        "unpack half.tar.gz",
        "unpack more.tar.gz",
        "unpack text.tar.gz",
        "unpack other.tar.gz",
        "unpack nosuch.tar.gz",
        "unpack name",
    ];
    let all: String = lines.iter().map(|line| format!("$ {line}\n{}", lab.weighbridge(line).transcript())).collect();
    insta::assert_snapshot!(all, @r"
    $ unpack half.tar.gz
    exit 1
    error: half.tar.gz: damaged or truncated archive: incomplete deflate stream
    help: copy the archive again; nothing was extracted
    $ unpack more.tar.gz
    exit 1
    error: more.tar.gz: unexpected data after the end of the archive
    help: copy the archive again; nothing was extracted
    $ unpack text.tar.gz
    exit 1
    error: text.tar.gz: not an archive of weighbridge: expected a compressed tar file that begins with manifest.json
    help: `weighbridge pack` and `weighbridge snapshot` write archives
    $ unpack other.tar.gz
    exit 1
    error: other.tar.gz: not an archive of weighbridge: expected a compressed tar file that begins with manifest.json
    help: `weighbridge pack` and `weighbridge snapshot` write archives
    $ unpack nosuch.tar.gz
    exit 1
    error: cannot read `nosuch.tar.gz`: No such file or directory
    $ unpack name
    exit 1
    error: cannot derive a folder name from `name`
    help: name a new or empty folder with -C
    ");
    for name in ["half", "more", "text", "other"] {
        assert!(!lab.path(name).exists(), "{name}");
    }
    let leftovers = std::fs::read_dir(lab.path("")).unwrap().flatten();
    assert!(leftovers.into_iter().all(|entry| !entry.file_name().to_string_lossy().ends_with(".new")));
}

/// The names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The file in `folder` that a process has open and that has no name of its own yet.
fn draft(child: &Child, folder: &Path) -> Option<PathBuf> {
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap().flatten();
    let mut files = descriptors.filter_map(|descriptor| std::fs::read_link(descriptor.path()).ok());
    let is_draft = |name: &str| name.ends_with(" (deleted)") || name.ends_with(".new");
    files.find(|file| file.parent() == Some(folder) && is_draft(&file.to_string_lossy()))
}

/// Waits for something that a process does; it must not end before.
fn wait_for<T>(child: &mut Child, mut found: impl FnMut(&Child) -> Option<T>) -> T {
    loop {
        if let Some(found) = found(child) {
            return found;
        }
        assert_eq!(child.try_wait().unwrap(), None, "it ended too early");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn killed_command_leaves_nothing_of_its_archive() {
    let lab = lab_with_run();
    // It takes more than a second to compress, and no space.
    std::fs::File::create(lab.path("R/large")).unwrap().set_len(256 << 20).unwrap();
    let folder = std::fs::canonicalize(lab.path("")).unwrap().join("out");
    std::fs::create_dir(&folder).unwrap();
    for (line, signal) in [("pack R", Signal::TERM), ("pack R", Signal::KILL), ("snapshot R", Signal::KILL)] {
        let mut child = KillOnDrop(lab.start(&format!("{line} -o out/x.tar.gz")));
        let draft = wait_for(&mut child.0, |child| draft(child, &folder));
        kill_process(Pid::from_child(&child.0), signal).unwrap();
        assert!(!child.0.wait().unwrap().success());
        if draft.to_string_lossy().ends_with(".new") {
            wb_test_skip::skip!("the file system of {} has no unnamed files", folder.display());
            return;
        }
        assert_eq!(names(&folder), [""; 0], "{line}, {signal:?}");
    }
}

#[test]
fn interrupted_unpacking_leaves_nothing_and_a_killed_one_is_repeated() {
    let lab = lab_with_run();
    lab.weighbridge("pack R -o R.tgz").expect_code(0);
    let archive = std::fs::read(lab.path("R.tgz")).unwrap();
    mknodat(CWD, lab.path("fifo"), FileType::Fifo, Mode::from(0o600), 0).unwrap();
    for (target, signal) in [
        ("empty", Signal::INT),
        ("empty", Signal::TERM),
        ("new/target", Signal::HUP),
        ("empty", Signal::KILL),
        ("new/target", Signal::KILL),
    ] {
        let target_folder = lab.path(target);
        let folder = if target == "empty" { target_folder.clone() } else { lab.path("new") };
        std::fs::create_dir_all(&folder).unwrap();
        let mut child = KillOnDrop(lab.start(&format!("unpack fifo -C {target}")));
        // Its writer does not go on.
        let mut writer = std::fs::File::options().write(true).open(lab.path("fifo")).unwrap();
        writer.write_all(&archive[..archive.len() - 20]).unwrap();
        wait_for(&mut child.0, |_| names(&folder).pop());
        kill_process(Pid::from_child(&child.0), signal).unwrap();
        let status = child.0.wait().unwrap();
        if signal == Signal::KILL {
            assert_eq!(names(&folder).len(), 1);
            lab.weighbridge(&format!("unpack R.tgz -C {target}")).expect_code(0);
            assert_eq!(names(&target_folder), ["manifest.json", "run"]);
            assert!(names(&folder).iter().all(|name| !name.ends_with(".new")));
        } else {
            assert_eq!((status.code(), names(&folder)), (Some(130), Vec::new()), "{target}, {signal:?}");
        }
    }
}

#[test]
fn run_that_is_being_measured_is_refused() {
    let lab = lab_with_run();
    let controller = std::fs::File::open(lab.path("R/.lock")).unwrap();
    controller.lock().unwrap();
    // Nothing of it is read: its controller may be writing it.
    let run_file = lab.read("R/run.json");
    lab.write("R/run.json", "{");
    let both = ["pack R", "snapshot R"].map(|line| lab.weighbridge(line).transcript());
    insta::assert_snapshot!(both.concat(), @r"
    exit 1
    error: another weighbridge is writing to `R`
    help: wait for it, or choose another folder
    exit 1
    error: another weighbridge is writing to `R`
    help: wait for it, or choose another folder
    ");
    drop(controller);
    lab.write("R/run.json", &run_file);
    lab.weighbridge("pack R").expect_code(0);
}

/// A shell command of another user, nobody, that has begun and runs until this is dropped.
struct OtherUser(std::process::Child);

impl OtherUser {
    /// Starts a script that prints `ready`. `None`, with a message, if this process is not root.
    fn start(script: &str, folder: &std::path::Path) -> Option<Self> {
        use std::io::Read;
        use std::os::unix::process::CommandExt;
        if !rustix::process::geteuid().is_root() {
            wb_test_skip::skip!("only root can be another user");
            return None;
        }
        let mut command = std::process::Command::new("bash");
        command.args(["-c", script]).current_dir(folder).uid(65534).gid(65534).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
        Some(Self(child))
    }
}

impl Drop for OtherUser {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn another_user_who_locks_whatever_he_can_read_of_a_run_keeps_nobody_from_measuring_and_packing_it() {
    use std::os::unix::fs::PermissionsExt;
    let lab = lab_with_run();
    std::fs::set_permissions(lab.path(""), std::fs::Permissions::from_mode(0o755)).unwrap();
    let script = r#"for file in $(find R -type f -readable); do exec {number}<"$file"; flock -n $number; done
        echo ready; exec sleep 1000"#;
    let Some(_other) = OtherUser::start(script, &lab.path("")) else { return };
    let journal = std::fs::File::open(lab.path("R/journal.jsonl")).unwrap();
    assert!(matches!(journal.try_lock(), Err(std::fs::TryLockError::WouldBlock)), "the other user has locked it");
    lab.weighbridge("run steady --min-time 1ms --samples 8 --precision 100 --into R").expect_code(0);
    lab.weighbridge("pack R").expect_code(0);
    assert!(!lab.weighbridge("unpack R.tar.gz -C again").expect_code(0).out.contains(".lock"));
    assert!(!lab.path("again/run/.lock").exists());
}

#[test]
fn snapshot_of_a_built_in_test_measures_again_elsewhere() {
    let lab = Lab::new();
    lab.weighbridge("run himeno:grid=XS,threads=1 --samples 2 --min-time 1ms --warm-up 0 --into R")
        .expect_code_of(&[0, 3]);
    lab.weighbridge("snapshot R").expect_code(0).expect_stdout("R-snapshot.tar.gz: ");
    std::fs::create_dir(lab.path("moved")).unwrap();
    std::fs::rename(lab.path("R-snapshot.tar.gz"), lab.path("moved/s.tar.gz")).unwrap();
    std::fs::remove_dir_all(lab.path("R")).unwrap();
    lab.weighbridge("unpack moved/s.tar.gz -C moved/s").expect_code(0);
    let ran = rerun(&lab, "moved/s", &[]).expect_code_of(&[0, 3]);
    ran.expect_stdout("run folder: rerun-1").expect_stdout("himeno");
    let runs = ["run", "rerun-1"].map(|run| lab.read_json(format!("moved/s/{run}/run.json")));
    assert_eq!(runs[0]["invocations"][0]["cells"], runs[1]["invocations"][0]["cells"]);
    let cell = |run: &str| {
        lab.read_json(format!("moved/s/{run}/Localhost/himeno/0000/definition.json"))["cells"][0]["key"].clone()
    };
    assert_eq!(cell("run"), cell("rerun-1"));
    rerun(&lab, "moved/s", &[]).expect_code_of(&[0, 3]).expect_stdout("run folder: rerun-2");
    for path in ["schemas/run.json", "inputs/commands.json", "inputs/environment.json", "bin/weighbridge"] {
        assert!(lab.path("moved/s").join(path).exists(), "{path}");
    }
}

#[test]
fn snapshot_repeats_plans_and_custom_tests_without_publishing() {
    let lab = Lab::new();
    lab.write("hook.sh", "echo published >> published\n");
    lab.write("plans/p.toml", "publish = \"sh hook.sh\"\n[[test]]\nname = \"steady\"\nkind = [\"a\", \"c\"]\n");
    lab.weighbridge(&format!("run --plan plans/p.toml {QUICK} --into R")).expect_code(0);
    lab.weighbridge(&format!("run steady:kind=b,id=more {QUICK} --into R --metadata token=abcdef")).expect_code(0);
    let published = lab.read("published");
    let made = lab.weighbridge("snapshot R -o s.tar.gz").expect_code(0);
    assert_eq!(made.err, "note: `./rerun` does not publish\n");
    lab.weighbridge("unpack s.tar.gz").expect_code(0);
    for path in ["plans", "config", "R"] {
        std::fs::remove_dir_all(lab.path(path)).unwrap();
    }
    rerun(&lab, "s", &[]).expect_code(0).expect_stdout("steady");
    assert_eq!(lab.read("published"), published);
    assert!(!lab.path("s/published").exists());
    let cells =
        |run: &str| lab.weighbridge(&format!("summary s/{run} --json")).json()["cells"].as_array().unwrap().len();
    assert_eq!((cells("run"), cells("rerun-1")), (3, 3));
}

#[test]
fn measured_programs_and_their_sources_are_packed_and_rebuilt() {
    let lab = Lab::new();
    let tool = lab.program("measured-tool", "#!/bin/sh\necho figure: 97\n");
    lab.define_script("tool", "measured-tool");
    lab.weighbridge(&format!("run tool {QUICK} --into R")).expect_code(0);
    lab.write("work/src/tool.sh", "#!/bin/sh\necho figure: 98\n");
    lab.write("work/src/target/big", "built");
    lab.write("work/peers.toml", "listener = { command = [\"../bin/measured-tool\", \"listen\"] }\n");
    let sha256 = wb_model::Sha256::digest(&std::fs::read(&tool).unwrap());
    let inputs = serde_json::json!({
        "folder": lab.path("work"),
        "programs": [{ "path": "../bin/measured-tool", "sha256": sha256, "as": "programs/measured-tool" }],
        "sources": [{ "path": "src", "as": "sources/src" }],
        "peers-files": ["peers.toml"],
        "rebuild": ["sh", "-c", "cp src/tool.sh \"$WEIGHBRIDGE_PROGRAMS/measured-tool\" && chmod +x \"$WEIGHBRIDGE_PROGRAMS/measured-tool\""],
    });
    lab.write("R/inputs.json", &inputs.to_string());
    lab.weighbridge("snapshot R -o s.tar.gz").expect_code(0);
    lab.weighbridge("unpack s.tar.gz").expect_code(0);
    assert!(lab.path("s/sources/src/tool.sh").exists() && !lab.path("s/sources/src/target").exists());
    assert_eq!(
        lab.read("s/inputs/peers/peers.toml"),
        "listener = { command = [\"../../programs/measured-tool\", \"listen\"] }\n"
    );
    assert_eq!(lab.read("s/inputs/peers/original/peers.toml"), lab.read("work/peers.toml"));
    let roles = lab.read_json("s/manifest.json")["inputs"].clone();
    assert_eq!(
        roles,
        serde_json::json!([
            { "name": "programs/measured-tool", "role": "program" }, { "name": "sources/src", "role": "source" },
        ])
    );
    std::fs::remove_dir_all(lab.path("bin")).unwrap();
    rerun(&lab, "s", &[]).expect_code(0);
    rerun(&lab, "s", &["--rebuild"]).expect_code(0);
    let median = |run: &str| {
        lab.weighbridge(&format!("summary s/{run} --json")).json()["cells"][0]["metrics"][0]["summary"]["median"]
            .clone()
    };
    assert_eq!((median("rerun-1"), median("rerun-2")), (97.0.into(), 98.0.into()));

    lab.program("measured-tool", "#!/bin/sh\necho figure: 99\n");
    let changed = lab.weighbridge("snapshot R -o t.tar.gz").expect_code(1);
    changed.expect_stderr("bin/measured-tool is not the one that was measured: its SHA-256 is ");
    assert!(!lab.path("t.tar.gz").exists());
}

#[test]
fn program_of_an_option_is_packed() {
    let lab = Lab::new();
    let tool = lab.program("measured-tool", "#!/bin/sh\necho figure: 97\n");
    let head = "name = \"tool\"\nsummary = \"a tool\"\nversion = 1\ncommand = [\"measured-tool\"]\n[[requires]]\nprogram = \"measured-tool\"\npackage = \"measured-tool\"\n";
    lab.define_figure("tool", head);
    std::fs::rename(&tool, lab.path("mine")).unwrap();
    lab.weighbridge(&format!("run tool {QUICK} --into R --program measured-tool=./mine")).expect_code(0);
    let made = lab.weighbridge("snapshot R -o s.tar.gz").expect_code(0);
    assert_eq!(made.err, "");
    lab.weighbridge("unpack s.tar.gz").expect_code(0);
    std::fs::remove_file(lab.path("mine")).unwrap();
    rerun(&lab, "s", &[]).expect_code(0);
}

#[test]
fn programs_of_one_name_are_packed_with_their_commands() {
    let lab = Lab::new();
    let tool = lab.program("measured-tool", "#!/bin/sh\nexit 1\n");
    for (name, figure) in [("first", 97), ("second", 98)] {
        let head = format!("name = \"{name}\"\nsummary = \"a tool\"\nversion = 1\ncommand = [\"measured-tool\"]\n");
        let requires = "[[requires]]\nprogram = \"measured-tool\"\npackage = \"measured-tool\"\n";
        lab.define_figure(name, &(head + requires));
        let file = lab.program(&format!("of-{name}"), &format!("#!/bin/sh\necho figure: {figure}\n"));
        let program = format!("--program measured-tool={}", file.display());
        lab.weighbridge(&format!("run {name} {QUICK} --into R {program}")).expect_code(0);
        std::fs::copy(&file, lab.path(&format!("{name}.backup"))).unwrap();
    }
    lab.weighbridge("snapshot R -o s.tar.gz").expect_code(0);
    lab.weighbridge("unpack s.tar.gz").expect_code(0);
    std::fs::remove_dir_all(tool.parent().unwrap()).unwrap();
    rerun(&lab, "s", &[]).expect_code(0);
    let medians = |run: &str| {
        let study = lab.weighbridge(&format!("summary s/{run} --json")).json();
        [0, 1].map(|cell| study["cells"][cell]["metrics"][0]["summary"]["median"].clone())
    };
    assert_eq!(medians("rerun-1"), [97.0.into(), 98.0.into()] as [serde_json::Value; 2]);
}

#[test]
fn masked_secret_of_a_plan_is_not_measured() {
    let lab = Lab::new();
    lab.write("declared", "declared-secret\n");
    lab.write("p.toml", "[[test]]\nname = \"steady\"\nenv = [\"WORD=declared-secret\"]\n");
    lab.weighbridge(&format!("run --plan p.toml {QUICK} --into R --secret-from declared")).expect_code(0);
    lab.weighbridge("snapshot R -o s.tar.gz").expect_code(0);
    lab.weighbridge("unpack s.tar.gz").expect_code(0);
    insta::assert_snapshot!(rerun(&lab, "s", &[]).transcript(), @r"
    exit 1
    error: a secret in inputs/plan.toml is masked: ***
    help: replace it in this file
    ");
    let plan = lab.read("s/inputs/plan.toml").replace("***", "declared-secret");
    lab.write("s/inputs/plan.toml", &plan);
    rerun(&lab, "s", &[]).expect_code(0);
}

#[test]
fn command_that_is_not_repeated_is_noted_by_its_name() {
    let lab = lab_with_run();
    lab.weighbridge(&format!("run steady:kind=c,id=more {QUICK} --into R")).expect_code(0);
    let mut run_file = lab.read_json("R/run.json");
    run_file["invocations"][0]["command"] = serde_json::json!(["weighbridge", "-q", "import", "--into", "R", "x.json"]);
    lab.write("R/run.json", &run_file.to_string());
    let made = lab.weighbridge("snapshot R").expect_code(0);
    assert_eq!(made.err, "note: `./rerun` does not repeat the command `weighbridge import`\n");
}

#[test]
fn what_a_snapshot_lacks_is_noted() {
    let lab = Lab::new();
    lab.write("declared", "declared-secret\n");
    lab.program("x.sh", "#!/bin/sh\nsleep 60\n");
    let line = format!("run steady {QUICK} --into R --secret-from declared --tool bin/x.sh");
    lab.weighbridge(&line).expect_code_of(&[0, 3]);
    std::fs::remove_file(lab.path("declared")).unwrap();
    let made = lab.weighbridge("snapshot R -o s.tar.gz").expect_code(0);
    insta::assert_snapshot!(made.err.replace(&*lab.path("").display().to_string(), "LAB/"), @r"
    note: `./rerun` does not mask the secrets of `declared`
    note: `./rerun` needs `--tool=LAB/bin/x.sh`, which is not packed
    note: the archive may contain a secret of the run: --secret-from: cannot read `declared`: No such file or directory
    ");
    lab.weighbridge("unpack s.tar.gz").expect_code(0);
    assert!(lab.read("s/rerun").contains(&format!("--tool={}", lab.path("bin/x.sh").display())));
    let packed = lab.weighbridge("pack R").expect_code(0);
    packed.expect_stderr("note: the archive may contain a secret of the run: --secret-from: cannot read `declared`: ");
    std::fs::remove_file(lab.path("bin/x.sh")).unwrap();
    let made = lab.weighbridge("snapshot R -o t.tar.gz").expect_code(0);
    made.expect_stderr("`--tool=bin/x.sh`, which is not packed; its path is relative to the folder of the snapshot");
}

#[test]
fn archives_contain_no_secrets() {
    let lab = Lab::new();
    lab.write("declared", "declared-secret\n");
    let mut command =
        lab.command(&format!("run steady {QUICK} --into R --secret-from declared --secret-from env:MY_WORD"));
    command.args([
        "--metadata",
        "note=of declared-secret",
        "--tool",
        "sh -c 'sleep 60' -- --token planted-tool declared-word",
    ]);
    lab.run_command(command.env("MY_WORD", "declared-word")).expect_code(0);
    let snapshot = |file: &str| {
        let mut command = lab.command(&format!("snapshot R -o {file}"));
        let command = command.env("MY_WORD", "declared-word").env("WEIGHBRIDGE_TOKEN", "planted-variable");
        lab.run_command(command.env("WEIGHBRIDGE_NOTE", "of declared-secret"))
    };
    snapshot("s.tar.gz").expect_code(0);
    lab.weighbridge("pack R").expect_code(0);
    for file in ["s.tar.gz", "R.tar.gz"] {
        assert_eq!(lines_with(&lab.path(file), &["declared-secret", "declared-word", "planted"]), 0, "{file}");
        assert!(lines_with(&lab.path(file), &["run.json"]) > 0, "{file}");
    }
    // What was masked cannot be repeated.
    lab.weighbridge("unpack s.tar.gz").expect_code(0);
    assert!(lab.read("s/rerun").contains("set -- --secret-from env:MY_WORD \"$@\""), "{}", lab.read("s/rerun"));
    let masked = rerun(&lab, "s", &[]);
    lab.write("src/main.c", "char *password = \"declared-word\";\n");
    lab.write(
        "R/inputs.json",
        &format!(r#"{{"sources": [{{"path": "{}", "as": "sources/src"}}]}}"#, lab.path("src").display()),
    );
    let refused = snapshot("t.tar.gz");
    let all = masked.transcript() + &refused.transcript().replace(&*lab.path("").display().to_string(), "LAB/");
    insta::assert_snapshot!(all, @r"
    exit 1
    error: a secret of the recorded command is masked: ***
    help: replace it in this script, or pass the secret in an environment variable
    exit 1
    error: LAB/src/main.c contains a declared secret
    help: archives are handed on: remove the secret from the file
    ");
    assert!(!lab.path("t.tar.gz").exists());
    lab.write("R/inputs.json", "{}");
    lab.write("R/note.txt", "of another-secret");
    lab.write("another", "another-secret");
    lab.weighbridge("pack R -o t.tar.gz --secret-from another")
        .expect_code(1)
        .expect_stderr("R/note.txt contains a declared secret");
}

#[test]
fn run_without_a_command_that_can_be_repeated_has_no_snapshot() {
    let lab = Lab::new();
    lab.write("hyperfine.json", r#"{"results": [{"command": "true", "times": [1.5]}]}"#);
    lab.weighbridge("import --into R hyperfine.json").expect_code(0);
    insta::assert_snapshot!(lab.weighbridge("snapshot R").transcript(), @r"
    exit 3
    error: R has no command that can be repeated
    help: `weighbridge pack R` archives the run alone
    ");
}
