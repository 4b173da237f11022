//! Google Benchmark: a program with its library is compiled for each case; its JSON is imported, and its CSV, of the
//! same run, is the other side.

use std::collections::BTreeMap;
use std::path::Path;

use rand::Rng;

use super::{Subject, one_of, version_of};
use crate::case::{CaseError, Figures, Runner};
use crate::csv;
use crate::printed::Printed;

pub(super) struct GoogleBenchmark;

const HEADER: &str = "/usr/include/benchmark/benchmark.h";

/// The macros are drawn for each case. In CSV all benchmarks must have the same counters.
const PROGRAM: &str = r#"
#include <benchmark/benchmark.h>

static void count(benchmark::State& state) {
    for (auto _ : state) {
        for (int n = 0; n < state.range(0); ++n) benchmark::DoNotOptimize(n);
    }
    state.SetItemsProcessed(state.iterations() * state.range(0));
    state.SetBytesProcessed(state.iterations() * 64);
    state.counters["plain"] = 7.25;
    state.counters["rate"] = benchmark::Counter(state.iterations(), benchmark::Counter::kIsRate);
    state.counters["per_thread"] = benchmark::Counter(state.range(0), benchmark::Counter::kAvgThreadsRate);
    state.counters["inverse"] = benchmark::Counter(state.iterations(), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
    state.SetComplexityN(state.range(0));
    state.SetLabel("range " + std::to_string(state.range(0)));
}
BENCHMARK(count)->Arg(100)->Arg(3000)->Unit(benchmark::UNIT);
BENCHMARK(count)->ArgName("n")->RangeMultiplier(8)->Range(8, 512)->Repetitions(REPETITIONS)->Unit(benchmark::UNIT);
BENCHMARK(count)->ArgNames({"x", "x"})->Args({7, 1})->Args({9, 1})->Unit(benchmark::UNIT);
BENCHMARK(count)->ArgName("t")->Arg(500)->Threads(THREADS)->UseRealTime()->Unit(benchmark::UNIT);
BENCHMARK(count)->ArgName("family")->Arg(300)->MeasureProcessCPUTime()->Repetitions(2)->ReportAggregatesOnly(AGGREGATES);
BENCHMARK(count)->ArgName("fit")->RangeMultiplier(4)->Range(8, 512)->Complexity(FIT);

static void skip(benchmark::State& state) {
    state.SkipWithError("drawn");
    for (auto _ : state) {}
}
BENCHMARK(skip);

BENCHMARK_MAIN();
"#;

impl Subject for GoogleBenchmark {
    fn name(&self) -> &'static str {
        "google-benchmark"
    }

    fn version(&self) -> Option<String> {
        version_of("g++", &["--version"]).filter(|_| Path::new(HEADER).is_file())
    }

    fn run(&self, runner: &mut Runner) -> Result<(), CaseError> {
        let random = &mut runner.random;
        let units = ["kNanosecond", "kMicrosecond", "kMillisecond", "kSecond"];
        let macros = [
            format!("-DUNIT={}", one_of(random, &units)),
            format!("-DREPETITIONS={}", random.random_range(1..4)),
            format!("-DTHREADS={}", one_of(random, &[1, 2])),
            format!("-DFIT={}", one_of(random, &["benchmark::oN", "benchmark::oAuto", "benchmark::oNLogN"])),
            format!("-DAGGREGATES={}", random.random_bool(0.5)),
        ];
        let mut options = vec![
            "--benchmark_min_time=0.005".to_owned(),
            "--benchmark_format=csv".to_owned(),
            "--benchmark_out=report.json".to_owned(),
            "--benchmark_out_format=json".to_owned(),
        ];
        for (share, option) in [
            (0.3, "--benchmark_repetitions=3"),
            (0.3, "--benchmark_report_aggregates_only=true"),
            (0.3, "--benchmark_enable_random_interleaving=true"),
        ] {
            options.extend(random.random_bool(share).then(|| option.to_owned()));
        }
        runner.options = [&macros[..], &options[..]].concat().join(" ");
        std::fs::write(runner.path("bench.cc"), PROGRAM)?;
        let flags = ["-O1", "bench.cc", "-o", "bench", "-lbenchmark", "-lpthread"].map(str::to_owned);
        runner.run("g++", &[&macros[..], &flags[..]].concat())?;
        let text = runner.run("./bench", &options)?;
        runner.weighbridge(&["import", "-o", "imported", "report.json"])?;
        let ours = runner.cells("imported")?;
        let rows = csv::parse(&text);
        let mut cells: BTreeMap<String, Vec<&BTreeMap<String, String>>> = BTreeMap::new();
        for row in &rows {
            let name = row.get("name").map_or("", String::as_str);
            // Computed from the rows of other benchmarks.
            if name.ends_with("_BigO") || name.ends_with("_RMS") {
                continue;
            }
            cells.entry(cell_id(without_aggregate(name))).or_default().push(row);
        }
        if let Some(other) = ours.keys().find(|cell| !cells.contains_key(*cell)) {
            return Err(CaseError::Failed(format!("a cell `{other}` that the library does not report")));
        }
        for (cell, rows) in cells {
            let none = Figures::new();
            compare(runner, ours.get(&cell).unwrap_or(&none), &rows)?;
        }
        Ok(())
    }
}

