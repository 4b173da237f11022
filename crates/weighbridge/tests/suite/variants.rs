//! `ab` and `calibrate`.

use std::os::unix::fs::PermissionsExt;

use crate::lab::{CommandResult, Lab, RANDOM};

/// A test whose figure is about 1000, or about $FIGURE, or computed by a program.
const DEMO: &str = r#"
name = "demo"
summary = "a figure from the environment"
version = 1
command = ["sh", "-c", "test -n \"$FIGURE\" || FIGURE=1000; IFS=- read -r random _ </proc/sys/kernel/random/uuid; echo figure: $(expr $FIGURE + $((0x$random % 5)))"]

[[requires]]
program = "expr"
package = "coreutils"

[[param]]
name = "kind"
help = "which of several equal cells"
kind = "choice"
choices = ["a", "b"]
default = "a"
axis = true

"#;

const QUICK: &str = "--min-time 1ms --warm-up 0";

fn lab() -> Lab {
    let lab = Lab::new();
    lab.define_figure("demo", DEMO);
    lab
}

fn verdicts(result: &serde_json::Value) -> Vec<(String, String)> {
    let variants = result["cases"][0]["variants"].as_array().unwrap();
    let verdict = |variant: &serde_json::Value| {
        let verdict = variant["result"]["verdict"].as_str().unwrap_or("first");
        (variant["name"].as_str().unwrap().to_owned(), verdict.to_owned())
    };
    variants.iter().map(verdict).collect()
}

fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(name, verdict)| ((*name).to_owned(), (*verdict).to_owned())).collect()
}

#[test]
fn variants_are_decided_early_and_reproducibly() {
    let lab = lab();
    let ran = lab.weighbridge(&format!("ab demo {QUICK} --into R --json -- base more:env:FIGURE=1500 same:base"));
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    let result = ran.json();
    assert_eq!(verdicts(&result), pairs(&[("base", "first"), ("more", "faster"), ("same", "equivalent")]));
    let blocks = result["cases"][0]["blocks"].as_u64().unwrap();
    assert!((6..30).contains(&blocks), "{blocks}");
    let ratio = result["cases"][0]["variants"][1]["result"]["ratio"].as_f64().unwrap();
    assert!((1.49..1.51).contains(&ratio), "{ratio}");
    // Each block has each variant once, in random order.
    let starts: Vec<String> = lab
        .journal("R")
        .iter()
        .filter(|line| line["event"] == "attempt-started")
        .map(|line| line["cell"].to_string())
        .collect();
    assert_eq!(starts.len() as u64, 3 * blocks);
    for block in starts.chunks(3) {
        let mut cells = block.to_vec();
        cells.sort();
        cells.dedup();
        assert_eq!(cells.len(), 3, "{block:?}");
    }
    let again = lab.weighbridge(&format!("ab demo {QUICK} --into R --json -- base more:env:FIGURE=1500 same:base"));
    assert_eq!(again.json(), result, "nothing is measured again");
    let text = lab.weighbridge(&format!("ab demo {QUICK} --into R -- base more:env:FIGURE=1500 same:base"));
    text.expect_stdout(&format!("decided after {blocks} blocks"));
    assert_eq!(lab.weighbridge("summary R").code, 0, "the folder is an ordinary run");
    // The run folder contains the result.
    lab.weighbridge("report R --html R.html").expect_code(0);
    let page = lab.read("R.html");
    for text in [lab.weighbridge("report R").out, page] {
        assert!(text.contains(&format!("decided after {blocks} blocks")) && text.contains("faster"), "{text}");
    }
}

