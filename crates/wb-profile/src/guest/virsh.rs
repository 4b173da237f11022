//! Starts libvirt domains, networks and storage pools as steps that the undo log can revert.
//!
//! Domains are transient: however they end, including by a reboot, no definition remains.

use wb_agent::TeardownGroup;
use wb_model::WorkerName;
use wb_sys::undo::ManagedResource;

use crate::error::ProfileErrorKind;
use crate::host::{last_lines, require_program, run};
use crate::profile::VirtType;

pub(crate) const CONNECTION: &str = "qemu:///system";

const FORWARDING: &str = "/proc/sys/net/ipv4/ip_forward";
/// The state of a running domain, network or pool.
const PRESENT: &str = "there";
/// Prints whether a domain runs, or left its log when it ended by itself. Fails if the list cannot be read, instead of
/// taking it as empty.
const DOMAIN_STATE_SCRIPT: &str = r#"
all=$(virsh -q -c "$1" list --name) || exit
printf '%s\n' "$all" | grep -qxF -- "$2" || [ -e "/var/log/libvirt/qemu/$2.log" ] && printf there || printf none
"#;
/// Starts a domain from a file, or stops it; succeeds if it ends by itself meanwhile. libvirt keeps the log of each
/// domain for ever, so the log is removed with the domain.
const DOMAIN_SCRIPT: &str = r#"
case $4 in there) exec virsh -q -c "$1" create "$3" >&2;; esac
virsh -q -c "$1" destroy "$2" >&2 || ! virsh -q -c "$1" domstate "$2" >/dev/null 2>&1 || exit
rm -f "/var/log/libvirt/qemu/$2.log" "/var/log/libvirt/qemu/$2.log".[0-9]
"#;
const NETWORK_STATE_SCRIPT: &str = r#"all=$(virsh -q -c "$1" net-list --name) || exit; printf '%s\n' "$all" | grep -qxF -- "$2" && printf there || printf none"#;
/// Starts or stops a network. libvirt's packet filter chains stay, empty: it creates them once and fails if they have
/// been removed.
const NETWORK_SCRIPT: &str = r#"case $3 in there) exec virsh -q -c "$1" net-start "$2" >&2;; *) exec virsh -q -c "$1" net-destroy "$2" >&2;; esac"#;

const POOL_STATE_SCRIPT: &str = r#"all=$(virsh -q -c "$1" pool-list --all --name) || exit; printf '%s\n' "$all" | grep -qxF -- "$2" && printf there || printf none"#;
/// Creates a transient pool for a folder, or removes it.
const POOL_SCRIPT: &str = r#"case $4 in there) exec virsh -q -c "$1" pool-create-as "$2" dir --target "$3" >&2;; *) exec virsh -q -c "$1" pool-destroy "$2" >&2;; esac"#;

/// Requires that libvirt responds.
pub(crate) async fn require_libvirt(group: &TeardownGroup) -> Result<(), ProfileErrorKind> {
    require_program(group, "virsh", "libvirt-clients").await?;
    match run(group, ["virsh", "-q", "-c", CONNECTION, "uri"]).await {
        Ok(_) => Ok(()),
        Err(ProfileErrorKind::Program { output, .. }) => Err(ProfileErrorKind::NoLibvirt(last_lines(&output, 2))),
        Err(other) => Err(other),
    }
}

/// Starts a domain; it runs until the group is torn down.
pub(crate) async fn start(
    group: &TeardownGroup,
    guest: &WorkerName,
    domain: &str,
    xml: &str,
) -> Result<(), ProfileErrorKind> {
    let resource = ManagedResource::Command {
        name: format!("the guest {guest}"),
        read: shell(DOMAIN_STATE_SCRIPT, &[CONNECTION, domain]),
        write: shell(DOMAIN_SCRIPT, &[CONNECTION, domain, xml, "{}"]),
    };
    // A domain of this name may have left its log in an earlier boot if the host was killed.
    run(group, ["rm", "-f", &format!("/var/log/libvirt/qemu/{domain}.log")]).await?;
    group.apply_change(resource, Some(PRESENT.to_owned())).await?;
    Ok(())
}

