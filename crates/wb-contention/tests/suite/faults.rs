//! Stages that fail: which failures end a sequence, which are repeated, and what stays.

use insta::assert_snapshot;
use wb_contention::runner::StageFailure;
use wb_contention::stage::{IocostState, Stage, Work};
use wb_results::contention::{Answer, Bench};

use crate::fake::{FakeMachine, Script, Undisturbed, result_texts};

/// Fails at the fifth second of stages that match, a number of times.
struct Fail<M: Fn(&Stage) -> bool> {
    matches: M,
    failure: StageFailure,
    times: u32,
}

impl<M: Fn(&Stage) -> bool> Script for Fail<M> {
    fn after_step(&mut self) {}

    fn before_second(&mut self, stage: &Stage, second: u64) -> Result<(), StageFailure> {
        if second != 4 || self.times == 0 || !(self.matches)(stage) {
            return Ok(());
        }
        self.times -= 1;
        Err(self.failure.clone())
    }
}

fn is_storage(stage: &Stage) -> bool {
    matches!(stage.definition.work, Work::Storage(_)) && stage.definition.iocost != IocostState::Off
}

fn is_protection(stage: &Stage) -> bool {
    matches!(stage.definition.work, Work::MemHogTune(_))
}

fn out_of_memory() -> StageFailure {
    StageFailure::OutOfMemory { process: "hashd".to_owned() }
}

#[test]
fn failures_of_the_machine_end_the_sequence_and_it_goes_on_at_the_checkpoint() {
    let failures = [
        StageFailure::NoSpace { path: "/var/tmp".to_owned() },
        StageFailure::IocostInUse { device: "nvme0n1".to_owned() },
        StageFailure::IoControllerInUse { controller: "io.latency".to_owned() },
        StageFailure::CgroupV1,
        StageFailure::Requirements { requirements: vec!["swap".to_owned(), "memory-protection".to_owned()] },
        StageFailure::Cancelled,
    ];
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    FakeMachine::at(&whole).execute("iocost-params storage", Undisturbed).unwrap();
    let mut messages = Vec::new();
    for (index, failure) in failures.into_iter().enumerate() {
        let run = folder.path().join(format!("run-{index}"));
        let mut machine = FakeMachine::at(&run);
        let script = Fail { matches: is_storage, failure: failure.clone(), times: 1 };
        let error = machine.execute("iocost-params storage", script).unwrap_err();
        messages.push(error.to_string());
        assert_eq!(error.is_interruption(), failure == StageFailure::Cancelled);
        machine.log.clear();
        machine.execute("iocost-params storage", Undisturbed).unwrap();
        let log = machine.log.join("\n");
        assert!(log.contains("present iocost-params") && log.contains("  resume supported footprint"), "{log}");
        assert_eq!(result_texts(&run), result_texts(&whole));
    }
    assert_snapshot!(messages.join("\n"), @"
    storage: supported footprint: no space left in /var/tmp: free some space
    storage: supported footprint: another program has set io.cost of nvme0n1: stop it, or start from its parameters with --iocost-from-sys
    storage: supported footprint: another controller of I/O is active: io.latency; disable it, or measure with --force
    storage: supported footprint: cgroup v2 is required, but only v1 is mounted: boot with systemd.unified_cgroup_hierarchy=1
    storage: supported footprint: requirements are not met: swap, memory-protection; see docs/contention.md, or measure with --force
    storage: supported footprint: interrupted
    ");
}

#[test]
fn a_stage_during_which_the_machine_was_suspended_is_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let mut machine = FakeMachine::at(&folder.path().join("run"));
    let script = Fail { matches: is_storage, failure: StageFailure::Suspended { seconds: 3600 }, times: 2 };
    machine.execute("iocost-params storage", script).unwrap();
    let failed = machine.log.iter().filter(|line| line.contains("suspended for 3600 s: Retry")).count();
    assert_eq!(failed, 2, "{:#?}", machine.log);
}