#[test]
fn worse_variant_exits_with_2() {
    let lab = lab();
    let slow_program = lab.write("bin/slow", "#!/bin/sh\necho 500\n");
    std::fs::set_permissions(&slow_program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let count = lab.path("count");
    let before = format!("cmd:echo>>{}", count.display());
    let ran =
        lab.weighbridge(&format!("ab demo {QUICK} --into R --json -- base bin:{} {before}", slow_program.display()));
    assert_eq!(ran.code, 2, "{}", ran.transcript());
    let result = ran.json();
    assert_eq!(verdicts(&result)[1], ("slow".to_owned(), "slower".to_owned()));
    assert_eq!(verdicts(&result)[2].1, "equivalent");
    let lines = std::fs::read_to_string(&count).unwrap().lines().count() as u64;
    assert_eq!(Some(lines), result["cases"][0]["blocks"].as_u64(), "once before each sample of its variant");
    let study = lab.weighbridge("summary R --json").json();
    let slow = &study["cells"][1];
    assert_eq!(slow["provenance"]["expr path"], slow_program.display().to_string());
    assert!(slow["provenance"]["expr sha256"].is_string());
    assert_eq!(lab.wait_for_processes(), [""; 0]);
}

#[test]
fn a_variant_whose_attempts_fail_more_often_is_worse() {
    let lab = lab();
    let count = lab.path("count").display().to_string();
    let script = format!("#!/bin/sh\nn=$(cat {count} || echo 0); echo $((n + 1)) >{count}; [ $((n % 3)) = 2 ]\n");
    let script = lab.write("fails", &script);
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let line = format!("ab demo {QUICK} --into R --samples 8");
    let variants = format!("-- base fails:cmd:{}", script.display());
    let ran = lab.weighbridge(&format!("{line} --json {variants}")).expect_code(2);
    let variant = &ran.json()["cases"][0]["variants"][1];
    assert_eq!(variant["failures"], serde_json::json!({ "failed": 16, "attempts": 24 }), "{variant}");
    assert_eq!((&variant["failures_rose"], &variant["result"]["verdict"]), (&true.into(), &"worse".into()));
    let text = lab.weighbridge(&format!("{line} {variants}")).expect_code(2);
    text.expect_stdout("16 of 24 attempts failed, significantly more").expect_stdout("fails more");
    lab.weighbridge("report R --html R.html").expect_code(0);
    let page = lab.read("R.html");
    assert!(page.contains("16 of 24 attempts failed") && page.contains("fails more"), "{page}");
}

/// The figures are decided after few blocks.
#[test]
fn more_frequent_failures_are_decided_or_reported_as_undecided() {
    let lab = lab();
    let fails = |name: &str, every: u32| {
        let count = lab.path(name).display().to_string();
        let script = format!("#!/bin/sh\necho >>{count}; [ $(($(wc -l <{count}) % {every})) != 2 ]\n");
        format!("{name}:cmd:{}", lab.program(&format!("{name}-fails"), &script).display())
    };
    let (often, seldom) = (fails("often", 3), fails("seldom", 12));
    for (into, variants, worse) in [("R", format!("base {often}"), true), ("S", format!("{often} base"), false)] {
        let line = format!("ab demo {QUICK} --into {into} -- {variants}");
        let ran = lab.weighbridge(&line.replace(" --into", " --json --into")).expect_code(if worse { 2 } else { 0 });
        let result = ran.json();
        let case = &result["cases"][0];
        let variant = &case["variants"][1];
        assert_eq!(case["state"], "decided", "{}", ran.transcript());
        assert_eq!(variant["failures_rose"], worse, "{variant}");
        assert_eq!(variant["failures_undecided"], false, "{variant}");
        assert!(variant["failure_p_value"].as_f64().unwrap() <= 0.05, "{variant}");
        let text = lab.weighbridge(&line).expect_code(if worse { 2 } else { 0 });
        let word =
            if worse { "significantly more than of base (none of" } else { "significantly fewer than of often (" };
        text.expect_stdout(word);
    }
    // One failure in so few attempts says little, and more blocks would not say more.
    let line = format!("ab demo {QUICK} --into T -- base {seldom}");
    let ran = lab.weighbridge(&line.replace(" --into", " --json --into")).expect_code(0);
    let result = ran.json();
    let variant = &result["cases"][0]["variants"][1];
    let attempts = variant["failures"]["attempts"].as_u64().unwrap();
    assert!((6..20).contains(&attempts), "{variant}");
    assert_eq!(
        (&variant["failures"]["failed"], &variant["failures_undecided"]),
        (&1.into(), &true.into()),
        "{variant}"
    );
    let required = variant["failure_attempts_to_decide"].as_u64().unwrap();
    assert!(required > 30, "{variant}");
    let shown = lab.weighbridge(&line).expect_code(0).out.split_whitespace().collect::<Vec<_>>().join(" ");
    for text in [
        &format!("1 of {attempts} attempts failed, beside none of {attempts} of base: undecided which fails more, p "),
        &format!(
            "if as many fail as so far, {required} attempts of each would decide it: --samples {required} in a new folder"
        ),
        "blocks, undecided whether seldom or base fails more often",
    ] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    lab.weighbridge("report T --html T.html").expect_code(0);
    assert!(lab.read("T.html").contains("undecided which fails more"));
}

/// Whether it fails in its warm-ups or its samples, whichever of both it is, and however many attempts are made in a row: the
/// attempts of the other one decide, as far as the blocks allow.
#[test]
fn a_variant_that_always_crashes_is_decided_by_the_attempts_of_the_other_one() {
    let lab = lab();
    for (index, (options, crashes_first, is_decided)) in [
        ("--samples 9", false, true),
        ("--samples 9 --warm-up 0", false, true),
        ("--attempts 10", false, true),
        ("", true, true),
        ("--warm-up 0", true, true),
        ("--samples 7 --attempts 1", false, false),
    ]
    .into_iter()
    .enumerate()
    {
        let variants = if crashes_first { "crash:cmd:false base" } else { "base crash:cmd:false" };
        let line = |into: &str, options: &str| {
            format!("ab demo --min-time 1ms --seed {index} {options} --into {into} --json -- {variants}")
        };
        let into = format!("R{index}");
        let ran = lab.weighbridge(&line(&into, options));
        let result = ran.json();
        let case = &result["cases"][0];
        let other = &case["variants"][1];
        let transcript = ran.transcript();
        // A first variant without a sample could not be measured; the other one that fails more is worse.
        assert_eq!(ran.code, if is_decided && !crashes_first { 2 } else { 3 }, "{options}: {transcript}");
        assert_eq!(other["failures_rose"], is_decided && !crashes_first, "{options}: {transcript}");
        assert_eq!(other["failures_undecided"], !is_decided, "{options}: {transcript}");
        assert_eq!(case["state"] == "decided", is_decided, "{options}: {transcript}");
        if !crashes_first {
            let again = lab.weighbridge(&line(&into, options));
            assert_eq!(again.json(), result, "{options}: {}", again.transcript());
        }
        // The same verdict in every output.
        let shown = lab.weighbridge(&format!("report {into}")).out.split_whitespace().collect::<Vec<_>>().join(" ");
        lab.weighbridge(&format!("report {into} --html {into}.html")).expect_code(3);
        for output in [&shown, &lab.read(format!("{into}.html"))] {
            let verdict = output.replace("undecided which fails more", "");
            assert_eq!(verdict.contains("fails more"), is_decided && !crashes_first, "{options}: {output}");
        }
        // Advice works.
        let Some(required) = other["failure_attempts_to_decide"].as_u64() else { continue };
        assert!(!is_decided, "{options}: {transcript}");
        let advice = format!("{required} attempts of base would decide it: --samples {required} in a new folder");
        assert!(shown.contains(&advice), "{advice}: {shown}");
        let followed = options.replace("--samples 7", &format!("--samples {required}"));
        let followed = lab.weighbridge(&line("followed", &followed)).expect_code(2);
        assert_eq!(followed.json()["cases"][0]["variants"][1]["failures_undecided"], false);
    }
}

/// As a counter of operations: it may be zero.
#[test]
fn a_primary_metric_that_does_not_measure_performance_is_compared() {
    let lab = Lab::new();
    let count =
        "[[metric]]\nname = \"count\"\nclass = \"check\"\nunit = \"1\"\nprimary = true\nregex = 'count: (\\S+)'\n";
    let head = "name = \"counted\"\nsummary = \"a count\"\nversion = 1\n";
    lab.define(
        "counted",
        &format!(
            "{head}command = [\"sh\", \"-c\", \"test -n \\\"$COUNT\\\" || COUNT=0; echo count: $COUNT\"]\n{count}"
        ),
    );
    let ran = lab.weighbridge(&format!("ab counted {QUICK} --into R --json -- base same:base"));
    assert_eq!(verdicts(&ran.expect_code(0).json())[1].1, "equivalent");
    let variants = "one:env:COUNT=4 other:env:COUNT=5";
    let ran = lab.weighbridge(&format!("ab counted {QUICK} --into S --json -- {variants}"));
    assert_eq!(verdicts(&ran.expect_code(0).json())[1].1, "differs");
    // What is zero on one side alone differs, too: its ratio is 0 or infinite, and has no interval.
    for (into, variants, ratio) in
        [("T", "one:env:COUNT=4 none:env:COUNT=0", "0.000"), ("U", "base one:env:COUNT=4", "–")]
    {
        let line = format!("ab counted {QUICK} --into {into} -- {variants}");
        let shown = lab.weighbridge(&line).expect_code(0);
        let row = shown.out.lines().find(|line| line.contains("differs")).unwrap_or_default();
        let figures: Vec<&str> = row.split_whitespace().collect();
        let [.., shown_ratio, interval, _, _] = figures[..] else { panic!("{}", shown.transcript()) };
        assert_eq!([shown_ratio, interval], [ratio, "–"], "{}", shown.transcript());
        lab.weighbridge(&format!("report {into} --html {into}.html")).expect_code(0);
        assert!(lab.weighbridge(&format!("report {into}")).out.contains(row.trim()), "{row}");
        assert!(lab.read(format!("{into}.html")).contains("differs"));
    }
}

#[test]
fn cases_are_decided_independently() {
    let lab = lab();
    let result = lab.weighbridge(&format!("ab demo:kind=[a,b] {QUICK} --into R --json -- base env:FIGURE=1500")).json();
    let cases: Vec<&str> =
        result["cases"].as_array().unwrap().iter().map(|case| case["case"].as_str().unwrap()).collect();
    assert_eq!(cases, ["kind=a", "kind=b"]);
    // Parameters that variants change are not part of the case.
    let ran = lab.weighbridge(&format!("ab demo {QUICK} --into S --json -- param:kind=a param:kind=b"));
    assert_eq!(verdicts(&ran.json()), pairs(&[("kind-a", "first"), ("kind-b", "equivalent")]), "{}", ran.transcript());
}

/// A test whose figures follow from the number of its samples so far; one of them fails once.
const COUNTED: &str = r#"
name = "counted"
summary = "a figure for each number of a sample"
version = 1
command = ["sh", "-c", """
file=$COUNT-{kind}
number=$(cat $file 2>/dev/null || echo 0)
if test $number = $FAIL && test {kind} = b && ! test -e $file.failed; then touch $file.failed; exit 1; fi
if test $number = $STOP && test {kind} = b && ! test -e $file.stopped; then
    touch $file.stopped
    # The parent of the agent is the controller.
    kill -INT $(cut -d' ' -f4 /proc/$PPID/stat)
    sleep 60
fi
echo $((number + 1)) >$file
echo figure: $((BASE + (number * 7 + SHIFT) % 13))
"""]

[[param]]
name = "kind"
help = "the case"
kind = "choice"
choices = ["a", "b"]
default = "a"
axis = true

"#;

#[test]
fn a_resumed_comparison_has_the_results_of_an_undisturbed_one() {
    let lab = Lab::new();
    lab.define_figure("counted", COUNTED);
    let measure = |folder: &str, stop: u32| {
        let variant = |name: &str, settings: &str| {
            format!("{name}:env:COUNT={}+{settings}", lab.path(&format!("{folder}-{name}")).display())
        };
        let variants = [
            variant("one", "env:FAIL=1000+env:STOP=1000+env:BASE=1000+env:SHIFT=0"),
            variant("two", &format!("env:FAIL=2+env:STOP={stop}+env:BASE=1015+env:SHIFT=5")),
        ];
        let line = format!("ab counted:kind=[a,b] {QUICK} --threshold 1 --into {folder} --json --");
        lab.weighbridge(&format!("{line} {}", variants.join(" ")))
    };
    let results = |run: &CommandResult| {
        let cases = run.json()["cases"].clone();
        let case = |case: &serde_json::Value| {
            (case["case"].clone(), case["blocks"].clone(), case["variants"][1]["result"].clone())
        };
        cases.as_array().unwrap().iter().map(case).collect::<Vec<_>>()
    };
    let undisturbed = measure("R", 1000).expect_code(0);
    let interrupted = measure("S", 5).expect_code(130);
    assert_eq!(results(&interrupted)[1].1, 5, "{}", interrupted.transcript());
    let resumed = measure("S", 5).expect_code(0);
    assert_eq!(results(&resumed), results(&undisturbed), "{}", resumed.transcript());
    let p_value = |index: usize| results(&undisturbed)[index].2["adjusted_p_value"].as_f64().unwrap();
    assert!(p_value(0) <= 0.05 && p_value(1) <= 0.05);
    assert_eq!(undisturbed.json()["family"], 2);
    // Every round has a sample of each cell, those of a case one after the other.
    let journal = lab.journal("R");
    let started = journal.iter().filter(|line| line["event"] == "attempt-started");
    let cells: Vec<String> = started.map(|line| line["cell"].as_str().unwrap().to_owned()).collect();
    let case = |cell: &String| cell.split_once(':').unwrap().1.to_owned();
    for round in cells.chunks_exact(4).take(9) {
        let cases: Vec<String> = round.iter().map(case).collect();
        assert!(cases[0] == cases[1] && cases[2] == cases[3] && cases[1] != cases[2], "{round:?}");
    }
}

/// A system that becomes faster by 1 % with each attempt, whose variant `flaky` fails at every third of its attempts.
fn lab_that_drifts() -> Lab {
    let lab = Lab::new();
    let count = lab.path("count").display().to_string();
    let script = format!(
        "echo >>{count}; echo >>{count}-$FLAKY; \
         [ -z \"$FLAKY\" ] || [ $(($(wc -l <{count}-$FLAKY) % 3)) != 0 ] || exit 1; \
         echo figure: $((1000 + 10 * $(wc -l <{count})))"
    );
    let head = "name = \"level\"\nsummary = \"a figure that rises\"\nversion = 1\n";
    lab.define_figure("level", &format!("{head}command = [\"sh\", \"-c\", '''{script}''']\n\n"));
    lab
}

#[test]
fn a_failed_attempt_costs_its_block_and_no_drift_becomes_a_difference() {
    // Whatever the order within rounds.
    for seed in 1..4 {
        let lab = lab_that_drifts();
        let variants = "base flaky:env:FLAKY=x same:base";
        let line = format!("ab level {QUICK} --seed {seed} --threshold 0.5 --into R --json -- {variants}");
        let ran = lab.weighbridge(&line);
        let result = ran.json();
        let of = |index: usize| &result["cases"][0]["variants"][index]["result"];
        for index in [1, 2] {
            assert!(of(index)["p_value"].as_f64().unwrap() > 0.05, "{}", ran.transcript());
        }
        let blocks = |index: usize| of(index)["blocks"].as_u64().unwrap();
        // Of three attempts one fails; the other variant has all blocks.
        assert!(blocks(1) <= blocks(2) && blocks(2) > 0, "{}", ran.transcript());
        assert_eq!(lab.weighbridge(&line).json(), result, "from the folder");
    }
}

#[test]
fn a_variant_that_always_fails_keeps_no_other_from_a_decision() {
    let lab = lab();
    let line = format!("ab demo {QUICK} --into R --json -- base broken:cmd:false more:env:FIGURE=1500");
    let ran = lab.weighbridge(&line).expect_code(2);
    let result = ran.json();
    let case = &result["cases"][0];
    assert_eq!(verdicts(&result)[2], ("more".to_owned(), "faster".to_owned()), "{}", ran.transcript());
    assert_eq!((&case["state"], &case["variants"][1]["samples"]), (&"decided".into(), &0.into()));
    assert_eq!(case["variants"][1]["failures"]["attempts"], 3);
    let again = lab.weighbridge(&line).expect_code(2);
    assert_eq!(again.json()["cases"], result["cases"], "it is not tried again without the others");
    let text = lab.weighbridge(&line.replace(" --json", "")).expect_code(2);
    text.expect_stdout("decided after").expect_stdout("3 of 3 attempts failed").expect_stdout("fails more");
    // Also if it fails at last only.
    let count = lab.path("count").display().to_string();
    let late = lab.program("late", &format!("#!/bin/sh\necho >>{count}; [ $(wc -l <{count}) -le 7 ]\n"));
    let late = lab.weighbridge(&format!("ab demo {QUICK} --into L -- base late:cmd:{} same:base", late.display()));
    late.expect_code(3).expect_stdout("decided after").expect_stdout("partial (7 of ");
    // Only failures can be compared with those of the first variant.
    let first = lab.weighbridge(&format!("ab demo {QUICK} --into S -- broken:cmd:false base")).expect_code(3);
    first.expect_stdout("decided by failed attempts").expect_stdout("significantly fewer than of broken (3 of 3)");
}

#[test]
fn invalid_variants_are_refused() {
    let lab = lab();
    let message = |line: &str| {
        let ran = lab.weighbridge(line);
        assert_eq!(ran.code, 1, "{}", ran.transcript());
        ran.err
    };
    let all = [
        message("ab demo -- base"),
        message("ab demo -- base param:knid=b"),
        message("ab demo -- base param:kind=[a,b]"),
        message("ab demo -- base param:kind=a+param:kind=b"),
        message("ab demo -- base env:A=1+env:A=2"),
        message("ab demo -- base knob:tph=never"),
        message("ab demo --max-blocks 4 -- base env:A=1"),
        message("ab nosuch -- base env:A=1"),
    ];
    insta::assert_snapshot!(all.join("\n"));
    let all = [
        message("ab demo -- base bin:/no/such/file"),
        message("ab demo -- base bin:foo=/bin/true"),
        message("ab steady -- base bin:/bin/true"),
    ];
    insta::assert_snapshot!("programs", all.join("\n"));
}

#[test]
fn resuming_with_other_variants_is_refused() {
    let lab = lab();
    let program = lab.write("bin/slow", "#!/bin/sh\necho 500\n");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let line = format!("ab demo {QUICK} --max-blocks 8 --into R -- base bin:{}", program.display());
    lab.weighbridge(&line).expect_code(2);
    // Another program at the same path.
    lab.write("bin/slow", "#!/bin/sh\necho 1500\n");
    lab.weighbridge(&line).expect_code(1).expect_stderr("was measured in this folder with another `expr`");
    for other in ["--max-blocks 9 --into R -- base env:FIGURE=1", "--max-blocks 8 --into R -- base env:A=1"] {
        lab.weighbridge(&format!("ab demo {QUICK} {other}")).expect_code(1).expect_stderr("R holds another plan");
    }
    lab.weighbridge(&format!("calibrate demo {QUICK} --into R")).expect_code(1).expect_stderr("R holds another plan");
}

#[test]
fn secrets_of_variants_are_not_recorded() {
    let lab = lab();
    let line =
        format!("ab demo {QUICK} --max-blocks 8 --into R -- base env:API_TOKEN=hunter2 cmd:true;#password=hunter3");
    assert_ne!(lab.weighbridge(&line).code, 1);
    let mut folders = vec![lab.path("R")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path())
            } else {
                let text = String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()).into_owned();
                assert!(!text.contains("hunter"), "{}", entry.path().display());
            }
        }
    }
}

