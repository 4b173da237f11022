//! Weighbridge's own speed against its peers, alternating in one run, and its own cost against limits.
//!
//! For: saying by how much our kernels are faster or slower than the field's standard tools on
//! this machine, with an interval. Every figure comes from a process of its own; the two sides of
//! a row take turns in random order, so that what disturbs the machine disturbs both.
//!
//! Must not know: plans, runs, tests. It measures kernels and commands, not cells.
//!
//! Start with [`pairs`], which runs and judges rows; each subject (`himeno.rs`, `ramspeed.rs`, …)
//! only says which rows there are. [`limits`] does the same for figures that have no peer, of the
//! harness (`harness.rs`, `elapsed.rs`), of comparing builds (`compare.rs`) and of other hosts (`hosts.rs`).

mod bench_env;
mod compare;
mod elapsed;
mod exec;
mod harness;
mod himeno;
mod hosts;
mod lapack;
mod limits;
mod linpack;
mod machine;
mod net;
mod pairs;
mod pypi_wheels;
mod ramspeed;

use bench_env::BenchEnv;
use clap::{Parser, Subcommand};
use limits::{LimitCheck, LimitResult};
use pairs::{PairResult, PairRunner, PairedBenchmark};
use std::{fmt::Display, fs, path::PathBuf, process::ExitCode};

/// Compare our kernels with their peers, alternating in one run
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Args {
    /// Rows whose names contain one of these; all without
    rows: Vec<String>,
    /// Pairs of each row; an interval needs 6
    #[arg(long, default_value_t = 21, value_parser = clap::value_parser!(u32).range(1..))]
    pairs: u32,
    /// Seconds that one figure takes, where it can be chosen
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Only name the rows
    #[arg(long)]
    list: bool,
    /// Write everything that was measured to a file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
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
        /// Its configuration as JSON
        config: String,
    },
    /// Run a server and its client and print what the client printed
    #[command(hide = true)]
    Both {
        /// The two as JSON
        both: String,
    },
}

/// Every subject: add one here.
const SUBJECTS: [fn(&BenchEnv) -> Vec<PairedBenchmark<'_>>; 4] =
    [himeno::rows, linpack::rows, net::rows, ramspeed::rows];

fn main() -> ExitCode {
    let args = Args::parse();
    let outcome = match &args.command {
        Some(Command::Exec { kernel, config }) => exec::run(*kernel, config),
        Some(Command::Both { both }) => net::run(both),
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
    let place = BenchEnv::new(args.seconds)?;
    let wanted = |name: &str| args.rows.is_empty() || args.rows.iter().any(|part| name.contains(part));
    let rows: Vec<PairedBenchmark<'_>> =
        SUBJECTS.iter().flat_map(|rows| rows(&place)).filter(|row| wanted(&row.name)).collect();
    let limits = [harness::limits, compare::limits, net::limits, hosts::limits].into_iter();
    let limits = limits.flat_map(|limits: fn(&BenchEnv) -> Vec<LimitCheck<'_>>| limits(&place));
    let limits: Vec<LimitCheck<'_>> = limits.filter(|limit| wanted(limit.name)).collect();
    if args.list {
        rows.iter()
            .map(|row| row.name.as_str())
            .chain(limits.iter().map(|limit| limit.name))
            .for_each(|name| println!("{name}"));
        return Ok(());
    }
    println!("{}", machine::describe_machine());
    let plan = PairRunner { pairs: args.pairs };
    let judged: Vec<PairResult> = rows.into_iter().map(|row| print_result(plan.run(row))).collect();
    let checked: Vec<LimitResult> = limits.into_iter().map(|limit| print_result(limit.run())).collect();
    if let Some(file) = &args.json {
        let all = serde_json::json!({ "machine": machine::describe_machine(), "rows": judged, "limits": checked });
        fs::write(file, serde_json::to_string_pretty(&all)?).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(())
}

/// Tells each result as it comes: a later one may take long.
fn print_result<T: Display>(result: T) -> T {
    println!("{result}");
    result
}
