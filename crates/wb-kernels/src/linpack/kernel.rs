use super::loops::{eliminate, multiply, solve};
use super::matrix::MatrixMut;
use crate::Isa;

/// The inner loops of one instruction set and the layout of their operands.
#[derive(Clone, Copy)]
pub(super) struct Kernels {
    /// Rows of a tile: a sliver of A holds this many rows, column after column.
    pub(super) rows: usize,
    /// Columns of a tile: a sliver of B holds this many columns, row after row.
    pub(super) cols: usize,
    /// Rows that are solved at once: a triangle is stored in groups of this many rows.
    pub(super) group: usize,
    multiply: unsafe fn(usize, *const f64, *const f64, *mut f64, usize),
    solve: unsafe fn(usize, *const f64, *mut f64),
    eliminate: unsafe fn(usize, *const f64, usize, *const f64, usize, *mut f64) -> f64,
}

/// The largest tile of all instruction sets.
const LARGEST_TILE: usize = 24 * 8;

impl Kernels {
    pub(super) fn new(isa: Isa) -> Self {
        assert!(isa.require().is_ok(), "the caller checks the instruction set");
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => x86::avx512(),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => x86::avx2(),
            #[cfg(target_arch = "x86_64")]
            Isa::Sse2 => x86::sse2(),
            _ => scalar(),
        }
    }

    /// `c −= a·b` for a tile at (`row`, `col`) of `c`, clipped to `c`; `a` and `b` are slivers of `depth` steps.
    #[inline]
    pub(super) fn multiply(&self, depth: usize, a: &[f64], b: &[f64], c: &mut MatrixMut<'_>, row: usize, col: usize) {
        assert!(a.len() >= depth * self.rows && b.len() >= depth * self.cols);
        let (rows, cols) = (self.rows.min(c.rows() - row), self.cols.min(c.cols() - col));
        let (a, b) = (a.as_ptr(), b.as_ptr());
        if rows == self.rows && cols == self.cols {
            // SAFETY: the slivers are long enough, the tile lies inside `c`, the CPU was checked.
            unsafe { (self.multiply)(depth, a, b, c.at(row, col), c.leading_dimension()) }
            return;
        }
        let mut tile = [0.0; LARGEST_TILE];
        // SAFETY: as above; the tile is the local one.
        unsafe { (self.multiply)(depth, a, b, tile.as_mut_ptr(), self.rows) }
        for (j, tile) in tile.chunks_exact(self.rows).take(cols).enumerate() {
            let c = &mut c.col_mut(col + j)[row..row + rows];
            c.iter_mut().zip(tile).for_each(|(c, t)| *c += t);
        }
    }

    /// Solves L·x = b in place for a sliver of `depth` rows (a multiple of `group`), where L has ones on its diagonal
    /// and is stored in groups of rows.
    pub(super) fn solve(&self, depth: usize, triangle: &[f64], sliver: &mut [f64]) {
        assert!(depth.is_multiple_of(self.group) && sliver.len() >= depth * self.cols);
        assert!(triangle.len() >= self.triangle_len(depth));
        // SAFETY: both are long enough, the CPU was checked.
        unsafe { (self.solve)(depth, triangle.as_ptr(), sliver.as_mut_ptr()) }
    }

    /// The length of a triangle of `depth` rows, stored in groups of rows.
    pub(super) fn triangle_len(&self, depth: usize) -> usize {
        let groups = depth.div_ceil(self.group);
        groups * (groups + 1) / 2 * self.group * self.group
    }

    /// `target −= Σ factors[p]·columns[p]`; returns the largest magnitude of the result. Fastest with a few columns at
    /// a time: each is a stream for the hardware prefetcher.
    pub(super) fn eliminate(&self, columns: &MatrixMut<'_>, factors: &[f64], target: &mut [f64]) -> f64 {
        assert!(columns.cols() >= factors.len() && columns.rows() >= target.len());
        let first = if factors.is_empty() { &[] } else { columns.col(0) };
        // SAFETY: the asserted columns and rows lie inside the matrix, the CPU was checked.
        unsafe {
            (self.eliminate)(
                factors.len(),
                factors.as_ptr(),
                columns.leading_dimension(),
                first.as_ptr(),
                target.len(),
                target.as_mut_ptr(),
            )
        }
    }
}

