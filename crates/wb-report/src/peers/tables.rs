//! Tables of a matrix: overhead against the best baseline, asymmetry, and the times of connecting.

use std::collections::BTreeSet;

use wb_model::Quantity;
use wb_stats::{Estimate, NoInterval, Samples, Summary};

use super::display::DisplayScenario;
use super::{MatrixCell, MatrixResults, Scenario};
use crate::page::components::FigureTable;
use crate::phrasing::format_uncertainty;

const NONE: &str = "–";

/// Factor between upload and download from which they are marked.
const NOTABLE_ASYMMETRY: f64 = 2.0;

/// Rates in percent of the best baseline, and round trips beyond its own; `None` without a baseline.
pub(super) fn overhead(results: &MatrixResults) -> Option<FigureTable> {
    let best = |cell: &MatrixCell| Scenario::STANDARD.map(|scenario| results.best_baseline(cell, &scenario));
    if results.tests.iter().all(|cell| best(cell).iter().all(Option::is_none)) {
        return None;
    }
    let rates = || Scenario::STANDARD.into_iter().filter(|scenario| scenario.is_rate());
    let ratios = measured(results).flat_map(|cell| {
        rates().filter_map(|scenario| ratio(cell, results.best_baseline(cell, &scenario)?.0, &scenario))
    });
    let title = title_with_reasons("medians against the best baseline that shows the limit of the cell", ratios);
    let heads = ["upload", "of the ceiling", "download", "of the ceiling", "round trip", "beyond the baseline"];
    let row = |cell: &MatrixCell| {
        let figures = Scenario::STANDARD.into_iter().zip(best(cell)).flat_map(|(scenario, best)| {
            let median = cell.median(&scenario);
            let relative = median.zip(best).map(|(median, (baseline, best))| {
                let difference = if scenario.is_rate() {
                    format!("{:.1} %{}", median / best * 100.0, uncertainty(ratio(cell, baseline, &scenario)))
                } else if median < best {
                    format!("−{}", scenario.format(best - median))
                } else {
                    format!("+{}", scenario.format(median - best))
                };
                format!("{difference} {}", baseline.dialer)
            });
            [median.map(|median| scenario.format(median)), relative]
        });
        (cell.name.clone(), figures.map(|figure| figure.unwrap_or_else(|| NONE.to_owned())).collect())
    };
    Some(FigureTable {
        title,
        over: None,
        heads: std::iter::once("cell").chain(heads).map(str::to_owned).collect(),
        rows: measured(results).map(row).collect(),
    })
}

/// The median of a scenario with its interval, if its samples count.
fn estimate(cell: &MatrixCell, scenario: &Scenario) -> Option<Estimate> {
    cell.samples(scenario).map(|samples| Estimate::of_median(&Summary::new(&samples)))
}

/// The median of a scenario as a ratio to that of a baseline.
fn ratio(cell: &MatrixCell, baseline: &MatrixCell, scenario: &Scenario) -> Option<Estimate> {
    estimate(cell, scenario)?.ratio_to(&estimate(baseline, scenario)?)
}

/// The interval of a ratio relative to it, as a suffix; empty without one.
fn uncertainty(ratio: Option<Estimate>) -> String {
    let interval = ratio.and_then(|ratio| format_uncertainty(ratio.value, &ratio.interval.ok()?, None));
    interval.map(|interval| format!(" {interval}")).unwrap_or_default()
}

/// The title of a table with the reasons why ratios in it have no interval.
fn title_with_reasons(title: &str, ratios: impl Iterator<Item = Estimate>) -> String {
    let reasons: BTreeSet<NoInterval> = ratios.filter_map(|ratio| ratio.interval.err()).collect();
    let reasons: Vec<String> = reasons.iter().map(NoInterval::to_string).collect();
    if reasons.is_empty() { title.to_owned() } else { format!("{title}; where no interval: {}", reasons.join("; ")) }
}