/// What the library appends to the names of aggregates.
const AGGREGATES: [&str; 4] = ["_mean", "_median", "_stddev", "_cv"];

fn without_aggregate(name: &str) -> &str {
    AGGREGATES.iter().find_map(|aggregate| name.strip_suffix(aggregate)).unwrap_or(name)
}

/// Compares a cell with its rows: with all repetitions, or with the median if there are only aggregates.
fn compare(runner: &mut Runner, ours: &Figures, rows: &[&BTreeMap<String, String>]) -> Result<(), CaseError> {
    let field = |row: &BTreeMap<String, String>, name: &str| row.get(name).cloned().unwrap_or_default();
    let is_repetition = |row: &&&BTreeMap<String, String>| without_aggregate(&field(row, "name")) == field(row, "name");
    let mut samples: Vec<&BTreeMap<String, String>> = rows.iter().filter(is_repetition).copied().collect();
    if samples.is_empty() {
        samples = rows.iter().filter(|row| field(row, "name").ends_with("_median")).copied().collect();
    }
    if samples.iter().any(|row| field(row, "error_occurred") == "true") {
        return if ours.is_empty() {
            Ok(())
        } else {
            Err(CaseError::Failed(format!("figures of a benchmark that failed: {ours:?}")))
        };
    }
    let columns = [
        ("real_time", "latency/real-time", true),
        ("cpu_time", "latency/cpu-time", true),
        ("bytes_per_second", "throughput/bytes_per_second", false),
        ("items_per_second", "throughput/items_per_second", false),
        ("plain", "check/plain", false),
        ("rate", "check/rate", false),
        ("per_thread", "check/per_thread", false),
        ("inverse", "check/inverse", false),
    ];
    for (column, metric, is_time) in columns {
        let values = samples.iter().map(|row| {
            let unit = if is_time { seconds(&field(row, "time_unit"))? } else { 1.0 };
            Some(Printed::parse(&field(row, column))?.times(unit))
        });
        let mean = values.collect::<Option<Vec<_>>>().and_then(|values| Printed::mean(&values));
        runner.compare(ours, metric, mean.ok_or_else(|| CaseError::NotReported(column.to_owned()))?);
    }
    Ok(())
}

fn seconds(unit: &str) -> Option<f64> {
    match unit {
        "ns" => Some(1e-9),
        "us" => Some(1e-6),
        "ms" => Some(1e-3),
        "s" => Some(1.0),
        _ => None,
    }
}

/// The name of a benchmark's cell: `count/x:7/x:1` is that with the first `x` 7 and the second 1.
fn cell_id(benchmark: &str) -> String {
    let mut parts = benchmark.split('/');
    let mut axes = BTreeMap::from([
        ("benchmark".to_owned(), parts.next().unwrap_or_default().to_owned()),
        ("executable".to_owned(), "bench".to_owned()),
    ]);
    for part in parts {
        let (name, value) = match part.split_once(':') {
            Some((name, value)) => (name, value),
            None if part.parse::<f64>().is_ok() => ("argument-1", part),
            None => (part, "true"),
        };
        let mut own = name.to_owned();
        while axes.contains_key(&own) {
            own = format!("{name}-{}", axes.keys().filter(|axis| axis.starts_with(name)).count() + 1);
        }
        axes.insert(own, value.to_owned());
    }
    let axes: Vec<String> = axes.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("Localhost/google-benchmark/0000:{}", axes.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_cells() {
        let expected = "Localhost/google-benchmark/0000:benchmark=count,executable=bench,repeats=2,x=7,x-2=1";
        assert_eq!(cell_id("count/x:7/x:1/repeats:2"), expected);
        assert!(
            cell_id("count/100/real_time").contains("argument-1=100,benchmark=count,executable=bench,real_time=true")
        );
    }
}
