//! Probes whether KVM works on a host. That /dev/kvm can be opened is not enough: on some machines a guest never
//! reaches its first instruction.

use wb_agent::{Scratch, TeardownGroup};

use crate::error::ProfileErrorKind;
use crate::host::run;
use crate::profile::VirtType;

/// A boot sector that exits QEMU with a known status: `mov dx, 0x501; mov al, 0x10; out dx, al; hlt`.
const SECTOR: [u8; 7] = [0xba, 0x01, 0x05, 0xb0, 0x10, 0xee, 0xf4];
/// QEMU's exit status for it: twice the written value plus one.
const SUCCESS_STATUS: i32 = 0x10 * 2 + 1;
/// Time limit of the probe in seconds; emulated in software it takes a tenth of a second.
const PROBE_LIMIT: &str = "3";
/// Number of last lines of QEMU's output that are quoted: a failed assertion is the last line, its cause the one
/// before.
const MAX_QUOTED_LINES: usize = 2;

/// Boots the sector under KVM, as the user that libvirt runs guests as and with the CPU model that guests get
/// (virt-install's default for KVM): a host may run guests with a simpler model and not with its own. `$1` is the
/// limit, `$2` the sector's file, `$3` the emulator.
const PROBE_SCRIPT: &str = r#"
for user in $(sed -n 's/^ *user *= *"\{0,1\}\([^"]*\).*/\1/p' /etc/libvirt/qemu.conf 2>/dev/null) libvirt-qemu qemu root; do
    id "$user" >/dev/null 2>&1 && break
done
TMPDIR=/var/tmp runuser -u "$user" -- timeout -k 1 "$1" "$3" -accel kvm -cpu host -M pc -m 32 -display none -nodefaults -no-reboot \
    -device isa-debug-exit,iobase=0x501,iosize=1 -drive file="$2",format=raw,if=ide,snapshot=on 2>&1
echo "status $?"
"#;

/// Resolves the requested type of virtualisation. If `auto` falls back to emulation, also returns the reason; fails if
/// KVM is requested and does not work.
pub(crate) async fn resolve(
    requested: VirtType,
    arch: &str,
    emulator: Option<&str>,
    folder: &Scratch,
    group: &TeardownGroup,
) -> Result<(VirtType, Option<String>), ProfileErrorKind> {
    if requested == VirtType::Qemu {
        return Ok((requested, None));
    }
    match (kvm_fault(arch, emulator, folder, group).await?, requested) {
        (None, _) => Ok((VirtType::Kvm, None)),
        (Some(reason), VirtType::Kvm) => Err(ProfileErrorKind::NoKvm(reason)),
        (Some(reason), _) => Ok((VirtType::Qemu, Some(reason))),
    }
}

/// None if the probe succeeded.
async fn kvm_fault(
    arch: &str,
    emulator: Option<&str>,
    folder: &Scratch,
    group: &TeardownGroup,
) -> Result<Option<String>, ProfileErrorKind> {
    let exists = run(group, ["sh", "-c", "test -c /dev/kvm && echo yes || echo no"]).await?;
    if exists.trim() != "yes" {
        return Ok(Some("no such device: /dev/kvm".to_owned()));
    }
    if arch != "x86_64" {
        // The probe exists for x86_64 only: elsewhere libvirt reports errors.
        return Ok(None);
    }
    let mut disk = vec![0; 1 << 20];
    disk[..SECTOR.len()].copy_from_slice(&SECTOR);
    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
    let path = folder.join("sector");
    group.worker().put(&path, &disk, 0o644).await?;
    let emulator = emulator.unwrap_or("qemu-system-x86_64");
    let output = run(group, ["sh", "-c", PROBE_SCRIPT, "sh", PROBE_LIMIT, &path, emulator]).await?;
    let (printed, status) = output.trim().rsplit_once("status ").unwrap_or(("", &output));
    Ok(match status.trim().parse() {
        Ok(SUCCESS_STATUS) => None,
        Ok(124 | 137) => {
            Some(format!("/dev/kvm exists, but no guest reached its first instruction within {PROBE_LIMIT} s"))
        }
        _ => Some(crate::host::last_lines(printed, MAX_QUOTED_LINES)),
    })
}
