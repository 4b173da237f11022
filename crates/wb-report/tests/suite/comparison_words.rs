//! Tests of the words for what statistics decide, and for what they do not.

use serde_json::{Value, json};
use wb_compare::comparison::{FailOn, Strictness};
use wb_compare::run_perf::tolerance::average::Average;
use wb_compare::run_perf::tolerance::averages::{Distribution, SummaryRow};
use wb_compare::run_perf::tolerance::pattern::{CheckPattern, Wildcards};
use wb_compare::statistical::Verdict;
use wb_report::compare::{Verbosity, headline, junit, markdown, text};
use wb_report::text::Style;
use wb_results::comparison::{CheckId, ComparisonResult, FinalVerdict, Status};

/// A primary check that statistics decide, with the ratio of its shift.
fn check(case: &str, ratio: f64, decided: &str) -> Value {
    let score = (ratio - 1.0) * 100.0;
    json!({
        "id": format!("Localhost/a/0000:n={case}/latency/time#mean"), "statistic": "mean", "primary": true,
        "direction": "lower", "value_unit": null, "before": 100.0, "after": 100.5, "values": [100.0, 100.5],
        "difference": 0.5, "score": 0.5, "scores": [0.5], "tolerance": 5.0, "status": "equivalent", "statuses": ["equivalent"],
        "score_parts": [["raw", score, 1.0]], "decided_by": "statistical", "final_verdict": decided, "differences": [],
        "verdict": "inconclusive", "aspect": "shift", "ratio": ratio, "interval": null, "p_value": 0.5,
        "samples": [9, 9], "runs": [1, 1], "paired": false, "disturbed": [null, null], "threshold": 5.0, "noise": null,
        "required_samples": null
    })
}

/// The same with other properties.
fn with(mut check: Value, properties: Value) -> Value {
    check.as_object_mut().unwrap().extend(properties.as_object().unwrap().clone());
    check
}

fn outcome(checks: &[Value]) -> ComparisonResult {
    let build = |name: &str| json!({ "name": name, "runs": [], "errors": [] });
    let mut outcome: ComparisonResult = serde_json::from_value(json!({
        "builds": [build("a"), build("b")], "method": null, "checks": checks, "groups": [],
        "context": { "metadata": [], "programs": [], "environment": [] }, "regressed_by": [],
        "totals": {
            "better": 0, "minor-gain": 0, "equivalent": 0, "minor-loss": 0, "worse": 0, "differs": 0,
            "inconclusive": 0, "errors": 0, "missing": 0, "invalid": 0, "incomparable": 0, "not-primary": 0,
            "groups-regressed": 0, "groups-improved": 0
        },
        "exit_code": 0
    }))
    .unwrap();
    outcome.totals.equivalent = checks.len();
    outcome
}

#[test]
fn a_sentence_about_several_metrics_has_a_range_for_each_kind() {
    let throughput = |case: u32, ratio: f64| {
        let id = format!("Localhost/a/0000:n={case}/throughput/rate#mean");
        with(check("", ratio, "regressed"), json!({ "id": id, "direction": "higher" }))
    };
    let checks = [throughput(1, 0.9), check("1", 1.4, "regressed"), throughput(2, 0.7), check("2", 1.2, "regressed")];
    assert_eq!(
        headline(&outcome(&checks)),
        "`b` is slower in 4 checks, by estimates of 10.0 to 30.0 % of throughput and 20.0 to 40.0 % of latency (most in a \
         n=2 (rate)) than `a`"
    );
    let one_kind = [check("1", 1.4, "regressed"), check("2", 1.2, "regressed")];
    assert!(headline(&outcome(&one_kind)).contains("by estimates of 20.0 to 40.0 % (most in a n=1 (time))"));
}

/// Parts of one run: `factor=2` and so on against `factor=1`, one check each.
fn parts(verdicts: &[(f64, &str)]) -> ComparisonResult {
    let name = |index: usize| format!("factor={}", index + 2);
    let part = |(index, (ratio, decided)): (usize, &(f64, &str))| {
        with(check(&index.to_string(), *ratio, decided), json!({ "sides": ["factor=1", name(index)] }))
    };
    let checks: Vec<Value> = verdicts.iter().enumerate().map(part).collect();
    let mut outcome = outcome(&checks);
    let judged: Vec<String> = (0..verdicts.len()).map(name).collect();
    let within_run = json!({ "run": "R", "by": "factor", "reference": "factor=1", "judged": judged, "unmatched": [] });
    outcome.within_run = serde_json::from_value(within_run).unwrap();
    outcome
}

#[test]
fn worse_parts_come_first_and_harmless_ones_are_counted() {
    let nothing = (1.0, "inconclusive");
    let sentence =
        headline(&parts(&[nothing, (1.0, "equivalent"), nothing, (0.8, "improved"), nothing, (1.3, "regressed")]));
    insta::assert_snapshot!(sentence, @"within one run, `factor=7` is 30.0 % slower in a n=5 (time) than `factor=1`. `factor=5` is 20.0 % faster in a n=3 (time) than `factor=1`. The other 4 parts: 4 checks, 1 equivalent, 3 inconclusive");
}

#[test]
fn parts_without_a_difference_are_counted_together() {
    let sentence = headline(&parts(&[(1.0, "equivalent"); 6]));
    assert_eq!(sentence, "within one run, the 6 parts beside the reference: 6 checks, 6 equivalent");
}

#[test]
fn of_many_worse_parts_the_worst_are_described() {
    let sentence = headline(&parts(&[1.1, 1.2, 1.3, 1.4, 1.5, 1.6].map(|ratio| (ratio, "regressed"))));
    assert!(sentence.starts_with("within one run, `factor=4` is 30.0 % slower"), "{sentence}");
    assert!(sentence.ends_with("`factor=1`. The other 2 parts: 2 checks, 2 worse"), "{sentence}");
}

