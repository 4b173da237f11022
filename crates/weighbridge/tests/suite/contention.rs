//! Contention benches on the command line: planned, read with `-r`, merged, packed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};
use wb_contention::conditions::current_versions;
use wb_contention::merge::{MergeReport, Merged, write_merged};
use wb_contention::solve::{solve, unfitted};
use wb_contention::{BenchSpec, machine};
use wb_model::{IocostModel, IocostQos};
use wb_record::{Invocation, RunFolder};
use wb_results::contention::{
    Answer, Bench, BenchResult, FittedSeries, Instance, InstanceLabel, IocostParameters, LatencyKind, OverTime,
    Percentile, Point, Series, SystemInfo, TuneAnswer,
};
use wb_sys::SysRoot;

use crate::lab::{KillOnDrop, Lab};

/// A file of the data folder beside the project.
fn commands() -> Option<String> {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/resctl-bench/commands.txt");
    let text = std::fs::read_to_string(path).ok();
    if text.is_none() {
        wb_test_skip::skip!("resctl-bench's command lines are not beside the repository (../shared/data/resctl-bench)");
    }
    text
}

/// A block device of this machine.
pub(crate) fn device() -> Option<String> {
    let name = wb_sys::environment::block::names(&SysRoot::real()).into_iter().next();
    if name.is_none() {
        wb_test_skip::skip!("this machine shows no block device");
    }
    name
}

/// Values over the vrate, from 5 to 125 %.
fn series(value: impl Fn(f64) -> f64) -> FittedSeries {
    unfitted((1..=25).map(|step| f64::from(step) * 5.0).map(|x| Point { x, y: value(x) }).collect())
}

fn tune(device: &str, offset: f64) -> BenchResult {
    let ramp = |a: f64, b: f64| move |x: f64| ((x - a) / (b - a)).clamp(0.0, 1.0);
    let mut all = BTreeMap::new();
    all.insert(Series::Mof, series(|x| 1.2 + offset + 0.4 * ramp(22.5, 62.5)(x)));
    all.insert(Series::Amof, series(|x| 1.2 + 0.2 * ramp(22.5, 42.5)(x)));
    all.insert(Series::AmofDelta, series(|x| 0.2 * ramp(42.5, 62.5)(x)));
    all.insert(Series::Isol, series(|x| 1.0 - 0.2 * ramp(72.5, 92.5)(x)));
    for kind in LatencyKind::ALL {
        all.insert(
            Series::Latency(kind, Percentile::P99, OverTime::Mean),
            series(|x| 1e6 + 4e6 * ramp(20.0, 100.0)(x)),
        );
    }
    let model = IocostModel::from_array([1000, 2000, 3000, 4000, 5000, 6000]);
    let base =
        IocostParameters { model, qos: IocostQos { rpct: 95.0, rlat: 1, wpct: 95.0, wlat: 1, min: 50.0, max: 100.0 } };
    let answer = TuneAnswer {
        base,
        mem_profile: Some(16),
        isol_pct: Percentile::P05,
        isol_thr: 0.9,
        qos_spec: BenchSpec::new(Bench::IocostQos).to_text(),
        series: all,
        solutions: Vec::new(),
        remarks: Vec::new(),
    };
    let system: SystemInfo = machine::read(&SysRoot::real(), Path::new("/"), Some(device)).unwrap();
    BenchResult {
        instance: Instance { bench: Bench::IocostTune, label: InstanceLabel::Position(1) },
        spec: BenchSpec::new(Bench::IocostTune).to_text(),
        system: SystemInfo { kernel: "6.1.0".to_owned(), nr_cpus: 16, ..system },
        versions: current_versions(Bench::IocostTune),
        answer: Answer::IocostTune(solve(answer, &Default::default())),
    }
}

/// A lab with a run `R` that has a result of iocost-tune; `None`, with a message, without a block device.
fn lab_with_result() -> Option<Lab> {
    let device = device()?;
    let lab = Lab::new();
    write_run(&lab, "R", &device);
    Some(lab)
}

pub(crate) fn write_run(lab: &Lab, name: &str, device: &str) {
    write_run_until(lab, name, device, END);
}

const END: &str = "2026-01-01T06:00:00Z";

