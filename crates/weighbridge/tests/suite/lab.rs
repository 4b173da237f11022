//! Test environment: a temporary folder with its own configuration and tests of known outcome, removed after the test.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;

use tempfile::TempDir;
use wb_fleet::Program;

/// A test environment in a temporary folder.
pub(crate) struct Lab {
    folder: TempDir,
    own: Own,
}

/// What commands of a lab have for themselves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Own {
    Nothing,
    /// `/var/lib`
    State,
    Network,
}

/// Result of a command: exit status and output.
pub(crate) struct CommandResult {
    /// Its arguments, if known.
    arguments: String,
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A process that is killed when this is dropped.
pub(crate) struct KillOnDrop(pub(crate) Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        // Killing a process that has exited fails, which is fine.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Copies a folder recursively.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// A test whose figure depends only on its parameter, so that any two runs of it are equal.
const STEADY: &str = r#"
name = "steady"
summary = "a figure that depends on its parameter alone"
version = 1
estimate = "20ms"
command = ["sh", "-c", "sleep 0.02; printf 'figure: %d\\n' \"'$1\"", "sh", "{kind}"]

[[param]]
name = "kind"
help = "which of several equal cells"
kind = "choice"
choices = ["a", "b", "c"]
default = "a"
axis = true
"#;

/// The metric of tests that print `figure: 97`.
pub(crate) const FIGURE: &str = r#"
[[metric]]
name = "figure"
class = "throughput"
unit = "1/s"
primary = true
regex = 'figure: (\S+)'
"#;

/// A line of a shell that sets `random` to hexadecimal digits, without starting programs: samples of commands that start
/// several take most of a test's time.
pub(crate) const RANDOM: &str = "IFS=- read -r random _ </proc/sys/kernel/random/uuid";

/// Puts the program into a host's cache as an earlier connection would have left it, with the note that its hash was right:
/// sending and hashing it take longer than most tests.
pub(crate) fn deploy(cache: &Path) {
    static PROGRAM: LazyLock<Program> =
        LazyLock::new(|| Program::read(Path::new(env!("CARGO_BIN_EXE_weighbridge-agent"))).unwrap());
    let folder = cache.join("weighbridge/agent").join(PROGRAM.sha256());
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("weighbridge"), PROGRAM.uncompressed()).unwrap();
    std::fs::set_permissions(folder.join("weighbridge"), Permissions::from_mode(0o700)).unwrap();
    let state = Command::new("stat").arg("-Lc%d:%i:%s:%z").arg(folder.join("weighbridge")).output().unwrap().stdout;
    std::fs::write(folder.join("checked"), state).unwrap();
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self::of_folder(tempfile::tempdir().unwrap())
    }

    /// A lab whose files are on a disk: files in memory are memory of the control group that writes them.
    pub(crate) fn on_disk() -> Self {
        Self::of_folder(tempfile::tempdir_in("/var/tmp").unwrap())
    }

    fn of_folder(folder: TempDir) -> Self {
        let lab = Self { folder, own: Own::Nothing };
        lab.define_figure("steady", STEADY);
        lab
    }

    /// A lab whose commands have their own `/var/lib`, with an undo log that no other test holds; `None`, with a
    /// message, without the rights for that.
    pub(crate) fn with_own_state() -> Option<Self> {
        let lab = Self { own: Own::State, ..Self::new() };
        std::fs::create_dir(lab.path("state")).unwrap();
        let probe = lab.weighbridge("--version");
        if probe.code == 0 {
            return Some(lab);
        }
        wb_test_skip::skip!("profiles change what only root may, in a mount namespace: {}", probe.err);
        None
    }

    /// A lab whose commands have their own network, where other tests move no bytes; `None`, with a message, without the
    /// rights for that.
    pub(crate) fn with_own_network() -> Option<Self> {
        let lab = Self { own: Own::Network, ..Self::new() };
        let probe = lab.weighbridge("--version");
        if probe.code == 0 {
            return Some(lab);
        }
        wb_test_skip::skip!("bytes on interfaces are counted in a network namespace: {}", probe.err);
        None
    }

