//! Runs moved to another machine: a run folder contains everything needed to read it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::json_schema::validate;
use crate::lab::{CommandResult, Lab, copy_folder};

const QUICK: &str = "--min-time 1ms --warm-up 0 --retakes 0 --attempts 1 --precision 1000 -q";

/// A root folder with only the program and runs.
struct EmptyRoot {
    path: PathBuf,
}

impl EmptyRoot {
    /// `None`, with a message, if this user cannot change the root.
    fn new(lab: &Lab) -> Option<Self> {
        let path = lab.path("root");
        std::fs::create_dir(&path).unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_weighbridge"));
        let copy = path.join("weighbridge");
        // By another process: a child that a test starts meanwhile would have a file open that this one writes, and no
        // program can be started while somebody may write to it.
        assert!(Command::new("cp").arg(program).arg(&copy).status().unwrap().success());
        let root = Self { path };
        if root.command("--version").output().is_ok_and(|output| output.status.success()) {
            return Some(root);
        }
        wb_test_skip::skip!("this user can have no root of its own (chroot, or unshare with user namespaces)");
        None
    }

    fn command(&self, line: &str) -> Command {
        let mut command = match std::fs::metadata("/proc/self").unwrap().uid() {
            0 => Command::new("/usr/sbin/chroot"),
            _ => {
                let mut command = Command::new("unshare");
                command.args(["--map-root-user", "/usr/sbin/chroot"]);
                command
            }
        };
        command.arg(&self.path).arg("/weighbridge").args(line.split_whitespace()).env_clear();
        command
    }

    /// Moves a run of the lab here.
    fn take(&self, lab: &Lab, run: &str) {
        std::fs::rename(lab.path(run), self.path.join(run)).unwrap();
    }
}

/// Reads runs with every reading command; returns command line, exit status and output.
fn readings(
    runs: &[&str],
    mut read: impl FnMut(&str) -> CommandResult,
    page: impl Fn() -> String,
) -> Vec<(String, i32, String)> {
    let mut all = Vec::new();
    for run in runs {
        for line in ["summary RUN --json", "study RUN", "format RUN", "solve RUN", "compare RUN RUN --json"] {
            let line = line.replace("RUN", run);
            let ran = read(&line);
            assert_ne!(ran.code, 1, "{line}: {}", ran.transcript());
            all.push((line, ran.code, ran.out));
        }
        let line = format!("report {run} --html page.html");
        let ran = read(&line);
        assert_ne!(ran.code, 1, "{line}: {}", ran.transcript());
        all.push((line, ran.code, page()));
    }
    all
}

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

#[test]
fn example_runs_can_be_read_without_anything_else() {
    let lab = Lab::new();
    let Some(root) = EmptyRoot::new(&lab) else { return };
    copy_folder(&repository("examples"), &lab.path("examples"));
    copy_folder(&repository("tests.d"), &lab.path("examples/tests.d"));
    // The example with shorter times.
    let plan = lab.read("examples/network.toml");
    let shorter = [
        ("\"5s\"", "\"50ms\""),
        ("time=5s", "time=50ms"),
        ("[64, \"16k\"]", "64"),
        ("[64, 1024]", "64"),
        ("[1, 8]", "1"),
        ("[\"tcp\", \"ssl\"]", "\"tcp\""),
    ];
    let plan = shorter.into_iter().fold(plan, |plan, (long, short)| {
        assert!(plan.contains(long), "{long} is missing in the example");
        plan.replace(long, short)
    });
    lab.write("examples/network.toml", &plan);
    let mut definitions: Vec<String> = std::fs::read_dir(lab.path("examples/tests.d"))
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        // 7-Zip's benchmark takes 10 s of CPU time at its smallest.
        .filter(|name| name != "7z")
        .map(|name| match name.as_str() {
            // The default takes a minute on a busy machine.
            "hpcc" => "hpcc:n=200,processes=1".to_owned(),
            // The default is four times the last-level cache, which takes 25 s of CPU time where that is 480 MiB.
            "ramspeed-c" => "ramspeed-c:array-size=1m".to_owned(),
            _ => name,
        })
        .collect();
    definitions.sort();
    for line in [
        "run python-hashes --tests-d examples --samples 2 --into runner".to_owned(),
        "run --plan examples/network.toml --samples 2 --into network".to_owned(),
        // Each takes a tool of its own, some of which compute for seconds.
        format!("run {} --tests-d examples/tests.d --samples 1 --into definitions", definitions.join(" ")),
    ] {
        let ran = lab.weighbridge(&format!("{line} {QUICK}"));
        // Some tools may not be installed here, and cells of a few samples may not converge.
        assert!([0, 3].contains(&ran.code), "{line}: {}", ran.transcript());
    }
    let runs = ["runner", "network", "definitions"];
    let page = |folder: &Path| std::fs::read_to_string(folder.join("page.html")).unwrap();
    let local = readings(&runs, |line| lab.weighbridge(line), || page(&lab.path("")));
    runs.iter().for_each(|run| root.take(&lab, run));
    let remote = readings(&runs, |line| lab.run_command(&mut root.command(line)), || page(&root.path));
    for (local, remote) in local.iter().zip(&remote) {
        assert!(local == remote, "{} differs:\n{}\n{}", local.0, local.2, remote.2);
    }
    // The run contains a copy of the program that was run.
    let list = std::fs::read_to_string(root.path.join("runner/tests.d/python-hashes.files.json")).unwrap();
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let [file] = &list["files"].as_array().unwrap()[..] else { panic!("one file: {list}") };
    assert_eq!((&file["path"], &file["copy"]), (&"runner.py".into(), &"whole".into()), "{list}");
    let copied = std::fs::read(root.path.join("runner/tests.d").join(file["file"].as_str().unwrap())).unwrap();
    assert_eq!(copied, std::fs::read(repository("examples/runner.py")).unwrap());
}

