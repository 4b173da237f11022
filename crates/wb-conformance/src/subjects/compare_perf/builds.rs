//! Builds of random figures: folders of `result.json`, and runs of a test that prints them.

use std::fs;

use rand::Rng;
use serde_json::{Value, json};

use super::super::one_of;
use crate::case::{CaseError, Runner};

/// The cases of a test in run-perf's folders. Nothing follows the first part of one.
const ITERATIONS: [&str; 5] = ["read-4KiB", "read-64KiB", "write-4KiB-iodepth=4", "tcp_stream-64B-1i", "rw"];

/// The only primary metric, a throughput: of a latency, better and worse are documented to differ.
const PRIMARY: &str = "iops_sec";

struct CheckPlan {
    profile: &'static str,
    test: &'static str,
    serial: &'static str,
    iteration: &'static str,
    class: &'static str,
    metric: &'static str,
    base: f64,
}

/// What a check is around: small and large figures, whole ones, and zero.
fn random_base(random: &mut impl Rng) -> f64 {
    match random.random_range(0..12) {
        0 => 0.0,
        1 => 0.1 + 0.2,
        2..5 => f64::from(random.random_range(1..1000)),
        5 => f64::from(random.random_range(1..2000)) * 1e7,
        _ => random.random_range(0.001..10_000.0),
    }
}

/// A figure of a build: equal, near, exactly at a tolerance, or far away.
fn random_figure(random: &mut impl Rng, base: f64) -> f64 {
    let percent = match random.random_range(0..8) {
        0 => 0.0,
        1 => one_of(random, &[-20.0, -5.0, -2.5, -1.0, 1.0, 2.5, 5.0, 20.0]),
        2 => random.random_range(-99.0..400.0),
        _ => random.random_range(-12.0..12.0),
    };
    match base {
        0.0 => one_of(random, &[0.0, 0.0, 3.5]),
        base => base * (100.0 + percent) / 100.0,
    }
}

fn random_plan(random: &mut impl Rng) -> Vec<CheckPlan> {
    let mut plan = Vec::new();
    let profiles = ["Localhost", "TunedLibvirt"];
    for profile in &profiles[..random.random_range(1..=2)] {
        for test in &["fio", "uperf"][..random.random_range(1..=2)] {
            for serial in &["0000", "0001"][..one_of(random, &[1, 1, 2])] {
                let first = random.random_range(0..ITERATIONS.len());
                for iteration in &ITERATIONS[first..(first + 2).min(ITERATIONS.len())] {
                    for (class, metric) in [("throughput", PRIMARY), ("throughput", "Gb_sec"), ("latency", "clat")] {
                        let base = random_base(random);
                        // From zero to another value is documented to differ, and would make all groups with it differ.
                        let base = if metric == PRIMARY && base == 0.0 { 1.0 } else { base };
                        plan.push(CheckPlan { profile, test, serial, iteration, class, metric, base });
                    }
                }
            }
        }
    }
    plan
}

/// The iterations of a `result.json`: checks in a row belong to one.
fn iterations(random: &mut impl Rng, plan: &[&CheckPlan]) -> Vec<Value> {
    let mut iterations: Vec<Value> = Vec::new();
    for check in plan {
        if iterations.last().is_none_or(|last| last["iteration_name"] != check.iteration) {
            let benchmark = json!([{ "benchmark_name": check.test, "primary_metric": PRIMARY, "bs": "4k" }]);
            iterations.push(json!({
                "iteration_name": check.iteration,
                "iteration_number": iterations.len() + 1,
                "iteration_data": { "parameters": { "benchmark": benchmark }, "throughput": {}, "latency": {} },
            }));
        }
        let mut figure = |client: &str| {
            let mean = random_figure(random, check.base);
            let deviation = if random.random_bool(0.3) { 0.0 } else { random.random_range(0.0..20.0) };
            json!({
                "client_hostname": client, "role": "aggregate", "mean": mean, "stddevpct": deviation,
                "stddev": mean * deviation / 100.0, "closest_sample": "1", "samples": [{ "value": mean }],
            })
        };
        let mut all = vec![figure("all"), figure("192.0.2.1")];
        if random.random_bool(0.5) {
            all.reverse();
        }
        let last = iterations.last_mut().expect("an iteration was added");
        last["iteration_data"][check.class][check.metric] = Value::Array(all);
    }
    iterations
}

