//! Comparison of builds whose tests ended in errors.

use crate::compare::{samples_around, write_build};
use crate::lab::{FIGURE, Lab};

/// Writes run-perf's record of a crashed test.
fn crashed(lab: &Lab, build: &str, place: &str, text: &str) {
    lab.write(&format!("{build}/{place}/__error0__/exception"), text);
    lab.write(&format!("{build}/{place}/__error0__/traceback"), "Traceback (most recent call last):");
}

/// A lab in which every attempt at a test of the new build failed; the old build is complete and equally fast.
fn lab() -> Lab {
    let lab = Lab::new();
    write_build(&lab, "old", &samples_around(1000.0));
    write_build(&lab, "new", &samples_around(1000.0));
    for attempt in 0..3 {
        crashed(&lab, "new", &format!("Localhost/uperf/{attempt}"), "uperf: no server\nfor 60 s");
    }
    lab
}

#[test]
fn crashed_test_counts_as_an_error() {
    let lab = lab();
    let ran = lab.weighbridge("compare old new").expect_code(3);
    let error = "error        Localhost/uperf/0\n             `new` failed: uperf: no server for 60 s\n";
    ran.expect_stdout(error).expect_stdout("3: 3 ended in an error");
    let before = lab.weighbridge("compare new old");
    assert_eq!(before.code, 3, "an error of the first build counts too: {}", before.transcript());
    assert_eq!(lab.weighbridge("compare old new old").code, 0, "errors of builds in between do not count");
}

#[test]
fn regression_outweighs_a_crashed_test() {
    let lab = lab();
    write_build(&lab, "new", &samples_around(800.0));
    let ran = lab.weighbridge("compare old new --method tolerance").expect_code(2);
    ran.expect_stdout("`new` failed: uperf: no server for 60 s");
}

#[test]
fn build_with_only_errors_exits_with_3() {
    let lab = Lab::new();
    write_build(&lab, "old", &samples_around(1000.0));
    crashed(&lab, "new", "Localhost/fio/0000", "fio: exit status 7");
    let ran = lab.weighbridge("compare old new").expect_code(3);
    let missing = "missing      Localhost/fio/0000:./read-4k/throughput/iops_sec.mean\n             \
                   `new` failed: fio: exit status 7\n";
    ran.expect_stdout(missing);
}

