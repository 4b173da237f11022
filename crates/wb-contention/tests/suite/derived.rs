//! What follows from other results: the machine that it describes, and what it can be solved for.

use std::path::Path;

use wb_contention::execute::{read_results, solve_results, study_results};
use wb_contention::format::{Detail, format};
use wb_contention::record::read_history;
use wb_contention::runner::StageFailure;
use wb_contention::spec::{FormatOptions, SelectedBench, Statistics};
use wb_contention::stage::{Stage, Work};
use wb_record::RunFolder;
use wb_results::contention::{Answer, Bench, BenchResult};

use crate::fake::{FakeMachine, Script, Undisturbed};

const SEQUENCE: &str = "iocost-params hashd-params iocost-qos:vrate-intvs=10,passive=io iocost-tune";

fn result_of(run: &Path, bench: Bench) -> BenchResult {
    let run = RunFolder::open(run).unwrap();
    let history = read_history(&run).unwrap();
    let results = read_results(&run, &history).unwrap();
    results.into_iter().find(|result| result.instance.bench == bench).unwrap()
}

#[test]
fn a_tuning_describes_the_machine_of_its_measurements() {
    let folder = tempfile::tempdir().unwrap();
    let mut machine = FakeMachine::at(&folder.path().join("run"));
    machine.missed_requirements = vec!["swap".to_owned(), "oomd".to_owned()];
    machine.execute(SEQUENCE, Undisturbed).unwrap();
    let qos = result_of(&machine.run, Bench::IocostQos).system;
    assert_eq!((qos.missed_requirements.len(), qos.passive.to_string().as_str()), (2, "io"));
    let tune = || result_of(&machine.run, Bench::IocostTune).system;
    assert_eq!(tune(), qos, "--force and passive are conditions of what follows, too");
    study_results(&RunFolder::open(&machine.run).unwrap(), &Default::default()).unwrap();
    assert_eq!(tune(), qos, "studied again");
}

fn solve(run: &Path, spec: &str) -> Result<Vec<BenchResult>, String> {
    let specs = [SelectedBench::parse(spec).unwrap()];
    solve_results(&RunFolder::open(run).unwrap(), &specs).map_err(|error| error.to_string())
}

#[test]
fn solutions_have_the_latencies_that_they_require_or_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut machine = FakeMachine::at(&folder.path().join("run"));
    machine.execute(SEQUENCE, Undisturbed).unwrap();
    let solved = solve(&machine.run, "iocost-tune::name=a,vrate=75-100,rpct=90,wpct=99.9").unwrap();
    let Answer::IocostTune(answer) = &solved[0].answer else { panic!() };
    let qos = answer.solutions[0].solved.as_ref().unwrap().qos;
    assert_eq!((qos.rpct, qos.wpct), (90.0, 99.9));
    assert!(qos.rlat > 0 && qos.wlat > 0, "{qos:?}");
    // A run that has the answer alone, like a merged one, has no values of other latencies.
    let other = folder.path().join("other");
    let mut alone = FakeMachine::at(&other);
    alone.execute(&SEQUENCE.replace("passive=io", "isol-thr=0.5"), Undisturbed).unwrap();
    let path = other.join("contention/iocost-tune/result.json");
    std::fs::copy(machine.run.join("contention/iocost-tune/result.json"), path).unwrap();
    let error = solve(&other, "iocost-tune::name=a,rlat-75=q1").unwrap_err();
    assert_eq!(error, "iocost-tune has no values of rlat-75-mean");
    assert!(solve(&other, "iocost-tune::name=a,rlat-99=q1").is_ok());
}

// Results have specifications as text, which any text would be.
#[test]
fn a_damaged_specification_of_a_result_is_found_where_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut machine = FakeMachine::at(&folder.path().join("run"));
    machine.execute(SEQUENCE, Undisturbed).unwrap();
    let run = RunFolder::open(&machine.run).unwrap();
    let history = read_history(&run).unwrap();
    let path = machine.run.join("contention/iocost-tune/result.json");
    let text = std::fs::read_to_string(&path).unwrap();
    for key in ["spec", "qos-spec"] {
        let damaged = text.replacen(&format!("\"{key}\": \"iocost"), &format!("\"{key}\": \"iocast"), 1);
        assert_ne!(damaged, text);
        std::fs::write(&path, damaged).unwrap();
        let error = read_results(&run, &history).unwrap_err().to_string();
        assert!(error.contains("iocost-tune/result.json:") && error.contains("unknown bench `iocast-"), "{error}");
    }
}

#[test]
fn statistics_that_were_not_recorded_are_missed_where_they_are_requested() {
    let folder = tempfile::tempdir().unwrap();
    let mut machine = FakeMachine::at(&folder.path().join("run"));
    let results = machine.execute("storage", Undisturbed).unwrap();
    let text = |statistics, detail| {
        let options = FormatOptions { statistics, ..FormatOptions::default() };
        format(&results[0], None, detail, &options)
    };
    let missed = "no statistics of the kernel were recorded: measure again";
    for statistics in [Statistics::Main, Statistics::All] {
        assert!(text(statistics, Detail::Full).contains(missed));
        assert!(!text(statistics, Detail::Summary).contains(missed));
    }
    assert!(!text(Statistics::None, Detail::Full).contains(missed));
}

/// Interrupts the first stage with a hog.
struct InterruptHogs;

impl Script for InterruptHogs {
    fn after_step(&mut self) {}
    fn before_second(&mut self, stage: &Stage, _: u64) -> Result<(), StageFailure> {
        match stage.definition.work {
            Work::MemHogTune(_) => Err(StageFailure::Cancelled),
            _ => Ok(()),
        }
    }
}

#[test]
fn benches_that_a_sequence_did_not_reach_are_unfinished() {
    let folder = tempfile::tempdir().unwrap();
    let mut machine = FakeMachine::at(&folder.path().join("run"));
    let sequence = format!("{SEQUENCE} protection protection:id=x");
    machine.execute(&sequence, InterruptHogs).unwrap_err();
    let run = RunFolder::open(&machine.run).unwrap();
    let history = read_history(&run).unwrap();
    let lines: Vec<String> = history.unfinished().iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    iocost-qos: not finished: 1 of 2 started stages have a result; then: interrupted
    iocost-tune: not started
    protection: not started
    protection@x: not started
    ");
    machine.execute(&sequence, Undisturbed).unwrap();
    assert_eq!(read_history(&run).unwrap().unfinished(), []);
}
