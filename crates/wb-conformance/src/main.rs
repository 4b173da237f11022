//! Conformance: runs other programs with random options, and holds every figure that weighbridge has of a run against
//! the program's own report.
//!
//! Purpose: find what an importer or a test reads otherwise than the program means it. The other side is never the file
//! that weighbridge read, but another report of the same run, which the program wrote for people or in another format.
//!
//! Must not depend on: any crate that reads results. It calls the program.
//!
//! Start with [`case`] (one run and its figures) and [`subjects`] (a module per program); [`printed`] reads numbers as
//! they are printed, with their precision.

#![forbid(unsafe_code)]

mod case;
mod csv;
mod printed;
mod subjects;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::case::{CaseError, Runner};
use crate::subjects::Subject;
use crate::table::Row;

/// Run other programs with random options, and compare weighbridge's figures with those of their own reports
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Programs to run, by parts of their names (default: all)
    subjects: Vec<String>,
    /// Runs of each program, with options drawn anew
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    cases: u32,
    /// Seed of the options
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The weighbridge program (default: next to this program)
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// List the programs and exit
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let matches = |subject: &&dyn Subject, part: &String| subject.name().contains(part.as_str());
    if let Some(unknown) = args.subjects.iter().find(|part| !subjects::ALL.iter().any(|it| matches(it, part))) {
        let names: Vec<&str> = subjects::ALL.iter().map(|subject| subject.name()).collect();
        eprintln!("error: no program `{unknown}`: expected one of {}", names.join(", "));
        return ExitCode::from(2);
    }
    let is_requested =
        |subject: &&dyn Subject| args.subjects.is_empty() || args.subjects.iter().any(|part| matches(subject, part));
    let subjects: Vec<&dyn Subject> = subjects::ALL.iter().copied().filter(is_requested).collect();
    if args.list {
        subjects.iter().for_each(|subject| println!("{}", subject.name()));
        return ExitCode::SUCCESS;
    }
    let program = match args.program.map_or_else(program_beside, Ok) {
        Ok(program) => program,
        Err(error) => {
            eprintln!("error: no program `weighbridge` beside this one: {error}");
            return ExitCode::from(2);
        }
    };
    let rows: Vec<Row> = subjects.iter().map(|subject| run(*subject, &program, args.seed, args.cases)).collect();
    print!("\n{}", table::render(&rows));
    // As for tests: what is missing is no success where nothing may be.
    let requires_all = std::env::var_os("WEIGHBRIDGE_REQUIRE").is_some_and(|required| required == "all");
    let has_failed = |row: &Row| match &row.version {
        None => requires_all,
        // Options that the program always refuses would show nothing.
        Some(_) => !row.differences.is_empty() || row.figures == 0,
    };
    let failed = rows.iter().any(has_failed);
    ExitCode::from(u8::from(failed))
}

fn program_beside() -> std::io::Result<PathBuf> {
    let program = std::env::current_exe()?.with_file_name("weighbridge");
    program.metadata().map(|_| program)
}

fn run(subject: &dyn Subject, program: &std::path::Path, seed: u64, cases: u32) -> Row {
    let mut row = Row::new(subject.name(), subject.version(), subject.absence());
    if row.version.is_none() {
        return row;
    }
    for number in 0..subject.cases().unwrap_or(cases) {
        let mut runner = match Runner::new(program, subject.name(), seed, number) {
            Ok(runner) => runner,
            Err(error) => {
                row.differences.push(format!("case {number}: {error}"));
                continue;
            }
        };
        let result = subject.run(&mut runner);
        let case = runner.finish();
        row.cases += 1;
        row.figures += case.figures;
        let mut differences = case.differences;
        if let Err(error) = result {
            // What the program itself refuses is no case.
            match error {
                CaseError::Refused(_) => row.refused += 1,
                other => differences.push(other.to_string()),
            }
        }
        for difference in differences {
            println!("{} {number}: {}: {difference}", subject.name(), case.options);
            row.differences.push(difference);
        }
    }
    row
}