fn scalar() -> Kernels {
    Kernels {
        rows: 4,
        cols: 2,
        group: 4,
        multiply: multiply::<f64, 4, 2>,
        solve: solve::<f64, 2, 4>,
        eliminate: eliminate::<f64>,
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::vector::x86::{Avx2, Avx512, Sse2};
    use super::{Kernels, eliminate, multiply, solve};

    macro_rules! kernels {
        ($name:ident, $vector:ident($features:literal), $rows:literal x $cols:literal registers $groups:literal) => {
            pub(super) fn $name() -> Kernels {
                const LANES: usize = size_of::<$vector>() / size_of::<f64>();

                #[target_feature(enable = $features)]
                unsafe fn multiply_here(
                    depth: usize,
                    a: *const f64,
                    b: *const f64,
                    c: *mut f64,
                    leading_dimension: usize,
                ) {
                    // SAFETY: the caller's.
                    unsafe { multiply::<$vector, $rows, $cols>(depth, a, b, c, leading_dimension) }
                }
                #[target_feature(enable = $features)]
                unsafe fn solve_here(depth: usize, triangle: *const f64, sliver: *mut f64) {
                    // SAFETY: the caller's.
                    unsafe { solve::<$vector, { $cols / LANES }, $groups>(depth, triangle, sliver) }
                }
                #[target_feature(enable = $features)]
                unsafe fn eliminate_here(
                    count: usize,
                    factors: *const f64,
                    leading_dimension: usize,
                    columns: *const f64,
                    len: usize,
                    target: *mut f64,
                ) -> f64 {
                    // SAFETY: the caller's.
                    unsafe { eliminate::<$vector>(count, factors, leading_dimension, columns, len, target) }
                }
                Kernels {
                    rows: $rows * LANES,
                    cols: $cols,
                    group: $groups,
                    multiply: multiply_here,
                    solve: solve_here,
                    eliminate: eliminate_here,
                }
            }
        };
    }

    kernels!(avx512, Avx512("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma"), 3 x 8 registers 8);
    kernels!(avx2, Avx2("avx2,fma"), 3 x 4 registers 8);
    kernels!(sse2, Sse2("sse2"), 2 x 4 registers 4);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Numbers whose sums and products are exact, so that every order of operations gives the same result.
    fn numbers(count: usize, seed: usize) -> Vec<f64> {
        (0..count).map(|i| ((i * 37 + seed * 101) % 17) as f64 - 8.0).collect()
    }

    fn all() -> Vec<Kernels> {
        Isa::available().into_iter().map(Kernels::new).collect()
    }

    proptest! {
        #[test]
        fn a_tile_is_multiplied_and_clipped_to_the_matrix(
            depth in 0usize..40, rows in 1usize..30, cols in 1usize..10, seed in 0usize..9,
        ) {
            for kernels in all() {
                let a = numbers(depth * kernels.rows, seed);
                let b = numbers(depth * kernels.cols, seed + 1);
                let before = numbers((rows + 3) * (cols + 1), seed + 2);
                let mut after = before.clone();
                let mut c = MatrixMut::new(&mut after, rows, cols, rows + 3);
                let (row, col) = (rows / 3, cols / 2);
                kernels.multiply(depth, &a, &b, &mut c, row, col);
                for (index, (before, after)) in before.iter().zip(&after).enumerate() {
                    let (i, j) = (index % (rows + 3), index / (rows + 3));
                    let inside = (row..rows.min(row + kernels.rows)).contains(&i)
                        && (col..cols.min(col + kernels.cols)).contains(&j);
                    let product: f64 = (0..depth)
                        .filter(|_| inside)
                        .map(|p| a[p * kernels.rows + i - row] * b[p * kernels.cols + j - col])
                        .sum();
                    prop_assert_eq!(*after, before - product);
                }
            }
        }

        #[test]
        fn columns_are_eliminated_and_the_largest_result_is_returned(
            len in 0usize..100, count in 0usize..9, seed in 0usize..9,
        ) {
            for kernels in all() {
                let mut columns = numbers((len + 2) * count, seed);
                let columns = MatrixMut::new(&mut columns, len, count, len + 2);
                let factors = numbers(count, seed + 1);
                let before = numbers(len, seed + 2);
                let mut after = before.clone();
                let largest = kernels.eliminate(&columns, &factors, &mut after);
                for row in 0..len {
                    let sum: f64 = (0..count).map(|p| columns.col(p)[row] * factors[p]).sum();
                    prop_assert_eq!(after[row], before[row] - sum);
                }
                prop_assert_eq!(largest, after.iter().fold(0.0, |most: f64, x| most.max(x.abs())));
            }
        }

        #[test]
        fn a_triangular_system_is_solved(groups in 0usize..5, seed in 0usize..9) {
            for kernels in all() {
                let Kernels { cols, group, .. } = kernels;
                let depth = groups * group;
                // Few non-zeros below the diagonal keep the numbers small and thus exact.
                let l = |i: usize, p: usize| if (i * 7 + p * 3 + seed).is_multiple_of(5) { 1.0 } else { 0.0 };
                let mut triangle = Vec::new();
                for top in (0..depth).step_by(group) {
                    for p in 0..top + group {
                        triangle.extend((top..top + group).map(|i| l(i, p)));
                    }
                }
                prop_assert_eq!(triangle.len(), kernels.triangle_len(depth));
                let x = numbers(depth * cols, seed);
                let mut b = x.clone();
                for i in 0..depth {
                    for c in 0..cols {
                        b[i * cols + c] += (0..i).map(|p| l(i, p) * x[p * cols + c]).sum::<f64>();
                    }
                }
                kernels.solve(depth, &triangle, &mut b);
                prop_assert_eq!(&b, &x);
            }
        }
    }
}
