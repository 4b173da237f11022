//! The measured loops: one Jacobi sweep over a range of planes, and the copy back.

use super::fields::{FIRST_FIELD, Field, Fields, LINE, Strides};
use super::grid::Grid;
use super::lanes::Lanes;
use super::lanes::scalar::F32x1;
use crate::Isa;
use crate::prefetch::prefetch;
use std::ops::Range;

/// Relaxation factor of the benchmark.
const OMEGA: f32 = 0.8;

#[derive(Clone, Copy)]
pub(super) struct Sweep {
    compute: unsafe fn(&Fields, Range<usize>) -> f64,
    copy: unsafe fn(&Fields, Range<usize>),
}

impl Sweep {
    /// The loops of an instruction set that [`Isa::require`] has accepted, for one grid.
    pub(super) fn new(isa: Isa, grid: Grid) -> Self {
        match grid {
            Grid::XS => Self::for_shape::<shape::XS>(isa),
            Grid::S => Self::for_shape::<shape::S>(isa),
            Grid::M => Self::for_shape::<shape::M>(isa),
            Grid::L => Self::for_shape::<shape::L>(isa),
            Grid::XL => Self::for_shape::<shape::XL>(isa),
        }
    }

    fn for_shape<S: Shape>(isa: Isa) -> Self {
        match isa {
            Isa::Scalar => Self { compute: compute_scalar::<S>, copy: copy_scalar::<S> },
            #[cfg(target_arch = "x86_64")]
            Isa::Sse2 => Self { compute: compute_sse2::<S>, copy: copy_sse2::<S> },
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => Self { compute: compute_avx2::<S>, copy: copy_avx2::<S> },
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => Self { compute: compute_avx512::<S>, copy: copy_avx512::<S> },
            #[cfg(not(target_arch = "x86_64"))]
            other => unreachable!("instruction set {other} is checked beforehand"),
        }
    }

    /// Computes `wrk2` of these interior planes from `p` and returns their part of GOSA.
    ///
    /// # Safety
    /// The CPU has the instruction set; no thread writes `p` of these planes or their neighbours, and no other thread
    /// uses `wrk2` of these planes.
    #[inline]
    pub(super) unsafe fn compute(self, fields: &Fields, planes: Range<usize>) -> f64 {
        // SAFETY: the caller's promise.
        unsafe { (self.compute)(fields, planes) }
    }

    /// Copies the interior of `wrk2` to `p`.
    ///
    /// # Safety
    /// The CPU has the instruction set; no other thread uses `p` or writes `wrk2` of these planes.
    #[inline]
    pub(super) unsafe fn copy(self, fields: &Fields, planes: Range<usize>) {
        // SAFETY: the caller's promise.
        unsafe { (self.copy)(fields, planes) }
    }
}

/// A grid as a compile-time constant: every distance between neighbours is then a constant in the instruction, as for
/// arrays of fixed size in C, and the 32 streams of the stencil take one register.
trait Shape {
    const GRID: Grid;
    const STRIDES: Strides = Strides::new(Self::GRID);
}

mod shape {
    use super::{Grid, Shape};

    macro_rules! shapes {
        ($($name:ident)*) => {$(
            pub(super) struct $name;
            impl Shape for $name {
                const GRID: Grid = Grid::$name;
            }
        )*};
    }
    shapes!(XS S M L XL);
}

