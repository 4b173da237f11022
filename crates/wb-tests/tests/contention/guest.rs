//! The emulated machine that is measured, and the connection to it.

use tempfile::TempDir;
use wb_agent::Worker;
use wb_fleet::{ConnectOptions, Host, HostParams, Program, connect};
use wb_model::WorkerName;
use wb_test_vm::{GuestConfig, GuestDisk, GuestError, SshGuest, built_image};

/// Its host name.
const NAME: &str = "guest";

const IMAGE: &str = r#"{"built":"bookworm","packages":["fio"]}"#;

/// A disk whose speed the emulation reaches.
pub(crate) const DISK: GuestDisk = GuestDisk { size_mib: 6144, iops: 2000, mib_per_second: 64 };

/// Where the file system of the disk is mounted.
pub(crate) const FOLDER: &str = "/mnt/measured";

/// Mounts the file system, with swap, after another boot.
pub(crate) const MOUNT: &str = "set -e; mount /dev/nvme0n1 /mnt/measured; swapon /mnt/measured/swap";

/// Creates a file system on the disk, with room for swap.
const PREPARE: &str =
    "set -e; mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/nvme0n1; mkdir -p /mnt/measured
mount /dev/nvme0n1 /mnt/measured
(umask 077; fallocate -l 2G /mnt/measured/swap); mkswap -q /mnt/measured/swap; sync";

/// The machine, with a disk of which a file system is mounted and on which swap is prepared.
pub(crate) struct Guest {
    pub(crate) machine: SshGuest,
    program: Program,
    _folder: TempDir,
}

impl Guest {
    /// Boots a machine.
    pub(crate) fn start() -> Result<Self, GuestError> {
        let base = built_image(IMAGE)?;
        let folder = tempfile::tempdir().unwrap();
        let program = Program::read(env!("CARGO_BIN_EXE_wb-tests-agent").as_ref()).unwrap();
        let disks = [DISK];
        let config =
            GuestConfig { name: NAME, memory_mib: 896, disks: &disks, may_reboot: true, ..GuestConfig::default() };
        let machine = SshGuest::start(folder.path(), &base, &config)?;
        let guest = Self { machine, program, _folder: folder };
        guest.shell(PREPARE);
        Ok(guest)
    }

    /// Runs a script, which must succeed; returns its output.
    pub(crate) fn shell(&self, script: &str) -> String {
        let output = self.machine.log_in(script).unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}: {stderr}\n{}", self.machine.console());
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Connects to it.
    pub(crate) async fn connect(&self) -> Worker {
        let host = Host {
            name: WorkerName::new(NAME).unwrap(),
            address: NAME.parse().unwrap(),
            params: HostParams::default(),
        };
        let ssh_config = Some(self.machine.ssh_config());
        let options = ConnectOptions { ssh_config, needs_root: true, ..ConnectOptions::default() };
        connect(&host, &self.program, &options).await.unwrap().worker
    }
}
