//! Other users of a host, who try to have their code started in place of the program.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal};
use tempfile::TempDir;
use wb_fleet::ConnectErrorKind;
use wb_model::Sha256;

use crate::lab::{Fleet, HOST, SshdConfig, run};

/// What is sent to a host, apart from the hash of the program before it and the call after it.
const SCRIPT: &str = include_str!("../../src/bootstrap.sh");
/// Stands for the agent.
const PROGRAM: &str = "#!/bin/sh\necho started as $(id -u)\n";
/// The other user: nobody.
const OTHER: u32 = 65534;
/// The user of the connection, where that is not root.
const USER: u32 = 65533;

/// The cache of a host with the program in it, all of which belongs to one user.
struct Cache {
    folder: TempDir,
    user: u32,
}

/// How another user can be in control of a path.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Control {
    Owner,
    Group,
    Anybody,
    /// Nobody can replace what others own there, but everybody can add to it.
    Sticky,
}

impl Control {
    const ALL: [Self; 4] = [Self::Owner, Self::Group, Self::Anybody, Self::Sticky];

    /// Gives this control over a path to the other user.
    fn grant(self, path: &Path) {
        let mode = match self {
            Self::Owner => return chown(path, Some(OTHER), None).unwrap(),
            Self::Group => 0o775,
            Self::Anybody => 0o757,
            Self::Sticky => 0o1777,
        };
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
}

impl Cache {
    /// Creates a cache with the program; none, with a message, if this process is not root.
    fn new(user: u32) -> Option<Self> {
        let empty = Self::empty(user)?;
        fs::create_dir_all(empty.folder()).unwrap();
        empty.install(PROGRAM);
        for path in empty.levels() {
            chown(path, Some(user), Some(user)).unwrap();
        }
        Some(empty)
    }

    fn empty(user: u32) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            wb_test_skip::skip!("other users need root");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        // Other users must be able to traverse it.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let cache = Self { folder, user };
        fs::create_dir(cache.home()).unwrap();
        chown(cache.home(), Some(user), Some(user)).unwrap();
        Some(cache)
    }

    fn install(&self, program: &str) {
        fs::write(self.program(), program).unwrap();
        fs::set_permissions(self.program(), Permissions::from_mode(0o700)).unwrap();
        chown(self.program(), Some(self.user), Some(self.user)).unwrap();
    }

    /// The value of XDG_CACHE_HOME.
    fn home(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    fn folder(&self) -> PathBuf {
        self.home().join("weighbridge/agent").join(Sha256::digest(PROGRAM.as_bytes()).as_str())
    }

    fn program(&self) -> PathBuf {
        self.folder().join("weighbridge")
    }

    /// All levels of the program's path that belong to this cache.
    fn levels(&self) -> Vec<PathBuf> {
        let program = self.program();
        let levels = program.ancestors().filter(|level| level.starts_with(self.home()));
        levels.map(Path::to_owned).collect()
    }

    /// Runs the script by a shell as the user, with XDG_CACHE_HOME set to `home`; returns what it prints after the
    /// description of the host. If it asks for the program, it gets it.
    fn start_in(&self, shell: &[&str], home: &Path) -> String {
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).env("XDG_CACHE_HOME", home).uid(self.user).gid(self.user);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut input = process.stdin.take().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        let mut read_until = |beginning: &[&str]| loop {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "{shell:?} ended");
            if beginning.iter().any(|beginning| line.starts_with(beginning)) {
                return line.clone();
            }
        };
        // In steps, as the controller sends it: a shell may read ahead of what it executes.
        let sha256 = Sha256::digest(PROGRAM.as_bytes());
        write!(input, "sha256={}\n{SCRIPT}main\n", sha256.as_str()).unwrap();
        read_until(&["folder "]);
        writeln!(input, "go").unwrap();
        let mut result = read_until(&["start", "send ", "refused ", "untrusted "]);
        if result.starts_with("send ") {
            write!(input, "plain {}\n{PROGRAM}", PROGRAM.len()).unwrap();
        }
        drop(input);
        output.read_to_string(&mut result).unwrap();
        process.wait().unwrap();
        result
    }

    fn start(&self, shell: &[&str]) -> String {
        self.start_in(shell, &self.home())
    }

    fn started(&self) -> String {
        format!("start\nstarted as {}\n", self.user)
    }
}

/// The shells of this machine that hosts have as `/bin/sh`.
fn shells() -> Vec<Vec<&'static str>> {
    let all = [vec!["/bin/sh"], vec!["/bin/bash", "--posix"], vec!["/bin/busybox", "sh"], vec!["/bin/ksh"]];
    all.into_iter().filter(|shell| Path::new(shell[0]).exists()).collect()
}

