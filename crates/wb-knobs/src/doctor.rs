//! Diagnosis: the state of all knobs and conditions of a system, why they matter, and how to improve them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_sys::SysRoot;
use wb_sys::undo::Refusal;

use crate::condition::{Condition, ConditionDescription, ConditionReport, SystemSample};
use crate::knob::{Assessment, Knob, KnobKind};
use crate::tune::{WriteCheck, compare};
use crate::unsupported::Unsupported;
use crate::verdict::NoiseVerdict;
use crate::{KnobSet, KnobTarget, conditions, knobs, target};

/// The findings on the noise of a system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosis {
    /// All potential sources of noise, knobs first. Targets in the same state share a finding.
    pub findings: Vec<Finding>,
    /// Arguments of `tune apply` that make noisy knobs quiet, as far as they can be set here: `thp-enabled=madvise`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remedies: Vec<String>,
}

/// A potential source of noise and its state for one or several targets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Finding {
    /// Name: `io-scheduler`.
    pub name: String,
    /// Whether it is a setting or a condition.
    pub kind: FindingKind,
    /// Targets: `system`, `cpu0-7`, `sda, sdb`.
    pub target: String,
    /// State; empty where it cannot be determined.
    pub state: String,
    /// Meaning of the state.
    #[serde(flatten)]
    pub verdict: NoiseVerdict,
    /// Why it matters.
    pub why: String,
    /// Evidence for it.
    pub evidence: String,
    /// Suggested improvement.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub advice: Option<Advice>,
}

/// Kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// A setting, which stays until it is changed.
    Knob,
    /// A current condition of the system.
    Condition,
}

/// A suggested improvement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Advice {
    /// Description.
    pub what: String,
    /// Command that applies it, where there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub command: Option<String>,
}

/// Examines a system; the running one is observed for 200 ms. Changes nothing and needs no privileges.
pub fn doctor(root: &SysRoot) -> Diagnosis {
    let sample = SystemSample::take(root);
    let states = knobs::all().iter().filter(|knob| knob.nature() == KnobKind::State);
    let knobs = states.flat_map(|knob| examine(*knob, root));
    let conditions = conditions::all().iter().flat_map(|condition| evaluate(*condition, &sample));
    Diagnosis { findings: knobs.chain(conditions).collect(), remedies: remedies(root) }
}

/// The values of the built-in sets for noisy knobs that can be set here, possibly only by root.
fn remedies(root: &SysRoot) -> Vec<String> {
    let sets = KnobSet::builtin();
    let value = |knob: &dyn Knob| {
        let setting = sets.iter().flat_map(|set| &set.knobs).find(|setting| setting.knob == knob.name());
        setting.map(|setting| setting.value.clone())
    };
    let valued = knobs::all().iter().filter_map(|knob| Some((*knob, value(*knob)?)));
    valued.flat_map(|(knob, value)| remedy(knob, root, &value)).collect()
}

fn remedy(knob: &dyn Knob, root: &SysRoot, value: &str) -> Vec<String> {
    let is_noisy = |target: &KnobTarget| {
        let state = knob.read(root, target);
        state.is_ok_and(|state| matches!(knob.assess(&state), Assessment::Noisy { .. }))
    };
    let can_be_set = |target: &KnobTarget| {
        let compared = knob.writes(root, target, value).and_then(|writes| compare(root, &writes));
        matches!(compared, Ok(WriteCheck::Differs(None | Some(Refusal::NotRoot))))
    };
    let targets = knob.targets(root);
    let improvable: Vec<&KnobTarget> = targets.iter().filter(|target| is_noisy(target) && can_be_set(target)).collect();
    match improvable.len() == targets.len() {
        true if targets.is_empty() => Vec::new(),
        true => vec![format!("{}={value}", knob.name())],
        false => improvable.into_iter().map(|target| format!("{}@{target}={value}", knob.name())).collect(),
    }
}

