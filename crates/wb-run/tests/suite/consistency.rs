//! All samples of a cell have the same definition, files, programs and machine.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use wb_agent::Command;
use wb_model::{CellOutcome, Facts, WorkerName};
use wb_run::{Progress, RunEnd, RunError};
use wb_test_worker::{FakeAgent, FakeProcess, facts};

use crate::testbed::{FIGURE, TestBed, figures, printing, steady};

/// A test that runs a script beside its definition.
const SCRIPT: &str = r#"
name = "scripted"
summary = "a figure printed by a script beside the definition"
version = 1
command = ["sh", "{definition-folder}/load.sh"]
"#;

/// A test that builds a program from a declared file and, unknown to the definition, a library.
pub(crate) const BUILT: &str = r#"
name = "built"
summary = "a figure printed by a built program"
version = 1
command = ["sh", "{scratch}/program"]

[[file]]
name = "source"
path = "source"

[build]
commands = [["make", "{scratch}/program"]]
programs = ["program"]
"#;

/// Measures, makes a change, and checks that resuming is refused without any attempt. Returns the error.
async fn refused(bed: &mut TestBed, test: &str, change: impl FnOnce(&mut TestBed)) -> RunError {
    bed.measure(&[test]).await;
    let attempts = bed.attempts();
    change(bed);
    bed.sampling.min_samples = 12;
    let (end, _) = bed.run(&[test]).await;
    assert_eq!(bed.attempts(), attempts, "nothing is measured");
    end.unwrap_err()
}

/// The changed item for which resuming is refused.
async fn changed_item(bed: &mut TestBed, test: &str, change: impl FnOnce(&mut TestBed)) -> String {
    let error = refused(bed, test, change).await;
    let RunError::Changed { item, .. } = error else { panic!("{error:?}") };
    item
}

