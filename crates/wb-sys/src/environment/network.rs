//! Network interfaces.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SysRoot;

/// A network interface. Its addresses are not recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Interface {
    /// Its driver; none where there is no device behind it.
    pub driver: Option<String>,
    /// Its state: `up`, `down`, `unknown`.
    pub state: Option<String>,
    /// The largest packet, in bytes.
    pub mtu: Option<u64>,
    /// Its speed in Mbit/s; none where it has none, as in a virtual machine.
    pub speed_mbit: Option<u64>,
    /// Packets that may wait to be sent.
    pub tx_queue_len: Option<u64>,
    /// How long received packets may be held to be joined, in ns.
    pub gro_flush_timeout: Option<u64>,
    /// Queues to receive and to send.
    pub queues: usize,
}

/// The interfaces, by name. Those that containers and virtual machines come and go with are among them.
pub fn interfaces(root: &SysRoot) -> BTreeMap<String, Interface> {
    let names = root.list("/sys/class/net").unwrap_or_default();
    names.into_iter().map(|name| (name.clone(), interface(root, &name))).collect()
}

/// The names of those that have a device behind them.
pub fn devices(root: &SysRoot) -> Vec<String> {
    let names = root.list("/sys/class/net").unwrap_or_default();
    names.into_iter().filter(|name| root.exists(format!("/sys/class/net/{name}/device"))).collect()
}

fn interface(root: &SysRoot, name: &str) -> Interface {
    let folder = format!("/sys/class/net/{name}");
    let number = |file: &str| root.number(format!("{folder}/{file}")).ok();
    Interface {
        driver: root.link(format!("{folder}/device/driver")).ok(),
        state: root.text(format!("{folder}/operstate")).ok(),
        mtu: number("mtu"),
        speed_mbit: number("speed"),
        tx_queue_len: number("tx_queue_len"),
        gro_flush_timeout: number("gro_flush_timeout"),
        queues: root.list(format!("{folder}/queues")).map(|queues| queues.len()).unwrap_or(0),
    }
}
