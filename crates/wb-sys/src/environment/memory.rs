//! Memory settings: swap, huge pages and NUMA nodes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Bytes;

use crate::SysRoot;
use crate::facts::memory;
use crate::proc::swaps;

/// Memory size, swap, huge pages and NUMA nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct MemorySettings {
    /// Total memory.
    pub total: Bytes,
    /// Sizes of the swap devices and files, by path.
    pub swap: BTreeMap<String, Bytes>,
    /// Number of reserved huge pages, by page size.
    pub huge_pages: BTreeMap<String, u64>,
    /// Settings of transparent huge pages.
    pub transparent_huge_pages: BTreeMap<String, String>,
    /// Kernel same-page merging: 0 stopped, 1 running, 2 stopped with all pages unmerged.
    pub same_page_merging: Option<String>,
    /// NUMA nodes, by name.
    pub nodes: BTreeMap<String, Node>,
}

/// A NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Node {
    /// CPUs of the node.
    pub cpus: Option<String>,
    /// Memory of the node.
    pub memory: Bytes,
    /// NUMA distances to all nodes; the distance to itself is 10.
    pub distance: Option<String>,
}

impl MemorySettings {
    pub(super) fn read(root: &SysRoot) -> Self {
        let nodes = root.numbered_entries("/sys/devices/system/node", "node").into_iter();
        Self {
            total: memory::total(root),
            swap: swaps(root),
            huge_pages: huge_pages(root),
            transparent_huge_pages: transparent_huge_pages(root),
            same_page_merging: root.text("/sys/kernel/mm/ksm/run").ok(),
            nodes: nodes.map(|id| (format!("node{id}"), node(root, id))).collect(),
        }
    }
}

/// The selected option of a setting that lists all options: `madvise` of `always [madvise] never`.
pub fn selected_option(text: &str) -> &str {
    let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    bracketed.map_or(text, |(selected, _)| selected)
}

/// The sizes of the swap devices and files, by path.
pub fn swaps(root: &SysRoot) -> BTreeMap<String, Bytes> {
    let text = root.text("/proc/swaps").unwrap_or_default();
    swaps::areas(&text).flatten().map(|area| (area.name.to_owned(), area.size)).collect()
}

/// The number of reserved huge pages, by page size: `2048kB`.
pub fn huge_pages(root: &SysRoot) -> BTreeMap<String, u64> {
    let folder = "/sys/kernel/mm/hugepages";
    let sizes = root.list(folder).unwrap_or_default().into_iter();
    let reserved = |name: &str| root.number(format!("{folder}/{name}/nr_hugepages")).ok();
    sizes.filter_map(|name| Some((name.strip_prefix("hugepages-")?.to_owned(), reserved(&name)?))).collect()
}

fn transparent_huge_pages(root: &SysRoot) -> BTreeMap<String, String> {
    let names = ["enabled", "defrag", "shmem_enabled", "use_zero_page", "khugepaged/defrag"];
    let read = |name: &str| root.text(format!("/sys/kernel/mm/transparent_hugepage/{name}")).ok();
    names.iter().filter_map(|name| Some((name.replace('/', "."), selected_option(&read(name)?).to_owned()))).collect()
}

fn node(root: &SysRoot, id: u32) -> Node {
    let text = |name: &str| root.text(format!("/sys/devices/system/node/node{id}/{name}")).ok();
    Node { cpus: text("cpulist"), memory: memory::node_total(root, id), distance: text("distance") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_root;

    #[test]
    fn nodes_pages_and_swap_are_read() {
        let server = MemorySettings::read(&fake_root::server().root());
        assert_eq!(server.nodes["node1"].distance.as_deref(), Some("32 10"));
        assert_eq!(server.nodes["node1"].cpus.as_deref(), Some("4-7,12-15"));
        assert_eq!(server.transparent_huge_pages["defrag"], "madvise");
        let laptop = MemorySettings::read(&fake_root::laptop().root());
        assert_eq!(laptop.swap["/dev/dm-1"], Bytes(8_388_604 << 10));
    }

    #[test]
    fn the_option_in_brackets_is_selected() {
        assert_eq!(selected_option("[none] mq-deadline"), "none");
        assert_eq!(selected_option("none"), "none");
        assert_eq!(selected_option("]["), "][");
    }
}