/// Upload against download; `None` if no cell has both. A direction is called faster only if the interval excludes
/// equality.
pub(super) fn asymmetry(results: &MatrixResults) -> Option<FigureTable> {
    let row = |cell: &MatrixCell| {
        let (upload, download) = (cell.median(&Scenario::Upload)?, cell.median(&Scenario::Download)?);
        let factor = f64::max(upload / download, download / upload);
        let [faster, slower] = if upload > download {
            [Scenario::Upload, Scenario::Download]
        } else {
            [Scenario::Download, Scenario::Upload]
        };
        let ratio = estimate(cell, &faster)?.ratio_to(&estimate(cell, &slower)?);
        let is_certain = ratio.is_some_and(|ratio| ratio.interval.is_ok_and(|interval| interval.low > 1.0));
        let faster = match upload > download {
            _ if factor < NOTABLE_ASYMMETRY || !is_certain => "",
            true => "upload is faster",
            false => "download is faster",
        };
        let figures = vec![
            Scenario::Upload.format(upload),
            Scenario::Download.format(download),
            format!("{factor:.2} ×{}", uncertainty(ratio)),
            faster.to_owned(),
        ];
        Some((factor, ratio, (cell.name.clone(), figures)))
    };
    let mut rows: Vec<_> = measured(results).filter_map(row).collect();
    rows.sort_by(|left, right| right.0.total_cmp(&left.0));
    (!rows.is_empty()).then(|| FigureTable {
        title: title_with_reasons(
            "upload and download, most different first",
            rows.iter().filter_map(|(_, ratio, _)| *ratio),
        ),
        over: None,
        heads: ["cell", "upload", "download", "factor", ""].map(str::to_owned).to_vec(),
        rows: rows.into_iter().map(|(.., row)| row).collect(),
    })
}

/// The times until a connection is usable, until the first byte, and of a round trip; `None` if no cell has the first
/// two.
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

/// What was transferred for the figures: samples, iterations, bytes, and the CPU time that it took.
pub(super) fn work(results: &MatrixResults) -> Option<FigureTable> {
    let scenarios: Vec<Scenario> = results.scenarios().into_iter().filter(Scenario::is_rate).collect();
    let row = |cell: &MatrixCell| {
        let of_scenario = |scenario: &Scenario| {
            let measured = cell.scenarios.get(scenario).filter(|measured| measured.bytes > 0);
            let quantity = |value: f64, unit: &'static str| Quantity { value, unit }.to_string();
            let work =
                measured.map(|measured| format!("{} × {}", measured.iterations, quantity(measured.bytes as f64, "B")));
            let cpu = measured.and_then(|measured| {
                let gigabytes = measured.iterations as f64 * measured.bytes as f64 / 1e9;
                Some(format!("{}/GB", quantity(measured.cpu_seconds? / gigabytes, "s")))
            });
            [work, cpu].map(|figure| figure.unwrap_or_else(|| NONE.to_owned()))
        };
        let counts = [cell.samples, cell.disturbed].map(|count| count.to_string());
        (cell.name.clone(), counts.into_iter().chain(scenarios.iter().flat_map(of_scenario)).collect())
    };
    let cells = || results.baselines.iter().chain(&results.tests).filter(|cell| cell.samples > 0);
    let heads = scenarios.iter().flat_map(|scenario| [scenario.name().to_owned(), "CPU of dialer".to_owned()]);
    let first = ["cell", "samples", "disturbed"].map(str::to_owned);
    (cells().count() > 0).then(|| FigureTable {
        title: "iterations and bytes of all samples, and the CPU time of the dialer's process, its start included"
            .to_owned(),
        over: None,
        heads: first.into_iter().chain(heads).collect(),
        rows: cells().map(row).collect(),
    })
}

