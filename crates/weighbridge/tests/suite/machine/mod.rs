//! An emulated machine that boots a built image and is reached by ssh.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use wb_profile::image::{BaseImage, GuestBoot, HostKey, SeedConfig};

use crate::lab::KillOnDrop;

/// Time limit for an emulated machine to accept logins.
const PATIENCE: Duration = Duration::from_secs(300);

/// A running emulated machine, killed when dropped.
pub(crate) struct Machine {
    _qemu: KillOnDrop,
    folder: PathBuf,
    name: String,
}

impl Machine {
    /// Starts a machine with its files in a folder. Without `may_reboot`, a reboot ends it.
    pub(crate) fn start(folder: &Path, base: &BaseImage, name: &str, may_reboot: bool) -> Self {
        let path = |file: &str| folder.join(file).display().to_string();
        let key = |file: &str| {
            let words = ["-q", "-t", "ed25519", "-N", "", "-C", file, "-f", &path(file)];
            assert!(Command::new("ssh-keygen").args(words).status().unwrap().success());
            (fs::read_to_string(path(file)).unwrap(), fs::read_to_string(path(file) + ".pub").unwrap())
        };
        let (_, authorized_key) = key("user");
        let (private, public) = key("host");
        let host_key = HostKey { private: &private, public: &public };
        let seed = SeedConfig { hostname: name, authorized_key: &authorized_key, host_key, macs: &[] };
        let (volume, overlay) = (path("seed"), path("overlay"));
        fs::write(&volume, seed.volume().unwrap()).unwrap();
        let backing = ["create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", &base.path, &overlay];
        assert!(Command::new("qemu-img").args(backing).status().unwrap().success());

        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        fs::write(path("known"), format!("[127.0.0.1]:{port} {public}")).unwrap();
        let way = format!(
            "Host {name}\nHostName 127.0.0.1\nPort {port}\nUser root\nIdentityFile {}\nIdentitiesOnly yes\n\
             UserKnownHostsFile {}\nStrictHostKeyChecking yes\nBatchMode yes\nConnectTimeout 5\n",
            path("user"),
            path("known")
        );
        fs::write(path("way"), way).unwrap();

        let GuestBoot::Kernel { kernel, initrd, arguments } = &base.boot else { panic!("{base:?}") };
        assert!(Path::new(kernel).is_file());
        let mut qemu = Command::new("qemu-system-x86_64");
        qemu.args(["-machine", "q35,accel=tcg", "-cpu", "max", "-smp", "2", "-m", "1024", "-nographic"])
            .args(["-kernel", kernel, "-initrd", initrd, "-append", arguments])
            .args(["-drive", &format!("file={overlay},format=qcow2,if=virtio")])
            .args(["-drive", &format!("file={volume},format=raw,if=virtio,readonly=on")])
            .args(["-nic", &format!("user,model=virtio-net-pci,hostfwd=tcp:127.0.0.1:{port}-:22")])
            .args(if may_reboot { &[][..] } else { &["-no-reboot"] });
        let console = fs::File::create(path("console")).unwrap();
        let qemu = qemu.stdin(Stdio::null()).stdout(console).spawn().unwrap();
        Self { _qemu: KillOnDrop(qemu), folder: folder.to_owned(), name: name.to_owned() }
    }

    /// The ssh configuration file for connecting to it by its name.
    pub(crate) fn ssh_config(&self) -> PathBuf {
        self.folder.join("way")
    }

    /// Runs a script on it, once it accepts logins and has finished booting.
    pub(crate) fn log_in(&self, script: &str) -> Output {
        let start = Instant::now();
        loop {
            let output = Command::new("ssh")
                .arg("-F")
                .arg(self.ssh_config())
                .args([&self.name, "systemctl is-system-running --wait >&2;", script])
                .output()
                .unwrap();
            // Exit status 255 means that ssh could not connect.
            if output.status.code() != Some(255) {
                return output;
            }
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(start.elapsed() < PATIENCE, "{stderr}\n{}", self.console());
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    /// The console output.
    pub(crate) fn console(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.folder.join("console")).unwrap_or_default()).into_owned()
    }
}
