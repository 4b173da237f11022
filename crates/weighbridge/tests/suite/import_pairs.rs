//! `compare` of imports in which a job is named by other parameters, because of what else its file has.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wb_model::{DefinitionKey, ParamValue, TestName};

use crate::compare_evidence::words;
use crate::lab::Lab;

/// Verdicts of the primary metric's mean, by cell without what all have in common.
fn verdicts(lab: &Lab, sides: &str, code: i32) -> BTreeMap<String, String> {
    let compared = lab.weighbridge(&format!("compare {sides} --json")).expect_code(code).json();
    let checks = compared["checks"].as_array().unwrap().iter().filter(|check| check["primary"] == true);
    let means = checks.filter(|check| check["id"].as_str().unwrap().ends_with("#mean"));
    let name = |check: &Value| {
        let id = check["id"].as_str().unwrap();
        let case = id.split_once(':').unwrap().1.rsplitn(3, '/').last().unwrap().to_owned();
        (case, check["final_verdict"].as_str().unwrap().to_owned())
    };
    means.map(name).collect()
}

fn times(mean: f64) -> Vec<f64> {
    (0..12).map(|run| mean * (1.0 + 0.001 * f64::from(run * 7 % 12))).collect()
}

/// An export of hyperfine of commands with these mean times.
fn hyperfine(commands: &[(&str, f64)]) -> String {
    let results = commands.iter().map(|(command, mean)| json!({"command": command, "times": times(*mean)}));
    json!({"results": results.collect::<Vec<_>>()}).to_string()
}

/// fio's report of jobs of one name: the size of each, if it is an option, and its rate.
fn fio(jobs: &[(Option<&str>, f64)]) -> String {
    let none = json!({"io_bytes": 0, "total_ios": 0, "iops": 0, "bw_bytes": 0, "runtime": 0});
    let jobs = jobs.iter().map(|(size, iops)| {
        let read = json!({"io_bytes": 4096.0 * iops, "total_ios": iops, "iops": iops, "bw_bytes": iops * 4096.0,
            "runtime": 1000});
        let mut options = json!({"name": "j", "rw": "read", "bs": "4k"});
        if let Some(size) = size {
            options["size"] = json!(size);
        }
        json!({"jobname": "j", "groupid": 0, "error": 0, "job options": options, "read": read, "write": none})
    });
    json!({"fio version": "fio-3.36", "time": "x", "jobs": jobs.collect::<Vec<_>>()}).to_string()
}

fn import(lab: &Lab, name: &str, text: &str) {
    lab.write(&format!("{name}.json"), text);
    lab.weighbridge(&format!("import -o {name} {name}.json")).expect_code(0);
}

#[test]
fn a_job_is_compared_with_itself_whatever_else_its_file_has() {
    let lab = Lab::new();
    let (one, two) = (Some("1g"), Some("2g"));
    for (name, jobs) in [
        ("one", &[(one, 1000.0)][..]),
        ("two", &[(two, 1500.0)]),
        ("both", &[(one, 1000.0), (two, 1500.0)]),
        ("unsized-and-two", &[(None, 900.0), (two, 1500.0)]),
    ] {
        import(&lab, name, &fio(jobs));
    }
    let [size_1, size_2, plain] =
        [",size=1g", ",size=2g", ""].map(|size| format!("bs=4k,iodepth=1,job=j,numjobs=1,rw=read{size}"));
    for (sides, expected) in [
        ("one both", vec![(&size_1, "inconclusive"), (&size_2, "new")]),
        ("both one", vec![(&size_1, "inconclusive"), (&size_2, "missing")]),
        ("two both", vec![(&size_2, "inconclusive"), (&size_1, "new")]),
        // The name of the one is that of another one.
        ("two unsized-and-two", vec![(&size_2, "inconclusive"), (&plain, "new")]),
        // The size of the one is unknown: no other is like it.
        ("unsized-and-two both", vec![(&size_2, "inconclusive"), (&plain, "incomparable")]),
        ("one,two both", vec![(&size_1, "inconclusive"), (&size_2, "inconclusive")]),
    ] {
        let expected = expected.into_iter().map(|(cell, verdict)| (cell.clone(), verdict.to_owned())).collect();
        let code = i32::from(sides.starts_with("both") || sides.starts_with("unsized")) * 3;
        assert_eq!(verdicts(&lab, sides, code), expected, "{sides}");
    }
}

// A cell was named by what else its file has, so that one job was missing and new beside itself.
#[test]
fn a_job_is_one_cell_of_a_run_in_whatever_order_its_files_are_imported() {
    let lab = Lab::new();
    lab.write("one.json", &fio(&[(Some("1g"), 1000.0)]));
    lab.write("both.json", &fio(&[(Some("1g"), 1000.0), (Some("2g"), 1500.0)]));
    for (run, files) in [("a", "one.json both.json"), ("b", "both.json one.json")] {
        lab.weighbridge(&format!("import -o {run} {files}")).expect_code(0).expect_stderr("2 cells, 2 samples");
        let cells = lab.weighbridge(&format!("summary {run} --json")).json()["cells"].as_array().unwrap().len();
        assert_eq!(cells, 2, "{files}");
    }
    lab.weighbridge("import -o c one.json").expect_code(0);
    lab.weighbridge("import -o c both.json").expect_code(0);
    for sides in ["a c", "b c", "a b"] {
        let verdicts: Vec<String> = verdicts(&lab, sides, 0).into_values().collect();
        assert_eq!(verdicts, ["inconclusive"; 2], "{sides}");
    }
}

