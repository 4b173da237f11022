//! Decisions from few samples, with differing parameters and with disturbed samples.

use crate::compare::{samples_around, table, write_build};
use crate::lab::Lab;

/// Imports a run of a command with these times in seconds.
fn imported(lab: &Lab, run: &str, times: &[f64]) {
    let export = serde_json::json!({"results": [{"command": "work", "times": times}]});
    let file = lab.write(&format!("{run}.json"), &export.to_string());
    lab.weighbridge(&format!("import -o {run} {}", file.display())).expect_code(0);
}

/// A text with line breaks and runs of spaces collapsed.
pub(crate) fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

const TIME: &str = "Localhost/hyperfine/0000:command=work/latency/time#mean";

#[test]
fn fewer_than_six_samples_are_inconclusive() {
    let lab = Lab::new();
    let six = [1.0, 1.01, 1.02, 1.03, 1.04, 1.05];
    let slower = six.map(|time| time * 1.5);
    imported(&lab, "old", &six);
    imported(&lab, "old-3", &six[..3]);
    imported(&lab, "new", &slower);
    imported(&lab, "new-3", &slower[..3]);
    for builds in ["old-3 new-3", "old new-3", "old-3 new"] {
        let ran = lab.weighbridge(&format!("compare {builds}"));
        assert_eq!(ran.code, 0, "{builds}: {}", ran.transcript());
        assert!(ran.out.contains(&format!("inconclusive {TIME}\n")), "{builds}: {}", ran.out);
        assert!(!ran.out.contains("group regression"), "{builds}: {}", ran.out);
        let text = words(&ran.out);
        let [score, reason] = [" % of ±5 %; ", "samples: at least 6 per side are required"];
        assert!(text.contains(score) && text.contains(reason), "the score is shown: {}", ran.out);
        let trusted = lab.weighbridge(&format!("compare {builds} --run-noise 0"));
        assert_eq!(trusted.code, 0, "{builds}: {}", trusted.transcript());
    }
    let outcome = lab.weighbridge("compare old-3 new-3 --json").json();
    let check = &outcome["checks"][0];
    assert_eq!((&check["final_verdict"], &check["decided_by"]), (&"inconclusive".into(), &"statistical".into()));
    assert!((check["score"].as_f64().unwrap() - 50.0).abs() < 1e-6, "{check}");
    assert_eq!(check["reason"], "3 and 3 samples: at least 6 per side are required");
    assert_eq!(outcome["regressed_by"], serde_json::json!([]));
    lab.weighbridge("compare old new").expect_code(2).expect_stdout(&format!("regressed    {TIME}\n"));
}

#[test]
fn requested_method_and_run_perf_folders_decide_from_few_samples() {
    let lab = Lab::new();
    imported(&lab, "old", &[1.0, 1.01, 1.02]);
    imported(&lab, "new", &[1.5, 1.51, 1.52]);
    let ran = lab.weighbridge("compare old new --method tolerance --markdown out.md --html out.html").expect_code(2);
    ran.expect_stdout(&format!("regressed    {TIME}\n"));
    let by = |out: &str| out.lines().find(|line| line.contains("regression by")).map(|line| line.trim().to_owned());
    assert!(by(&ran.out).is_some_and(|line| line.ends_with("tolerance")), "{}", ran.out);
    assert!(lab.read("out.md").contains("; regression by tolerance."), "{}", lab.read("out.md"));
    assert!(lab.read("out.html").contains("2, a regression by tolerance"));
    let requested = lab.weighbridge("compare old new --method tolerance --json").json();
    assert_eq!(requested["regressed_by"], serde_json::json!(["tolerance"]));
    write_build(&lab, "before", &[1000.0, 1001.0, 1002.0]);
    write_build(&lab, "after", &[800.0, 801.0, 802.0]);
    let folders = lab.weighbridge("compare before after").expect_code(2);
    assert!(by(&folders.out).is_some_and(|line| line.ends_with("tolerance")), "{}", folders.out);
    write_build(&lab, "before", &samples_around(1000.0));
    write_build(&lab, "after", &samples_around(770.0));
    let requested = lab.weighbridge("compare before after --method statistical").expect_code(2);
    assert!(by(&requested.out).is_some_and(|line| line.ends_with("statistics")), "{}", requested.out);
}

