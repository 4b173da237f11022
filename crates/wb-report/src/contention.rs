//! Charts of contention benches.

use wb_model::Unit;
use wb_results::contention::{FittedSeries, Point, Polyline, Series, TuneAnswer};

use crate::chart::{Chart, PdfError, ScatterChart, pdf};

/// The document of a result of `iocost-tune`: its text, then a chart for each series.
pub fn tune_pdf(text: &str, answer: &TuneAnswer) -> Result<Vec<u8>, PdfError> {
    let charts = series_charts(answer);
    let charts: Vec<&dyn Chart> = charts.iter().map(|chart| chart as &dyn Chart).collect();
    pdf(text, &charts)
}

/// A chart for each series that has values: the values and the fitted line, over the vrate.
pub fn series_charts(answer: &TuneAnswer) -> Vec<ScatterChart> {
    let with_values =
        answer.series.iter().filter_map(|(series, fitted)| Some((*series, fitted, fitted.line.as_ref()?)));
    let chart = |(series, fitted, line): (Series, &FittedSeries, &Polyline)| {
        let (unit, factor) = match series {
            Series::Mof | Series::Amof | Series::AmofDelta => (Unit::new("×"), 1.0),
            Series::Latency(..) => (Unit::new("ns"), 1.0),
            _ => (Unit::new("%"), 100.0),
        };
        let scaled = |points: &[Point]| points.iter().map(|point| (point.x, point.y * factor)).collect();
        ScatterChart {
            title: answer.series_label(series),
            x: ("vrate".to_owned(), Unit::new("%")),
            y: (String::new(), unit),
            points: scaled(&fitted.points),
            rejected: scaled(&fitted.rejected),
            line: scaled(line.points()),
        }
    };
    with_values.map(chart).collect()
}
