//! A linpack run: repeatedly generates a system of linear equations, times its solution, and computes its residual.

use super::kernel::Kernels;
use super::lu::Workspace;
use super::matrix::{MatrixMut, SharedMatrix};
use super::system::{self, ResidualNorms};
use super::{Config, Error, LinpackReport, Repeat, matrix_bytes, operations, required_bytes};
use crate::thread_team::{self, TeamThread, TimeSpan};
use crate::{Isa, MappedMemory, Work, cpus, memory};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

pub fn run(config: &Config) -> Result<LinpackReport, Error> {
    validate(config)?;
    let isa = config.isa.unwrap_or_else(Isa::widest);
    isa.require().map_err(crate::Error::from)?;
    cpus::check_available(&config.cpus)?;
    memory::check_available(required_bytes(config))?;

    let (n, threads) = (config.n, config.cpus.len());
    let mut memory = MappedMemory::map(matrix_bytes(config) as usize, config.huge_pages)?;
    let workspace = Workspace::new(n, threads, Kernels::new(isa), config.huge_pages)?;
    // The mapping has a larger alignment; an offset of the requested alignment yields that one and no more.
    let elements = &mut memory.as_mut_slice()[config.alignment / size_of::<f64>()..];
    // The augmented matrix: column n is the right-hand side.
    let matrix = SharedMatrix::new(MatrixMut::new(elements, n, n + 1, config.leading_dimension));
    let done = AtomicBool::new(false);
    let repeats_by_thread =
        thread_team::run(&config.cpus, |thread| run_thread(config, &workspace, &matrix, &done, thread))?;
    // There is at least one thread, and all threads end after the same repeat.
    let repeats: Vec<Repeat> = (0..repeats_by_thread[0].len())
        .map(|index| merge_repeat(n, &repeats_by_thread.iter().map(|repeats| repeats[index]).collect::<Vec<_>>()))
        .collect();
    if repeats.iter().any(|repeat| !repeat.residual.is_finite()) {
        return Err(Error::Singular { seed: config.seed });
    }
    let seconds: f64 = repeats.iter().map(|repeat| repeat.seconds).sum();
    Ok(LinpackReport {
        gflops: operations(n) * repeats.len() as f64 / seconds * 1e-9,
        residual: repeats.iter().map(|repeat| repeat.residual).fold(0.0, f64::max),
        repeats,
        isa,
        threads,
        residency: memory.residency()?,
    })
}

fn validate(config: &Config) -> Result<(), Error> {
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

#[derive(Clone, Copy)]
struct ThreadRepeat {
    span: TimeSpan,
    /// Of the thread's share of the rows.
    norms: ResidualNorms,
}

/// The body of each thread of the team. Thread 0 decides after each repeat whether it was the last one; the barrier
/// that follows makes the decision visible to all threads before they look at it.
fn run_thread(
    config: &Config,
    workspace: &Workspace,
    matrix: &SharedMatrix<'_>,
    done: &AtomicBool,
    thread: &TeamThread<'_>,
) -> Vec<ThreadRepeat> {
    let &Config { n, seed, .. } = config;
    let mut repeats: Vec<ThreadRepeat> = Vec::new();
    workspace.prefault(thread);
    while !done.load(Relaxed) {
        let cols = thread.share(n + 1);
        // SAFETY: shares do not overlap. Nobody reads the matrix any more, since the barrier at the end of the previous
        // repeat, or yet, until the barrier with which `time` begins.
        system::generate(unsafe { matrix.block_mut(0..n, cols.clone()) }, cols.start, seed);
        if thread.index == 0 {
            workspace.reset();
        }
        // SAFETY: every thread of the team gets here, and none holds a reference to any part of the matrix.
        let ((), span) = thread.time(|| unsafe { workspace.solve(matrix, thread) });
        // SAFETY: `solve` ends with a barrier, and until the next barrier no thread writes to this column.
        let solution = unsafe { matrix.block(0..n, n..n + 1) };
        repeats.push(ThreadRepeat { span, norms: ResidualNorms::new(solution.col(0), thread.share(n), seed) });
        if thread.index == 0 {
            // Thread 0's own time; the report has the time from the first start to the last end of all threads.
            let seconds = repeats.iter().map(|repeat| repeat.span.duration().as_secs_f64()).sum();
            done.store(is_done(config.work, repeats.len(), seconds), Relaxed);
        }
        thread.wait();
    }
    repeats
}

fn is_done(work: Work, repeats: usize, seconds: f64) -> bool {
    match work {
        Work::Iterations(requested) => repeats as u64 >= requested,
        Work::Seconds(requested) => seconds >= requested,
    }
}

fn merge_repeat(n: usize, parts: &[ThreadRepeat]) -> Repeat {
    let spans: Vec<TimeSpan> = parts.iter().map(|part| part.span).collect();
    let norms = parts.iter().map(|part| part.norms).fold(ResidualNorms::default(), ResidualNorms::merge);
    Repeat { seconds: TimeSpan::wall_time(&spans).as_secs_f64(), residual: norms.residual(n) }
}
