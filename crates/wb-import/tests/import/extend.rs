//! Imports into an existing run, and files that cannot be imported.

use std::path::PathBuf;

use wb_import::{ImportError, ImportReport, ReadError};
use wb_model::TestName;

use crate::lab::{ImportEnv, example, text};

fn sample_counts(report: &ImportReport) -> Vec<(usize, usize)> {
    let imported = report.files.iter().filter_map(|file| file.result.as_ref().ok());
    imported.map(|imported| (imported.samples, imported.duplicates)).collect()
}

fn reason(report: &ImportReport) -> String {
    report.failed_files().map(|(_, reason)| reason.to_string()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_file_is_not_imported_twice_under_any_name() {
    let lab = ImportEnv::new();
    assert_eq!(sample_counts(&lab.import("R", &["iperf3-tcp-1.json", "iperf3-tcp-1.json"])), [(1, 0), (0, 1)]);
    let before = std::fs::read(lab.path("R/journal.jsonl")).unwrap();
    let other = lab.write("other.json", text("iperf3-tcp-1.json"));
    assert_eq!(sample_counts(&lab.try_import("R", &[other]).unwrap()), [(0, 1)]);
    assert_eq!(std::fs::read(lab.path("R/journal.jsonl")).unwrap(), before);
    assert_eq!(sample_counts(&lab.import("R", &["iperf3-tcp-1.json", "iperf3-tcp-2.json"])), [(0, 1), (1, 0)]);
    let study = lab.study("R");
    assert_eq!((study.cells.len(), study.cells[0].attempts.len()), (1, 2));
    assert_eq!(study.cells[0].outcome.as_str(), "measured");
}

#[test]
fn an_interrupted_import_is_resumed() {
    let lab = ImportEnv::new();
    lab.import("R", &["hyperfine.json"]);
    let journal = lab.path("R/journal.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    // Truncated in the samples of the second cell.
    let beginning: String = text.split_inclusive('\n').take(3).collect();
    let second = text.lines().nth(3).unwrap();
    assert!(second.contains("samples-imported"), "{second}");
    std::fs::write(&journal, beginning + &second[..second.len() / 2]).unwrap();
    assert_eq!(sample_counts(&lab.import("R", &["hyperfine.json"])), [(6, 8)]);
    let outcomes: Vec<_> = lab.study("R").cells.iter().map(|cell| cell.outcome.to_string()).collect();
    assert_eq!(outcomes, ["measured", "measured"]);
    // One of the six runs failed.
    assert_eq!(lab.study("R").cells[1].failures.failed, 1);
    assert_eq!(sample_counts(&lab.import("R", &["hyperfine.json"])), [(0, 14)]);
}

#[test]
fn a_cell_with_other_parameters_is_refused_with_the_difference() {
    let mut lab = ImportEnv::new();
    lab.import("R", &["pbench.json"]);
    let other = lab.write("other.json", text("pbench.json").replace("\"libaio\"", "\"psync\""));
    let report = lab.try_import("R", std::slice::from_ref(&other)).unwrap();
    assert!(
        reason(&report).contains("`TunedLibvirt/pbench-fio/0000:iteration=read-4KiB` exists with other parameters"),
        "{}",
        reason(&report)
    );
    assert!(reason(&report).contains("ioengine: `libaio` before, `psync` now"), "{}", reason(&report));
    assert_eq!(lab.study("R").cells.len(), 2);
    lab.names.id = Some(TestName::new("psync").unwrap());
    assert_eq!(reason(&lab.try_import("R", &[other]).unwrap()), "");
    assert_eq!(lab.study("R").cells.len(), 4);
}

#[test]
fn a_different_test_of_the_same_name_is_refused() {
    let mut lab = ImportEnv::new();
    lab.names.test = Some(TestName::new("mine").unwrap());
    lab.import("R", &["hyperfine.json"]);
    let report = lab.try_import("R", &[example("iperf3-udp.json")]).unwrap();
    assert_eq!(reason(&report), "the run has a different test `mine`: set another name with --test");
    let several = lab.try_import("S", &[example("phoronix.xml")]).unwrap();
    assert!(reason(&several).contains("pts-build-linux-kernel, pts-compress-7zip"), "{}", reason(&several));
}

#[test]
fn a_malformed_file_is_reported_and_skipped() {
    let mut lab = ImportEnv::new();
    let whole = text("fio.json");
    lab.write("in/a.json", &whole);
    lab.write("in/b.json", &whole[..whole.len() / 2]);
    lab.write("in/c.json", "{\"something\": \"else\"}");
    lab.write("in/d.json", "{ not JSON");
    lab.write("in/notes.txt", "<- not a result");
    let report = lab.try_import("R", &[lab.path("in"), lab.path("none")]).unwrap();
    assert_eq!(sample_counts(&report), [(1, 0)]);
    let reason = reason(&report);
    assert!(reason.contains("invalid document: line 1, column 3: key must be a string"), "{reason}");
    assert!(reason.contains("invalid fio results: line 129"), "{reason}");
    assert!(reason.contains("cannot read the file: No such file"), "{reason}");
    assert_eq!(report.skipped, 2);
    assert_eq!(lab.study("R").cells.len(), 1);
    lab.strict = true;
    let error = lab.try_import("S", &[lab.path("in")]).unwrap_err();
    assert!(matches!(&error, ImportError::InvalidFile { path, .. } if path.ends_with("b.json")), "{error}");
    assert!(!lab.path("S").exists());
}

#[test]
fn errors_of_run_perf_are_imported_and_non_numeric_serials_with_a_flag() {
    let mut lab = ImportEnv::new();
    lab.write("b/RUNPERF_METADATA", "build:1");
    for serial in ["0000", "put-aside"] {
        lab.write(&format!("b/Tuned/fio/{serial}/result.json"), text("pbench.json"));
    }
    for place in ["", "0/", "1/", "2/"] {
        lab.write(&format!("b/Tuned/fio/{place}__error0__/exception"), "the guest did not boot\n");
    }
    let cells = |lab: &ImportEnv, run: &str| -> Vec<String> {
        let study = lab.study(run);
        study.cells.iter().map(|cell| format!("{} {}", cell.id, cell.outcome.as_str())).collect()
    };
    let report = lab.try_import("R", &[lab.path("b")]).unwrap();
    let correct = ["read-4KiB", "read-64KiB"].map(|case| format!("Tuned/pbench-fio/0000:iteration={case} measured"));
    assert_eq!((sample_counts(&report), report.skipped_serials), (vec![(1, 0), (1, 0), (5, 0), (1, 0), (1, 0)], 1));
    let errors = ["0-", "1-", "2-", ""].map(|place| format!("Tuned/pbench-fio/0000:error={place}__error0__ failed"));
    let mut expected = [&errors[..], &correct].concat();
    let mut imported = cells(&lab, "R");
    expected.sort();
    imported.sort();
    assert_eq!(imported, expected);
    lab.include_incorrect = true;
    let report = lab.try_import("S", &[lab.path("b")]).unwrap();
    assert_eq!((reason(&report).as_str(), report.skipped_serials), ("", 0));
    let mut all = cells(&lab, "S");
    all.retain(|cell| !expected.contains(cell));
    let archived = [
        "Tuned/pbench-fio/put-aside:iteration=read-4KiB measured",
        "Tuned/pbench-fio/put-aside:iteration=read-64KiB measured",
    ];
    all.sort();
    assert_eq!(all, archived);
}

#[test]
fn a_named_file_of_unknown_format_is_reported() {
    let lab = ImportEnv::new();
    let report = lab.try_import("R", &[lab.write("x.json", "{}")]).unwrap();
    assert!(matches!(report.files[0].result, Err(ReadError::Unknown)));
    assert!(!lab.path("R").exists());
}

// Two tests of one benchmark (`__NAME__`) became one cell.
#[test]
fn tests_of_one_benchmark_are_distinguished_by_their_folders() {
    let lab = ImportEnv::new();
    let text = text("pbench.json");
    for (test, text) in [("fio", &text), ("foo", &text.replace("\"libaio\"", "\"psync\""))] {
        lab.write(&format!("b/Tuned/{test}/0000/result.json"), text);
    }
    assert_eq!(reason(&lab.try_import("R", &[lab.path("b")]).unwrap()), "");
    let cells: Vec<String> = lab.study("R").cells.iter().map(|cell| cell.id.to_string()).collect();
    for test in ["fio", "foo"] {
        assert!(cells.contains(&format!("Tuned/pbench-{test}/0000:iteration=read-4KiB")), "{cells:?}");
    }
    assert_eq!(cells.len(), 4);
}

// A cell with an empty name of a parameter was written, and its parser refused the whole run.
#[test]
fn no_name_makes_a_run_unreadable() {
    let mut lab = ImportEnv::new();
    let names = ["", "-", " ", "=", ",", "%", "%zz", "a/b", ":", "\\u0000", "\\n", "ü"];
    lab.import("R", &["hyperfine.json"]);
    let cells = lab.study("R").cells.len();
    for (index, name) in names.iter().enumerate() {
        for value in names {
            let text = format!(
                r#"{{"results": [{{"command": "{name}{index}", "times": [4], "parameters": {{"{name}": "{value}"}}}}]}}"#
            );
            let report = lab.try_import("R", &[lab.write("x.json", text)]).unwrap();
            assert_eq!(reason(&report), "", "`{name}` `{value}`");
        }
    }
    assert_eq!(lab.study("R").cells.len(), cells + names.len() * names.len());
    lab.names.id = Some(TestName::new("123").unwrap());
    let report = lab.try_import("R", &[example("iperf3-udp.json")]).unwrap();
    assert!(reason(&report).contains("with a letter in an id"), "{}", reason(&report));
    assert_eq!(lab.study("R").cells.len(), cells + names.len() * names.len());
}

#[test]
fn files_are_archived_by_their_hash() {
    let lab = ImportEnv::new();
    lab.import("R", &["fio-normal-json+.txt"]);
    let bytes = std::fs::read(example("fio-normal-json+.txt")).unwrap();
    let folder = lab.path("R/imported").join(wb_model::Sha256::digest(&bytes).as_str());
    let files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(std::fs::read(&files[0]).unwrap(), bytes);
}

#[test]
fn no_secret_is_recorded() {
    let lab = ImportEnv::new();
    let report = lab.import("R", &["pbench.json"]);
    let notes = &report.files[0].result.as_ref().unwrap().notes;
    assert!(notes.iter().any(|note| note.contains("masked")), "{notes:?}");
    lab.study("R");
    let all = lab.all_content("R");
    assert!(all.contains("--default-password ***") && !all.contains("hunter2"));
}

/// Files with a measurement that differ in a secret and a figure, by format.
fn file_with_secret(format: &str, secret: &str, figure: u32) -> String {
    match format {
        "hyperfine" => {
            format!(
                r#"{{"results": [{{"command": "curl --token {secret}", "mean": {figure}, "times": [{figure}, 7]}}]}}"#
            )
        }
        "hyperfine-parameter" => format!(
            r#"{{"results": [{{"command": "opt {secret} -v", "mean": 1, "times": [{figure}], "parameters": {{"pass": "{secret}"}}}}]}}"#
        ),
        "hyperfine-parameter-in-option" => format!(
            r#"{{"results": [{{"command": "curl --token {secret} -u {secret}", "mean": 1, "times": [{figure}],
            "parameters": {{"pass": "{secret}"}}}}]}}"#
        ),
        "fio" => format!(
            r#"{{"fio version": "fio-3.33", "jobs": [{{"jobname": "j", "job options": {{"http_s3_key": "{secret}"}},
            "read": {{"total_ios": {figure}, "iops": {figure}, "bw_bytes": 1, "runtime": 1000}}}}]}}"#
        ),
        _ => format!(
            "<PhoronixTestSuite><Result><Identifier>pts/x-1.0.0</Identifier><Title>x</Title>
            <Arguments>get --token {secret}</Arguments><Scale>MB/s</Scale><Proportion>HIB</Proportion><Data><Entry>
            <Identifier>a</Identifier><Value>{figure}</Value><RawString>{figure}</RawString></Entry></Data></Result>
            </PhoronixTestSuite>"
        ),
    }
}

