//! Several primary metrics, and charts of all metrics.

use wb_model::{CellOutcome, Metric, MetricPrecision};
use wb_report::page::html;
use wb_report::text::{Style, summary};
use wb_results::CellResult;
use wb_results::Study;

use crate::parsed_page::{Page, words};
use crate::specimen;
use crate::specimen::cell::CellBuilder;

/// A cell that has not converged in the second of its primary metrics.
fn two_primaries(case: &str) -> CellResult {
    let upload = Metric::throughput("upload", "B/s").primary();
    let builder = CellBuilder::new("peers", case, upload).samples(4e8, 0.5, 9);
    let mut cell = builder.metric(Metric::latency("round-trip", "ns").primary(), 1.2e5, 9.0).build();
    let metrics = vec![MetricPrecision { metric: "latency/round-trip".parse().unwrap(), percent: 7.5 }];
    cell.outcome = CellOutcome::NotConverged { percent: 7.5, metrics };
    cell
}

fn study_of(cells: Vec<CellResult>) -> Study {
    Study { cells, ..specimen::study() }
}

fn titles(page: &Page) -> Vec<String> {
    page.all("figure svg > title").into_iter().map(words).collect()
}

#[test]
fn each_primary_metric_has_a_row_and_the_one_that_did_not_converge_is_named() {
    let study = study_of(vec![two_primaries("dialer=a"), two_primaries("dialer=b")]);
    let text = summary(&study, Style { width: 100, colour: false, is_terminal: true });
    assert_eq!(text.matches("    round-trip, lower is better").count(), 2, "{text}");
    assert!(text.contains("not converged: round-trip ±7.5") || text.contains("not converged: round-trip ["), "{text}");
    let page = Page::new(html(&study, &Default::default()).unwrap());
    assert_eq!(page.count("table.overview tr.cell"), 2);
    let remarks = words(page.all("table.overview tr.why")[0]);
    assert!(remarks.starts_with("round-trip 1") && remarks.contains("required: ±"), "{remarks}");
    let titles = titles(&page);
    for title in ["peers: upload by case", "peers: round-trip by case"] {
        assert!(titles.iter().any(|other| other == title), "{title}: {titles:?}");
    }
}

#[test]
fn every_metric_that_varies_has_a_chart_and_latency_has_one_over_time() {
    let study = specimen::study();
    let page = Page::new(html(&study, &specimen::extras(&study)).unwrap());
    let titles = titles(&page);
    let mut charts = 0;
    for result in study.cells.iter().flat_map(|cell| &cell.metrics).filter(|result| !result.metric.primary) {
        let varies = result.summary.as_ref().is_some_and(|summary| summary.min < summary.max);
        let title = format!(": {} of the samples in time order", result.key().full_name());
        assert_eq!(titles.iter().any(|other| other.ends_with(&title)), varies, "{title}: {titles:?}");
        charts += usize::from(varies);
    }
    assert!(charts > 3);
    assert!(titles.iter().any(|title| title == "read completion: latency over the time of a sample"), "{titles:?}");
}

#[test]
fn a_page_of_many_cells_or_samples_stays_below_10_megabytes() {
    for cells in [400, 10_000] {
        let cells: Vec<CellResult> = (0..cells).map(|number| two_primaries(&format!("n={number}"))).collect();
        let others = |cell: CellResult| CellResult { latency: Vec::new(), ..cell };
        let page = html(&study_of(cells.into_iter().map(others).collect()), &Default::default()).unwrap();
        assert!(page.len() <= 10_000_000, "{} bytes", page.len());
    }
}

#[test]
fn with_many_samples_the_page_has_charts_of_one_metric_and_names_the_command_for_the_others() {
    let cell = |number: u32| {
        let builder = CellBuilder::new("fio", &format!("n={number}"), Metric::throughput("iops", "ops/s").primary());
        let builder = builder.samples(4e4, 0.5, 12);
        builder.metric(Metric::latency("p99", "ns"), 1.2e5, 9.0).build()
    };
    let page = |cells: u32| Page::new(html(&study_of((0..cells).map(cell).collect()), &Default::default()).unwrap());
    let (few, many) = (page(3), page(900));
    let has_others = |page: &Page| titles(page).iter().any(|title| title.contains("p99 of the samples"));
    assert!(has_others(&few) && !has_others(&many));
    assert!(!few.text.contains("Charts of one metric alone") && many.text.contains("Charts of one metric alone"));
}
