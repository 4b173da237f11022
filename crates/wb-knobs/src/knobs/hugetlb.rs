//! Pools of reserved huge pages (hugetlb).

use wb_sys::SysRoot;
use wb_sys::environment::memory;
use wb_sys::proc::meminfo;

use crate::knob::{Assessment, Knob, KnobDescription, KnobValue};
use crate::shell_commands::echo_each;
use crate::target::KnobTarget;
use crate::unsupported::Unsupported;
use crate::writes::{KnobWrite, KnobWrites, number_write, parse_number, setting_write};

const NODES: &str = "/sys/devices/system/node";
const ABSENT: &str = "the kernel has no pool of huge pages";
const WHY: &str = "reserved pages are unavailable to everything else, including the page cache";
const EVIDENCE: &str =
    "kernel documentation, HugeTLB Pages: the pool is allocated at once and is never swapped or moved";

/// The number of reserved huge pages of a size, on all nodes.
pub struct HugePagePool;

impl Knob for HugePagePool {
    fn description(&self) -> &KnobDescription {
        &KnobDescription { name: "hugetlb", why: WHY, evidence: EVIDENCE, unsupported_reason: ABSENT }
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        memory::huge_pages(sys).into_keys().map(KnobTarget::PageSize).collect()
    }
    fn read(&self, sys: &SysRoot, target: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Ok(KnobValue::Number(sys.number(pool_path(&target.to_string()))?))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        quiet(value)
    }
    fn check_value(&self, value: &str) -> Result<(), Unsupported> {
        parse_number(self.name(), value, 0..=i64::MAX).map(drop)
    }
    fn writes(&self, sys: &SysRoot, target: &KnobTarget, value: &str) -> KnobWrites {
        let size = target.to_string();
        let all = parse_number(self.name(), value, 0..=i64::MAX)?.unsigned_abs();
        let nodes = nodes(sys, &size);
        if nodes.len() < 2 || sys.number::<u64>(pool_path(&size))? == all {
            return setting_write(pool_path(&size), all.to_string());
        }
        // Each node gets its share, as the kernel would distribute them, but through its own file, so that each node's
        // previous number can be restored.
        let (count, nodes) = (nodes.len() as u64, (0..).zip(nodes));
        let share = |index: u64| all / count + u64::from(index < all % count);
        Ok(nodes
            .map(|(index, node)| KnobWrite::setting(node_pool_path(node, &size), share(index).to_string()))
            .collect())
    }
    fn shell_command(&self, _: &SysRoot, targets: &[KnobTarget]) -> String {
        echo_each("0", targets, pool_path)
    }
    /// Targets are page sizes: a number of pages is meaningless without their size.
    fn required_target(&self) -> Option<&'static str> {
        Some("a page size")
    }
}

pub struct NodeHugePagePool;

impl Knob for NodeHugePagePool {
    fn description(&self) -> &KnobDescription {
        &KnobDescription {
            name: "nr-hugepages",
            why: WHY,
            evidence: EVIDENCE,
            unsupported_reason: "the kernel has no per-node pool of huge pages",
        }
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        let default = default_size(sys);
        let sizes_of = |node: u32| {
            let sizes = memory::huge_pages(sys).into_keys();
            let existing = sizes.filter(|size| sys.exists(node_pool_path(node, size))).collect::<Vec<_>>();
            existing.into_iter().map(|size| (default.as_ref() != Some(&size)).then_some(size)).collect::<Vec<_>>()
        };
        let nodes = sys.numbered_entries(NODES, "node").into_iter();
        nodes.flat_map(|node| sizes_of(node).into_iter().map(move |size| KnobTarget::NodePages(node, size))).collect()
    }
    /// The pools of the default size, whose names have no size.
    fn default_targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        let (default, others): (Vec<KnobTarget>, Vec<KnobTarget>) =
            self.targets(sys).into_iter().partition(|target| matches!(target, KnobTarget::NodePages(_, None)));
        if default.is_empty() { others } else { default }
    }
    fn read(&self, sys: &SysRoot, target: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Ok(KnobValue::Number(sys.number(path(sys, target)?)?))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        quiet(value)
    }
    fn check_value(&self, value: &str) -> Result<(), Unsupported> {
        parse_number(self.name(), value, 0..=i64::MAX).map(drop)
    }
    fn writes(&self, sys: &SysRoot, target: &KnobTarget, value: &str) -> KnobWrites {
        number_write(path(sys, target)?, self.name(), value, 0..=i64::MAX)
    }
    fn shell_command(&self, sys: &SysRoot, targets: &[KnobTarget]) -> String {
        let paths = targets.iter().filter_map(|target| path(sys, target).ok());
        format!("echo 0 | sudo tee {}", paths.collect::<Vec<_>>().join(" "))
    }
}

fn quiet(value: &KnobValue) -> Assessment {
    match value {
        KnobValue::Number(0) => Assessment::Quiet,
        _ => Assessment::Unknown { reason: "steady, but tests that do not use such pages have less memory" },
    }
}

