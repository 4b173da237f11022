//! Rectangles of a column-major matrix that can be split and worked on separately.

use std::marker::PhantomData;
use std::ops::{Deref, Range};

/// Exclusive access to a rectangle of a column-major matrix: the two-dimensional counterpart of `&mut [f64]`, which can
/// be reborrowed, and split into rectangles that do not overlap.
pub(super) struct MatrixMut<'a> {
    first: *mut f64,
    rows: usize,
    cols: usize,
    leading_dimension: usize,
    matrix: PhantomData<&'a mut [f64]>,
}

// SAFETY: it is a `&mut` to its elements, and f64 is `Send`.
unsafe impl Send for MatrixMut<'_> {}

impl<'a> MatrixMut<'a> {
    /// Column `j` begins at `j × leading_dimension`.
    pub(super) fn new(elements: &'a mut [f64], rows: usize, cols: usize, leading_dimension: usize) -> Self {
        assert!(rows <= leading_dimension && elements.len() >= leading_dimension * cols);
        Self { first: elements.as_mut_ptr(), rows, cols, leading_dimension, matrix: PhantomData }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn cols(&self) -> usize {
        self.cols
    }

    pub(super) fn leading_dimension(&self) -> usize {
        self.leading_dimension
    }

    pub(super) fn reborrow(&mut self) -> MatrixMut<'_> {
        MatrixMut { matrix: PhantomData, ..*self }
    }

    pub(super) fn split_rows(self, at: usize) -> (Self, Self) {
        assert!(at <= self.rows);
        let below = Self { first: self.first.wrapping_add(at), rows: self.rows - at, ..self };
        (Self { rows: at, ..self }, below)
    }

    pub(super) fn split_cols(self, at: usize) -> (Self, Self) {
        assert!(at <= self.cols);
        let first = self.first.wrapping_add(at * self.leading_dimension);
        let right = Self { first, cols: self.cols - at, ..self };
        (Self { cols: at, ..self }, right)
    }

    pub(super) fn col(&self, col: usize) -> &[f64] {
        assert!(col < self.cols);
        // SAFETY: inside the matrix by construction, and `self` is the only way to it.
        unsafe { std::slice::from_raw_parts(self.start_of(col), self.rows) }
    }

    pub(super) fn col_mut(&mut self, col: usize) -> &mut [f64] {
        assert!(col < self.cols);
        // SAFETY: as in `col`, and `&mut self` makes it exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start_of(col), self.rows) }
    }

    pub(super) fn at(&mut self, row: usize, col: usize) -> *mut f64 {
        assert!(row < self.rows && col < self.cols);
        self.start_of(col).wrapping_add(row)
    }

    fn start_of(&self, col: usize) -> *mut f64 {
        self.first.wrapping_add(col * self.leading_dimension)
    }
}

/// A matrix that several threads work on, each on its own rectangle.
pub(super) struct SharedMatrix<'a>(MatrixMut<'a>);

// SAFETY: shared access to elements is through unsafe functions only, whose callers guarantee disjoint rectangles.
unsafe impl Sync for SharedMatrix<'_> {}

impl<'a> SharedMatrix<'a> {
    pub(super) fn new(matrix: MatrixMut<'a>) -> Self {
        Self(matrix)
    }

    /// # Safety
    /// No other thread may access any of its elements as long as the rectangle lives.
    pub(super) unsafe fn block_mut(&self, rows: Range<usize>, cols: Range<usize>) -> MatrixMut<'_> {
        assert!(rows.start <= rows.end && rows.end <= self.0.rows);
        assert!(cols.start <= cols.end && cols.end <= self.0.cols);
        let first = self.0.start_of(cols.start).wrapping_add(rows.start);
        MatrixMut { first, rows: rows.len(), cols: cols.len(), ..self.0 }
    }

    /// # Safety
    /// No thread may write any of its elements as long as the rectangle lives.
    pub(super) unsafe fn block(&self, rows: Range<usize>, cols: Range<usize>) -> MatrixRef<'_> {
        // SAFETY: nothing can be written through a `MatrixRef`.
        MatrixRef(unsafe { self.block_mut(rows, cols) })
    }
}

/// Shared access to a rectangle of a column-major matrix.
pub(super) struct MatrixRef<'a>(MatrixMut<'a>);

impl<'a> Deref for MatrixRef<'a> {
    type Target = MatrixMut<'a>;

    fn deref(&self) -> &MatrixMut<'a> {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_matrix_are_the_right_elements() {
        let mut elements: Vec<f64> = (0..20).map(f64::from).collect();
        let mut matrix = MatrixMut::new(&mut elements, 4, 4, 5);
        assert_eq!(matrix.col(1), [5.0, 6.0, 7.0, 8.0]);
        let (upper, lower) = matrix.reborrow().split_rows(1);
        assert_eq!((upper.col(3), lower.rows()), (&[15.0][..], 3));
        let (mut left, right) = lower.split_cols(2);
        assert_eq!(right.col(0), [11.0, 12.0, 13.0]);
        left.col_mut(1)[0] = 99.0;
        assert_eq!(elements[6], 99.0);
    }

    #[test]
    fn parts_of_a_shared_matrix_can_be_written_by_several_threads() {
        let mut elements = vec![0.0; 6 * 8];
        let shared = SharedMatrix::new(MatrixMut::new(&mut elements, 5, 8, 6));
        std::thread::scope(|scope| {
            for part in 0..4 {
                let shared = &shared;
                scope.spawn(move || {
                    // SAFETY: each thread takes two columns of its own.
                    let mut columns = unsafe { shared.block_mut(1..5, 2 * part..2 * part + 2) };
                    columns.col_mut(1).fill(part as f64);
                });
            }
        });
        for part in 0..4 {
            let col = &elements[(2 * part + 1) * 6..][..6];
            assert_eq!(col, [0.0, part as f64, part as f64, part as f64, part as f64, 0.0]);
        }
    }

    #[test]
    #[should_panic = "assertion"]
    fn a_matrix_larger_than_its_elements_is_refused() {
        let _ = MatrixMut::new(&mut [0.0; 11], 3, 4, 3);
    }
}