#[test]
fn an_error_or_a_finding_of_a_part_names_it_and_no_other() {
    let mut outcome = parts(&[(1.0, "equivalent"), (1.0, "equivalent"), (1.0, "equivalent")]);
    outcome.builds[1].name = "factor=2, factor=3, factor=4".to_owned();
    outcome.builds[1].errors = vec![("Localhost/a/0000:n=1".to_owned(), "crashed".to_owned())];
    outcome.totals.errors = 1;
    outcome.checks[2].findings = [Vec::new(), vec!["the samples are short".to_owned()]];
    let sentence = headline(&outcome);
    assert!(sentence.ends_with("; one test ended in an error (a n=1 of `factor=3`)"), "{sentence}");
    let shown = text(&outcome, &[], &[], &[], Verbosity::Changes, WIDE);
    assert!(shown.contains("`factor=4`, Localhost/a/0000:n=2: the samples are short"), "{shown}");
    let comment = markdown(&outcome);
    for shown in [shown, comment] {
        assert!(
            !shown.contains("of `factor=2, factor=3") && !shown.contains("`factor=2, factor=3, factor=4`,"),
            "{shown}"
        );
    }
}

#[test]
fn a_group_that_is_worse_and_does_not_decide_is_in_the_sentence_with_its_noise() {
    for (without_run_noise, noise) in [(false, "with the noise between runs"), (true, "without noise between runs")] {
        let mut outcome = outcome(&[check("1", 1.0, "equivalent")]);
        let group = |id: &str, score: f64| {
            json!({ "id": id, "members": 9, "score": score, "improvement": -score, "tolerance": 2.5, "status": "regressed",
                    "decides": false, "final_verdict": "regressed", "without_run_noise": without_run_noise,
                    "interval": { "low": 0.94, "high": 0.98, "confidence": 0.95 } })
        };
        outcome.groups = serde_json::from_value(json!([group("Localhost/a/0000:n=*/latency/time#mean", 3.0)])).unwrap();
        let sentence = headline(&outcome);
        assert!(sentence.ends_with("; one group of checks is worse on average, which does not decide"), "{sentence}");
        let shown = text(&outcome, &[], &[], &[], Verbosity::Changes, WIDE);
        assert!(shown.contains(noise), "{shown}");
    }
}

#[test]
fn every_junit_text_of_a_check_or_a_group_begins_with_its_verdict() {
    for status in ["improved", "minor-gain", "equivalent", "minor-loss", "regressed"] {
        let by_tolerance = json!({ "decided_by": "tolerance", "status": status, "final_verdict": status });
        let mut outcome = outcome(&[with(check("1", 1.0, status), by_tolerance)]);
        let group = json!({ "id": "Localhost/a/0000:n=*/latency/time#mean", "members": 2, "score": 3.0, "improvement": -3.0,
                            "tolerance": 2.5, "status": status, "decides": true, "final_verdict": status });
        outcome.groups = serde_json::from_value(json!([group])).unwrap();
        let word = outcome.groups[0].final_verdict.as_str();
        let xml = junit(&outcome, FailOn::default()).unwrap();
        let texts = xml.matches(&format!(">{word}: ")).count();
        assert_eq!(texts, xml.matches("<testcase").count(), "{xml}");
    }
}

#[test]
fn an_interval_within_the_threshold_that_fails_has_its_reason_in_the_sentence() {
    let interval = |low: f64, high: f64| json!({ "low": low, "high": high, "confidence": 0.95 });
    let inconclusive = |is_dependent: bool| {
        let aspect = json!({ "aspect": "shift", "ratio": 1.0128, "interval": interval(0.9874, 1.0343), "p_by_samples": p(0.3), "p_by_runs": p(0.5), "certainty": "none", "alone": "inconclusive", "runs_interval": null,
                             "widened_interval": interval(0.94, 1.07) });
        let properties = json!({ "fails": true, "interval": interval(0.9874, 1.0343), "aspects": [aspect],
                                 "equal_if_independent": is_dependent });
        headline(&outcome(&[with(check("1", 1.0128, "inconclusive"), properties)]))
    };
    let reason = "; equal only if the interval widened for samples that may depend on each other (-6.00 to +7.00 %) were within \
                  the threshold";
    assert!(
        inconclusive(true).ends_with(&format!("a n=1 (time): +1.28 % (-1.26 to +3.43 %){reason}")),
        "{}",
        inconclusive(true)
    );
    assert!(!inconclusive(false).contains("depend"), "{}", inconclusive(false));
}

#[test]
fn failures_that_do_not_decide_end_the_sentence() {
    let failures = json!({ "failures": [{ "failed": 0, "attempts": 8 }, { "failed": 3, "attempts": 11 }] });
    let outcome = outcome(&[with(check("1", 1.0, "equivalent"), failures)]);
    let expected = "`b` and `a`: one check, equivalent; `b` failed in 3 of 11 attempts at a n=1, `a` in none";
    assert_eq!(headline(&outcome), expected);
    let comment = markdown(&outcome);
    assert!(comment.contains("**no relevant difference but in failed attempts**"), "{comment}");
}

#[test]
fn failures_have_their_p_value_beside_them() {
    let sides = json!([{ "failed": 0, "attempts": 8 }, { "failed": 3, "attempts": 11 }]);
    let with_p = |p: f64, difference: f64| {
        let p_value = json!({ "alone": 0.04, "in_check": p, "in_family": p });
        let interval = json!({ "low": -0.1, "high": 0.5, "confidence": 0.95 });
        let rates = json!({ "difference": difference, "interval": interval, "p_value": p_value });
        outcome(&[with(check("1", 1.0, "equivalent"), json!({ "failures": sides, "failure_rates": rates }))])
    };
    for (outcome, expected) in [
        (with_p(0.2281, 0.27), ", undecided (p 0.2281)"),
        (with_p(0.01, 0.27), ", p 0.0100"),
        // Fewer failures have no part in the family.
        (with_p(1.0, -0.27), ", p 0.0400"),
    ] {
        let sentence = headline(&outcome);
        assert!(sentence.ends_with(&format!("`a` in none{expected}")), "{sentence}");
        let style = Style { width: 1000, colour: false, is_terminal: true };
        let text = text(&outcome, &[], &[], &[], Verbosity::Changes, style);
        assert!(text.contains(&format!("failed attempts: 0 of 8 and 3 of 11{expected}")), "{text}");
    }
}