#[test]
fn a_cell_that_may_be_any_of_several_is_named_and_paired_with_none() {
    let lab = Lab::new();
    import(&lab, "one", &hyperfine(&[("x", 1.0), ("y", 1.0)]));
    import(&lab, "both", &hyperfine(&[("x", 1.0), ("x", 2.0), ("y", 1.0)]));
    for sides in ["one both", "both one"] {
        let compared = lab.weighbridge(&format!("compare {sides}")).expect_code(3);
        let text = words(&compared.err);
        let expected = "has `Localhost/hyperfine/0000:command=x`, which may be each of \
            `Localhost/hyperfine/0000:command=x,occurrence=1`, `Localhost/hyperfine/0000:command=x,occurrence=2`; it is \
            paired with none: give each a name of its own";
        assert!(text.contains(expected), "{text}");
        assert!(compared.out.contains("1 equivalent"), "{}", compared.out);
    }
}

// What an older recording lacks made another cell of the same benchmark.
#[test]
fn an_executable_that_an_older_library_did_not_record_makes_no_other_cell() {
    let lab = Lab::new();
    let report = |executable: Option<&str>| {
        let benchmarks: Vec<Value> = times(10.0)
            .iter()
            .enumerate()
            .map(|(index, time)| json!({"name": "BM", "run_type": "iteration", "repetition_index": index, "real_time": time}))
            .collect();
        let mut report = json!({"context": {"host_name": "vm"}, "benchmarks": benchmarks});
        executable.into_iter().for_each(|executable| report["context"]["executable"] = json!(executable));
        report.to_string()
    };
    import(&lab, "old", &report(None));
    import(&lab, "new", &report(Some("./bench")));
    import(&lab, "other", &report(Some("./other")));
    assert_eq!(verdicts(&lab, "old new", 0), BTreeMap::from([("benchmark=BM".to_owned(), "equivalent".to_owned())]));
    assert_eq!(verdicts(&lab, "new other", 4).len(), 2);
}

/// Makes an import of hyperfine one that was recorded when the status of a command that never succeeds was a parameter.
fn record_as_version_2(lab: &Lab, run: &str) {
    let test = TestName::new("hyperfine").unwrap();
    let params = |status: Option<&str>| {
        let all = [("command", Some("x")), ("exit-status", status)].into_iter();
        all.filter_map(|(name, value)| Some((name.to_owned(), ParamValue::Text(value?.to_owned())))).collect()
    };
    let keys = [DefinitionKey::new(&test, 3, &params(None)), DefinitionKey::new(&test, 2, &params(Some("1")))];
    let [new, old] = keys.map(|key| key.to_string());
    let rename = |text: String| text.replace(":command=x\"", ":command=x,exit-status=1\"").replace(&new, &old);
    for file in ["run.json", "tests.d/hyperfine.toml", "Localhost/hyperfine/0000/definition.json", "journal.jsonl"] {
        let path = format!("{run}/{file}");
        let text =
            rename(lab.read(&path)).replace("\"version\": 3", "\"version\": 2").replace("version = 3", "version = 2");
        let text = text.replace("\"command\": \"x\"", "\"command\": \"x\", \"exit-status\": \"1\"");
        let lines = text.lines().map(|line| match line.rsplit_once(",\"crc32\"") {
            Some((line, _)) => format!("{line}}}\n"),
            None => format!("{line}\n"),
        });
        let without_statuses = lines.map(|line| match line.split_once(",\"exit_statuses\"") {
            Some((line, _)) => format!("{line}}}}}\n"),
            None => line,
        });
        lab.write(&path, &without_statuses.collect::<String>());
    }
    lab.weighbridge(&format!("study {run}")).expect_code(0);
}

// An earlier version imported the status as a parameter of the cell.
#[test]
fn an_exit_status_that_was_once_a_parameter_makes_no_other_cell() {
    let lab = Lab::new();
    let export = |status: i32, mean: f64| {
        json!({"results": [{"command": "x", "times": times(mean), "exit_codes": vec![status; 12]}]}).to_string()
    };
    for (name, status, mean) in [("old", 1, 1.0), ("new", 1, 1.0001), ("ok", 0, 1.0002)] {
        import(&lab, name, &export(status, mean));
    }
    record_as_version_2(&lab, "old");
    assert!(lab.weighbridge("summary old").out.contains("exit-status=1"));
    let verdict = |verdict: &str| BTreeMap::from([("command=x".to_owned(), verdict.to_owned())]);
    assert_eq!(verdicts(&lab, "old new", 0), verdict("equivalent"));
    assert_eq!(verdicts(&lab, "new old", 0), verdict("equivalent"));
    assert_eq!(verdicts(&lab, "ok old", 2), verdict("regressed"));
}
