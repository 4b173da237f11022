//! `bisect`: finding the revision that changed performance.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use insta::assert_snapshot;

use crate::lab::{CommandResult, Lab};

/// A test whose figure is read from a file of the repository.
const DEMO: &str = r#"
name = "demo"
summary = "a figure read from a file"
version = 1
command = ["sh", "-c", "read -r figure <{file}; IFS=- read -r random _ </proc/sys/kernel/random/uuid; echo figure: $((figure + 0x$random % 5))"]

[[param]]
name = "file"
help = "the file"
kind = "text"
default = "none"

"#;

/// A lab with a repository in which each commit has one of these figures.
fn lab(figures: &[&str]) -> Lab {
    let lab = Lab::new();
    lab.define_figure("demo", DEMO);
    std::fs::create_dir(lab.path("repo")).unwrap();
    git(&lab, &["init", "--quiet", "--initial-branch=main"]);
    for (index, figure) in figures.iter().enumerate() {
        lab.write("repo/figure", &format!("{figure}\n"));
        lab.write("repo/number", &format!("{index}\n"));
        git(&lab, &["add", "-A"]);
        git(&lab, &["commit", "--quiet", "-m", &format!("commit {index}")]);
        git(&lab, &["tag", &format!("v{index}")]);
    }
    lab
}

fn git(lab: &Lab, words: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=A", "-c", "user.email=a@example.org"])
        .args(words)
        .current_dir(lab.path("repo"))
        .output()
        .unwrap();
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Bisects between two revisions, with additional flags before `--`.
fn bisect(lab: &Lab, good: &str, bad: &str, more: &str) -> CommandResult {
    let file = lab.path("repo/figure");
    lab.weighbridge(&format!(
        "bisect run --repo repo --into B --good {good} --bad {bad} {more} -- demo:file={} --min-time 1ms --warm-up 0 --samples 8",
        file.display()
    ))
}

fn assert_untouched(lab: &Lab) {
    assert_eq!(git(lab, &["symbolic-ref", "--short", "HEAD"]), "main");
    assert_eq!(git(lab, &["status", "--porcelain"]), "");
    assert!(!lab.path("repo/.git/BISECT_LOG").exists());
}

#[test]
fn first_bad_revision_is_found_and_results_are_recorded() {
    let lab = lab(&["1000", "1000", "1000", "1000", "800", "800", "800", "800"]);
    let ran = bisect(&lab, "v0", "v7", "").expect_code(0);
    assert!(ran.out.starts_with("first bad: ") && ran.out.trim_end().ends_with("commit 4"), "{}", ran.transcript());
    assert_untouched(&lab);
    let shown = lab.weighbridge("bisect show --into B --json").json();
    let steps = shown["steps"].as_array().unwrap();
    assert_eq!(steps.iter().filter(|step| step["verdict"]["kind"] == "given").count(), 2);
    assert_eq!(steps.len(), 6, "{steps:?}");
    assert_eq!(steps[5]["verdict"]["kind"], "confirmed");
    for step in steps {
        let folder = format!("B/results/{}", step["name"].as_str().unwrap());
        assert!(lab.path(&folder).join("run.json").is_file(), "{folder}");
    }
    // Nothing is measured twice.
    let again = bisect(&lab, "v0", "v7", "");
    assert_eq!((again.code, again.out), (0, ran.out));
    assert_eq!(&lab.weighbridge("bisect show --into B --json").json()["steps"], &shown["steps"]);
}

#[test]
fn revisions_that_cannot_be_built_are_skipped() {
    let lab = lab(&["1000", "1000", "broken", "800", "800"]);
    let mut command = lab.command("bisect run --repo repo --into C --good v0 --bad v4");
    let file = format!("demo:file={}", lab.path("repo/figure").display());
    command.args([
        "--build",
        "! grep broken figure",
        "--",
        &file,
        "--min-time",
        "1ms",
        "--warm-up",
        "0",
        "--samples",
        "8",
    ]);
    let ran = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&ran.stderr);
    // Only the skipped commit and the one after it are left, so the first bad one is ambiguous.
    assert_eq!(ran.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("skipped: cannot be built"), "{stderr}");
    assert_untouched(&lab);
}

#[test]
fn of_several_changes_one_is_named() {
    let lab = lab(&["1000", "1000", "900", "900", "900", "900", "810", "810"]);
    let ran = bisect(&lab, "v0", "v7", "").expect_code(0);
    assert!(ran.out.trim_end().ends_with("commit 2"), "{}", ran.transcript());
    let beyond = self::lab(&["1000", "1000", "2000", "2000", "800", "800"]);
    let ran = bisect(&beyond, "v0", "v5", "").expect_code(0);
    assert!(ran.out.trim_end().ends_with("commit 4"), "{}", ran.transcript());
}