/// A run whose bench ended at a time.
fn write_run_until(lab: &Lab, name: &str, device: &str, end: &str) {
    let run = RunFolder::create(&lab.path(name)).unwrap();
    let invocation = Invocation {
        started: "2026-01-01T00:00:00Z".to_owned(),
        version: "0".to_owned(),
        program_sha256: "0".to_owned(),
        agent_sha256: None,
        command: Vec::new(),
        plan: "iocost-tune".to_owned(),
        plan_text: None,
        sampling: serde_json::to_value(wb_plan::Sampling::default()).unwrap(),
        seed: 0,
        cells: Vec::new(),
        facts: Default::default(),
        hosts: Default::default(),
        metadata: Default::default(),
    };
    run.add_invocation(invocation).unwrap();
    // No two runs measure the same values.
    let result = tune(device, if end == END { 0.0 } else { 1e-9 });
    write_merged(&run, &[Merged { report: merge_report(&result, end), result }]).unwrap();
}

fn merge_report(result: &BenchResult, end: &str) -> MergeReport {
    MergeReport {
        instance: result.instance.clone(),
        group: Vec::new(),
        sources: Vec::new(),
        dropped: Vec::new(),
        start: "2026-01-01T00:00:00Z".to_owned(),
        end: end.to_owned(),
    }
}

#[test]
fn every_command_line_of_resctl_bench_is_understood() {
    let (Some(commands), Some(device)) = (commands(), device()) else { return };
    let Some(lab) = lab_with_result() else { return };
    for line in commands.lines() {
        let Some(rest) = line.strip_prefix("resctl-bench -r result.json ") else {
            // The archive of `pack` is one that tar extracts.
            assert!(line.starts_with("tar xvf "), "{line}");
            assert!(
                std::process::Command::new("tar")
                    .args(["tf", "R.tar.gz"])
                    .current_dir(lab.path(""))
                    .status()
                    .unwrap()
                    .success()
            );
            continue;
        };
        match rest.strip_prefix("run ") {
            // What is measured is planned: this machine may have neither io.cost nor the rights.
            Some(specs) => {
                let planned = lab.weighbridge(&format!("-r NEW plan {specs} --dev {device} --dir .")).expect_code(0);
                assert!(planned.out.contains("to run"), "{line}: {}", planned.out);
            }
            None => drop(lab.weighbridge(&format!("-r R {rest}")).expect_code(0)),
        }
    }
    assert!(lab.path("output.pdf").exists() && !lab.path("NEW").exists());
}

#[test]
fn a_plan_lists_each_stage_with_its_sign() {
    let Some(device) = device() else { return };
    let lab = Lab::new();
    let plan = lab.weighbridge(&format!("plan protection iocost-qos:id=q:min=75,max=75 --dev {device} --dir ."));
    assert_snapshot!(plan.transcript(), @"
    exit 0
    iocost-params: added, because protection requires it
    iocost-params: +  io.cost model and QoS
    iocost-params: 1 stage to run
    hashd-params: added, because protection requires it
    hashd-params: +  parameters of hashd
    hashd-params: 1 stage to run
    protection: +  [00] mem-hog
    protection: +  [01] mem-hog
    protection: 2 stages to run
    iocost-qos@q: +  [00] iocost=off
    iocost-qos@q: +  [01] [min=75.00] [max=75.00]
    iocost-qos@q: iocost-params determines which settings are left out because they throttle too much
    iocost-qos@q: 2 stages to run
    ");
}

/// Parameters that `protection` starts from.
const PARAMETERS: &str = r#"{
    "iocost": {
        "model": {"rbps":1000000,"rseqiops":100,"rrandiops":100,"wbps":1000000,"wseqiops":100,"wrandiops":100},
        "qos": {"rpct":95.0,"rlat":1000,"wpct":95.0,"wlat":1000,"min":60.0,"max":100.0}
    },
    "hashd": {
        "hash-size":"64k","rps-max":10.0,"mem-size":"64m","chunk-pages":4,"log-bps":"4k","fake-cpu-load":true
    }
}"#;