macro_rules! loops {
    ($lanes:ty, $compute:ident, $copy:ident $(, $features:literal)?) => {
        #[inline(never)]
        $(#[target_feature(enable = $features)])?
        unsafe fn $compute<S: Shape>(fields: &Fields, planes: Range<usize>) -> f64 {
            // SAFETY: the caller's promise.
            unsafe { compute::<$lanes, S>(fields, planes) }
        }
        #[inline(never)]
        $(#[target_feature(enable = $features)])?
        unsafe fn $copy<S: Shape>(fields: &Fields, planes: Range<usize>) {
            // SAFETY: the caller's promise.
            unsafe { copy::<$lanes, S>(fields, planes) }
        }
    };
}

loops!(F32x1, compute_scalar, copy_scalar);
#[cfg(target_arch = "x86_64")]
loops!(super::lanes::x86::F32x4, compute_sse2, copy_sse2);
#[cfg(target_arch = "x86_64")]
loops!(super::lanes::x86::F32x8, compute_avx2, copy_avx2, "avx2,fma");
#[cfg(target_arch = "x86_64")]
loops!(super::lanes::x86::F32x16, compute_avx512, copy_avx512, "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma");

/// # Safety
/// As [`Sweep::compute`].
#[inline(always)]
unsafe fn compute<L: Lanes, S: Shape>(fields: &Fields, planes: Range<usize>) -> f64 {
    let [_, rows, points] = S::GRID.extent();
    let mut gosa = 0.0;
    for i in planes {
        for j in 1..rows - 1 {
            // SAFETY: (i, j) is interior, so all neighbours exist; access by the caller's promise.
            gosa += unsafe { compute_row::<L, S>(fields.row(FIRST_FIELD, i, j), 0, points - 2) };
        }
    }
    gosa
}

/// # Safety
/// As [`Sweep::copy`].
#[inline(always)]
unsafe fn copy<L: Lanes, S: Shape>(fields: &Fields, planes: Range<usize>) {
    let [_, rows, points] = S::GRID.extent();
    for i in planes {
        for j in 1..rows - 1 {
            let (from, to) = (fields.row(Field::Wrk2, i, j), fields.row(Field::P, i, j));
            // SAFETY: both rows have `points - 2` interior points; access by the caller's promise.
            unsafe { copy_row::<L>(from, to, 0, points - 2) }
        }
    }
}

/// Computes points `from..to` of a row with the widest vectors that fit. `row` is the row of the first array; the
/// others are at constant distances.
///
/// # Safety
/// As [`Sweep::compute`], for an interior row.
#[inline(always)]
unsafe fn compute_row<L: Lanes, S: Shape>(row: *mut f32, from: usize, to: usize) -> f64 {
    // SAFETY: no vector reaches beyond `to`.
    unsafe {
        let mut sum = L::zero_sum();
        let mut k = from;
        while k + LINE <= to {
            prefetch_streams::<S>(row.wrapping_add(k + PREFETCH_DISTANCE));
            for vector in 0..LINE / L::N {
                sum = compute_points::<L, S>(row.wrapping_add(k + vector * L::N), sum);
            }
            k += LINE;
        }
        while k + L::N <= to {
            sum = compute_points::<L, S>(row.wrapping_add(k), sum);
            k += L::N;
        }
        let rest = if L::N > 1 && k < to { compute_row::<L::Narrower, S>(row, k, to) } else { 0.0 };
        L::reduce_sum(sum) + rest
    }
}

/// Points between the computed and the prefetched one: eight cache lines. Hardware prefetching does not keep up with 22
/// streams; software prefetching gained 20 % on grid S, which is read from the last-level cache.
const PREFETCH_DISTANCE: usize = 8 * LINE;

/// Prefetches the line of each array, and of `p` the one that the stencil reaches first. Any address is valid: a
/// prefetch is a hint that reads nothing.
#[inline(always)]
fn prefetch_streams<S: Shape>(here: *mut f32) {
    use Field::*;
    let Strides { row, plane, field } = S::STRIDES;
    for array in [Wrk2, A0, A1, A2, A3, B0, B1, B2, C0, C1, C2, Bnd, Wrk1] {
        prefetch(here.wrapping_add(array as usize * field));
    }
    prefetch(here.wrapping_add(P as usize * field + plane + row));
}

/// Computes one vector of points.
///
/// # Safety
/// As [`Sweep::compute`]; all points of the vector are interior.
#[inline(always)]
unsafe fn compute_points<L: Lanes, S: Shape>(here: *mut f32, sum: L::Sum) -> L::Sum {
    use Field::*;
    let Strides { row, plane, field } = S::STRIDES;
    let (row, plane) = (row as isize, plane as isize);
    // SAFETY: every address is an interior point or a neighbour of one.
    unsafe {
        let at = |array: Field| L::load(here.wrapping_add(array as usize * field));
        let p = |i: isize, j: isize, k: isize| {
            L::load(here.wrapping_add(P as usize * field).wrapping_offset(i * plane + j * row + k))
        };
        let s0 = at(Wrk1);
        let s0 = at(A0).mul_add(p(1, 0, 0), s0);
        let s0 = at(A1).mul_add(p(0, 1, 0), s0);
        let s0 = at(A2).mul_add(p(0, 0, 1), s0);
        let b0 = p(1, 1, 0).sub(p(1, -1, 0)).sub(p(-1, 1, 0)).add(p(-1, -1, 0));
        let s0 = at(B0).mul_add(b0, s0);
        let b1 = p(0, 1, 1).sub(p(0, -1, 1)).sub(p(0, 1, -1)).add(p(0, -1, -1));
        let s0 = at(B1).mul_add(b1, s0);
        let b2 = p(1, 0, 1).sub(p(-1, 0, 1)).sub(p(1, 0, -1)).add(p(-1, 0, -1));
        let s0 = at(B2).mul_add(b2, s0);
        let s0 = at(C0).mul_add(p(-1, 0, 0), s0);
        let s0 = at(C1).mul_add(p(0, -1, 0), s0);
        let s0 = at(C2).mul_add(p(0, 0, -1), s0);
        let ss = s0.mul(at(A3)).sub(p(0, 0, 0)).mul(at(Bnd));
        L::splat(OMEGA).mul_add(ss, p(0, 0, 0)).store(here.wrapping_add(Wrk2 as usize * field));
        ss.add_squares(sum)
    }
}

/// # Safety
/// Both rows valid up to `to`, not overlapping.
#[inline(always)]
unsafe fn copy_row<L: Lanes>(source: *const f32, target: *mut f32, from: usize, to: usize) {
    let mut k = from;
    // SAFETY: k + N <= to, and the caller's promise.
    unsafe {
        while k + L::N <= to {
            L::load(source.wrapping_add(k)).store(target.wrapping_add(k));
            k += L::N;
        }
        if L::N > 1 && k < to {
            copy_row::<L::Narrower>(source, target, k, to);
        }
    }
}
