//! Restricts systemd slices to the CPUs that no guest uses.

use wb_model::Facts;
use wb_sys::facts::cpu_list;
use wb_sys::undo::ManagedResource;

use super::sizing::GuestSize;
use crate::error::ProfileErrorKind;
use crate::host::run;
use crate::host_context::HostContext;

/// The slices that contain everything except guests.
const SLICES: [&str; 3] = ["system.slice", "user.slice", "init.scope"];

/// Restricts systemd's slices to the CPUs that no guest uses, until the group is torn down. Without such CPUs or
/// without systemd, only a message is reported.
pub(super) async fn move_others_off(
    sizes: &[GuestSize],
    facts: &Facts,
    context: &HostContext<'_>,
) -> Result<(), ProfileErrorKind> {
    let guest_cpus: Vec<u32> = sizes.iter().flat_map(|size| size.pinned.clone()).collect();
    let rest: Vec<u32> = facts.cpus.iter().map(|cpu| cpu.id).filter(|cpu| !guest_cpus.contains(cpu)).collect();
    if rest.is_empty() {
        context.notify("guests use all CPUs and share them with everything else on the host".to_owned());
        return Ok(());
    }
    if run(context.group, ["systemctl", "show", "-p", "AllowedCPUs", SLICES[0]]).await.is_err() {
        context.notify("cannot keep other processes off the guests' CPUs: systemd is not available".to_owned());
        return Ok(());
    }
    for slice in SLICES {
        context.group.apply_change(resource(slice), Some(format_systemd(&cpu_list::format(&rest)))).await?;
    }
    Ok(())
}

fn resource(slice: &str) -> ManagedResource {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    ManagedResource::Command {
        name: format!("the CPUs of {slice}"),
        read: words(&["systemctl", "show", "--value", "-p", "AllowedCPUs", slice]),
        write: words(&["systemctl", "set-property", "--runtime", slice, "AllowedCPUs={}"]),
    }
}

/// A list of CPUs as systemd prints it: `0-3 8`.
fn format_systemd(list: &str) -> String {
    list.replace(',', " ") + "\n"
}