#[test]
fn the_gravest_of_what_was_not_compared_is_named() {
    let checks = [
        check("1", 1.0, "equivalent"),
        check("2", 1.0, "missing"),
        check("3", 1.0, "missing"),
        check("4", 1.0, "invalid"),
        check("5", 1.02, "minor-loss"),
        check("6", 1.04, "minor-loss"),
        check("7", 1.03, "minor-loss"),
    ];
    let mut outcome = outcome(&checks);
    outcome.totals.errors = 3;
    outcome.builds[1].errors = vec![
        ("Localhost/fio/0000:bs=4k,file=%2Fdev%2Fsda".to_owned(), "crashed".to_owned()),
        ("Localhost/fio/0000:bs=8k".to_owned(), "crashed".to_owned()),
    ];
    let sentence = headline(&outcome);
    for expected in [
        "3 minor-loss (a n=6 (time) and 2 others)",
        "2 missing (a n=2 (time) and one other)",
        "1 invalid (a n=4 (time))",
        "; 3 tests ended in an error (fio bs=4k,file=/dev/sda of `b` and 2 others)",
    ] {
        assert!(sentence.contains(expected), "{sentence}\n{expected}");
    }
}

#[test]
fn both_ends_of_a_range_have_the_decimals_of_the_larger() {
    let loss = |n: &str, ratio: f64| check(n, ratio, "regressed");
    for (ratios, expected) in [
        ([1.00037, 1.338], "by estimates of <0.1 to 33.8 %"),
        ([1.0004, 1.0008], "by estimates of 0.040 to 0.080 %"),
        ([1.05, 1.0504], "by estimates of 5.0 %"),
    ] {
        let sentence = headline(&outcome(&[loss("1", ratios[0]), loss("2", ratios[1])]));
        assert!(sentence.contains(expected), "{sentence}\n{expected}");
    }
}

#[test]
fn failures_name_their_cell_and_are_listed() {
    let failures =
        |failed: [u32; 2]| json!({ "failures": failed.map(|failed| json!({ "failed": failed, "attempts": 20 })) });
    let other_metric = json!({ "id": "Localhost/a/0000:n=2/throughput/rate#mean", "direction": "higher" });
    let checks = [
        with(check("1", 1.0, "equivalent"), failures([5, 0])),
        with(check("2", 1.0, "equivalent"), failures([0, 6])),
        with(with(check("2", 1.0, "equivalent"), failures([0, 6])), other_metric),
        check("3", 1.0, "equivalent"),
    ];
    let outcome = outcome(&checks);
    let expected = "; `b` failed in 6 of 20 attempts at a n=2, `a` in none (failures differ in one more cell)";
    assert!(headline(&outcome).ends_with(expected), "{}", headline(&outcome));
    let text =
        text(&outcome, &[], &[], &[], Verbosity::Changes, Style { width: 1000, colour: false, is_terminal: true });
    for (cell, failures) in [("n=1", "5 of 20 and 0 of 20"), ("n=2", "0 of 20 and 6 of 20")] {
        let failures = format!("failed attempts: {failures}");
        assert!(text.contains(&format!("{cell}/latency/time#mean\n")) && text.contains(&failures), "{text}");
        let comment = markdown(&outcome);
        let row = comment.lines().find(|line| line.starts_with('|') && line.contains(cell)).unwrap_or_default();
        assert!(row.contains(&failures), "{comment}");
    }
    assert!(!text.contains("n=3"), "{text}");
}

#[test]
fn what_fails_without_being_certain_is_named() {
    let fails = json!({ "fails": true });
    let interval = json!({ "interval": { "low": 0.95, "high": 1.2, "confidence": 0.95 } });
    let checks = [
        check("1", 0.5, "improved"),
        with(check("2", 1.08, "unconfirmed"), fails.clone()),
        check("3", 0.92, "unconfirmed"),
        with(with(check("4", 1.02, "inconclusive"), fails.clone()), interval),
    ];
    assert_eq!(
        headline(&outcome(&checks)),
        "`b` is faster by a factor of 2.00 in a n=1 (time) than `a`, and may be 8.0 % slower in a n=2 (time), which is unconfirmed; \
         other checks: 1 unconfirmed, 1 inconclusive; inconclusive, which fails: a n=4 (time): +2.00 % (-5.00 to +20.00 %)"
    );
    let alone = [with(check("2", 1.08, "unconfirmed"), fails), check("3", 0.92, "unconfirmed")];
    assert_eq!(
        headline(&outcome(&alone)),
        "`b` may be 8.0 % slower in a n=2 (time) than `a`, which is unconfirmed; other checks: 1 unconfirmed"
    );
}

