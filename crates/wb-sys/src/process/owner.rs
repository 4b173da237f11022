//! Names of cgroups and folders carry their owning process, so that leftovers of killed agents can be identified.

use std::fmt;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::SysRoot;

use super::tree;

const PREFIX: &str = "weighbridge";

/// A process that owns cgroups and folders, identified by its id, start time and PID namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    pid: u32,
    started: u64,
    namespace: u64,
}

impl Owner {
    /// The calling process.
    pub fn current(root: &SysRoot) -> Self {
        let pid = std::process::id();
        let started = tree::read_stat(root, pid).map_or(0, |entry| entry.started);
        Self { pid, started, namespace: namespace(root) }
    }

    /// Parses the owner in a resource name, ignoring the rest of the name.
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

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The name of the owner's resource with this number. All names have the same length, because they appear in the
    /// environment of measured processes, whose length shifts the stack.
    pub fn resource_name(&self, number: u32) -> String {
        format!("{self}-{number:06}")
    }

    /// The user that the process runs as.
    pub fn user(&self, root: &SysRoot) -> ProcessUser {
        if self.namespace != namespace(root) {
            return ProcessUser::Hidden;
        }
        match tree::read_stat(root, self.pid) {
            Some(entry) if entry.started == self.started && !entry.is_zombie() => {
                tree::effective_user(root, self.pid).map_or(ProcessUser::Gone, ProcessUser::Known)
            }
            None if is_hidden(self.pid) => ProcessUser::Hidden,
            _ => ProcessUser::Gone,
        }
    }

    /// Whether the process certainly no longer exists; never certain for another namespace.
    pub fn is_gone(&self, root: &SysRoot) -> bool {
        self.namespace == namespace(root)
            && tree::read_stat(root, self.pid).is_none_or(|entry| entry.started != self.started || entry.is_zombie())
    }
}

/// What can be known here of the user that a process runs as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessUser {
    /// The number of its effective user.
    Known(u32),
    /// It no longer exists.
    Gone,
    /// It is in another PID namespace, or the system hides the processes of other users.
    Hidden,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}-{:08}-{:012}-{:010}", self.pid, self.started, self.namespace)
    }
}

/// Whether a process that `/proc` does not show exists nevertheless: `hidepid` hides those of other users.
fn is_hidden(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::PERM))
}

/// The inode number of this process's PID namespace.
fn namespace(root: &SysRoot) -> u64 {
    let name = root.link("/proc/self/ns/pid").unwrap_or_default();
    name.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_identifies_its_owner() {
        let root = SysRoot::real();
        let current = Owner::current(&root);
        assert_eq!(Owner::parse(&current.to_string()), Some(current));
        assert_eq!(Owner::parse(&current.resource_name(7)), Some(current));
        assert_eq!(current.resource_name(7).len(), current.resource_name(999_999).len());
        assert!(!current.is_gone(&root));
        assert!(Owner { started: current.started + 1, ..current }.is_gone(&root));
        assert!(!Owner { started: current.started + 1, namespace: 1, ..current }.is_gone(&root));
        let own = rustix::process::geteuid().as_raw();
        assert_eq!(current.user(&root), ProcessUser::Known(own));
        assert_eq!(Owner { started: current.started + 1, ..current }.user(&root), ProcessUser::Gone);
        assert_eq!(Owner { pid: u32::MAX, ..current }.user(&root), ProcessUser::Gone);
        assert_eq!(Owner { namespace: 1, ..current }.user(&root), ProcessUser::Hidden);
        for invalid in ["", "weighbridge", "weighbridge-x-1-1", "weighbridge-1-1", "other-1-2-3"] {
            assert_eq!(Owner::parse(invalid), None, "{invalid}");
        }
    }
}
