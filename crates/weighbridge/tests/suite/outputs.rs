//! Every option that writes a file, on every kind of file: nothing that exists is destroyed.

use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

use rustix::fs::{CWD, FileType, Mode, XattrFlags, getxattr, makedev, mknodat, setxattr};

use crate::contention;
use crate::lab::{CommandResult, Lab};
use crate::net::place::{NetLab, Server};
use crate::peers_run;

/// What was in a file that exists.
const OLD: &str = "what was there before\n";

/// A line of `tests/fixtures/outputs`.
#[derive(Debug, Clone, Copy)]
struct Scenario {
    option: &'static str,
    command: &'static str,
    existing: Existing,
    begin: &'static str,
    end: &'static str,
}

/// What becomes of a regular file that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Existing {
    Replaced,
    /// The command refuses to write it.
    Kept,
    Appended,
}

impl Scenario {
    /// Those of the fixture that have a command of their own.
    fn all() -> impl Iterator<Item = Self> {
        let lines = include_str!("../fixtures/outputs").lines().filter(|line| !line.starts_with('#'));
        lines.filter_map(|line| {
            let fields: Vec<&str> = line.split('|').map(str::trim).collect();
            let [option, command, existing, begin, end] = fields[..] else {
                assert!(matches!(fields[..], [_, other] if other.starts_with("as ")), "{line}");
                return None;
            };
            let existing = match existing {
                "replace" => Existing::Replaced,
                "keep" => Existing::Kept,
                "append" => Existing::Appended,
                other => panic!("{other}"),
            };
            Some(Self { option, command, existing, begin, end })
        })
    }

    /// Whether the option names one file, which can be standard output; not the beginning of names, nor a folder.
    fn is_file(&self) -> bool {
        self.command.contains("{file}")
    }

    /// Whether a file has this beginning and this end, so that nothing else can be in it.
    fn is_whole(&self, content: &[u8]) -> bool {
        let begin = match self.begin {
            "GZIP" => &b"\x1f\x8b"[..],
            "‰PNG" => b"\x89PNG",
            text => text.as_bytes(),
        };
        let end = self.end.replace('¶', "\n");
        !content.is_empty() && content.starts_with(begin) && content.ends_with(end.as_bytes())
    }
}

/// A lab with what the commands read.
struct Outputs {
    net: NetLab,
    server: Server,
    /// Whether this machine has a device for `format iocost-tune`.
    has_device: bool,
}

impl Outputs {
    fn new() -> Self {
        let (net, server) = NetLab::with_server();
        let lab = &net.lab;
        for run in ["R", "S"] {
            lab.weighbridge(&format!("run steady --samples 6 --warm-up 0 -q --into {run}")).expect_code(0);
        }
        lab.weighbridge("model fit --linear R S -o model.json").expect_code(0);
        lab.write("peers.toml", &peers_run::matrix(&["good"]));
        let quick = peers_run::QUICK;
        lab.weighbridge(&format!("peers run peers.toml --transport-select tcp --into P -q {quick}")).expect_code(0);
        lab.write("params.toml", "control-period = \"100ms\"\nfile-size-mean = \"256k\"\nsleep-mean = \"3ms\"\n");
        lab.write(
            "profile.xml",
            r#"<profile name="p"><group nthreads="1"><transaction iterations="1">
                <flowop type="connect" options="remotehost=127.0.0.1 protocol=tcp"/></transaction>
                <transaction iterations="10"><flowop type="write" options="size=64"/></transaction>
                <transaction iterations="1"><flowop type="disconnect"/></transaction></group></profile>"#,
        );
        let device = contention::device();
        if let Some(device) = &device {
            contention::write_run(lab, "T", device);
        }
        Self { net, server, has_device: device.is_some() }
    }