#[test]
fn scores_are_no_speeds_and_from_zero_is_infinite() {
    let tolerance = json!({ "decided_by": "tolerance" });
    let scored =
        with(with(check("1", 1.0, "regressed"), tolerance.clone()), json!({ "score": 15.4, "difference": 0.0 }));
    assert_eq!(headline(&outcome(&[scored])), "`b` is worse by a score of 15.4 % in a n=1 (time) than `a`");
    let plain = with(with(check("1", 1.0, "regressed"), tolerance.clone()), json!({ "score": 9.0, "difference": 9.0 }));
    assert_eq!(headline(&outcome(std::slice::from_ref(&plain))), "`b` is 9.0 % slower in a n=1 (time) than `a`");
    let from_zero = json!({ "score": null, "difference": null, "before": 0.0 });
    let from_zero = with(with(check("2", 1.0, "regressed"), tolerance), from_zero);
    assert_eq!(
        headline(&outcome(std::slice::from_ref(&from_zero))),
        "`b` is slower in a n=2 (time), which was zero before, than `a`"
    );
    assert_eq!(
        headline(&outcome(&[plain, from_zero])),
        "`b` is slower in 2 checks, by an estimate of 9.0 % in a n=1 (time), 1 was zero before (a n=2 (time)) \
         than `a`"
    );
}

/// A rate that fell, and a time that rose, from zero or to it, and by amounts that can be stated.
#[test]
fn what_became_zero_or_was_has_no_percentage_and_no_factor() {
    let rate = |case: u32, ratio: f64| {
        let id = format!("Localhost/a/0000:n={case}/throughput/rate#mean");
        with(check("", ratio, "regressed"), json!({ "id": id, "direction": "higher" }))
    };
    let from_zero = json!({ "before": 0.0, "difference": null, "score": null, "ratio": null, "aspect": null });
    let time = |case: &str| with(check(case, 1.0, "regressed"), from_zero.clone());
    for (checks, expected) in [
        (vec![rate(1, 0.0)], "`b` is slower in a n=1 (rate), which became zero, than `a`"),
        (vec![time("1")], "`b` is slower in a n=1 (time), which was zero before, than `a`"),
        (
            vec![rate(1, 0.0), rate(2, 0.0)],
            "`b` is slower in 2 checks, 2 became zero (a n=1 (rate) and 1 more) than `a`",
        ),
        (
            vec![rate(1, 0.909), rate(2, 0.0), rate(3, 0.8), time("4")],
            "`b` is slower in 4 checks, by estimates of 9.1 to 20.0 % in 2 of them (most in a n=3 (rate)), 1 became zero \
             (a n=2 (rate)), 1 was zero before (a n=4 (time)) than `a`",
        ),
        (vec![rate(1, -0.5)], "`b` is slower in a n=1 (rate), which changed sign, than `a`"),
        (
            vec![rate(1, 0.5), rate(2, 0.0)],
            "`b` is slower in 2 checks, by an estimate of a factor of 2.00 in a n=1 (rate), 1 became zero \
             (a n=2 (rate)) than `a`",
        ),
    ] {
        assert_eq!(headline(&outcome(&checks)), expected);
    }
    let sentence = headline(&parts(&[(0.0, "regressed")]));
    assert!(sentence.contains("slower in a n=0 (time), which is zero, than `factor=1`"), "{sentence}");
}

/// Every verdict, direction, size, and position of the interval: an amount in words has an interval in words, one with a sign
/// has one with signs, and the estimate is within it.
#[test]
fn a_figure_and_its_interval_agree_in_sign_and_words() {
    let shown = |id: &str, direction: &str, decided: &str, [low, ratio, high]: [f64; 3]| {
        let interval = json!({ "interval": { "low": low, "high": high, "confidence": 0.95 }, "fails": true });
        let id = json!({ "id": format!("Localhost/a/0000:n=1/{id}#mean"), "direction": direction });
        headline(&outcome(&[with(with(check("1", ratio, decided), interval), id)]))
    };
    let rate = |decided, ratios| shown("throughput/rate", "higher", decided, ratios);
    let time = |decided, ratios| shown("latency/time", "lower", decided, ratios);
    for (sentence, expected) in [
        (rate("regressed", [0.9, 0.95, 0.97]), "`b` is 5.0 % slower (3.0 to 10.0 %) in"),
        (time("regressed", [1.03, 1.05, 1.10]), "`b` is 5.0 % slower (3.0 to 10.0 %) in"),
        (rate("improved", [1.03, 1.05, 1.10]), "`b` is 5.0 % faster (3.0 to 10.0 %) in"),
        (time("improved", [0.9, 0.95, 0.97]), "`b` is 5.0 % faster (3.0 to 10.0 %) in"),
        (rate("unconfirmed", [0.8, 0.92, 1.05]), "8.0 % slower (5.0 % faster to 20.0 % slower between these runs) in"),
        (time("unconfirmed", [0.95, 1.08, 1.2]), "8.0 % slower (5.0 % faster to 20.0 % slower between these runs) in"),
        (rate("unconfirmed", [0.95, 1.08, 1.2]), "8.0 % faster (5.0 % slower to 20.0 % faster between these runs) in"),
        (time("improved", [0.4, 0.5, 0.625]), "`b` is faster by a factor of 2.00 (1.60 to 2.50) in"),
        (
            time("unconfirmed", [0.4, 0.5, 1.25]),
            "faster by a factor of 2.00 (slower by a factor of 1.25 to faster by a factor of 2.50 between these runs) in",
        ),
        (rate("regressed", [0.0, 0.8, 0.9]), "`b` is 20.0 % slower (10.0 % to zero) in"),
        (rate("regressed", [0.0, 0.5, 0.6]), "`b` is slower by a factor of 2.00 (1.67 to zero) in"),
        (rate("inconclusive", [0.944, 0.9538, 0.967]), "a n=1 (rate): -4.62 % (-5.60 to -3.30 %)"),
        (time("inconclusive", [1.033, 1.0462, 1.056]), "a n=1 (time): +4.62 % (+3.30 to +5.60 %)"),
        (rate("inconclusive", [0.9, 0.9538, 1.02]), "a n=1 (rate): -4.62 % (-10.00 to +2.00 %)"),
    ] {
        assert!(sentence.contains(expected), "{sentence}\n{expected}");
    }
}