#[test]
fn a_program_that_another_user_can_replace_is_not_started_whichever_level_of_its_path_that_is() {
    for user in [0, USER] {
        let Some(cache) = Cache::new(user) else { return };
        for shell in shells() {
            assert_eq!(cache.start(&shell), cache.started(), "{shell:?}");
        }
        for level in cache.levels().into_iter().filter(|level| *level != cache.program()) {
            for control in Control::ALL {
                // What others own in a sticky folder is safe there, unless the program itself is in it.
                let is_safe = control == Control::Sticky && level != cache.folder();
                let before = fs::metadata(&level).unwrap().permissions();
                control.grant(&level);
                for shell in shells() {
                    let output = cache.start(&shell);
                    let expected = match control {
                        _ if is_safe => cache.started(),
                        Control::Owner => format!("untrusted {} belongs to user nobody\n", level.display()),
                        _ => format!("untrusted {} is writable by other users (", level.display()),
                    };
                    assert!(output.starts_with(&expected), "{control:?} of {level:?}, {shell:?}: {output}");
                    assert_eq!(output.contains("started"), is_safe, "{output}");
                }
                chown(&level, Some(user), Some(user)).unwrap();
                fs::set_permissions(&level, before).unwrap();
            }
        }
    }
}

// Between hash and start, the owner of a folder above could have another program run as root.
#[test]
fn a_file_that_another_user_can_write_is_replaced_by_the_program() {
    for user in [0, USER] {
        let Some(cache) = Cache::new(user) else { return };
        let linked = cache.folder.path().join("linked");
        for control in [Some(Control::Owner), Some(Control::Group), Some(Control::Anybody), None] {
            match control {
                Some(control) => control.grant(&cache.program()),
                None => {
                    fs::copy(cache.program(), &linked).unwrap();
                    fs::remove_file(cache.program()).unwrap();
                    symlink(&linked, cache.program()).unwrap();
                }
            }
            for shell in shells() {
                let output = cache.start(&shell);
                assert!(output.ends_with(&cache.started()), "{control:?}, {shell:?}: {output}");
                let metadata = fs::symlink_metadata(cache.program()).unwrap();
                let owner = std::os::unix::fs::MetadataExt::uid(&metadata);
                assert_eq!((owner, metadata.permissions().mode()), (user, 0o100_700), "{control:?}, {shell:?}");
            }
        }
    }
}

#[test]
fn a_program_is_hashed_again_when_it_has_changed() {
    for shell in shells() {
        let Some(cache) = Cache::new(USER) else { return };
        let note = cache.folder().join("checked");
        for _ in 0..2 {
            assert_eq!(cache.start(&shell), cache.started());
            let metadata = fs::metadata(cache.program()).unwrap();
            let changed = metadata.ctime_nsec().to_string();
            let is_known = !fs::read_to_string(&note).unwrap().is_empty();
            assert!(!is_known || fs::read_to_string(&note).unwrap().contains(&changed), "{shell:?}");
            assert_eq!(fs::metadata(&note).unwrap().mode() & 0o777, 0o600);
        }
        // Damaged in place, with its size and its time of modification.
        let modified = fs::metadata(cache.program()).unwrap().modified().unwrap();
        fs::write(cache.program(), PROGRAM.replace('e', "x")).unwrap();
        fs::File::options().write(true).open(cache.program()).unwrap().set_modified(modified).unwrap();
        assert!(cache.start(&shell).starts_with("send "), "{shell:?}");
        assert_eq!(cache.start(&shell), cache.started());
        assert_eq!(fs::read_to_string(cache.program()).unwrap(), PROGRAM);
    }
}

#[test]
fn a_linked_cache_is_used_if_neither_the_link_nor_its_target_is_another_users() {
    let Some(cache) = Cache::empty(USER) else { return };
    let (link, target) = (cache.folder.path().join("link"), cache.folder.path().join("elsewhere/disk"));
    fs::create_dir_all(&target).unwrap();
    chown(&target, Some(USER), None).unwrap();
    symlink("elsewhere/disk", &link).unwrap();
    for shell in shells() {
        let output = cache.start_in(&shell, &link);
        assert!(output.ends_with(&cache.started()), "{shell:?}: {output}");
        Control::Owner.grant(target.parent().unwrap());
        let elsewhere = format!("untrusted {}/elsewhere belongs to user nobody\n", cache.folder.path().display());
        assert_eq!(cache.start_in(&shell, &link), elsewhere, "{shell:?}");
        chown(target.parent().unwrap(), Some(0), None).unwrap();
        std::os::unix::fs::lchown(&link, Some(OTHER), None).unwrap();
        assert_eq!(
            cache.start_in(&shell, &link),
            format!("untrusted {} belongs to user nobody\n", link.display()),
            "{shell:?}"
        );
        std::os::unix::fs::lchown(&link, Some(0), None).unwrap();
        fs::remove_dir_all(target.join("weighbridge")).unwrap();
    }
}