    /// A lab whose `ssh` connects any address to this machine, with a separate `/var/lib` per connection, so that they
    /// are different machines to a controller. `None`, with a message, without the rights for that.
    pub(crate) fn with_hosts() -> Option<Self> {
        let lab = Self::new();
        let enter = "unshare --mount --propagation private sh -c 'mount -t tmpfs -o mode=755 lab /var/lib && mkdir -m 1777 /var/lib/locks && WEIGHBRIDGE_LOCKS=/var/lib/locks exec /bin/sh'";
        let cache = lab.path("cache");
        let ssh = lab.program(
            "ssh",
            &format!(
                "#!/bin/sh\ncase \" $* \" in *\" -G \"*) exit 0;; esac\nexport XDG_CACHE_HOME={}\nexec {enter}\n",
                cache.display()
            ),
        );
        let probe = Command::new(ssh).stdin(Stdio::null()).output().unwrap();
        if probe.status.success() {
            deploy(&cache);
            return Some(lab);
        }
        wb_test_skip::skip!("machines side by side need mount namespaces: {}", String::from_utf8_lossy(&probe.stderr));
        None
    }

    /// A lab whose `ssh` connects to these hosts.
    pub(crate) fn with_ssh(hosts: &wb_test_net::SshHosts) -> Self {
        let lab = Self::new();
        lab.program("ssh", &std::fs::read_to_string(hosts.path("ssh")).unwrap());
        lab
    }