#[test]
fn definition_files_are_recorded_and_inexact_copies_are_reported() {
    let lab = Lab::new();
    let runner = "#!/bin/sh\necho 'figure: 1'; sleep 0.02 # --password zq1\n";
    for name in ["beside", "here"] {
        lab.write(&format!("config/weighbridge/tests.d/lib/{name}.sh"), &runner.replace("zq1", &format!("zq-{name}")));
    }
    let whole = lab.program("whole.sh", "#!/bin/sh\nexec sh \"$@\"\n");
    let large = std::fs::File::create(lab.path("config/weighbridge/tests.d/large.bin")).unwrap();
    large.set_len((16 << 20) + 1).unwrap();
    lab.define_figure(
        "files",
        &format!(
            "name = \"files\"\nsummary = \"names files\"\nversion = 1\n\
             command = [\"{}\", \"{{definition-folder}}/lib/{{script}}.sh\", \"{{definition-folder}}/large.bin\"]\n\
             [[param]]\nname = \"script\"\nhelp = \"which\"\nkind = \"text\"\ndefault = \"here\"\n\
             [[file]]\nname = \"beside.sh\"\npath = \"lib/beside.sh\"\n",
            whole.display()
        ),
    );
    let ran = lab
        .weighbridge(&format!("run files --samples 2 {} --into R", QUICK.trim_end_matches(" -q")))
        .expect_code_of(&[0, 3]);
    for note in [
        "files: `lib/beside.sh` is recorded with its secrets masked",
        "files: `{definition-folder}/lib/here.sh` is recorded with its secrets masked",
        "files: `{definition-folder}/large.bin` is recorded by its hash alone: it is larger than 16m",
    ] {
        assert!(ran.err.contains(note), "{note}: {}", ran.err);
    }
    let list = lab.read("R/tests.d/files.files.json");
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let files = list["files"].as_array().unwrap();
    let copies: Vec<(&str, &str)> =
        files.iter().map(|file| (file["path"].as_str().unwrap(), file["copy"].as_str().unwrap())).collect();
    let whole = whole.display().to_string();
    let expected = [
        (whole.as_str(), "whole"),
        ("lib/beside.sh", "masked"),
        ("{definition-folder}/large.bin", "missing"),
        ("{definition-folder}/lib/here.sh", "masked"),
    ];
    assert_eq!(copies, expected);
    assert!(files.iter().all(|file| file["sha256"].as_str().is_some_and(|hash| hash.len() == 64)), "{list}");
    let schema = lab.weighbridge("schema definition-files").json();
    validate(&schema, &list).unwrap_or_else(|error| panic!("{error}"));
    // The run contains no secret.
    let found = Command::new("grep").args(["-rl", "zq-"]).arg(lab.path("R")).output().unwrap();
    assert!(found.stdout.is_empty(), "{}", String::from_utf8_lossy(&found.stdout));
    std::fs::remove_dir_all(lab.path("config")).unwrap();
    let read = lab.weighbridge("summary R");
    assert_eq!(read.code, ran.code, "{}", read.transcript());
    assert!(!read.err.contains("skipped"), "{}", read.err);
    // Measuring again with only the recorded definition names what is missing.
    let again = lab.weighbridge(&format!("run files --tests-d R/tests.d --samples 2 {QUICK} --into S")).expect_code(3);
    let reason = "missing exact copy of file `beside.sh` in the run: its secrets are masked";
    assert!(format!("{}{}", again.out, again.err).replace('\n', " ").contains(reason), "{}", again.transcript());
}
