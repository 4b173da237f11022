use wb_sys::SysRoot;

use crate::condition::{Condition, ConditionDescription, ConditionReport, SystemSample};

pub struct MaintenanceJobs;

/// Maintenance programs, truncated to the 15 characters that the kernel stores of a name.
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
    fn description(&self) -> ConditionDescription {
        ConditionDescription {
            name: "maintenance",
            why: "installing, indexing and cleaning use CPU and disk for minutes, and may change the measured software",
            evidence: "names of running processes; an upgrade during a run also replaces libraries",
        }
    }
    fn observe(&self, sample: &SystemSample<'_>) -> Vec<ConditionReport> {
        let processes = &sample.after.processes;
        if processes.is_empty() {
            return vec![ConditionReport::unsupported("processes are not visible here")];
        }
        let running = processes
            .iter()
            .filter(|(id, process)| MAINTENANCE.contains(&process.name.as_str()) && !is_idle_daemon(sample.root, **id));
        let mut names: Vec<&str> = running.map(|(_, process)| process.name.as_str()).collect();
        names.dedup();
        vec![if names.is_empty() {
            ConditionReport::no_noise("none running")
        } else {
            ConditionReport::noisy(
                names.join(", "),
                "wait until it has finished",
                Some(format!("pgrep -a '{}'", names.join("|"))),
            )
        }]
    }
}

/// Whether a process only waits for the shutdown: Debian keeps such a process running.
fn is_idle_daemon(root: &SysRoot, id: u32) -> bool {
    root.text(format!("/proc/{id}/cmdline")).is_ok_and(|line| line.contains("--wait-for-signal"))
}

/// Scheduled maintenance jobs, which may start at any time.
pub struct ScheduledJobs;

/// Timers of jobs that are heavy or change the system, by the names that distributions use.
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
    fn description(&self) -> ConditionDescription {
        ConditionDescription {
            name: "scheduled-jobs",
            why: "a job that starts during a long run makes the samples before and after differ",
            evidence: "enabled systemd timers, and a running cron; apt's timers start daily at a random minute",
        }
    }
    fn observe(&self, sample: &SystemSample<'_>) -> Vec<ConditionReport> {
        if sample.after.processes.is_empty() {
            return vec![ConditionReport::unsupported("processes are not visible here")];
        }
        let timers = timers(sample);
        let cron = ["cron", "crond", "atd"].into_iter().find(|name| sample.after.find(name).is_some());
        vec![match (timers.is_empty(), cron) {
            (false, _) => {
                let command = format!("sudo systemctl stop {}", timers.join(" "));
                ConditionReport::noisy(timers.join(", "), "stop them until the next reboot", Some(command))
            }
            (true, Some(cron)) => {
                ConditionReport::may_be_noisy(format!("{cron} running"), "its jobs may start during a run")
                    .with_advice("stop it while measuring", Some(format!("sudo systemctl stop {cron}")))
            }
            (true, None) => ConditionReport::no_noise("none"),
        }]
    }
}

/// The enabled heavy timers, where systemd runs.
fn timers(sample: &SystemSample<'_>) -> Vec<String> {
    let has_systemd = sample.after.processes.get(&1).is_some_and(|process| process.name == "systemd");
    let names = sample.root.list("/etc/systemd/system/timers.target.wants").unwrap_or_default().into_iter();
    let heavy = |name: &String| name.strip_suffix(".timer").is_some_and(|name| HEAVY_TIMERS.contains(&name));
    names.filter(heavy).filter(|_| has_systemd).collect()
}

#[cfg(test)]
mod tests {
    use wb_sys::fake_root::FakeRoot;

    use super::*;
    use crate::verdict::NoiseVerdict;

    fn with_process(fake: FakeRoot, id: u32, name: &str) -> FakeRoot {
        fake.file(&format!("/proc/{id}/stat"), format!("{id} ({name}) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5"))
    }

    fn observe(condition: &dyn Condition, fake: &FakeRoot) -> ConditionReport {
        condition.observe(&SystemSample::take(&fake.root())).remove(0)
    }

    #[test]
    fn a_running_upgrade_is_noisy_and_a_waiting_one_is_not() {
        let fake = with_process(FakeRoot::new(), 1, "systemd");
        let fake = with_process(fake, 7, "unattended-upgr");
        assert_eq!(observe(&MaintenanceJobs, &fake).verdict, NoiseVerdict::Noisy);
        let fake = fake.file("/proc/7/cmdline", "python3\0/usr/share/unattended-upgrade-shutdown\0--wait-for-signal\0");
        assert_eq!(observe(&MaintenanceJobs, &fake).verdict, NoiseVerdict::NoNoise);
    }

    #[test]
    fn timers_are_noisy_only_where_systemd_runs() {
        let timer = "/etc/systemd/system/timers.target.wants/apt-daily.timer";
        let light_timer = "/etc/systemd/system/timers.target.wants/systemd-tmpfiles-clean.timer";
        let fake = with_process(FakeRoot::new().file(timer, "").file(light_timer, ""), 1, "systemd");
        let report = observe(&ScheduledJobs, &fake);
        assert_eq!(report.verdict, NoiseVerdict::Noisy);
        assert_eq!(report.advice.unwrap().1.unwrap(), "sudo systemctl stop apt-daily.timer");
        let fake = with_process(with_process(fake, 1, "init"), 9, "cron");
        assert!(matches!(observe(&ScheduledJobs, &fake).verdict, NoiseVerdict::Unknown { .. }));
    }
}