#[test]
fn score_model_does_not_decide_from_few_samples() {
    let lab = Lab::new();
    for (run, time) in [("one", 1.0), ("two", 1.01), ("new", 1.5)] {
        imported(&lab, run, &[time, time * 1.001]);
    }
    lab.weighbridge("model fit --linear -o m.json one two").expect_code(0);
    lab.weighbridge("compare one new -m m.json").expect_code(0).expect_stdout(&format!("inconclusive {TIME}\n"));
    lab.weighbridge("compare one new -m m.json --method tolerance").expect_code(2);
}

const TIMED: &str = r#"
name = "timed"
summary = "a figure that no parameter changes"
version = 1
command = ["sh", "-c", "sleep 0.02; echo figure: 97"]

[[param]]
name = "runtime"
help = "seconds"
kind = "integer"
default = 60

[[param]]
name = "size"
help = "how much"
kind = "integer"
default = 1
axis = true

[[param]]
name = "mode"
help = "which of two"
kind = "choice"
choices = ["a", "b"]
default = "a"
"#;

fn run(lab: &Lab, test: &str, into: &str) {
    let ran = lab.weighbridge(&format!("run {test} --min-time 1ms --samples 6 --retakes 0 -q --into {into}"));
    assert!([0, 3].contains(&ran.code), "{}", ran.transcript());
}

#[test]
fn allow_different_permits_the_named_parameters() {
    let lab = Lab::new();
    lab.define_figure("timed", TIMED);
    run(&lab, "timed:runtime=60", "R60");
    run(&lab, "timed:runtime=61", "R61");
    run(&lab, "timed:runtime=61,mode=b", "R61b");
    lab.weighbridge("compare R60 R61")
        .expect_code(4)
        .expect_stderr(
            "nothing to compare: 1 cell with different definitions: `Localhost/timed/0000:size=1` (runtime 60 → 61)\n",
        )
        .expect_stderr("or compare them all the same: --allow-different runtime\n");
    let allowed = lab.weighbridge("compare R60 R61 --allow-different runtime -v").expect_code(0);
    allowed.expect_stdout("equivalent   Localhost/timed/0000:size=1/throughput/figure#mean\n");
    assert!(words(&allowed.out).contains("; runtime 60 → 61"), "{}", allowed.out);
    let more = lab.weighbridge("compare R60 R61b --allow-different runtime");
    assert_eq!(more.code, 4, "the mode differs as well: {}", more.transcript());
    for flags in ["--allow-different runtime,mode", "--allow-different runtime --allow-different mode"] {
        let both = lab.weighbridge(&format!("compare R60 R61b {flags}"));
        assert_eq!(both.code, 0, "{flags}: {}", both.transcript());
    }
    let unknown = lab.weighbridge("compare R60 R61 --allow-different run-time").expect_code(1);
    unknown.expect_stderr("unknown parameter `run-time` in `R60`, `R61`");
    unknown.expect_stderr("did you mean `runtime`?");
}

#[test]
fn cases_with_an_allowed_axis_are_paired_if_unambiguous() {
    let lab = Lab::new();
    lab.define_figure("timed", TIMED);
    run(&lab, "timed:size=1", "S1");
    run(&lab, "timed:size=2", "S2");
    run(&lab, "timed:size=[2,3]", "S23");
    lab.weighbridge("compare S1 S2").expect_code(4);
    let paired = lab.weighbridge("compare S1 S2 --allow-different size -v").expect_code(0);
    paired.expect_stdout("0000:size=1/throughput/figure#mean\n");
    assert!(words(&paired.out).contains("; size 1 → 2"), "{}", paired.out);
    lab.weighbridge("compare S1 S23 --allow-different size").expect_code(4);
    let outcome = lab.weighbridge("compare S23 S2 --allow-different size --json").expect_code(3).json();
    let missing: Vec<&str> = outcome["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["final_verdict"] == "missing")
        .map(|check| check["id"].as_str().unwrap())
        .collect();
    assert!(!missing.is_empty() && missing.iter().all(|id| id.contains("size=3")), "{missing:?}");
}

#[test]
fn run_perf_iterations_with_an_allowed_parameter_are_paired() {
    let lab = Lab::new();
    write_build(&lab, "old", &samples_around(1000.0));
    write_build(&lab, "new", &samples_around(1000.0));
    let path = lab.path("new/Localhost/fio/0000/result.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, text.replace("read-4k", "read-8k").replace("\"4k\"", "\"8k\"")).unwrap();
    lab.weighbridge("compare old new").expect_code(4);
    let paired = lab.weighbridge("compare old new --allow-different bs -v").expect_code(0);
    paired.expect_stdout("equivalent   Localhost/fio/0000:./read-4k/throughput/iops_sec.mean\n");
    assert!(words(&paired.out).contains("; bs 4k → 8k"), "{}", paired.out);
}