#[test]
fn calibration_can_be_extended_with_more_runs() {
    let lab = lab();
    let ran = lab.weighbridge(&format!("calibrate demo {QUICK} --runs 2 --samples 6 --into R --json")).expect_code(0);
    let result = ran.json();
    let case = &result["cases"][0];
    assert_eq!((&case["runs"], &case["boots"], &case["calibration"]["samples"]), (&2.into(), &1.into(), &24.into()));
    let orders = case["calibration"]["designs"].as_array().unwrap();
    assert_eq!(orders.len(), 3, "{orders:?}");
    let of = |index: usize| orders[index]["beyond_chance"]["total"].clone();
    assert_eq!([of(0), of(1), of(2)], [2, 2, 1]);
    assert!(result.get("added").is_none(), "all are of one command: {result}");
    let more = lab.weighbridge(&format!("calibrate demo {QUICK} --runs 3 --samples 6 --into R")).expect_code(0);
    for expected in ["36 samples in 3 runs of 1 boot, ", "; added last: run-002", "interleaved, ABBA", "run to run"] {
        more.expect_stdout(expected);
    }
}

/// A test whose program is built by one of two build tools.
const BUILT: &str = r#"
name = "made"
summary = "the figure of a program that is built first"
version = 1
command = ["{scratch}/program"]

