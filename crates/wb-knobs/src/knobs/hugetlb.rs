//! Huge pages that are reserved for those that ask for them by name.

use wb_sys::SysRoot;
use wb_sys::environment::memory;

use crate::knob::{Assessment, Knob, KnobValue, Unsupported};
use crate::shell_commands::echo_each;
use crate::target::KnobTarget;
use crate::writes::{KnobWrite, KnobWrites, number_in, parse_number, setting_write};

const NODES: &str = "/sys/devices/system/node";
const ABSENT: &str = "the kernel shows no pool of huge pages";
const WHY: &str = "reserved pages are lost to everybody else, also to the page cache";
const EVIDENCE: &str =
    "kernel documentation, HugeTLB Pages: the pool is taken out of memory at once and is never swapped or moved";

/// Those of a size, wherever they lie.
pub struct HugePagePool;

impl Knob for HugePagePool {
    fn name(&self) -> &'static str {
        "hugetlb"
    }
    fn why(&self) -> &'static str {
        WHY
    }
    fn evidence(&self) -> &'static str {
        EVIDENCE
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        memory::huge_pages(sys).into_keys().map(KnobTarget::PageSize).collect()
    }
    fn unsupported_reason(&self) -> &'static str {
        ABSENT
    }
    fn read(&self, sys: &SysRoot, target: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Ok(KnobValue::Number(sys.number(pool_path(&target.to_string()))?))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        quiet(value)
    }
    /// Where there are several nodes each gets its share, as the kernel would do it, but by its own file: only so each
    /// gets back what it had.
    fn writes(&self, sys: &SysRoot, target: &KnobTarget, wanted: &str) -> KnobWrites {
        let size = target.to_string();
        let all = parse_number(self.name(), wanted, 0..=i64::MAX)?.unsigned_abs();
        let nodes = nodes(sys, &size);
        if nodes.len() < 2 || sys.number::<u64>(pool_path(&size))? == all {
            return setting_write(pool_path(&size), all.to_string());
        }
        let (count, nodes) = (nodes.len() as u64, (0..).zip(nodes));
        let share = |at: u64| all / count + u64::from(at < all % count);
        Ok(nodes.map(|(at, node)| KnobWrite::setting(node_pool_path(node, &size), share(at).to_string())).collect())
    }
    fn shell_command(&self, _: &SysRoot, targets: &[KnobTarget]) -> String {
        echo_each("0", targets, pool_path)
    }
    /// So many pages of one size are not what so many of another are.
    fn required_target(&self) -> Option<&'static str> {
        Some("a page size")
    }
}

/// Those on a node.
pub struct NodeHugePagePool;

impl Knob for NodeHugePagePool {
    fn name(&self) -> &'static str {
        "nr-hugepages"
    }
    fn why(&self) -> &'static str {
        WHY
    }
    fn evidence(&self) -> &'static str {
        EVIDENCE
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        let usual = default_size(sys);
        let of_node = |node: u32| {
            let sizes = memory::huge_pages(sys).into_keys();
            let there = sizes.filter(|size| sys.exists(node_pool_path(node, size))).collect::<Vec<_>>();
            there.into_iter().map(|size| (usual.as_ref() != Some(&size)).then_some(size)).collect::<Vec<_>>()
        };
        let nodes = sys.numbered_entries(NODES, "node").into_iter();
        nodes.flat_map(|node| of_node(node).into_iter().map(move |size| KnobTarget::NodePages(node, size))).collect()
    }
    /// Those of the usual size, as their names are.
    fn default_targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        let (usual, others): (Vec<KnobTarget>, Vec<KnobTarget>) =
            self.targets(sys).into_iter().partition(|target| matches!(target, KnobTarget::NodePages(_, None)));
        if usual.is_empty() { others } else { usual }
    }
    fn unsupported_reason(&self) -> &'static str {
        "the kernel shows no pool of huge pages of any node"
    }
    fn read(&self, sys: &SysRoot, target: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Ok(KnobValue::Number(sys.number(path(sys, target)?)?))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        quiet(value)
    }
    fn writes(&self, sys: &SysRoot, target: &KnobTarget, wanted: &str) -> KnobWrites {
        number_in(path(sys, target)?, self.name(), wanted, 0..=i64::MAX)
    }
    fn shell_command(&self, sys: &SysRoot, targets: &[KnobTarget]) -> String {
        let paths = targets.iter().filter_map(|target| path(sys, target).ok());
        format!("echo 0 | sudo tee {}", paths.collect::<Vec<_>>().join(" "))
    }
}

