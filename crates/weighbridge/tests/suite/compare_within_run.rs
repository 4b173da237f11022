//! `compare RUN --by`: parts of one run compared with each other.

use insta::assert_snapshot;

use crate::compare_evidence::words;
use crate::lab::{FIGURE, Lab};

const QUICK: &str = "--min-time 1ms --warm-up 0 --samples 8 --retakes 0 -q";

/// A test whose figure is its speed, on a system that gets faster with every sample.
fn define_level(lab: &Lab) {
    let count = lab.path("count").display().to_string();
    let script = format!(
        "n=$(cat {count} 2>/dev/null || echo 0); echo $((n + 1)) >{count}; echo figure: $(((100 + 5 * n) * {{speed}}))"
    );
    define_with_speed(lab, &script);
}

/// A test of this script, with a parameter `speed`.
fn define_with_speed(lab: &Lab, script: &str) {
    let head = "name = \"level\"\nsummary = \"a figure that rises\"\nversion = 1\n";
    let param = "[[param]]\nname = \"speed\"\naliases = [\"s\"]\nhelp = \"its speed\"\nkind = \"integer\"\nmin = 1\n\
                 default = 100\naxis = true\n";
    let script = serde_json::Value::from(script);
    lab.define("level", &format!("{head}command = [\"sh\", \"-c\", {script}]\n{param}{FIGURE}"));
}

/// The lines of a terminal's output up to the first check.
fn beginning(text: &str, lines: usize) -> String {
    text.lines().take(lines).map(|line| format!("{line}\n")).collect()
}