    /// The words of a scenario's command, with this output.
    fn words(&self, scenario: &Scenario, output: &Path) -> Vec<String> {
        let server = format!("127.0.0.1:{}", self.server.port);
        let fill = |word: &str| {
            let output = output.display().to_string();
            let word = ["{file}", "{prefix}", "{folder}"]
                .iter()
                .fold(word.to_owned(), |word, name| word.replace(name, &output));
            word.replace("{server}", &server).replace("{port}", &self.server.port.to_string())
        };
        let mut words: Vec<String> = scenario.command.split_whitespace().map(fill).collect();
        // Profiles name a host, whose port is an option.
        match words[..] {
            [_, ref name, ..] if name == "run" && words[0] == "net" => {
                words.extend(["--server".to_owned(), format!("127.0.0.1={server}")]);
            }
            [_, ref name, ..] if name == "uperf" => words.extend(["-P".to_owned(), self.server.port.to_string()]),
            _ => {}
        }
        words
    }

    /// Runs a scenario's command through `sh`, which executes `script` with the command as its arguments.
    fn run(&self, scenario: &Scenario, output: &Path, script: &str) -> Output {
        let inner = self.net.command("");
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(inner.get_program()).args(self.words(scenario, output));
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.current_dir(inner.get_current_dir().unwrap()).output().unwrap()
    }
}

/// One scenario: a fresh folder for each kind of file.
struct Check<'a> {
    outputs: &'a Outputs,
    scenario: Scenario,
    folder: PathBuf,
    /// The exit status of a command that writes a new file, and the first of its files, below the folder.
    code: Option<i32>,
    file: PathBuf,
}

impl<'a> Check<'a> {
    /// Writes a new file.
    fn begin(outputs: &'a Outputs, scenario: Scenario) -> Self {
        let folder = outputs.net.lab.path(&format!("outputs/{}", scenario.option.replace(' ', "_")));
        let mut check = Self { outputs, scenario, folder, code: None, file: PathBuf::new() };
        let place = check.place("new");
        let ran = check.run(&place, "exec \"$@\"");
        check.code = ran.status.code();
        let mut files = files(&place);
        assert!(!files.is_empty(), "{}: nothing is written: {}", scenario.option, text(&ran));
        check.file = files.swap_remove(0);
        assert!(matches!(check.code, Some(0..=3)), "{}: {}", scenario.option, text(&ran));
        check.expect_whole("new", &fs::read(place.join(&check.file)).unwrap(), &ran);
        let mode = fs::metadata(place.join(&check.file)).unwrap().mode() & 0o777;
        // A token is for its owner alone.
        let expected = if scenario.option.starts_with("net token") { 0o600 } else { 0o644 };
        assert_eq!(mode, expected, "{}: the umask is respected", scenario.option);
        check
    }

    /// A new folder for a kind of file.
    fn place(&self, kind: &str) -> PathBuf {
        let place = self.folder.join(kind);
        fs::create_dir_all(&place).unwrap();
        place
    }

    /// A new folder, and in it the path of the file that is written.
    fn target(&self, kind: &str) -> (PathBuf, PathBuf) {
        let place = self.place(kind);
        let target = place.join(&self.file);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        // What was found is not searched for again.
        let journal = |place: &Path| place.join("out.journal");
        if kind != "new" && journal(&self.folder.join("new")).exists() {
            fs::copy(journal(&self.folder.join("new")), journal(&place)).unwrap();
        }
        (place, target)
    }

    /// Runs the command, whose output is `out` in `place`.
    fn run(&self, place: &Path, script: &str) -> Output {
        self.outputs.run(&self.scenario, &place.join("out"), &format!("umask 022; {script}"))
    }

    fn expect_whole(&self, kind: &str, content: &[u8], ran: &Output) {
        let shown = String::from_utf8_lossy(&content[..content.len().min(500)]);
        assert!(self.scenario.is_whole(content), "{}, {kind}: `{shown}`\n{}", self.scenario.option, text(ran));
    }

    fn expect_code(&self, kind: &str, ran: &Output) {
        assert_eq!(ran.status.code(), self.code, "{}, {kind}: {}", self.scenario.option, text(ran));
    }