[build]
commands = [["{maker}", "program"]]
programs = ["program"]

[[requires]]
program = "{maker}"
package = "{maker}"

[[param]]
name = "maker"
help = "what builds it"
kind = "choice"
choices = ["make-a", "make-b"]
default = "make-a"
axis = true
"#;

/// A build tool whose programs print about this figure; the note makes its hash unique.
fn maker(lab: &Lab, name: &str, figure: u32, note: &str) -> String {
    let program = format!("#!/bin/sh\n{RANDOM}\necho figure: $(({figure} + 0x$random % 10))");
    let text = format!("#!/bin/sh\n# {note}\ncat >$1 <<'END'\n{program}\nEND\nchmod +x $1\n");
    lab.program(name, &text).display().to_string()
}

fn lab_with_makers() -> Lab {
    let lab = Lab::new();
    lab.define_figure("made", BUILT);
    maker(&lab, "make-a", 1000, "a");
    maker(&lab, "make-b", 1000, "b");
    lab
}

#[test]
fn replaced_build_tool_and_built_program_are_recorded() {
    let lab = lab_with_makers();
    let (one, two) = (maker(&lab, "other/one", 1000, "one"), maker(&lab, "other/two", 1500, "two"));
    let line = format!("ab made {QUICK} --into R --json -- a:bin:make-a={one} b:bin:make-a={two}");
    let result = lab.weighbridge(&line).expect_code(0).json();
    assert_eq!(verdicts(&result), pairs(&[("a", "first"), ("b", "faster")]));
    assert_eq!(result["cases"][0]["duplicates"], serde_json::Value::Null);
    let study = lab.weighbridge("summary R --json").json();
    let of = |index: usize, name: &str| study["cells"][index]["provenance"][name].as_str().unwrap().to_owned();
    assert_eq!([of(0, "make-a path"), of(1, "make-a path")], [one, two]);
    assert_ne!(of(0, "make-a sha256"), of(1, "make-a sha256"));
    assert_ne!(of(0, "built program sha256"), of(1, "built program sha256"));
}

