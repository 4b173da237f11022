//! A machine that boots an image with systemd and is reached by ssh.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use wb_model::Nanos;
use wb_profile::image::request::{ImageEvent, ImageRequest};
use wb_profile::image::{self, BaseImage, GuestBoot, HostKey, ImageSpec, SeedConfig};

use crate::command::{GuestError, find, output};

const BOOT_LIMIT: Duration = Duration::from_secs(300);

/// The emulation, with few MiB for translated code. QEMU 7.2 discards translations when that memory is full, not at a
/// reboot. Until then every write to a page looks at all translations of what was there, and a page of the C library
/// has some for every process that ever ran. After a script of many processes (`update-grub`) a reboot took 184 s of CPU
/// time with the default size, most of it before the kernel's first message, as if it hung; it takes 58 s with this one.
const ACCELERATOR: &str = "tcg,tb-size=64";

/// How long a download may stall.
const STALL_LIMIT: Nanos = Nanos(60_000_000_000);

/// Builds an image as root, in a minute or two, or finds it in this machine's image cache (`WEIGHBRIDGE_CACHE`).
pub fn built_image(spec: &str) -> Result<BaseImage, GuestError> {
    let failed = |reason: String| GuestError::failed("building an image", reason);
    let image: ImageSpec = serde_json::from_str(spec).map_err(|error| failed(error.to_string()))?;
    let mut output = Vec::new();
    let request = ImageRequest::Prepare { image, stall: STALL_LIMIT };
    image::execute(&request, &mut output).map_err(|error| failed(error.to_string()))?;
    let lines = String::from_utf8_lossy(&output);
    let last = lines.lines().last().unwrap_or_default();
    match serde_json::from_str(last) {
        Ok(ImageEvent::Done(base)) => serde_json::from_value(base).map_err(|error| failed(error.to_string())),
        Ok(ImageEvent::Failed(failure)) => Err(GuestError::NoImage(failure)),
        _ => Err(failed(format!("invalid result `{last}`"))),
    }
}

/// Installs GRUB in the first sectors of a disk that is one file system, and generates its configuration.
const INSTALL_GRUB: &str = r#"
set -e
cat > /etc/default/grub <<END
GRUB_TIMEOUT=0
GRUB_TERMINAL=serial
GRUB_CMDLINE_LINUX="rw console=ttyS0 net.ifnames=0 quiet"
END
grub-install --target=i386-pc --force /dev/vda
update-grub
sync
"#;

/// Hardware of a machine.
#[derive(Clone, Debug)]
pub struct GuestConfig<'a> {
    /// Its host name, by which its ssh configuration knows it.
    pub name: &'a str,
    pub memory_mib: u32,
    /// Its empty disks, besides that of the system: `/dev/nvme0n1`, `/dev/nvme1n1`, ….
    pub disks: &'a [GuestDisk],
    /// Whether it can reboot; otherwise a reboot ends it.
    pub may_reboot: bool,
    /// Whether its two CPUs are threads of one core.
    pub has_smt: bool,
}

impl Default for GuestConfig<'_> {
    fn default() -> Self {
        Self { name: "guest", memory_mib: 1024, disks: &[], may_reboot: false, has_smt: false }
    }
}

/// An empty disk whose speed is limited, so that it does not depend on the emulation.
#[derive(Clone, Copy, Debug)]
pub struct GuestDisk {
    pub size_mib: u32,
    pub iops: u32,
    pub mib_per_second: u32,
}

/// A running machine, killed when dropped. Its files are in a folder of the caller.
pub struct SshGuest {
    emulator: Child,
    arguments: Vec<String>,
    folder: PathBuf,
    name: String,
}

impl SshGuest {
    /// Starts a machine of an image with its files in a folder. It boots meanwhile: see [`SshGuest::log_in`].
    pub fn start(folder: &Path, base: &BaseImage, config: &GuestConfig<'_>) -> Result<Self, GuestError> {
        let path = |file: &str| folder.join(file).display().to_string();
        let (_, authorized_key) = create_key(folder, "user")?;
        let (private, public) = create_key(folder, "host")?;
        let host_key = HostKey { private: &private, public: &public };
        let seed = SeedConfig { hostname: config.name, authorized_key: &authorized_key, host_key, macs: &[] };
        let volume = seed.volume().map_err(|error| GuestError::failed("creating the seed volume", error))?;
        write(&folder.join("seed"), &volume)?;
        let backing = ["create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", &base.path, &path("overlay")];
        output("qemu-img", |command| _ = command.args(backing))?;
        let port = free_port().map_err(|error| GuestError::failed("finding a port", error))?;
        write(&folder.join("known"), format!("[127.0.0.1]:{port} {public}").as_bytes())?;
        let ssh_config = format!(
            "Host {}\nHostName 127.0.0.1\nPort {port}\nUser root\nIdentityFile {}\nIdentitiesOnly yes\n\
             UserKnownHostsFile {}\nStrictHostKeyChecking yes\nBatchMode yes\nConnectTimeout 5\n",
            config.name,
            path("user"),
            path("known")
        );
        write(&folder.join("ssh_config"), ssh_config.as_bytes())?;

        let GuestBoot::Kernel { kernel, initrd, arguments } = &base.boot else {
            return Err(GuestError::failed("starting a guest", "its image has no kernel outside of its disk"));
        };
        // QEMU does not emulate threads of a core for AMD's processors.
        let processor =
            if config.has_smt { ["max,vendor=GenuineIntel", "2,sockets=1,cores=1,threads=2"] } else { ["max", "2"] };
        let fixed =
            ["-machine", "q35", "-accel", ACCELERATOR, "-cpu", processor[0], "-smp", processor[1], "-nographic"];
        let mut words: Vec<String> = fixed.map(str::to_owned).to_vec();
        let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
        add("-m", config.memory_mib.to_string());
        add("-kernel", kernel.clone());
        add("-initrd", initrd.clone());
        add("-append", arguments.clone());
        add("-drive", format!("file={},format=qcow2,if=virtio", path("overlay")));
        add("-drive", format!("file={},format=raw,if=virtio,readonly=on", path("seed")));
        add("-nic", format!("user,model=virtio-net-pci,hostfwd=tcp:127.0.0.1:{port}-:22"));
        for (number, disk) in config.disks.iter().enumerate() {
            let file = path(&format!("disk{number}"));
            let sparse = fs::File::create(&file).and_then(|new| new.set_len(u64::from(disk.size_mib) << 20));
            sparse.map_err(|error| GuestError::file("create", Path::new(&file), error))?;
            let bytes = u64::from(disk.mib_per_second) << 20;
            let limits = format!("throttling.iops-total={},throttling.bps-total={bytes}", disk.iops);
            add("-drive", format!("file={file},format=raw,if=none,id=disk{number},cache=unsafe,{limits}"));
            add("-device", format!("nvme,drive=disk{number},serial=weighbridge-{number}"));
        }
        if !config.may_reboot {
            words.push("-no-reboot".to_owned());
        }
        let emulator = boot(folder, &words)?;
        Ok(Self { emulator, arguments: words, folder: folder.to_owned(), name: config.name.to_owned() })
    }