fn pool_path(size: &str) -> String {
    format!("/sys/kernel/mm/hugepages/hugepages-{size}/nr_hugepages")
}

fn node_pool_path(node: u32, size: &str) -> String {
    format!("{NODES}/node{node}/hugepages/hugepages-{size}/nr_hugepages")
}

fn path(sys: &SysRoot, target: &KnobTarget) -> Result<String, Unsupported> {
    match target {
        KnobTarget::NodePages(node, Some(size)) => Ok(node_pool_path(*node, size)),
        KnobTarget::NodePages(node, None) => {
            let size = default_size(sys).ok_or_else(|| Unsupported(ABSENT.to_owned()))?;
            Ok(node_pool_path(*node, &size))
        }
        other => Err(Unsupported(format!("invalid target `{other}`: expected a node"))),
    }
}

fn nodes(sys: &SysRoot, size: &str) -> Vec<u32> {
    let nodes = sys.numbered_entries(NODES, "node").into_iter();
    nodes.filter(|node| sys.exists(node_pool_path(*node, size))).collect()
}

fn default_size(sys: &SysRoot) -> Option<String> {
    let size = meminfo::size(&sys.text("/proc/meminfo").ok()?, "Hugepagesize")?;
    Some(format!("{}kB", size.0 / 1024))
}

#[cfg(test)]
mod tests {
    use wb_sys::UndoLog;
    use wb_sys::fake_root::FakeRoot;

    use super::*;
    use crate::KnobSet;
    use crate::tune::{KnobOutcome, KnobSetting, apply, check_settable, plan};

    fn machine() -> FakeRoot {
        let pools = [("2048kB", "16", ["10", "6"]), ("1048576kB", "0", ["0", "0"])];
        pools.iter().fold(
            FakeRoot::new().file("/proc/meminfo", "Hugepagesize:    2048 kB\n"),
            |fake, (size, all, nodes)| {
                let fake = fake.file(&pool_path(size), format!("{all}\n"));
                (0..)
                    .zip(nodes)
                    .fold(fake, |fake, (node, pages)| fake.file(&node_pool_path(node, size), format!("{pages}\n")))
            },
        )
    }

    #[test]
    fn each_node_has_a_pool_of_each_page_size() {
        let fake = machine();
        let names: Vec<String> = NodeHugePagePool.targets(&fake.root()).iter().map(KnobTarget::to_string).collect();
        assert_eq!(names, ["node0/1048576kB", "node0", "node1/1048576kB", "node1"]);
        let set = NodeHugePagePool.writes(&fake.root(), &KnobTarget::NodePages(1, None), "8").unwrap();
        assert_eq!(set, [KnobWrite::setting(node_pool_path(1, "2048kB"), "8")]);
    }

    #[test]
    fn a_page_size_is_required_where_there_are_several() {
        let fake = machine();
        let four_pages = KnobSetting::for_knob(&HugePagePool, None, "4");
        let ambiguous = check_settable(&fake.root(), &four_pages).unwrap_err().reason;
        assert_eq!(
            ambiguous,
            "`hugetlb=4` needs a page size, since there are several here: write `hugetlb@1048576kB=4` or `hugetlb@2048kB=4`"
        );
        let of_a_size = KnobSetting { target: Some("2048kB".to_owned()), ..four_pages.clone() };
        assert_eq!(check_settable(&fake.root(), &of_a_size), Ok(()));
        let set = KnobSet::parse("", "knobs.\'nr-hugepages\' = \'3\'").unwrap();
        let targets: Vec<String> = plan(&fake.root(), &set).into_iter().map(|tuned| tuned.target).collect();
        assert_eq!(targets, ["node0", "node1"]);
        let single_size = FakeRoot::new().file(&pool_path("2048kB"), "0\n");
        assert_eq!(check_settable(&single_size.root(), &four_pages), Ok(()), "it is the only size");
    }

    #[test]
    fn pages_are_distributed_over_nodes_and_restored_per_node() {
        let fake = machine();
        let sys = fake.root();
        let set = KnobSet::parse("", "knobs.\'hugetlb@2048kB\' = \'9\'").unwrap();
        let mut log = UndoLog::open(&sys, "a test").unwrap();
        assert!(matches!(apply(&sys, &set, &mut log).unwrap()[0].outcome, KnobOutcome::Set { .. }));
        let pages = |node| sys.bytes(node_pool_path(node, "2048kB")).unwrap();
        assert_eq!((pages(0), pages(1)), (b"5".to_vec(), b"4".to_vec()));
        log.revert().unwrap();
        assert_eq!((pages(0), pages(1)), (b"10\n".to_vec(), b"6\n".to_vec()));
        let same = HugePagePool.writes(&sys, &KnobTarget::PageSize("2048kB".to_owned()), "16").unwrap();
        assert_eq!(same, [KnobWrite::setting(pool_path("2048kB"), "16")], "regardless of their distribution");
    }
}