#[test]
fn cells_that_differ_in_a_masked_secret_are_not_mixed() {
    for format in ["hyperfine", "hyperfine-parameter", "hyperfine-parameter-in-option", "fio", "phoronix"] {
        let mut lab = ImportEnv::new();
        let file = |name: &str, secret: &str, figure| lab.write(name, file_with_secret(format, secret, figure));
        let one = file("one", "abc123", 1);
        let again = file("again", "abc123", 2);
        let other = file("other", "xyz789", 3);
        let result = |report: &ImportReport| -> Vec<(bool, usize, bool)> {
            let imported = report.files.iter().map(|file| file.result.as_ref().unwrap());
            let is_skipped = |note: &String| note.contains("differs from another one only in a masked secret");
            imported.map(|file| (file.samples > 0, file.duplicates, file.skipped.iter().any(is_skipped))).collect()
        };
        let import = |lab: &ImportEnv, run: &str, files: &[&PathBuf]| {
            result(&lab.try_import(run, &files.iter().map(|file| (*file).clone()).collect::<Vec<_>>()).unwrap())
        };
        let samples = if format == "hyperfine" { 2 } else { 1 };
        let (added, duplicate, skipped) = ((true, 0, false), (false, samples, false), (false, 0, true));
        assert_eq!(import(&lab, "R", &[&one, &other, &again]), [added, skipped, added], "{format}");
        // Which secret the run's cell has is known only from a file that it is from.
        assert_eq!(import(&lab, "S", &[&one]), [added], "{format}");
        assert_eq!(import(&lab, "S", &[&other, &again]), [skipped, skipped], "{format}");
        assert_eq!(import(&lab, "S", &[&one, &again, &other]), [duplicate, added, skipped], "{format}");
        assert_eq!(import(&lab, "S", &[&again, &one]), [duplicate, duplicate], "{format}");
        for run in ["R", "S"] {
            let study = lab.study(run);
            assert_eq!((study.cells.len(), study.cells[0].attempts.len()), (1, 2 * samples), "{format} {run}");
            let all = lab.all_content(run);
            for secret in ["abc123", "xyz789"] {
                let hash = wb_model::Sha256::digest(secret.as_bytes());
                assert!(!all.contains(secret) && !all.contains(hash.as_str()), "{format} {run}");
            }
        }
        lab.names.id = Some(TestName::new("other").unwrap());
        assert_eq!(import(&lab, "S", &[&other]), [added], "{format}");
        assert_eq!(lab.study("S").cells.len(), 2, "{format}");
    }
}

