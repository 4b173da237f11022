//! A plain implementation of the benchmark in 64 bits, as the reference for tests.

/// Fields in 64 bits on any grid.
pub(super) struct Reference {
    extent: [usize; 3],
    p: Vec<f64>,
}

impl Reference {
    pub(super) fn new(extent: [usize; 3]) -> Self {
        let [planes, rows, points] = extent;
        let initial = |i: usize| (i as f64 / (planes - 1) as f64).powi(2);
        let p = (0..planes).flat_map(|i| vec![initial(i); rows * points]).collect();
        Self { extent, p }
    }

    /// Runs one iteration and returns GOSA. Terms with a zero coefficient are omitted.
    pub(super) fn sweep(&mut self) -> f64 {
        let [planes, rows, points] = self.extent;
        let (plane, row) = (rows * points, points);
        let (p, mut next, mut gosa) = (&self.p, self.p.clone(), 0.0);
        for i in 1..planes - 1 {
            for j in 1..rows - 1 {
                for k in 1..points - 1 {
                    let index = i * plane + j * row + k;
                    let around = p[index + plane]
                        + p[index + row]
                        + p[index + 1]
                        + p[index - plane]
                        + p[index - row]
                        + p[index - 1];
                    let ss = around / 6.0 - p[index];
                    gosa += ss * ss;
                    next[index] += 0.8 * ss;
                }
            }
        }
        self.p = next;
        gosa
    }
}
