use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SysRoot;

/// A network interface. Its addresses are not recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Interface {
    /// Driver; absent for virtual interfaces without a device.
    pub driver: Option<String>,
    /// Model name, where no driver is known: of a machine whose results were imported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Operational state: `up`, `down`, `unknown`.
    pub state: Option<String>,
    /// Maximum transmission unit, in bytes.
    pub mtu: Option<u64>,
    /// Link speed in Mbit/s; absent where the driver reports none, as in a virtual machine.
    pub speed_mbit: Option<u64>,
    /// Length of the transmit queue, in packets.
    pub tx_queue_len: Option<u64>,
    /// Maximum time that received packets are held for generic receive offload (GRO), in ns.
    pub gro_flush_timeout: Option<u64>,
    /// Number of receive and transmit queues.
    pub queues: usize,
}

/// The interfaces, by name, including the virtual ones of containers and virtual machines.
pub fn interfaces(root: &SysRoot) -> BTreeMap<String, Interface> {
    let names = root.list("/sys/class/net").unwrap_or_default();
    names.into_iter().map(|name| (name.clone(), interface(root, &name))).collect()
}

/// The names of the interfaces that are backed by a device.
pub fn devices(root: &SysRoot) -> Vec<String> {
    let names = root.list("/sys/class/net").unwrap_or_default();
    names.into_iter().filter(|name| root.exists(format!("/sys/class/net/{name}/device"))).collect()
}

fn interface(root: &SysRoot, name: &str) -> Interface {
    let folder = format!("/sys/class/net/{name}");
    let number = |file: &str| root.number(format!("{folder}/{file}")).ok();
    Interface {
        driver: root.link(format!("{folder}/device/driver")).ok(),
        model: None,
        state: root.text(format!("{folder}/operstate")).ok(),
        mtu: number("mtu"),
        speed_mbit: number("speed"),
        tx_queue_len: number("tx_queue_len"),
        gro_flush_timeout: number("gro_flush_timeout"),
        queues: root.list(format!("{folder}/queues")).map(|queues| queues.len()).unwrap_or(0),
    }
}