#[test]
fn errors_appear_in_every_output() {
    let lab = lab();
    let ran = lab
        .weighbridge("compare old new --json --csv out --junit out.xml --markdown out.md --html out.html --no-charts");
    assert_eq!(ran.code, 3, "{}", ran.transcript());
    let outcome = ran.json();
    assert_eq!((&outcome["totals"]["errors"], &outcome["exit_code"]), (&3.into(), &3.into()));
    let error = serde_json::json!(["Localhost/uperf/0", "uperf: no server\nfor 60 s"]);
    assert_eq!(outcome["builds"][1]["errors"][0], error);
    let table = lab.read("out.csv");
    assert!(table.contains("\nLocalhost/uperf/0,,,,") && table.contains(",error,true,,"), "{table}");
    assert!(table.contains(",,error,\"`new` failed: uperf: no server\nfor 60 s\"\n"), "{table}");
    let xml = lab.read("out.xml");
    assert!(xml.contains(r#"errors="3""#) && xml.contains("`new` failed: uperf: no server"), "{xml}");
    let comment = lab.read("out.md");
    assert!(comment.contains("**3 errors**"), "{comment}");
    assert!(
        comment.contains(r"| error | `Localhost/uperf/0` | | | | \`new\` failed: uperf: no server for 60 s |"),
        "{comment}"
    );
    let page = lab.read("out.html");
    assert!(page.contains("3 errors") && page.matches("<td>uperf: no server").count() == 3, "{page}");
}

#[test]
fn include_incorrect_adds_only_failed_iterations_and_non_numeric_serials() {
    let lab = Lab::new();
    for build in ["old", "new"] {
        write_build(&lab, build, &samples_around(1000.0));
    }
    let failed = lab.read("new/Localhost/fio/0000/result.json");
    lab.write("new/Localhost/fio/0001/result.json", &failed.replace("read-4k", "read-4k-fail1"));
    lab.write("new/Localhost/fio/odd/result.json", &failed);
    lab.weighbridge("compare old new").expect_code(0);
    let ran = lab.weighbridge("compare old new --include-incorrect").expect_code(0);
    for id in ["0001:./read-4k-fail1", "odd:./read-4k"] {
        let new = format!("new          Localhost/fio/{id}/throughput/iops_sec.mean");
        assert!(ran.out.contains(&new), "{id}: {}", ran.out);
    }
}

#[test]
fn error_of_an_excluded_profile_does_not_count() {
    let lab = lab();
    std::fs::rename(lab.path("new/Localhost/fio"), lab.path("fio")).unwrap();
    std::fs::create_dir_all(lab.path("new/Tuned")).unwrap();
    std::fs::rename(lab.path("fio"), lab.path("new/Tuned/fio")).unwrap();
    write_build(&lab, "other", &samples_around(1000.0));
    lab.weighbridge("compare --map Tuned=Localhost new other").expect_code(0);
    crashed(&lab, "new", "Tuned/fio/0001", "no space left");
    let ran = lab.weighbridge("compare --map Tuned=Localhost new other").expect_code(3);
    ran.expect_stdout("error        Localhost/fio/0001\n");
}

const FAILS: &str = "echo figure: 97; exit $(cat STATUS)";

#[test]
fn failed_cell_of_an_own_run_has_its_reason() {
    let lab = Lab::new();
    let status = lab.path("status").display().to_string();
    lab.define_script("fails", &FAILS.replace("STATUS", &status));
    for (run, code) in [("old", "0"), ("new", "7")] {
        lab.write("status", code);
        lab.weighbridge(&format!("run fails --min-time 1ms --samples 6 --retakes 0 -q --into {run}"));
    }
    let ran = lab.weighbridge("compare old new").expect_code(2);
    assert!(!ran.out.contains("no valid value"), "{}", ran.out);
    let lines: Vec<&str> = ran.out.lines().collect();
    for word in ["error        Localhost/fails/0000:-", "regressed    Localhost/fails/0000:-/throughput/figure#mean"] {
        let position = lines.iter().position(|line| *line == word).unwrap_or_else(|| panic!("{word}: {}", ran.out));
        assert!(
            lines[position + 1].contains("`new` failed: ") && lines[position + 1].contains("exit status 7"),
            "{}",
            ran.out
        );
    }
    let outcome = lab.weighbridge("compare old new --json").json();
    assert!(outcome["checks"][0]["reason"].as_str().unwrap().contains("exit status 7"), "{outcome}");
    assert_eq!(outcome["totals"]["errors"], 1);
}

#[test]
fn a_cell_that_gave_up_after_some_samples_is_an_error() {
    let lab = Lab::new();
    let count = lab.path("count").display().to_string();
    let script =
        format!("n=$(cat {count}); echo $((n + 1)) >{count}; echo figure: 97; [ $n -lt $(cat {count}.limit) ]");
    lab.define_script("tires", &script);
    for (run, limit, code) in [("old", "99", 0), ("new", "2", 3), ("worse", "1", 3)] {
        lab.write("count", "0");
        lab.write("count.limit", limit);
        let line = format!("run tires --min-time 1ms --warm-up 0 --samples 6 --retakes 0 -q --into {run}");
        lab.weighbridge(&line).expect_code(code);
    }
    let ran = lab.weighbridge("compare old new").expect_code(3);
    ran.expect_stdout("error        Localhost/tires/0000:-\n").expect_stdout("`new` failed: 2 of 6 samples; ");
    ran.expect_stdout("6 and 2 samples");
    lab.weighbridge("compare new old").expect_code(3).expect_stdout("`new` failed: 2 of 6 samples");
    // Three of four attempts beside none of six are significantly more, p = 0.033.
    let worse = lab.weighbridge("compare old worse").expect_code(2);
    worse.expect_stdout("error        Localhost/tires/0000:-\n").expect_stdout("`worse` failed: 1 of 6 samples; ");
}

#[test]
fn a_cell_that_gave_up_because_of_invalid_samples_is_an_error() {
    let lab = Lab::new();
    let count = lab.path("count").display().to_string();
    let script = format!(
        "n=$(cat {count}); echo $((n + 1)) >{count}; [ $n -lt $(cat {count}.limit) ] && echo figure: 97 || echo figure: 7"
    );
    let check = "[[check]]\ndescription = \"it is high\"\nmetric = \"figure\"\nmin = 50\n";
    let head = "name = \"doubtful\"\nsummary = \"a figure that becomes implausible\"\nversion = 1\n";
    let command = serde_json::Value::from(script);
    lab.define("doubtful", &format!("{head}command = [\"sh\", \"-c\", {command}]\n{FIGURE}{check}"));
    for (run, limit, code) in [("old", "99", 0), ("new", "2", 3)] {
        lab.write("count", "0");
        lab.write("count.limit", limit);
        let line = format!("run doubtful --min-time 1ms --warm-up 0 --samples 6 --retakes 0 -q --into {run}");
        lab.weighbridge(&line).expect_code(code);
    }
    let ran = lab.weighbridge("compare old new").expect_code(3);
    ran.expect_stdout("error        Localhost/doubtful/0000:-\n").expect_stdout("`new` failed: 2 of 6 samples; ");
    ran.expect_stdout("invalid (plausibility: ");
    lab.weighbridge("compare new old").expect_code(3);
}

#[test]
fn errors_of_an_imported_build_count() {
    let lab = lab();
    for build in ["old", "new"] {
        lab.weighbridge(&format!("import -o imported-{build} {build}"));
    }
    let ran = lab.weighbridge("compare imported-old imported-new").expect_code(3);
    assert_eq!(ran.out.matches("failed: uperf: no server for 60 s").count(), 3, "{}", ran.out);
}

/// Google Benchmark's ten repetitions, of which the last ones failed.
fn write_google_benchmark(lab: &Lab, file: &str, failed: usize) {
    let repetition = |index: usize| {
        serde_json::json!({ "name": "BM_a", "run_name": "BM_a", "run_type": "iteration", "repetitions": 10,
            "repetition_index": index, "threads": 1, "iterations": 100, "real_time": 100.0 + 0.1 * (index * 3 % 7) as f64,
            "cpu_time": 100.0 + 0.1 * (index * 3 % 7) as f64, "time_unit": "ns", "error_occurred": index >= 10 - failed,
            "error_message": (index >= 10 - failed).then_some("boom") })
    };
    let benchmarks: Vec<_> = (0..10).map(repetition).collect();
    lab.write(file, &serde_json::json!({ "context": {}, "benchmarks": benchmarks }).to_string());
}

#[test]
fn a_partial_cell_of_an_import_is_an_error() {
    let lab = Lab::new();
    for (run, failed, code) in [("old", 0, 0), ("new", 3, 3)] {
        write_google_benchmark(&lab, &format!("{run}.json"), failed);
        lab.weighbridge(&format!("import -q -o {run} {run}.json")).expect_code(code);
    }
    let ran = lab.weighbridge("compare old new").expect_code(3);
    ran.expect_stdout("`new` failed: 7 of 10 samples; 3 of 10 attempts failed").expect_stdout("in an error");
    lab.weighbridge("compare new old").expect_code(3);
}

/// An import of hyperfine's times of these commands.
fn import_hyperfine(lab: &Lab, run: &str, commands: &[&str], level: f64, samples: i32) {
    let times: Vec<f64> = (0..samples).map(|index| level + 0.001 * f64::from(index * 3 % 7)).collect();
    let result = |command: &&str| {
        serde_json::json!({ "command": command, "mean": level, "stddev": 0.01, "median": level, "user": 0.1,
            "system": 0.1, "min": level, "max": level, "times": times })
    };
    let results: Vec<_> = commands.iter().map(result).collect();
    lab.write(&format!("{run}.json"), &serde_json::json!({ "results": results }).to_string());
    lab.weighbridge(&format!("import -q -o {run} {run}.json")).expect_code(0);
}

// A check that one run of the judged build lacks passed silently.
#[test]
fn a_cell_that_one_run_of_the_last_build_lacks_is_an_error() {
    let lab = Lab::new();
    for (run, commands, level) in [("m1", &["a", "b"][..], 1.0), ("m2", &["a", "b"], 1.001), ("m3", &["a"], 1.002)] {
        import_hyperfine(&lab, run, commands, level, 10);
    }
    let ran = lab.weighbridge("compare old=m1 new=m2,m3 --json").expect_code(3).json();
    let lacking: Vec<&serde_json::Value> =
        ran["checks"].as_array().unwrap().iter().map(|check| &check["lacking"]).filter(|it| !it.is_null()).collect();
    assert_eq!(lacking, [&serde_json::json!([[], ["m3"]])]);
    assert_eq!(ran["totals"]["partly-missing"], 1);
    lab.weighbridge("compare old=m2,m3 new=m1").expect_code(0).expect_stdout("missing in m3 of the");
}

// Two imports of one file were two runs.
#[test]
fn a_run_counts_once() {
    let lab = Lab::new();
    import_hyperfine(&lab, "one", &["a"], 1.0, 6);
    import_hyperfine(&lab, "other", &["a"], 1.001, 6);
    lab.weighbridge("import -q -o again one.json").expect_code(0);
    let ran = lab.weighbridge("compare old=one,again new=other").expect_code(1);
    ran.expect_stderr("again is a copy of one, or an import of the same file: a run counts once");
    let ran = lab.weighbridge("compare old=one,other new=again").expect_code(1);
    ran.expect_stderr("one and again are one run, or imports of one file");
    lab.weighbridge("compare old=one,other new=other").expect_code(1).expect_stderr("other is on both sides");
    lab.weighbridge("compare one one").expect_code(0).expect_stderr("note: one is on both sides");
}

#[test]
fn a_single_sample_lacks_no_standard_deviation() {
    let lab = Lab::new();
    import_hyperfine(&lab, "one", &["a"], 1.0, 1);
    import_hyperfine(&lab, "other", &["a"], 1.001, 6);
    lab.weighbridge("compare one other --method tolerance").expect_code(0);
    lab.weighbridge("compare other one --method tolerance").expect_code(0);
}

#[test]
fn nothing_may_be_worse_without_a_better_direction() {
    let lab = Lab::new();
    import_hyperfine(&lab, "one", &["a"], 1.0, 10);
    import_hyperfine(&lab, "other", &["a"], 1.08, 10);
    lab.weighbridge("compare one other --fail-on unconfirmed").expect_code(2);
    let ran = lab.weighbridge("compare one other --fail-on unconfirmed --direction time=neither --json");
    let check = &ran.expect_code(0).json()["checks"][0];
    assert_eq!((&check["final_verdict"], &check["may_be_worse"]), (&"unconfirmed".into(), &false.into()), "{check}");
}

#[test]
fn an_error_belongs_to_the_part_that_failed() {
    let lab = Lab::new();
    let head = "name = \"fragile\"\nsummary = \"fails in one case\"\nversion = 1\n";
    let param = "[[param]]\nname = \"kind\"\nhelp = \"the case\"\nkind = \"choice\"\nchoices = [\"a\", \"b\", \"c\"]\n\
                 default = \"a\"\naxis = true\n";
    let command = "command = [\"sh\", \"-c\", \"echo figure: 97; test {kind} != c\"]\n";
    lab.define("fragile", &format!("{head}{command}{param}{FIGURE}"));
    let run = "run fragile:kind=[a,b,c] --min-time 1ms --warm-up 0 --samples 6 --retakes 0 -q --into R";
    lab.weighbridge(run).expect_code(3);
    let ran = lab.weighbridge("compare R --by kind --junit j.xml --csv c --markdown m.md").expect_code(2);
    for text in [ran.out.clone(), lab.read("j.xml"), lab.read("c.csv"), lab.read("m.md").replace('\\', "")] {
        assert!(text.contains("`kind=c` failed: "), "{text}");
        assert!(!text.contains("kind=b, kind=c` failed") && !text.contains("`kind=b` failed"), "{text}");
    }
    let reversed = lab.weighbridge("compare R --by kind --reference c").expect_code(3);
    assert!(
        reversed.out.contains("`kind=c` failed: ") && !reversed.out.contains("`kind=a` failed"),
        "{}",
        reversed.out
    );
}

#[test]
fn damaged_journal_is_an_error() {
    let lab = Lab::new();
    for run in ["old", "new"] {
        let ran = lab.weighbridge(&format!("run steady --min-time 1ms --samples 6 --retakes 0 --into {run}"));
        assert!([0, 3].contains(&ran.code), "{}", ran.transcript());
    }
    let journal = lab.read("new/journal.jsonl");
    let damaged: String = journal
        .lines()
        .enumerate()
        .map(|(index, line)| if index == 3 { "{\"time\":\n".to_owned() } else { format!("{line}\n") })
        .collect();
    lab.write("new/journal.jsonl", &damaged);
    for flags in ["", "-q", "--strict"] {
        let ran = lab.weighbridge(&format!("compare old new {flags}")).expect_code(3);
        ran.expect_stderr("error: cannot compare new: new/journal.jsonl:4: ");
    }
}

/// A cell that the last build alone has, and whose attempts all failed.
#[test]
fn a_failed_cell_that_only_the_last_build_has_is_invalid_with_its_cause_in_every_output() {
    let lab = Lab::new();
    lab.define_script("fails", &FAILS.replace("STATUS", &lab.write("status", "7").display().to_string()));
    for (run, tests) in [("old", "steady"), ("new", "steady fails")] {
        lab.weighbridge(&format!("run {tests} --min-time 1ms --samples 6 --retakes 0 -q --into {run}"));
    }
    let ran =
        lab.weighbridge("compare old new --csv out --junit out.xml --markdown out.md --html out.html").expect_code(3);
    let id = "Localhost/fails/0000:-/throughput/figure#mean";
    let (_, after) = ran.out.split_once(&format!("invalid      {id}\n")).unwrap_or_else(|| panic!("{}", ran.out));
    let cause = after.lines().next().unwrap_or_default();
    assert!(cause.contains("`new` failed: ") && cause.contains("exit status 7"), "{}", ran.out);
    let first = ran.out.lines().next().unwrap_or_default();
    assert!(first.contains("1 invalid") && !ran.out.contains("1 missing"), "{}", ran.out);
    let outcome = lab.weighbridge("compare old new --json").json();
    let check = outcome["checks"].as_array().unwrap().iter().find(|check| check["id"] == id).unwrap();
    for field in ["final_verdict", "verdict", "status"] {
        assert_eq!(check[field], "invalid", "{field} {check}");
    }
    for file in ["out.csv", "out.xml", "out.md"] {
        let text = lab.read(file);
        let lines: Vec<&str> = text.lines().filter(|line| line.contains("fails/0000:-/throughput")).collect();
        assert!(!lines.iter().any(|line| line.contains("missing")), "{file} {lines:?}");
        assert!(text.contains("invalid") && text.contains("exit status 7"), "{file} {text}");
    }
}

/// Whether nothing is comparable by what was measured, or because something failed.
#[test]
fn nothing_comparable_exits_with_4_unless_something_failed() {
    let lab = Lab::new();
    let status = lab.write("status", "0").display().to_string();
    lab.define_script("fails", &FAILS.replace("STATUS", &status));
    let run = |tests: &str, into: &str| {
        lab.weighbridge(&format!("run {tests} --min-time 1ms --samples 6 --retakes 0 -q --into {into}"));
    };
    run("steady", "one");
    run("fails", "other");
    lab.write("status", "7");
    run("fails", "failed");
    for (line, code) in [
        ("one other", 4),
        ("one one --select fails", 4),
        ("one failed", 3),
        ("failed one", 3),
        ("failed failed", 3),
        // Attempts that fail significantly more often are worse.
        ("other failed", 2),
        ("other other", 0),
    ] {
        for output in ["", " --json"] {
            let ran = lab.weighbridge(&format!("compare {line}{output}"));
            assert_eq!(ran.code, code, "{line}{output}: {}", ran.transcript());
            let is_error = ran.err.contains("error: ");
            assert_eq!(is_error, code == 4, "{line}{output}: {}", ran.transcript());
        }
    }
}