    /// The ssh configuration file for connecting to it by its name.
    pub fn ssh_config(&self) -> PathBuf {
        self.folder.join("ssh_config")
    }

    /// Runs a script on it, once it accepts logins and has finished booting. Fails with its console if it does not
    /// accept logins within five minutes, but not if the script fails.
    pub fn log_in(&self, script: &str) -> Result<Output, GuestError> {
        let start = Instant::now();
        loop {
            let output = Command::new(find("ssh")?)
                .arg("-F")
                .arg(self.ssh_config())
                .args([&self.name, "systemctl is-system-running --wait >&2;", script])
                .stdin(Stdio::null())
                .output()
                .map_err(|error| GuestError::failed("ssh", error))?;
            // Exit status 255 means that ssh could not connect.
            if output.status.code() != Some(255) {
                return Ok(output);
            }
            if start.elapsed() > BOOT_LIMIT {
                let stderr = String::from_utf8_lossy(&output.stderr);
                return Err(GuestError::failed("ssh", format!("{stderr}\n{}", self.console())));
            }
            thread::sleep(Duration::from_secs(1));
        }
    }

    /// The output of its console since its last start.
    pub fn console(&self) -> String {
        // A console that cannot be read is as good as one without output: it only explains another failure.
        String::from_utf8_lossy(&fs::read(self.folder.join("console")).unwrap_or_default()).into_owned()
    }

    /// Cuts the power: what was not flushed to its disks is lost.
    pub fn kill(&mut self) {
        // Killing a process that has exited fails, which is fine.
        let _ = self.emulator.kill();
        let _ = self.emulator.wait();
    }

    /// Installs GRUB on its disk, and starts it again with that instead of a kernel from outside. Its image needs the
    /// packages of [`SshGuest::GRUB_PACKAGES`].
    pub fn boot_with_grub(&mut self) -> Result<(), GuestError> {
        let installed = self.log_in(INSTALL_GRUB)?;
        if !installed.status.success() {
            return Err(GuestError::failed("installing GRUB", String::from_utf8_lossy(&installed.stderr)));
        }
        self.kill();
        for option in ["-kernel", "-initrd", "-append"] {
            if let Some(position) = self.arguments.iter().position(|word| word == option) {
                self.arguments.drain(position..position + 2);
            }
        }
        self.restart()
    }

    /// The Debian packages that [`SshGuest::boot_with_grub`] needs.
    pub const GRUB_PACKAGES: [&str; 2] = ["grub-pc-bin", "grub2-common"];

    /// Starts it again with its disks, after [`SshGuest::kill`].
    pub fn restart(&mut self) -> Result<(), GuestError> {
        self.emulator = boot(&self.folder, &self.arguments)?;
        Ok(())
    }
}

impl Drop for SshGuest {
    fn drop(&mut self) {
        self.kill();
    }
}

fn boot(folder: &Path, arguments: &[String]) -> Result<Child, GuestError> {
    let path = folder.join("console");
    let console = fs::File::create(&path).map_err(|error| GuestError::file("create", &path, error))?;
    // The emulator ends with this process, also if this process is killed.
    let mut emulator = Command::new(find("setpriv")?);
    emulator
        .args(["--pdeathsig", "KILL"])
        .arg(find("qemu-system-x86_64")?)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(console);
    emulator.spawn().map_err(|error| GuestError::failed("qemu-system-x86_64", error))
}

fn create_key(folder: &Path, name: &str) -> Result<(String, String), GuestError> {
    let file = folder.join(name);
    output("ssh-keygen", |command| {
        command.args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]).arg(&file);
    })?;
    let read = |path: &Path| fs::read_to_string(path).map_err(|error| GuestError::file("read", path, error));
    Ok((read(&file)?, read(&file.with_extension("pub"))?))
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), GuestError> {
    fs::write(path, bytes).map_err(|error| GuestError::file("write", path, error))
}
