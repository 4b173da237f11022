//! `hashd`: the request workload, as users and contention tests run it.

use std::io::{BufRead, BufReader};
use std::process::{ChildStdout, Stdio};

use insta::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};

use crate::lab::{CommandResult, KillOnDrop, Lab};

/// Small requests, so that hardly anything limits their rate.
const SMALL: &str =
    "file-size-mean = \"64k\"\nchunk-pages = 4\nsleep-mean = \"3ms\"\nrps-max = 200\ncontrol-period = \"500ms\"\n";
const FLAGS: &str = "--params params.toml --dir work --memory 16m --json";

/// A running `hashd`, whose reports are read as they come.
struct Running {
    process: KillOnDrop,
    reports: BufReader<ChildStdout>,
}

impl Running {
    fn start(lab: &Lab, line: &str) -> Self {
        let mut process = lab.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let reports = BufReader::new(process.stdout.take().unwrap());
        Self { process: KillOnDrop(process), reports }
    }

    /// The next report; `None` at the end.
    fn next_report(&mut self) -> Option<serde_json::Value> {
        let mut line = String::new();
        self.reports.read_line(&mut line).unwrap();
        (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
    }

    /// The first report that meets a condition.
    fn wait_for(&mut self, condition: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
        let mut last = None;
        for _ in 0..200 {
            let report = self.next_report();
            match report {
                Some(report) if condition(&report) => return report,
                Some(report) => last = Some(report),
                None => break,
            }
        }
        panic!("no report meets the condition; the last: {last:?}");
    }

    /// Sends a signal; returns the exit status, the reports until the end, and standard error.
    fn end(mut self, signal: Signal) -> (Option<i32>, Vec<serde_json::Value>, String) {
        kill_process(Pid::from_child(&self.process.0), signal).unwrap();
        let rest = std::iter::from_fn(|| self.next_report()).collect();
        let status = self.process.0.wait().unwrap();
        let err = std::io::read_to_string(self.process.0.stderr.take().unwrap()).unwrap();
        (status.code(), rest, err)
    }
}

fn reports(result: &CommandResult) -> Vec<serde_json::Value> {
    result.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn number(report: &serde_json::Value, name: &str) -> f64 {
    report[name].as_f64().unwrap_or_else(|| panic!("no {name}: {report}"))
}

#[test]
fn help_describes_every_option() {
    let help = Lab::new().weighbridge("hashd --help").expect_code(0);
    let options = "params dir keep-files compressibility no-fill memory rps-target lat-target open-loop find-params \
                   fake-cpu-load hash-size chunk-pages rps-max grain window-scale duration seed json";
    for option in options.split_whitespace() {
        help.expect_stdout(&format!("--{option}"));
    }
    help.expect_stdout("Run a latency-sensitive request workload").expect_stdout("exit status: 0 finished (");
}

#[test]
fn invalid_parameters_are_refused_with_their_place() {
    let lab = Lab::new();
    lab.write("params.toml", "cpu-ratio = 1.0\nmem-frac = 1.5\n");
    assert_snapshot!(lab.weighbridge("hashd --params params.toml --dir work").transcript(), @r"
    exit 1
    error: invalid mem-frac `1.5`: expected a number from 0 to 1
       ╭─[params.toml:2:1]
     1 │ cpu-ratio = 1.0
     2 │ mem-frac = 1.5
       · ───────┬──────
       ·        ╰── here
       ╰────
    ");
    lab.write("params.toml", "memfrac = 0.5\n");
    assert_snapshot!(lab.weighbridge("hashd --params params.toml --dir work").transcript(), @r"
    exit 1
    error: unknown parameter `memfrac`
       ╭─[params.toml:1:1]
     1 │ memfrac = 0.5
       · ───┬───
       ·    ╰── did you mean `mem-frac`?
       ╰────
    help: `weighbridge schema hashd-params` describes all parameters
    ");
    assert_snapshot!(lab.weighbridge("hashd --rps-target 0 --dir work").transcript(), @r"
    exit 1
    error: invalid rps-target `0`: expected a number from 0.001 to 1000000
    ");
    assert_snapshot!(lab.weighbridge("hashd --memory 64k --dir work").transcript(), @r"
    exit 1
    error: invalid memory `64k`: expected a size of at least 1m
    ");
    assert!(!lab.path("work").exists());
}

#[test]
fn reports_add_up_and_nothing_is_left_behind() {
    let lab = Lab::new();
    lab.write("params.toml", SMALL);
    let result = lab.weighbridge(&format!("hashd {FLAGS} --rps-target 40 --duration 5s")).expect_code(0);
    let reports = reports(&result);
    assert!(reports.len() >= 4, "{}", result.transcript());
    let completed: f64 = reports.iter().map(|report| number(report, "completed")).sum();
    let last = reports.last().unwrap();
    assert_eq!(completed, number(last, "done"));
    assert_eq!((number(last, "in-flight"), number(last, "errors")), (0.0, 0.0));
    assert_eq!(number(last, "file-bytes"), 819.0 * 4096.0);
    for report in &reports {
        let rate = number(report, "completed") / number(report, "period");
        assert!((number(report, "rps") - rate).abs() < 1e-6, "{report}");
        assert_eq!(number(report, "rps-target"), 40.0);
    }
    // The target is met as far as a busy machine permits, and not exceeded after the start.
    let steady = &reports[reports.len() / 2..];
    let rate = steady.iter().map(|report| number(report, "completed")).sum::<f64>()
        / steady.iter().map(|report| number(report, "period")).sum::<f64>();
    assert!((5.0..80.0).contains(&rate), "{rate}: {}", result.transcript());
    assert!(!lab.path("work").exists());
}

#[test]
fn sigterm_ends_it_in_order() {
    let lab = Lab::new();
    lab.write("params.toml", SMALL);
    let mut running = Running::start(&lab, &format!("hashd {FLAGS}"));
    let before = running.wait_for(|report| number(report, "done") > 0.0);
    // Nothing ever has a name: not even SIGKILL would leave anything.
    assert!(!lab.path("work").exists());
    let (code, rest, err) = running.end(Signal::TERM);
    assert_eq!(code, Some(0), "{err}");
    let completed: f64 = rest.iter().map(|report| number(report, "completed")).sum();
    let done = rest.last().map_or(number(&before, "done"), |report| number(report, "done"));
    assert_eq!(number(&before, "done") + completed, done);
    assert!(!lab.path("work").exists());
    assert_eq!(lab.wait_for_processes(), [""; 0]);
}

#[test]
fn signal_before_the_end_of_the_duration_is_an_interruption() {
    let lab = Lab::new();
    lab.write("params.toml", SMALL);
    let mut running = Running::start(&lab, &format!("hashd {FLAGS} --duration 10min"));
    running.wait_for(|_| true);
    assert_eq!(running.end(Signal::INT).0, Some(130));
    assert!(!lab.path("work").exists());
}

#[test]
fn changed_parameters_apply_and_invalid_ones_do_not() {
    let lab = Lab::new();
    lab.write("params.toml", &format!("{SMALL}rps-target = 20\n"));
    let mut running = Running::start(&lab, &format!("hashd {FLAGS}"));
    running.wait_for(|report| report["rps-target"] == 20.0);
    lab.write("params.toml", &format!("{SMALL}rps-target = 60\nmem-frac = 0.4\n"));
    let report = running.wait_for(|report| report["rps-target"] == 60.0);
    assert_eq!(number(&report, "file-bytes"), 409.0 * 4096.0);
    running.wait_for(|report| number(report, "rps") > 30.0);
    lab.write("params.toml", "mem-frac = 2\n");
    running.wait_for(|_| true);
    running.wait_for(|_| true);
    running.wait_for(|report| report["rps-target"] == 60.0);
    let (code, _, err) = running.end(Signal::TERM);
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("params.toml: parameters reloaded"), "{err}");
    let warning = "warning: params.toml:1:1: invalid mem-frac `2`: expected a number from 0 to 1; the previous";
    assert!(err.contains(warning), "{err}");
}

#[test]
fn kept_files_are_used_again() {
    let lab = Lab::new();
    lab.write("params.toml", SMALL);
    let line = format!("hashd {FLAGS} --duration 1s --keep-files");
    lab.weighbridge(&line).expect_code(0).expect_stderr("creating 4 MiB of test files in work");
    lab.weighbridge(&line).expect_code(0).expect_stderr("test files in work are used again");
    let digests = lab.read("work/hashd-log-0");
    let fields: Vec<&str> = digests.lines().next().unwrap().split(' ').collect();
    assert_eq!((fields[1].len(), fields[2].ends_with("ms")), (40, true), "{fields:?}");
}

#[test]
fn rate_below_one_a_second_is_held() {
    let lab = Lab::new();
    lab.write("params.toml", SMALL);
    let result = lab.weighbridge(&format!("hashd {FLAGS} --rps-target 0.5 --duration 9s")).expect_code(0);
    let done = number(reports(&result).last().unwrap(), "done");
    // A few in the first period, in which the latency is unknown, then one each two seconds.
    assert!((3.0..=7.0).contains(&done), "{}", result.transcript());
}

#[test]
fn exec_takes_further_parameters_from_standard_input() {
    use std::io::Write;
    let lab = Lab::new();
    let config = r#"{"params":{"file-size-mean":"64k","chunk-pages":4,"control-period":"200ms"},"dir":"work","memory":"16m","compressibility":0.5}"#;
    let mut process = lab.command(&format!("exec hashd {config}"));
    let mut process = process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = process.stdin.take().unwrap();
    let reports = BufReader::new(process.stdout.take().unwrap());
    let mut running = Running { process: KillOnDrop(process), reports };
    let first = running.wait_for(|report| number(report, "changes") == 0.0);
    writeln!(input, r#"{{"file-size-mean":"64k","chunk-pages":4,"file-frac":0.9,"rps-target":30}}"#).unwrap();
    let changed = running.wait_for(|report| number(report, "changes") == 1.0);
    assert_eq!(number(&changed, "rps-target"), 30.0);
    assert!(number(&changed, "file-bytes") > 3.0 * number(&first, "file-bytes"), "{changed}");
    // Whoever sends parameters has to know that they are not in force.
    writeln!(input, r#"{{"mem-frac":2}}"#).unwrap();
    let err = std::io::read_to_string(running.process.0.stderr.take().unwrap()).unwrap();
    assert!(err.contains("invalid mem-frac `2`: expected a number from 0 to 1"), "{err}");
    assert_eq!(running.process.0.wait().unwrap().code(), Some(1));
}

#[test]
fn exec_runs_a_configuration() {
    let lab = Lab::new();
    let config = r#"{"params":{"file-size-mean":"64k","chunk-pages":4,"sleep-mean":"3ms","open-loop":{"rate":50,"arrivals":"uniform"}},"dir":"work","memory":"16m","duration":"3s"}"#;
    let result = lab.weighbridge(&format!("exec hashd {config}")).expect_code(0);
    let reports = reports(&result);
    let last = reports.last().unwrap();
    // The schedule has 50 requests a second, and no more.
    assert!(number(last, "done") <= 50.0 * number(last, "time") + 2.0, "{last}");
    assert!(number(last, "done") >= 50.0, "{last}");
    assert!(reports.iter().all(|report| report.get("concurrency").is_none()));
    assert!(!lab.path("work").exists());
    let refused = lab.weighbridge(r#"exec hashd {"memry":"16m"}"#).expect_code(1);
    refused.expect_stderr("unknown field `memry`");
}
