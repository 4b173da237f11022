//! Reading folders: malformed files are skipped with a warning, and nothing panics.

use crate::support::{TestFolders, iteration, latency, throughput, unchanged_results};
use proptest::prelude::*;
use wb_compare::source::WarningKind;
use wb_compare::{MeasuredValue, ReadOptions, SourceError};
use wb_results::comparison::{CheckId, Statistic};

fn one(mean: f64) -> String {
    iteration("read-4KiB", "iops_sec", &[throughput("iops_sec", mean, 1.0), latency("lat", 7.0, 2.0)])
}

#[test]
fn builds_share_their_rows_and_keep_their_values_apart() {
    let lab = TestFolders::new();
    lab.run("a", "Localhost/fio/0000", &[one(10.0)]);
    lab.run("b", "Localhost/fio/0000", &[one(12.0)]);
    lab.file("b/RUNPERF_METADATA", "build:7\n");
    let builds = lab.read(&["a", "b"]);
    let id = CheckId::parse("Localhost/fio/0000:./read-4KiB/throughput/iops_sec.mean").unwrap();
    let row = builds.find(&id).unwrap();
    assert_eq!(builds.id(row, Statistic::Mean), id);
    let values: Vec<_> = builds.list().iter().map(|build| build.value(row, Statistic::Mean)).collect();
    assert_eq!(values, [MeasuredValue::Known(10.0), MeasuredValue::Known(12.0)]);
    assert_eq!(builds.list()[1].primary(row), Some(true));
    assert_eq!(builds.list()[1].runs[0].metadata.build.as_deref(), Some("7"));
    assert_eq!(builds.rows().len(), 2);
}

#[test]
fn a_malformed_file_is_skipped_with_a_warning() {
    let lab = TestFolders::new();
    lab.run("a", "Localhost/fio/0000", &[one(10.0)]);
    let bad = lab.file("a/Localhost/fio/0001/result.json", "[{\"iteration_name\": 1");
    lab.run("a", "Localhost/fio/0002", &[one(11.0)]);
    let read = lab.try_read(&["a"], &ReadOptions::default());
    assert_eq!(read.builds.rows().len(), 4);
    let [warning] = &read.warnings[..] else { panic!("{:?}", read.warnings) };
    assert_eq!(warning.path, bad);
    assert!(matches!(warning.kind, WarningKind::Malformed(_)));
    let strict = wb_compare::read(
        &[lab.source("a")],
        &ReadOptions { strict: true, ..ReadOptions::default() },
        &unchanged_results,
    );
    assert!(matches!(strict, Err(SourceError::Strict(_))));
}

#[test]
fn a_duplicate_metric_is_a_warning() {
    let lab = TestFolders::new();
    lab.run("a", "Localhost/fio/0000", &[one(10.0), one(11.0)]);
    let read = lab.try_read(&["a"], &ReadOptions::default());
    let [warning] = &read.warnings[..] else { panic!("{:?}", read.warnings) };
    let first = "Localhost/fio/0000:./read-4KiB/throughput/iops_sec.mean".to_owned();
    let row = read.builds.find(&CheckId::parse(&first).unwrap()).unwrap();
    assert_eq!(warning.kind, WarningKind::Repeated { metrics: 2, first });
    assert_eq!(read.builds.rows().len(), 2);
    assert_eq!(read.builds.list()[0].value(row, Statistic::Mean), MeasuredValue::Known(11.0));
}

#[test]
fn a_profile_is_compared_as_another() {
    let lab = TestFolders::new();
    lab.run("a", "Localhost/fio/0000", &[one(10.0)]);
    lab.run("b", "DefaultLibvirt/fio/0000", &[one(9.0)]);
    lab.run("b", "Localhost/fio/0000", &[one(1.0)]);
    let mut b = lab.source("b");
    b.profiles.insert("DefaultLibvirt".to_owned(), "Localhost".to_owned());
    let builds = wb_compare::read(&[lab.source("a"), b], &ReadOptions::default(), &unchanged_results).unwrap().builds;
    let id = CheckId::parse("Localhost/fio/0000:./read-4KiB/throughput/iops_sec.mean").unwrap();
    let row = builds.find(&id).unwrap();
    assert_eq!(builds.rows().len(), 2);
    assert_eq!(builds.list()[1].value(row, Statistic::Mean), MeasuredValue::Known(9.0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_panic(result: Vec<u8>, metadata: Vec<u8>) {
        let lab = TestFolders::new();
        lab.file("a/Localhost/fio/0000/result.json", result);
        lab.file("a/RUNPERF_METADATA", metadata);
        lab.try_read(&["a"], &ReadOptions { include_incorrect: true, ..ReadOptions::default() });
    }

    #[test]
    fn a_changed_file_never_panics(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), 0..7usize), 1..6),
        byte: u8,
    ) {
        let mut text = format!("[{},{}]", one(10.0), one(1e300)).into_bytes();
        const WHOLE: [&str; 6] = ["null", "[]", "{}", "\"\\ud800\"", "-1e999", "\"all\""];
        for (index, change) in changes {
            let index = index.index(text.len());
            match WHOLE.get(change) {
                Some(other) => {
                    let end = text[index..].iter().position(|c| b",}]".contains(c)).map_or(text.len(), |more| index + more);
                    let start = text[..index].iter().rposition(|c| b":,[".contains(c)).map_or(0, |before| before + 1);
                    text.splice(start..end, other.bytes());
                }
                None => text[index] = byte,
            }
        }
        let lab = TestFolders::new();
        lab.file("a/Localhost/fio/0000/result.json", text);
        lab.try_read(&["a"], &ReadOptions::default());
    }
}
