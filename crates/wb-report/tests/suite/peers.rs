//! Tests of the files of a matrix.

use wb_import::ReadOptions;
use wb_model::Gate;
use wb_report::peers::{MatrixResults, charts, markdown, page, result_files, yaml};

use crate::matrix;
use crate::parsed_page::{Page, words};

/// What a reader of the suites' files finds: failed cells, invalid samples with their gates, and medians of uploads.
fn read(text: &str) -> (usize, Vec<Gate>, usize) {
    let (format, foreign) = wb_import::read(text, ReadOptions::default()).unwrap();
    assert_eq!(format.name(), "libp2p");
    let samples = || foreign.cells.iter().flat_map(|cell| cell.rows());
    let failed = samples().filter(|sample| sample.failure.is_some()).count();
    let invalid = samples().filter_map(|sample| Some(sample.rejection?.gate)).collect();
    (failed, invalid, foreign.cells.len())
}

#[test]
fn yaml_is_read_as_results_of_the_suites() {
    let text = yaml(&matrix::results());
    let (failed, invalid, cells) = read(&text);
    assert_eq!((failed, cells), (1 + 5 + 1, 48));
    assert_eq!(invalid, [Gate::Plausibility; 4], "it is what it was, although the suites know only `fail`");
    assert!(text.contains("    cause: timeout after 5min\n"), "{text}");
    assert!(text.contains("    cause: \"plausibility: 195 Gbit/s") && !text.contains("status: invalid"), "{text}");
    let medians = "      min: null\n      q1: null\n      median: 3.4\n      q3: null\n      max: null\n      outliers: []\n      samples: []\n";
    assert_eq!(text.matches(medians).count(), 1, "{text}");
}

#[test]
fn yaml_has_the_keys_of_the_suites_in_their_order() {
    let text = yaml(&matrix::results());
    let start: Vec<&str> = text.lines().take(39).map(|line| line.split(':').next().unwrap().trim()).collect();
    let expected = "metadata testPass startedAt completedAt duration platform os workerCount  summary totalBaselines \
                    baselinesPassed baselinesFailed totalTests testsPassed testsFailed totalAll passedAll failedAll  \
                    baselineResults - name dialer listener transport secureChannel muxer status upload iterations min q1 \
                    median q3 max outliers samples unit download";
    assert_eq!(start.join(" "), expected);
    assert!(text.contains("totalAll: 48\n  passedAll: 37\n  failedAll: 11\n"), "{text}");
}

#[test]
fn markdown_is_read_as_the_table_of_the_suites() {
    let text = markdown(&matrix::results());
    let (failed, invalid, _) = read(&text);
    assert_eq!(failed, 1 + 5 + 1);
    assert_eq!(invalid, [Gate::Plausibility; 4]);
    assert!(text.contains("### Latency (ms)") && !text.contains("(seconds)"));
    let named = "### rust-v0.56 x dotnet-v1.0 (tcp, noise, yamux)\n- Status: fail\n- Cause: plausibility: 195 Gbit/s";
    assert!(text.contains(named), "{text}");
}

#[test]
fn plots_have_a_box_for_each_measured_cell_and_a_line_for_each_baseline() {
    let plots = charts::plots(&matrix::results());
    let names: Vec<&str> = plots.iter().map(|plot| plot.name.as_str()).collect();
    let expected = [
        "heatmap-upload",
        "boxplot-upload",
        "heatmap-download",
        "boxplot-download",
        "heatmap-latency",
        "boxplot-latency",
    ];
    assert_eq!(names, expected);
    let upload = plots[1].svg();
    assert_eq!((upload.matches("class=\"box\"").count(), upload.matches("class=\"baseline\"").count()), (35, 2));
    assert!(upload.contains("logarithmic"), "from 0.2 to 8.6 Gbit/s");
    assert_eq!(plots[3].svg().matches("class=\"box\"").count(), 35, "what is invalid is not drawn");
    let heat = plots[2].svg();
    assert_eq!(heat.matches("class=\"heat\"").count(), 35);
    assert!(heat.contains(">invalid</text>") && heat.contains(">fail</text>"));
}

#[test]
fn page_names_what_was_not_measured_and_escapes_it() {
    let page = Page::new(page(&matrix::results()).unwrap());
    assert_eq!(page.count("panicked"), 0);
    let text = words(page.all("body")[0]);
    assert!(text.contains("<panicked>") && text.contains("37 of 48 cells passed (2 of 3 baselines, 35 of 45 tests)"));
    let headings = page.texts("h2");
    for heading in ["Overhead", "Asymmetry", "Connecting", "Not measured"] {
        assert!(headings.iter().any(|text| text.contains(heading)), "{heading}: {headings:?}");
    }
}

#[test]
fn an_empty_matrix_has_files_without_charts() {
    let files = result_files(&MatrixResults::default()).unwrap();
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["results.yaml", "results.md", "results.html"]);
}
