//! Domains and networks of libvirt, as steps that the undo log can take back.
//!
//! Domains are transient: whatever ends them, a reboot too, leaves nothing of them defined.

use wb_agent::Group;
use wb_model::WorkerName;
use wb_sys::undo::Step;

use crate::error::ProfileErrorKind;
use crate::host::{last_lines, require_program, run};
use crate::profile::VirtType;

/// libvirt of the system, as root has it.
pub(crate) const CONNECTION: &str = "qemu:///system";

/// Whether the host hands on packets that are for others.
const FORWARDING: &str = "/proc/sys/net/ipv4/ip_forward";
/// The state of a domain or network that runs.
const PRESENT: &str = "there";
/// Says whether a domain runs, or has left its log when it ended by itself: a list that cannot be had is no empty one.
const IS_THERE: &str = r#"
all=$(virsh -q -c "$1" list --name) || exit
printf '%s\n' "$all" | grep -qxF -- "$2" || [ -e "/var/log/libvirt/qemu/$2.log" ] && printf there || printf none
"#;
/// Starts a domain from a file, or ends it; one that ends by itself meanwhile has ended too. libvirt keeps a log of each
/// domain for ever: that of one which is never seen again goes with it.
const DOMAIN: &str = r#"
case $4 in there) exec virsh -q -c "$1" create "$3" >&2;; esac
virsh -q -c "$1" destroy "$2" >&2 || ! virsh -q -c "$1" domstate "$2" >/dev/null 2>&1 || exit
rm -f "/var/log/libvirt/qemu/$2.log" "/var/log/libvirt/qemu/$2.log".[0-9]
"#;
/// Says whether a network runs.
const IS_NETWORK: &str = r#"all=$(virsh -q -c "$1" net-list --name) || exit; printf '%s\n' "$all" | grep -qxF -- "$2" && printf there || printf none"#;
/// Starts a network, or ends it. libvirt's chains of the packet filter stay, empty: it makes them once and fails where
/// somebody took them away.
const NETWORK: &str = r#"case $3 in there) exec virsh -q -c "$1" net-start "$2" >&2;; *) exec virsh -q -c "$1" net-destroy "$2" >&2;; esac"#;

/// Says whether a pool is there.
const IS_POOL: &str = r#"all=$(virsh -q -c "$1" pool-list --all --name) || exit; printf '%s\n' "$all" | grep -qxF -- "$2" && printf there || printf none"#;
/// Makes a pool of a folder that is gone when it is ended, or ends it.
const POOL: &str = r#"case $4 in there) exec virsh -q -c "$1" pool-create-as "$2" dir --target "$3" >&2;; *) exec virsh -q -c "$1" pool-destroy "$2" >&2;; esac"#;

/// Whether libvirt answers.
///
/// # Errors
/// With what it says instead.
pub(crate) async fn require_libvirt(group: &Group) -> Result<(), ProfileErrorKind> {
    require_program(group, "virsh", "libvirt-clients").await?;
    match run(group, ["virsh", "-q", "-c", CONNECTION, "uri"]).await {
        Ok(_) => Ok(()),
        Err(ProfileErrorKind::Program { said, .. }) => Err(ProfileErrorKind::NoLibvirt { said: last_lines(&said, 2) }),
        Err(other) => Err(other),
    }
}

/// Starts a domain, until the group is torn down.
pub(crate) async fn start(group: &Group, guest: &WorkerName, domain: &str, xml: &str) -> Result<(), ProfileErrorKind> {
    let step = Step::Command {
        name: format!("the guest {guest}"),
        read: shell(IS_THERE, &[CONNECTION, domain]),
        write: shell(DOMAIN, &[CONNECTION, domain, xml, "{}"]),
    };
    // Of a domain of this name in an earlier boot, which was killed with its host.
    run(group, ["rm", "-f", &format!("/var/log/libvirt/qemu/{domain}.log")]).await?;
    group.apply_step(step, Some(PRESENT.to_owned())).await?;
    Ok(())
}