fn measured(results: &MatrixResults) -> impl Iterator<Item = &MatrixCell> {
    results.tests.iter().filter(|cell| cell.scenarios.keys().any(|scenario| cell.median(scenario).is_some()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::peers::{BaselineScope, CellStatus, ScenarioSamples};

    fn cell(upload: &[f64], download: &[f64]) -> MatrixCell {
        let scenario = |samples: &[f64]| ScenarioSamples {
            iterations: samples.len(),
            values: samples.to_vec(),
            samples: samples.to_vec(),
            bytes: 32 << 20,
            cpu_seconds: Some(0.5),
            ..ScenarioSamples::default()
        };
        MatrixCell {
            name: "a x b".to_owned(),
            dialer: "a".to_owned(),
            listener: "b".to_owned(),
            values: Vec::new(),
            scope: BaselineScope::default(),
            status: CellStatus::Pass,
            samples: upload.len(),
            disturbed: 1,
            scenarios: BTreeMap::from([(Scenario::Upload, scenario(upload)), (Scenario::Download, scenario(download))]),
            connect: Vec::new(),
            first_byte: Vec::new(),
        }
    }

    // A direction was called faster by two noisy medians alone.
    #[test]
    fn ratios_have_intervals_and_only_a_certain_difference_has_a_faster_direction() {
        let steady = [9.9e8, 1.01e9, 1e9, 1.02e9, 9.8e8, 1e9];
        let noisy = [9e8, 3.3e9, 2.1e9, 4.5e9, 8e8, 2.4e9];
        let row = |upload: &[f64]| {
            let cell = cell(upload, &steady);
            asymmetry(&MatrixResults { tests: vec![cell], ..MatrixResults::default() }).unwrap().rows.remove(0).1
        };
        assert_eq!(row(&steady.map(|rate| 3.0 * rate))[2..], ["3.00 × ±2.8 %", "upload is faster"]);
        let unsure = row(&noisy);
        assert!(unsure[2].starts_with("2.25 × [-") && unsure[3].is_empty(), "{unsure:?}");
        let baseline = cell(&steady, &steady);
        let results =
            MatrixResults { tests: vec![cell(&noisy, &steady)], baselines: vec![baseline], ..MatrixResults::default() };
        let figures = overhead(&results).unwrap().rows.remove(0).1;
        assert!(figures[1].starts_with("225.0 % [-") && figures[1].ends_with("%] a"), "{figures:?}");
    }

    #[test]
    fn the_work_behind_figures_is_shown() {
        let results = MatrixResults { tests: vec![cell(&[1e9; 6], &[1e9; 6])], ..MatrixResults::default() };
        let table = work(&results).unwrap();
        let figures = &table.rows[0].1;
        assert_eq!(figures[..3], ["6", "1", "6 × 32 MiB"], "{figures:?}");
        assert!(figures[3].ends_with("s/GB"), "{figures:?}");
    }

    #[test]
    fn ratios_without_an_interval_have_the_reason_in_the_title() {
        let (steady, few) = ([9.9e8, 1.01e9, 1e9, 1.02e9, 9.8e8, 1e9], [3e9, 3.1e9]);
        let results = MatrixResults {
            tests: vec![cell(&few, &steady), cell(&steady, &steady)],
            baselines: vec![cell(&steady, &steady)],
            ..MatrixResults::default()
        };
        let different = asymmetry(&results).unwrap();
        assert_eq!(different.rows[0].1[2..], ["3.05 ×", ""]);
        let reason = "where no interval: a median of 2 samples has none, it takes 6";
        assert_eq!(different.title, format!("upload and download, most different first; {reason}"));
        let relative = overhead(&results).unwrap();
        assert_eq!(relative.rows[0].1[1], "305.0 % a");
        assert!(relative.title.ends_with(reason), "{}", relative.title);
        let known = MatrixResults { tests: vec![cell(&steady, &steady)], ..MatrixResults::default() };
        assert_eq!(asymmetry(&known).unwrap().title, "upload and download, most different first");
    }
}
