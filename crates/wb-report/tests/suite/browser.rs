//! Tests of a run's page in a browser.

use crate::chromium::{PageFile, browser};
use crate::specimen;

/// Writes the page of the specimen, which has every element, to a file.
fn page() -> PageFile {
    let study = specimen::study();
    PageFile::write(&wb_report::page::html(&study, &specimen::extras(&study)).unwrap())
}

#[test]
#[ignore = "needs chromium: make test-system"]
fn page_makes_no_requests_and_logs_no_errors() {
    let (Some(mut browser), page) = (browser(), page()) else { return };
    browser.open(&page.file, 1280, "light");
    assert_eq!(browser.eval("document.querySelectorAll('h1').length"), 1);
    browser.assert_quiet(&page.file);
}

#[test]
#[ignore = "needs chromium: make test-system"]
fn page_does_not_scroll_horizontally_at_any_width() {
    let (Some(mut browser), page) = (browser(), page()) else { return };
    for width in [360, 390, 768, 1280] {
        browser.open(&page.file, width, "light");
        for state in ["closed", "open"] {
            browser.assert_fits(width, state);
            let bars = "new Set([...document.querySelectorAll('.overview .bar svg')].map(bar => { \
                        const box = bar.getBoundingClientRect(); return `${box.left} ${box.width}`; })).size";
            assert_eq!(browser.eval(bars), 1, "the bars of the overview are not on one scale");
            browser.eval("document.querySelectorAll('details').forEach(e => { e.open = true })");
        }
    }
}

#[test]
#[ignore = "needs chromium: make test-system"]
fn cell_opens_by_keyboard_and_by_its_link() {
    let (Some(mut browser), page) = (browser(), page()) else { return };
    browser.open(&page.file, 1280, "light");
    browser.eval("document.querySelector('#g0-1 > summary').focus()");
    browser.press("Enter", "Enter", 13, "\r");
    assert_eq!(browser.eval("document.querySelector('#g0-1').open"), true);
    browser.eval("document.querySelector('a[href=\"#g1-2\"]').focus()");
    browser.press("Enter", "Enter", 13, "\r");
    let opened = "new Promise(done => setTimeout(() => done(document.querySelector('#g1-2').open), 300))";
    assert_eq!(browser.eval(opened), true);
}

#[test]
#[ignore = "needs chromium: make test-system"]
fn typing_filters_the_overview() {
    let (Some(mut browser), page) = (browser(), page()) else { return };
    browser.open(&page.file, 1280, "light");
    browser.eval("document.getElementById('filter').focus()");
    // Another of its cells has failed attempts.
    for letter in "redis failed".chars() {
        browser.press(&letter.to_string(), "", 0, &letter.to_string());
    }
    assert_eq!(browser.eval("document.getElementById('shown').textContent"), "2 of 14");
    assert_eq!(browser.eval("document.querySelectorAll('tr[data-cell]:not([hidden])').length"), 2);
}

#[test]
#[ignore = "needs chromium: make test-system"]
fn page_follows_the_dark_scheme() {
    let (Some(mut browser), page) = (browser(), page()) else { return };
    let background = "getComputedStyle(document.body).backgroundColor";
    browser.open(&page.file, 1280, "light");
    let light = browser.eval(background);
    browser.open(&page.file, 1280, "dark");
    assert_ne!(browser.eval(background), light);
    assert!(browser.screenshot().len() > 10_000);
}
