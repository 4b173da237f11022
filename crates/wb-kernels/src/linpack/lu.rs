//! LU factorization with partial pivoting and solve, by a thread team.
//!
//! Right-looking with look-ahead, as HPL does it (A. Petitet et al., netlib.org/benchmark/hpl): while most threads
//! update the columns on the right, one of them factors the next block of columns, so that the others seldom wait for
//! it. The right-hand side is updated along as an additional column, so only the back substitution remains at the end,
//! L is not needed again, and rows on the left of a block are not exchanged.

use super::factor::Factorizer;
use super::kernel::Kernels;
use super::matrix::{MatrixMut, SharedMatrix};
use super::panel::{MAX_PANEL_WIDTH, Panel};
use crate::thread_team::TeamThread;
use crate::{Error, HugePagePolicy};
use std::ops::Range;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

/// Columns of the widest strip, the unit of work of one thread: its solved rows, of the widest panel, fit into a
/// second-level cache of 512 KiB.
const MAX_STRIP_WIDTH: usize = 240;
/// Columns of the narrowest strip, except at the right edge.
const MIN_STRIP_WIDTH: usize = 48;

/// Columns that the back substitution eliminates at once.
const SUBSTITUTION_COLUMNS: usize = 8;

/// The workspace of the solver besides the matrix; created once, used for every repeat.
pub(super) struct Workspace {
    n: usize,
    kernels: Kernels,
    steps: Vec<FactorStep>,
    /// The panel that is applied and the one that is being factored, alternating.
    panels: [RwLock<Panel>; 2],
    thread_workspaces: Vec<Mutex<ThreadWorkspace>>,
}

/// One block of columns: factored during the previous step, applied in this one.
struct FactorStep {
    cols: Range<usize>,
    /// The next strip that no thread has taken. Each step has its own, so that none is reset while threads draw from
    /// it; the barriers order what the strips contain.
    ticket: AtomicUsize,
}

struct ThreadWorkspace {
    factorizer: Factorizer,
    exchanges: [usize; MAX_PANEL_WIDTH],
    scratch: Vec<f64>,
}

impl Workspace {
    pub(super) fn new(n: usize, threads: usize, kernels: Kernels, huge: HugePagePolicy) -> Result<Self, Error> {
        let panel = || Panel::new(kernels, n, MAX_PANEL_WIDTH, huge).map(RwLock::new);
        let new_workspace = || {
            let factorizer = Factorizer::new(kernels, n, huge)?;
            let scratch = vec![0.0; MAX_PANEL_WIDTH * MAX_STRIP_WIDTH];
            Ok(Mutex::new(ThreadWorkspace { factorizer, exchanges: [0; MAX_PANEL_WIDTH], scratch }))
        };
        Ok(Self {
            n,
            kernels,
            steps: steps(n),
            panels: [panel()?, panel()?],
            thread_workspaces: (0..threads).map(|_| new_workspace()).collect::<Result<_, Error>>()?,
        })
    }

    pub(super) fn bytes(n: usize, threads: usize, kernels: &Kernels) -> u64 {
        let scratch = MAX_PANEL_WIDTH * MAX_STRIP_WIDTH * size_of::<f64>();
        let per_thread = Factorizer::bytes(kernels, n).saturating_add(scratch as u64);
        let shared = Panel::bytes(kernels, n, MAX_PANEL_WIDTH).saturating_mul(2);
        per_thread.saturating_mul(threads as u64).saturating_add(shared)
    }

    /// As [`Panel::prefault`]; called by every thread of the team.
    pub(super) fn prefault(&self, thread: &TeamThread<'_>) {
        let mut workspace = self.thread_workspace(thread);
        workspace.factorizer.prefault();
        workspace.scratch.fill(0.0);
        for panel in self.panels.iter().skip(thread.index).step_by(thread.count) {
            panel.write().unwrap_or_else(PoisonError::into_inner).prefault();
        }
    }

    /// Prepares for the next matrix. No thread may be in `solve`.
    pub(super) fn reset(&self) {
        self.steps.iter().for_each(|step| step.ticket.store(0, Relaxed));
    }

    /// Solves [A|b], n rows by n+1 columns, in place: x takes the place of b.
    ///
    /// # Safety
    /// Every thread of the team, and no other thread, calls it with the same matrix.
    pub(super) unsafe fn solve(&self, matrix: &SharedMatrix<'_>, thread: &TeamThread<'_>) {
        // SAFETY: the caller's.
        unsafe {
            self.factor(matrix, thread);
            self.substitute(matrix, thread);
        }
    }

    /// # Safety
    /// As for `solve`.
    unsafe fn factor(&self, matrix: &SharedMatrix<'_>, thread: &TeamThread<'_>) {
        let mut workspace = self.thread_workspace(thread);
        let panel = |step: usize| &self.panels[step % 2];
        if thread.index == 0 {
            // SAFETY: the other threads wait at the barrier.
            let block = unsafe { matrix.block_mut(0..self.n, self.steps[0].cols.clone()) };
            workspace.factor_panel(block, panel(0));
        }
        thread.wait();
        for (k, step) in self.steps.iter().enumerate() {
            let applied = panel(k).read().unwrap_or_else(PoisonError::into_inner);
            let strips = Strips::after(step, self.steps.get(k + 1), self.n + 1, thread.count);
            while let Some((strip, is_next)) = strips.get(step.ticket.fetch_add(1, Relaxed)) {
                // SAFETY: a ticket is drawn once, strips do not overlap, and the barrier below
                // separates the steps.
                let mut strip = unsafe { matrix.block_mut(step.cols.start..self.n, strip) };
                applied.apply(strip.reborrow(), &mut workspace.scratch);
                if is_next {
                    workspace.factor_panel(strip.split_rows(step.cols.len()).1, panel(k + 1));
                }
            }
            drop(applied);
            thread.wait();
        }
    }