#[test]
fn allow_different_does_not_permit_another_test_version() {
    let lab = Lab::new();
    lab.define_figure("timed", TIMED);
    run(&lab, "timed:runtime=60", "R60");
    lab.define_figure("timed", &TIMED.replace("version = 1", "version = 2"));
    run(&lab, "timed:runtime=61", "R61");
    lab.weighbridge("compare R60 R61 --allow-different runtime").expect_code(4);
}

/// Marks the first `count` samples of every cell of a run as disturbed, and the others as undisturbed.
fn disturb(lab: &Lab, run: &str, count: usize) {
    let path = lab.path(run).join("Localhost/timed/0000/result.json");
    let mut result = lab.read_json(&path);
    for cell in result["cells"].as_array_mut().unwrap() {
        let samples = cell["attempts"].as_array_mut().unwrap();
        for (index, sample) in samples.iter_mut().filter(|sample| sample["counted"] == true).enumerate() {
            sample["disturbances"] =
                if index < count { serde_json::json!(["steal 5 %"]) } else { serde_json::json!([]) };
        }
    }
    std::fs::write(path, result.to_string()).unwrap();
}

#[test]
fn disturbed_samples_are_counted() {
    let lab = Lab::new();
    lab.define_figure("timed", TIMED);
    for (name, disturbed) in [("old", 0), ("new", 2)] {
        run(&lab, "timed", name);
        disturb(&lab, name, disturbed);
    }
    let ran = lab.weighbridge("compare old new -v").expect_code(0);
    let total = ran.out.lines().find(|line| line.contains("disturbed samples ")).unwrap_or_default();
    assert!(total.ends_with("0 of 6 in old, 2 of 6 in new"), "{}", ran.out);
    assert!(words(&ran.out).contains("; disturbed samples: 0 and 2"), "{}", ran.out);
    assert!(!ran.err.contains("warning"), "{}", ran.err);
    let outcome = lab.weighbridge("compare old new --json").json();
    assert_eq!(outcome["builds"][1]["samples"], serde_json::json!({"counted": 6, "disturbed": 2}));
    assert_eq!(outcome["checks"][0]["disturbed"], serde_json::json!([0, 2]));
    let trusted = lab.weighbridge("compare old new --run-noise 0 --html out.html");
    let warning = "--run-noise 0 lets disturbed samples decide: 2 of 6 in `new`";
    trusted.expect_stderr(&format!("warning: {warning}\n"));
    assert!(lab.read("out.html").contains("2 of 6 in `new`"));
    let head = |page: &str| page.split("</header>").next().unwrap().to_owned();
    let line = "Disturbed samples: 0 of 6 in old, 2 of 6 in new.";
    assert!(head(&lab.read("out.html")).contains(line), "the page says so at its beginning");
    disturb(&lab, "new", 0);
    lab.weighbridge("compare old new --html quiet.html").expect_code(0);
    assert!(!head(&lab.read("quiet.html")).contains("Disturbed"), "nothing to say");
    let quiet = lab.weighbridge("compare old new --run-noise 0");
    assert!(!quiet.err.contains("warning"), "{}", quiet.err);
}

#[test]
fn imported_samples_have_no_record_of_disturbances() {
    let lab = Lab::new();
    imported(&lab, "old", &[1.0, 1.01, 1.02, 1.03, 1.04, 1.05]);
    let outcome = lab.weighbridge("compare old old --json").json();
    assert_eq!(outcome["builds"][0]["samples"], serde_json::Value::Null);
    assert_eq!(outcome["checks"][0]["disturbed"], serde_json::json!([null, null]));
    assert!(!lab.weighbridge("compare old old").out.contains("disturbed"));
}

