//! Tests of a comparison as terminal text, Markdown and JUnit XML.

use serde_json::{Value, json};
use wb_compare::run_perf::tolerance::average::Average;
use wb_compare::run_perf::tolerance::averages::TABLES;
use wb_compare::run_perf::tolerance::{self, compare};
use wb_report::compare::{AveragesTable, Verbosity, junit, markdown, text};
use wb_report::text::Style;
use wb_results::comparison::ComparisonResult;

use crate::comparison::{read, specimen};

const PLAIN: Style = Style { width: 100, colour: false, is_terminal: true };

/// A check of one of our runs: its identifier, its unit, both values, and the decision.
fn check(id: &str, unit: Option<&str>, [before, after]: [f64; 2], decided: &str) -> Value {
    // That of standard deviations is in points, and positive if there is less.
    let score = if id.ends_with("stddev") { before - after } else { (after / before - 1.0) * 100.0 };
    let status = if decided == "improved" { "improved" } else { "regressed" };
    json!({
        "id": id, "statistic": if id.ends_with("stddev") { "stddev" } else { "mean" }, "primary": true,
        "direction": "higher", "value_unit": unit, "before": before, "after": after, "values": [before, after],
        "difference": score, "score": score, "scores": [score], "tolerance": 5.0, "status": status, "statuses": [status],
        "score_parts": [["raw", score, 1.0]], "decided_by": "tolerance", "final_verdict": decided, "differences": []
    })
}

fn outcome(checks: &[Value]) -> ComparisonResult {
    let system = |kernel: &str| {
        let properties = [["processor", "AMD EPYC"], ["kernel", kernel]];
        json!([{ "path": "", "metadata": {}, "environment": {}, "systems": [{ "host": "anvil", "properties": properties }] }])
    };
    let build = |name: &str, kernel: &str| json!({ "name": name, "runs": system(kernel), "errors": [] });
    serde_json::from_value(json!({
        "builds": [build("old", "6.1"), build("new", "6.2")], "method": null, "checks": checks, "groups": [],
        "context": { "metadata": [], "programs": [], "environment": [] }, "regressed_by": ["tolerance"],
        "totals": {
            "better": 1, "minor-gain": 0, "equivalent": 0, "minor-loss": 0, "worse": 1, "differs": 0,
            "inconclusive": 0, "errors": 0, "missing": 0, "invalid": 0, "incomparable": 0, "not-primary": 0,
            "groups-regressed": 0, "groups-improved": 0,
            "standard-deviations": { "compared": 1, "better": 0, "worse": 1, "not-compared": 0 }
        },
        "exit_code": 2
    }))
    .unwrap()
}

fn example() -> ComparisonResult {
    outcome(&[
        check(
            "Localhost/net/0000:to=%2Frun%2Fa/throughput/bits#mean",
            Some("bit/s"),
            [87_806_578_462.0, 95e9],
            "improved",
        ),
        check(
            "Localhost/redis/0000:command=set/throughput/requests#mean",
            Some("requests/s"),
            [1.234e6, 1.1e6],
            "regressed",
        ),
        check("Localhost/redis/0000:command=set/throughput/requests#stddev", Some("%"), [1.5, 9.0], "regressed"),
        check("Tuned/fio/0000:./read-4KiB/throughput/iops_sec.mean", None, [183_743.169, 150_000.0], "regressed"),
    ])
}

