//! Whether attempts fail as often on both sides.

use wb_results::comparison::AttemptCounts;
use wb_stats::FisherExact;

/// Fisher's exact test of the failed attempts of two sides.
pub(crate) struct FailureTest {
    /// The failed attempts and all, on each side.
    pub(crate) counts: [[usize; 2]; 2],
    pub(crate) p_value: f64,
    /// Whether the share of failed attempts is larger on the judged side.
    pub(crate) rose: bool,
}

impl FailureTest {
    /// `None` if nothing failed, or a side does not record attempts.
    pub(crate) fn new([reference, judged]: [AttemptCounts; 2]) -> Option<Self> {
        let [a, n, b, m] =
            [reference.failed, reference.attempts, judged.failed, judged.attempts].map(|count| count as usize);
        let p_value = FisherExact::new(a, n, b, m).filter(|_| n > 0 && m > 0 && a + b > 0)?.p_value;
        Some(Self { counts: [[a, n], [b, m]], p_value, rose: b * n > a * m })
    }
}
