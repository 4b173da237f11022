//! Huge pages that are reserved for those that ask for them by name.

use wb_sys::SysRoot;
use wb_sys::environment::memory;

use crate::change::echo_each;
use crate::knob::{Knob, Quiet, Unsupported, Value};
use crate::set::{Write, Writes, number, number_in, one};
use crate::target::Target;

const NODES: &str = "/sys/devices/system/node";
const ABSENT: &str = "the kernel shows no pool of huge pages";
const WHY: &str = "reserved pages are lost to everybody else, also to the page cache";
const EVIDENCE: &str =
    "kernel documentation, HugeTLB Pages: the pool is taken out of memory at once and is never swapped or moved";

/// Those of a size, wherever they lie.
pub struct Reserved;

impl Knob for Reserved {
    fn name(&self) -> &'static str {
        "hugetlb"
    }
    fn why(&self) -> &'static str {
        WHY
    }
    fn evidence(&self) -> &'static str {
        EVIDENCE
    }
    fn targets(&self, sys: &SysRoot) -> Vec<Target> {
        memory::huge_pages(sys).into_keys().map(Target::PageSize).collect()
    }
    fn absent(&self) -> &'static str {
        ABSENT
    }
    fn read(&self, sys: &SysRoot, target: &Target) -> Result<Value, Unsupported> {
        Ok(Value::Number(sys.number(everywhere(&target.to_string()))?))
    }
    fn quiet(&self, value: &Value) -> Quiet {
        quiet(value)
    }
    /// Where there are several nodes each gets its share, as the kernel would do it, but by its own file: only so each
    /// gets back what it had.
    fn set(&self, sys: &SysRoot, target: &Target, wanted: &str) -> Writes {
        let size = target.to_string();
        let all = number(self.name(), wanted, 0..=i64::MAX)?.unsigned_abs();
        let nodes = nodes(sys, &size);
        if nodes.len() < 2 || sys.number::<u64>(everywhere(&size))? == all {
            return one(everywhere(&size), all.to_string());
        }
        let (count, nodes) = (nodes.len() as u64, (0..).zip(nodes));
        let share = |at: u64| all / count + u64::from(at < all % count);
        Ok(nodes.map(|(at, node)| Write::setting(on_node(node, &size), share(at).to_string())).collect())
    }
    fn change(&self, _: &SysRoot, targets: &[Target]) -> String {
        echo_each("0", targets, everywhere)
    }
    /// So many pages of one size are not what so many of another are.
    fn required_target(&self) -> Option<&'static str> {
        Some("a page size")
    }
}

/// Those on a node.
pub struct OnNode;

impl Knob for OnNode {
    fn name(&self) -> &'static str {
        "nr-hugepages"
    }
    fn why(&self) -> &'static str {
        WHY
    }
    fn evidence(&self) -> &'static str {
        EVIDENCE
    }
    fn targets(&self, sys: &SysRoot) -> Vec<Target> {
        let usual = usual(sys);
        let of_node = |node: u32| {
            let sizes = memory::huge_pages(sys).into_keys();
            let there = sizes.filter(|size| sys.exists(on_node(node, size))).collect::<Vec<_>>();
            there.into_iter().map(|size| (usual.as_ref() != Some(&size)).then_some(size)).collect::<Vec<_>>()
        };
        let nodes = sys.numbered(NODES, "node").into_iter();
        nodes.flat_map(|node| of_node(node).into_iter().map(move |size| Target::NodePages(node, size))).collect()
    }
    /// Those of the usual size, as their names are.
    fn default_targets(&self, sys: &SysRoot) -> Vec<Target> {
        let (usual, others): (Vec<Target>, Vec<Target>) =
            self.targets(sys).into_iter().partition(|target| matches!(target, Target::NodePages(_, None)));
        if usual.is_empty() { others } else { usual }
    }
    fn absent(&self) -> &'static str {
        "the kernel shows no pool of huge pages of any node"
    }
    fn read(&self, sys: &SysRoot, target: &Target) -> Result<Value, Unsupported> {
        Ok(Value::Number(sys.number(path(sys, target)?)?))
    }
    fn quiet(&self, value: &Value) -> Quiet {
        quiet(value)
    }
    fn set(&self, sys: &SysRoot, target: &Target, wanted: &str) -> Writes {
        number_in(path(sys, target)?, self.name(), wanted, 0..=i64::MAX)
    }
    fn change(&self, sys: &SysRoot, targets: &[Target]) -> String {
        let paths = targets.iter().filter_map(|target| path(sys, target).ok());
        format!("echo 0 | sudo tee {}", paths.collect::<Vec<_>>().join(" "))
    }
}

fn quiet(value: &Value) -> Quiet {
    match value {
        Value::Number(0) => Quiet::Yes,
        _ => Quiet::Unknown { reason: "steady, but tests have that much less memory unless they ask for such pages" },
    }
}

