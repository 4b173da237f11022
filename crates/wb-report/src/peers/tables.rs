//! Tables of a matrix: overhead against the best baseline, asymmetry, and the times of connecting.

use wb_stats::Samples;

use super::display::DisplayScenario;
use super::{MatrixCell, MatrixResults, Scenario};
use crate::page::components::FigureTable;

/// The sign of a missing figure.
const NONE: &str = "–";

/// Factor between upload and download from which on they are marked.
const NOTABLE_ASYMMETRY: f64 = 2.0;

/// Rates in percent of the best baseline, and round trips beyond its own; none without a baseline.
pub(super) fn overhead(results: &MatrixResults) -> Option<FigureTable> {
    let best = |cell: &MatrixCell| Scenario::STANDARD.map(|scenario| results.best_baseline(cell, &scenario));
    if results.tests.iter().all(|cell| best(cell).iter().all(Option::is_none)) {
        return None;
    }
    let heads = ["upload", "of the ceiling", "download", "of the ceiling", "round trip", "beyond the baseline"];
    let row = |cell: &MatrixCell| {
        let figures = Scenario::STANDARD.into_iter().zip(best(cell)).flat_map(|(scenario, best)| {
            let median = cell.median(&scenario);
            let relative = median.zip(best).map(|(median, (baseline, best))| {
                let difference = match scenario.is_rate() {
                    true => format!("{:.1} %", median / best * 100.0),
                    false if median < best => format!("−{}", scenario.format(best - median)),
                    false => format!("+{}", scenario.format(median - best)),
                };
                format!("{difference} {}", baseline.dialer)
            });
            [median.map(|median| scenario.format(median)), relative]
        });
        (cell.name.clone(), figures.map(|figure| figure.unwrap_or_else(|| NONE.to_owned())).collect())
    };
    Some(FigureTable {
        title: "medians against the best baseline that shows the limit of the cell".to_owned(),
        over: None,
        heads: std::iter::once("cell").chain(heads).map(str::to_owned).collect(),
        rows: measured(results).map(row).collect(),
    })
}

/// Upload against download; none if no cell has both.
pub(super) fn asymmetry(results: &MatrixResults) -> Option<FigureTable> {
    let row = |cell: &MatrixCell| {
        let (upload, download) = (cell.median(&Scenario::Upload)?, cell.median(&Scenario::Download)?);
        let factor = f64::max(upload / download, download / upload);
        let faster = match upload > download {
            _ if factor < NOTABLE_ASYMMETRY => "",
            true => "upload is faster",
            false => "download is faster",
        };
        let figures = vec![
            Scenario::Upload.format(upload),
            Scenario::Download.format(download),
            format!("{factor:.2} ×"),
            faster.to_owned(),
        ];
        Some((factor, (cell.name.clone(), figures)))
    };
    let mut rows: Vec<_> = measured(results).filter_map(row).collect();
    rows.sort_by(|left, right| right.0.total_cmp(&left.0));
    (!rows.is_empty()).then(|| FigureTable {
        title: "upload and download, most different first".to_owned(),
        over: None,
        heads: ["cell", "upload", "download", "factor", ""].map(str::to_owned).to_vec(),
        rows: rows.into_iter().map(|(_, row)| row).collect(),
    })
}

/// The times until a connection is usable, until the first byte, and of a round trip; none if no cell has the first two.
pub(super) fn connecting(results: &MatrixResults) -> Option<FigureTable> {
    let all = || results.baselines.iter().chain(&results.tests);
    let timed = all().filter(|cell| !cell.connect.is_empty() || !cell.first_byte.is_empty());
    let time = |samples: &[f64]| {
        let median = Samples::new(samples).ok().map(|samples| samples.median());
        median.map_or_else(|| NONE.to_owned(), |median| Scenario::Latency.format(median))
    };
    let row = |cell: &MatrixCell| {
        let latency = cell.median(&Scenario::Latency);
        let figures = vec![
            time(&cell.connect),
            time(&cell.first_byte),
            latency.map_or_else(|| NONE.to_owned(), |latency| Scenario::Latency.format(latency)),
        ];
        (cell.name.clone(), figures)
    };
    let rows: Vec<_> = timed.map(row).collect();
    (!rows.is_empty()).then(|| FigureTable {
        title: "medians of the times from dialling to a usable connection, and from opening a stream to the first byte"
            .to_owned(),
        over: None,
        heads: ["cell", "connect", "first byte", "round trip"].map(str::to_owned).to_vec(),
        rows,
    })
}

/// The cells with a figure.
fn measured(results: &MatrixResults) -> impl Iterator<Item = &MatrixCell> {
    results.tests.iter().filter(|cell| cell.scenarios.keys().any(|scenario| cell.median(scenario).is_some()))
}
