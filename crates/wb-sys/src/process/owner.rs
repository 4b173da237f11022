//! Who a thing left on the machine belongs to: its name tells, so that what a killed agent left
//! behind is known for what it is.

use std::fmt;

use crate::SysRoot;

use super::tree;

const PREFIX: &str = "weighbridge";

/// A process that owns cgroups and folders: its id, its start, and the namespace in which the id counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    pid: u32,
    started: u64,
    namespace: u64,
}

impl Owner {
    /// This process.
    pub fn current(root: &SysRoot) -> Self {
        let pid = std::process::id();
        let started = tree::read_stat(root, pid).map_or(0, |entry| entry.started);
        Self { pid, started, namespace: namespace(root) }
    }

    /// The owner that a name tells, with whatever follows in it.
    pub fn parse(name: &str) -> Option<Self> {
        let mut parts = name.split('-');
        if parts.next()? != PREFIX {
            return None;
        }
        Some(Self {
            pid: parts.next()?.parse().ok()?,
            started: parts.next()?.parse().ok()?,
            namespace: parts.next()?.parse().ok()?,
        })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The name of its `number`th thing. All names are equally long, because names get into the
    /// environment of measured processes, and its length moves their stack.
    pub fn resource_name(&self, number: u32) -> String {
        format!("{self}-{number:06}")
    }

    /// Whether it is certainly gone. One of another namespace is never certain.
    pub fn is_gone(&self, root: &SysRoot) -> bool {
        self.namespace == namespace(root)
            && tree::read_stat(root, self.pid).is_none_or(|entry| entry.started != self.started || entry.is_zombie())
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}-{:08}-{:012}-{:010}", self.pid, self.started, self.namespace)
    }
}

/// The number of this process's PID namespace.
fn namespace(root: &SysRoot) -> u64 {
    let name = root.link("/proc/self/ns/pid").unwrap_or_default();
    name.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_its_owner_and_whether_it_is_gone() {
        let root = SysRoot::real();
        let me = Owner::current(&root);
        assert_eq!(Owner::parse(&me.to_string()), Some(me));
        assert_eq!(Owner::parse(&me.resource_name(7)), Some(me));
        assert_eq!(me.resource_name(7).len(), me.resource_name(999_999).len());
        assert!(!me.is_gone(&root));
        assert!(Owner { started: me.started + 1, ..me }.is_gone(&root));
        assert!(!Owner { started: me.started + 1, namespace: 1, ..me }.is_gone(&root));
        for other in ["", "weighbridge", "weighbridge-x-1-1", "weighbridge-1-1", "other-1-2-3"] {
            assert_eq!(Owner::parse(other), None, "{other}");
        }
    }
}