#[test]
fn variants_that_measured_the_same_program_cause_a_warning() {
    let lab = lab_with_makers();
    let same = maker(&lab, "other/same", 1000, "same");
    for (folder, variants, differ_in) in [
        ("R", format!("base new:bin:make-a={same}"), "make-a"),
        ("S", "param:maker=make-a param:maker=make-b".to_owned(), "maker"),
    ] {
        let line = format!("ab made {QUICK} --max-blocks 6 --into {folder}");
        let ran = lab.weighbridge(&format!("{line} --json -- {variants}"));
        let duplicates = &ran.json()["cases"][0]["duplicates"];
        assert_eq!(duplicates[0]["differences"], serde_json::json!([differ_in]), "{}", ran.transcript());
        assert_eq!(duplicates[0]["programs"]["program"].as_str().unwrap().len(), 64);
        ran.expect_stderr("ran identical programs: program (SHA-256 ");
        let text = lab.weighbridge(&format!("{line} -- {variants}"));
        for shown in [text, lab.weighbridge(&format!("report {folder}"))] {
            let words: Vec<&str> = shown.out.split_whitespace().collect();
            let expected =
                format!("although they differ in {differ_in}; any difference between their results is noise");
            assert!(words.join(" ").contains(&expected), "{}", shown.transcript());
        }
    }
    let ran = lab.weighbridge(&format!("ab made {QUICK} --max-blocks 6 --into T -- base env:A=1"));
    assert!(!ran.out.contains("identical programs"), "the environment differs: {}", ran.transcript());
}

