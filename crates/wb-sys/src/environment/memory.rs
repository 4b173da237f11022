//! Memory, its pages and its nodes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Bytes;

use crate::SysRoot;
use crate::facts::memory;

/// Memory, its pages and its nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct MemorySettings {
    /// In all.
    pub total: Bytes,
    /// Swap devices and files, and their sizes.
    pub swap: BTreeMap<String, Bytes>,
    /// Pages reserved of each huge size.
    pub huge_pages: BTreeMap<String, u64>,
    /// The settings of transparent huge pages.
    pub transparent_huge_pages: BTreeMap<String, String>,
    /// Whether equal pages are merged: 0 not, 1 they are, 2 taken apart again.
    pub same_page_merging: Option<String>,
    /// The NUMA nodes.
    pub nodes: BTreeMap<String, Node>,
}

/// A NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Node {
    /// Its CPUs.
    pub cpus: Option<String>,
    /// Its memory.
    pub memory: Bytes,
    /// How far each node is from it; itself is 10.
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

/// The chosen one of a setting that lists what could be chosen: `always [madvise] never`.
pub fn selected_option(text: &str) -> &str {
    let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    bracketed.map_or(text, |(chosen, _)| chosen)
}

/// Swap devices and files, and their sizes.
pub fn swaps(root: &SysRoot) -> BTreeMap<String, Bytes> {
    let text = root.text("/proc/swaps").unwrap_or_default();
    let swaps = text.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_whitespace();
        let (name, kilobytes) = (fields.next()?, fields.nth(1)?.parse::<u64>().ok()?);
        Some((name.to_owned(), Bytes(kilobytes.saturating_mul(1024))))
    });
    swaps.collect()
}

/// Pages reserved of each huge size: `2048kB`.
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
    Node { cpus: text("cpulist"), memory: memory::of_node(root, id), distance: text("distance") }
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
    fn what_is_in_brackets_is_chosen() {
        assert_eq!(selected_option("[none] mq-deadline"), "none");
        assert_eq!(selected_option("none"), "none");
        assert_eq!(selected_option("]["), "][");
    }
}
