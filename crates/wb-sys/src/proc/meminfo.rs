//! `/proc/meminfo`, and the `meminfo` of a NUMA node.

use wb_model::Bytes;

/// The sizes by name, in the order of the file. Counts without a unit are left out.
pub fn sizes(text: &str) -> impl Iterator<Item = (&str, Bytes)> {
    text.lines().filter_map(|line| {
        let (name, size) = line.split_once(':')?;
        let kilobytes: u64 = size.trim().strip_suffix("kB")?.trim().parse().ok()?;
        // The lines of a node begin with its name: `Node 0 MemFree`.
        Some((name.split_whitespace().last()?, Bytes(kilobytes.checked_mul(1024)?)))
    })
}

pub fn size(text: &str, name: &str) -> Option<Bytes> {
    sizes(text).find_map(|(found, size)| (found == name).then_some(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_system_and_node_are_in_bytes() {
        let text = "MemTotal:  16 kB\nHugePages_Total: 4\nNode 1 MemFree: 2 kB\n";
        assert!(sizes(text).eq([("MemTotal", Bytes(16 << 10)), ("MemFree", Bytes(2 << 10))]));
        assert_eq!(size(text, "MemFree"), Some(Bytes(2 << 10)));
        assert_eq!(size(text, "Mem"), None);
    }
}
