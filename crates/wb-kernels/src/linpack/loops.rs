//! The three inner loops, compiled for the vector of each instruction set: they are inlined into the functions of
//! `kernel` that enable it.
//!
//! The first follows K. Goto and R. van de Geijn, "Anatomy of high-performance matrix multiplication" (2008): a tile of
//! the result stays in registers while a sliver of A (rows side by side) and a sliver of B (columns side by side)
//! stream past it.
//!
//! They are our own because the LU of the library at hand was no faster than OpenBLAS on one thread, and slower on two.

use super::vector::Vector;

/// `c −= a·b` for one tile of `ROWS` registers by `COLS` columns.
///
/// # Safety
/// The CPU has V's instructions; `a` and `b` hold `depth` steps; `c` holds the tile.
#[inline(always)]
pub(super) unsafe fn multiply<V: Vector, const ROWS: usize, const COLS: usize>(
    depth: usize,
    mut a: *const f64,
    mut b: *const f64,
    c: *mut f64,
    leading_dimension: usize,
) {
    /// Prefetch distance in steps: A comes from the second-level cache, and this hides its latency.
    const STEPS_AHEAD: usize = 8;
    // SAFETY: by the contract; any address may be prefetched.
    unsafe {
        for j in 0..COLS {
            for i in 0..ROWS {
                V::prefetch(c.add(j * leading_dimension + i * V::LANES));
            }
            V::prefetch(c.add(j * leading_dimension + ROWS * V::LANES - 1));
        }
        let mut tile = [[V::splat(0.0); ROWS]; COLS];
        for _ in 0..depth {
            for i in 0..ROWS {
                V::prefetch(a.wrapping_add((STEPS_AHEAD * ROWS + i) * V::LANES));
            }
            let mut rows = [V::splat(0.0); ROWS];
            for (i, row) in rows.iter_mut().enumerate() {
                *row = V::load(a.add(i * V::LANES));
            }
            for (j, tile) in tile.iter_mut().enumerate() {
                let factor = V::splat(b.add(j).read());
                for (t, row) in tile.iter_mut().zip(rows) {
                    *t = t.minus_product(row, factor);
                }
            }
            a = a.add(ROWS * V::LANES);
            b = b.add(COLS);
        }
        for (j, tile) in tile.iter().enumerate() {
            for (i, t) in tile.iter().enumerate() {
                let c = c.add(j * leading_dimension + i * V::LANES);
                V::load(c).add(*t).store(c);
            }
        }
    }
}

/// Solves L·x = b for a sliver whose rows are `WIDTH` registers, `GROUP` rows at a time.
///
/// # Safety
/// The CPU has V's instructions; `depth` is a multiple of `GROUP`; both operands are that deep.
#[inline(always)]
pub(super) unsafe fn solve<V: Vector, const WIDTH: usize, const GROUP: usize>(
    depth: usize,
    mut triangle: *const f64,
    sliver: *mut f64,
) {
    let row_len = WIDTH * V::LANES;
    // SAFETY: by the contract.
    unsafe {
        for top in (0..depth).step_by(GROUP) {
            let group = sliver.add(top * row_len);
            let mut rows = [[V::splat(0.0); WIDTH]; GROUP];
            for (i, row) in rows.iter_mut().enumerate() {
                for (w, x) in row.iter_mut().enumerate() {
                    *x = V::load(group.add(i * row_len + w * V::LANES));
                }
            }
            for p in 0..top {
                for w in 0..WIDTH {
                    let solved = V::load(sliver.add(p * row_len + w * V::LANES));
                    for (i, row) in rows.iter_mut().enumerate() {
                        row[w] = row[w].minus_product(V::splat(triangle.add(i).read()), solved);
                    }
                }
                triangle = triangle.add(GROUP);
            }
            for p in 0..GROUP {
                let solved = rows[p];
                for (i, row) in rows.iter_mut().enumerate().skip(p + 1) {
                    let factor = V::splat(triangle.add(i).read());
                    for (x, solved) in row.iter_mut().zip(solved) {
                        *x = x.minus_product(factor, solved);
                    }
                }
                triangle = triangle.add(GROUP);
            }
            for (i, row) in rows.iter().enumerate() {
                for (w, x) in row.iter().enumerate() {
                    x.store(group.add(i * row_len + w * V::LANES));
                }
            }
        }
    }
}

/// `target −= Σ factors[p]·columns[p]` over `count` columns; returns the largest magnitude of the result.
///
/// # Safety
/// The CPU has V's instructions; `count` factors and columns of `len` rows exist.
#[inline(always)]
pub(super) unsafe fn eliminate<V: Vector>(
    count: usize,
    factors: *const f64,
    leading_dimension: usize,
    columns: *const f64,
    len: usize,
    target: *mut f64,
) -> f64 {
    /// Registers in flight, to hide the latency of one.
    const STRIDE: usize = 4;
    // SAFETY: by the contract.
    unsafe {
        let mut largest = [V::splat(0.0); STRIDE];
        let whole = len - len % (STRIDE * V::LANES);
        for row in (0..whole).step_by(STRIDE * V::LANES) {
            let mut left = [V::splat(0.0); STRIDE];
            for (s, left) in left.iter_mut().enumerate() {
                *left = V::load(target.add(row + s * V::LANES));
            }
            for p in 0..count {
                let factor = V::splat(factors.add(p).read());
                let column = columns.add(p * leading_dimension + row);
                for (s, left) in left.iter_mut().enumerate() {
                    *left = left.minus_product(V::load(column.add(s * V::LANES)), factor);
                }
            }
            for (s, left) in left.iter().enumerate() {
                left.store(target.add(row + s * V::LANES));
                largest[s] = largest[s].max_magnitude(*left);
            }
        }
        let mut lanes = [0.0; 8];
        let mut max = 0.0f64;
        for register in largest {
            register.store(lanes.as_mut_ptr());
            max = lanes.iter().copied().fold(max, f64::max);
        }
        for row in whole..len {
            let mut left = target.add(row).read();
            for p in 0..count {
                let x = columns.add(p * leading_dimension + row).read();
                left = V::minus_product_scalar(left, x, factors.add(p).read());
            }
            target.add(row).write(left);
            max = max.max(left.abs());
        }
        max
    }
}