#[test]
fn a_check_that_some_runs_lack_is_listed_and_an_error() {
    let lacking = json!({ "lacking": [[], ["new-2"]] });
    let mut outcome = outcome(&[with(check("1", 1.0, "equivalent"), lacking), check("2", 1.0, "equivalent")]);
    outcome.totals.partly_missing = 1;
    let sentence = headline(&outcome);
    assert!(sentence.ends_with("; one check (a n=1 (time)) is missing in some runs of `b`"), "{sentence}");
    let text =
        text(&outcome, &[], &[], &[], Verbosity::Changes, Style { width: 1000, colour: false, is_terminal: true });
    for output in [text, markdown(&outcome), junit(&outcome, FailOn::default()).unwrap()] {
        assert!(output.contains("missing in new-2 of the last build"), "{output}");
    }
    assert!(junit(&outcome, FailOn::default()).unwrap().contains("errors=\"1\""));
}

#[test]
fn worse_checks_that_are_not_primary_are_named() {
    let secondary = json!({ "primary": false, "final_verdict": "regressed" });
    let outcome = outcome(&[check("1", 1.0, "equivalent"), with(check("2", 3.0, "equivalent"), secondary)]);
    let text =
        text(&outcome, &[], &[], &[], Verbosity::Changes, Style { width: 1000, colour: false, is_terminal: true });
    for output in [text, markdown(&outcome)] {
        assert!(output.contains("not decisive, and worse or not compared: ") && output.contains("n=2"), "{output}");
    }
}

#[test]
fn equal_by_a_wide_threshold_has_the_threshold_and_all_outputs_state_it() {
    let wide = json!({ "threshold": 50.0 });
    let outcome = outcome(&[check("1", 1.0, "equivalent"), with(check("2", 1.29, "equivalent"), wide)]);
    assert_eq!(headline(&outcome), "`b` and `a` are equivalent in all 2 checks within +5 / -4.76 % to +50 / -33.33 %");
    assert!(markdown(&outcome).contains("; thresholds +5 / -4.76 % to +50 / -33.33 %."), "{}", markdown(&outcome));
    let xml = junit(&outcome, FailOn::default()).unwrap();
    assert!(xml.contains("<property name=\"thresholds\" value=\"+5 / -4.76 % to +50 / -33.33 %\"/>"), "{xml}");
}

#[test]
fn differences_name_their_aspect_beside_means() {
    let comment = markdown(&outcome(&[check("1", 1.027, "inconclusive")]));
    assert!(comment.contains("| 100 | 100.5 | shift +2.70 % |"), "{comment}");
    let by_mean = with(check("1", 1.027, "inconclusive"), json!({ "aspect": "mean" }));
    let comment = markdown(&outcome(&[by_mean]));
    assert!(comment.contains("| 100 | 100.5 | +2.70 % |"), "{comment}");
}

#[test]
fn what_fails_unconfirmed_is_no_regression() {
    for (verdict, words) in
        [("unconfirmed", "unconfirmed by"), ("inconclusive", "inconclusive by"), ("improved", "improvement by")]
    {
        let mut outcome = outcome(&[with(check("1", 1.3, verdict), json!({ "fails": true }))]);
        outcome.exit_code = 2;
        outcome.regressed_by = serde_json::from_value(json!(["statistical"])).unwrap();
        let comment = markdown(&outcome);
        assert!(comment.contains(&format!("; {words} statistics.")) && !comment.contains("regression"), "{comment}");
    }
}

#[test]
fn what_is_unconfirmed_only_among_others_says_so() {
    let shown = |significant_alone: bool| {
        let properties = json!({ "noise_source": "prior", "run_noise": 5.0, "significant_alone": significant_alone });
        let outcome = outcome(&[with(check("1", 1.3, "unconfirmed"), properties)]);
        let text =
            text(&outcome, &[], &[], &[], Verbosity::Changes, Style { width: 1000, colour: false, is_terminal: true });
        text.contains("significant alone, not among all checks of this comparison")
    };
    assert_eq!([true, false].map(shown), [true, false]);
}

/// The same p-value before and after all corrections.
fn p(value: f64) -> Value {
    json!({ "alone": value, "in_check": value, "in_family": value })
}

/// The words for one check with an aspect that has these properties.
fn words_for_aspect(decided: &str, properties: Value) -> String {
    let aspect = json!({ "aspect": "shift", "ratio": 1.08, "interval": { "low": 1.01, "high": 1.16, "confidence": 0.95 },
        "runs_interval": null, "p_by_samples": p(0.06), "p_by_runs": p(0.06), "certainty": "none", "alone": "inconclusive" });
    let aspects = json!({ "aspects": [with(aspect, properties)] });
    let outcome = outcome(&[with(check("1", 1.08, decided), aspects)]);
    text(&outcome, &[], &[], &[], Verbosity::Changes, Style { width: 1000, colour: false, is_terminal: true })
}

#[test]
fn an_interval_without_zero_that_decides_nothing_says_why() {
    let says_why = |decided, properties| {
        words_for_aspect(decided, properties).contains("; significant alone, not among the aspects of this check")
    };
    assert!(says_why("inconclusive", json!({})));
    let with_zero = json!({ "interval": { "low": 0.99, "high": 1.16, "confidence": 0.95 } });
    assert!(!says_why("inconclusive", with_zero));
    // Significant, and neither beyond the threshold nor within it.
    assert!(!says_why("inconclusive", json!({ "certainty": "samples" })));
    assert!(!says_why("unconfirmed", json!({})));
}

