//! Waiting for children as they end, adopted ones too: no zombie stays.

use std::rc::Rc;

use tokio::signal::unix::Signal;
use wb_sys::process::{reap_any, tree};

use super::Agent;
use super::processes::LiveProcess;

/// Reaps whenever a child has ended, for as long as the agent lives.
pub(super) async fn run(agent: Rc<Agent>, mut children: Signal) {
    while children.recv().await.is_some() {
        agent.reap();
    }
}

impl Agent {
    /// Reaps every child that has ended, and tells its process and its group.
    pub(super) fn reap(&self) {
        self.check_zombies_for_strays();
        while let Some(reaped) = reap_any() {
            let process = self.find_running(reaped.pid);
            let group = match &process {
                Some((_, process)) => self.group(process.group).ok(),
                None => self.group_of(reaped.pid),
            };
            if let Some(group) = group {
                group.record_reaped(&reaped);
            }
            if let Some((id, process)) = process {
                process.record_exit(reaped);
                if process.is_forgotten() {
                    self.processes.borrow_mut().remove(&id);
                }
            }
        }
    }

    /// What has ended and is not reaped yet still tells where it ran at last.
    fn check_zombies_for_strays(&self) {
        let processes = self.processes.borrow();
        for process in processes.values().filter(|process| process.is_placed() && !process.has_ended()) {
            if tree::read_stat(&self.root, process.pid).is_some_and(|entry| entry.is_zombie()) {
                process.check_for_strays(&self.root, process.pid);
            }
        }
    }

    /// The process of this system's id that has not been reaped.
    fn find_running(&self, pid: u32) -> Option<(u32, Rc<LiveProcess>)> {
        let processes = self.processes.borrow();
        let found = processes.iter().find(|(_, process)| process.pid == pid && !process.has_ended());
        found.map(|(id, process)| (*id, process.clone()))
    }
}
