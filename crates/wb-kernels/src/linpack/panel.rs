//! A factored block of columns, and its update of the columns on its right.

use super::kernel::Kernels;
use super::matrix::MatrixMut;
use crate::{Error, HugePagePolicy, MappedMemory};

/// The widest block of columns that is factored at once.
pub(super) const MAX_PANEL_WIDTH: usize = 192;

/// Rows of the lower part that are multiplied with a whole strip at a time; with a panel's width they fill about half
/// of a second-level cache of 1 MiB.
const ROWS_NEAR: usize = 192;

/// A factored block of columns, packed in the order in which the kernels read it. Its upper square is a unit lower
/// triangle, used to solve; the part below is used to multiply.
pub(super) struct Panel {
    kernels: Kernels,
    width: usize,
    rows_below: usize,
    /// In order: row `i` with row `exchanges[i]`, counted from the top of the panel.
    exchanges: Vec<usize>,
    triangle: MappedMemory,
    below: MappedMemory,
}

impl Panel {
    /// For panels of up to `rows` by `width`.
    pub(super) fn new(kernels: Kernels, rows: usize, width: usize, huge: HugePagePolicy) -> Result<Self, Error> {
        let numbers = |count: usize| MappedMemory::map(count * size_of::<f64>(), huge);
        Ok(Self {
            kernels,
            width: 0,
            rows_below: 0,
            exchanges: Vec::with_capacity(width),
            triangle: numbers(kernels.triangle_len(width))?,
            below: numbers(rows.next_multiple_of(kernels.rows) * width)?,
        })
    }

    pub(super) fn bytes(kernels: &Kernels, rows: usize, width: usize) -> u64 {
        let below = (rows.next_multiple_of(kernels.rows) as u64).saturating_mul(width as u64);
        below.saturating_add(kernels.triangle_len(width) as u64).saturating_mul(size_of::<f64>() as u64)
    }

    /// Writes the whole memory once: pages are then allocated on the node of the calling thread, and no page fault is
    /// timed.
    pub(super) fn prefault(&mut self) {
        self.triangle.as_mut_slice::<f64>().fill(0.0);
        self.below.as_mut_slice::<f64>().fill(0.0);
    }

    pub(super) fn load(&mut self, factored: &MatrixMut<'_>, exchanges: &[usize]) {
        self.width = factored.cols();
        self.rows_below = factored.rows() - self.width;
        self.exchanges.clear();
        self.exchanges.extend_from_slice(exchanges);
        self.load_triangle(factored);
        self.load_below(factored);
    }

    fn load_triangle(&mut self, factored: &MatrixMut<'_>) {
        let mut packed = self.triangle.as_mut_slice();
        for top in (0..self.width).step_by(self.kernels.group) {
            for p in 0..top + self.kernels.group {
                let (group, rest) = packed.split_at_mut(self.kernels.group);
                group.fill(0.0);
                if p < self.width {
                    let rows = &factored.col(p)[top..self.width.min(top + self.kernels.group)];
                    group[..rows.len()].copy_from_slice(rows);
                }
                packed = rest;
            }
        }
    }

    fn load_below(&mut self, factored: &MatrixMut<'_>) {
        let (width, rows) = (self.width, self.kernels.rows);
        let near = ROWS_NEAR.next_multiple_of(rows);
        let mut first = width;
        for block in self.below.as_mut_slice::<f64>().chunks_mut(near * width) {
            if first >= factored.rows() {
                break;
            }
            for p in 0..width {
                let column = &factored.col(p)[first..];
                let slivers = block.chunks_exact_mut(rows * width);
                for (sliver, from) in slivers.zip(column.chunks(rows)) {
                    let to = &mut sliver[p * rows..][..rows];
                    to[..from.len()].copy_from_slice(from);
                    to[from.len()..].fill(0.0);
                }
            }
            first += near;
        }
    }

    /// Updates a strip of columns on the right: exchanges rows, solves for its upper rows, and subtracts their products
    /// from the rows below. `scratch` holds the solved rows: the panel's width by the strip's, both rounded up.
    pub(super) fn apply(&self, mut strip: MatrixMut<'_>, scratch: &mut [f64]) {
        let cols = self.kernels.cols;
        let depth = self.width.next_multiple_of(self.kernels.group);
        let slivers = &mut scratch[..strip.cols().next_multiple_of(cols) * depth];
        for (index, sliver) in slivers.chunks_exact_mut(depth * cols).enumerate() {
            let (_, rest) = strip.reborrow().split_cols(index * cols);
            let here = cols.min(rest.cols());
            let (mut here, _) = rest.split_cols(here);
            swap_rows(&mut here, &self.exchanges);
            self.solve(here, sliver, depth);
        }
        self.multiply(strip.split_rows(self.width).1, slivers, depth);
    }

    fn solve(&self, mut columns: MatrixMut<'_>, sliver: &mut [f64], depth: usize) {
        let cols = self.kernels.cols;
        if columns.cols() < cols || depth > self.width {
            sliver.fill(0.0);
        }
        for col in 0..columns.cols() {
            for (row, &x) in sliver.chunks_exact_mut(cols).zip(&columns.col(col)[..self.width]) {
                row[col] = x;
            }
        }
        self.kernels.solve(depth, self.triangle.as_slice(), sliver);
        for col in 0..columns.cols() {
            for (row, x) in sliver.chunks_exact(cols).zip(&mut columns.col_mut(col)[..self.width]) {
                *x = row[col];
            }
        }
    }

    fn multiply(&self, mut lower: MatrixMut<'_>, slivers: &[f64], depth: usize) {
        let Kernels { rows, cols, .. } = self.kernels;
        let near = ROWS_NEAR.next_multiple_of(rows);
        let below = &self.below.as_slice()[..self.rows_below.next_multiple_of(rows) * self.width];
        for (block, a) in below.chunks(near * self.width).enumerate() {
            for (across, b) in slivers.chunks_exact(depth * cols).enumerate() {
                for (down, a) in a.chunks_exact(rows * self.width).enumerate() {
                    let (row, col) = (block * near + down * rows, across * cols);
                    self.kernels.multiply(self.width, a, b, &mut lower, row, col);
                }
            }
        }
    }
}

/// Exchanges row `i` with row `exchanges[i]`, in order.
pub(super) fn swap_rows(strip: &mut MatrixMut<'_>, exchanges: &[usize]) {
    for col in 0..strip.cols() {
        let column = strip.col_mut(col);
        for (row, &other) in exchanges.iter().enumerate() {
            column.swap(row, other);
        }
    }
}
