//! Whether a host's processor runs guests. That /dev/kvm can be opened says little: there are machines on which a guest
//! never gets to its first instruction.

use wb_agent::{Group, Scratch};

use crate::error::ProfileErrorKind;
use crate::host::run;
use crate::profile::VirtType;

/// A boot sector that ends its machine with a status of its own: `mov dx, 0x501; mov al, 0x10; out dx, al; hlt`.
const SECTOR: [u8; 7] = [0xba, 0x01, 0x05, 0xb0, 0x10, 0xee, 0xf4];
/// The status that QEMU makes of it: twice the value, and one.
const SUCCESS_STATUS: i32 = 0x10 * 2 + 1;
/// How long a start may take that software does in a tenth of a second, in seconds.
const PROBE_LIMIT: &str = "3";
/// How much of what QEMU printed is quoted: a failed assertion is the last line, its cause the one before.
const MAX_QUOTED_LINES: usize = 2;

/// Starts a machine of one sector by the processor, as the user that libvirt runs guests as, and with the CPU that guests
/// get (virt-install's default for KVM): a processor may run a guest with a plainer one and not with its own. `$1` is the
/// limit, `$2` the sector's file, `$3` the program.
const PROBE_SCRIPT: &str = r#"
for user in $(sed -n 's/^ *user *= *"\{0,1\}\([^"]*\).*/\1/p' /etc/libvirt/qemu.conf 2>/dev/null) libvirt-qemu qemu root; do
    id "$user" >/dev/null 2>&1 && break
done
TMPDIR=/var/tmp runuser -u "$user" -- timeout -k 1 "$1" "$3" -accel kvm -cpu host -M pc -m 32 -display none -nodefaults -no-reboot \
    -device isa-debug-exit,iobase=0x501,iosize=1 -drive file="$2",format=raw,if=ide,snapshot=on 2>&1
echo "status $?"
"#;

/// What guests are run by where `wanted` is asked for, and why it is not the processor where that was left open.
///
/// # Errors
/// When the processor is asked for and cannot.
pub(crate) async fn resolve(
    wanted: VirtType,
    arch: &str,
    emulator: Option<&str>,
    folder: &Scratch,
    group: &Group,
) -> Result<(VirtType, Option<String>), ProfileErrorKind> {
    if wanted == VirtType::Qemu {
        return Ok((wanted, None));
    }
    match (kvm_fault(arch, emulator, folder, group).await?, wanted) {
        (None, _) => Ok((VirtType::Kvm, None)),
        (Some(said), VirtType::Kvm) => Err(ProfileErrorKind::NoKvm { said }),
        (Some(said), _) => Ok((VirtType::Qemu, Some(said))),
    }
}

/// Why the processor runs no guests; none where one was seen to run.
async fn kvm_fault(
    arch: &str,
    emulator: Option<&str>,
    folder: &Scratch,
    group: &Group,
) -> Result<Option<String>, ProfileErrorKind> {
    let there = run(group, ["sh", "-c", "test -c /dev/kvm && echo yes || echo no"]).await?;
    if there.trim() != "yes" {
        return Ok(Some("there is no /dev/kvm".to_owned()));
    }
    if arch != "x86_64" {
        // There is no such machine of one sector elsewhere: libvirt will say.
        return Ok(None);
    }
    let mut disk = vec![0; 1 << 20];
    disk[..SECTOR.len()].copy_from_slice(&SECTOR);
    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
    let path = folder.join("sector");
    group.worker().put(&path, &disk, 0o644).await?;
    let emulator = emulator.unwrap_or("qemu-system-x86_64");
    let said = run(group, ["sh", "-c", PROBE_SCRIPT, "sh", PROBE_LIMIT, &path, emulator]).await?;
    let (words, status) = said.trim().rsplit_once("status ").unwrap_or(("", &said));
    Ok(match status.trim().parse() {
        Ok(SUCCESS_STATUS) => None,
        Ok(124 | 137) => {
            Some(format!("/dev/kvm is there, and no guest got to its first instruction in {PROBE_LIMIT} s"))
        }
        _ => Some(crate::host::last_lines(words, MAX_QUOTED_LINES)),
    })
}
