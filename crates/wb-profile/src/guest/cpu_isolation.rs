//! Everything else on a host stays off the CPUs of guests: systemd's slices get the other ones.

use wb_model::Facts;
use wb_sys::facts::cpu_list;
use wb_sys::undo::Step;

use super::sizing::GuestSize;
use crate::apply_site::ApplySite;
use crate::error::ProfileErrorKind;
use crate::host::run;

/// Where everything runs that is no guest.
const SLICES: [&str; 3] = ["system.slice", "user.slice", "init.scope"];

/// Gives systemd's slices the CPUs that are no guest's, until the group is torn down. Where there are no others, or no
/// systemd, that is said.
pub(super) async fn move_others_off(
    sizes: &[GuestSize],
    facts: &Facts,
    site: &ApplySite<'_>,
) -> Result<(), ProfileErrorKind> {
    let of_guests: Vec<u32> = sizes.iter().flat_map(|size| size.pinned.clone()).collect();
    let rest: Vec<u32> = facts.cpus.iter().map(|cpu| cpu.id).filter(|cpu| !of_guests.contains(cpu)).collect();
    if rest.is_empty() {
        site.notify("guests have all CPUs: everything else on the host runs on them too".to_owned());
        return Ok(());
    }
    if run(site.group, ["systemctl", "show", "-p", "AllowedCPUs", SLICES[0]]).await.is_err() {
        site.notify("there is no systemd to keep everything else off the guests' CPUs".to_owned());
        return Ok(());
    }
    for slice in SLICES {
        site.group.apply_step(step(slice), Some(format_systemd(&cpu_list::format(&rest)))).await?;
    }
    Ok(())
}

fn step(slice: &str) -> Step {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    Step::Command {
        name: format!("the CPUs of {slice}"),
        read: words(&["systemctl", "show", "--value", "-p", "AllowedCPUs", slice]),
        write: words(&["systemctl", "set-property", "--runtime", slice, "AllowedCPUs={}"]),
    }
}

/// A list of CPUs as systemd prints it: `0-3 8`.
fn format_systemd(list: &str) -> String {
    list.replace(',', " ") + "\n"
}