    /// The lock is never contended.
    fn thread_workspace(&self, thread: &TeamThread<'_>) -> MutexGuard<'_, ThreadWorkspace> {
        self.thread_workspaces[thread.index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Solves U·x = y in place, where y is the last column after `factor`.
    ///
    /// # Safety
    /// As for `solve`.
    unsafe fn substitute(&self, matrix: &SharedMatrix<'_>, thread: &TeamThread<'_>) {
        let last = self.n..self.n + 1;
        for FactorStep { cols, .. } in self.steps.iter().rev() {
            if thread.index == 0 {
                // SAFETY: the other threads wait at the barrier.
                let (block, mut y) = unsafe {
                    (matrix.block_mut(cols.clone(), cols.clone()), matrix.block_mut(cols.clone(), last.clone()))
                };
                substitute_block(&self.kernels, block, y.col_mut(0));
            }
            thread.wait();
            let rows = thread.share(cols.start);
            // SAFETY: shares do not overlap, and end above the rows of `x`.
            let mut y = unsafe { matrix.block_mut(rows.clone(), last.clone()) };
            for range in cols
                .clone()
                .step_by(SUBSTITUTION_COLUMNS)
                .map(|first| first..cols.end.min(first + SUBSTITUTION_COLUMNS))
            {
                // SAFETY: these are only read until the next barrier.
                let (columns, x) =
                    unsafe { (matrix.block(rows.clone(), range.clone()), matrix.block(range, last.clone())) };
                self.kernels.eliminate(&columns, x.col(0), y.col_mut(0));
            }
            thread.wait();
        }
    }
}

impl ThreadWorkspace {
    fn factor_panel(&mut self, mut block: MatrixMut<'_>, panel: &RwLock<Panel>) {
        let exchanges = &mut self.exchanges[..block.cols()];
        self.factorizer.factor(block.reborrow(), exchanges, &mut self.scratch);
        panel.write().unwrap_or_else(PoisonError::into_inner).load(&block, exchanges);
    }
}

/// Solves U·x = y in place for a small upper triangle.
fn substitute_block(kernels: &Kernels, triangle: MatrixMut<'_>, y: &mut [f64]) {
    let mut rest = triangle;
    for col in (0..y.len()).rev() {
        let (before, column) = rest.split_cols(col);
        y[col] /= column.col(0)[col];
        let (above, x) = y.split_at_mut(col);
        kernels.eliminate(&column, &x[..1], above);
        rest = before;
    }
}

/// The columns right of a panel, divided into strips: first the next block of columns, then the rest.
struct Strips {
    next: Range<usize>,
    rest: Range<usize>,
    width: usize,
}

impl Strips {
    fn after(step: &FactorStep, next: Option<&FactorStep>, end: usize, threads: usize) -> Self {
        let next = next.map_or(step.cols.end..step.cols.end, |next| next.cols.clone());
        let rest = next.end..end;
        // Four strips a thread, so that fast threads take more; a multiple of every kernel's tile.
        let fair = rest.len().div_ceil(4 * threads).next_multiple_of(MIN_STRIP_WIDTH / 2);
        Self { next, rest, width: fair.clamp(MIN_STRIP_WIDTH, MAX_STRIP_WIDTH) }
    }

    /// The strip of a ticket, and whether it is the next block.
    fn get(&self, ticket: usize) -> Option<(Range<usize>, bool)> {
        if ticket == 0 && !self.next.is_empty() {
            return Some((self.next.clone(), true));
        }
        let index = if self.next.is_empty() { ticket } else { ticket - 1 };
        let start = self.rest.start + index * self.width;
        (start < self.rest.end).then(|| (start..self.rest.end.min(start + self.width), false))
    }
}

/// Wide blocks while there is much to multiply, narrower ones towards the end, where the other threads would wait for
/// the one that factors.
fn steps(n: usize) -> Vec<FactorStep> {
    const MIN_PANEL_WIDTH: usize = 64;
    let (mut steps, mut start) = (Vec::new(), 0);
    while start < n {
        let width = ((n - start) / 16).next_multiple_of(8).clamp(MIN_PANEL_WIDTH, MAX_PANEL_WIDTH);
        let end = n.min(start + width);
        steps.push(FactorStep { cols: start..end, ticket: AtomicUsize::new(0) });
        start = end;
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn blocks_and_strips_cover_every_column_once(n in 1usize..3000, threads in 1usize..9) {
            let steps = steps(n);
            let mut factored = 0;
            for (k, step) in steps.iter().enumerate() {
                prop_assert_eq!(step.cols.start, factored);
                prop_assert!(step.cols.len() <= MAX_PANEL_WIDTH);
                factored = step.cols.end;
                let strips = Strips::after(step, steps.get(k + 1), n + 1, threads);
                let mut updated = factored;
                let mut ticket = 0;
                while let Some((strip, is_next)) = strips.get(ticket) {
                    prop_assert_eq!(strip.start, updated);
                    prop_assert!(strip.len() <= MAX_STRIP_WIDTH);
                    prop_assert_eq!(is_next, ticket == 0 && k + 1 < steps.len());
                    updated = strip.end;
                    ticket += 1;
                }
                prop_assert_eq!(updated, n + 1);
            }
            prop_assert_eq!(factored, n);
        }
    }
}
