//! Recursive factorization of one block of columns, so that most of its work is multiplication too: S. Toledo,
//! "Locality of reference in LU decomposition with partial pivoting" (1997).

use super::kernel::Kernels;
use super::matrix::MatrixMut;
use super::panel::{MAX_PANEL_WIDTH, Panel, swap_rows};
use crate::{Error, HugePagePolicy};

/// Up to this number, columns are eliminated one by one.
const BASE_COLUMNS: usize = 8;

pub(super) struct Factorizer {
    kernels: Kernels,
    half: Panel,
}

impl Factorizer {
    pub(super) fn new(kernels: Kernels, rows: usize, huge: HugePagePolicy) -> Result<Self, Error> {
        Ok(Self { kernels, half: Panel::new(kernels, rows, MAX_PANEL_WIDTH / 2, huge)? })
    }

    pub(super) fn bytes(kernels: &Kernels, rows: usize) -> u64 {
        Panel::bytes(kernels, rows, MAX_PANEL_WIDTH / 2)
    }

    pub(super) fn prefault(&mut self) {
        self.half.prefault();
    }

    /// Factors a block of columns in place, L below the diagonal and U on and above it, and writes its row exchanges,
    /// counted from the block's top.
    pub(super) fn factor(&mut self, mut block: MatrixMut<'_>, exchanges: &mut [usize], scratch: &mut [f64]) {
        if block.cols() <= BASE_COLUMNS {
            return eliminate(&self.kernels, block, exchanges);
        }
        let half = (block.cols() / 2).next_multiple_of(BASE_COLUMNS);
        let (first, second) = exchanges.split_at_mut(half);
        let (mut left, mut right) = block.reborrow().split_cols(half);
        self.factor(left.reborrow(), first, scratch);
        self.half.load(&left, first);
        self.half.apply(right.reborrow(), scratch);
        self.factor(right.split_rows(half).1, second, scratch);
        swap_rows(&mut left.split_rows(half).1, second);
        second.iter_mut().for_each(|row| *row += half);
    }
}

/// Factors a few columns from left to right, each after all columns on its left (the "left-looking" order, which writes
/// every column only once or twice).
fn eliminate(kernels: &Kernels, mut block: MatrixMut<'_>, exchanges: &mut [usize]) {
    let mut solved = [0.0; BASE_COLUMNS];
    for col in 0..block.cols() {
        let (left, mut right) = block.reborrow().split_cols(col);
        let column = right.col_mut(0);
        for row in 0..col {
            let solved_terms = (0..row).map(|p| left.col(p)[row] * solved[p]).sum::<f64>();
            solved[row] = column[row] - solved_terms;
            column[row] = solved[row];
        }
        let (_, left) = left.split_rows(col);
        let target = &mut column[col..];
        let largest = kernels.eliminate(&left, &solved[..col], target);
        let pivot = target.iter().position(|x| x.abs() == largest).unwrap_or(0);
        exchanges[col] = col + pivot;
        for c in 0..block.cols() {
            block.col_mut(c).swap(col, col + pivot);
        }
        let (pivot, rest) = block.col_mut(col)[col..].split_at_mut(1);
        let reciprocal = 1.0 / pivot[0];
        rest.iter_mut().for_each(|x| *x *= reciprocal);
    }
}
