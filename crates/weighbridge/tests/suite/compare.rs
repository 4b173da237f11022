//! `compare`, `model`, `analyze`, `nearest` and `strip` from the command line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::compare_evidence::words;
use crate::lab::Lab;

/// Writes a run in run-perf's layout with one case, whose primary metric has these samples.
pub(crate) fn write_build(lab: &Lab, name: &str, samples: &[f64]) {
    let mean = samples.iter().sum::<f64>() / samples.len() as f64;
    let values: Vec<String> = samples.iter().map(|value| format!(r#"{{"value": {value}}}"#)).collect();
    let text = format!(
        r#"[{{"iteration_name": "read-4k", "iteration_data": {{
            "parameters": {{"benchmark": [{{"primary_metric": "iops_sec", "bs": "4k"}}]}}, "latency": {{}},
            "throughput": {{"iops_sec": [{{"client_hostname": "all", "mean": {mean}, "stddevpct": 1.0,
            "samples": [{}]}}]}}}}}}]"#,
        values.join(", ")
    );
    lab.write(&format!("{name}/Localhost/fio/0000/result.json"), &text);
}

/// Ten samples around a level, spread by one percent.
pub(crate) fn samples_around(level: f64) -> Vec<f64> {
    (0..10).map(|n| level * (0.995 + 0.001 * f64::from(n))).collect()
}

#[test]
fn single_runs_differ_as_much_as_runs_are_assumed_to() {
    let lab = Lab::new();
    for (name, level) in [("old", 1000.0), ("slower", 920.0), ("slow", 770.0), ("same", 1003.0)] {
        write_build(&lab, name, &samples_around(level));
    }
    let compare =
        |last: &str, flags: &str| lab.weighbridge(&format!("compare old {last} --method statistical {flags}"));
    let check = "Localhost/fio/0000:./read-4k/throughput/iops_sec.mean";
    compare("slow", "").expect_code(2).expect_stdout(&format!("regressed    {check}"));
    let unconfirmed = compare("slower", "").expect_code(0);
    unconfirmed
        .expect_stdout(&format!("unconfirmed  {check}"))
        .expect_stdout("`slower` may be 8.0 % slower (7.7 to 8.3 % between these runs)");
    let text = words(&unconfirmed.out);
    for part in
        ["assuming that runs of one build differ by 5 %", "`ab` measures both", "3 runs a side would confirm it"]
    {
        assert!(text.contains(part), "{part}: {}", unconfirmed.out);
    }
    compare("slower", "--fail-on unconfirmed").expect_code(2);
    compare("slower", "--run-noise 1").expect_code(2);
    compare("slower", "--run-noise 0").expect_code(2);
    compare("slow", "--run-noise 20").expect_code(0).expect_stdout("unconfirmed");
    let equal = compare("same", "-v").expect_code(0);
    assert!(words(&equal.out).contains("these two runs do not differ by +5 / -4.76 % or more"), "{}", equal.out);
    lab.weighbridge("compare slow old --method statistical").expect_code(0);
    lab.weighbridge("compare slow old --method statistical --fail-on-gain").expect_code(2);
    lab.weighbridge("compare old slow --method tolerance").expect_code(2);
    lab.weighbridge("compare old slow --method tolerance --tolerance 30").expect_code(0);
    lab.weighbridge("compare old slow --method tolerance --direction iops_sec=lower").expect_code(0);
}

#[test]
fn folders_of_run_perf_are_decided_by_tolerances_however_many_samples_they_have() {
    let lab = Lab::new();
    for samples in [1, 5, 6, 10] {
        write_build(&lab, "old", &samples_around(1000.0)[..samples]);
        write_build(&lab, "new", &samples_around(800.0)[..samples]);
        let ran = lab.weighbridge("compare old new").expect_code(2);
        ran.expect_stdout("regressed    Localhost/fio/0000:./read-4k/throughput/iops_sec.mean");
    }
}

