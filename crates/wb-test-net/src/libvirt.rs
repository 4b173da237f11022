//! An isolated libvirt: changes by it and its guests to networks, files and processes stay in its namespaces and vanish
//! with them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::wait_until;

/// Required programs, and the Debian packages that provide them.
const REQUIREMENTS: [(&str, &str); 6] = [
    ("libvirtd", "libvirt-daemon-system"),
    ("virsh", "libvirt-clients"),
    ("virt-install", "virtinst"),
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("dnsmasq", "dnsmasq-base"),
    ("iptables", "iptables"),
];

/// Puts libvirt's network, mounts and processes into namespaces, with the files of a fresh installation: only the
/// configuration and Debian's network `default` are copied. `$1`: their folder, `$2`: whether to start the daemons.
const SETUP_SCRIPT: &str = r#"
ip link set lo up
mount -t tmpfs -o mode=755 lab /run
mkdir -m 1777 /run/lock
mkdir "$1/lib" "$1/lib/images" "$1/etc" "$1/etc/qemu" "$1/etc/qemu/networks" "$1/cache" "$1/logs" "$1/all"
cp /etc/libvirt/*.conf "$1/etc/"
cp /usr/share/libvirt/networks/default.xml "$1/etc/qemu/networks/"
mount --bind /var/lib "$1/all"
mount -t tmpfs -o mode=755 lab /var/lib
for state in "$1/all"/*; do
    case $state in */libvirt | */weighbridge) ;; *) ln -s "$state" /var/lib/ ;; esac
done
mkdir -p /var/lib/libvirt /run/libvirt /var/cache/libvirt /var/log/libvirt
mount --bind "$1/lib" /var/lib/libvirt
mount --bind "$1/etc" /etc/libvirt
mount --bind "$1/cache" /var/cache/libvirt
mount --bind "$1/logs" /var/log/libvirt
touch "$1/ready"
[ "$2" = started ] || exec sleep infinity
virtlogd &
libvirtd &
# The first process of a PID namespace must reap all others.
wait
"#;

/// An isolated libvirt.
#[derive(Debug)]
pub struct Libvirt {
    process: Child,
    init_pid: u32,
    _folder: TempDir,
}

impl Libvirt {
    /// Starts one; prints a message and returns `None` where that is not possible.
    pub fn new() -> Option<Self> {
        let libvirt = Self::start("started")?;
        wait_until("libvirt", || libvirt.output_of(&["virsh", "-c", "qemu:///system", "uri"]).is_some());
        Some(libvirt)
    }

    /// Creates one without its daemons.
    pub fn stopped() -> Option<Self> {
        Self::start("stopped")
    }

    fn start(state: &str) -> Option<Self> {
        let missing = REQUIREMENTS.iter().find(|(program, _)| find_program(program).is_none());
        if let Some((program, package)) = missing {
            wb_test_skip::skip!("libvirt guests need {program} ({package})");
            return None;
        }
        let folder = tempfile::Builder::new().prefix("weighbridge-lab-").tempdir_in("/var/tmp").unwrap();
        // libvirt runs guests as a separate user.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut world = Command::new("unshare");
        world.args(["--net", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        world.args(["sh", "-ec", SETUP_SCRIPT, "sh"]).arg(folder.path()).arg(state);
        let log = folder.path().join("log");
        let stderr = fs::File::create(&log).unwrap();
        let mut world = world.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr).spawn().unwrap();
        let children = format!("/proc/{0}/task/{0}/children", world.id());
        let first = || fs::read_to_string(&children).ok()?.trim().parse::<u32>().ok();
        wait_until("the namespaces of libvirt", || first().is_some());
        let first = first().unwrap();
        wait_until("its folders", || {
            if world.try_wait().unwrap().is_some() {
                panic!("cannot create the namespaces of libvirt: {}", fs::read_to_string(&log).unwrap());
            }
            folder.path().join("ready").exists()
        });
        Some(Self { process: world, init_pid: first, _folder: folder })
    }

    /// A command that runs a program in its namespaces, in this folder.
    pub fn command(&self, folder: &Path, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.init_pid.to_string(), "--net", "--mount", "--pid"]);
        command.arg(format!("--wdns={}", folder.display())).arg("--").arg(program.as_ref());
        command
    }

    /// Runs a command in its namespaces; returns its standard output, or `None` if it fails.
    pub fn output_of(&self, words: &[&str]) -> Option<String> {
        let output = self.command(Path::new("/"), words[0]).args(&words[1..]).stdin(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs a command in its namespaces; returns the command, its exit status and its output, for a message.
    pub fn transcript_of(&self, words: &[&str]) -> String {
        let output = self.command(Path::new("/"), words[0]).args(&words[1..]).stdin(Stdio::null()).output();
        let Ok(output) = output else { return format!("{words:?}: {output:?}") };
        let [out, err] = [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
        format!("{words:?} ({})\n{out}{err}", output.status)
    }
}

impl Drop for Libvirt {
    fn drop(&mut self) {
        // Also removes the guests' control groups, which are not in a namespace.
        let all =
            "for it in $(virsh -q -c qemu:///system list --name); do virsh -q -c qemu:///system destroy $it; done";
        let _ = self.output_of(&["sh", "-c", all]);
        let _ = self.process.kill();
        let _ = self.process.wait();
        // The end of the namespace's first process ends all others.
        wait_until("the end of libvirt's namespaces", || !Path::new(&format!("/proc/{}", self.init_pid)).exists());
    }
}

fn find_program(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let beside = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&folders).chain(beside).map(|folder| folder.join(program)).find(|path| path.is_file())
}