#[test]
fn each_bench_ends_with_its_reason_on_a_machine_with_cgroup_v1_alone() {
    let controllers = std::fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
    if ["cpu", "io", "memory"].iter().any(|name| controllers.contains(name)) {
        return wb_test_skip::skip!("cgroup v1 alone: this machine has controllers of v2");
    }
    let Some(device) = device() else { return };
    let Some(lab) = Lab::with_own_state() else { return };
    std::fs::write(lab.path("contention-parameters.json"), PARAMETERS).unwrap();
    for bench in ["hashd-params", "storage", "protection", "iocost-qos"] {
        let run = lab.weighbridge(&format!("-r {bench} run {bench} --dev {device} --dir .")).expect_code(3);
        let reason = "cgroup v2 is required, but only v1 is mounted: boot with systemd.unified_cgroup_hierarchy=1";
        assert!(run.err.contains(reason), "{bench}: {}", run.err);
        let failed: Vec<_> =
            lab.journal(bench).into_iter().filter(|event| event.to_string().contains("cgroup-v1")).collect();
        assert_eq!(failed.len(), 1, "{bench}: the reason is recorded");
        for command in ["summary", "format", "solve", "report"] {
            let line = if command == "report" { format!("report {bench}") } else { format!("-r {bench} {command}") };
            let read = lab.weighbridge(&line).expect_code(4);
            let left = "0 of 1 started stages have a result; then: cgroup v2 is required";
            assert!(read.err.contains(left), "{bench}: {}", read.err);
        }
        assert!(lab.weighbridge(&format!("-r {bench} plan {bench} --dev {device} --dir .")).out.contains("to run"));
    }
    assert!(lab.read("contention-parameters.json").contains("rps-max"), "committed parameters stay");
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}: not after 60 s");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
#[ignore = "changes settings of a device, so that other runs are refused: make test-long"]
fn soak_file_of_a_bench_is_removed_however_it_ends() {
    let Some(device) = device() else { return };
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        // On a file system with direct I/O, and with the missing requirements of this machine.
        let lab = Lab::on_disk();
        let options = format!("--dev {device} --dir files --time-scale 0.02 --force");
        let mut run = KillOnDrop(lab.start(&format!("-r R run iocost-params {options}")));
        let file = lab.path("files/weighbridge-fio");
        wait_until("the file of the bench exists", || file.exists());
        kill_process(Pid::from_child(&run.0), signal).unwrap();
        assert!(!run.0.wait().unwrap().success());
        wait_until("the file of the bench is removed", || !file.exists());
        assert_eq!(lab.wait_for_processes(), [""; 0], "{signal:?}");
    }
}