#[test]
fn several_runs_per_side_can_regress() {
    let lab = Lab::new();
    for (name, level) in [("a1", 1000.0), ("a2", 1010.0), ("a3", 990.0), ("a4", 1005.0), ("a5", 995.0)] {
        write_build(&lab, name, &samples_around(level));
        write_build(&lab, &name.replace('a', "b"), &samples_around(level * 0.8));
    }
    let outcome = lab
        .weighbridge("compare old=a1,a2,a3,a4,a5 new=b1,b2,b3,b4,b5 --method statistical --json")
        .expect_code(2)
        .json();
    let check = &outcome["checks"][0];
    assert_eq!((check["verdict"].as_str(), &check["runs"]), (Some("regressed"), &serde_json::json!([5, 5])));
    let ratio = check["ratio"].as_f64().unwrap();
    assert!((ratio - 0.8).abs() < 0.01, "{ratio}");
    assert!(check["interval"]["high"].as_f64().unwrap() < 0.85);
    assert_eq!(outcome["totals"]["worse"], 1);
}

#[test]
fn missing_malformed_and_incomparable_results_are_distinguished() {
    let lab = Lab::new();
    write_build(&lab, "old", &samples_around(1000.0));
    write_build(&lab, "new", &samples_around(1000.0));
    lab.write("new/Localhost/uperf/0000/result.json", "{ not json");
    let ran = lab.weighbridge("compare old new").expect_code(0);
    ran.expect_stderr("new/Localhost/uperf/0000/result.json: is malformed: ").expect_stderr("; it is left out");
    lab.weighbridge("compare old new --strict").expect_code(1);
    write_build(&lab, "more", &samples_around(1000.0));
    std::fs::rename(lab.path("more/Localhost/fio"), lab.path("more/Localhost/fio2")).unwrap();
    lab.weighbridge("compare old more")
        .expect_code(4)
        .expect_stderr(
            "1 cell in the reference alone: `Localhost/fio/0000:read-4k`; 1 cell in the judged build alone: ",
        )
        .expect_stderr("--map pairs profiles");
    std::fs::create_dir_all(lab.path("more/Localhost/fio")).unwrap();
    std::fs::rename(lab.path("new/Localhost/fio/0000"), lab.path("more/Localhost/fio/0000")).unwrap();
    lab.weighbridge("compare more old").expect_code(3);
    let stripped = lab.weighbridge("strip new stripped");
    let malformed = |text: &str| text.lines().find(|line| line.contains("malformed")).map(str::to_owned);
    assert_eq!(malformed(&stripped.err), malformed(&ran.err), "same message");
    lab.weighbridge("compare old nowhere").expect_code(1).expect_stderr("nowhere");
}

#[test]
fn own_runs_are_compared_if_their_definitions_match() {
    let lab = Lab::new();
    for (run, test) in [("R1", "steady:kind=[a,b]"), ("R2", "steady:kind=[a,b]")] {
        let ran = lab.weighbridge(&format!("run {test} --min-time 1ms --samples 6 --retakes 0 -q --into {run}"));
        assert!([0, 3].contains(&ran.code), "{}", ran.transcript());
    }
    let ran = lab.weighbridge("compare R1 R2 --json --html page.html --svg plots").expect_code(0);
    let plot = lab.read("plots/Localhost-steady-0000-throughput-figure.svg");
    assert!(plot.contains(">/s</text>"), "the unit declared by the test: {plot}");
    let outcome = ran.json();
    let ids: Vec<_> = outcome["checks"].as_array().unwrap().iter().map(|check| check["id"].as_str().unwrap()).collect();
    assert!(ids.contains(&"Localhost/steady/0000:kind=a/throughput/figure#mean"), "{ids:?}");
    assert_eq!(
        (&outcome["totals"]["equivalent"], &outcome["exit_code"]),
        (&2.into(), &0.into()),
        "means alone: {}",
        ran.out
    );
    let definition = lab.read("config/weighbridge/tests.d/steady.toml");
    lab.define("steady", &definition.replace("version = 1", "version = 2"));
    let again = lab.weighbridge("run steady:kind=[a,b] --min-time 1ms --samples 6 --retakes 0 -q --into R3");
    assert!([0, 3].contains(&again.code), "{}", again.transcript());
    lab.weighbridge("compare R1 R3")
        .expect_code(4)
        .expect_stdout("different definitions: definition key")
        .expect_stderr(
            "2 cells with different definitions: `Localhost/steady/0000:kind=a` (another version of the test), `",
        )
        .expect_stderr("the test itself differs: measure both sides with one version of it\n");
}