#[test]
fn disturbed_samples_of_variants_are_counted() {
    let lab = Lab::new();
    lab.define_figure("timed", TIMED);
    let line = "ab timed --min-time 1ms --warm-up 0 --max-blocks 6 --into R -- base other:param:mode=b";
    lab.weighbridge(line).expect_code(0);
    // Mark the samples of one variant as disturbed.
    let journal = lab.journal("R").into_iter().map(|mut line| {
        if line["event"] == "attempt-ended" {
            let disturbed = line["cell"].as_str().is_some_and(|cell| cell.contains("/other:"));
            line["disturbances"] = if disturbed { serde_json::json!(["steal 5 %"]) } else { serde_json::json!([]) };
        }
        line.as_object_mut().unwrap().remove("crc32");
        format!("{line}\n")
    });
    let journal: String = journal.collect();
    lab.write("R/journal.jsonl", &journal);
    let variants = lab.weighbridge(&line.replace("--into", "--json --into")).json()["cases"][0]["variants"].clone();
    assert_eq!((&variants[0]["disturbed"], &variants[1]["disturbed"]), (&0.into(), &variants[1]["samples"]));
    let text = lab.weighbridge(line);
    let row = text
        .out
        .lines()
        .find(|line| line.trim_start().starts_with("other ") && !line.contains(" is "))
        .unwrap_or_default();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[1], cells[2], "all samples are disturbed: {}", text.out);
    text.expect_stdout("disturbed");
}

