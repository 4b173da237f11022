//! The fourteen arrays of the benchmark, in one mapping.

use super::grid::Grid;
use crate::{Error, HugePagePolicy, MappedMemory};
use std::ops::Range;

/// The arrays, in memory order.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
pub(super) enum Field {
    Wrk2,
    A0,
    A1,
    A2,
    A3,
    B0,
    B1,
    B2,
    C0,
    C1,
    C2,
    P,
    Bnd,
    Wrk1,
}

pub(super) const FIRST_FIELD: Field = Field::Wrk2;
const FIELDS: usize = 14;
/// `f32` in a cache line.
pub(super) const LINE: usize = 16;

/// Distances between neighbours, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Strides {
    pub(super) row: usize,
    pub(super) plane: usize,
    pub(super) field: usize,
}

impl Strides {
    /// A row has as many elements as points and is aligned so that its first *interior* point begins a cache line:
    /// vectors of the inner loop never straddle two lines, and the boundary point before it is at the end of the
    /// previous line. Planes and arrays are offset against each other, so that the 22 streams of the stencil do not
    /// collide in the same few cache sets.
    pub(super) const fn new(grid: Grid) -> Self {
        let [planes, rows, points] = grid.extent();
        let page = 1024;
        let row = if points.is_multiple_of(page) { points + LINE } else { points };
        let plane = rows * row + 3 * LINE;
        // One additional row: the end of the last row and the beginning of the first one lie outside the planes.
        let field = (planes * plane + row).next_multiple_of(page) + 4 * LINE;
        Self { row, plane, field }
    }
}

#[derive(Debug)]
pub(super) struct Fields {
    pub(super) memory: MappedMemory,
    pub(super) grid: Grid,
    pub(super) strides: Strides,
}

impl Fields {
    /// Maps the arrays without writing to them.
    pub(super) fn map(grid: Grid, huge: HugePagePolicy) -> Result<Self, Error> {
        Ok(Self { memory: MappedMemory::map(Self::bytes(grid), huge)?, grid, strides: Strides::new(grid) })
    }

    /// Size of all arrays in bytes, padding included.
    pub(super) fn bytes(grid: Grid) -> usize {
        FIELDS * Strides::new(grid).field * size_of::<f32>()
    }

    /// The address of point (i, j, 1) of an array: the first interior point of a row.
    pub(super) fn row(&self, field: Field, i: usize, j: usize) -> *mut f32 {
        let [planes, rows, _] = self.grid.extent();
        assert!(i < planes && j < rows);
        let Strides { row, plane, field: stride } = self.strides;
        let offset = field as usize * stride + LINE + i * plane + j * row;
        self.memory.as_ptr().cast::<f32>().wrapping_add(offset)
    }

    /// Writes the initial values of whole planes.
    ///
    /// # Safety
    /// No other thread may use these planes meanwhile.
    pub(super) unsafe fn initialize(&self, planes: Range<usize>) {
        use Field::*;
        let [all, rows, points] = self.grid.extent();
        let last = (all - 1) as f32;
        for i in planes {
            let pressure = (i * i) as f32 / (last * last);
            for j in 0..rows {
                for (field, value) in [
                    (A0, 1.0),
                    (A1, 1.0),
                    (A2, 1.0),
                    (A3, 1.0 / 6.0),
                    (B0, 0.0),
                    (B1, 0.0),
                    (B2, 0.0),
                    (C0, 1.0),
                    (C1, 1.0),
                    (C2, 1.0),
                    (P, pressure),
                    (Bnd, 1.0),
                    (Wrk1, 0.0),
                    (Wrk2, 0.0),
                ] {
                    // SAFETY: the row's `points` elements from its boundary point on lie inside
                    // the mapping, in planes that are this thread's alone.
                    unsafe { std::slice::from_raw_parts_mut(self.row(field, i, j).sub(1), points).fill(value) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_lies_inside_the_mapping_and_its_interior_begins_a_line() {
        for grid in [Grid::XS, Grid::S, Grid::M] {
            let fields = Fields::map(grid, HugePagePolicy::Inherit).unwrap();
            let [planes, rows, points] = grid.extent();
            let base = fields.memory.as_ptr() as usize;
            for field in [Field::A0, Field::P, Field::Wrk2] {
                for (i, j) in [(0, 0), (planes - 1, rows - 1)] {
                    let first = fields.row(field, i, j) as usize;
                    assert_eq!(first % 64, 0);
                    assert!(first - 4 >= base);
                    assert!(first + (points - 1) * 4 <= base + Fields::bytes(grid));
                }
            }
        }
    }

    #[test]
    fn arrays_do_not_overlap() {
        for grid in Grid::ALL {
            let Strides { row, plane, field } = Strides::new(grid);
            let [planes, rows, points] = grid.extent();
            assert!((planes - 1) * plane + (rows - 1) * row + points <= field);
            assert!((rows - 1) * row + points <= plane);
        }
    }
}