#[test]
fn unknown_name_is_an_error_that_lists_the_known_names() {
    let lab = Lab::new();
    write_build(&lab, "old", &samples_around(1000.0));
    write_build(&lab, "new", &samples_around(1000.0));
    lab.write("empty.json", r#"{"__metadata__": {"version": 2, "tolerance": 4}}"#);
    lab.write("other.json", r#"{"Localhost/fio/0000:./write-4k/throughput/iops_sec.mean": [1, 0]}"#);
    for (flags, error, help) in [
        ("--direction iops_sek=lower", "unknown metric `iops_sek` in `old`, `new`", "did you mean `iops_sec`?"),
        (
            "--direction latency/iops_sec=lower",
            "unknown metric `latency/iops_sec`",
            "expected one of throughput/iops_sec",
        ),
        ("--map Locahost=Localhost", "unknown profile `Locahost` in `old`", "did you mean `Localhost`?"),
        ("--map Localhost=Tuned", "unknown profile `Tuned` in `new`", "expected one of Localhost"),
        ("-m empty.json", "invalid model empty.json: the model has no checks", ""),
        (
            "-m other.json",
            "model other.json does not match any check of these builds",
            "the model has `Localhost/fio/0000:./write-4k/",
        ),
    ] {
        let ran = lab.weighbridge(&format!("compare old new {flags}"));
        assert_eq!(ran.code, 1, "{flags}: {}", ran.transcript());
        assert!(ran.err.contains(error) && ran.err.contains(help), "{flags}: {}", ran.err);
    }
    lab.weighbridge("compare old new --direction throughput/iops_sec=lower").expect_code(0);
}

#[test]
fn comparison_is_written_as_csv_junit_and_markdown() {
    let lab = Lab::new();
    write_build(&lab, "old", &samples_around(1000.0));
    write_build(&lab, "new", &samples_around(700.0));
    lab.weighbridge("compare old new --method statistical --csv out --junit out.xml --markdown out.md").expect_code(2);
    let csv = lab.read("out.csv");
    let line = csv.lines().find(|line| line.contains(",throughput/iops_sec,,,mean,")).unwrap();
    assert!(line.starts_with("Localhost/fio/0000:./read-4k,Localhost,fio,0000,"), "{line}");
    assert!(
        line.contains(",4k,iops_sec,throughput/iops_sec,,,mean,true,higher,999.5,699.6")
            && line.ends_with(",statistical,regressed,"),
        "{line}"
    );
    assert!(lab.read("out-groups.csv").lines().count() >= 2);
    let aspects = table(&lab, "out-aspects.csv");
    let names: Vec<&str> = aspects.iter().map(|row| row["aspect"].as_str()).collect();
    assert_eq!(names, ["shift", "mean"]);
    for row in aspects {
        let number = |column: &str| row[column].parse::<f64>().unwrap();
        assert!(
            (number("estimate") - 0.7).abs() < 0.01 && number("high") < 0.8 && row["quantity"] == "ratio",
            "{row:?}"
        );
        assert!(number("p_samples") <= number("adjusted_p_samples") && number("adjusted_p_runs") < 0.05, "{row:?}");
        assert_eq!((row["certainty"].as_str(), row["verdict_alone"].as_str()), ("runs", "regressed"));
    }
    let xml = lab.read("out.xml");
    assert!(xml.contains(r#"tests="2" failures="1" errors="0" skipped="0""#), "{xml}");
    let comment = lab.read("out.md");
    assert!(
        comment.starts_with("### `old` → `new`\n\n`new` is 30.0 % slower")
            && comment.contains("**1 regressed**")
            && comment.contains("| regressed | `Localhost/fio/"),
        "{comment}"
    );
    assert_eq!((comment.matches("-30.00 %").count(), comment.matches("999.5").count()), (1, 1), "{comment}");
}

/// The rows of a table as its columns by name.
pub(crate) fn table(lab: &Lab, file: &str) -> Vec<BTreeMap<String, String>> {
    let text = lab.read(file);
    let mut lines = text.lines().map(|line| line.split(','));
    let names: Vec<String> = lines.next().unwrap().map(str::to_owned).collect();
    let rows: Vec<Vec<String>> = lines.map(|line| line.map(str::to_owned).collect()).collect();
    assert!(rows.iter().all(|row| row.len() == names.len()), "{text}");
    rows.into_iter().map(|row| names.iter().cloned().zip(row).collect()).collect()
}

#[test]
fn tables_of_a_comparison_are_tidy_and_their_units_those_of_the_terminal() {
    let lab = Lab::new();
    measure(&lab, "old", 234_000);
    measure(&lab, "new", 2_345_000);
    lab.weighbridge("compare old new --csv out.csv")
        .expect_code(0)
        .expect_stderr("figures: out.csv, out-aspects.csv, out-samples.csv and out-groups.csv");
    let checks = table(&lab, "out.csv");
    let mean = checks.iter().find(|row| row["statistic"] == "mean" && row["primary"] == "true").unwrap();
    let columns = ["cell", "profile", "test", "serial", "socket", "metric", "unit", "worker", "before", "after"];
    let cell = "Localhost/requests/0000:socket=%2Frun%2Fa";
    let metric = "throughput/requests";
    let expected = [cell, "Localhost", "requests", "0000", "/run/a", metric, "M requests/s", "", "0.234", "2.345"];
    assert_eq!(columns.map(|column| mean[column].as_str()), expected);
    assert_eq!((mean["n_before"].as_str(), mean["final_verdict"].as_str()), ("6", "improved"));
    assert!(mean["runs_low"].parse::<f64>().unwrap() > 1.05 && mean["p_value"].parse::<f64>().unwrap() < 0.05);
    let outcome = lab.weighbridge("compare old new --threshold 50 --json --csv wide.csv").json();
    let negligible = &outcome["checks"].as_array().unwrap().iter().find(|check| !check["negligible"].is_null());
    assert_eq!(negligible.unwrap()["negligible"], serde_json::json!({ "low": 1.0 / 1.5, "high": 1.5 }), "both ends");
    let aspects = table(&lab, "wide-aspects.csv");
    assert!(!aspects.is_empty());
    for row in table(&lab, "wide.csv").iter().filter(|row| row["statistic"] == "mean").chain(&aspects) {
        let ends = ["negligible_low", "negligible_high"].map(|end| row[end].parse::<f64>().unwrap());
        assert_eq!(ends, [1.0 / 1.5, 1.5]);
    }
    let stddev = checks.iter().find(|row| row["statistic"] == "stddev" && row["metric"] == metric).unwrap();
    assert_eq!(stddev["unit"], "%");
    let samples = table(&lab, "out-samples.csv");
    let of = |side| samples.iter().filter(move |row| row["side"] == side && row["metric"] == metric);
    let figures = |side| of(side).map(|row| (row["build"].clone(), row["value"].clone())).collect::<Vec<_>>();
    let six = |build: &str, value: &str| vec![(build.to_owned(), value.to_owned()); 6];
    assert_eq!([figures("before"), figures("after")], [six("old", "0.234"), six("new", "2.345")]);
    assert!(of("after").all(|row| row["unit"] == "M requests/s" && row["socket"] == "/run/a"));
}

/// Measures a test whose figure is read from a file, with a case name that identifiers escape.
fn measure(lab: &Lab, run: &str, level: u32) {
    let file = lab.write("level", &level.to_string());
    let test = format!(
        r#"
name = "requests"
summary = "a figure read from a file"
version = 1
command = ["sh", "-c", "echo figure: $(cat {})"]

[[param]]
name = "socket"
help = "where the server listens"
kind = "text"
default = "/run/a"
axis = true

[[metric]]
name = "requests"
class = "throughput"
unit = "requests/s"
primary = true
regex = 'figure: (\S+)'
"#,
        file.display()
    );
    lab.define("requests", &test);
    let line = format!("run requests --min-time 1ms --samples 6 --retakes 0 --precision 100 --into {run}");
    lab.weighbridge(&line).expect_code(0);
}

#[test]
fn own_runs_are_compared_with_units_and_systems() {
    let lab = Lab::new();
    measure(&lab, "old", 1_234_000);
    measure(&lab, "new", 2_345_000);
    let ran = lab.weighbridge("compare old new -v --method tolerance --html page.html --junit out.xml").expect_code(0);
    let gain = "improved     Localhost/requests/0000:socket=/run/a/throughput/requests#mean\n";
    ran.expect_stdout(gain).expect_stdout("mean 1.23 M requests/s → 2.35 M requests/s; +90.03 %");
    assert_eq!(ran.out.matches("averages by case, metric and profile").count(), 1, "{}", ran.out);
    ran.expect_stdout("\nsystems\n").expect_stdout("\n  kernel ");
    let brief = lab.weighbridge("compare old new --method tolerance").out;
    assert!(brief.contains(gain) && !brief.contains("\nsystems\n"), "{brief}");
    let page = lab.read("page.html");
    assert!(page.contains("<bdi>socket=&#x2f;run&#x2f;a</bdi>") && page.contains("class=\"systems\""), "{page}");
    assert!(page.contains(">Tests</a>") && page.contains("&quot;socket&quot;: &quot;&#x2f;run&#x2f;a&quot;"), "{page}");
    let xml = lab.read("out.xml");
    let name = "Localhost/requests/0000:socket=%2Frun%2Fa/throughput/requests#mean";
    assert!(xml.contains(&format!("<testcase classname=\"Localhost.requests\" name=\"{name}\">")), "{xml}");
    let check = &lab.weighbridge("compare old new --json").json()["checks"][0];
    assert_eq!((check["id"].as_str(), check["value_unit"].as_str()), (Some(name), Some("requests/s")));
}

#[test]
fn comparison_is_written_as_page_and_plots() {
    let lab = Lab::new();
    for (name, level) in [("old", 1000.0), ("between", 990.0), ("new", 700.0)] {
        write_build(&lab, name, &samples_around(level));
    }
    lab.write("new/Localhost/uperf/0000/result.json", "{ not json");
    let ran = lab.weighbridge("compare old between new --run-noise 0 --html page.html --svg plots --png plots");
    assert_eq!(ran.code, 2, "{}", ran.transcript());
    let page = lab.read("page.html");
    for part in ["<h1>old → new</h1>", "<figure>", "✕</abbr> −30.00", ">between<small>", "is malformed: "] {
        assert!(page.contains(part), "{part}");
    }
    for extension in ["svg", "png"] {
        let plot = lab.path(&format!("plots/Localhost-fio-0000-throughput-iops_sec.{extension}"));
        assert!(plot.metadata().is_ok_and(|plot| plot.len() > 1000), "{}", plot.display());
    }
    lab.weighbridge("compare old new --run-noise 0 --html bare.html --no-charts").expect_code(2);
    assert!(!lab.read("bare.html").contains("<figure>"));
    lab.weighbridge("compare old new --no-charts").expect_code(1);
}

#[test]
fn models_are_fitted_shown_and_applied() {
    let lab = Lab::new();
    for (name, level) in [("b1", 1000.0), ("b2", 1040.0), ("b3", 960.0)] {
        write_build(&lab, name, &samples_around(level));
    }
    write_build(&lab, "new", &samples_around(930.0));
    lab.weighbridge("model fit --linear -o m.json b1 b2 b3").expect_code(0);
    lab.weighbridge("model show m.json").expect_stdout("throughput/iops_sec.mean");
    lab.weighbridge("compare b1 new --method tolerance -m m.json -v").expect_stdout("model 0");
    lab.weighbridge("model rebase --linear -o m2.json m.json new").expect_code(0);
    let table = lab.weighbridge("analyze b1 b2 new");
    assert!(table.out.starts_with("check,b1,b2,new\n"), "{}", table.out);
    let nearest = lab.weighbridge("nearest new b1 b3 --exit-index");
    assert_eq!((nearest.code, nearest.out.as_str()), (1, "1\n"), "{}", nearest.transcript());
    let of_groups = lab.weighbridge("nearest new -g b1 b2 -g b3 b3");
    assert_eq!(of_groups.out, "1\n", "{}", of_groups.transcript());
}

#[test]
fn single_runs_are_judged_with_a_noise_model() {
    let lab = Lab::new();
    for (number, level) in [1000.0, 1020.0, 980.0, 1010.0, 1030.0, 990.0, 970.0, 1005.0].into_iter().enumerate() {
        write_build(&lab, &format!("r{number}"), &samples_around(level));
    }
    write_build(&lab, "old", &samples_around(1000.0));
    write_build(&lab, "new", &samples_around(700.0));
    write_build(&lab, "near", &samples_around(1060.0));
    let fitted = lab.weighbridge("model fit --noise -o noise.json r0 r1 r2 r3 r4 r5 r6 r7").expect_code(0);
    fitted.expect_stderr("all count as runs of one build");
    lab.weighbridge("model show noise.json").expect_stdout("1 check, 1 of them usable; learnt from 8 runs");
    let worse = lab.weighbridge("compare old new -m noise.json").expect_code(2);
    worse.expect_stdout("spread between runs 2.01 % (learnt from 8)");
    let near = lab.weighbridge("compare old near -m noise.json --json").expect_code(0);
    let outcome = near.json();
    assert_eq!(outcome["checks"][0]["verdict"], "unconfirmed", "exceeds the noise of samples, but not that of runs");
    assert_eq!(outcome["checks"][0]["noise"]["state"], "applied");
    let of_model = lab.weighbridge("compare old near -m noise.json --threshold model --json").json();
    assert!(of_model["checks"][0]["threshold"].as_f64().unwrap() > 8.0, "{of_model}");
    lab.weighbridge("compare old near --threshold model").expect_code(1);
    for (number, level) in [1000.0, 1300.0, 1002.0, 1304.0, 998.0, 1296.0, 1001.0, 1301.0].into_iter().enumerate() {
        write_build(&lab, &format!("m{number}"), &samples_around(level));
    }
    lab.weighbridge("model fit --noise -o modes.json m0 m1 m2 m3 m4 m5 m6 m7").expect_code(0);
    lab.weighbridge("model show modes.json").expect_stdout("two modes of runs, 30.0 % apart");
    let modes = lab.weighbridge("compare m0 m1 -m modes.json --threshold model").expect_code(0);
    let words = modes.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("unconfirmed") && words.contains("in two modes 30.0 % apart"), "{}", modes.out);
    let thin = lab.weighbridge("model fit --noise -o thin.json r0,r1,r2").expect_code(3);
    thin.expect_stderr("3 runs: at least 6 are required");
    let unsure = lab.weighbridge("compare old near -m thin.json --method statistical").expect_code(0);
    let words = unsure.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("not known well enough: 3 runs: at least 6 are required"), "{}", unsure.out);
    let moved = lab.weighbridge("model rebase --linear -o m.json noise.json new").expect_code(1);
    moved.expect_stderr("a noise model has no level");
    lab.weighbridge("model fit --noise -t 3 -o m.json r0,r1").expect_code(1);
}

/// run-perf's builds, if they are available beside the repository.
fn shared() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/run-perf/1_base");
    if folder.is_dir() {
        return Some(folder.canonicalize().unwrap());
    }
    wb_test_skip::skip!("run-perf's builds are not beside the repository (../shared/data/run-perf)");
    None
}

#[test]
fn run_perf_builds_are_compared_and_stripped() {
    let Some(folder) = shared() else { return };
    let lab = Lab::new();
    let build = |name: &str| folder.join(format!("result_20200726_{name}")).display().to_string();
    let (one, other) = (build("091827"), build("092842"));
    let outcome = lab.weighbridge(&format!("compare {one} {other} --json")).expect_code(0).json();
    let first = &outcome["checks"][0];
    assert_eq!(first["id"], "Localhost/fio/0000:./read-4KiB/throughput/iops_sec.mean");
    assert!((first["score"].as_f64().unwrap() + 4.42).abs() < 0.005, "{first}");
    lab.weighbridge(&format!("strip {other} S")).expect_code(0);
    let again = lab.weighbridge(&format!("compare {one} S --json")).json();
    assert_eq!(again["checks"], outcome["checks"]);
}

#[test]
fn values_in_different_units_are_not_compared() {
    let lab = Lab::new();
    for (run, unit) in [("R", "ms"), ("S", "s")] {
        let definition = format!(
            "name = \"timed\"\nsummary = \"a figure\"\nversion = 1\ncommand = [\"echo\", \"100\"]\n\
             [[metric]]\nname = \"t\"\nclass = \"latency\"\nunit = \"{unit}\"\nprimary = true\n\
             regex = '(\\d+)'\n"
        );
        lab.define("timed", &definition);
        lab.weighbridge(&format!("run timed --samples 6 --warm-up 0 -q --into {run}")).expect_code_of(&[0, 3]);
    }
    let compared = lab.weighbridge("compare R S --run-noise 0 --json");
    let compared: serde_json::Value = serde_json::from_str(&compared.out).unwrap();
    let checks = compared["checks"].as_array().unwrap();
    assert!(checks.iter().all(|check| check["final_verdict"] == "incomparable"), "{checks:#?}");
    lab.weighbridge("compare R S --csv out").expect_stdout("metric unit ms → s");
    let checks = table(&lab, "out.csv");
    let mean = checks.iter().find(|row| row["statistic"] == "mean" && row["metric"] == "latency/t").unwrap();
    assert_eq!(["unit", "before", "after"].map(|column| mean[column].as_str()), ["s", "0.1", "100"]);
    let samples = table(&lab, "out-samples.csv");
    let of_metric = samples.iter().filter(|row| row["metric"] == "latency/t");
    let figures: BTreeSet<[&str; 3]> =
        of_metric.map(|row| ["side", "value", "unit"].map(|column| row[column].as_str())).collect();
    assert_eq!(figures, BTreeSet::from([["before", "0.1", "s"], ["after", "100", "s"]]));
}

/// A test with two figures, of which it declares the first as primary.
fn measure_two(lab: &Lab, run: &str, rate: u32, delay: u32) {
    let script = lab.write("figures.sh", &format!("echo rate: {rate}\necho delay: {delay}\n"));
    let metric = |name: &str, class: &str, unit: &str, primary: bool| {
        format!(
            "[[metric]]\nname = \"{name}\"\nclass = \"{class}\"\nunit = \"{unit}\"\nprimary = {primary}\n\
             regex = '{name}: (\\d+)'\n"
        )
    };
    let metrics = metric("rate", "throughput", "op/s", true) + &metric("delay", "latency", "ms", false);
    let head = "name = \"two\"\nsummary = \"two figures\"\nversion = 1\n";
    lab.define("two", &format!("{head}command = [\"sh\", \"{}\"]\n{metrics}", script.display()));
    lab.weighbridge(&format!("run two --samples 6 --warm-up 0 --retakes 0 -q --into {run}")).expect_code_of(&[0, 3]);
}

#[test]
fn another_metric_can_decide() {
    let lab = Lab::new();
    measure_two(&lab, "old", 1000, 10);
    measure_two(&lab, "new", 1000, 30);
    lab.weighbridge("compare old new").expect_code(0);
    lab.weighbridge("compare old new --metric latency/delay").expect_code(2).expect_stdout("slower");
    lab.weighbridge("compare old new --metric latency/delay --metric throughput/rate").expect_code(2);
    lab.weighbridge("compare old new --metric latency/dely")
        .expect_code(1)
        .expect_stderr("latency/dely")
        .expect_stderr("latency/delay");
}

#[test]
fn a_test_that_fails_more_often_is_a_regression() {
    let lab = Lab::new();
    let script = "n={definition-folder}/n; echo x >> $n; every=$(cat {definition-folder}/every); \
                  [ $(($(wc -l < $n) % every)) != 0 ] || exit 7; echo figure: 100";
    lab.define_script("shaky", script);
    let run = |name: &str, every: &str| {
        lab.write("config/weighbridge/tests.d/every", every);
        let line = format!("run shaky --samples 30 --warm-up 0 --min-time 1ms --retakes 0 -q --into {name}");
        lab.weighbridge(&line).expect_code_of(&[0, 3]);
    };
    run("old", "1000");
    run("new", "3");
    run("none", "1");
    // Already in its warm-ups, of which there are none otherwise.
    lab.weighbridge("run shaky --samples 30 --min-time 1ms --retakes 0 -q --into cold").expect_code(3);
    for (failing, rate) in [("none", "3 of 3"), ("cold", "3 of 3")] {
        let ran = lab.weighbridge(&format!("compare old {failing}")).expect_code(2);
        let expected = format!("`{failing}` is failing more often ({rate} attempts instead of 0 of 30)");
        assert!(words(&ran.out).starts_with(&expected), "{}", ran.out);
        lab.weighbridge(&format!("compare {failing} old")).expect_code(3);
    }
    let ran = lab.weighbridge("compare old new --html page.html").expect_code(2);
    let page = lab.read("page.html");
    assert!(page.contains("✕ 0 of 30 → "), "the chart has the failures, and no difference of values");
    let text = words(&ran.out);
    assert!(
        text.contains("`new` is failing more often (") && text.contains("instead of 0 of 30) in shaky"),
        "{}",
        ran.out
    );
    assert!(text.contains("failed attempts: 0 of 30 and "), "{}", ran.out);
    assert!(text.contains("findings `old` and `new`, "), "its figure is constant: {}", ran.out);
    lab.weighbridge("compare old old").expect_code(0);
}
