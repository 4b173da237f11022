//! The emulated machine that is measured, and the connection to it.

use std::path::PathBuf;

use tempfile::TempDir;
use wb_agent::Worker;
use wb_fleet::inventory::Host;
use wb_fleet::{ConnectOptions, Program, connect};
use wb_model::WorkerName;
use wb_test_vm::{GuestConfig, GuestDisk, GuestError, SshGuest, built_image};

const IMAGE: &str = r#"{"built":"bookworm","packages":["fio"]}"#;

/// A disk whose speed the emulation reaches.
pub(crate) const DISK: GuestDisk = GuestDisk { size_mib: 6144, iops: 2000, mib_per_second: 64 };

/// Where the file system of the disk is mounted.
pub(crate) const FOLDER: &str = "/mnt/measured";

/// Creates a file system on the disk, with room for swap.
const PREPARE: &str = "set -e; mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/nvme0n1; mkdir -p /mnt/measured
mount /dev/nvme0n1 /mnt/measured; fallocate -l 2G /mnt/measured/swap; chmod 600 /mnt/measured/swap; mkswap -q /mnt/measured/swap";

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
        let disks = [DISK];
        let config = GuestConfig { name: "guest", memory_mib: 1280, disks: &disks, may_reboot: true };
        let machine = SshGuest::start(folder.path(), &base, &config)?;
        let guest = Self { machine, program: program(), _folder: folder };
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
        connect_with(&self.program, self.machine.ssh_config()).await
    }
}

fn program() -> Program {
    Program::read(env!("CARGO_BIN_EXE_wb-tests-agent").as_ref()).unwrap()
}

async fn connect_with(program: &Program, ssh_config: PathBuf) -> Worker {
    let host = Host {
        name: WorkerName::new("guest").unwrap(),
        address: "guest".parse().unwrap(),
        params: wb_fleet::inventory::HostParams::default(),
    };
    let options = ConnectOptions { ssh_config: Some(ssh_config), needs_root: true, ..ConnectOptions::default() };
    connect(&host, program, &options).await.unwrap().worker
}

pub(crate) struct Dev(PathBuf, Program);
impl Dev {
    pub(crate) fn new(path: String) -> Self {
        Self(path.into(), program())
    }
    pub(crate) async fn connect(&self) -> Worker {
        connect_with(&self.1, self.0.clone()).await
    }
}
