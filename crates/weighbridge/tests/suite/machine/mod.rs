//! A machine in software made from an image that was built, and the way into it by ssh.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use wb_profile::image::{BaseImage, GuestBoot, HostKey, SeedConfig};

/// How long one in software may take until somebody can log in.
const PATIENCE: Duration = Duration::from_secs(300);

/// A running machine; killed when it is dropped.
pub(crate) struct Machine {
    qemu: Child,
    folder: PathBuf,
    name: String,
}

impl Machine {
    /// Starts one of this name, whose files are in a folder. One that may not reboot ends instead.
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
        Self { qemu, folder: folder.to_owned(), name: name.to_owned() }
    }

    /// ssh's configuration for the way to it, by its name.
    pub(crate) fn way(&self) -> PathBuf {
        self.folder.join("way")
    }

    /// Runs a script there, once somebody can log in and all has started.
    pub(crate) fn log_in(&self, script: &str) -> Output {
        let begun = Instant::now();
        loop {
            let output = Command::new("ssh")
                .arg("-F")
                .arg(self.way())
                .args([&self.name, "systemctl is-system-running --wait >&2;", script])
                .output()
                .unwrap();
            // Without it, ssh itself found no way.
            if output.status.code() != Some(255) {
                return output;
            }
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(begun.elapsed() < PATIENCE, "{said}\n{}", self.console());
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    /// What its console said.
    pub(crate) fn console(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.folder.join("console")).unwrap_or_default()).into_owned()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}