fn quiet(value: &KnobValue) -> Assessment {
    match value {
        KnobValue::Number(0) => Assessment::Yes,
        _ => Assessment::Unknown {
            reason: "steady, but tests have that much less memory unless they ask for such pages",
        },
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
        other => Err(Unsupported(format!("{other} is no node"))),
    }
}

/// The nodes that have pools of a size of their own.
fn nodes(sys: &SysRoot, size: &str) -> Vec<u32> {
    let nodes = sys.numbered_entries(NODES, "node").into_iter();
    nodes.filter(|node| sys.exists(node_pool_path(*node, size))).collect()
}

/// The size that is meant where none is named.
fn default_size(sys: &SysRoot) -> Option<String> {
    let text = sys.text("/proc/meminfo").ok()?;
    let size = text.lines().find_map(|line| line.strip_prefix("Hugepagesize:"))?;
    Some(size.split_whitespace().collect())
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
            |made, (size, all, nodes)| {
                let made = made.file(&pool_path(size), format!("{all}\n"));
                (0..)
                    .zip(nodes)
                    .fold(made, |made, (node, pages)| made.file(&node_pool_path(node, size), format!("{pages}\n")))
            },
        )
    }

    #[test]
    fn each_node_has_a_pool_of_each_size() {
        let made = machine();
        let names: Vec<String> = NodeHugePagePool.targets(&made.root()).iter().map(KnobTarget::to_string).collect();
        assert_eq!(names, ["node0/1048576kB", "node0", "node1/1048576kB", "node1"]);
        let set = NodeHugePagePool.writes(&made.root(), &KnobTarget::NodePages(1, None), "8").unwrap();
        assert_eq!(set, [KnobWrite::setting(node_pool_path(1, "2048kB"), "8")]);
    }

    #[test]
    fn a_size_is_named_where_there_are_several_and_each_node_has_its_usual_one() {
        let made = machine();
        let ambiguous = check_settable(&made.root(), "hugetlb", "4").unwrap_err().0;
        assert_eq!(
            ambiguous,
            "`hugetlb=4` needs a page size, since there are several here: write `hugetlb@1048576kB=4` or `hugetlb@2048kB=4`"
        );
        assert_eq!(check_settable(&made.root(), "hugetlb@2048kB", "4"), Ok(()));
        let knobs = vec![KnobSetting::new("nr-hugepages", "3".to_owned()).unwrap()];
        let set = KnobSet { name: String::new(), summary: String::new(), knobs };
        let targets: Vec<String> = plan(&made.root(), &set).into_iter().map(|tuned| tuned.target).collect();
        assert_eq!(targets, ["node0", "node1"]);
        let one = FakeRoot::new().file(&pool_path("2048kB"), "0\n");
        assert_eq!(check_settable(&one.root(), "hugetlb", "4"), Ok(()), "there is no other");
    }

    #[test]
    fn pages_everywhere_are_shared_out_and_each_node_gets_back_its_own() {
        let made = machine();
        let sys = made.root();
        let knobs = vec![KnobSetting::new("hugetlb@2048kB", "9".to_owned()).unwrap()];
        let set = KnobSet { name: String::new(), summary: String::new(), knobs };
        let mut log = UndoLog::open(&sys, "a test").unwrap();
        assert!(matches!(apply(&sys, &set, &mut log).unwrap()[0].outcome, KnobOutcome::Set { .. }));
        let held = |node| sys.bytes(node_pool_path(node, "2048kB")).unwrap();
        assert_eq!((held(0), held(1)), (b"5".to_vec(), b"4".to_vec()));
        log.revert().unwrap();
        assert_eq!((held(0), held(1)), (b"10\n".to_vec(), b"6\n".to_vec()));
        let same = HugePagePool.writes(&sys, &KnobTarget::PageSize("2048kB".to_owned()), "16").unwrap();
        assert_eq!(same, [KnobWrite::setting(pool_path("2048kB"), "16")], "however they lie");
    }
}
