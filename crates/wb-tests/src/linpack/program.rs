//! Linpack programs of others: their input made, run, their output read, and the BLAS that they resolve to recorded.

use std::path::{Path, PathBuf};

use wb_agent::Command;
use wb_model::outcome::Gate;
use wb_model::{Nanos, Placement, Requirement};

use super::external::blas::{self, Blas};
use super::external::input::{HplInput, LinInput, LinTest};
use super::external::{hpcc, hpl, intel};
use super::params::ProgramKind;
use super::{Params, Solution, parameter_error, process_seconds, reject_output, summarize_solutions};
use crate::attempt::worker_failure;
use crate::{Artefacts, Attempt, Failure, Measurement, Rejection};

/// Under this name the program's output is kept.
const OUTPUT_NAME: &str = "linpack";
/// What `ldd` says of the program.
const LDD: &str = "ldd.txt";
/// The file that the BLAS it asks for is, links followed.
const BLAS: &str = "blas.txt";
/// How often it was to solve.
const SOLUTIONS: &str = "solutions.json";
/// Where hpcc writes.
const HPCC_OUTPUT: &str = "hpccoutf.txt";
const LININPUT: &str = "linpack.input";
/// Columns of a block of HPL: about the best for the BLAS of today.
const BLOCK_COLUMNS: u64 = 192;

/// What it needs on its worker.
pub(super) fn requires(params: &Params) -> Vec<Requirement> {
    let package = if params.program_kind() == ProgramKind::Hpcc { "hpcc" } else { "" };
    let binary = params.is_external().then(|| Requirement::new(&params.linpack_binary, package, &[]));
    let numactl = (!params.numactl_args.is_empty()).then(|| Requirement::new("numactl", "numactl", &[]));
    binary.into_iter().chain(numactl).collect()
}

/// Where the placement and numactl would both place it.
pub(super) fn placement_contradiction(params: &Params, placement: &Placement) -> Option<String> {
    const CPUS: [&str; 5] = ["-C", "-N", "--physcpubind", "--cpunodebind", "--cpubind"];
    const MEMORY: [&str; 9] =
        ["-m", "-i", "-l", "-p", "-P", "--membind", "--interleave", "--localalloc", "--preferred"];
    let given = |flags: &[&str]| {
        params.numactl_args.split_whitespace().find(|word| flags.iter().any(|flag| word.starts_with(flag)))
    };
    let cpus = given(&CPUS).filter(|_| !placement.cpus.is_empty()).map(|word| (word, "cpus"));
    let memory = || given(&MEMORY).filter(|_| !placement.memory_nodes.is_empty()).map(|word| (word, "memory-nodes"));
    let (word, parameter) = cpus.or_else(memory)?;
    Some(parameter_error(
        "numactl-args",
        format!("`{word}` and `{parameter}` both say where it runs: give one of them"),
    ))
}

/// Sees that numactl takes its arguments: a program that it cannot start would look like one that crashes.
async fn check_numactl(params: &Params, attempt: &Attempt) -> Result<(), Failure> {
    if params.numactl_args.is_empty() {
        return Ok(());
    }
    let argv = ["numactl"].into_iter().chain(params.numactl_args.split_whitespace()).chain(["true"]);
    let finished = attempt.context.run_to_end(attempt.context.command(argv)).await?;
    if finished.ending.is_success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&finished.stderr).into_owned();
    let first = said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it does not say why");
    Err(Failure::refused(parameter_error("numactl-args", format!("numactl does not take them: {first}"))))
}

/// Memory that its matrix needs, in bytes.
pub(super) fn matrix_bytes(params: &Params) -> u64 {
    params.leading_dimension().saturating_mul(*params.problem_sizes).saturating_mul(8)
}

pub(super) async fn sample(params: &Params, attempt: &mut Attempt) -> Result<(), Failure> {
    record_blas(params, attempt).await?;
    check_numactl(params, attempt).await?;
    let most = params.program_kind().max_trials();
    let solutions = match params.trials().or(attempt.work) {
        Some(solutions) => solutions,
        None if most == 1 => 1,
        None => {
            let output = run(params, attempt, "calibration", 1).await?;
            let seconds: f64 = parse_solutions(params.program_kind(), &output)
                .map_err(|rejected| Failure::crashed(format!("{}: {rejected}", params.linpack_binary)))?
                .iter()
                .map(|solution| solution.seconds.max(1e-3))
                .sum();
            ((attempt.min_time.seconds() / seconds).ceil() as u64).clamp(1, most)
        }
    };
    attempt.add_artefact(SOLUTIONS, solutions.to_string());
    run(params, attempt, OUTPUT_NAME, solutions).await?;
    attempt.record_work(solutions);
    Ok(())
}