/// A shell script that the other user runs until this is dropped.
struct Attack(Child);

impl Attack {
    fn start(script: &str, cache: &Path) -> Self {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script, "attack"]).arg(cache).uid(OTHER).gid(OTHER);
        Self(command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Attack {
    fn drop(&mut self) {
        // With the command that it is executing, which may be in the middle of a rename: it has ended once nobody has its
        // output.
        rustix::process::kill_process_group(Pid::from_child(&self.0), Signal::KILL).unwrap();
        self.0.wait().unwrap();
        std::io::copy(&mut self.0.stdout.take().unwrap(), &mut std::io::sink()).unwrap();
    }
}

/// Exchanges the folder `weighbridge` in the folder `$1` for one with another program, back and forth.
const EXCHANGE: &str = "cd \"$1\" || exit; while :; do \
    mv -T weighbridge good; mv -T evil weighbridge; mv -T weighbridge evil; mv -T good weighbridge; done";

#[test]
fn whoever_owns_a_folder_above_the_program_does_not_get_his_own_started_by_renaming() {
    let Some(cache) = Cache::new(0) else { return };
    // The other user's copy has what the script expects, and a program that does something else.
    let mark = cache.folder.path().join("mark");
    let evil = cache.home().join("evil");
    let program = evil.join("agent").join(Sha256::digest(PROGRAM.as_bytes()).as_str()).join("weighbridge");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::write(&program, format!("#!/bin/sh\ntouch {}\n", mark.display())).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    for level in program.ancestors().filter(|level| level.starts_with(&evil)) {
        chown(level, Some(OTHER), None).unwrap();
    }
    chown(cache.home(), Some(OTHER), None).unwrap();
    let attack = Attack::start(EXCHANGE, &cache.home());
    let expected = format!("untrusted {} belongs to user nobody\n", cache.home().display());
    for _ in 0..100 {
        assert_eq!(cache.start(&["/bin/sh"]), expected);
    }
    drop(attack);
    assert!(!mark.exists());
}

#[test]
fn a_shared_sticky_folder_is_used_unless_another_user_was_there_first() {
    // As `XDG_CACHE_HOME=/tmp`.
    let Some(cache) = Cache::empty(0) else { return };
    Control::Sticky.grant(&cache.home());
    let attack = Attack::start(EXCHANGE, &cache.home());
    for shell in shells() {
        for _ in 0..20 {
            let output = cache.start(&shell);
            assert!(output.ends_with(&cache.started()), "{shell:?}: {output}");
        }
        fs::remove_dir_all(cache.home().join("weighbridge")).unwrap();
    }
    drop(attack);
    let (first, elsewhere) = (cache.home().join("weighbridge"), cache.folder.path().join("elsewhere"));
    fs::create_dir(&elsewhere).unwrap();
    let plant_folder = || fs::create_dir(&first).unwrap();
    let plant_link = || symlink(&elsewhere, &first).unwrap();
    let kinds: [(&str, &dyn Fn()); 2] = [("a folder", &plant_folder), ("a link", &plant_link)];
    for (name, plant) in kinds {
        plant();
        std::os::unix::fs::lchown(&first, Some(OTHER), None).unwrap();
        for shell in shells() {
            let expected = format!("untrusted {} belongs to user nobody\n", first.display());
            assert_eq!(cache.start(&shell), expected, "{name}, {shell:?}");
        }
        let _ = fs::remove_dir(&first).or_else(|_| fs::remove_file(&first));
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "{name}");
    }
}

#[test]
fn an_untrusted_cache_is_an_error_that_names_the_level_and_the_way_out() {
    let Some(mut fleet) = Fleet::bare(1) else { return };
    let cache = fleet.cache(HOST);
    fs::create_dir(&cache).unwrap();
    Control::Owner.grant(&cache);
    fleet.start(HOST, &SshdConfig::default());
    let error = run(fleet.connect(HOST)).unwrap_err();
    assert!(matches!(*error.kind, ConnectErrorKind::UntrustedCache { .. }), "{error:?}");
    let cache = cache.display();
    assert_eq!(
        error.to_string(),
        format!(
            "`host1` (10.77.0.2) would start the program where another user can replace it, in \
             {cache}/weighbridge/agent/{}: {cache} belongs to user nobody",
            fleet.program().sha256()
        )
    );
    assert_eq!(
        error.help().unwrap(),
        "give that path to the user or to root (`chown`) and to nobody else (`chmod go-w`); XDG_CACHE_HOME on the host \
         moves the cache, to a folder that only its user and root can change"
    );
    assert!(fleet.cached_paths(HOST).is_empty());
    fleet.wait_until_idle(HOST);
}
