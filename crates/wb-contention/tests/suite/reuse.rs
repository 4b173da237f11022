//! Which results are used again, and which are not.

use insta::assert_snapshot;
use wb_results::contention::Instance;

use crate::fake::{FakeMachine, Undisturbed, result_texts};

#[test]
fn finished_benches_are_applied_and_new_settings_are_added() {
    let folder = tempfile::tempdir().unwrap();
    let mut machine = FakeMachine::at(&folder.path().join("run"));
    machine.execute("iocost-params hashd-params iocost-qos::min=100,max=100", Undisturbed).unwrap();
    machine.log.clear();
    machine.execute("iocost-params iocost-qos::min=100,max=100:min=50,max=50:min=5,max=5", Undisturbed).unwrap();
    assert_snapshot!(machine.log.join("\n"), @"
    iocost-params-  io.cost model and QoS
    present iocost-params
    iocost-qos-  [00] iocost=off
    iocost-qos-  [01] rpct=95.00 rlat=11649 wpct=95.00 wlat=12681 [min=100.00] [max=100.00]
    iocost-qos+  [02] rpct=95.00 rlat=11649 wpct=95.00 wlat=12681 [min=50.00] [max=50.00]
    iocost-qos-s [03] rpct=95.00 rlat=11649 wpct=95.00 wlat=12681 [min=5.00] [max=5.00]
      start [02] rpct=95.00 rlat=11649 wpct=95.00 wlat=12681 [min=50.00] [max=50.00]: storage
      start [02] rpct=95.00 rlat=11649 wpct=95.00 wlat=12681 [min=50.00] [max=50.00]: protection
    ended iocost-qos
    ");
}

#[test]
fn results_that_are_used_again_keep_their_order_and_times() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let mut machine = FakeMachine::at(&run);
    let ends = || {
        let history = wb_contention::record::read_history(&wb_record::RunFolder::open(&run).unwrap()).unwrap();
        let end = |instance: &Instance| (instance.to_string(), history.times(instance).unwrap().1.to_owned());
        history.instances().into_iter().map(end).collect::<Vec<_>>()
    };
    machine.execute("iocost-params hashd-params", Undisturbed).unwrap();
    let before = ends();
    assert_eq!(before.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["iocost-params", "hashd-params"]);
    // It begins with the parameters of io.cost that the first one has committed.
    machine.execute("iocost-params hashd-params", Undisturbed).unwrap();
    assert_eq!(ends(), before);
}

#[test]
fn results_of_other_conditions_are_measured_again_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let mut machine = FakeMachine::at(&folder.path().join("run"));
    machine.execute("storage", Undisturbed).unwrap();
    machine.system.kernel = "6.2.0".to_owned();
    machine.mem_profile = Some(8);
    machine.log.clear();
    machine.execute("storage", Undisturbed).unwrap();
    assert_snapshot!(machine.log.join("\n"), @"
    storage+  supported footprint
      not reused: measured with another memory profile: 16 GiB, now 8 GiB
      not reused: measured with another kernel: 6.1.0, now 6.2.0
      start supported footprint
    ended storage
    ");
}

#[test]
fn instances_have_results_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let mut machine = FakeMachine::at(&run);
    machine.execute("storage storage:id=a,loops=1 storage", Undisturbed).unwrap();
    let names: Vec<String> = result_texts(&run).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["storage", "storage@a", "storage.2"]);
}

#[test]
fn results_stay_without_their_reports() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let mut machine = FakeMachine::at(&run);
    machine.execute("storage", Undisturbed).unwrap();
    for entry in
        std::fs::read_dir(run.join("contention/storage")).unwrap().flatten().filter(|entry| entry.path().is_dir())
    {
        std::fs::remove_dir_all(entry.path()).unwrap();
    }
    let before = result_texts(&run);
    machine.execute("storage", Undisturbed).unwrap();
    assert_eq!(result_texts(&run), before);
    let opened = wb_record::RunFolder::open(&run).unwrap();
    let error = wb_contention::execute::study_results(&opened, &Default::default()).unwrap_err();
    assert!(error.to_string().starts_with("no reports of stage"), "{error}");
}

#[test]
fn a_missing_result_is_named_and_derived_again() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    FakeMachine::at(&run).execute("storage", Undisturbed).unwrap();
    let before = result_texts(&run);
    let opened = wb_record::RunFolder::open(&run).unwrap();
    let history = wb_contention::record::read_history(&opened).unwrap();
    std::fs::remove_file(run.join("contention/storage/result.json")).unwrap();
    let error = wb_contention::execute::read_results(&opened, &history).unwrap_err();
    assert!(error.to_string().ends_with("result.json: `study` derives it again"), "{error}");
    wb_contention::execute::study_results(&opened, &Default::default()).unwrap();
    assert_eq!(result_texts(&run), before);
}

#[test]
fn dithered_settings_stay_the_same_when_a_sequence_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let mut machine = FakeMachine::at(&run);
    machine.execute("iocost-qos:dither,vrate-intvs=3", Undisturbed).unwrap();
    machine.log.clear();
    machine.execute("iocost-qos:dither,vrate-intvs=3", Undisturbed).unwrap();
    assert!(machine.log.contains(&"present iocost-qos".to_owned()), "{:#?}", machine.log);
}
