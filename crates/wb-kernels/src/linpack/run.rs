//! Measuring: the system made, solved, timed and checked, as often as asked.

use super::{
    Config, Error, Repeat, Report,
    kernel::Kernels,
    lu::Workspace,
    matrix::{MatrixMut, SharedMatrix},
    matrix_bytes, operations, required_bytes,
    system::{self, ResidualNorms},
};
use crate::{
    Isa, MappedMemory, Work, cpus, memory,
    thread_team::{self, TeamThread, TimeSpan},
};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Solves the system as often as asked.
///
/// # Errors
/// A configuration without sense, an instruction set or CPU that is not there, too little memory.
pub fn run(config: &Config) -> Result<Report, Error> {
    check(config)?;
    let isa = config.isa.unwrap_or_else(Isa::widest);
    isa.require().map_err(crate::Error::from)?;
    cpus::check(&config.cpus)?;
    memory::check_available(required_bytes(config))?;

    let (n, threads) = (config.n, config.cpus.len());
    let mut memory = MappedMemory::map(matrix_bytes(config) as usize, config.huge_pages)?;
    let workspace = Workspace::new(n, threads, Kernels::of(isa), config.huge_pages)?;
    let elements = &mut memory.as_mut_slice()[config.alignment / size_of::<f64>()..];
    let matrix = SharedMatrix::new(MatrixMut::new(elements, n, n + 1, config.leading_dimension));
    let enough = AtomicBool::new(false);
    let seen = thread_team::run(&config.cpus, |member| run_thread(config, &workspace, &matrix, &enough, member))?;

    let repeats: Vec<Repeat> = (0..seen[0].len())
        .map(|index| combine_repeat(n, &seen.iter().map(|member| member[index]).collect::<Vec<_>>()))
        .collect();
    if repeats.iter().any(|repeat| !repeat.residual.is_finite()) {
        return Err(Error::Singular { seed: config.seed });
    }
    let seconds: f64 = repeats.iter().map(|repeat| repeat.seconds).sum();
    Ok(Report {
        gflops: operations(n) * repeats.len() as f64 / seconds * 1e-9,
        residual: repeats.iter().map(|repeat| repeat.residual).fold(0.0, f64::max),
        repeats,
        isa,
        threads,
        residency: memory.residency()?,
    })
}

fn check(config: &Config) -> Result<(), Error> {
    let &Config { n, leading_dimension, alignment, .. } = config;
    if n == 0 {
        return Err(Error::Empty);
    }
    if leading_dimension < n {
        return Err(Error::LeadingDimension { leading_dimension, n });
    }
    if !alignment.is_power_of_two() || !(size_of::<f64>()..MappedMemory::ALIGNMENT).contains(&alignment) {
        return Err(Error::Alignment(alignment));
    }
    match config.work {
        Work::Iterations(0) => Err(Error::NoWork),
        Work::Seconds(seconds) if !(seconds > 0.0 && seconds.is_finite()) => Err(Error::NoWork),
        _ => Ok(()),
    }
}

/// What one member of the team saw in one repeat.
#[derive(Clone, Copy)]
struct ThreadRepeat {
    span: TimeSpan,
    /// Of its share of the rows.
    norms: ResidualNorms,
}

/// What every member of the team does.
fn run_thread(
    config: &Config,
    workspace: &Workspace,
    matrix: &SharedMatrix<'_>,
    enough: &AtomicBool,
    member: &TeamThread<'_>,
) -> Vec<ThreadRepeat> {
    let &Config { n, seed, .. } = config;
    let mut seen: Vec<ThreadRepeat> = Vec::new();
    workspace.prefault(member);
    while !enough.load(Relaxed) {
        let cols = member.share(n + 1);
        // SAFETY: shares do not overlap, and `timed` begins with a barrier.
        system::generate(unsafe { matrix.block_mut(0..n, cols.clone()) }, cols.start, seed);
        if member.index == 0 {
            workspace.reset();
        }
        // SAFETY: every member comes here, and nobody holds a part of the matrix.
        let ((), span) = member.time(|| unsafe { workspace.solve(matrix, member) });
        // SAFETY: `solve` ends with a barrier, and it is only read until the next.
        let answer = unsafe { matrix.block(0..n, n..n + 1) };
        seen.push(ThreadRepeat { span, norms: ResidualNorms::of(answer.col(0), member.share(n), seed) });
        if member.index == 0 {
            let seconds = seen.iter().map(|seen| seen.span.duration().as_secs_f64()).sum();
            enough.store(is_done(config.work, seen.len(), seconds), Relaxed);
        }
        member.wait();
    }
    seen
}

/// Whether so many repeats of so many seconds in all are as much as was asked for.
fn is_done(work: Work, repeats: usize, seconds: f64) -> bool {
    match work {
        Work::Iterations(asked) => repeats as u64 >= asked,
        Work::Seconds(asked) => seconds >= asked,
    }
}

fn combine_repeat(n: usize, seen: &[ThreadRepeat]) -> Repeat {
    let spans: Vec<TimeSpan> = seen.iter().map(|seen| seen.span).collect();
    let norms = seen.iter().map(|seen| seen.norms).fold(ResidualNorms::default(), ResidualNorms::merge);
    Repeat { seconds: TimeSpan::wall_time(&spans).as_secs_f64(), residual: norms.residual(n) }
}