#[test]
fn replacement_for_an_unused_program_is_refused() {
    let lab = lab_with_makers();
    let file = maker(&lab, "other/one", 1000, "one");
    let message = |test: &str, variant: &str| {
        let mut command = lab.command(&format!("ab {test} {QUICK} -- base"));
        let ran = lab.run_command(command.arg(format!("{variant}={file}")));
        assert_eq!(ran.code, 1, "{}", ran.transcript());
        ran.err.replace(&file, "FILE")
    };
    insta::assert_snapshot!(message("made", "bin:make-b"), @r"
    error: unknown program `make-b`: `made` needs make-a
    help: name the program to replace: `bin:make-a=FILE`
    ");
    insta::assert_snapshot!(message("made:maker=[make-a,make-b]", "bin:make-b"), @r"
    error: `made` needs `make-b` for maker=make-b but not for maker=make-a
    help: measure the cases that need the program separately; elsewhere replacing it has no effect
    ");
    insta::assert_snapshot!(message("made", "bin:make-a or make-b"), @r"
    error: unknown program `make-a or make-b`: `made` needs make-a
    help: name the program to replace: `bin:make-a=FILE`
    ");
    insta::assert_snapshot!(message("made:maker=make-b", "bin:make-b=/nosuch/file+bin:make-b"), @r"
    error: variant `bin:make-b=/nosuch/file+bin:make-b=FILE` sets the program `make-b` twice
    help: each setting may be given once in a variant; remove one of them
    ");
}

#[test]
fn run_refuses_a_replacement_for_an_unused_program() {
    let lab = lab_with_makers();
    let file = maker(&lab, "other/one", 1000, "one");
    let message = |tests: &str, program: &str| {
        let ran = lab.weighbridge(&format!("run {tests} {QUICK} --program {program}={file} --into N"));
        assert_eq!(ran.code, 1, "{}", ran.transcript());
        assert!(!lab.path("N").exists(), "nothing is recorded");
        ran.err.replace(&file, "FILE")
    };
    insta::assert_snapshot!(message("made", "make-b"), @r"
    error: unknown program `make-b`: `made` needs make-a
    help: name the program to replace: `--program make-a=FILE`
    ");
    insta::assert_snapshot!(message("made steady", "make-b"), @r"
    error: unknown program `make-b`: `made` needs make-a; `steady` needs none
    help: name the program to replace: `--program make-a=FILE`
    ");
    insta::assert_snapshot!(message("steady", "make-a"), @r"
    error: `steady` declares no required programs
    help: a definition lists its programs under [[requires]]; a parameter may select among them
    ");
}

#[test]
fn replacement_applies_to_the_cells_that_use_the_program() {
    let lab = lab_with_makers();
    let file = maker(&lab, "other/one", 1000, "one");
    let line = format!("run made:maker=[make-a,make-b] steady {QUICK} --samples 6 --program make-a={file} --into R");
    lab.weighbridge(&line).expect_code(0);
    let study = lab.weighbridge("summary R --json").json();
    let paths = |index: usize| {
        let provenance = study["cells"][index]["provenance"].as_object().unwrap().iter();
        let paths = provenance.filter(|(name, _)| name.ends_with(" path"));
        paths.map(|(name, path)| (name.clone(), path.as_str().unwrap().to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(paths(0), [("make-a path".to_owned(), file)]);
    assert_eq!(paths(1), [("make-b path".to_owned(), lab.path("bin/make-b").display().to_string())]);
    assert_eq!(paths(2), []);
}

#[test]
fn equal_variants_of_a_test_without_programs_cause_a_warning() {
    let lab = Lab::new();
    let ran = lab.weighbridge(&format!("ab steady {QUICK} --max-blocks 6 --into R --json -- base base"));
    ran.expect_stderr("ran identical programs: definition (SHA-256 ");
    let ran = lab.weighbridge(&format!("ab steady {QUICK} --max-blocks 6 --into S --json -- base env:A=1"));
    assert!(!ran.err.contains("identical programs"), "{}", ran.transcript());
}

#[test]
fn compilers_are_compared_by_name_and_by_path() {
    if std::process::Command::new("gcc").arg("--version").output().is_err() {
        return wb_test_skip::skip!("no program gcc");
    }
    let lab = Lab::new();
    let gcc = lab.run_command(std::process::Command::new("sh").args(["-c", "command -v gcc"])).out.trim().to_owned();
    let slow = lab.program("slow-gcc", &format!("#!/bin/sh\nexec {gcc} \"$@\" -O0\n")).display().to_string();
    let quick = "--min-time 20ms --warm-up 0 --attempts 30 --max-blocks 6";
    let line = format!("ab compile-c {quick} --into R --json -- a:bin:gcc={gcc} b:bin:gcc={slow}");
    let result = lab.weighbridge(&line);
    assert_eq!(result.json()["cases"][0]["duplicates"], serde_json::Value::Null, "{}", result.transcript());
    let study = lab.weighbridge("summary R --json").json();
    let of = |index: usize, name: &str| study["cells"][index]["provenance"][name].as_str().unwrap().to_owned();
    assert_eq!([of(0, "gcc path"), of(1, "gcc path")], [gcc.clone(), slow.clone()]);
    assert_ne!(of(0, "built affine sha256"), of(1, "built affine sha256"));
    assert!(of(0, "gcc version").contains('.'));
    let plan = lab.weighbridge(&format!("plan compile-c:cc=[gcc,{slow},no-such-cc] --json"));
    let cells = plan.json()["cells"].clone();
    let unsupported: Vec<bool> = cells.as_array().unwrap().iter().map(|cell| cell["unsupported"].is_string()).collect();
    assert_eq!(unsupported, [false, false, true], "{}", plan.transcript());
}

#[test]
fn samples_is_the_exact_number_of_samples_of_each_variant() {
    let lab = Lab::new();
    let ran = lab.weighbridge(&format!("ab steady {QUICK} --samples 7 --into R --json -- base param:kind=b"));
    assert!([0, 2, 3].contains(&ran.code), "{}", ran.transcript());
    let mut samples = std::collections::BTreeMap::<String, usize>::new();
    for event in lab.journal("R") {
        if event["event"] == "attempt-ended" && event["purpose"] == "sample" {
            *samples.entry(event["cell"].to_string()).or_default() += 1;
        }
    }
    assert_eq!(samples.values().copied().collect::<Vec<_>>(), [7, 7], "{samples:?}");
    lab.weighbridge("ab steady --samples 7 --max-blocks 9 -- base base")
        .expect_code(1)
        .expect_stderr("`--samples <N>` and `--max-blocks <N>` are mutually exclusive");
}
