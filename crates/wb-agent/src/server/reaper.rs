//! Reaps exited children, adopted ones included.

use std::rc::Rc;

use tokio::signal::unix::Signal;
use wb_sys::process::{find_ended, has_ended, reap, tree};

use super::Agent;
use super::processes::LiveProcess;

/// Reaps on every SIGCHLD, as long as the agent lives.
pub(super) async fn run(agent: Rc<Agent>, mut children: Signal) {
    while children.recv().await.is_some() {
        agent.reap();
    }
}

impl Agent {
    /// Reaps every child that has exited, and records the exit in its process and group. The exits of orphans are
    /// recorded first: the process of their session may have exited after them, and counts them until its own exit.
    pub(super) fn reap(&self) {
        self.check_zombies_for_strays();
        let mut leaders = Vec::new();
        while let Some((pid, session)) = find_ended().map(|pid| (pid, self.session_of(pid)))
            && let Some(reaped) = reap(pid)
        {
            if let Some((id, process)) = self.find_running(pid) {
                leaders.push((id, process, reaped));
                continue;
            }
            if let Some(group) = self.group_of(pid) {
                group.record_reaped(&reaped);
            }
            if let Some((_, leader)) = session.and_then(|session| self.find_running(session)) {
                leader.record_orphan(&reaped);
            }
        }
        for (id, process, reaped) in leaders {
            if let Ok(group) = self.group(process.group) {
                group.record_reaped(&reaped);
            }
            process.record_exit(&self.root, reaped);
            if process.is_discarded() {
                self.processes.borrow_mut().remove(&id);
            }
        }
    }

    /// The session of a child that has not been reaped, by its leader.
    fn session_of(&self, pid: u32) -> Option<u32> {
        Some(tree::read_stat(&self.root, pid)?.session)
    }

    /// Checks exited processes for placement violations before they are reaped.
    fn check_zombies_for_strays(&self) {
        let processes = self.processes.borrow();
        for process in processes.values().filter(|process| process.is_placed() && !process.has_ended()) {
            if has_ended(process.pid) {
                process.check_for_strays(&self.root, process.pid);
            }
        }
    }

    /// Finds the process with this process id that has not been reaped.
    fn find_running(&self, pid: u32) -> Option<(u32, Rc<LiveProcess>)> {
        let processes = self.processes.borrow();
        let entry = processes.iter().find(|(_, process)| process.pid == pid && !process.has_ended());
        entry.map(|(id, process)| (*id, process.clone()))
    }
}