#[test]
fn what_only_dependence_keeps_from_being_equal_says_so() {
    let widened = json!({ "low": 0.9, "high": 1.16, "confidence": 0.95 });
    let of = |decided, is_equal: bool| {
        let aspect = json!({ "aspect": "shift", "ratio": 1.01, "interval": { "low": 1.0, "high": 1.04, "confidence": 0.95 },
            "widened_interval": widened, "runs_interval": null, "p_by_samples": p(0.3), "p_by_runs": p(0.5), "certainty": "none",
            "alone": "inconclusive" });
        let properties = json!({ "aspects": [aspect], "equal_if_independent": is_equal });
        let outcome = outcome(&[with(check("1", 1.01, decided), properties)]);
        text(&outcome, &[], &[], &[], Verbosity::Changes, Style { width: 1000, colour: false, is_terminal: true })
    };
    let words = "; samples may depend on each other: equal only if the interval widened for that were within the threshold, \
                 [-10.00, +16.00]";
    let shown = of("inconclusive", true);
    assert!(shown.contains(words), "{shown}");
    assert!(!of("inconclusive", false).contains("depend on each other"));
}

#[test]
fn every_output_has_the_same_word_for_a_verdict() {
    for verdict in FinalVerdict::ALL {
        let word = verdict.as_str();
        assert_eq!(serde_json::to_value(verdict).unwrap(), word, "JSON");
        let outcome = outcome(&[check("1", 1.3, word)]);
        let style = Style { width: 1000, colour: false, is_terminal: true };
        let lines = text(&outcome, &[], &[], &[], Verbosity::All, style);
        assert!(lines.contains(&format!("\n{word:12} Localhost/a/")), "{lines}");
        let comment = markdown(&outcome);
        let row = comment.lines().find(|line| line.contains("`Localhost/a/"));
        assert!(row.is_none_or(|row| row.starts_with(&format!("| {word} |"))), "{comment}");
        assert!(row.is_some() || !verdict.is_notable(), "{comment}");
        let xml = junit(&outcome, FailOn::default()).unwrap();
        assert!(xml.contains(&format!(">{word}: ")), "{xml}");
    }
    let words = FinalVerdict::ALL.map(FinalVerdict::as_str);
    let of_methods = Status::ALL.map(Status::as_str).into_iter().chain(Verdict::ALL.map(Verdict::as_str));
    let unknown: Vec<&str> = of_methods.filter(|word| !words.contains(word)).collect();
    assert_eq!(unknown, [""; 0], "words of a method alone");
}

#[test]
fn a_large_difference_is_a_factor_and_the_same_one_for_a_time_and_a_rate() {
    let interval = |low: f64, high: f64| json!({ "interval": { "low": low, "high": high, "confidence": 0.95 }, "runs_interval": null });
    let time = with(check("1", 0.498, "improved"), interval(0.4, 0.625));
    let rate = json!({ "id": "Localhost/a/0000:n=1/throughput/rate#mean", "direction": "higher" });
    let rate = with(with(check("1", 1.0 / 0.498, "improved"), interval(1.6, 2.5)), rate);
    let amount = "`b` is faster by a factor of 2.01 (1.60 to 2.50) in a n=1";
    for faster in [time, rate] {
        let outcome = outcome(&[faster]);
        assert!(headline(&outcome).starts_with(amount), "{}", headline(&outcome));
        assert!(
            markdown(&outcome).contains("| shift -50.20 % |") || markdown(&outcome).contains("| shift +100.80 % |")
        );
    }
    let several = [check("1", 2.5, "regressed"), check("2", 1.2, "regressed")];
    assert!(headline(&outcome(&several)).contains("by estimates of factors of 1.20 to 2.50 (most in a n=1 (time))"));
    // A score of models is no ratio, and from zero nothing is a factor.
    let scored = json!({ "decided_by": "tolerance", "score": -70.0, "difference": -60.0, "ratio": null });
    assert!(headline(&outcome(&[with(check("1", 1.0, "improved"), scored)])).contains("by a score of 70.0 %"));
}

#[test]
fn what_only_the_last_build_has_is_new_in_every_output_and_fails_nothing() {
    let new = json!({ "before": null, "values": [null, 100.5], "difference": null, "score": null, "ratio": null,
        "status": "missing", "verdict": "missing", "aspect": null });
    let mut outcome = outcome(&[check("1", 1.0, "equivalent"), with(check("2", 1.0, "new"), new)]);
    outcome.totals.new = 1;
    assert_eq!(headline(&outcome), "`b` and `a`: 2 checks, 1 equivalent, 1 new");
    let lines = text(&outcome, &[], &[], &[], Verbosity::Changes, WIDE);
    assert!(
        lines.contains("\nnew          Localhost/a/0000:n=2/latency/time#mean\n             not in the first build"),
        "{lines}"
    );
    let comment = markdown(&outcome);
    assert!(
        comment.contains("**1 new**; one check compared") || comment.contains("**1 new**; 1 check compared"),
        "{comment}"
    );
    let xml =
        junit(&outcome, FailOn { gain: true, strictness: Strictness::Inconclusive, ..FailOn::default() }).unwrap();
    assert!(xml.contains("failures=\"0\" errors=\"0\" skipped=\"1\""), "{xml}");
    assert!(xml.contains("<skipped message=\"new: not in the first build\""), "{xml}");
}

/// A rate that became zero is in no geometric mean, a time from zero in no mean.
#[test]
fn scores_that_averages_cannot_have_are_named_with_the_reason() {
    let distribution = |average| Distribution {
        average,
        count: 1,
        min: 0.0,
        first_quartile: 0.0,
        median: 0.0,
        third_quartile: 0.0,
        max: 0.0,
        negative_contribution: 0.0,
        positive_contribution: 0.0,
        mean: 0.0,
    };
    let id = "Localhost/a/0000:n=1/latency/time#mean";
    let pattern = || CheckPattern::new(&CheckId::parse(id).unwrap(), Wildcards::PER_CASE);
    let shown = |average| {
        let to_zero = json!({ "after": 0.0, "score": -100.0, "status": "improved" });
        let from_zero = json!({ "before": 0.0, "score": null, "status": "regressed" });
        let outcome =
            outcome(&[with(check("1", 0.0, "improved"), to_zero), with(check("2", 1.0, "inconclusive"), from_zero)]);
        let rows = vec![SummaryRow { pattern: pattern(), means: Some(distribution(average)), stddevs: None }];
        text(&outcome, &[], &[("case", rows)], &[], Verbosity::Changes, WIDE)
    };
    let geometric = shown(Average::Geometric);
    let expected = "2 scores are in none of these figures, since a difference from 0 has no percentage, and one to 0 or below has \
                    no part in a geometric mean: Localhost/a/0000:n=1/latency/time#mean (100 → 0, improved), ";
    assert!(geometric.contains(expected), "{geometric}");
    let arithmetic = shown(Average::Arithmetic);
    assert!(arithmetic.contains("1 infinite score is in none of these figures"), "{arithmetic}");
}

