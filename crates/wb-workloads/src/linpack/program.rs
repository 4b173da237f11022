//! External linpack programs: creates their input, runs them, parses their output, and records the BLAS that they use.

use std::path::{Path, PathBuf};

use wb_agent::Command;
use wb_model::outcome::Gate;
use wb_model::{Nanos, Placement, Requirement};
use wb_test::{Artefacts, Attempt, Failure, Measurement, Rejection};

use super::external::blas::{self, Blas};
use super::external::input::{HplInput, XlinpackInput, XlinpackProblem};
use super::external::{hpcc, hpl, intel};
use super::params::ProgramKind;
use super::{LinpackParams, Solution, parameter_error, process_seconds, reject_output, summarize_solutions};

const OUTPUT_NAME: &str = "linpack";
const LDD: &str = "ldd.txt";
/// Artefact with the path of the BLAS that the program uses, with symbolic links resolved.
const BLAS: &str = "blas.txt";
/// Artefact with the requested number of solutions.
const SOLUTIONS: &str = "solutions.json";
const HPCC_OUTPUT: &str = "hpccoutf.txt";
const LININPUT: &str = "linpack.input";
/// Block size of HPL in columns; close to the optimum of current BLAS implementations.
const BLOCK_COLUMNS: u64 = 192;

pub(super) fn requires(params: &LinpackParams) -> Vec<Requirement> {
    let package = if params.program_kind() == ProgramKind::Hpcc { "hpcc" } else { "" };
    let binary = params.is_external().then(|| Requirement::new(&params.linpack_binary, package, &[]));
    let numactl = (!params.numactl_args.is_empty()).then(|| Requirement::new("numactl", "numactl", &[]));
    binary.into_iter().chain(numactl).collect()
}

/// Contradiction between the placement and the arguments of numactl, if any.
pub(super) fn placement_contradiction(params: &LinpackParams, placement: &Placement) -> Option<String> {
    const CPUS: [&str; 5] = ["-C", "-N", "--physcpubind", "--cpunodebind", "--cpubind"];
    const MEMORY: [&str; 9] =
        ["-m", "-i", "-l", "-p", "-P", "--membind", "--interleave", "--localalloc", "--preferred"];
    let find = |flags: &[&str]| {
        params.numactl_args.split_whitespace().find(|word| flags.iter().any(|flag| word.starts_with(flag)))
    };
    let cpus = find(&CPUS).filter(|_| !placement.cpus.is_empty()).map(|word| (word, "cpus"));
    let memory = || find(&MEMORY).filter(|_| !placement.memory_nodes.is_empty()).map(|word| (word, "memory-nodes"));
    let (word, parameter) = cpus.or_else(memory)?;
    Some(parameter_error(
        "numactl-args",
        format!("`{word}` and `{parameter}` are mutually exclusive: give one of them"),
    ))
}

/// Checks that numactl accepts its arguments: otherwise its error would look like a crash of the program.
async fn check_numactl(params: &LinpackParams, attempt: &Attempt) -> Result<(), Failure> {
    if params.numactl_args.is_empty() {
        return Ok(());
    }
    let argv = ["numactl"].into_iter().chain(params.numactl_args.split_whitespace()).chain(["true"]);
    let finished = attempt.context.run_to_end(attempt.context.command(argv)).await?;
    if finished.exit_reason.is_success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&finished.stderr).into_owned();
    let reason = stderr.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no error message");
    Err(Failure::refused(parameter_error("numactl-args", format!("numactl rejects them: {reason}"))))
}

pub(super) fn matrix_bytes(params: &LinpackParams) -> u64 {
    params.leading_dimension().saturating_mul(*params.problem_sizes).saturating_mul(8)
}

pub(super) async fn sample(params: &LinpackParams, attempt: &mut Attempt) -> Result<(), Failure> {
    record_blas(params, attempt).await?;
    check_numactl(params, attempt).await?;
    let max_trials = params.program_kind().max_trials();
    let solutions = match params.trials().or(attempt.work) {
        Some(solutions) => solutions,
        None if max_trials == 1 => 1,
        None => {
            let output = run(params, attempt, "calibration", 1).await?;
            let seconds: f64 = parse_solutions(params.program_kind(), &output)
                .map_err(|rejection| Failure::crashed(format!("{}: {rejection}", params.linpack_binary)))?
                .iter()
                .map(|solution| solution.seconds.max(1e-3))
                .sum();
            ((attempt.min_time.seconds() / seconds).ceil() as u64).clamp(1, max_trials)
        }
    };
    attempt.add_artefact(SOLUTIONS, solutions.to_string());
    run(params, attempt, OUTPUT_NAME, solutions).await?;
    attempt.record_work(solutions);
    Ok(())
}