#[test]
fn text_has_units_gains_and_unescaped_names() {
    insta::assert_snapshot!(text(&example(), &[], &[], &[], Verbosity::Changes, PLAIN), @"
    `new` is slower in 2 checks, by estimates of 10.9 to 18.4 % (most in fio read-4KiB (iops_sec)), and
    8.2 % faster in net to=/run/a (bits) than `old`; one standard deviation is worse

    old → new; statistics decide from 6 samples or 2 runs a side; tolerances decide on run-perf's
    folders


    improved     Localhost/net/0000:to=/run/a/throughput/bits#mean
                 mean 87.8 Gbit/s → 95 Gbit/s; +8.19 % of ±5 %
    regressed    Localhost/redis/0000:command=set/throughput/requests#mean
                 mean 1.23 M requests/s → 1.10 M requests/s; -10.86 % of ±5 %
    regressed    Localhost/redis/0000:command=set/throughput/requests#stddev
                 stddev 1.50 % → 9 %; 7.50 points more of ±5 points
    regressed    Tuned/fio/0000:./read-4KiB/throughput/iops_sec.mean
                 mean 183743 → 150000; -18.36 % of ±5 %

    totals
      improved             1
      minor-gain           0
      equivalent           0
      minor-loss           0
      regressed            1
      standard deviations  1 of these: 1 regressed
      errors               0
      regression by        tolerance
    ");
}

#[test]
fn complete_output_includes_the_systems_of_both_sides() {
    let text = text(&example(), &[], &[], &[], Verbosity::All, PLAIN);
    assert!(text.contains("\nsystems\n  processor  AMD EPYC\n  kernel     6.1 → 6.2\n"), "{text}");
}

#[test]
fn markdown_has_units() {
    let comment = markdown(&example());
    assert!(
        comment
            .contains("| improved | `Localhost/net/0000:to=/run/a/throughput/bits#mean` | 87.8 Gbit/s | 95 Gbit/s |"),
        "{comment}"
    );
}

/// A group of checks as in a comparison by statistics: not decisive.
fn group(id: &str, notable_members: usize) -> Value {
    json!({ "id": id, "members": 9, "score": 3.0, "improvement": -3.0, "tolerance": 2.5, "status": "regressed", "decides": false,
            "final_verdict": "regressed", "notable_members": notable_members })
}

#[test]
fn many_small_losses_are_a_group_row_in_text_and_markdown_if_no_check_shows_them() {
    let mut outcome = example();
    let groups = [
        group("Localhost/fio/0000:bs=*/throughput/iops#mean", 0),
        group("*/fio/0000:bs=*/throughput/iops#mean", 0),
        group("Localhost/net/0000:to=*/throughput/bits#mean", 1),
    ];
    outcome.groups = serde_json::from_value(json!(groups)).unwrap();
    let text = text(&outcome, &[], &[], &[], Verbosity::Changes, PLAIN);
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("group ")).collect();
    assert_eq!(rows, ["group regressed Localhost/fio/0000:bs=*/throughput/iops#mean"], "the same checks once");
    assert!(text.contains("3.00 % worse on average, tolerance 2.50 %, 9 checks, not decisive"), "{text}");
    let comment = markdown(&outcome);
    let rows: Vec<&str> = comment.lines().filter(|line| line.starts_with("| group ")).collect();
    let id = "`Localhost/fio/0000:bs=*/throughput/iops#mean`";
    let expected = format!(
        "| group regressed | {id} | | | -3.00 % | 3.00 % worse on average, tolerance 2.50 %, 9 checks, not decisive |"
    );
    assert_eq!(rows, [expected]);
}

#[test]
fn markdown_counts_what_the_first_sentence_counts_and_deviations_apart() {
    let comment = markdown(&example());
    assert!(comment.contains("; 3 checks and one standard deviation compared;"), "{comment}");
}

#[test]
fn markdown_has_one_line_for_each_kind_of_finding() {
    let mut outcome = example();
    let findings = ["swapped 5 pages", "swapped 7 pages", "swapped 9 pages"];
    for (check, finding) in outcome.checks.iter_mut().zip(findings) {
        check.findings = [vec!["the device is slow".to_owned()], vec![finding.to_owned()]];
    }
    let comment = markdown(&outcome);
    let lines: Vec<&str> = comment.split("**findings**").nth(1).unwrap().trim().lines().take(2).collect();
    let [net, redis] = ["Localhost/net/0000:to=/run/a", "Localhost/redis/0000:command=set"];
    assert_eq!(
        lines,
        [
            format!("- `old`, {net}, {redis}: the device is slow"),
            format!("- `new`, {net}, {redis}: swapped 5 to 7 pages"),
        ]
    );
}

#[test]
fn findings_are_one_line_for_each_kind_with_the_cells_and_builds_that_have_it() {
    let equal =
        |case: u32| check(&format!("Localhost/a/0000:n={case}/latency/time#mean"), None, [1.0, 1.0], "equivalent");
    let mut outcome = outcome(&[equal(1), equal(2), example_loss()]);
    for (check, finding) in outcome.checks.iter_mut().zip(["swapped 5 pages", "swapped 7 pages", "the disk is full"]) {
        check.findings[1].push(finding.to_owned());
    }
    for (index, check) in outcome.checks.iter_mut().enumerate() {
        check.findings[0].push(format!("waited {index} % of the time"));
        check.findings[1].push(format!("waited {} % of the time", index + 5));
        check.findings[0].push("the cache is small".to_owned());
        check.findings[1].push("the cache is small".to_owned());
    }
    let text = text(&outcome, &[], &[], &[], Verbosity::Changes, PLAIN);
    let findings = text.split("\nfindings\n").nth(1).and_then(|rest| rest.split("\n\n").next());
    assert_eq!(
        findings,
        Some(
            "  `old`, every cell: waited 0 to 2 % of the time\n  `new`, every cell: waited 5 to 7 % of the time\n  `old` and \
             `new`, every cell: the cache is small\n  `new`, Localhost/a/0000:n=1, Localhost/a/0000:n=2: swapped 5 to 7 \
             pages\n  `new`, Localhost/b/0000:-: the disk is full"
        ),
        "{text}"
    );
}