/// Writes builds with random figures, of which some lack checks, have failed iterations, or ended in an error.
pub(super) fn random_builds(runner: &mut Runner) -> Result<Vec<String>, CaseError> {
    let plan = random_plan(&mut runner.random);
    let builds = one_of(&mut runner.random, &[2, 2, 3, 4, 6, 10]);
    let names: Vec<String> = (0..builds).map(|number| format!("build{number}")).collect();
    for name in &names {
        let folders: Vec<_> = plan.chunk_by(|one, next| folder(one) == folder(next)).collect();
        for (index, checks) in folders.iter().enumerate() {
            // The first is in each, so that every build has one.
            if index > 0 && runner.random.random_bool(0.1) {
                continue;
            }
            let random = &mut runner.random;
            let present: Vec<&CheckPlan> = checks.iter().filter(|_| random.random_bool(0.95)).collect();
            let mut result = iterations(random, &present);
            if random.random_bool(0.2)
                && let Some(failed) = result.first()
            {
                let mut failed = failed.clone();
                failed["iteration_name"] = format!("{}-fail1", checks[0].iteration).into();
                result.push(failed);
            }
            let folder = runner.path(&format!("{name}/{}", folder(&checks[0])));
            fs::create_dir_all(&folder)?;
            fs::write(folder.join("result.json"), Value::Array(result).to_string())?;
        }
        fs::write(runner.path(&format!("{name}/RUNPERF_METADATA")), format!("build:{name}\ndistro:Unknown\n"))?;
        if runner.random.random_bool(0.08) {
            let error = runner.path(&format!("{name}/{}/__error0__", folder(&plan[0])));
            fs::create_dir_all(&error)?;
            fs::write(error.join("exception"), format!("{name} failed"))?;
        }
    }
    Ok(names)
}

fn folder(check: &CheckPlan) -> String {
    format!("{}/{}/{}", check.profile, check.test, check.serial)
}

/// The test that prints figures: each sample the next line of a file.
const TEST: &str = r#"name = "figures"
summary = "figures of a file"
version = 1
command = ["sh", "-c", "n=$(cat count-{case} 2>/dev/null || echo 0); n=$((n + 1)); echo $n > count-{case}; sed -n $n'p' figures-{case}"]

[[param]]
name = "case"
help = "which file"
kind = "choice"
choices = ["a", "b", "c"]
default = "a"
axis = true

[[metric]]
name = "rate"
class = "throughput"
unit = "MB/s"
primary = true
regex = 'rate (\S+)'

[[metric]]
name = "time"
class = "latency"
unit = "ms"
regex = 'time (\S+)'
"#;

/// Measures builds of random figures with weighbridge, which writes them in run-perf's layout.
pub(super) fn written_builds(runner: &mut Runner) -> Result<Vec<String>, CaseError> {
    let folder = runner.path("");
    let test = TEST.replace("count-{case}", &format!("{}/count-{{case}}", folder.display()));
    let test = test.replace("figures-{case}", &format!("{}/figures-{{case}}", folder.display()));
    fs::create_dir_all(runner.path("config/weighbridge/tests.d"))?;
    fs::write(runner.path("config/weighbridge/tests.d/figures.toml"), test)?;
    let bases = [(); 6].map(|()| random_base(&mut runner.random).max(0.01));
    let names: Vec<String> =
        (0..one_of(&mut runner.random, &[2, 2, 3])).map(|number| format!("build{number}")).collect();
    for name in &names {
        let samples = runner.random.random_range(1..4);
        for (index, case) in ["a", "b", "c"].iter().enumerate() {
            let random = &mut runner.random;
            let [rate, time] = [0, 1].map(|metric| random_figure(random, bases[2 * index + metric]));
            let mut line = || {
                let [rate, time] = [rate, time].map(|figure| figure * random.random_range(0.97..1.03));
                format!("rate {rate} time {time}\n")
            };
            let lines: String = (0..samples).map(|_| line()).collect();
            fs::write(runner.path(&format!("figures-{case}")), lines)?;
            // The first build has none.
            let _ = fs::remove_file(runner.path(&format!("count-{case}")));
        }
        let cases = one_of(&mut runner.random, &["[a,b,c]", "[a,b,c]", "[a,b]"]);
        let (spec, samples) = (format!("figures:case={cases}"), samples.to_string());
        let run = format!("{name}/.weighbridge");
        let layout = format!("run-perf={name}");
        runner.weighbridge(&[
            "run",
            "--samples",
            &samples,
            "--warm-up",
            "0",
            "--retakes",
            "0",
            "--into",
            &run,
            "--layout",
            &layout,
            "--",
            &spec,
        ])?;
    }
    Ok(names)
}