/// Records which BLAS the program uses; refuses to run if it is missing.
async fn record_blas(params: &LinpackParams, attempt: &mut Attempt) -> Result<(), Failure> {
    let context = &attempt.context;
    let binary = &params.linpack_binary;
    let tool = context.worker().which(binary, &[]).await?;
    let path = tool.ok_or_else(|| Failure::refused(format!("no such program: `{binary}`")))?.path;
    // The status is not 0 for `not a dynamic executable`.
    let ldd = context.run_to_end(Command::new(["ldd", &path])).await?.stdout;
    let file = match blas::resolve(&String::from_utf8_lossy(&ldd), |_| None) {
        Blas::Shared { file, .. } => context.run(Command::new(["readlink", "-f", &file.to_string_lossy()])).await?,
        Blas::BuiltIn => Vec::new(),
        Blas::NotFound { soname } => {
            return Err(Failure::refused(format!("missing shared library `{soname}` of {binary}")));
        }
    };
    attempt.add_artefact(LDD, ldd);
    attempt.add_artefact(BLAS, file);
    Ok(())
}

async fn run(params: &LinpackParams, attempt: &mut Attempt, name: &str, solutions: u64) -> Result<String, Failure> {
    let (file, input) = render_input(params, solutions)?;
    // hpcc appends to an existing file: each run has its own folder.
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

fn command(params: &LinpackParams, attempt: &Attempt) -> Command {
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

fn render_input(params: &LinpackParams, solutions: u64) -> Result<(&'static str, String), Failure> {
    let size = *params.problem_sizes;
    let hpl = || HplInput {
        sizes: vec![size; solutions as usize],
        block_sizes: vec![BLOCK_COLUMNS.min(size)],
        grids: vec![(1, 1)],
    };
    Ok(match params.program_kind() {
        ProgramKind::Hpl => ("HPL.dat", hpl().hpl_dat()),
        ProgramKind::Hpcc => ("hpccinf.txt", hpl().hpccinf()),
        ProgramKind::Auto | ProgramKind::Xlinpack => {
            let problem = XlinpackProblem {
                size,
                leading_dimension: params.leading_dimension(),
                trials: solutions,
                alignment_kib: params.alignment_values,
            };
            let (header, subheader) = (params.lininput_header.clone(), params.lininput_subheader.clone());
            let input = XlinpackInput::new(header, subheader, vec![problem]);
            (LININPUT, input.map_err(|error| Failure::refused(error.to_string()))?.to_string())
        }
    })
}

pub(super) fn study(params: &LinpackParams, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
    let kind = params.program_kind();
    let output_file = if kind == ProgramKind::Hpcc { HPCC_OUTPUT.to_owned() } else { format!("{OUTPUT_NAME}.stdout") };
    let output = artefacts.text(&output_file)?;
    let solutions = parse_solutions(kind, &output)?;
    let mut measurement =
        summarize_solutions(&solutions, artefacts.json(SOLUTIONS)?, process_seconds(artefacts, OUTPUT_NAME)?);
    for (quantity, requested, measured) in compare_with_request(params, &output)? {
        measurement.require(requested == measured, Gate::Work, || {
            format!("{quantity}: requested {requested}, measured {measured}")
        });
    }
    let (ldd, file) = (artefacts.text(LDD)?, artefacts.text(BLAS)?);
    let file = PathBuf::from(file.trim_end());
    let blas = match blas::resolve(&ldd, |_: &Path| (!file.as_os_str().is_empty()).then(|| file.clone())) {
        Blas::Shared { file, family, .. } => format!("{family:?} ({})", file.display()),
        Blas::NotFound { soname } => format!("{soname}, not found"),
        Blas::BuiltIn => "built in".to_owned(),
    };
    measurement.add_provenance("blas", blas);
    measurement.add_provenance("solutions", solutions.len());
    Ok(measurement)
}

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
            let (gflops, seconds) = (number("HPL_Tflops")? * 1e3, number("HPL_time")?);
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

/// Pairs of requested and reported values: (quantity, requested, reported).
fn compare_with_request(params: &LinpackParams, output: &str) -> Result<Vec<(&'static str, u64, u64)>, Rejection> {
    let size = *params.problem_sizes;
    if params.program_kind() != ProgramKind::Xlinpack {
        let solves = hpl::parse(output).map_err(|error| reject_output(&error))?;
        return Ok(solves.iter().map(|solve| ("problem size", size, solve.size)).collect());
    }
    let output = intel::parse(output).map_err(|error| reject_output(&error))?;
    let threads = params.use_omp.then_some(params.threads).flatten().zip(output.threads);
    let threads = threads.map(|(requested, used)| ("threads", u64::from(requested), u64::from(used)));
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
pub(super) fn extra_time(params: &LinpackParams) -> Nanos {
    Nanos(if params.is_external() && params.program_kind() == ProgramKind::Hpcc { 10_000_000_000 } else { 0 })
}
