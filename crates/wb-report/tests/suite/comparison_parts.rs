//! Tests of the page that compares parts of one run.

use serde_json::{Value, json};
use wb_compare::within_run::{SplitOptions, split};
use wb_compare::{BuildSource, Builds, Factor, ReadOptions};
use wb_report::compare::html;

use crate::comparison_page::PLAIN;

use crate::chromium::{PageFile, browser};
use crate::comparison::{CompareOptions, compare};
use crate::parsed_page::Page;

/// A cell with this value of the parameter `threads`, and a sample in each of `samples` rounds.
fn cell(threads: u32, samples: u32, level: f64, outcome: Value) -> Value {
    let attempt = |number: u32| {
        json!({ "sample": number, "start_seconds": 100 * number + threads, "counted": true,
                "values": { "throughput/requests": level + f64::from(number * 3 % 7) } })
    };
    let summary = (samples > 0).then(|| json!({ "mean": level + 2.0, "stddev_percent": 1.0 }));
    json!({ "id": format!("Localhost/redis/0000:threads={threads}"), "key": threads.to_string(),
            "params": { "threads": threads }, "attempts": (0..samples).map(attempt).collect::<Vec<_>>(),
            "outcome": outcome, "ended_by": "the end", "metrics": [{
                "metric": { "name": "requests", "class": "throughput", "unit": "requests/s", "direction": "higher", "primary": true },
                "worker": null, "summary": summary }] })
}

/// A run whose second part is slower, whose third part has too few samples, and whose other parts failed.
fn parts() -> Builds {
    let folder = tempfile::tempdir().unwrap();
    let (run, serial) = (folder.path().join("R"), folder.path().join("R/Localhost/redis/0000"));
    std::fs::create_dir_all(&serial).unwrap();
    std::fs::write(run.join("run.json"), r#"{"schema": 1, "invocations": []}"#).unwrap();
    let measured = || json!({ "outcome": "measured" });
    let failed = |reason: &str| json!({ "outcome": "failed", "reason": reason });
    let cells = [
        cell(1, 8, 1000.0, measured()),
        cell(2, 8, 400.0, measured()),
        cell(4, 3, 800.0, measured()),
        cell(8, 0, 0.0, failed("crashed with 8 threads")),
        cell(16, 0, 0.0, failed("crashed with 16 threads")),
    ];
    let file = serial.join("result.json");
    // Without records, a study would replace the results.
    let text = json!({ "cells": cells }).to_string();
    std::fs::write(&file, &text).unwrap();
    let results = |_: &_| Ok(vec![(file.clone(), text.clone().into_bytes())]);
    let source = BuildSource::parse(run.to_str().unwrap()).unwrap();
    let options = ReadOptions { strict: true, ..ReadOptions::default() };
    let builds = wb_compare::read(&[source], &options, &results).unwrap().builds;
    let factor = Factor::Param { name: "threads".to_owned(), by_test: Default::default() };
    let options =
        SplitOptions { factor, reference: None, allow_different: Default::default(), cell_names: Default::default() };
    split(builds, &options).unwrap()
}

fn page() -> String {
    compare(&parts(), &CompareOptions::default(), |outcome, history| html(outcome, history, &PLAIN)).unwrap()
}

#[test]
fn each_part_has_its_own_errors() {
    let page = Page::new(page());
    let errors = page.texts("table.errors tbody tr");
    let expected = |threads: u32| {
        format!("threads={threads} Localhost/redis/0000:threads={threads} crashed with {threads} threads")
    };
    assert_eq!(errors, [expected(8), expected(16)]);
    assert_eq!(page.texts("table.errors thead th")[0], "part");
    let rows = page.texts("table.totals tbody tr");
    let heads = page.texts("table.totals thead th");
    let column = heads.iter().position(|head| head == "errors").unwrap() - 1;
    let counts: Vec<&str> = rows.iter().map(|row| row.split_whitespace().skip(1).nth(column).unwrap()).collect();
    assert_eq!(counts, ["0", "0", "1", "1"], "{heads:?} {rows:?}");
}

#[test]
fn sentences_of_the_page_are_joined_without_doubled_punctuation() {
    let page = Page::new(page());
    for text in page.texts("p, caption, .note, h1") {
        assert!(!text.contains(".;") && !text.contains("..") && !text.contains(" ."), "{text}");
    }
}

#[test]
fn a_part_with_few_samples_shows_the_difference_of_means() {
    let page = Page::new(page());
    let cells = page.texts("#still tbody tr td");
    let of =
        |value: &str| cells.iter().find(|cell| cell.ends_with(value)).unwrap_or_else(|| panic!("{cells:?}")).clone();
    assert!(of("402").starts_with("✕ shift −"), "{cells:?}");
    assert!(of("802").starts_with("? −19.96") && !of("802").contains("shift"), "{cells:?}");
}

#[test]
#[ignore = "needs chromium: make test-system"]
fn page_of_parts_fits_a_phone_and_a_desktop() {
    let Some(mut browser) = browser() else { return };
    let page = PageFile::write(&page());
    for width in [390, 1280] {
        browser.open(&page.file, width, "light");
        crate::comparison_browser::wait_for_table(&mut browser);
        browser.assert_fits(width, "parts of one run");
        browser.eval("document.querySelectorAll('details').forEach(part => part.open = true)");
        browser.assert_fits(width, "parts of one run, all open");
        browser.assert_quiet(&page.file);
        let row = browser.eval("[...document.querySelectorAll('tr[data-check] td[data-build]')].map(cell => cell.getAttribute('aria-label')).join('\\n')");
        let row = row.as_str().unwrap();
        assert!(row.contains("slower, shift") && row.contains("inconclusive, −19.96 %"), "as without scripts: {row}");
    }
}
