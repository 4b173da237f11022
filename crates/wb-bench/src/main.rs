//! Benchmarks of weighbridge: its kernels against other tools, interleaved in one run, and its overhead against limits.
//!
//! Purpose: determine by how much our kernels are faster or slower than the standard tools on this machine, with a
//! confidence interval. Every figure comes from a separate process; the two sides of a benchmark alternate in random
//! order, so that a disturbance affects both.
//!
//! Must not depend on: plans, runs, tests. It measures kernels and commands, not cells.
//!
//! Start with [`pairs`], which runs and judges paired benchmarks; each subject (`himeno.rs`, `ramspeed.rs`, …) only
//! lists its benchmarks. [`benchmark`] does the same for figures that have no peer: of the harness (`harness.rs`,
//! `elapsed.rs`), of comparing builds (`compare.rs`), of other hosts (`hosts.rs`), of matrices (`peers.rs`) and of the
//! request workload (`hashd`).

#![forbid(unsafe_code)]

mod bench_env;
mod benchmark;
mod child_guard;
mod compare;
mod document;
mod elapsed;
mod exec;
mod harness;
mod hashd;
mod himeno;
mod hosts;
mod lapack;
mod linpack;
mod machine;
mod net;
mod pairs;
mod peers;
mod pypi_wheels;
mod ramspeed;

use bench_env::BenchEnv;
use benchmark::{Benchmark, BenchmarkResult};
use clap::{Parser, Subcommand};
use document::{DocumentRow, Provenance};
use pairs::{PairResult, PairRunner, PairedBenchmark};
use std::fmt::Display;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

/// Compare our kernels with other tools and our overhead with limits
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Args {
    /// Benchmarks to run, by parts of their names (default: all)
    rows: Vec<String>,
    /// Number of pairs per benchmark; an interval needs 6
    #[arg(long, default_value_t = 21, value_parser = clap::value_parser!(u32).range(1..))]
    pairs: u32,
    /// Maximum number of pairs of a benchmark whose interval is still wider than 4 %
    #[arg(long, default_value_t = 41, value_parser = clap::value_parser!(u32).range(1..))]
    max_pairs: u32,
    /// Seconds per figure, for tools that support it
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// The weighbridge program whose commands are measured, such as the packaged one (default: next to this program)
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// List the names of the benchmarks and exit
    #[arg(long)]
    list: bool,
    /// Write all results to FILE as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Rewrite the tables of results in the Markdown file FILE
    #[arg(long, value_name = "FILE")]
    document: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Run one of our kernels in this process and print its report
    #[command(hide = true)]
    Exec {
        /// The kernel
        kernel: exec::Kernel,
        /// The kernel's configuration as JSON
        config: String,
    },
    /// Run a server and its client and print the client's output
    #[command(hide = true)]
    ClientServer {
        /// Server and client as JSON
        config: String,
    },
}

const SUBJECTS: [fn(&BenchEnv) -> Vec<PairedBenchmark<'_>>; 4] =
    [himeno::rows, linpack::rows, net::rows, ramspeed::rows];

fn main() -> ExitCode {
    let args = Args::parse();
    let outcome = match &args.command {
        Some(Command::Exec { kernel, config }) => exec::run(*kernel, config),
        Some(Command::ClientServer { config: both }) => net::run(both),
        None => bench(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bench(args: &Args) -> Result<(), Box<dyn std::error::Error>> {
    let env = BenchEnv::new(args.seconds, args.program.clone())?;
    let is_selected = |name: &str| args.rows.is_empty() || args.rows.iter().any(|part| name.contains(part));
    let rows: Vec<PairedBenchmark<'_>> =
        SUBJECTS.iter().flat_map(|rows| rows(&env)).filter(|row| is_selected(&row.name)).collect();
    let groups = [
        harness::benchmarks,
        compare::benchmarks,
        net::benchmarks,
        hosts::benchmarks,
        peers::benchmarks,
        hashd::benchmarks,
    ];
    let benchmarks = groups.iter().flat_map(|group: &fn(&BenchEnv) -> Vec<Benchmark<'_>>| group(&env));
    let benchmarks: Vec<Benchmark<'_>> = benchmarks.filter(|benchmark| is_selected(benchmark.name)).collect();
    if args.list {
        rows.iter()
            .map(|row| row.name.as_str())
            .chain(benchmarks.iter().map(|benchmark| benchmark.name))
            .for_each(|name| println!("{name}"));
        return Ok(());
    }
    println!("machine: {}", machine::describe_machine());
    let plan = PairRunner { pairs: args.pairs, max_pairs: args.max_pairs };
    let results: Vec<PairResult> = rows.into_iter().map(|row| print_result(plan.run(row))).collect();
    let bounded: Vec<BenchmarkResult> = benchmarks.into_iter().map(|benchmark| print_result(benchmark.run())).collect();
    if let Some(file) = &args.json {
        let all = serde_json::json!({ "machine": machine::describe_machine(), "rows": results, "bounded": bounded });
        fs::write(file, serde_json::to_string_pretty(&all)?).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    if let Some(file) = &args.document {
        let rows: Vec<DocumentRow> = results.iter().filter_map(PairResult::row).collect();
        let rows: Vec<DocumentRow> = rows.into_iter().chain(bounded.iter().flat_map(BenchmarkResult::rows)).collect();
        let provenance = Provenance {
            date: jiff::Zoned::now().date().to_string(),
            commit: env.commit()?,
            machine: machine::describe_machine(),
        };
        document::update_file(file, &rows, &provenance)?;
    }
    Ok(())
}

/// Prints a result as soon as it is available, since the next one may take long.
fn print_result<T: Display>(result: T) -> T {
    println!("{result}");
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_benchmarks_start_are_commands_of_this_program() {
        let env = BenchEnv::new(1.0, None).unwrap();
        let both = net::ClientServer { server: vec![], client: vec![], port: 1, env: vec![] };
        for line in [env.kernel_command("linpack", &()).unwrap(), env.client_server_command(&both).unwrap()] {
            assert!(Args::try_parse_from(&line).unwrap().command.is_some(), "{line:?}");
        }
    }
}