    /// A path in the lab.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The text of a file of the lab.
    #[track_caller]
    pub(crate) fn read(&self, name: impl AsRef<Path>) -> String {
        let path = self.folder.path().join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The value in a JSON file of the lab.
    #[track_caller]
    pub(crate) fn read_json(&self, name: impl AsRef<Path>) -> serde_json::Value {
        serde_json::from_str(&self.read(name)).unwrap()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Adds a custom test definition.
    pub(crate) fn define(&self, name: &str, toml: &str) {
        self.write(&format!("config/weighbridge/tests.d/{name}.toml"), toml);
    }

    /// Adds a custom test whose command prints `figure: 97`, a throughput.
    pub(crate) fn define_figure(&self, name: &str, toml: &str) {
        self.define(name, &format!("{toml}{FIGURE}"));
    }

    /// Adds a custom test whose shell script prints `figure: 97`, a throughput.
    pub(crate) fn define_script(&self, name: &str, script: &str) {
        let head = format!("name = \"{name}\"\nsummary = \"a script\"\nversion = 1\n");
        self.define_figure(name, &format!("{head}command = [\"sh\", \"-c\", {}]\n", serde_json::Value::from(script)));
    }

    /// A command of the program, in the lab's folder, with its configuration and its executables first on the PATH.
    pub(crate) fn command(&self, line: &str) -> Command {
        let program = env!("CARGO_BIN_EXE_weighbridge");
        let mut command = Command::new(if self.own == Own::Nothing { program } else { "unshare" });
        match self.own {
            Own::Nothing => &mut command,
            Own::State => command
                .args([
                    "--mount",
                    "--propagation",
                    "private",
                    "sh",
                    "-c",
                    "mount --bind \"$0\" /var/lib && exec \"$@\"",
                ])
                .arg(self.path("state"))
                .arg(program),
            Own::Network => command.args(["--net", "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]).arg(program),
        };
        command
            .args(line.split_whitespace())
            .current_dir(self.folder.path())
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("TMPDIR", self.folder.path())
            .env("WEIGHBRIDGE_LOCKS", self.folder.path())
            .env("PATH", self.search_path())
            .env_remove("NO_COLOR")
            .stdin(Stdio::null());
        command
    }

    /// Its executables are found first, then quick ones in the place of those of the system, then those: shims of version
    /// managers, as for python3, take longer to start than what they start.
    fn search_path(&self) -> String {
        let quick = if Path::new("/usr/bin/clang").exists() {
            concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/bin:")
        } else {
            ""
        };
        format!("{}:{quick}/usr/bin:/bin:{}", self.path("bin").display(), std::env::var("PATH").unwrap())
    }

    /// Writes an executable, which commands find by its name.
    pub(crate) fn program(&self, name: &str, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.write(&format!("bin/{name}"), text);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Runs the program to completion.
    pub(crate) fn weighbridge(&self, line: &str) -> CommandResult {
        self.run_command(&mut self.command(line))
    }

    /// Runs a command to completion.
    pub(crate) fn run_command(&self, command: &mut Command) -> CommandResult {
        let result = CommandResult::from(command.output().unwrap());
        CommandResult { arguments: format!("{:?}", command.get_args()), ..result }
    }

    /// Starts the program in the background.
    pub(crate) fn start(&self, line: &str) -> Child {
        self.command(line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// The events in the journal of a run.
    pub(crate) fn journal(&self, run: &str) -> Vec<serde_json::Value> {
        self.read(format!("{run}/journal.jsonl")).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The processes with the lab's folder in their command line or environment.
    pub(crate) fn processes(&self) -> Vec<String> {
        let marker = self.folder.path().display().to_string();
        let own_pid = std::process::id().to_string();
        let has =
            |path: &Path| std::fs::read(path).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(&marker));
        let entries = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        entries
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy() != own_pid))
            .filter(|path| has(&path.join("cmdline")) || has(&path.join("environ")))
            .map(|path| std::fs::read_to_string(path.join("cmdline")).unwrap_or_default().replace('\0', " "))
            .collect()
    }

    /// Waits until no such process is left; returns those left after ten seconds.
    pub(crate) fn wait_for_processes(&self) -> Vec<String> {
        for _ in 0..200 {
            if self.processes().is_empty() {
                return Vec::new();
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        self.processes()
    }
}

impl From<Output> for CommandResult {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let code = output.status.code().unwrap_or(-1);
        Self { arguments: String::new(), code, out: text(output.stdout), err: text(output.stderr) }
    }
}

impl CommandResult {
    /// Waits for a command that was started with its output piped.
    pub(crate) fn wait_for(child: Child) -> Self {
        child.wait_with_output().unwrap().into()
    }

    /// Requires this exit status.
    #[track_caller]
    pub(crate) fn expect_code(self, code: i32) -> Self {
        self.expect_code_of(&[code])
    }

    /// Requires one of these exit statuses.
    #[track_caller]
    pub(crate) fn expect_code_of(self, codes: &[i32]) -> Self {
        assert!(codes.contains(&self.code), "expected {codes:?}: {}\n{}", self.arguments, self.transcript());
        self
    }

    /// Requires standard output to contain this text.
    #[track_caller]
    pub(crate) fn expect_stdout(&self, text: &str) -> &Self {
        assert!(self.out.contains(text), "expected `{text}`: {}\n{}", self.arguments, self.transcript());
        self
    }

    /// Requires standard error to contain this text.
    #[track_caller]
    pub(crate) fn expect_stderr(&self, text: &str) -> &Self {
        assert!(self.err.contains(text), "expected `{text}`: {}\n{}", self.arguments, self.transcript());
        self
    }

    /// The exit status and both streams, for a snapshot.
    pub(crate) fn transcript(&self) -> String {
        format!("exit {}\n{}{}", self.code, self.out, self.err)
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}\n{}", self.transcript()))
    }
}

/// The lines of a journal without their checksums, as of an earlier version, which a test may change.
pub(crate) fn without_checksums(journal: &str) -> String {
    let lines = journal.split_inclusive('\n').map(|line| match line.rsplit_once(",\"crc32\":") {
        Some((event, _)) => format!("{event}}}\n"),
        None => line.to_owned(),
    });
    lines.collect()
}