/// Has a network run, until the group is torn down where it did not.
pub(crate) async fn require_network(group: &Group, network: &str) -> Result<(), ProfileErrorKind> {
    let read = shell(IS_NETWORK, &[CONNECTION, network]);
    if run(group, read.clone()).await?.trim() == PRESENT {
        return Ok(());
    }
    // libvirt has the host forward packets, and leaves it so: the log has to know.
    if run(group, ["cat", FORWARDING]).await?.trim() == "0" {
        group.apply_step(Step::setting(FORWARDING), Some("1".to_owned())).await?;
    }
    let write = shell(NETWORK, &[CONNECTION, network, "{}"]);
    let step = Step::Command { name: format!("libvirt's network {network}"), read, write };
    group.apply_step(step, Some(PRESENT.to_owned())).await?;
    Ok(())
}

/// Requires that a network is defined, whether it runs or not.
///
/// # Errors
/// With what libvirt says instead.
pub(crate) async fn require_defined(group: &Group, network: &str) -> Result<(), ProfileErrorKind> {
    match run(group, ["virsh", "-q", "-c", CONNECTION, "net-info", network]).await {
        Err(ProfileErrorKind::Program { said, .. }) => {
            Err(ProfileErrorKind::NoNetwork { network: network.to_owned(), output: last_lines(&said, 1) })
        }
        other => other.map(drop),
    }
}

/// Requires that libvirt finds a program that runs guests of a type.
///
/// # Errors
/// With what it says instead.
pub(crate) async fn require_emulator(
    group: &Group,
    virt: VirtType,
    emulator: Option<&str>,
) -> Result<(), ProfileErrorKind> {
    let mut words = vec!["virsh", "-q", "-c", CONNECTION, "domcapabilities", "--virttype", virt.name()];
    words.extend(emulator.iter().flat_map(|path| ["--emulatorbin", path]));
    match run(group, words).await {
        Err(ProfileErrorKind::Program { said, .. }) => {
            Err(ProfileErrorKind::NoEmulator { output: last_lines(&said, 1) })
        }
        other => other.map(drop),
    }
}

/// Has libvirt know a folder as a pool, until the group is torn down: virt-install would define one that stays.
pub(crate) async fn require_pool(group: &Group, folder: &str) -> Result<(), ProfileErrorKind> {
    let name = folder.rsplit('/').next().unwrap_or(folder);
    let step = Step::Command {
        name: format!("libvirt's pool of {folder}"),
        read: shell(IS_POOL, &[CONNECTION, name]),
        write: shell(POOL, &[CONNECTION, name, folder, "{}"]),
    };
    group.apply_step(step, Some(PRESENT.to_owned())).await?;
    Ok(())
}

/// The domain's state, in libvirt's word; none where there is no such domain.
pub(crate) async fn state(group: &Group, domain: &str) -> Result<Option<String>, ProfileErrorKind> {
    match run(group, ["virsh", "-q", "-c", CONNECTION, "domstate", domain]).await {
        Ok(state) => Ok(Some(state.trim().to_owned())),
        Err(ProfileErrorKind::Program { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

/// The first IPv4 address of a domain: as its network's DHCP server gave it, else as it was seen.
pub(crate) async fn address(group: &Group, domain: &str) -> Result<Option<String>, ProfileErrorKind> {
    for source in ["lease", "arp"] {
        match run(group, ["virsh", "-q", "-c", CONNECTION, "domifaddr", domain, "--source", source]).await {
            Ok(text) => {
                if let Some(address) = first_address(&text) {
                    return Ok(Some(address));
                }
            }
            Err(ProfileErrorKind::Program { .. }) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(None)
}

/// The address in ` vnet0  52:54:00:de:38:33  ipv4  192.168.122.195/24`.
fn first_address(text: &str) -> Option<String> {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let ipv4 = text.lines().map(words).find(|words| words.get(2).is_some_and(|kind| kind == "ipv4"))?;
    ipv4.get(3)?.split('/').next().map(str::to_owned)
}

/// A script with its arguments, `$1` and on.
fn shell(script: &str, arguments: &[&str]) -> Vec<String> {
    ["sh", "-c", script, "sh"].iter().chain(arguments).map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_told_from_other_lines() {
        let text = " vnet0      52:54:00:de:38:33    ipv6         fe80::1/64\n vnet0      52:54:00:de:38:33    ipv4         192.168.122.195/24\n";
        assert_eq!(first_address(text).as_deref(), Some("192.168.122.195"));
        assert_eq!(first_address("\n"), None);
    }
}