    /// The content of a file that existed, after the command.
    fn expect_existing(&self, kind: &str, file: &Path, ran: &Output) {
        let content = fs::read(file).unwrap();
        match self.scenario.existing {
            Existing::Replaced => self.expect_whole(kind, &content, ran),
            Existing::Kept => {
                assert_eq!(content, OLD.as_bytes(), "{}, {kind}", self.scenario.option);
                assert_eq!(ran.status.code(), Some(1), "{}, {kind}", self.scenario.option);
                assert!(text(ran).contains(" exists already"), "{}, {kind}: {}", self.scenario.option, text(ran));
                return;
            }
            Existing::Appended => {
                let rest = content.strip_prefix(OLD.as_bytes());
                self.expect_whole(kind, rest.unwrap_or_else(|| panic!("{}, {kind}", self.scenario.option)), ran);
            }
        }
        self.expect_code(kind, ran);
    }

    fn regular_file(&self) {
        let (place, target) = self.target("regular");
        fs::write(&target, OLD).unwrap();
        fs::set_permissions(&target, Permissions::from_mode(0o640)).unwrap();
        let ran = self.run(&place, "exec \"$@\"");
        self.expect_existing("regular file", &target, &ran);
        assert_eq!(fs::metadata(&target).unwrap().mode() & 0o7777, 0o640, "{}: its mode is kept", self.scenario.option);
        let beside: BTreeSet<PathBuf> = files(&place).into_iter().collect();
        let known: BTreeSet<PathBuf> = files(&self.folder.join("new")).into_iter().collect();
        assert!(beside.is_subset(&known), "{}: something is left behind: {beside:?}", self.scenario.option);
    }

    fn links(&self) {
        for (kind, exists) in [("link", true), ("dangling-link", false)] {
            let (place, target) = self.target(kind);
            let end = self.folder.join(format!("{kind}-target"));
            if exists {
                fs::write(&end, OLD).unwrap();
            }
            symlink(&end, &target).unwrap();
            let ran = self.run(&place, "exec \"$@\"");
            assert!(fs::symlink_metadata(&target).unwrap().is_symlink(), "{}, {kind}: replaced", self.scenario.option);
            if exists {
                self.expect_existing(kind, &end, &ran);
            } else {
                self.expect_whole(kind, &fs::read(&end).unwrap(), &ran);
                self.expect_code(kind, &ran);
            }
        }
    }

    /// What a file has that another one in its place would not have.
    fn hard_links(&self) {
        let (place, target) = self.target("hard-link");
        let other = self.folder.join("hard-link-other");
        fs::write(&target, OLD).unwrap();
        fs::hard_link(&target, &other).unwrap();
        let has_attributes = setxattr(&target, "user.note", b"mine", XattrFlags::empty()).is_ok();
        let ran = self.run(&place, "exec \"$@\"");
        self.expect_existing("hard link", &other, &ran);
        let inode = |file| fs::metadata(file).unwrap().ino();
        assert_eq!(inode(&target), inode(&other), "{}: the link was cut", self.scenario.option);
        let kept = getxattr(&target, "user.note", &mut [0_u8; 8][..]);
        assert_eq!(kept.is_ok(), has_attributes, "{}: an attribute is lost", self.scenario.option);
    }

    /// A device that takes everything, and one that takes nothing. They are nodes of their own: nothing here can damage those
    /// of the machine.
    fn devices(&self) {
        let (place, target) = self.target("null");
        mknodat(CWD, &target, FileType::CharacterDevice, Mode::from(0o666), makedev(1, 3)).unwrap();
        let ran = self.run(&place, "exec \"$@\"");
        self.expect_code("/dev/null", &ran);
        let metadata = fs::symlink_metadata(&target).unwrap();
        assert!(metadata.file_type().is_char_device(), "{}: a device was replaced", self.scenario.option);

        let (place, target) = self.target("full");
        mknodat(CWD, &target, FileType::CharacterDevice, Mode::from(0o666), makedev(1, 7)).unwrap();
        let ran = self.run(&place, "exec \"$@\"");
        assert!(text(&ran).contains("No space left on device"), "{}: {}", self.scenario.option, text(&ran));
        match self.scenario.option {
            // What is measured matters more than its log.
            "--log" => {
                self.expect_code("/dev/full", &ran);
                assert_eq!(text(&ran).matches("warning: the log lacks lines").count(), 1, "{}", text(&ran));
            }
            option => assert_eq!(ran.status.code(), Some(1), "{option}: {}", text(&ran)),
        }
        assert!(fs::symlink_metadata(&target).unwrap().file_type().is_char_device());
    }