/// Bisects three revisions, each built by these commands; returns what is said when no commit is confirmed.
fn bisect_without_a_culprit(lab: &Lab, build: &str) -> String {
    let file = format!("demo:file={}", lab.path("repo/built").display());
    let mut command = lab.command("bisect run --repo repo --into B --good v0 --bad v2");
    command.args(["--build", build, "--", &file, "--min-time", "1ms", "--warm-up", "0", "--samples", "8"]);
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    stderr
}

#[test]
fn a_commit_that_does_not_differ_from_its_parent_is_not_named() {
    let lab = lab(&["1000", "1000", "800"]);
    // The first build of the revision in the middle is as slow as the bad revision, those of the confirmation are not.
    let build = "cp figure built; git log -1 --format=%s | grep -q 'commit 1' && test ! -e once && touch once && \
        echo 800 > built; true";
    let stderr = bisect_without_a_culprit(&lab, build);
    assert!(stderr.contains("no single commit explains the difference"), "{stderr}");
}

#[test]
fn a_commit_that_changes_in_the_other_direction_is_refuted_as_that() {
    let lab = lab(&["1000", "1000", "800"]);
    std::fs::write(lab.path("repo/.git/info/exclude"), "built\nsearched\n").unwrap();
    // In the search, the revision in the middle is as fast as the good one, so that the last one is the first bad one. Then
    // their figures are exchanged.
    let build = "cp figure built; subject=$(git log -1 --format=%s); test ! -e searched || case $subject in \
        *1) echo 800 >built;; *2) echo 1000 >built;; esac; case $subject in *1) touch searched;; esac";
    let stderr = bisect_without_a_culprit(&lab, build);
    for text in
        ["commit 2, which differs from its parent in the other direction", "refuted: differs from its parent in"]
    {
        assert!(stderr.contains(text), "{stderr}");
    }
}

#[test]
fn step_reports_the_nearest_end_as_exit_status() {
    let lab = lab(&["1000", "1000", "800"]);
    assert_eq!(bisect(&lab, "v0", "v2", "").code, 0);
    let step = |figure: &str, name: &str| {
        lab.write("repo/figure", figure);
        lab.weighbridge(&format!("bisect step --into B {name}")).code
    };
    assert_eq!([step("990", "x"), step("810", "y")], [0, 1]);
    assert_eq!(
        lab.weighbridge("bisect step --into nothing").code,
        128,
        "git aborts at this status instead of taking it for bad"
    );
}

#[test]
fn a_difference_below_the_threshold_is_shown_with_the_threshold_that_finds_it() {
    let lab = lab(&["1000", "1000", "970", "970"]);
    let ran = bisect(&lab, "v0", "v3", "").expect_code(3);
    ran.expect_stderr("; threshold 5 %");
    let word_after = |text: &str| {
        let word = ran.err.split(text).nth(1).and_then(|rest| rest.split(' ').next());
        word.map(str::to_owned).unwrap_or_else(|| panic!("no `{text}`: {}", ran.transcript()))
    };
    // The figures of the test vary by up to 1 %.
    let difference: f64 = word_after("differs by ").parse().unwrap();
    assert!((-3.5..-2.5).contains(&difference), "{}", ran.transcript());
    let advised = word_after("--threshold ");
    std::fs::remove_dir_all(lab.path("B")).unwrap();
    let found = bisect(&lab, "v0", "v3", &format!("--threshold {advised}")).expect_code(0);
    assert!(found.out.trim_end().ends_with("commit 2"), "{}", found.transcript());
}

#[test]
fn two_runs_of_each_revision_can_decide() {
    let lab = lab(&["1000", "1000", "800"]);
    let ran = bisect(&lab, "v0", "v2", "--runs 2").expect_code(0);
    assert!(ran.out.trim_end().ends_with("commit 2"), "{}", ran.transcript());
}

#[test]
fn equal_ends_and_folders_with_other_settings_are_refused() {
    let lab = lab(&["1000", "1000", "1000"]);
    bisect(&lab, "v0", "v2", "").expect_code(3).expect_stderr("no significant difference");
    assert_untouched(&lab);
    bisect(&lab, "v1", "v2", "").expect_code(1).expect_stderr("holds a bisection with other settings");
    lab.write("repo/figure", "changed");
    bisect(&lab, "v0", "v2", "").expect_code(1).expect_stderr("uncommitted changes: M figure");
}

#[test]
fn a_bisection_of_the_user_is_left_alone() {
    let lab = lab(&["1000", "2000"]);
    // None of its revisions is marked yet.
    git(&lab, &["bisect", "start"]);
    bisect(&lab, "v0", "v1", "").expect_code(1).expect_stderr("already in progress");
    git(&lab, &["bisect", "log"]);
    git(&lab, &["bisect", "reset"]);
    assert_untouched(&lab);
}