#[test]
fn benches_and_tests_are_not_mixed_and_their_options_are_distinguished() {
    let lab = Lab::new();
    let refused = [
        "run steady storage",
        "run storage --samples 3",
        "run steady --mem-profile 8",
        "run storage --mem-profile 12",
        "run steady --into A -r B",
        "run iocost-qso",
        "run storage:loops=x hashd-params:rps-mx=3",
        "summary A B",
        "merge A",
    ];
    let transcripts = refused.map(|line| format!("$ {line}\n{}", lab.weighbridge(line).transcript()));
    assert_snapshot!(transcripts.join("\n"), @"
    $ run steady storage
    exit 1
    error: cannot run contention benches and the test `steady` in one run
    help: a sequence of benches takes its stages in order, and samples no cells: use two commands

    $ run storage --samples 3
    exit 1
    error: --samples has no effect on contention benches
    help: `weighbridge run --help` lists their options under `Contention benches`

    $ run steady --mem-profile 8
    exit 1
    error: --mem-profile has no effect on tests
    help: it is an option of contention benches: storage, iocost-params, hashd-params, iocost-qos, iocost-tune, protection

    $ run storage --mem-profile 12
    exit 1
    error: invalid --mem-profile `12`: expected a power of two in GiB, or `off`
    help: `weighbridge run --help` describes all options

    $ run steady --into A -r B
    exit 1
    error: two run folders: `A` of --into and `B` of -r
    help: give one of them

    $ run iocost-qso
    exit 1
    error: unknown test or contention bench `iocost-qso`
    help: did you mean `iocost-qos`? benches: storage, iocost-params, hashd-params, iocost-qos, iocost-tune, protection; `weighbridge list` shows the tests

    $ run storage:loops=x hashd-params:rps-mx=3
    exit 1
    error: invalid value `x` of `loops`: expected a whole number from 1 to 4294967295
       ╭─[command line:1:15]
     1 │ storage:loops=x
       ·               ─
       ╰────
    error: unknown property `rps-mx`
       ╭─[command line:1:14]
     1 │ hashd-params:rps-mx=3
       ·              ───┬──
       ·                 ╰── did you mean `rps-max`?
       ╰────
    help: expected one of id, passive, apply, commit, fake-cpu-load, rps-max, hash-size, chunk-pages, log-bps

    $ summary A B
    exit 1
    error: unexpected argument `B` after the run folder `A`
    help: to read some benches of a run: `-r A B`

    $ merge A
    exit 1
    error: missing folder to write the merged results to
    help: name a new one: `weighbridge -r MERGED merge RUN…`
    ");
}

#[test]
fn the_run_folder_of_r_is_that_of_every_command() {
    let lab = Lab::new();
    lab.weighbridge("-r S run steady --min-time 1ms --samples 6 --retakes 0").expect_code_of(&[0, 3]);
    let read = |line: &str| lab.weighbridge(line).out;
    assert_eq!(read("-r S summary"), read("summary S"));
    assert!(read("summary -r S").contains("steady"));
    // A run may have both.
    let Some(device) = device() else { return };
    write_run(&lab, "S", &device);
    let both = read("summary S");
    assert!(both.contains("[iocost-tune result]") && both.contains("steady"), "{both}");
    let benches = read("-r S summary iocost-tune");
    assert!(benches.contains("[iocost-tune result]") && !benches.contains("steady"), "{benches}");
}

#[test]
fn results_of_benches_are_shown_selected_and_solved_again() {
    let Some(lab) = lab_with_result() else { return };
    let summary = lab.weighbridge("-r R summary").expect_code(0).out.clone();
    assert!(
        summary.contains("[iocost-tune result] 2026-01-01 00:00:00 - 06:00:00") && summary.contains("[bandwidth]"),
        "{summary}"
    );
    assert_eq!(lab.weighbridge("summary R").out, summary);
    let none = lab.weighbridge("-r R format storage");
    assert_snapshot!(none.transcript(), @"
    exit 4
    error: no result of `storage` in R
    help: it has iocost-tune
    ");
    assert!(lab.weighbridge("-r R format iocost-tune:high-level").out.contains("25 points, MOF=["));
    let solved =
        lab.weighbridge("-r R solve iocost-tune::name=test,vrate=75-100,rpct=99,wpct=0").expect_code(0).out.clone();
    assert!(solved.contains("[test] vrate=75-100,rpct=99,wpct=0") && !solved.contains("[bandwidth]"), "{solved}");
    assert_eq!(lab.weighbridge("-r R summary").out, solved);
    let json: serde_json::Value = serde_json::from_str(&lab.weighbridge("-r R summary --json").out).unwrap();
    assert_eq!(json[0]["answer"]["bench"], "iocost-tune");
}

#[test]
fn the_charts_of_a_result_are_written_as_pdf() {
    let Some(lab) = lab_with_result() else { return };
    lab.weighbridge("-r R format iocost-tune:pdf=out.pdf").expect_code(0);
    let pdf = std::fs::read(lab.path("out.pdf")).unwrap();
    let text = String::from_utf8_lossy(&pdf);
    assert!(text.starts_with("%PDF-") && text.trim_end().ends_with("%%EOF"));
    assert!(text.contains("[bandwidth] amof=max-vrate") && text.contains("/Courier"), "the text of the result");
    // The text, and six charts on a page.
    assert!(text.contains("/Count 2"), "{}", &text[..600]);
    lab.weighbridge("-r R format iocost-tune:pdf").expect_code(0);
    assert!(lab.path("R.pdf").exists());
    let both = lab.weighbridge("-r R format iocost-tune:pdf --json").expect_code(1);
    both.expect_stderr("error: --json writes no PDF");
}

#[test]
fn no_charts_overwrite_those_of_another_result() {
    let (Some(lab), Some(device)) = (lab_with_result(), device()) else { return };
    let run = RunFolder::open(&lab.path("R")).unwrap();
    let mut result = tune(&device, 1e-9);
    result.instance = Instance { label: InstanceLabel::Id("b".to_owned()), ..result.instance };
    write_merged(&run, &[Merged { report: merge_report(&result, END), result }]).unwrap();
    let same = lab.weighbridge("-r R format iocost-tune:pdf=out.pdf iocost-tune@b:pdf=out.pdf").expect_code(1);
    same.expect_stderr("out.pdf cannot have the charts of both iocost-tune and iocost-tune@b");
    assert!(!lab.path("out.pdf").exists());
    lab.weighbridge("-r R format iocost-tune:pdf=a.pdf iocost-tune@b:pdf=b.pdf").expect_code(0);
    assert!(lab.path("a.pdf").exists() && lab.path("b.pdf").exists());
    lab.weighbridge("-r R format iocost-tune:pdf iocost-tune@b:pdf").expect_code(0);
    assert!(lab.path("R-iocost-tune.pdf").exists() && lab.path("R-iocost-tune@b.pdf").exists());
}

#[test]
fn a_run_with_benches_and_cells_shows_both_and_derives_both_again() {
    let Some(device) = device() else { return };
    let lab = Lab::new();
    lab.weighbridge("run himeno:grid=XS,threads=1 --samples 1 --warm-up 0 --min-time 10ms --into R -q").expect_code(0);
    let run = RunFolder::open(&lab.path("R")).unwrap();
    let result = tune(&device, 0.0);
    write_merged(&run, &[Merged { report: merge_report(&result, END), result }]).unwrap();
    let summary = lab.weighbridge("summary R").expect_code(0);
    assert!(summary.out.contains("[iocost-tune result]") && summary.out.contains("himeno"), "{}", summary.out);
    let file = "R/contention/iocost-tune/result.json";
    let before = lab.read(file);
    for command in ["solve R --json", "solve R"] {
        lab.write(file, &before.replace("\"bandwidth\"", "\"altered\""));
        lab.weighbridge(command).expect_code(0);
        assert_eq!(lab.read(file), before, "{command}");
    }
    let refused = lab.weighbridge("study R --reports elsewhere").expect_code(1);
    refused.expect_stderr("error: --reports: R has results of tests");
}

#[test]
fn results_of_several_runs_are_merged_into_a_new_folder() {
    let (Some(lab), Some(device)) = (lab_with_result(), device()) else { return };
    write_run_until(&lab, "S", &device, "2026-01-01T07:00:00Z");
    let copy = lab.weighbridge("-r COPY merge R R");
    assert!(copy.code == 4 && copy.err.contains("R is a copy of R: name each run once"), "{}", copy.err);
    assert!(!lab.path("COPY").exists());
    let merged = lab.weighbridge("-r MERGED merge R S").expect_code(0).out.clone();
    assert!(merged.contains("    + R\n    + S\n"), "{merged}");
    assert!(lab.weighbridge("-r MERGED format iocost-tune").out.contains("points=50"));
    let again = lab.weighbridge("-r MERGED merge R");
    assert!(again.err.contains("iocost-tune exists in this run: merge into a new folder"), "{}", again.err);
}

#[test]
fn nothing_is_left_out_of_a_merge_silently_or_counted_twice() {
    let (Some(lab), Some(device)) = (lab_with_result(), device()) else { return };
    write_run_until(&lab, "S", &device, "2026-01-01T07:00:00Z");
    lab.weighbridge("-r EMPTY merge nosuch").expect_code(1);
    lab.weighbridge("-r T run steady --min-time 1ms --samples 6 --retakes 0").expect_code_of(&[0, 3]);
    lab.weighbridge("-r M merge R T S").expect_code(0).expect_stdout("    - T (no result of iocost-tune)\n");
    let none = lab.weighbridge("-r N merge T").expect_code(4);
    none.expect_stderr("no result to merge: expected results of iocost-tune (T: no result of iocost-tune)");
    lab.weighbridge("-r N merge M S").expect_code(4).expect_stderr("S is part of M, which has all its values");
    // A copy is one whatever was solved for it since.
    lab.weighbridge("-r R pack -o copy.tar.gz").expect_code(0);
    lab.weighbridge("unpack copy.tar.gz").expect_code(0);
    lab.weighbridge("-r copy/run solve iocost-tune::name=test,isolation").expect_code(0);
    lab.weighbridge("-r N merge R copy/run").expect_code(4).expect_stderr("copy/run is a copy of R");
    assert!(!lab.path("N").exists());
}

#[test]
fn an_instance_is_selected_by_the_name_with_which_it_is_shown() {
    let (Some(lab), Some(device)) = (lab_with_result(), device()) else { return };
    write_run_until(&lab, "S", &device, "2026-01-01T07:00:00Z");
    let mut other: serde_json::Value = serde_json::from_str(&lab.read("S/contention/iocost-tune/result.json")).unwrap();
    other["system"]["device"]["model"] = "Other".into();
    lab.write("S/contention/iocost-tune/result.json", &other.to_string());
    let merged = lab.weighbridge("-r M merge R S --multiple").expect_code(0);
    merged.expect_stdout("iocost-tune.2\n");
    let read = |line: &str| lab.weighbridge(&format!("-r M {line}"));
    let second = read("summary iocost-tune.2").expect_code(0).out.clone();
    assert!(second.matches("[iocost-tune result]").count() == 1, "{second}");
    assert_eq!(read("summary iocost-tune").out.matches("[iocost-tune result]").count(), 2);
    read("format iocost-tune.2:high-level").expect_code(0);
    read("solve iocost-tune.2::name=test,isolation").expect_code(0).expect_stdout("[test] isolation");
    assert!(!read("summary iocost-tune.1").out.contains("[test]"), "the other one stays");
    read("pack iocost-tune.2 -o some.tar.gz").expect_code(0);
    read("summary iocost-tune.3").expect_code(4).expect_stderr("it has iocost-tune, iocost-tune.2");
    read("summary iocost-tune@x").expect_code(4);
    read("summary iocost-tune.0").expect_code(1).expect_stderr("unknown bench `iocost-tune.0`");
    // What is run has its name by `id` and position alone.
    lab.weighbridge("plan iocost-tune.2").expect_code(1);
}

#[test]
fn sequences_are_read_from_files() {
    let Some(device) = device() else { return };
    let lab = Lab::new();
    lab.write("seq", "# the device\niocost-params hashd-params:fake-cpu-load  # and hashd\n\nstorage:loops=1\n");
    lab.write(
        "jobs.json",
        r#"// of resctl-bench
        { "job_specs": [ { "kind": "storage", "id": "j", "passive": "mem,io", "props": [{"loops": "2"}] } ] }"#,
    );
    let plan = lab.weighbridge(&format!("plan -f seq --file jobs.json protection --dev {device} --dir ."));
    assert_snapshot!(plan.transcript(), @"
    exit 0
    iocost-params: +  io.cost model and QoS
    iocost-params: 1 stage to run
    hashd-params: +  parameters of hashd
    hashd-params: 1 stage to run
    storage: +  supported footprint
    storage: 1 stage to run
    storage@j: +  supported footprint
    storage@j: 1 stage to run
    protection: +  [00] mem-hog
    protection: +  [01] mem-hog
    protection: 2 stages to run
    ");
    lab.write("bad", "storage\nstorage:lops=1\n");
    lab.write("tests", "steady\n");
    lab.write("empty", "# nothing\n");
    lab.write("bad.json", r#"{ "job_specs": 3 }"#);
    for (line, reason) in [
        ("plan -f bad", "[bad:2:1:9]"),
        ("run -f tests", "unknown bench `steady`"),
        ("plan -f empty", "empty has no contention bench"),
        ("plan -f bad.json", "bad.json: not a job file of resctl-bench: invalid type: integer `3`"),
        ("plan -f nosuch", "nosuch"),
        ("plan steady -f seq", "cannot run contention benches and the test `steady` in one run"),
    ] {
        lab.weighbridge(line).expect_code(1).expect_stderr(reason);
    }
}

#[test]
fn dependencies_of_benches_are_named_with_what_was_found() {
    let Some(device) = device() else { return };
    let lab = Lab::new();
    let deps = |line: &str| lab.weighbridge(&format!("deps {line} --dev {device} --dir ."));
    let all = deps("").expect_code_of(&[0, 3]).out.clone();
    let found: Vec<serde_json::Value> = serde_json::from_str(&deps("--json").out).unwrap();
    assert_eq!(found.len(), 19, "{all}");
    for one in &found {
        assert!(all.contains(one["requirement"].as_str().unwrap()), "{one}: {all}");
    }
    for bench in Bench::ALL {
        assert!(all.lines().any(|line| line.starts_with(&format!("{bench}: "))), "{bench}: {all}");
    }
    let device_alone: Vec<serde_json::Value> = serde_json::from_str(&deps("iocost-params --json").out).unwrap();
    let names: Vec<&str> = device_alone.iter().map(|one| one["requirement"].as_str().unwrap()).collect();
    let expected = ["iocost-unused", "io-controllers-unused", "no-composite-device", "io-scheduler", "no-wbt", "fio"];
    assert_eq!(names, expected);
    // What is passive is not set by the bench.
    let set = |line: &str| {
        let found: Vec<serde_json::Value> = serde_json::from_str(&deps(&format!("{line} --json")).out).unwrap();
        found.iter().filter(|one| one["state"] == "set-by-benches").count()
    };
    assert_eq!(set("protection:passive=ALL"), 0);
    deps("nosuch").expect_code(1);
}

#[test]
fn commands_of_resctl_bench_lead_to_what_does_the_same() {
    let Some(device) = device() else { return };
    let lab = Lab::new();
    lab.weighbridge("doc iocost-qos").expect_code(1).expect_stderr("`weighbridge list BENCH` shows the properties");
    lab.weighbridge("-r R upload").expect_code(1).expect_stderr("results are not uploaded");
    let twice = lab.weighbridge(&format!("plan storage:id=x storage:id=x --dir . --dev {device}"));
    twice.expect_code(1).expect_stderr("duplicate id `x`");
}

#[test]
fn an_archive_has_the_selected_benches() {
    let Some(lab) = lab_with_result() else { return };
    lab.weighbridge("-r R pack iocost-tune -o some.tar.gz").expect_code(0);
    lab.weighbridge("unpack some.tar.gz").expect_code(0);
    assert_eq!(lab.weighbridge("-r some/run summary").out, lab.weighbridge("-r R summary").out);
    lab.weighbridge("-r R pack storage").expect_code(4);
}

/// A result file of resctl-bench with values at five vrates.
fn result_of_resctl_bench(isolation: f64) -> serde_json::Value {
    use serde_json::json;
    let series = |value: f64, step: f64| {
        let points =
            (0..5).map(|index| json!({"x": 60.0 + f64::from(index) * 15.0, "y": value + f64::from(index) * step}));
        json!({"data": points.collect::<Vec<_>>(), "outliers": []})
    };
    json!([{
        "spec": {"kind": "iocost-tune", "id": null, "passive": null, "props": [{}]},
        "period": [1_658_548_859, 1_658_548_860],
        "sysinfo": {"bench_version": "2.2.3 x86_64", "sysreqs_missed": {}, "swappiness": 60,
            "sysreqs_report": {"kernel_version": "5.18.0", "nr_cpus": 52, "total_memory": 14_604_843_008u64,
                "total_swap": 4_867_266_560u64, "scr_dev": "nvme0n1", "scr_devnr": [259, 0], "scr_dev_model": "HFS256",
                "scr_dev_fwrev": "8", "scr_dev_size": 256_060_514_304u64, "scr_dev_iosched": "none"}},
        "record": {"qos_props": [{"vrate-max": "120"}]},
        "result": {"mem_profile": 16, "isol_pct": "05", "isol_thr": 0.9,
            "base_model": {"rbps": 1_091_439_492u64, "rseqiops": 52286, "rrandiops": 63784, "wbps": 192_329_466,
                "wseqiops": 12309, "wrandiops": 16119},
            "base_qos": {"rpct": 95.0, "rlat": 91619, "wpct": 95.0, "wlat": 331_874, "min": 60.0, "max": 100.0},
            "data": {"MOF": series(1.3, 0.01), "aMOF": series(1.2, 0.0), "aMOF-delta": series(0.1, 0.01),
                "isol": series(isolation, 0.0), "rlat-50-mean": series(0.0005, 0.0)}}
    }])
}

#[test]
fn results_of_resctl_bench_are_read_formatted_and_merged() {
    let lab = Lab::new();
    lab.write("a.json", &result_of_resctl_bench(0.95).to_string());
    lab.write("b.json", &result_of_resctl_bench(0.93).to_string());
    lab.weighbridge("-r A merge a.json").expect_code(0);
    let shown = lab.weighbridge("-r A format").expect_code(0);
    shown.expect_stdout("IO info: dev=nvme0n1(259:0) model=\"HFS256\"");
    shown.expect_stdout("rlat-50-mean     vrate 60.0-120.0: mean=500u");
    shown.expect_stdout("[isolation]");
    // A run that was read and a file are merged with each other.
    lab.weighbridge("-r AB merge A b.json").expect_code(0).expect_stdout("+ b.json");
    lab.weighbridge("-r AB format").expect_code(0).expect_stdout("points=10");
    lab.weighbridge("-r AA merge A a.json").expect_code(4).expect_stderr("is a copy of");
    lab.write("odd.json", "{}");
    let refused = lab.weighbridge("-r C merge odd.json").expect_code(3);
    refused.expect_stderr("odd.json: not a result of resctl-bench");
    assert!(!lab.path("C").exists());
}