#[test]
fn cells_of_one_file_that_differ_in_a_masked_secret_are_not_mixed() {
    let lab = ImportEnv::new();
    let result = |secret: &str| format!(r#"{{"command": "curl --token {secret}", "times": [1, 2]}}"#);
    let text = format!(r#"{{"results": [{}, {}]}}"#, result("abc123"), result("xyz789"));
    let report = lab.try_import("R", &[lab.write("both.json", text)]).unwrap();
    let imported = report.files[0].result.as_ref().unwrap();
    assert_eq!((imported.cells, imported.samples), (1, 2));
    let expected = "skipped `Localhost/hyperfine/0000:command=curl%20--token%20%2A%2A%2A` at results/1/times/0: differs from another \
                    one only in a masked secret";
    assert!(imported.skipped.iter().any(|note| note.starts_with(expected)), "{:?}", imported.skipped);
}

#[test]
fn one_of_several_systems_is_selected() {
    let mut lab = ImportEnv::new();
    lab.names.system = Some("Linux 6.9".to_owned());
    lab.import("R", &["phoronix.xml"]);
    let study = lab.study("R");
    assert_eq!(study.cells[0].id.to_string(), "Localhost/pts-compress-7zip/0000:Test=Compression%20Rating,scale=MIPS");
    assert!(study.run.properties.iter().any(|(_, text)| text == "6.9.1 x86_64"), "{:?}", study.run.properties);
    lab.names.system = Some("Linux 5".to_owned());
    let report = lab.try_import("S", &[example("phoronix.xml")]).unwrap();
    assert_eq!(reason(&report), "unknown system `Linux 5`: expected one of Linux 6.1, Linux 6.9");
    lab.names.system = None;
    lab.names.profile = Some("Mine".parse().unwrap());
    let report = lab.try_import("S", &[example("phoronix.xml")]).unwrap();
    assert!(reason(&report).contains("Linux-6.1, Linux-6.9"), "{}", reason(&report));
}