#[test]
fn the_difference_of_standard_deviations_agrees_with_both_of_them() {
    let stddev = |[before, after]: [f64; 2]| {
        let difference = before - after;
        let id = "Localhost/a/0000:n=1/latency/time#stddev";
        let properties = json!({ "id": id, "statistic": "stddev", "value_unit": "%", "before": before, "after": after,
            "difference": difference, "score": difference, "decided_by": "tolerance" });
        let outcome = outcome(&[with(check("1", 1.0, "differs"), properties)]);
        text(&outcome, &[], &[], &[], Verbosity::All, WIDE) + &markdown(&outcome)
    };
    for (sides, words) in
        [([1.0, 9.0], "8.00 points more"), ([9.0, 1.0], "8.00 points less"), ([2.0, 2.0], "+0.00 points")]
    {
        let shown = stddev(sides);
        assert!(
            shown.contains(&format!("; {words} of ±5 points")) && shown.contains(&format!("| {words} |")),
            "{shown}"
        );
    }
}

#[test]
fn the_sentence_is_one_line_unless_a_terminal_wraps_it() {
    let checks: Vec<Value> = (0..4).map(|case| check(&case.to_string(), 1.3, "regressed")).collect();
    let outcome = outcome(&checks);
    let lines = |is_terminal: bool| {
        let style = Style { width: 60, colour: false, is_terminal };
        let text = text(&outcome, &[], &[], &[], Verbosity::Changes, style);
        text.lines().take_while(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(false), [headline(&outcome)]);
    let wrapped = lines(true);
    assert!(wrapped.len() > 1 && wrapped.iter().all(|line| line.chars().count() <= 60), "{wrapped:?}");
}

#[test]
fn infinite_scores_are_named_below_the_tables_that_cannot_have_them() {
    let from_zero = json!({ "before": 0.0, "score": null, "difference": null, "ratio": null, "status": "regressed" });
    let outcome = outcome(&[check("1", 1.0, "equivalent"), with(check("2", 1.0, "inconclusive"), from_zero)]);
    let scores = [("total", None)];
    let lines = text(&outcome, &[], &[], &scores, Verbosity::Changes, WIDE);
    let infinite =
        with(check("2", 1.0, "inconclusive"), json!({ "before": 0.0, "score": null, "status": "regressed" }));
    let mut within_run = parts(&[(1.0, "equivalent")]);
    within_run.checks.extend(self::outcome(&[infinite]).checks);
    let no_rows = ["case", "metric", "profile"].map(|over| (over, Vec::new()));
    for outcome in [&within_run, &outcome] {
        let lines = text(outcome, &[], &no_rows, &[], Verbosity::Changes, WIDE);
        assert!(!lines.contains("infinite score"), "no table, no note: {lines}");
    }
    let note = "1 infinite score is in none of these figures, since a difference from 0 has no percentage: \
                Localhost/a/0000:n=2/latency/time#mean (0 → 100.5, inconclusive)";
    assert!(lines.contains(note), "{lines}");
    assert!(!text(&outcome, &[], &[], &[], Verbosity::Changes, WIDE).contains("infinite score"), "no table, no note");
}

const WIDE: Style = Style { width: 1000, colour: false, is_terminal: true };

#[test]
fn of_several_checks_that_fail_more_often_the_worst_is_named_with_their_number() {
    let failing = |case: &str, failed: u32| {
        let failures = json!([{ "failed": 0, "attempts": 20 }, { "failed": failed, "attempts": 20 }]);
        with(check(case, 1.0, "regressed"), json!({ "failures": failures, "failures_rose": true }))
    };
    let sentence = |checks: &[Value]| headline(&outcome(checks));
    assert_eq!(
        sentence(&[failing("1", 7), failing("2", 10), failing("3", 10), check("4", 1.0, "equivalent")]),
        "`b` is failing more often in 3 cells (most in a n=2: 10 of 20 attempts instead of 0 of 20) than `a`; other \
         checks: 1 equivalent"
    );
    assert_eq!(
        sentence(&[
            failing("1", 7),
            with(failing("1", 7), json!({ "id": "Localhost/a/0000:n=1/throughput/rate#mean" }))
        ]),
        "`b` is failing more often (7 of 20 attempts instead of 0 of 20) in a n=1 than `a`",
        "the metrics of a cell have the same attempts"
    );
    assert_eq!(
        sentence(&[failing("1", 7)]),
        "`b` is failing more often (7 of 20 attempts instead of 0 of 20) in a n=1 (time) than `a`"
    );
}

#[test]
fn what_is_better_beside_a_loss_is_named() {
    let aspect = |aspect: &str, ratio: f64, alone: &str| {
        json!({ "aspect": aspect, "ratio": ratio, "interval": null, "runs_interval": null, "p_by_samples": p(0.01),
            "p_by_runs": p(0.01), "certainty": "runs", "alone": alone })
    };
    let sentence = |others: Vec<Value>| {
        let aspects = [vec![aspect("shift", 1.29, "regressed")], others].concat();
        headline(&outcome(&[with(check("1", 1.29, "regressed"), json!({ "aspects": aspects }))]))
    };
    assert_eq!(
        sentence(vec![aspect("mean", 0.745, "improved"), aspect("quantile-90", 0.328, "improved")]),
        "`b` is 29.0 % slower, although its mean is 25.5 % better and its 90 % quantile is better by a factor of 3.05, in a \
         n=1 (time) than `a`"
    );
    assert_eq!(sentence(vec![aspect("mean", 0.99, "equivalent")]), "`b` is 29.0 % slower in a n=1 (time) than `a`");
}

#[test]
fn what_may_be_worse_is_named_beside_a_gain() {
    let unconfirmed = |case: &str, ratio: f64, may_be_worse: bool| {
        with(check(case, ratio, "unconfirmed"), json!({ "may_be_worse": may_be_worse }))
    };
    let sentence = |checks: &[Value]| headline(&outcome(checks));
    assert_eq!(
        sentence(&[check("1", 0.8, "improved"), unconfirmed("2", 1.08, true), unconfirmed("3", 0.92, false)]),
        "`b` is 20.0 % faster in a n=1 (time) than `a`, and may be 8.0 % slower in a n=2 (time), which is unconfirmed; other \
         checks: 1 unconfirmed"
    );
    assert_eq!(
        sentence(&[unconfirmed("2", 0.92, false), unconfirmed("3", 1.08, true)]),
        "`b` may be 8.0 % slower in a n=3 (time) than `a`, which is unconfirmed; other checks: 1 unconfirmed"
    );
}

#[test]
fn values_below_zero_have_no_factor_and_change_their_sign_only_if_they_do() {
    let shown = |before: f64, after: f64, ratio: f64| {
        let values = json!({ "before": before, "after": after, "direction": "higher" });
        let id = json!({ "id": "Localhost/a/0000:n=1/check/err#mean" });
        headline(&outcome(&[with(with(check("1", ratio, "regressed"), values), id)]))
    };
    assert_eq!(shown(-5.0, -9.95, 0.01), "`b` is 99.0 % worse in a n=1 (err) than `a`");
    assert_eq!(shown(-5.0, -15.0, -1.0), "`b` is 200.0 % worse in a n=1 (err) than `a`");
    assert_eq!(shown(-5.0, 5.0, 3.0), "`b` is worse in a n=1 (err), which changed sign, than `a`");
    let both = [with(check("1", 0.0, "regressed"), json!({ "direction": "higher" })), check("2", 0.8, "improved")];
    let sentence = headline(&outcome(&both));
    assert!(sentence.contains("which became zero, and 20.0 % faster"), "{sentence}");
}

/// An equivalent check whose shift has this certainty.
fn equivalent(case: u32, ratio: f64, certainty: &str) -> Value {
    let aspect = json!({ "aspect": "shift", "ratio": ratio, "interval": null, "runs_interval": null,
        "p_by_samples": p(0.001), "p_by_runs": p(0.3), "certainty": certainty, "alone": "equivalent" });
    with(check(&case.to_string(), ratio, "equivalent"), json!({ "aspects": [aspect] }))
}

#[test]
fn a_certain_loss_within_the_threshold_is_in_the_sentence_however_many_checks_have_it() {
    let sentence = |checks: &[(f64, &str)]| {
        let checks = (1..).zip(checks).map(|(case, (ratio, certainty))| equivalent(case, *ratio, certainty));
        headline(&outcome(&checks.collect::<Vec<_>>()))
    };
    for count in [2, 10, 40] {
        let all: Vec<(f64, &str)> =
            (0..count).map(|i| (1.028 + 0.004 * f64::from(i) / f64::from(count - 1), "runs")).collect();
        assert_eq!(
            sentence(&all),
            format!(
                "`b` and `a` are equivalent in all {count} checks; `b` is slower in all {count} of them by estimates of 2.8 to \
                 3.2 %, within the threshold"
            )
        );
    }
    assert!(sentence(&[(1.03, "samples"), (1.02, "runs"), (0.97, "samples"), (1.04, "none")]).ends_with(
        "all 4 checks; `b` is slower in 2 of 4 equivalent checks by estimates of 2.0 to 3.0 % and faster in 1 of 4 \
             equivalent checks by an estimate of 3.0 % between these runs, within the threshold"
    ));
    assert_eq!(
        sentence(&[(1.03, "samples")]),
        "`b` and `a`: one check, equivalent; `b` is slower by an estimate of 3.0 % between these runs, within the threshold"
    );
    assert_eq!(sentence(&[(1.03, "none"), (0.97, "none")]), "`b` and `a` are equivalent in all 2 checks");
}

#[test]
fn what_tolerances_find_by_single_values_was_measured() {
    let by_tolerance = |case: &str, score: f64, samples: [usize; 2]| {
        let decided = if score > 0.0 { "regressed" } else { "improved" };
        let properties = json!({ "decided_by": "tolerance", "score": score, "difference": score, "samples": samples });
        with(check(case, 1.0, decided), properties)
    };
    let sentence = |checks: &[Value]| headline(&outcome(checks));
    assert_eq!(
        sentence(&[by_tolerance("1", 7.0, [1, 1])]),
        "`b` was measured 7.0 % slower in a n=1 (time) than `a`; each side is one value, whose noise is unknown"
    );
    assert_eq!(sentence(&[by_tolerance("1", 7.0, [5, 5])]), "`b` is 7.0 % slower in a n=1 (time) than `a`");
    let some = sentence(&[by_tolerance("1", 7.0, [5, 1]), by_tolerance("2", 9.0, [5, 5])]);
    assert!(some.starts_with("`b` was measured slower in 2 checks"), "{some}");
    assert!(some.ends_with("; in one of these checks a side is one value, whose noise is unknown"), "{some}");
}
