//! Measuring: the system made, solved, timed and checked, as often as asked.

use super::{
    Config, Error, Repeat, Report, bytes_needed,
    kernel::Kernels,
    lu::Workspace,
    matrix_bytes, operations,
    system::{self, Norms},
    window::{Shared, Window},
};
use crate::{
    Isa, Memory, Work, cpus, memory,
    team::{self, Member, Span},
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
    memory::fits(bytes_needed(config))?;

    let (n, threads) = (config.n, config.cpus.len());
    let mut memory = Memory::map(matrix_bytes(config) as usize, config.huge_pages)?;
    let workspace = Workspace::new(n, threads, Kernels::of(isa), config.huge_pages)?;
    let elements = &mut memory.as_mut_slice()[config.alignment / size_of::<f64>()..];
    let matrix = Shared::new(Window::new(elements, n, n + 1, config.leading_dimension));
    let enough = AtomicBool::new(false);
    let seen = team::run(&config.cpus, |member| measure(config, &workspace, &matrix, &enough, member))?;

    let repeats: Vec<Repeat> = (0..seen[0].len())
        .map(|index| repeat(n, &seen.iter().map(|member| member[index]).collect::<Vec<_>>()))
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
    if !alignment.is_power_of_two() || !(size_of::<f64>()..Memory::ALIGNMENT).contains(&alignment) {
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
struct Seen {
    span: Span,
    /// Of its share of the rows.
    norms: Norms,
}

/// What every member of the team does.
fn measure(
    config: &Config,
    workspace: &Workspace,
    matrix: &Shared<'_>,
    enough: &AtomicBool,
    member: &Member<'_>,
) -> Vec<Seen> {
    let &Config { n, seed, .. } = config;
    let mut seen: Vec<Seen> = Vec::new();
    workspace.touch(member);
    while !enough.load(Relaxed) {
        let cols = member.share(n + 1);
        // SAFETY: shares do not overlap, and `timed` begins with a barrier.
        system::generate(unsafe { matrix.part(0..n, cols.clone()) }, cols.start, seed);
        if member.index == 0 {
            workspace.reset();
        }
        // SAFETY: every member comes here, and nobody holds a part of the matrix.
        let ((), span) = member.timed(|| unsafe { workspace.solve(matrix, member) });
        // SAFETY: `solve` ends with a barrier, and it is only read until the next.
        let answer = unsafe { matrix.view(0..n, n..n + 1) };
        seen.push(Seen { span, norms: Norms::of(answer.col(0), member.share(n), seed) });
        if member.index == 0 {
            let seconds = seen.iter().map(|seen| seen.span.own().as_secs_f64()).sum();
            enough.store(done(config.work, seen.len(), seconds), Relaxed);
        }
        member.wait();
    }
    seen
}

/// Whether so many repeats of so many seconds in all are as much as was asked for.
fn done(work: Work, repeats: usize, seconds: f64) -> bool {
    match work {
        Work::Iterations(asked) => repeats as u64 >= asked,
        Work::Seconds(asked) => seconds >= asked,
    }
}

fn repeat(n: usize, seen: &[Seen]) -> Repeat {
    let spans: Vec<Span> = seen.iter().map(|seen| seen.span).collect();
    let norms = seen.iter().map(|seen| seen.norms).fold(Norms::default(), Norms::and);
    Repeat { seconds: Span::wall(&spans).as_secs_f64(), residual: norms.residual(n) }
}
