//! Values resolved from the machine, when a folder is continued after the machine has changed.

use wb_model::{Bytes, Facts};
use wb_run::{RunEnd, RunError};

use crate::testbed::{FIGURE, TestBed, figures, steady};

/// A test with one more parameter, which is resolved from a property of the machine.
fn resolved(property: &str, is_axis: bool) -> String {
    let kind = if property.ends_with('s') { "integer" } else { "bytes" };
    let param = format!(
        "[[param]]\nname = \"value\"\nhelp = \"x\"\nkind = \"{kind}\"\nresolved = \"{property}\"\naxis = {is_axis}\n"
    );
    FIGURE.replace("name = \"figure\"\nsummary", "name = \"sized\"\nsummary") + &param
}

/// The cells of a folder that was measured, then the machine changes, and it is measured again.
async fn measure_twice(text: &str, change: impl FnOnce(&mut Facts)) -> (TestBed, Result<RunEnd, RunError>) {
    let mut bed = TestBed::new(figures(steady));
    bed.define(text);
    bed.measure(&["sized"]).await;
    bed.agents[0].change_facts(change);
    let (end, _) = bed.run(&["sized", "figure"]).await;
    (bed, end)
}

fn cells(bed: &TestBed) -> Vec<String> {
    bed.study().cells.into_iter().map(|cell| cell.id.to_string()).collect()
}

// A setup script that changed the CPUs had the next invocation add cells beside the first.
#[tokio::test(start_paused = true)]
async fn a_changed_machine_adds_no_second_cell() {
    for is_axis in [true, false] {
        for property in ["cpus", "cores", "one-and-cores"] {
            let (bed, end) = measure_twice(&resolved(property, is_axis), |facts| facts.cpus.truncate(1)).await;
            let Err(error @ RunError::ChangedMachine { .. }) = &end else { panic!("{property}: {end:?}") };
            let start = "`local` is not as it was when this folder was measured (CPUs: 0-1 before, 0 now): `Localhost/";
            assert!(error.to_string().starts_with(start), "{property}: {error}");
            assert!(cells(&bed).iter().all(|cell| cell.contains("/sized/")), "nothing is added: {:?}", cells(&bed));
        }
        let (_, end) = measure_twice(&resolved("memory", is_axis), |facts| facts.memory = Bytes(4 << 30)).await;
        assert!(matches!(end, Err(RunError::ChangedMachine { .. })), "memory: {end:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_always_varies_keeps_its_first_value_in_a_folder() {
    for is_axis in [true, false] {
        let (bed, end) = measure_twice(&resolved("memory-available", is_axis), |facts| {
            facts.memory_available = Bytes(5 << 30);
            facts.boot_id = "another".to_owned();
        })
        .await;
        assert_eq!(end.unwrap(), RunEnd::Finished, "the other test is added");
        assert_eq!(cells(&bed).len(), 2, "{:?}", cells(&bed));
        // The invocation that added it has recorded the memory of its own start.
        bed.agents[0].change_facts(|facts| facts.memory_available = Bytes(3 << 30));
        let (end, _) = bed.run(&["sized", "figure"]).await;
        assert_eq!((end.unwrap(), cells(&bed).len()), (RunEnd::AlreadyComplete, 2));
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_depend_on_the_machine_can_be_continued_and_extended() {
    let (bed, end) =
        measure_twice(&FIGURE.replace("name = \"figure\"\nsummary", "name = \"sized\"\nsummary"), |facts| {
            facts.cpus.truncate(1);
        })
        .await;
    assert_eq!(end.unwrap(), RunEnd::Finished);
    let (end, _) = bed.run(&["sized:n=[1,2]"]).await;
    assert_eq!((end.unwrap(), cells(&bed).len()), (RunEnd::Finished, 3));
}