/// A check that is listed.
fn example_loss() -> Value {
    check("Localhost/b/0000:-/throughput/rate#mean", None, [10.0, 5.0], "regressed")
}

#[test]
fn junit_has_a_class_for_each_test() {
    let xml = junit(&example(), wb_compare::comparison::FailOn::default()).unwrap();
    let classes: Vec<&str> =
        xml.lines().filter_map(|line| line.split("classname=\"").nth(1)?.split('"').next()).collect();
    assert_eq!(classes, ["Localhost.net", "Localhost.redis", "Localhost.redis", "Tuned.fio"]);
    assert!(xml.contains("name=\"Localhost/net/0000:to=%2Frun%2Fa/throughput/bits#mean\""), "{xml}");
    assert!(xml.contains("mean 1.23 M requests/s → 1.10 M requests/s"), "{xml}");
}

#[test]
fn junit_has_no_characters_forbidden_in_xml() {
    let mut outcome = example();
    let error = ("Localhost/fio/0000".to_owned(), "\u{1b}[31mno disk\u{0}\u{ffff}".to_owned());
    outcome.builds[1].errors.push(error);
    let xml = junit(&outcome, wb_compare::comparison::FailOn::default()).unwrap();
    assert!(xml.contains("\u{fffd}[31mno disk\u{fffd}\u{fffd}"), "{xml}");
}

/// The titles of the tables of averages over the selected cases of the specimen, and what is below them.
fn averages(is_selected: impl Fn(&str) -> bool, average: Option<Average>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let folders = specimen::write(folder.path());
    for folder in [&folders[0], &folders[2]] {
        let path = folder.join("Localhost/fio/0000/result.json");
        let cases: Vec<Value> = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let selected: Vec<&Value> =
            cases.iter().filter(|case| is_selected(case["iteration_name"].as_str().unwrap())).collect();
        std::fs::write(&path, serde_json::to_string(&selected).unwrap()).unwrap();
        std::fs::remove_dir_all(folder.join("Tuned")).unwrap();
    }
    let builds = read(&[folders[0].clone(), folders[2].clone()]);
    let options = tolerance::Options { average, ..tolerance::Options::default() };
    let compared = compare(&builds, &[], &options);
    let tables: Vec<AveragesTable<'_>> = ["case", "metric", "profile"]
        .into_iter()
        .zip(TABLES.map(|wildcards| compared.averages(1, wildcards)))
        .collect();
    let text = text(&outcome(&[]), &[], &tables, &[], Verbosity::Changes, PLAIN);
    let is_title = |line: &&str| line.starts_with("averages") || line.contains("inverted");
    text.lines().filter(is_title).map(|line| format!("{}\n", line.trim_start())).collect()
}

#[test]
fn tables_of_averages_with_equal_figures_are_merged() {
    assert_eq!(
        averages(|name| name == "read-4KiB", None),
        "averages by case, metric and profile, in percent, positive is better\n"
    );
    // Only the first table distinguishes two cases.
    let several = averages(|name| name == "read-4KiB" || name.starts_with("größe"), None);
    assert_eq!(
        several,
        "averages by case, in percent, positive is better\naverages by metric and profile, in percent, positive is better\n"
    );
}

#[test]
fn geometric_averages_say_that_they_are_of_speed() {
    assert_eq!(
        averages(|name| name == "read-4KiB", Some(Average::Geometric)),
        "averages by case, metric and profile: geometric means of speed in percent\n\
         higher is better: times, and whatever else is better if lower, are inverted\n"
    );
    let mut outcome = example();
    let group = json!({ "id": "Localhost/*", "members": 3, "score": -7.0, "improvement": -7.0, "is_geometric": true,
        "tolerance": 5.0, "status": "regressed", "decides": true, "final_verdict": "regressed", "notable_members": 0 });
    outcome.groups = serde_json::from_value(json!([group])).unwrap();
    for output in [text(&outcome, &[], &[], &[], Verbosity::Changes, PLAIN), markdown(&outcome)] {
        assert!(output.contains("7.00 % worse on average (geometric mean of speed), tolerance 5.00 %"), "{output}");
    }
}