#[test]
fn unknown_revisions_repositories_and_arguments_are_refused() {
    let lab = lab(&["1000"]);
    let plain = |line: &str| {
        let transcript = lab.weighbridge(line).transcript();
        transcript.replace(&format!("{}", lab.path("").display()), "LAB/")
    };
    let lines = [
        "bisect run --repo repo --into B --good nosuch --bad v0 -- demo",
        "bisect run --repo B --into C --good v0 --bad v0 -- demo",
        "bisect run --repo config --into C --good v0 --bad v0 -- demo",
        "bisect run --repo repo --into B --good v0 --bad v0 -- demo --samplse 3",
    ];
    assert_snapshot!(lines.map(plain).join("\n"), @"
    exit 1
    error: unknown revision `nosuch`
    help: expected a commit, branch or tag of LAB/repo

    exit 1
    error: cannot read repository `LAB/B`: no such folder
    help: --repo selects the repository

    exit 1
    error: cannot read repository `LAB/config`: not a git repository
    help: --repo selects the repository

    exit 1
    error: unknown option `--samplse`
    help: the arguments after `--` are those of `weighbridge run`
    ");
    assert!(!lab.path("B").exists());
}

#[test]
fn imported_runs_of_one_sample_are_single_values() {
    let lab = lab(&["1000", "1000", "900", "900"]);
    let result = r#"{"context": {}, "benchmarks": [{"name": "BM_x", "run_name": "BM_x", "run_type": "iteration", "iterations": 9, "real_time": FIGURE, "cpu_time": FIGURE, "time_unit": "ns"}]}"#;
    let result = lab.write("result.json", result);
    let (imported, program) = (lab.path("imported.json"), env!("CARGO_BIN_EXE_weighbridge"));
    let script = format!(
        "#!/bin/sh\nsed s/FIGURE/$(cat figure).$(date +%N)/g {} >{imported}\nrmdir $WEIGHBRIDGE_RESULTS\n\
         {program} import {imported} --into $WEIGHBRIDGE_RESULTS\n",
        result.display(),
        imported = imported.display(),
    );
    let script = lab.program("import-one", &script);
    let bisect = |into: &str, more: &str| {
        let measure = format!("--measure {}", script.display());
        lab.weighbridge(&format!("bisect run --repo repo --into {into} --good v0 --bad v3 {measure} {more}"))
    };
    bisect("B", "--runs 1").expect_code(3).expect_stderr("are single values that differ too little to classify others");
    for (into, more) in [("C", "--runs 4"), ("D", "--runs 1 --run-noise 0")] {
        let ran = bisect(into, more).expect_code(0);
        assert!(ran.out.trim_end().ends_with("commit 2"), "{more}: {}", ran.transcript());
    }
}

// Too few samples cannot show a difference: that was reported as ends that do not differ.
#[test]
fn too_few_samples_are_named_as_the_reason() {
    let lab = lab(&["1000", "1000", "800"]);
    let line = "bisect run --repo repo --into B --good v0 --bad v2 --runs 1";
    let file = lab.path("repo/figure");
    let line = format!("{line} -- demo:file={} --min-time 1ms --warm-up 0 --samples 3", file.display());
    lab.weighbridge(&line)
        .expect_code(3)
        .expect_stderr(", from too few samples to decide; threshold 5 %")
        .expect_stderr("6 samples of a run are required, or several runs of each revision (--runs)");
}

/// In run-perf's layout, without samples. (2·t·0.05/ln(1/0.9))² is 3.8, with t of 30 degrees of freedom at 97.5 %.
#[test]
fn single_values_are_not_taken_as_certain() {
    let lab = lab(&["1000", "1000", "900", "900"]);
    let iteration = r#"[{"iteration_name": "read", "iteration_data": {"parameters": {"benchmark": [{"primary_metric": "iops", "name": "read"}]}, "throughput": {"iops": [{"client_hostname": "all", "mean": FIGURE, "stddevpct": 1, "samples": []}]}}}]"#;
    lab.write("iteration.json", iteration);
    let script = format!(
        "#!/bin/sh\nmkdir -p $WEIGHBRIDGE_RESULTS/Localhost/fio/0000\nsed s/FIGURE/$(cat figure).$(date +%N)/ {} >$WEIGHBRIDGE_RESULTS/Localhost/fio/0000/result.json\n",
        lab.path("iteration.json").display()
    );
    let script = lab.write("measure", &script);
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let bisect = |into: &str, more: &str| {
        let measure = format!("--measure {}", script.display());
        let line = format!("bisect run --repo repo --into {into} --good v0 --bad v3 {measure} {more}");
        lab.weighbridge(&line)
    };
    bisect("B", "--runs 1")
        .expect_code(3)
        .expect_stderr("are single values that differ too little to classify others: results of one revision are assumed to differ by 5 %")
        .expect_stderr("--runs 4 would be enough");
    assert_untouched(&lab);
    for (into, more) in [("C", "--runs 4"), ("D", "--runs 1 --run-noise 0")] {
        let ran = bisect(into, more).expect_code(0);
        assert!(ran.out.trim_end().ends_with("commit 2"), "{more}: {}", ran.transcript());
    }
}