/// Finds out which BLAS it resolves to, and refuses to run without.
async fn record_blas(params: &Params, attempt: &mut Attempt) -> Result<(), Failure> {
    let site = &attempt.context;
    let binary = &params.linpack_binary;
    let tool = site.worker().which(binary, &[]).await.map_err(worker_failure)?;
    let path = tool.ok_or_else(|| Failure::refused(format!("there is no program `{binary}`")))?.path;
    // It says `not a dynamic executable` by its status too.
    let ldd = site.run_to_end(Command::new(["ldd", &path])).await?.stdout;
    let file = match blas::resolve(&String::from_utf8_lossy(&ldd), |_| None) {
        Blas::Shared { file, .. } => site.run(Command::new(["readlink", "-f", &file.to_string_lossy()])).await?,
        Blas::BuiltIn => Vec::new(),
        Blas::NotFound { soname } => {
            return Err(Failure::refused(format!("{binary} asks for `{soname}`, which is not there")));
        }
    };
    attempt.add_artefact(LDD, ldd);
    attempt.add_artefact(BLAS, file);
    Ok(())
}

/// Runs it once; what it wrote about its results.
async fn run(params: &Params, attempt: &mut Attempt, name: &str, solutions: u64) -> Result<String, Failure> {
    let (file, input) = render_input(params, solutions)?;
    // hpcc appends to what is there: each run has a folder of its own.
    let folder = attempt.context.path(name);
    attempt.context.run(Command::new(["mkdir", &folder])).await?;
    attempt.context.put(&format!("{folder}/{file}"), input.as_bytes()).await?;
    attempt.add_artefact(&format!("{name}.{file}"), input);
    let command = command(params, attempt).cwd(&folder);
    let printed = attempt.run(name, command).await?.stdout;
    if params.program_kind() != ProgramKind::Hpcc {
        return Ok(String::from_utf8_lossy(&printed).into_owned());
    }
    let written = attempt.context.get(&format!("{folder}/{HPCC_OUTPUT}")).await?;
    attempt.add_artefact(HPCC_OUTPUT, written.clone());
    Ok(String::from_utf8_lossy(&written).into_owned())
}

fn command(params: &Params, attempt: &Attempt) -> Command {
    let numactl = (!params.numactl_args.is_empty()).then_some("numactl");
    let argv =
        numactl.into_iter().chain(params.numactl_args.split_whitespace()).chain([params.linpack_binary.as_str()]);
    let mut command = attempt.context.command(argv);
    if params.program_kind() == ProgramKind::Xlinpack {
        command = command.arg(LININPUT);
    }
    if params.use_omp {
        let threads = params.threads.unwrap_or(1).to_string();
        command = command.env("OMP_NUM_THREADS", threads).env("KMP_AFFINITY", &params.kmp_affinity);
    }
    command
}

/// The name and text of its input file.
fn render_input(params: &Params, solutions: u64) -> Result<(&'static str, String), Failure> {
    let size = *params.problem_sizes;
    let hpl = || HplInput {
        sizes: vec![size; solutions as usize],
        blocks: vec![BLOCK_COLUMNS.min(size)],
        grids: vec![(1, 1)],
    };
    Ok(match params.program_kind() {
        ProgramKind::Hpl => ("HPL.dat", hpl().hpl_dat()),
        ProgramKind::Hpcc => ("hpccinf.txt", hpl().hpccinf()),
        ProgramKind::Auto | ProgramKind::Xlinpack => {
            let test = LinTest {
                size,
                leading_dimension: params.leading_dimension(),
                trials: solutions,
                alignment_kib: params.alignment_values,
            };
            let (header, subheader) = (params.lininput_header.clone(), params.lininput_subheader.clone());
            let input = LinInput::new(header, subheader, vec![test]);
            (LININPUT, input.map_err(|error| Failure::refused(error.to_string()))?.to_string())
        }
    })
}