#[test]
fn the_sentence_says_what_the_figures_say() {
    let lab = Lab::new();
    let line = |n: u32, from: f64, step: f64| (0..n).map(move |i| from + step * f64::from(i));
    let slow_tail: Vec<f64> = line(31, 0.85, 0.0005).chain(line(9, 1.9, 0.001)).collect();
    imported(&lab, "even", &line(40, 1.0, 0.0005).collect::<Vec<_>>());
    imported(&lab, "tail", &slow_tail);
    imported(&lab, "less", &line(40, 0.94, 0.0005).collect::<Vec<_>>());
    let worse = lab.weighbridge("compare even tail").expect_code(2);
    let text = words(&worse.out);
    assert!(text.starts_with("`tail` is slower by a factor of 1.87 of the 90 % quantile (1."), "{}", worse.out);
    assert!(text.contains("also shift -1"), "{}", worse.out);
    let perhaps = lab.weighbridge("compare even less --fail-on unconfirmed").expect_code(0);
    perhaps.expect_stdout("`less` may be 5.9 % faster");
    lab.weighbridge("compare less even --fail-on unconfirmed").expect_code(2);
    lab.weighbridge("compare less even --fail-on unconfirmed --junit j.xml").expect_code(2);
    assert!(lab.read("j.xml").contains(r#"failures="1""#), "{}", lab.read("j.xml"));
}

#[test]
fn of_unconfirmed_checks_those_that_may_be_worse_are_named() {
    let lab = Lab::new();
    let import = |run: &str, levels: [f64; 3]| {
        let results: Vec<serde_json::Value> = levels
            .iter()
            .zip(["x", "y", "z"])
            .map(|(level, command)| {
                let times: Vec<f64> = (0..10).map(|i| level * (1.0 + 0.001 * f64::from(i))).collect();
                serde_json::json!({"command": command, "times": times})
            })
            .collect();
        let file = lab.write(&format!("{run}.json"), &serde_json::json!({ "results": results }).to_string());
        lab.weighbridge(&format!("import -o {run} {}", file.display())).expect_code(0);
    };
    import("old", [1.0, 1.0, 1.0]);
    import("new", [1.08, 0.92, 1.0]);
    let compared = lab.weighbridge("compare old new").expect_code(0);
    let text = words(&compared.out);
    assert!(
        text.starts_with("`new` may be 8.0 % slower (7.6 to 8.4 % between these runs) in hyperfine command=x"),
        "{text}"
    );
    assert!(text.contains("which is unconfirmed; other checks: 1 equivalent, 1 unconfirmed"), "{text}");
}

#[test]
fn what_is_inconclusive_fails_if_requested() {
    let lab = Lab::new();
    imported(&lab, "one", &[1.0]);
    for level in ["", "--fail-on unconfirmed"] {
        lab.weighbridge(&format!("compare one one {level}")).expect_code(0);
    }
    let failed = lab.weighbridge("compare one one --fail-on inconclusive --junit j.xml").expect_code(2);
    assert!(words(&failed.out).contains("inconclusive by statistics"), "{}", failed.out);
    let xml = lab.read("j.xml");
    assert!(!xml.contains(r#"failures="0""#) && xml.contains(r#"skipped="0""#), "{xml}");
    // It is the stricter level.
    let line = |from: f64| (0..40).map(|i| from + 0.0005 * f64::from(i)).collect::<Vec<_>>();
    imported(&lab, "even", &line(1.0));
    imported(&lab, "less", &line(0.94));
    lab.weighbridge("compare less even --fail-on inconclusive").expect_code(2);
}

#[test]
fn noise_and_thresholds_that_let_nothing_fail_are_refused() {
    let lab = Lab::new();
    imported(&lab, "one", &[1.0]);
    lab.weighbridge("compare one one --run-noise 100 --threshold 1000").expect_code(0);
    let noise = lab.weighbridge("compare one one --run-noise 101").expect_code(1);
    noise.expect_stderr("expected a percentage from 0 to 100");
    let threshold = lab.weighbridge("compare one one --threshold 1e9").expect_code(1);
    threshold.expect_stderr("expected a percentage from 0 to 1000, or `model`");
}

// A single sample was reported to lack its standard deviation.
#[test]
fn a_single_sample_is_inconclusive_and_lacks_nothing() {
    let lab = Lab::new();
    imported(&lab, "one", &[1.0]);
    imported(&lab, "twelve", &(0..12).map(|i| 1.0 + 0.001 * f64::from(i)).collect::<Vec<_>>());
    for builds in ["one twelve", "twelve one", "one one"] {
        let ran = lab.weighbridge(&format!("compare {builds}"));
        assert_eq!(ran.code, 0, "{builds}: {}", ran.transcript());
    }
}

/// Imports a run of Google Benchmark with these figures of a user counter; `failed` repetitions have no value.
fn imported_counter(lab: &Lab, run: &str, misses: &[i32], failed: usize) {
    let count = misses.len() + failed;
    let repetition = |index: usize| {
        let mut entry = serde_json::json!({
            "name": "b", "run_name": "b", "run_type": "iteration", "repetitions": count, "repetition_index": index,
            "threads": 1, "iterations": 1000, "real_time": 10.0 + 0.01 * index as f64,
            "cpu_time": 10.0 + 0.01 * index as f64, "time_unit": "ns",
        });
        match misses.get(index) {
            Some(value) => entry["misses"] = (*value).into(),
            None => (entry["error_occurred"], entry["error_message"]) = (true.into(), "broken".into()),
        }
        entry
    };
    let context =
        serde_json::json!({"date": "2026-01-01T00:00:00+00:00", "host_name": "h", "executable": "./b", "num_cpus": 2});
    let benchmarks: Vec<_> = (0..count).map(repetition).collect();
    let export = serde_json::json!({"context": context, "benchmarks": benchmarks});
    let file = lab.write(&format!("{run}.json"), &export.to_string());
    let imported = lab.weighbridge(&format!("import -o {run} {}", file.display()));
    assert_eq!(imported.code, if failed < 3 { 0 } else { 3 }, "{}", imported.transcript());
}

/// Means of 3.2 and 3.5, of counts that vary by more than one.
#[test]
fn a_counter_that_decides_is_decided_by_statistics() {
    let lab = Lab::new();
    imported_counter(&lab, "old", &[1, 2, 2, 3, 3, 3, 4, 4, 5, 5], 0);
    imported_counter(&lab, "new", &[1, 2, 3, 3, 3, 4, 4, 5, 5, 5], 0);
    imported_counter(&lab, "many", &[31, 32, 33, 33, 33, 34, 34, 35, 35, 35], 0);
    imported_counter(&lab, "none", &[0; 10], 0);
    let options = "--metric misses --direction misses=lower";
    for method in ["", "--method statistical"] {
        let outcome = lab.weighbridge(&format!("compare old new {options} {method} --json"));
        assert_eq!(outcome.code, 0, "{}", outcome.transcript());
        let json = outcome.json();
        let checks = json["checks"].as_array().unwrap().iter().filter(|check| check["primary"] == true);
        assert!(
            checks.clone().count() > 0 && checks.clone().all(|check| check["decided_by"] == "statistical"),
            "{json}"
        );
    }
    lab.weighbridge(&format!("compare old many {options}")).expect_code(2);
    let fewer = lab.weighbridge(&format!("compare old none {options}"));
    assert_eq!(fewer.code, 0, "a standard deviation decides nothing: {}", fewer.transcript());
}

#[test]
fn failures_decide_whatever_the_number_of_samples_that_are_left() {
    let lab = Lab::new();
    imported_counter(&lab, "old", &[3; 10], 0);
    imported_counter(&lab, "new", &[3], 9);
    for method in ["", "--method statistical"] {
        let failing = lab.weighbridge(&format!("compare old new {method}"));
        assert_eq!(failing.code, 2, "{}", failing.transcript());
        assert!(words(&failing.out).starts_with("`new` is failing more often (9 of 10"), "{}", failing.out);
    }
    // One of ten may, and is an error of neither side.
    imported_counter(&lab, "once", &[3; 9], 1);
    for sides in ["old once", "once old"] {
        let compared = lab.weighbridge(&format!("compare {sides}")).expect_code(0);
        assert!(words(&compared.out).contains("`once` failed in 1 of 10 attempts"), "{}", compared.out);
    }
}

/// No tolerance is about failed attempts, so they decide whatever method does.
#[test]
fn failures_decide_by_either_method() {
    let lab = Lab::new();
    imported_counter(&lab, "old", &[300; 20], 0);
    imported_counter(&lab, "equal", &[300; 10], 10);
    imported_counter(&lab, "better", &[100; 10], 10);
    let options = "--metric misses --direction misses=lower";
    for (run, method) in
        ["equal", "better"].into_iter().flat_map(|run| ["tolerance", "statistical"].map(|it| (run, it)))
    {
        let command = format!("compare old {run} {options} --method {method}");
        let compared = lab.weighbridge(&command).expect_code(2);
        let text = words(&compared.out);
        assert!(text.contains("failing more often (10 of 20"), "{run} {method}: {text}");
        let json = lab.weighbridge(&format!("{command} --json")).expect_code(2).json();
        let checks = json["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["primary"] == true && check["statistic"] == "mean").unwrap();
        assert_eq!(check["final_verdict"], "regressed", "{run} {method}: {check}");
    }
    lab.weighbridge(&format!("compare equal old {options} --method tolerance")).expect_code(3);
}

/// A mean of zero has no standard deviation in percent of it, which is no value that is missing.
#[test]
fn a_mean_of_zero_lacks_no_standard_deviation() {
    let lab = Lab::new();
    imported_counter(&lab, "some", &[4, 5, 6, 5, 5, 4, 6, 5, 5, 5], 0);
    imported_counter(&lab, "zeros", &[0; 10], 0);
    imported_counter(&lab, "balanced", &[-1, 1, -1, 1, -1, 1, -1, 1, -1, 1], 0);
    for (sides, zero) in [("some zeros", "zeros"), ("zeros some", "zeros"), ("some balanced", "balanced")] {
        let options = "--metric misses --direction misses=lower --method tolerance --junit j.xml";
        let ran = lab.weighbridge(&format!("compare {sides} {options} --verbose"));
        assert_eq!(ran.code, if sides.starts_with("zeros") { 2 } else { 0 }, "{sides}: {}", ran.transcript());
        assert!(words(&ran.out).contains(&format!("the mean of `{zero}` is zero")), "{sides}: {}", ran.out);
        assert!(lab.read("j.xml").contains(r#"errors="0""#), "{sides}: {}", lab.read("j.xml"));
    }
}

/// Of values below zero or of both signs no ratio says how far they are apart, in no output.
#[test]
fn values_below_zero_differ_by_values_and_not_by_ratios() {
    let lab = Lab::new();
    let around = |level: i32| [-2, -1, -1, 0, 0, 0, 0, 1, 1, 2].map(|noise| level + noise);
    for (run, level) in [("minus10", -10), ("minus50", -50), ("zero", 0), ("plus50", 50)] {
        imported_counter(&lab, run, &around(level), 0);
    }
    for (sides, before, after) in [
        ("minus50 minus10", -50, -10),
        ("minus10 minus50", -10, -50),
        ("minus50 plus50", -50, 50),
        ("plus50 minus10", 50, -10),
        ("plus50 zero", 50, 0),
    ] {
        let options = "--metric misses --direction misses=lower --run-noise 0";
        let command = format!("compare {sides} {options} --csv c --html p.html --markdown m.md");
        let code = if after > before { 2 } else { 0 };
        let ran = lab.weighbridge(&command).expect_code(code);
        let text = words(&ran.out);
        let sentence = text.split_once(" than ").unwrap().0;
        let word = if after > before { "worse" } else { "better" };
        let difference = format!("{before} → {after}, a difference of {:+}", after - before);
        assert!(sentence.contains(word) && sentence.contains(&difference), "{sides}: {sentence}");
        assert!(!sentence.contains('%') && !sentence.contains("factor"), "{sides}: {sentence}");
        assert!(text.contains(&format!("; shift {:+} [", after - before)), "{sides}: {text}");
        let json = lab.weighbridge(&format!("compare {sides} {options} --json")).expect_code(code).json();
        let checks = json["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["primary"] == true && check["statistic"] == "mean").unwrap();
        for of in [vec![check], check["aspects"].as_array().unwrap().iter().collect()].concat() {
            assert!(["ratio", "interval", "runs_interval"].iter().all(|name| of[*name].is_null()), "{sides}: {of}");
            let values = &of["value_difference"];
            let [estimate, low, high] = [&values["estimate"], &values["interval"]["low"], &values["interval"]["high"]]
                .map(|value| value.as_f64().unwrap());
            assert!((estimate - f64::from(after - before)).abs() < 1.5 && low < estimate && estimate < high, "{of}");
        }
        for file in ["c.csv", "c-aspects.csv"] {
            let cell = "\"Localhost/google-benchmark/0000:benchmark=b,executable=b\"";
            lab.write(file, &lab.read(file).replace(cell, "cell"));
        }
        let csv = table(&lab, "c.csv");
        let row = csv.iter().find(|row| row["primary"] == "true" && row["statistic"] == "mean").unwrap();
        assert!(["ratio", "low", "high", "median_ratio"].iter().all(|name| row[*name].is_empty()), "{sides}: {row:?}");
        let difference: f64 = row["value_difference"].parse().unwrap();
        assert!((difference - f64::from(after - before)).abs() < 1e-9, "{sides}: {row:?}");
        let aspects = table(&lab, "c-aspects.csv");
        let of_shift = aspects.iter().find(|row| row["primary"] == "true" && row["aspect"] == "shift").unwrap();
        assert_eq!(of_shift["quantity"], "difference of values", "{of_shift:?}");
    }
}

/// Of what became zero there is no part in a geometric mean, so it is no member that has a score.
#[test]
fn a_group_has_no_more_notable_members_than_members() {
    let lab = Lab::new();
    let export = |run: &str, levels: [u32; 3]| {
        let repetition = |name: &str, index: u32, level: u32| {
            serde_json::json!({ "name": name, "run_name": name, "run_type": "iteration", "repetitions": 10,
                "repetition_index": index, "threads": 1, "iterations": 1000, "real_time": 10.0, "cpu_time": 10.0,
                "time_unit": "ns", "misses": if level == 0 { 0 } else { level + index % 3 } })
        };
        let of = |(name, level): (&'static str, u32)| (0..10).map(move |index| repetition(name, index, level));
        let benchmarks: Vec<_> = ["b0", "b1", "b2"].into_iter().zip(levels).flat_map(of).collect();
        let context = serde_json::json!({"date": "2026-01-01T00:00:00+00:00", "host_name": "h", "executable": "./b", "num_cpus": 2});
        let export = serde_json::json!({"context": context, "benchmarks": benchmarks});
        let file = lab.write(&format!("{run}.json"), &export.to_string());
        lab.weighbridge(&format!("import -o {run} {}", file.display())).expect_code(0);
    };
    export("old", [500, 500, 500]);
    export("new", [900, 900, 0]);
    let ran = lab.weighbridge("compare old new --metric misses --direction misses=lower --json").expect_code(2);
    let json = ran.json();
    let groups = json["groups"].as_array().unwrap();
    assert!(!groups.is_empty(), "{json}");
    for group in groups {
        let counts = ["members", "notable_members", "notable_without_score"].map(|name| group[name].as_u64().unwrap());
        assert_eq!(counts, [2, 2, 1], "{group}");
    }
}

/// Fisher's exact test of 0 of 12 and 5 of 12 attempts has p = 0.037, and the median of 7 samples a side is equal.
#[test]
fn failures_have_one_verdict_whatever_other_checks_show() {
    let lab = Lab::new();
    let import = |run: &str, failed: usize, other: f64| {
        let repetition = |name: &str, index: usize, time: f64, fails: bool| {
            let mut entry = serde_json::json!({
                "name": name, "run_name": name, "run_type": "iteration", "repetitions": 12, "repetition_index": index,
                "threads": 1, "iterations": 1000, "real_time": time, "cpu_time": time, "time_unit": "ns",
            });
            if fails {
                (entry["error_occurred"], entry["error_message"]) = (true.into(), "broken".into());
            }
            entry
        };
        let at = |name: &'static str, level: f64, failed: usize| {
            (0..12).map(move |i| repetition(name, i, level * (1.0 + 0.001 * i as f64), i % 2 == 1 && i / 2 < failed))
        };
        let context = serde_json::json!({"date": "2026-01-01T00:00:00+00:00", "host_name": "h", "executable": "./b", "num_cpus": 2});
        let benchmarks: Vec<_> = at("fails", 10.0, failed).chain(at("other", other, 0)).collect();
        let file = lab.write(
            &format!("{run}.json"),
            &serde_json::json!({"context": context, "benchmarks": benchmarks}).to_string(),
        );
        lab.weighbridge(&format!("import -o {run} {}", file.display())).expect_code(0);
    };
    import("old", 0, 10.0);
    for (run, other) in [("equal", 10.0), ("faster", 5.0), ("slower", 20.0)] {
        import(run, 5, other);
        let outcome = lab.weighbridge(&format!("compare old {run} --run-noise 1 --json")).expect_code(2).json();
        let checks = outcome["checks"].as_array().unwrap();
        let failing = checks.iter().find(|check| check["failures_rose"] == true);
        let failing = failing.unwrap_or_else(|| panic!("{run}: {outcome}"));
        assert_eq!(failing["final_verdict"], "regressed", "{run}");
        let p = failing["failure_rates"]["p_value"]["in_family"].as_f64().unwrap();
        assert!((p - 0.0373).abs() < 1e-3, "{run}: {p}");
    }
}

/// A metric that both builds have and declare with another direction, or in another class, is no metric that is missing.
#[test]
fn a_metric_that_is_declared_differently_is_incomparable_in_every_output() {
    let lab = Lab::new();
    let define = |class: &str, direction: &str| {
        let metric = format!(
            "[[metric]]\nname = \"figure\"\nclass = \"{class}\"\ndirection = \"{direction}\"\nunit = \"s\"\nprimary = true\n\
             regex = 'figure: (\\S+)'\n"
        );
        let head = "name = \"figures\"\nsummary = \"a figure\"\nversion = 1\ncommand = [\"echo\", \"figure: 97\"]\n";
        lab.define("figures", &format!("{head}{metric}"));
    };
    for (run, class, direction) in
        [("old", "latency", "lower"), ("turned", "latency", "higher"), ("moved", "resource", "lower")]
    {
        define(class, direction);
        lab.weighbridge(&format!("run figures --min-time 1ms --warm-up 0 --samples 6 -q --into {run}")).expect_code(0);
    }
    for (run, difference, way_out) in [
        ("turned", "metric direction lower → higher", "--direction latency/figure=higher or =lower compares them"),
        ("moved", "metric class latency → resource", "both sides must declare the metric alike"),
    ] {
        let ran = lab.weighbridge(&format!(
            "compare old {run} --json --junit {run}.xml --markdown {run}.md --html {run}.html --no-charts"
        ));
        assert_eq!(ran.code, 4, "{}", ran.transcript());
        assert!(ran.err.contains(way_out), "{}", ran.transcript());
        let json = ran.json();
        let check = &json["checks"][0];
        let verdicts: Vec<_> = json["checks"].as_array().unwrap().iter().map(|it| &it["final_verdict"]).collect();
        assert_eq!(verdicts, ["incomparable", "incomparable"], "the mean and the standard deviation");
        assert!(check["reason"].as_str().unwrap().contains(way_out), "{json}");
        for file in [format!("{run}.xml"), format!("{run}.md")] {
            let text = std::fs::read_to_string(lab.path(&file)).unwrap();
            assert!(text.contains(difference) && text.contains(way_out), "{text}");
        }
        let page = std::fs::read_to_string(lab.path(&format!("{run}.html"))).unwrap();
        assert!(page.contains(difference.split(' ').nth(1).unwrap()) && page.contains("incomparable"), "{run}");
        let text = lab.weighbridge(&format!("compare old {run}"));
        // Long words are wrapped, too.
        let joined = |text: &str| text.split_whitespace().collect::<String>();
        let [found, difference, way_out] = [text.out.as_str(), difference, way_out].map(joined);
        assert!(found.contains(&difference) && found.contains(&way_out), "{}", text.out);
    }
    let given = lab.weighbridge("compare old turned --direction latency/figure=lower").expect_code(0);
    assert!(words(&given.out).contains("one check, equivalent"), "{}", given.out);
}