    fn fifo(&self) {
        let (place, target) = self.target("fifo");
        mknodat(CWD, &target, FileType::Fifo, Mode::from(0o600), 0).unwrap();
        // A command that never opens it would leave its reader waiting.
        let mut reader = Command::new("timeout");
        let reader = reader.args(["600", "cat"]).arg(&target).stdout(Stdio::piped()).spawn().unwrap();
        let reader = std::thread::spawn(|| reader.wait_with_output());
        let ran = self.run(&place, "exec \"$@\"");
        let read = reader.join().unwrap().unwrap();
        self.expect_whole("fifo", &read.stdout, &ran);
        self.expect_code("fifo", &ran);
        assert!(fs::symlink_metadata(&target).unwrap().file_type().is_fifo());
    }

    /// What a run has recorded stays, also where the command has no part in that run.
    fn record(&self) {
        let (place, target) = self.target("run/Localhost/t/0000");
        let run = self.folder.join("run");
        for file in [&run.join("run.json"), &run.join("journal.jsonl"), &place.join("definition.json"), &target] {
            fs::write(file, OLD).unwrap();
        }
        let ran = self.run(&place, "exec \"$@\"");
        assert_eq!(ran.status.code(), Some(1), "{}: {}", self.scenario.option, text(&ran));
        let refusals = ["it is a record of results", " exists already"];
        assert!(
            refusals.iter().any(|refusal| text(&ran).contains(refusal)),
            "{}: {}",
            self.scenario.option,
            text(&ran)
        );
        assert_eq!(fs::read(&target).unwrap(), OLD.as_bytes(), "{}", self.scenario.option);
    }

    /// Everything else goes to standard error.
    fn standard_output(&self) {
        for name in ["-", "/dev/stdout", "/dev/fd/1"] {
            let ran = self.outputs.run(&self.scenario, Path::new(name), "exec \"$@\"");
            self.expect_whole(name, &ran.stdout, &ran);
            self.expect_code(name, &ran);
        }
        assert!(!self.outputs.net.lab.path("-").exists());
        // As process substitution passes a pipe.
        let ran = self.outputs.run(&self.scenario, Path::new("/dev/fd/3"), "exec \"$@\" 3>&1 >/dev/null");
        self.expect_whole("/dev/fd/3", &ran.stdout, &ran);
        self.expect_code("/dev/fd/3", &ran);
        // A full disk.
        let ran = self.outputs.run(&self.scenario, Path::new("-"), "exec \"$@\" >/dev/full");
        assert!(text(&ran).contains("No space left on device"), "{}: {}", self.scenario.option, text(&ran));
    }

    /// A file that cannot be replaced, as containers share one with their host.
    fn mount_point(&self) {
        let (place, target) = self.target("mount-point");
        let source = self.folder.join("mounted");
        for file in [&target, &source] {
            fs::write(file, OLD).unwrap();
        }
        let (source_name, target_name) = (source.display(), target.display());
        let mount = format!("mount --bind {source_name} {target_name} && exec \"$@\"");
        let ran = self.run(&place, &format!("exec unshare --mount --propagation private sh -c '{mount}' sh \"$@\""));
        self.expect_existing("mount point", &source, &ran);
    }
}

/// The files below a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = VecDeque::from([folder.to_owned()]);
    while let Some(next) = folders.pop_front() {
        for entry in fs::read_dir(next).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                folders.push_back(entry.path())
            } else {
                found.push(entry.path().strip_prefix(folder).unwrap().to_owned())
            }
        }
    }
    found.sort();
    found
}

fn text(ran: &Output) -> String {
    format!("{:?}: {}", ran.status.code(), String::from_utf8_lossy(&ran.stderr))
}

