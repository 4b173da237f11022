//! Fits lines to series.

use statrs::distribution::{ContinuousCDF, Normal};
use wb_results::contention::{FittedSeries, Point, Polyline, Series};
use wb_stats::Samples;

use super::fit::{Shape, error, fit};

/// Values without a line.
pub fn unfitted(mut points: Vec<Point>) -> FittedSeries {
    sort(&mut points);
    FittedSeries { points, rejected: Vec::new(), line: None, error: 0.0 }
}

/// All values of two series, without a line.
pub(crate) fn pooled(one: &FittedSeries, other: &FittedSeries) -> FittedSeries {
    let all = [&one.points, &one.rejected, &other.points, &other.rejected];
    unfitted(all.into_iter().flatten().copied().collect())
}

/// Fits the line again. `isolated_up_to` is the vrate beyond which isolation is insufficient: minus infinity if it
/// is everywhere.
pub(super) fn fitted(values: &FittedSeries, series: Series, isolated_up_to: Option<f64>) -> FittedSeries {
    let mut points: Vec<Point> = [&values.points, &values.rejected].into_iter().flatten().copied().collect();
    sort(&mut points);
    let mut rejected = Vec::new();
    let limit = isolated_up_to.filter(|_| needs_isolation(series));
    if let Some(limit) = limit {
        rejected.extend(points.extract_if(.., |point| point.x > limit));
    }
    let shape = shape(series);
    let mut line = fit(&points, shape);
    if let (Some(limit), Some(fitted)) = (limit, &line) {
        let first = fitted.range().0;
        line = Some(fitted.with_range(first, limit.max(first)));
    }
    if let (true, Some(fitted)) = (has_outliers(series), &line) {
        let (first, last) = fitted.range();
        let outliers = outliers(&points, fitted);
        let mut is_outlier = outliers.into_iter();
        rejected.extend(points.extract_if(.., |_| is_outlier.next().unwrap_or(false)));
        // Without the outliers the line may be shorter; it is still meant for the whole range.
        line = fit(&points, shape).map(|line| line.with_range(first, last));
    }
    if is_share(series) {
        line = line.map(|line| line.at_most(1.0));
    }
    sort(&mut rejected);
    let error = line.as_ref().map_or(0.0, |line| error(points.iter().chain(&rejected), line));
    FittedSeries { points, rejected, line, error }
}

fn sort(points: &mut [Point]) {
    points.sort_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
}

fn shape(series: Series) -> Shape {
    match series {
        Series::Mof | Series::AmofDelta | Series::LatImp | Series::Missing | Series::Latency(..) => Shape::Rising,
        Series::Amof => Shape::Peak,
        Series::Isol | Series::IsolPct(_) | Series::IsolMean => Shape::Falling,
        Series::WorkCsv => Shape::Any,
    }
}

/// Whether it is a share, which a line through values near 1 may exceed.
fn is_share(series: Series) -> bool {
    matches!(series, Series::Isol | Series::IsolPct(_) | Series::IsolMean)
}

/// Whether it means something only where isolation is sufficient.
fn needs_isolation(series: Series) -> bool {
    matches!(series, Series::Amof | Series::AmofDelta)
}

/// Whether single values far from the line say nothing about the others.
fn has_outliers(series: Series) -> bool {
    matches!(series, Series::Latency(..))
}

/// Which values are too far from a line, above or below it: of so many values, less than half of one is expected to
/// have a squared error of that size (Chauvenet's criterion).
fn outliers(points: &[Point], line: &Polyline) -> Vec<bool> {
    let errors: Vec<f64> = points.iter().map(|point| (point.y - line.eval(point.x)).powi(2)).collect();
    let normal = Samples::new(&errors).ok().and_then(|samples| Normal::new(samples.mean(), samples.stddev()?).ok());
    let is_outlier = |error: &f64| normal.is_some_and(|normal| normal.sf(*error) * (points.len() as f64) < 0.5);
    errors.iter().map(is_outlier).collect()
}

#[cfg(test)]
mod tests {
    use wb_results::contention::{LatencyKind, OverTime, Percentile};

    use super::*;

    const RLAT: Series = Series::Latency(LatencyKind::Read, Percentile::P99, OverTime::Mean);

    fn series(value: impl Fn(f64) -> f64) -> FittedSeries {
        unfitted((1..=20).map(|step| f64::from(step) * 5.0).map(|x| Point { x, y: value(x) }).collect())
    }

    #[test]
    fn outliers_on_both_sides_are_rejected_and_fitted_again() {
        let noise = |x: f64| (x * 7.3).sin();
        let value = |x: f64| match x {
            50.0 => 900.0,
            75.0 => 0.0,
            _ => 400.0 + x + noise(x),
        };
        let fitted = fitted(&series(value), RLAT, None);
        assert_eq!(fitted.rejected, [Point { x: 50.0, y: 900.0 }, Point { x: 75.0, y: 0.0 }]);
        assert!((fitted.at(50.0).unwrap() - 450.0).abs() < 3.0, "{fitted:?}");
        let again = super::fitted(&fitted, RLAT, None);
        assert_eq!(again, fitted, "fitting again changes nothing");
    }

    #[test]
    fn no_line_of_a_share_is_above_1() {
        // Ever less isolation, in a range too short for several segments.
        let points = [(80.0, 1.0), (85.0, 1.0), (90.0, 0.95), (95.0, 0.8)].map(|(x, y)| Point { x, y });
        let above = |series: Series| fitted(&unfitted(points.to_vec()), series, None).line.unwrap().extremes().1 > 1.0;
        assert!(above(Series::WorkCsv), "a line of other values may be above them");
        let shares = [Series::Isol, Series::IsolPct(Percentile::P50), Series::IsolMean];
        assert!(!shares.into_iter().any(above));
    }

    #[test]
    fn a_protected_footprint_counts_only_where_isolation_is_sufficient() {
        let fitted = fitted(&series(|_| 1.3), Series::Amof, Some(62.0));
        assert_eq!(fitted.points.len(), 12);
        assert_eq!(fitted.line.unwrap().range(), (5.0, 62.0));
        assert_eq!(super::fitted(&series(|_| 1.3), Series::Mof, Some(62.0)).points.len(), 20);
        let nowhere = super::fitted(&series(|_| 1.3), Series::Amof, Some(f64::NEG_INFINITY));
        assert_eq!((nowhere.points.len(), nowhere.rejected.len(), nowhere.line), (0, 20, None));
    }

    #[test]
    fn pooled_series_have_all_values() {
        let pooled = pooled(&fitted(&series(|_| 1.0), Series::Amof, Some(50.0)), &series(|_| 2.0));
        assert_eq!((pooled.points.len(), pooled.rejected.len()), (40, 0));
        assert!(pooled.points.is_sorted());
    }
}