impl Diagnosis {
    pub fn is_quiet(&self) -> bool {
        !self.findings.iter().any(|finding| finding.verdict == NoiseVerdict::Noisy)
    }
}

fn join_targets(targets: &[KnobTarget]) -> String {
    let names: Vec<String> = targets.iter().map(KnobTarget::to_string).collect();
    target::join_names(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Targets of a knob that share a state.
struct TargetGroup {
    targets: Vec<KnobTarget>,
    state: String,
    verdict: NoiseVerdict,
    advice: Option<&'static str>,
}

fn examine(knob: &dyn Knob, root: &SysRoot) -> Vec<Finding> {
    let mut groups: Vec<TargetGroup> = Vec::new();
    for target in knob.targets(root) {
        let group = state(knob, root, target);
        match groups.iter_mut().find(|existing| existing.state == group.state && existing.verdict == group.verdict) {
            Some(existing) => existing.targets.extend(group.targets),
            None => groups.push(group),
        }
    }
    if groups.is_empty() {
        let verdict = NoiseVerdict::Unsupported { reason: knob.description().unsupported_reason.to_owned() };
        groups.push(TargetGroup { targets: vec![KnobTarget::System], state: String::new(), verdict, advice: None });
    }
    let finding = |group: TargetGroup| Finding {
        name: knob.name().to_owned(),
        kind: FindingKind::Knob,
        target: join_targets(&group.targets),
        state: group.state,
        verdict: group.verdict,
        why: knob.description().why.to_owned(),
        evidence: knob.description().evidence.to_owned(),
        advice: group
            .advice
            .map(|what| Advice { what: what.to_owned(), command: Some(knob.shell_command(root, &group.targets)) }),
    };
    groups.into_iter().map(finding).collect()
}

fn state(knob: &dyn Knob, root: &SysRoot, target: KnobTarget) -> TargetGroup {
    let (state, verdict, advice) = match knob.read(root, &target) {
        Ok(value) => match knob.assess(&value) {
            Assessment::Quiet => (value.to_string(), NoiseVerdict::NoNoise, None),
            Assessment::Noisy { advice } => (value.to_string(), NoiseVerdict::Noisy, Some(advice)),
            Assessment::Unknown { reason } => {
                (value.to_string(), NoiseVerdict::Unknown { reason: reason.to_owned() }, None)
            }
        },
        // A reason that contains the target's name would prevent targets from sharing a finding.
        Err(Unsupported(reason)) => {
            let reason = reason.replace(&format!("/{target}/"), "/*/");
            (String::new(), NoiseVerdict::Unsupported { reason }, None)
        }
    };
    TargetGroup { targets: vec![target], state, verdict, advice }
}

fn evaluate(condition: &dyn Condition, sample: &SystemSample<'_>) -> Vec<Finding> {
    let ConditionDescription { name, why, evidence } = condition.description();
    let finding = |observed: ConditionReport| Finding {
        name: name.to_owned(),
        kind: FindingKind::Condition,
        target: observed.target.to_string(),
        state: observed.state,
        verdict: observed.verdict,
        why: why.to_owned(),
        evidence: evidence.to_owned(),
        advice: observed.advice.map(|(what, command)| Advice { what, command }),
    };
    condition.observe(sample).into_iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wb_sys::UndoLog;
    use wb_sys::fake_root::{self, FakeRoot};

    use super::*;
    use crate::tune::{KnobSetting, apply};

    fn named<'a>(diagnosis: &'a Diagnosis, name: &str) -> Vec<&'a Finding> {
        diagnosis.findings.iter().filter(|finding| finding.name == name).collect()
    }

    #[test]
    fn targets_in_one_state_share_a_finding_and_a_command() {
        let diagnosis = doctor(&fake_root::laptop().root());
        let governor = named(&diagnosis, "governor");
        assert_eq!(governor.len(), 1);
        assert_eq!((governor[0].target.as_str(), governor[0].state.as_str()), ("policy0-7", "powersave"));
        assert_eq!(governor[0].verdict, NoiseVerdict::Noisy);
        let command = governor[0].advice.as_ref().unwrap().command.as_deref().unwrap();
        assert_eq!(command, "echo performance | sudo tee /sys/devices/system/cpu/cpufreq/policy*/scaling_governor");
    }

    #[test]
    fn targets_in_different_states_have_separate_findings() {
        let fake = fake_root::laptop().file("/sys/devices/system/cpu/cpufreq/policy2/scaling_governor", "performance");
        let diagnosis = doctor(&fake.root());
        let states: Vec<_> = named(&diagnosis, "governor")
            .iter()
            .map(|finding| (finding.target.clone(), finding.state.clone()))
            .collect();
        let expected = [("policy0-1,3-7", "powersave"), ("policy2", "performance")];
        assert_eq!(states, expected.map(|(target, state)| (target.to_owned(), state.to_owned())));
    }

    #[test]
    fn a_laptop_with_default_settings_is_noisy() {
        let diagnosis = doctor(&fake_root::laptop().root());
        assert!(!diagnosis.is_quiet());
        let noisy: Vec<_> = diagnosis
            .findings
            .iter()
            .filter(|finding| finding.verdict == NoiseVerdict::Noisy)
            .map(|finding| finding.name.as_str())
            .collect();
        assert_eq!(noisy, ["governor", "turbo", "smt", "swap", "swappiness", "battery"]);
        assert!(
            diagnosis.findings.iter().all(|finding| finding.verdict != NoiseVerdict::Noisy || finding.advice.is_some())
        );
    }

    #[test]
    fn remedies_make_noisy_knobs_quiet() {
        let fake = fake_root::laptop().file("/sys/devices/system/cpu/cpufreq/policy2/scaling_governor", "performance");
        let sys = fake.root();
        let remedies = doctor(&sys).remedies;
        let governors: Vec<&str> =
            remedies.iter().map(String::as_str).filter(|it| it.starts_with("governor")).collect();
        assert_eq!(governors, [0, 1, 3, 4, 5, 6, 7].map(|cpu| format!("governor@policy{cpu}=performance")));
        let others: Vec<&str> = remedies.iter().map(String::as_str).filter(|it| !it.starts_with("governor")).collect();
        // Swap is switched off by a program, which a fake machine does not have.
        assert_eq!(others, ["turbo=off", "smt=off", "swappiness=1"]);
        let settings = remedies.iter().map(|remedy| {
            let (key, value) = remedy.split_once('=').unwrap();
            KnobSetting::new(key, value.to_owned()).unwrap()
        });
        let set = KnobSet { name: String::new(), summary: String::new(), knobs: settings.collect() };
        let mut log = UndoLog::open(&sys, "a test").unwrap();
        apply(&sys, &set, &mut log).unwrap();
        let after = doctor(&sys);
        assert_eq!(after.remedies, [""; 0]);
        assert!(
            ["governor", "turbo", "swappiness"]
                .iter()
                .all(|name| named(&after, name)[0].verdict == NoiseVerdict::NoNoise)
        );
    }

    #[test]
    fn a_tuned_server_is_quiet() {
        let fake = fake_root::server().file("/sys/devices/system/cpu/smt/active", "0");
        let diagnosis = doctor(&fake.root());
        assert!(diagnosis.is_quiet(), "{:#?}", diagnosis.findings);
        assert_eq!(named(&diagnosis, "numa-balancing")[0].verdict, NoiseVerdict::NoNoise);
    }

    #[test]
    fn unsupported_findings_have_a_reason_and_are_not_noisy() {
        let diagnosis = doctor(&FakeRoot::new().root());
        assert!(diagnosis.is_quiet());
        let states = knobs::all().iter().filter(|knob| knob.nature() == KnobKind::State).count();
        assert_eq!(diagnosis.findings.len(), states + conditions::all().len());
        for finding in &diagnosis.findings {
            if let NoiseVerdict::Unsupported { reason } = &finding.verdict {
                assert!(!reason.is_empty() && finding.advice.is_none(), "{}", finding.name);
            }
        }
    }

    #[test]
    fn a_reason_does_not_contain_its_target() {
        let fake = fake_root::laptop().file("/sys/block/nvme1n1/size", "8").file("/sys/block/nvme2n1/size", "8");
        let diagnosis = doctor(&fake.root());
        let wbt = named(&diagnosis, "wbt");
        assert_eq!((wbt.len(), wbt[0].target.as_str()), (1, "nvme0n1, nvme1n1, nvme2n1"));
        let reason = NoiseVerdict::Unsupported { reason: "no such file: `/sys/block/*/queue/wbt_lat_usec`".into() };
        assert_eq!(wbt[0].verdict, reason);
    }

    #[test]
    fn deep_idle_states_are_noisy_unless_a_low_latency_is_requested() {
        let state = |fake: FakeRoot, index: u32, latency: &str| {
            fake.file(&format!("/sys/devices/system/cpu/cpu0/cpuidle/state{index}/latency"), latency)
        };
        let fake = state(state(fake_root::laptop(), 0, "2"), 1, "133");
        let idle = |fake: &FakeRoot| named(&doctor(&fake.root()), "idle-states")[0].clone();
        assert_eq!((idle(&fake).state.as_str(), idle(&fake).verdict), ("133 µs", NoiseVerdict::Noisy));
        let requested = fake.file("/dev/cpu_dma_latency", 5i32.to_ne_bytes());
        assert_eq!((idle(&requested).state.as_str(), idle(&requested).verdict), ("2 µs", NoiseVerdict::NoNoise));
    }

    #[test]
    fn this_machine_is_examined_without_privileges() {
        let diagnosis = doctor(&SysRoot::real());
        for finding in &diagnosis.findings {
            let advice = finding.advice.as_ref().and_then(|advice| advice.command.as_deref()).unwrap_or("");
            println!("{:20} {:12} {:28} {:?} {advice}", finding.name, finding.target, finding.state, finding.verdict);
        }
        let text = serde_json::to_string(&diagnosis).unwrap();
        assert_eq!(serde_json::from_str::<Diagnosis>(&text).unwrap(), diagnosis);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn garbage_in_any_file_does_not_panic(garbage in "\\PC{0,30}|[0-9]{1,25}|-[0-9]{1,20}|[0-9 .]{0,40}") {
            let cpu = "/sys/devices/system/cpu";
            let files = [
                "/proc/stat", "/proc/5/stat", "/proc/5/comm", "/proc/loadavg", "/proc/pressure/io", "/proc/meminfo",
                "/proc/self/cgroup", "/proc/swaps", "/proc/cpuinfo", "/proc/sys/vm/swappiness", "/proc/sys/vm/dirty_ratio",
                "/proc/sys/kernel/nmi_watchdog", "/sys/kernel/mm/ksm/run", "/sys/kernel/mm/transparent_hugepage/enabled",
                "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "/sys/block/sda/queue/scheduler",
                "/sys/block/sda/queue/wbt_lat_usec", "/sys/block/sda/queue/nr_requests", "/sys/block/sda/queue/read_ahead_kb",
                "/sys/fs/cgroup/cpu.max", "/dev/cpu_dma_latency", "/etc/tuned/active_profile",
            ];
            let fake = files.iter().fold(FakeRoot::new(), |fake, path| fake.file(path, &garbage));
            let fake = ["isolated", "smt/active", "cpufreq/boost", "cpufreq/policy0/scaling_min_freq",
                "cpu0/cpuidle/state0/latency", "cpu0/thermal_throttle/core_throttle_count"]
                .iter()
                .fold(fake, |fake, path| fake.file(&format!("{cpu}/{path}"), &garbage))
                .file(&format!("{cpu}/online"), "0")
                .file("/sys/block/sda/size", "1");
            let _ = doctor(&fake.root());
        }
    }
}