/// The number of the process: each call returns the next one.
fn next(count: &AtomicU32) -> u32 {
    count.fetch_add(1, Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn resuming_with_an_edited_definition_is_refused() {
    let mut bed = TestBed::new(figures(steady));
    let edited = FIGURE.replace("[\"figure\", \"{n}\"]", "[\"figure\", \"-e\", \"{n}\"]");
    let error = refused(&mut bed, "figure", |bed| bed.define(&edited)).await.to_string();
    let expected = "`Localhost/figure/0000:n=1` was measured in this folder with another definition (";
    assert!(error.starts_with(expected), "{error}");
}

#[tokio::test(start_paused = true)]
async fn resuming_with_another_program_is_refused() {
    let mut bed = TestBed::new(figures(steady));
    let item = changed_item(&mut bed, "figure", |bed| bed.agents[0].install("figure", "another build")).await;
    assert_eq!(item, "`figure`");
}

/// Defines the test `built`. Its program differs in each version of the library.
pub(crate) fn built(definition: &str, library: impl Fn() -> u32 + Send + Sync + 'static) -> TestBed {
    let count = AtomicU32::new(0);
    let mut bed = TestBed::new(move |command: &Command| match command.argv[0].as_str() {
        "make" => FakeProcess::printing("").writing(&command.argv[1], format!("program with library {}", library())),
        _ => printing(steady(next(&count))),
    });
    bed.write("source", "# source");
    bed.define_with_files(definition);
    bed
}

#[tokio::test(start_paused = true)]
async fn resuming_with_another_source_is_refused() {
    let mut bed = built(BUILT, || 1);
    let edit = |bed: &mut TestBed| {
        bed.write("source", "# another");
        bed.define_with_files(BUILT);
    };
    assert_eq!(changed_item(&mut bed, "built", edit).await, "`source`");
}

#[tokio::test(start_paused = true)]
async fn resuming_with_another_build_is_refused() {
    let library = Arc::new(AtomicU32::new(1));
    let installed = Arc::clone(&library);
    let mut bed = built(BUILT, move || installed.load(Ordering::Relaxed));
    let upgrade = |_: &mut TestBed| library.store(2, Ordering::Relaxed);
    assert_eq!(changed_item(&mut bed, "built", upgrade).await, "build of `program`");
    library.store(1, Ordering::Relaxed);
    bed.measure(&["built"]).await;
    assert_eq!(bed.cell().attempts.iter().filter(|sample| sample.counted).count(), 12, "the same build is resumed");
}

#[tokio::test(start_paused = true)]
async fn irreproducible_build_is_a_finding() {
    let count = AtomicU32::new(0);
    let mut bed = built(&format!("scope = \"sample\"{BUILT}"), move || next(&count));
    bed.sampling.warm_up = 0;
    for samples in [6, 8] {
        bed.sampling.min_samples = samples;
        bed.measure(&["built"]).await;
    }
    let findings = bed.cell().findings;
    let expected = "the build of `program` changed between samples: 8 different hashes";
    assert!(findings.iter().any(|finding| finding.contains(expected)), "{findings:?}");
}

/// Defines the test `scripted`, whose script fails if its text is `exit 7`.
fn scripted(script: &str) -> TestBed {
    let count = AtomicU32::new(0);
    let mut bed = TestBed::new(move |command: &Command| match std::fs::read_to_string(&command.argv[1]).unwrap() {
        text if text == "exit 7" => FakeProcess::failing(7, ""),
        _ => printing(steady(next(&count))),
    });
    bed.write("load.sh", script);
    bed.define_with_files(SCRIPT);
    bed
}

#[tokio::test(start_paused = true)]
async fn test_without_completed_samples_may_be_fixed_in_the_same_folder() {
    let bed = scripted("exit 7");
    bed.measure(&["scripted"]).await;
    assert!(matches!(bed.cell().outcome, CellOutcome::Failed { .. }), "{:?}", bed.cell().outcome);
    bed.write("load.sh", "fixed");
    bed.measure(&["scripted"]).await;
    assert_eq!(bed.cell().outcome, CellOutcome::Measured);
}

#[tokio::test(start_paused = true)]
async fn failed_cell_records_the_hashes_of_its_definition() {
    let provenance = async |script| {
        let bed = scripted(script);
        bed.measure(&["scripted"]).await;
        bed.cell().provenance
    };
    let (measured, failed) = (provenance("measured").await, provenance("exit 7").await);
    assert!(measured.keys().eq(failed.keys()), "{measured:?} {failed:?}");
    let differing: Vec<&String> = measured.keys().filter(|name| measured[*name] != failed[*name]).collect();
    assert_eq!(differing, ["file {definition-folder}/load.sh sha256"], "the definition is the same");
}

/// Replaces a file by renaming, as editors do.
fn replace(path: &str, text: &str) {
    let new = Path::new(path).with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, path).unwrap();
}

#[tokio::test(start_paused = true)]
async fn script_that_changes_during_a_run_is_a_finding() {
    let count = AtomicU32::new(0);
    let mut bed = TestBed::new(move |command: &Command| {
        let number = next(&count);
        if number == 1 {
            replace(&command.argv[1], "edited");
        }
        printing(steady(number))
    });
    bed.sampling.warm_up = 0;
    bed.write("load.sh", "original");
    bed.define_with_files(SCRIPT);
    bed.measure(&["scripted"]).await;
    let recorded = |sample: u32| {
        let path = bed.path().join(format!("Localhost/scripted/0000/-/{sample:04}.0/provenance.json"));
        let json: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        json["files"]["{definition-folder}/load.sh"].as_str().unwrap().to_owned()
    };
    assert_eq!(recorded(0), recorded(1));
    assert_ne!(recorded(1), recorded(2));
    assert_eq!(recorded(2), recorded(5));
    let expected = format!(
        "the file `{{definition-folder}}/load.sh` changed between samples: SHA-256 {}… in 2 samples, SHA-256 {}… in 4 samples",
        &recorded(1)[..12],
        &recorded(2)[..12]
    );
    let findings = bed.cell().findings;
    assert!(findings.iter().any(|finding| finding.contains(&expected)), "{findings:?}");
}

/// Measures `figure` on a machine, then more samples of it on the simulated one; returns the result and the events.
async fn moved(from: Facts) -> (Result<RunEnd, RunError>, Vec<Progress>) {
    let mut bed = TestBed::new(figures(steady));
    let simulated = bed.agents[0].clone();
    bed.agents[0] = FakeAgent::with_facts(WorkerName::local(), from, figures(steady));
    bed.measure(&["figure"]).await;
    bed.agents[0] = simulated;
    bed.sampling.min_samples = 12;
    bed.run(&["figure"]).await
}

#[tokio::test(start_paused = true)]
async fn resuming_on_another_machine_is_refused_and_after_a_reboot_it_is_not() {
    let elsewhere = || Facts { hostname: "elsewhere".to_owned(), cpu_model: "Another CPU".to_owned(), ..facts() };
    let rebooted = |facts: Facts| Facts { boot_id: "another boot".to_owned(), ..facts };
    assert_eq!(moved(rebooted(facts())).await.0.unwrap(), RunEnd::Finished);
    for facts in [elsewhere(), rebooted(elsewhere())] {
        let error = moved(facts).await.0.unwrap_err();
        assert!(matches!(error, RunError::OtherMachine { .. }), "{error:?}");
        assert!(error.to_string().contains("on another machine named `local`: elsewhere with"), "{error}");
    }
}

// The progress counted every cell as done again, and more than there were to measure.
#[tokio::test(start_paused = true)]
async fn only_cells_with_something_to_measure_are_reported_as_ended() {
    let bed = TestBed::new(figures(steady));
    let ended = |events: &[Progress]| {
        let started = events.iter().find_map(|event| match event {
            Progress::Started { cells, .. } => Some(*cells),
            _ => None,
        });
        (started, events.iter().filter(|event| matches!(event, Progress::CellEnded { .. })).count())
    };
    let (_, events) = bed.run(&["figure"]).await;
    assert_eq!(ended(&events), (Some(1), 1));
    let (_, events) = bed.run(&["figure", "figure:n=2"]).await;
    assert_eq!(ended(&events), (Some(1), 1), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn another_kernel_is_reported() {
    let (end, events) = moved(Facts { kernel: "2.6.32".to_owned(), ..facts() }).await;
    assert_eq!(end.unwrap(), RunEnd::Finished);
    let expected = "earlier samples in this folder were taken with 2.6.32";
    let is_note = |event: &&Progress| matches!(event, Progress::Note(note) if note.contains(expected));
    assert_eq!(events.iter().filter(is_note).count(), 1, "{events:?}");
}