/// Whether device nodes can be made and opened in this folder; says so if not.
fn has_devices(lab: &Lab) -> bool {
    let node = lab.path("node");
    let made = mknodat(CWD, &node, FileType::CharacterDevice, Mode::from(0o666), makedev(1, 3)).map_err(Into::into);
    let opened = made.and_then(|()| fs::File::options().write(true).open(&node));
    match opened {
        Ok(_) => true,
        Err(error) => {
            wb_test_skip::skip!("no device nodes can be made in {}: {error}", node.display());
            false
        }
    }
}

/// How many kinds of files an option is tried on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kinds {
    /// Those that a plain command meets, and another that changes from option to option: all of them use one writer.
    Some,
    All,
}

#[test]
fn every_option_that_writes_leaves_what_exists_intact() {
    try_every_option(Kinds::Some);
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn soak_every_option_that_writes_leaves_every_kind_of_file_intact() {
    try_every_option(Kinds::All);
}

fn try_every_option(kinds: Kinds) {
    let outputs = Outputs::new();
    let has_devices = has_devices(&outputs.net.lab);
    let scenarios = Scenario::all().filter(|scenario| outputs.has_device || !scenario.command.contains("-r T"));
    let queue = Mutex::new(scenarios.enumerate().collect::<VecDeque<(usize, Scenario)>>());
    let next = || queue.lock().unwrap().pop_front();
    let work = || {
        while let Some((index, scenario)) = next() {
            let check = Check::begin(&outputs, scenario);
            check.regular_file();
            if !scenario.command.contains("{folder}") {
                check.record();
            }
            let mut others: Vec<&dyn Fn()> = Vec::new();
            let (links, hard_links, fifo) = (|| check.links(), || check.hard_links(), || check.fifo());
            let (devices, mount_point, output) =
                (|| check.devices(), || check.mount_point(), || check.standard_output());
            others.extend([&links as &dyn Fn(), &hard_links, &fifo]);
            if has_devices {
                others.extend([&devices as &dyn Fn(), &mount_point]);
            }
            if scenario.is_file() {
                others.push(&output);
            }
            let count = others.len();
            for (place, other) in others.into_iter().enumerate() {
                if kinds == Kinds::All || (place + index) % count == 0 {
                    other();
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(work);
        }
    });
}

#[test]
fn standard_output_takes_one_file_and_no_prefix() {
    let lab = Lab::new();
    lab.weighbridge("run steady --samples 1 -q --into R").expect_code_of(&[0, 3]);
    mknodat(CWD, lab.path("fifo"), FileType::Fifo, Mode::from(0o600), 0).unwrap();
    let refused = [
        "compare R R --html - --markdown /dev/stdout",
        "report R --csv -",
        "report R --csv /dev/null",
        "report R --csv /dev/stderr",
        "report R --csv fifo",
    ];
    insta::assert_snapshot!(refused.map(|line| lab.weighbridge(line).transcript()).join("\n"), @"
    exit 1
    error: `--html <FILE>` and `--markdown <FILE>` both write to standard output
    help: name a file with one of them

    exit 1
    error: invalid --csv `-`: expected the beginning of the names of several files, not standard output
    help: `weighbridge report --help` describes all options

    exit 1
    error: invalid --csv `/dev/null`: expected the beginning of the names of several files, not a device, a FIFO, a socket or a descriptor
    help: `weighbridge report --help` describes all options

    exit 1
    error: invalid --csv `/dev/stderr`: expected the beginning of the names of several files, not a device, a FIFO, a socket or a descriptor
    help: `weighbridge report --help` describes all options

    exit 1
    error: invalid --csv `fifo`: expected the beginning of the names of several files, not a device, a FIFO, a socket or a descriptor
    help: `weighbridge report --help` describes all options
    ");
    assert_eq!(fs::read_dir(lab.path("")).unwrap().flatten().filter(|entry| entry.file_name() == "-.csv").count(), 0);
}

#[test]
fn two_outputs_into_one_file_are_refused_by_whatever_names() {
    let lab = Lab::new();
    lab.weighbridge("run steady --samples 1 -q --into R").expect_code_of(&[0, 3]);
    fs::create_dir(lab.path("below")).unwrap();
    symlink("lb", lab.path("la")).unwrap();
    symlink("below/file.csv", lab.path("linked.csv")).unwrap();
    let refused = [
        "compare R R --html la --junit lb",
        "compare R R --html la --junit below/../lb",
        "compare R R --html below/file.csv --csv linked",
    ];
    insta::assert_snapshot!(refused.map(|line| lab.weighbridge(line).transcript()).join("\n"), @"
    exit 1
    error: `--html <FILE>` and `--junit <FILE>` would both write `lb`
    help: name a file for each

    exit 1
    error: `--html <FILE>` and `--junit <FILE>` would both write `below/../lb`
    help: name a file for each

    exit 1
    error: `--csv <PREFIX>` and `--html <FILE>` would both write `below/file.csv`
    help: name a file for each
    ");
    assert!(!lab.path("lb").exists() && fs::read_dir(lab.path("below")).unwrap().next().is_none());
}

// Standard error counted as a file where it was one.
#[test]
fn standard_error_takes_several_outputs_whatever_it_is() {
    let lab = Lab::new();
    lab.weighbridge("run steady --samples 1 -q --into R").expect_code_of(&[0, 3]);
    let line = "compare R R --html /dev/stderr --junit /dev/stderr";
    let file = fs::File::create(lab.path("errors")).unwrap();
    let to_pipe = lab.weighbridge(line);
    let to_file = lab.command(line).stderr(file).status().unwrap();
    assert_eq!(to_file.code(), Some(to_pipe.code), "{}", to_pipe.transcript());
    let (pipe, file) = (to_pipe.err, lab.read("errors"));
    assert!([&pipe, &file].iter().all(|text| text.contains("</html>") && text.contains("</testsuites>")), "{file}");
}

#[test]
fn what_a_command_reads_is_not_replaced() {
    let lab = Lab::new();
    lab.weighbridge("run steady --samples 1 -q --into R").expect_code_of(&[0, 3]);
    lab.weighbridge("model fit --linear R -o model.json").expect_code(0);
    let line = "compare R R -m model.json --html model.json";
    let files = ["model.json", "R/journal.jsonl", "R/run.json", "R/Localhost/steady/0000/result.json"];
    let contents = || files.map(|file| fs::read(lab.path(file)).unwrap());
    let before = contents();
    let lines = files[1..].iter().map(|file| format!("report R --html {file}"));
    let linked = "report R --log link";
    symlink(lab.path("R/journal.jsonl"), lab.path("link")).unwrap();
    let lines: Vec<String> = [line.to_owned(), linked.to_owned()].into_iter().chain(lines).collect();
    insta::assert_snapshot!(lines.iter().map(|line| lab.weighbridge(line).transcript()).collect::<Vec<_>>().join("\n"), @"
    exit 1
    error: `--html <FILE>` would replace `model.json`, which the command reads
    help: name another file

    exit 1
    error: cannot write `link`: it is a record of results, which would be lost; name another file

    exit 1
    error: cannot write `R/journal.jsonl`: it is a record of results, which would be lost; name another file

    exit 1
    error: cannot write `R/run.json`: it is a record of results, which would be lost; name another file

    exit 1
    error: cannot write `R/Localhost/steady/0000/result.json`: it is a record of results, which would be lost; name another file
    ");
    assert!(before == contents());
    // A page in the folder of its run is none of its records.
    for _ in 0..2 {
        lab.weighbridge("report R --html R/page.html").expect_code(0);
    }
}

#[test]
fn a_reader_that_closes_the_pipe_ends_nothing() {
    let lab = Lab::new();
    lab.weighbridge("run steady --samples 1 -q --into R").expect_code_of(&[0, 3]);
    let program = env!("CARGO_BIN_EXE_weighbridge");
    let mut command = Command::new("bash");
    let line =
        format!("{program} report R --html >(head -c 10 >/dev/null) && {program} report R --html - | head -c 10");
    let ran =
        CommandResult::from(command.args(["-o", "pipefail", "-c", &line]).current_dir(lab.path("")).output().unwrap());
    assert_eq!((ran.code, ran.out.as_str()), (0, "<!DOCTYPE "), "{}", ran.transcript());
}