/// Starts a network if it does not run; it is then stopped when the group is torn down.
pub(crate) async fn require_network(group: &TeardownGroup, network: &str) -> Result<(), ProfileErrorKind> {
    let read = shell(NETWORK_STATE_SCRIPT, &[CONNECTION, network]);
    if run(group, read.clone()).await?.trim() == PRESENT {
        return Ok(());
    }
    // libvirt enables IP forwarding and leaves it on: the undo log must restore it.
    if run(group, ["cat", FORWARDING]).await?.trim() == "0" {
        group.apply_change(ManagedResource::setting(FORWARDING), Some("1".to_owned())).await?;
    }
    let write = shell(NETWORK_SCRIPT, &[CONNECTION, network, "{}"]);
    let resource = ManagedResource::Command { name: format!("libvirt's network {network}"), read, write };
    group.apply_change(resource, Some(PRESENT.to_owned())).await?;
    Ok(())
}

/// Requires that a network is defined, whether it runs or not.
pub(crate) async fn require_network_defined(group: &TeardownGroup, network: &str) -> Result<(), ProfileErrorKind> {
    match run(group, ["virsh", "-q", "-c", CONNECTION, "net-info", network]).await {
        Err(ProfileErrorKind::Program { output, .. }) => {
            Err(ProfileErrorKind::NoNetwork { network: network.to_owned(), output: last_lines(&output, 1) })
        }
        other => other.map(drop),
    }
}

/// Requires that libvirt has an emulator for guests of a type.
pub(crate) async fn require_emulator(
    group: &TeardownGroup,
    virt: VirtType,
    emulator: Option<&str>,
) -> Result<(), ProfileErrorKind> {
    let mut words = vec!["virsh", "-q", "-c", CONNECTION, "domcapabilities", "--virttype", virt.name()];
    words.extend(emulator.iter().flat_map(|path| ["--emulatorbin", path]));
    match run(group, words).await {
        Err(ProfileErrorKind::Program { output, .. }) => Err(ProfileErrorKind::NoEmulator(last_lines(&output, 1))),
        other => other.map(drop),
    }
}

/// Defines a folder as a pool until the group is torn down; otherwise virt-install would define a permanent one.
pub(crate) async fn require_pool(group: &TeardownGroup, folder: &str) -> Result<(), ProfileErrorKind> {
    let name = folder.rsplit('/').next().unwrap_or(folder);
    let resource = ManagedResource::Command {
        name: format!("libvirt's pool of {folder}"),
        read: shell(POOL_STATE_SCRIPT, &[CONNECTION, name]),
        write: shell(POOL_SCRIPT, &[CONNECTION, name, folder, "{}"]),
    };
    group.apply_change(resource, Some(PRESENT.to_owned())).await?;
    Ok(())
}

/// The domain's state as libvirt prints it; none if there is no such domain.
pub(crate) async fn state(group: &TeardownGroup, domain: &str) -> Result<Option<String>, ProfileErrorKind> {
    match run(group, ["virsh", "-q", "-c", CONNECTION, "domstate", domain]).await {
        Ok(state) => Ok(Some(state.trim().to_owned())),
        Err(ProfileErrorKind::Program { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

/// The first IPv4 address of a domain, from its network's DHCP leases, else from the ARP table.
pub(crate) async fn address(group: &TeardownGroup, domain: &str) -> Result<Option<String>, ProfileErrorKind> {
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

/// Extracts the address from a line such as ` vnet0  52:54:00:de:38:33  ipv4  192.168.122.195/24`.
fn first_address(text: &str) -> Option<String> {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let ipv4 = text.lines().map(words).find(|words| words.get(2).is_some_and(|kind| kind == "ipv4"))?;
    ipv4.get(3)?.split('/').next().map(str::to_owned)
}

/// The command that runs a shell script with arguments `$1`, `$2` and so on.
fn shell(script: &str, arguments: &[&str]) -> Vec<String> {
    ["sh", "-c", script, "sh"].iter().chain(arguments).map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv4_address_is_found_among_other_lines() {
        let text = " vnet0      52:54:00:de:38:33    ipv6         fe80::1/64\n vnet0      52:54:00:de:38:33    ipv4         192.168.122.195/24\n";
        assert_eq!(first_address(text).as_deref(), Some("192.168.122.195"));
        assert_eq!(first_address("\n"), None);
    }
}
