//! Tests of several primary metrics, and plans that choose the metrics that decide and their thresholds.

use insta::assert_snapshot;

use crate::compare_evidence::words;
use crate::lab::Lab;

const QUICK: &str = "--min-time 1ms --warm-up 0 --seed 1";

/// A test of a rate and a latency, which are both primary.
fn definition(name: &str, command: &str) -> String {
    format!(
        r#"
name = "{name}"
summary = "a rate and a latency"
version = 1
command = {command}

[[metric]]
name = "rate"
class = "throughput"
unit = "1/s"
primary = true
regex = 'rate: (\S+)'

[[metric]]
name = "p99"
class = "latency"
unit = "ms"
primary = true
regex = 'p99: (\S+)'
"#
    )
}

/// A test that counts its executions: a rate around 1000 that is steady, and a latency that is not.
fn pair() -> String {
    definition("pair", r#"["sh", "{definition-folder}/pair.sh"]"#)
}

fn lab() -> Lab {
    let lab = Lab::new();
    lab.define("pair", &pair());
    set_rate(&lab, 1000);
    lab
}

/// Lets the test print rates around this one.
fn set_rate(lab: &Lab, rate: u32) {
    let count = lab.path("count");
    let script = format!(
        "n=$(cat {0} 2>/dev/null || echo 0)\necho $((n + 1)) > {0}\necho rate: $(({rate} + n % 3))\necho p99: $((10 + n * 5 % 7))\n",
        count.display()
    );
    lab.write("config/weighbridge/tests.d/pair.sh", &script);
}

#[test]
fn a_cell_that_converges_in_one_of_two_primary_metrics_names_the_other() {
    let lab = lab();
    let run = lab.weighbridge(&format!("run pair {QUICK} --retakes 0 --max-samples 8 --into R")).expect_code(0);
    let summary = words(&run.out);
    // Of exactly the first eight executions: those that a disturbance repeats would have other values.
    let reached = "not converged: p99 [-20, +28 %] (half its width: 24.0 %)";
    for part in ["p99, lower is better", reached, "required: ±2 % of the median, 6 to 8 samples"] {
        assert!(summary.contains(part), "{part}: {}", run.out);
    }
    let result = lab.read_json("R/Localhost/pair/0000/result.json");
    let outcome = &result["cells"][0]["outcome"];
    assert_eq!(outcome["outcome"], "not-converged");
    assert_eq!(outcome["metrics"][0]["metric"], "latency/p99");
    assert_eq!(outcome["metrics"].as_array().unwrap().len(), 1);
    assert_eq!(outcome["percent"], outcome["metrics"][0]["percent"]);
}

/// A rate that a variant does not change, and a latency that it triples.
const UNEVEN: &str = r#"["sh", "-c", "test \"$LATENCY\" || LATENCY=100; IFS=- read -r n _ </proc/sys/kernel/random/uuid; echo rate: $((1000 + 0x$n % 3)); echo p99: $((LATENCY + 0x$n % 3))"]"#;

#[test]
fn variants_are_compared_in_every_primary_metric() {
    let lab = Lab::new();
    lab.define("uneven", &definition("uneven", UNEVEN));
    let line = format!("ab uneven {QUICK} --into R -- base late:env:LATENCY=300");
    let text = lab.weighbridge(&line).expect_code(2).out;
    for part in ["throughput/rate, higher is", "latency/p99, lower is", "equivalent", "slower", "2 comparisons"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("is judged, not"), "{text}");
    let json = lab.weighbridge(&line.replace("--into", "--json --into")).expect_code(2).json();
    let cases = json["cases"].as_array().unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let compared = cases
        .iter()
        .map(|case| format!("{} {}", text(&case["metric"]["metric"]), text(&case["variants"][1]["result"]["verdict"])));
    assert_eq!(compared.collect::<Vec<_>>(), ["throughput/rate equivalent", "latency/p99 slower"]);
    assert_eq!((&json["family"], &cases[0]["state"]), (&2.into(), &"decided".into()));
    assert_eq!(cases[0]["case"], cases[1]["case"]);
    let page = lab.weighbridge("report R --html page.html");
    page.expect_code(0);
    assert!(lab.read("page.html").contains("p99, lower is better: ratio of each variant"));
}

#[test]
fn a_plan_chooses_the_metrics_that_decide() {
    let lab = lab();
    lab.write("p.toml", "[[test]]\nname = \"pair\"\nmetrics = \"rate\"\nthresholds = { rate = 3 }\n");
    let plan = lab.weighbridge("plan -p p.toml").expect_code(0);
    plan.expect_stdout("decided by\n  pair 0000: throughput/rate; threshold of throughput/rate 3 %");
    lab.weighbridge(&format!("run -p p.toml {QUICK} --into R")).expect_code(0).expect_stdout("measured");
    let result = lab.read_json("R/Localhost/pair/0000/result.json");
    let metrics = result["cells"][0]["metrics"].as_array().unwrap();
    let described = metrics.iter().map(|metric| {
        let (name, primary) = (&metric["metric"]["name"], &metric["metric"]["primary"]);
        format!("{name} {primary} {}", metric["threshold"])
    });
    assert_eq!(described.collect::<Vec<_>>(), ["\"rate\" true 3.0", "\"p99\" false null"]);
}

#[test]
fn a_metric_that_the_test_does_not_have_is_an_error_at_its_place_before_anything_is_measured() {
    let lab = lab();
    lab.write("p.toml", "[[test]]\nname = \"pair\"\nmetrics = [\"rate\", \"latency/p98\"]\nthresholds = { rat = 3 }\n");
    let run = lab.weighbridge("run -p p.toml --into R");
    assert_snapshot!(run.transcript(), @r#"
    exit 1
    error: unknown metric `latency/p98` of test `pair`
       ╭─[p.toml:3:20]
     2 │ name = "pair"
     3 │ metrics = ["rate", "latency/p98"]
       ·                    ──────┬──────
       ·                          ╰── did you mean `latency/p99`?
     4 │ thresholds = { rat = 3 }
       ╰────
    help: expected one of latency/p99, throughput/rate
    error: unknown metric `rat` of test `pair`
       ╭─[p.toml:4:16]
     3 │ metrics = ["rate", "latency/p98"]
     4 │ thresholds = { rat = 3 }
       ·                ─┬─
       ·                 ╰── did you mean `rate`?
       ╰────
    help: expected one of latency/p99, throughput/rate
    "#);
    assert!(!lab.path("R").exists() && !lab.path("count").exists());
    lab.weighbridge("run pair:metrics=p98 --into R")
        .expect_code(1)
        .expect_stderr("unknown metric `p98` of test `pair`")
        .expect_stderr("did you mean `p99`?");
}

#[test]
fn thresholds_of_a_plan_decide_unless_one_is_given() {
    let lab = lab();
    let plan = |thresholds: &str| {
        lab.write("p.toml", &format!("[[test]]\nname = \"pair\"\nmetrics = \"rate\"\n{thresholds}\n"));
    };
    let run = |rate: u32, into: &str| {
        set_rate(&lab, rate);
        lab.weighbridge(&format!("run -p p.toml {QUICK} --into {into}")).expect_code(0);
    };
    plan("thresholds = { rate = 10 }");
    run(1000, "old");
    run(930, "new");
    plan("");
    run(930, "plain");
    plan("thresholds = { rate = 3 }");
    run(930, "strict");
    let compare = |line: &str| lab.weighbridge(&format!("compare {line} --run-noise 0 -v"));
    let equal = compare("old new").expect_code(0);
    assert!(
        words(&equal.out).contains("differences within +5 / -4.76 % do not matter, or within the plan's thresholds"),
        "{}",
        equal.out
    );
    assert!(!equal.err.contains("thresholds"), "{}", equal.err);
    compare("old new --threshold 5").expect_code(2);
    // The reference's apply; of the judged build only where the reference has none.
    let differing = compare("old strict").expect_code(0);
    assert!(
        words(&differing.err).contains("the plans of the runs have different thresholds for 1 metric"),
        "{}",
        differing.err
    );
    assert!(words(&differing.err).contains("compared with 10 %, of `old`"), "{}", differing.err);
    set_rate(&lab, 1000);
    plan("");
    run(1000, "without");
    compare("without plain").expect_code(2);
    let from_judged = compare("without new").expect_code(0);
    assert!(words(&from_judged.err).contains("compared with 10 %, of `new`"), "{}", from_judged.err);
}

#[test]
fn the_judged_build_does_not_choose_what_decides() {
    let lab = lab();
    let run = |metric: &str, rate: u32, into: &str| {
        set_rate(&lab, rate);
        lab.write("p.toml", &format!("[[test]]\nname = \"pair\"\nmetrics = \"{metric}\"\n"));
        lab.weighbridge(&format!("run -p p.toml {QUICK} --max-samples 8 --into {into}")).expect_code(0);
    };
    run("rate", 1000, "old");
    run("p99", 700, "new");
    run("rate", 1000, "same");
    let note = "note: the builds have different primary metrics: 2 metrics of one build only";
    let worse = lab.weighbridge("compare old new --html new.html --no-charts").expect_code(2);
    worse.expect_stdout("in pair (rate) than `old`");
    assert!(words(&worse.err).contains(note), "{}", worse.err);
    assert!(words(&lab.read("new.html")).contains(&note["note: ".len()..]));
    let between = lab.weighbridge("compare old new same").expect_code(0);
    assert!(!between.err.contains("different primary metrics"), "{}", between.err);
    // `--metric` chooses for both, by the name alone if it is unambiguous.
    for metric in ["latency/p99", "p99"] {
        let chosen = lab.weighbridge(&format!("compare old new --metric {metric}")).expect_code(0);
        assert!(!chosen.err.contains("different primary metrics"), "{}", chosen.err);
    }
    let typo = lab.weighbridge("compare old new --metric rat").expect_code(1);
    typo.expect_stderr("unknown metric `rat` in `old`, `new`").expect_stderr("did you mean `rate`?");
}

#[test]
fn a_name_in_several_classes_is_ambiguous() {
    let lab = Lab::new();
    let both = pair().replace("name = \"p99\"", "name = \"rate\"").replace("p99: ", "rate: ");
    lab.define("pair", &both);
    set_rate(&lab, 1000);
    lab.weighbridge(&format!("run pair {QUICK} --retakes 0 --max-samples 8 --into R")).expect_code(0);
    let ran = lab.weighbridge("compare R R --metric rate").expect_code(1);
    ran.expect_stderr("ambiguous metric `rate`").expect_stderr("expected one of latency/rate, throughput/rate");
}

#[test]
fn a_plan_shows_what_decides_beside_the_threshold_of_another_metric() {
    let lab = lab();
    let plan = pair().replacen("primary = true", "", 2).replacen("regex = 'rate", "primary = true\nregex = 'rate", 1);
    lab.define("pair", &plan);
    lab.write("p.toml", "[[test]]\nname = \"pair\"\nthresholds = { p99 = 3 }\n");
    let plan = lab.weighbridge("plan -p p.toml").expect_code(0);
    plan.expect_stdout("decided by\n  pair 0000: throughput/rate; threshold of latency/p99 3 %\n");
    let warning = "warning: the threshold of latency/p99 decides nothing in pair 0000: it is not primary";
    plan.expect_stderr(warning);
    lab.weighbridge(&format!("run -p p.toml {QUICK} --into R")).expect_code_of(&[0, 3]).expect_stderr(warning);
}

#[test]
fn a_system_is_calibrated_in_every_primary_metric() {
    let lab = lab();
    let line = format!("calibrate pair {QUICK} --runs 2 --samples 6 --into R");
    let result = lab.weighbridge(&format!("{line} --json")).expect_code(0).json();
    let cases = result["cases"].as_array().unwrap();
    let metrics: Vec<_> = cases.iter().map(|case| case["metric"]["metric"].as_str().unwrap()).collect();
    assert_eq!(metrics, ["throughput/rate", "latency/p99"]);
    let noise: Vec<f64> =
        cases.iter().map(|case| case["calibration"]["variance_components"]["samples"].as_f64().unwrap()).collect();
    assert!(noise[0] < 0.01 && noise[1] > 0.1, "{noise:?}");
    assert_eq!(result["criterion"]["other_metrics"], serde_json::json!([]));
    let text = lab.weighbridge(&line).expect_code(0);
    for expected in [": throughput/rate, higher is better", ": latency/p99, lower is better"] {
        text.expect_stdout(expected);
    }
}