#[test]
fn cells_that_differ_in_a_parameter_are_compared_with_the_first() {
    let lab = Lab::new();
    lab.weighbridge(&format!("run steady:kind=[a,b,c] {QUICK} --into R")).expect_code_of(&[0, 3]);
    let equal = lab.weighbridge("compare R --by kind").expect_code(0);
    assert_snapshot!(beginning(&equal.out, 1), @"within one run, `kind=b` and `kind=a`: one check, equivalent; `kind=b` is faster by an estimate of 1.0 %, within the threshold. `kind=c` and `kind=a`: one check, equivalent; `kind=c` is faster by an estimate of 2.1 %, within the threshold");
    let better = lab.weighbridge("compare R --by kind --threshold 0.5 --html several.html").expect_code(0);
    let page = lab.read("several.html");
    assert!(page.contains("<h1>kind=a → 2 other values</h1>"));
    // A column for each part; `*` stands for what differs.
    let head = "title=\"kind=a\">kind=a</th><th scope=\"col\" title=\"kind=b\">kind=b<small>%</small></th><th scope=\"col\" \
                title=\"kind=c\">kind=c<small>%</small></th>";
    assert!(page.contains(head), "{page}");
    assert_eq!(page.matches("<bdi>kind=*</bdi>").count(), 1, "both parts share a row: {page}");
    assert!(page.contains("<i>shift</i> +1.03") && page.contains("<i>shift</i> +2.06"), "{page}");
    assert_snapshot!(beginning(&better.out, 7).trim_end(), @r"
    within one run, `kind=b` is 1.0 % faster (1.0 %) in steady kind=b (figure) than `kind=a`. `kind=c` is 2.1 % faster (2.1 %) in steady kind=c (figure) than `kind=a`

    kind=a → kind=b, kind=c; statistics decide from 6 samples a side
    differences within +0.5 / -0.5 % do not matter; no noise between runs, as both sides are of one run;
    intervals hold with 95 % confidence or more; tolerances of 5 % and 5 points

    faster       Localhost/steady/0000:kind=b/throughput/figure#mean
    ");
    let reason = "kind=a → kind=b: mean 97 /s → 98 /s; shift +1.03 % [+1.03, +1.03]; threshold +0.5 / -0.5 %; 8 pairs of \
                  samples; within one run, paired by round";
    assert!(words(&better.out).contains(reason), "{}", better.out);
    lab.weighbridge("compare R --by kind --threshold 0.5 --fail-on-gain").expect_code(2);
    let worse = lab.weighbridge("compare latest --by kind --reference c --threshold 0.5").expect_code(2);
    worse.expect_stdout("slower       Localhost/steady/0000:kind=a/").expect_stdout("kind=c → kind=b");
    assert!(!worse.out.contains("averages by"), "{}", worse.out);
    assert!(
        !words(&worse.out).contains("regress") && words(&worse.out).contains("worse by statistics"),
        "{}",
        worse.out
    );
    lab.weighbridge("compare --by kind -q").expect_code(0);
    // A selection leaves out what is not compared.
    let selected = lab.weighbridge("compare R --by kind --select kind=[b,c] --json").expect_code(0).json();
    assert_eq!(selected["within_run"]["reference"], "kind=b", "{selected}");
    assert_eq!(selected["within_run"]["judged"], serde_json::json!(["kind=c"]));
}

#[test]
fn every_output_names_the_sides_of_a_check() {
    let lab = Lab::new();
    lab.weighbridge(&format!("run steady:kind=[a,c] {QUICK} --into R")).expect_code_of(&[0, 3]);
    let files = "--json --junit j.xml --markdown m.md --html p.html --csv c --svg plots";
    let outcome =
        lab.weighbridge(&format!("compare R --by kind --reference c --threshold 1 {files}")).expect_code(2).json();
    let check = &outcome["checks"][0];
    assert_eq!(check["sides"], serde_json::json!(["kind=c", "kind=a"]), "{check}");
    assert_eq!((&check["verdict"], &check["final_verdict"]), (&"slower".into(), &"slower".into()), "one vocabulary");
    assert_eq!((&check["paired"], &check["samples"]), (&true.into(), &serde_json::json!([8, 8])));
    assert_eq!(check["run_noise"], 0.0);
    assert_eq!(outcome["groups"], serde_json::json!([]), "an average over unequal parts means nothing");
    let junit = lab.read("j.xml");
    assert!(junit.contains("<testsuites name=\"kind=c → kind=a\" tests=\"2\" failures=\"1\""), "{junit}");
    assert!(junit.contains("<failure message=\"slower: kind=c → kind=a: mean"), "{junit}");
    let comment = lab.read("m.md");
    assert!(comment.starts_with("### `kind=c` → `kind=a`\n\nwithin one run, `kind=a` is 2.0 % slower"), "{comment}");
    assert!(comment.contains("**1 worse**") && comment.contains("| slower | `Localhost/steady"), "{comment}");
    let page = lab.read("p.html");
    for part in ["within one run", "1 worse; ", "2, worse by statistics"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    // Different parts have no common average.
    assert!(!page.contains(">score</th>") && !page.contains(">groups regressed</th>"), "{page}");
    let csv = lab.read("c.csv");
    assert!(csv.lines().next().is_some_and(|head| head.ends_with(",reference,judged")), "{csv}");
    assert!(csv.lines().nth(1).is_some_and(|row| row.ends_with(",kind=c,kind=a")), "{csv}");
    assert!(lab.path("plots/Localhost-steady-0000-throughput-figure.svg").is_file());
    // Between builds nothing changes.
    let builds = lab.weighbridge("compare R R --csv b --json").expect_code(0).json();
    assert!(builds.get("within_run").is_none() && builds["checks"][0].get("sides").is_none(), "{builds}");
    assert!(!lab.read("b.csv").contains("judged"));
}

/// The attempt that was under way leaves its cell with one turn less than the other.
#[test]
fn rounds_stay_pairs_after_the_run_was_killed() {
    for seed in 1..4 {
        let lab = Lab::new();
        let [count, killed] = ["count", "killed"].map(|name| lab.path(name).display().to_string());
        let script = format!(
            "n=$(cat {count} 2>/dev/null || echo 0); \
             if [ $n = 7 ] && ! [ -e {killed} ]; then touch {killed}; kill -KILL $(cut -d' ' -f4 /proc/$PPID/stat); sleep 60; fi; \
             echo $((n + 1)) >{count}; echo figure: $(((100 + 5 * n) * {{speed}}))"
        );
        define_with_speed(&lab, &script);
        let run = format!("run level:speed=[100,101] {QUICK} --seed {seed} --into R");
        lab.weighbridge(&run).expect_code(-1);
        lab.weighbridge(&run).expect_code_of(&[0, 3]);
        // Of eight rounds one was interrupted.
        let compared = lab.weighbridge("compare R --by speed --json -v").json();
        let lines = lab.weighbridge("compare R --by speed -v");
        let shown = words(&lines.out);
        assert!(shown.contains("; 7 pairs of samples;") && shown.contains("paired by round"), "{}", lines.transcript());
        // Within a round the system gets faster by up to 4.5 %, in either direction.
        let ratio = compared["checks"][0]["ratio"].as_f64().unwrap();
        assert!((0.95..1.07).contains(&ratio), "{ratio}");
    }
}

/// Findings about the reference are about its own cell.
#[test]
fn findings_are_named_by_the_cell_that_has_them() {
    let lab = Lab::new();
    // The figure of the reference is always the same.
    define_with_speed(&lab, "echo figure: $(({speed} == 100 ? 100 : 100 + $(date +%N | cut -c 5-6 | sed s/^0//) % 9))");
    lab.weighbridge(&format!("run level:speed=[100,101] {QUICK} --into R")).expect_code_of(&[0, 3]);
    let found = words(&lab.weighbridge("compare R --by speed").out);
    assert!(found.contains("`speed=100`, Localhost/level/0000:speed=100: figure is exactly 100"), "{found}");
    lab.weighbridge(&format!("run level:speed=[100,101,102] {QUICK} --into S")).expect_code_of(&[0, 3]);
    let out = lab.weighbridge("compare S --by speed --json").json();
    assert_eq!(out["checks"][0]["reference_cell"], "Localhost/level/0000:speed=100");
}

#[test]
fn pairs_remove_a_drift_that_cells_one_after_the_other_have() {
    let lab = Lab::new();
    define_level(&lab);
    let tests = "level:id=old,speed=100 level:id=new,speed=100";
    lab.weighbridge(&format!("run {tests} {QUICK} --into rounds")).expect_code_of(&[0, 3]);
    std::fs::remove_file(lab.path("count")).unwrap();
    lab.weighbridge(&format!("run {tests} {QUICK} --order sequential --into sequence")).expect_code_of(&[0, 3]);
    let paired = lab.weighbridge("compare rounds --by id --threshold 20 --json").expect_code(0).json();
    assert_eq!((&paired["checks"][0]["paired"], &paired["totals"]["better"]), (&true.into(), &0.into()), "{paired}");
    let unpaired = lab.weighbridge("compare sequence --by id --threshold 20");
    assert!(
        unpaired.out.contains("faster ") && words(&unpaired.out).contains("not in the same rounds"),
        "{}",
        unpaired.out
    );
}

#[test]
fn a_failed_attempt_costs_the_pair_of_its_round_and_no_other() {
    let lab = Lab::new();
    let count = lab.path("count").display().to_string();
    // The third attempt of one side fails.
    let script = format!(
        "n=$(cat {count}{{speed}} 2>/dev/null || echo 0); echo $((n + 1)) >{count}{{speed}}; \
         [ $n-{{speed}} != 2-101 ] || exit 1; echo figure: $((1000 + n % 3))"
    );
    define_with_speed(&lab, &script);
    let tests = "level:id=old,speed=100 level:id=new,speed=101";
    // Whatever the order within rounds.
    for seed in 1..4 {
        let sampling = format!("{QUICK} --attempts 2 --seed {seed}");
        lab.weighbridge(&format!("run {tests} {sampling} --into R{seed}")).expect_code_of(&[0, 3]);
        let compared = lab.weighbridge(&format!("compare R{seed} --by id --threshold 20 --json")).json();
        assert_eq!(compared["checks"][0]["samples"], serde_json::json!([7, 7]), "{compared:#}");
        for speed in [100, 101] {
            std::fs::remove_file(lab.path(&format!("count{speed}"))).unwrap();
        }
    }
}

#[test]
fn tests_with_ids_are_compared_in_the_order_of_the_plan() {
    let lab = Lab::new();
    define_level(&lab);
    let tests = "level:id=old,speed=100 level:id=new,speed=150 steady:id=other";
    lab.weighbridge(&format!("run {tests} {QUICK} --into R")).expect_code_of(&[0, 3]);
    let ran = lab.weighbridge("compare R --by id");
    ran.expect_stdout("old → new").expect_stdout("faster       Localhost/level/new:speed=150/");
    // The figure of another test has the same name.
    ran.expect_stdout("Localhost/steady/other:kind=a/throughput/figure");
    lab.weighbridge("compare R --by id --reference new --select level").expect_code(2).expect_stdout("new → old");
}

#[test]
fn an_alias_is_a_parameter_and_all_other_parameters_are_equal() {
    let lab = Lab::new();
    define_level(&lab);
    let tests = "level:speed=[100,150] steady:kind=[a,b] level:speed=100,env=[\"X=1\"]";
    lab.weighbridge(&format!("run {tests} {QUICK} --into R")).expect_code_of(&[0, 3]);
    let ran = lab.weighbridge("compare R --by s").expect_code(0);
    ran.expect_stdout("speed=100 → speed=150");
    assert!(
        words(&ran.out).contains("1 cell not compared, since none differs from `speed=100` in speed alone"),
        "{}",
        ran.out
    );
    let page = lab.weighbridge("compare R --by s --html - --json").out;
    assert!(page.contains("1 cell not compared"), "{page}");
}

#[test]
fn a_failed_cell_fails_the_comparison_with_its_reason() {
    let lab = Lab::new();
    let head = "name = \"fragile\"\nsummary = \"fails for b\"\nversion = 1\n";
    let param = "[[param]]\nname = \"kind\"\nhelp = \"which\"\nkind = \"choice\"\nchoices = [\"a\", \"b\"]\ndefault = \"a\"\naxis = true\n";
    lab.define_figure(
        "fragile",
        &format!("{head}command = [\"sh\", \"-c\", \"test $1 = a && echo figure: 5\", \"sh\", \"{{kind}}\"]\n{param}"),
    );
    lab.weighbridge(&format!("run fragile:kind=[a,b] {QUICK} --into R")).expect_code(3);
    for (reference, word, code) in [("a", "worse        ", 2), ("b", "invalid      ", 3)] {
        let ran = lab.weighbridge(&format!("compare R --by kind --reference {reference}")).expect_code(code);
        ran.expect_stdout(&format!("{word}Localhost/fragile/")).expect_stdout("`kind=b` failed: ");
    }
}

#[test]
fn what_cannot_be_compared_is_an_error_that_says_why() {
    let lab = Lab::new();
    define_level(&lab);
    lab.weighbridge(&format!("run steady:kind=[a,b] level {QUICK} --into R")).expect_code_of(&[0, 3]);
    lab.weighbridge(&format!("run steady:kind=a steady:kind=b,env=[\"X=1\"] {QUICK} --into S")).expect_code_of(&[0, 3]);
    let transcript = |line: &str| lab.weighbridge(line).transcript();
    assert_snapshot!(transcript("compare R --by knd"), @r"
    exit 1
    error: no cell of `R` has a parameter `knd`
    help: did you mean `kind`? parameters that vary in this run: kind
    ");
    assert_snapshot!(transcript("compare R --by speed"), @r"
    exit 4
    error: nothing to compare: all cells of `R` have `speed=100`
    help: parameters that vary in this run: kind
    ");
    assert_snapshot!(transcript("compare R --by kind --reference c"), @r"
    exit 1
    error: unknown value `c` in `R`
    help: expected one of a, b
    ");
    assert_snapshot!(transcript("compare R --by worker"), @r"
    exit 4
    error: no cell of `R` was measured by several workers
    help: `run --hosts HOST,HOST` measures on several workers at the same time
    ");
    assert_snapshot!(transcript("compare R S --by kind"), @r"
    exit 1
    error: --by compares parts of one run: expected one run folder, found 2
    help: without --by, run folders are compared with each other: `weighbridge compare OLD NEW`
    ");
    assert_snapshot!(transcript("compare x=R,S --by kind"), @r"
    exit 1
    error: --by compares parts of one run: expected one run folder, found 2
    help: without --by, run folders are compared with each other: `weighbridge compare OLD NEW`
    ");
    assert_snapshot!(transcript("compare S --by kind"), @r"
    exit 4
    error: no two cells of `S` differ in `kind` alone: the most similar ones also differ in env
    help: --allow-different env compares them all the same
    ");
    assert_snapshot!(transcript("compare S --by id --select kind=a"), @r"
    exit 4
    error: nothing to compare: all cells of `S` are of the test `steady/0000`
    help: no parameter varies in this run; --by worker and --by id compare workers and tests
    ");
    assert_snapshot!(transcript("compare R"), @r"
    exit 1
    error: too few builds: expected two or more
    help: the first build is the reference, the last one is judged; --by compares parts of one run
    ");
    lab.weighbridge("compare S --by kind --allow-different env").expect_code(0).expect_stdout("equivalent");
    for flag in ["--map a=b", "--map-value a=b", "-m x.json", "--run-noise 3", "--n-out-of-results 1"] {
        lab.weighbridge(&format!("compare R --by kind {flag}")).expect_code(1).expect_stderr("mutually exclusive");
    }
    lab.weighbridge("compare R R --reference a").expect_code(1).expect_stderr("--by");
}

#[test]
fn different_metrics_are_an_error() {
    let lab = Lab::new();
    let head = "name = \"latency\"\nsummary = \"another metric\"\nversion = 1\ncommand = [\"echo\", \"took: 3\"]\n";
    let metric =
        "[[metric]]\nname = \"took\"\nclass = \"latency\"\nunit = \"s\"\nprimary = true\nregex = 'took: (\\S+)'\n";
    lab.define("latency", &format!("{head}{metric}"));
    lab.weighbridge(&format!("run steady latency {QUICK} --into R")).expect_code_of(&[0, 3]);
    assert_snapshot!(lab.weighbridge("compare R --by id").transcript(), @r"
    exit 4
    error: the cells that differ in id have no metric in common: `Localhost/steady/0000:kind=a` has throughput/figure and `Localhost/latency/0000:-` has latency/took
    ");
}

/// A test with a factor by which its figure is multiplied, a size and a mode, neither of which matters.
fn define_scaled(lab: &Lab) {
    let head = "name = \"scaled\"\nsummary = \"a figure times a factor\"\nversion = 1\n\
                command = [\"sh\", \"-c\", \"echo figure: 1$(echo {factor} | tr -d .)\"]\n";
    let param =
        |name: &str, rest: &str| format!("[[param]]\nname = \"{name}\"\nhelp = \"its {name}\"\naxis = true\n{rest}\n");
    let params = [
        param("factor", "kind = \"number\"\ndefault = 1.0"),
        param("size", "kind = \"bytes\"\ndefault = \"4k\""),
        param("mode", "kind = \"choice\"\nchoices = [\"x\", \"y\"]\ndefault = \"x\""),
    ];
    lab.define("scaled", &format!("{head}{}{FIGURE}", params.concat()));
}

#[test]
fn a_reference_is_read_as_the_parameter_reads_it() {
    let lab = Lab::new();
    define_scaled(&lab);
    lab.weighbridge(&format!("run scaled:factor=[1,1.5],size=[4k,8k] {QUICK} --into R")).expect_code_of(&[0, 3]);
    for reference in ["1", "1.0"] {
        let ran = lab.weighbridge(&format!("compare R --by factor --reference {reference}"));
        ran.expect_stdout("factor=1 → factor=1.5");
    }
    for reference in ["8k", "8192"] {
        lab.weighbridge(&format!("compare R --by size --reference {reference}")).expect_stdout("size=8k → size=4k");
    }
    let unknown = lab.weighbridge("compare R --by factor --reference 2").expect_code(1);
    unknown.expect_stderr("unknown value `2` in `R`").expect_stderr("expected one of 1, 1.5");
}

#[test]
fn an_axis_of_one_test_is_compared_with_the_single_value_of_another() {
    let lab = Lab::new();
    define_scaled(&lab);
    let tests = "scaled:id=old,factor=[1,1.5],size=4k scaled:id=new,factor=[1,1.5],mode=y,size=[4k,8k]";
    lab.weighbridge(&format!("run {tests} {QUICK} --into R")).expect_code_of(&[0, 3]);
    let ran = lab.weighbridge("compare R --by id").expect_code(0);
    ran.expect_stdout("old → new");
    assert!(words(&ran.out).contains("2 cells not compared"), "{}", ran.out);
    let typo = lab.weighbridge("compare R --by factor --allow-different mod").expect_code(1);
    typo.expect_stderr("unknown parameter `mod` in `R`").expect_stderr("did you mean `mode`?");
}
