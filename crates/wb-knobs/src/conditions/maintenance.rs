//! Work that the system does by itself.

use wb_sys::SysRoot;

use crate::condition::{Condition, ConditionReport, SystemSample};

/// Maintenance that runs now.
pub struct MaintenanceJobs;

/// Programs of maintenance, cut to the 15 characters that the kernel keeps of a name.
const MAINTENANCE: [&str; 21] = [
    "apt",
    "apt-get",
    "aptitude",
    "dpkg",
    "unattended-upgr",
    "dnf",
    "yum",
    "zypper",
    "pacman",
    "rpm",
    "updatedb",
    "updatedb.ploca",
    "updatedb.plocat",
    "mandb",
    "fstrim",
    "logrotate",
    "fwupdmgr",
    "baloo_file_extr",
    "tracker-extract",
    "clamscan",
    "e2scrub",
];

impl Condition for MaintenanceJobs {
    fn name(&self) -> &'static str {
        "maintenance"
    }
    fn why(&self) -> &'static str {
        "installing, indexing and cleaning use CPU and disk for minutes, and change what is measured"
    }
    fn evidence(&self) -> &'static str {
        "names of running processes; an upgrade in the middle of a run also exchanges libraries"
    }
    fn observe(&self, seen: &SystemSample<'_>) -> Vec<ConditionReport> {
        let processes = &seen.after.processes;
        if processes.is_empty() {
            return vec![ConditionReport::unsupported("processes cannot be seen here")];
        }
        let running = processes
            .iter()
            .filter(|(id, process)| MAINTENANCE.contains(&process.name.as_str()) && !is_idle_daemon(seen.root, **id));
        let mut names: Vec<&str> = running.map(|(_, process)| process.name.as_str()).collect();
        names.dedup();
        vec![match names.is_empty() {
            true => ConditionReport::quiet("none runs"),
            false => ConditionReport::noisy(
                names.join(", "),
                "wait until it is done",
                Some(format!("pgrep -a '{}'", names.join("|"))),
            ),
        }]
    }
}

/// Debian keeps a process that does nothing until the machine shuts down.
fn is_idle_daemon(root: &SysRoot, id: u32) -> bool {
    root.text(format!("/proc/{id}/cmdline")).is_ok_and(|line| line.contains("--wait-for-signal"))
}

/// Maintenance that may start at any time.
pub struct ScheduledJobs;

/// Timers whose work is heavy or changes the system, as distributions name them.
const HEAVY_TIMERS: [&str; 12] = [
    "apt-daily",
    "apt-daily-upgrade",
    "dnf-makecache",
    "dnf-automatic",
    "packagekit-background",
    "plocate-updatedb",
    "mlocate-updatedb",
    "updatedb",
    "man-db",
    "fstrim",
    "fwupd-refresh",
    "e2scrub_all",
];

impl Condition for ScheduledJobs {
    fn name(&self) -> &'static str {
        "scheduled-jobs"
    }
    fn why(&self) -> &'static str {
        "what starts in the middle of a long run makes the samples before and after differ"
    }
    fn evidence(&self) -> &'static str {
        "timers that are enabled where systemd runs, and a running cron; apt's start daily at a random minute"
    }
    fn observe(&self, seen: &SystemSample<'_>) -> Vec<ConditionReport> {
        if seen.after.processes.is_empty() {
            return vec![ConditionReport::unsupported("processes cannot be seen here")];
        }
        let timers = timers(seen);
        let cron = ["cron", "crond", "atd"].into_iter().find(|name| seen.after.find(name).is_some());
        vec![match (timers.is_empty(), cron) {
            (false, _) => {
                let command = format!("sudo systemctl stop {}", timers.join(" "));
                ConditionReport::noisy(timers.join(", "), "stop them until the next start of the system", Some(command))
            }
            (true, Some(cron)) => ConditionReport::unknown(format!("{cron} runs"), "its jobs may start during a run")
                .with_advice("stop it while measuring", Some(format!("sudo systemctl stop {cron}"))),
            (true, None) => ConditionReport::quiet("none"),
        }]
    }
}

/// Heavy timers that are enabled, where systemd is there to start them.
fn timers(seen: &SystemSample<'_>) -> Vec<String> {
    let started = seen.after.processes.get(&1).is_some_and(|process| process.name == "systemd");
    let names = seen.root.list("/etc/systemd/system/timers.target.wants").unwrap_or_default().into_iter();
    let heavy = |name: &String| name.strip_suffix(".timer").is_some_and(|name| HEAVY_TIMERS.contains(&name));
    names.filter(heavy).filter(|_| started).collect()
}

#[cfg(test)]
mod tests {
    use wb_sys::fake_root::FakeRoot;

    use super::*;
    use crate::doctor::Verdict;

    fn with_process(made: FakeRoot, id: u32, name: &str) -> FakeRoot {
        made.file(&format!("/proc/{id}/stat"), format!("{id} ({name}) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5"))
    }

    fn observe(condition: &dyn Condition, made: &FakeRoot) -> ConditionReport {
        condition.observe(&SystemSample::take(&made.root())).remove(0)
    }

    #[test]
    fn an_upgrade_that_runs_is_told_from_one_that_waits_for_the_end() {
        let made = with_process(FakeRoot::new(), 1, "systemd");
        let made = with_process(made, 7, "unattended-upgr");
        assert_eq!(observe(&MaintenanceJobs, &made).verdict, Verdict::Noisy);
        let made = made.file("/proc/7/cmdline", "python3\0/usr/share/unattended-upgrade-shutdown\0--wait-for-signal\0");
        assert_eq!(observe(&MaintenanceJobs, &made).verdict, Verdict::Quiet);
    }

    #[test]
    fn timers_count_where_systemd_runs() {
        let timer = "/etc/systemd/system/timers.target.wants/apt-daily.timer";
        let light = "/etc/systemd/system/timers.target.wants/systemd-tmpfiles-clean.timer";
        let made = with_process(FakeRoot::new().file(timer, "").file(light, ""), 1, "systemd");
        let seen = observe(&ScheduledJobs, &made);
        assert_eq!(seen.verdict, Verdict::Noisy);
        assert_eq!(seen.advice.unwrap().1.unwrap(), "sudo systemctl stop apt-daily.timer");
        let made = with_process(with_process(made, 1, "init"), 9, "cron");
        assert!(matches!(observe(&ScheduledJobs, &made).verdict, Verdict::Unknown { .. }));
    }
}