pub(super) fn study(params: &Params, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
    let kind = params.program_kind();
    let written = if kind == ProgramKind::Hpcc { HPCC_OUTPUT.to_owned() } else { format!("{OUTPUT_NAME}.stdout") };
    let output = artefacts.text(&written)?;
    let solutions = parse_solutions(kind, &output)?;
    let mut measured =
        summarize_solutions(&solutions, artefacts.json(SOLUTIONS)?, process_seconds(artefacts, OUTPUT_NAME)?);
    for (what, asked, done) in compare_with_request(params, &output)? {
        measured.require(asked == done, Gate::Work, || format!("{what}: {asked} asked for, {done} done"));
    }
    let (ldd, file) = (artefacts.text(LDD)?, artefacts.text(BLAS)?);
    let file = PathBuf::from(file.trim_end());
    let blas = match blas::resolve(&ldd, |_: &Path| (!file.as_os_str().is_empty()).then(|| file.clone())) {
        Blas::Shared { file, family, .. } => format!("{family:?} ({})", file.display()),
        Blas::NotFound { soname } => format!("{soname}, not found"),
        Blas::BuiltIn => "built in".to_owned(),
    };
    measured.add_provenance("blas", blas);
    measured.add_provenance("solutions", solutions.len());
    Ok(measured)
}

/// The solutions that the output of such a program tells of.
fn parse_solutions(kind: ProgramKind, output: &str) -> Result<Vec<Solution>, Rejection> {
    match kind {
        ProgramKind::Auto | ProgramKind::Xlinpack => {
            let solution = |trial: &intel::Trial| Solution {
                seconds: trial.seconds,
                gflops: trial.gflops,
                residual: trial.normalized_residual,
                passed: trial.passed,
            };
            let output = intel::parse(output).map_err(|error| reject_output(&error))?;
            Ok(output.trials.iter().map(solution).collect())
        }
        ProgramKind::Hpl => parse_hpl_solutions(output),
        ProgramKind::Hpcc => {
            let summary = hpcc::parse(output).map_err(|error| reject_output(&error))?;
            let number = |name| summary.number(name).map_err(|error| reject_output(&error));
            let (gflops, seconds) = (number(hpcc::name::HPL_TFLOPS)? * 1e3, number("HPL_time")?);
            let residual = summary.hpl_residual().map_err(|error| reject_output(&error))?;
            let passed = summary.succeeded() && parse_hpl_solutions(output)?.iter().all(|solution| solution.passed);
            Ok(vec![Solution { seconds, gflops, residual, passed }])
        }
    }
}

fn parse_hpl_solutions(output: &str) -> Result<Vec<Solution>, Rejection> {
    let solution = |solve: &hpl::HplResult| Solution {
        seconds: solve.seconds,
        gflops: solve.gflops,
        residual: solve.checks.iter().map(|check| check.residual).fold(0.0, super::max_or_nan),
        passed: solve.passed(),
    };
    Ok(hpl::parse(output).map_err(|error| reject_output(&error))?.iter().map(solution).collect())
}

/// What was asked for and what the output says was done.
fn compare_with_request(params: &Params, output: &str) -> Result<Vec<(&'static str, u64, u64)>, Rejection> {
    let size = *params.problem_sizes;
    if params.program_kind() != ProgramKind::Xlinpack {
        let solves = hpl::parse(output).map_err(|error| reject_output(&error))?;
        return Ok(solves.iter().map(|solve| ("problem size", size, solve.size)).collect());
    }
    let output = intel::parse(output).map_err(|error| reject_output(&error))?;
    let threads = params.use_omp.then_some(params.threads).flatten().zip(output.threads);
    let threads = threads.map(|(asked, done)| ("threads", u64::from(asked), u64::from(done)));
    let trial = |trial: &intel::Trial| {
        [
            ("problem size", size, trial.size),
            ("leading dimension", params.leading_dimension(), trial.leading_dimension),
            ("alignment in KiB", params.alignment_values, trial.alignment_kib),
        ]
    };
    Ok(output.trials.iter().flat_map(trial).chain(threads).collect())
}

/// Extra time of a sample of hpcc, which runs further benchmarks.
pub(super) fn extra_time(params: &Params) -> Nanos {
    Nanos(if params.is_external() && params.program_kind() == ProgramKind::Hpcc { 10_000_000_000 } else { 0 })
}