#[test]
fn storage_under_a_setting_is_repeated_and_then_left_out_only_if_that_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let sequence = "iocost-qos:vrate-intvs=2";
    let mut strict = FakeMachine::at(&folder.path().join("strict"));
    let oom = || Fail { matches: is_storage, failure: out_of_memory(), times: 2 };
    let error = strict.execute(sequence, oom()).unwrap_err();
    assert!(error.to_string().contains("`hashd` was killed because memory ran out"), "{error}");
    let mut lenient = FakeMachine::at(&folder.path().join("lenient"));
    let results = lenient.execute(&format!("{sequence},allow-fail"), oom()).unwrap();
    let Answer::IocostQos(qos) = &results.last().unwrap().answer else { panic!("{results:?}") };
    assert_eq!(qos.stages.iter().map(|stage| stage.found.is_some()).collect::<Vec<_>>(), [true, false, true]);
    // It stays left out.
    lenient.log.clear();
    lenient.execute(&format!("{sequence},allow-fail"), Undisturbed).unwrap();
    assert!(!lenient.log.iter().any(|line| line.starts_with("  start")), "{:#?}", lenient.log);
}

#[test]
fn a_setting_whose_protection_fails_has_no_protected_footprint() {
    let folder = tempfile::tempdir().unwrap();
    let mut machine = FakeMachine::at(&folder.path().join("run"));
    let script = Fail { matches: is_protection, failure: out_of_memory(), times: 1 };
    let results = machine.execute("iocost-qos:vrate-intvs=2", script).unwrap();
    let Answer::IocostQos(qos) = &results.last().unwrap().answer else { panic!("{results:?}") };
    let protected: Vec<bool> =
        qos.stages.iter().map(|stage| stage.found.as_ref().unwrap().protection.is_some()).collect();
    assert_eq!(protected, [false, true, true]);
}

#[test]
fn a_bench_that_cannot_be_run_is_refused_before_anything_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut machine =
        FakeMachine { unavailable: Some(Bench::Protection), ..FakeMachine::at(&folder.path().join("run")) };
    let error = machine.execute("iocost-params iocost-qos", Undisturbed).unwrap_err();
    assert_eq!(error.to_string(), "cannot run protection: not available in this build");
    assert_eq!(machine.log, [""; 0]);
    assert!(!machine.dir.exists(), "nothing is committed, so nothing is created");
    machine.execute("iocost-params storage", Undisturbed).unwrap();
}

#[test]
fn a_folder_for_committed_parameters_that_cannot_be_written_is_an_error_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let mut machine = FakeMachine { dir: "/proc/self/none".into(), ..FakeMachine::at(&folder.path().join("run")) };
    assert!(machine.execute("iocost-params", Undisturbed).is_err());
    assert_eq!(machine.log, [""; 0]);
}

#[test]
fn a_bench_that_fails_commits_no_parameters() {
    let folder = tempfile::tempdir().unwrap();
    let mut machine = FakeMachine::at(&folder.path().join("run"));
    let failure = StageFailure::NoSpace { path: "/var/tmp".to_owned() };
    assert!(machine.execute("iocost-params", Fail { matches: |_: &Stage| true, failure, times: u32::MAX }).is_err());
    assert!(!machine.dir.exists(), "not even an empty file");
}

#[test]
fn an_incomplete_report_is_counted_as_missing() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    FakeMachine::at(&run).execute("storage", Undisturbed).unwrap();
    let folder =
        std::fs::read_dir(run.join("contention/storage")).unwrap().flatten().find(|entry| entry.path().is_dir());
    let report = std::fs::read_dir(folder.unwrap().path()).unwrap().flatten().next().unwrap().path();
    let text = std::fs::read(&report).unwrap();
    std::fs::write(&report, &text[..text.len() / 2]).unwrap();
    let opened = wb_record::RunFolder::open(&run).unwrap();
    let results = wb_contention::execute::study_results(&opened, &Default::default()).unwrap();
    let Answer::Storage(storage) = &results[0].answer else { panic!("{results:?}") };
    assert_eq!(storage.missing, 1.0 / 8.0);
}