fn everywhere(size: &str) -> String {
    format!("/sys/kernel/mm/hugepages/hugepages-{size}/nr_hugepages")
}

fn on_node(node: u32, size: &str) -> String {
    format!("{NODES}/node{node}/hugepages/hugepages-{size}/nr_hugepages")
}

fn path(sys: &SysRoot, target: &Target) -> Result<String, Unsupported> {
    match target {
        Target::NodePages(node, Some(size)) => Ok(on_node(*node, size)),
        Target::NodePages(node, None) => {
            let size = usual(sys).ok_or_else(|| Unsupported(ABSENT.to_owned()))?;
            Ok(on_node(*node, &size))
        }
        other => Err(Unsupported(format!("{other} is no node"))),
    }
}

/// The nodes that have pools of a size of their own.
fn nodes(sys: &SysRoot, size: &str) -> Vec<u32> {
    let nodes = sys.numbered(NODES, "node").into_iter();
    nodes.filter(|node| sys.exists(on_node(*node, size))).collect()
}

/// The size that is meant where none is named.
fn usual(sys: &SysRoot) -> Option<String> {
    let text = sys.text("/proc/meminfo").ok()?;
    let size = text.lines().find_map(|line| line.strip_prefix("Hugepagesize:"))?;
    Some(size.split_whitespace().collect())
}

#[cfg(test)]
mod tests {
    use wb_sys::UndoLog;
    use wb_sys::made::MadeRoot;

    use super::*;
    use crate::KnobSet;
    use crate::tune::{Outcome, Wanted, apply, plan, settable};

    fn machine() -> MadeRoot {
        let pools = [("2048kB", "16", ["10", "6"]), ("1048576kB", "0", ["0", "0"])];
        pools.iter().fold(
            MadeRoot::new().file("/proc/meminfo", "Hugepagesize:    2048 kB\n"),
            |made, (size, all, nodes)| {
                let made = made.file(&everywhere(size), format!("{all}\n"));
                (0..).zip(nodes).fold(made, |made, (node, pages)| made.file(&on_node(node, size), format!("{pages}\n")))
            },
        )
    }

    #[test]
    fn each_node_has_a_pool_of_each_size() {
        let made = machine();
        let names: Vec<String> = OnNode.targets(&made.root()).iter().map(Target::to_string).collect();
        assert_eq!(names, ["node0/1048576kB", "node0", "node1/1048576kB", "node1"]);
        let set = OnNode.set(&made.root(), &Target::NodePages(1, None), "8").unwrap();
        assert_eq!(set, [Write::setting(on_node(1, "2048kB"), "8")]);
    }

    #[test]
    fn a_size_is_named_where_there_are_several_and_each_node_has_its_usual_one() {
        let made = machine();
        let ambiguous = settable(&made.root(), "hugetlb", "4").unwrap_err().0;
        assert_eq!(
            ambiguous,
            "`hugetlb=4` needs a page size, since there are several here: write `hugetlb@1048576kB=4` or `hugetlb@2048kB=4`"
        );
        assert_eq!(settable(&made.root(), "hugetlb@2048kB", "4"), Ok(()));
        let knobs = vec![Wanted::new("nr-hugepages", "3".to_owned()).unwrap()];
        let set = KnobSet { name: String::new(), summary: String::new(), knobs };
        let targets: Vec<String> = plan(&made.root(), &set).into_iter().map(|tuned| tuned.target).collect();
        assert_eq!(targets, ["node0", "node1"]);
        let one = MadeRoot::new().file(&everywhere("2048kB"), "0\n");
        assert_eq!(settable(&one.root(), "hugetlb", "4"), Ok(()), "there is no other");
    }

    #[test]
    fn pages_everywhere_are_shared_out_and_each_node_gets_back_its_own() {
        let made = machine();
        let sys = made.root();
        let knobs = vec![Wanted::new("hugetlb@2048kB", "9".to_owned()).unwrap()];
        let set = KnobSet { name: String::new(), summary: String::new(), knobs };
        let mut log = UndoLog::open(&sys, "a test").unwrap();
        assert!(matches!(apply(&sys, &set, &mut log).unwrap()[0].outcome, Outcome::Set { .. }));
        let held = |node| sys.bytes(on_node(node, "2048kB")).unwrap();
        assert_eq!((held(0), held(1)), (b"5".to_vec(), b"4".to_vec()));
        log.revert().unwrap();
        assert_eq!((held(0), held(1)), (b"10\n".to_vec(), b"6\n".to_vec()));
        let same = Reserved.set(&sys, &Target::PageSize("2048kB".to_owned()), "16").unwrap();
        assert_eq!(same, [Write::setting(everywhere("2048kB"), "16")], "however they lie");
    }
}
