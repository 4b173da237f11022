//! Tests of a comparison's page in a browser.

use std::path::PathBuf;

use crate::chromium::{Chromium, PageFile, browser};
use crate::comparison::specimen;
use crate::comparison::{CompareOptions, compare, read};
use wb_report::compare::html;
use wb_results::comparison::ComparisonMethod;

use crate::comparison_page::PLAIN;
use wb_test_data::LARGE_PAGE_BUILDS;

/// Writes the page of some builds to a file.
fn page(write: impl Fn(&std::path::Path) -> Vec<PathBuf>, method: Option<ComparisonMethod>) -> PageFile {
    let folder = tempfile::tempdir().unwrap();
    let builds = read(&write(folder.path()));
    let how = CompareOptions { method, ..CompareOptions::default() };
    PageFile::write(&compare(&builds, &how, |outcome, history| html(outcome, history, &PLAIN)).unwrap())
}

/// Opens the page of the specimen compared by tolerances, and waits for its script.
fn open_page(width: u32) -> Option<(Chromium, PageFile)> {
    let mut browser = browser()?;
    let page = page(specimen::write, Some(ComparisonMethod::Tolerance));
    browser.open(&page.file, width, "light");
    wait_for_table(&mut browser);
    Some((browser, page))
}

/// Waits until the table has replaced the list of failures.
pub(crate) fn wait_for_table(browser: &mut Chromium) {
    let done = "new Promise(done => { const look = () => document.getElementById('still') && \
                !document.querySelector('#still > p.note:last-child') ? setTimeout(look, 20) : done(true); look(); })";
    browser.eval(done);
    assert_eq!(browser.eval("document.getElementById('still')"), serde_json::Value::Null, "the script failed");
}

const NAMES: &str = "[...document.querySelectorAll('tr[data-check] .id')].map(name => name.textContent).join('\\n')";

fn names(browser: &mut Chromium) -> Vec<String> {
    browser.eval(NAMES).as_str().unwrap().lines().map(str::to_owned).collect()
}

/// Selects a value in a filter.
fn choose(browser: &mut Chromium, name: &str, value: &str) {
    let chosen = format!(
        "{{ const input = document.querySelector('.filters [name={name}]'); input.value = {value:?}; \
         input.dispatchEvent(new Event('input', {{ bubbles: true }})); }}"
    );
    browser.eval(&chosen);
}

#[test]
#[ignore = "needs chromium: make test-system"]
fn page_makes_no_requests_and_logs_no_errors() {
    let Some((mut browser, page)) = open_page(1280) else { return };
    browser.eval("document.querySelectorAll('td[data-build]').forEach(cell => cell.click())");
    browser.assert_quiet(&page.file);
    assert_eq!(browser.eval("document.querySelectorAll('img, #still').length"), 0);
}

#[test]
#[ignore = "needs chromium: make test-system"]
fn filters_restrict_the_table() {
    let Some((mut browser, _page)) = open_page(1280) else { return };
    assert_eq!(names(&mut browser).len(), 5, "not equal in any build, primary only");
    choose(&mut browser, "status", "failed");
    assert_eq!(names(&mut browser).len(), 4, "failed in any build, primary only");
    choose(&mut browser, "build", "2");
    assert_eq!(names(&mut browser).len(), 3, "failed in the last");
    choose(&mut browser, "status", "improved");
    assert_eq!(names(&mut browser), ["Localhost/fio/0000:./read-64KiB/throughput/iops_sec.mean higher is better"]);
    choose(&mut browser, "status", "");
    choose(&mut browser, "primary", "");
    assert_eq!(names(&mut browser).len(), 24, "everything");
    choose(&mut browser, "profile", "=Tuned");
    assert_eq!(names(&mut browser).len(), 4);
    choose(&mut browser, "profile", "");
    choose(&mut browser, "text", "READ lat.mean");
    assert_eq!(browser.eval("document.querySelector('.filters output').textContent"), "2 of 24 checks");
    choose(&mut browser, "text", "no such check");
    browser.eval("document.querySelector('.live tbody button').click()");
    assert_eq!(names(&mut browser).len(), 24, "the button that removes filters without matches");
}

#[test]
#[ignore = "needs chromium: make test-system"]
fn checks_that_are_not_primary_follow_a_separator_and_their_failures_have_a_button() {
    let Some((mut browser, _page)) = open_page(1280) else { return };
    choose(&mut browser, "status", "");
    choose(&mut browser, "primary", "");
    let separator =
        "[...document.querySelectorAll('.live tbody tr')].findIndex(row => row.classList.contains('apart'))";
    assert_eq!(browser.eval(separator), 12, "after the primary ones");
    browser.eval("document.querySelector('button[data-sort=\"2\"]').click()");
    assert_eq!(browser.eval(separator), 12, "also where they are sorted");
    browser.eval("document.querySelector('#others-in-table button').click()");
    let failed = names(&mut browser);
    assert!(failed.iter().all(|name| name.contains("/latency/")) && failed.len() == 3, "{failed:?}");
    assert_eq!(browser.eval("document.querySelector('.live .first').textContent"), "109.5 to 10.5");
}

#[test]
#[ignore = "needs chromium: make test-system"]
fn column_sorts_the_worst_first() {
    let Some((mut browser, _page)) = open_page(1280) else { return };
    choose(&mut browser, "status", "");
    browser.eval("document.querySelector('button[data-sort=\"2\"]').click()");
    let sorted = names(&mut browser);
    assert!(sorted[0].contains("read-4KiB"), "{sorted:?}");
    assert_eq!(browser.eval("document.querySelector('[aria-sort]').getAttribute('aria-sort')"), "ascending");
    browser.eval("document.querySelector('button[data-sort=\"2\"]').click()");
    assert!(names(&mut browser)[0].contains("read-64KiB"));
}

#[test]
#[ignore = "needs chromium: make test-system"]
fn cell_is_explained_by_keyboard_alone() {
    let Some((mut browser, _page)) = open_page(1280) else { return };
    browser.eval("document.querySelector('.filters output').previousElementSibling.querySelector('select').focus()");
    for _ in 0..4 {
        browser.press("Tab", "Tab", 9, "");
        if browser.eval("document.activeElement.tagName") == "TD" {
            break;
        }
    }
    assert_eq!(browser.eval("document.activeElement.dataset.build"), "1");
    browser.press("ArrowRight", "ArrowRight", 39, "");
    browser.press("Enter", "Enter", 13, "\r");
    let text = browser.eval("document.querySelector('tr.why').textContent");
    let text = text.as_str().unwrap();
    for part in [
        "new: ✕ regressed",
        "tolerances decide",
        "1000",
        "800",
        "−20.00 % of ±5 %",
        "tolerated950 to 1050",
        "compared withthe value of old",
        "ratio of medians",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(browser.eval("document.querySelectorAll('tr.why svg circle').length"), 3, "a dot for each build");
    browser.press("ArrowDown", "ArrowDown", 40, "");
    assert_eq!(browser.eval("document.activeElement.dataset.build"), "2");
    browser.press("ArrowUp", "ArrowUp", 38, "");
    browser.press("Escape", "Escape", 27, "");
    assert_eq!(browser.eval("document.querySelectorAll('tr.why').length"), 0);
}

#[test]
#[ignore = "needs chromium: make test-system"]
fn differing_parameters_are_marked_shown_and_copied() {
    let Some((mut browser, _page)) = open_page(1280) else { return };
    choose(&mut browser, "status", "improved");
    assert_eq!(browser.eval("document.querySelectorAll('td abbr[title=\"parameters differ\"]').length"), 1);
    browser.eval("document.querySelector('td:has(abbr[title=\"parameters differ\"])').click()");
    assert_eq!(browser.eval("document.querySelector('tr.why .diff').textContent"), "- bs = 64k\n+ bs = 32k");
    browser.eval("document.querySelector('tr.why .command button').focus()");
    browser.press("Enter", "Enter", 13, "\r");
    let after = "new Promise(done => setTimeout(() => done(document.querySelector('tr.why .command button').textContent), 300))";
    let label = browser.eval(after);
    let copied = match label.as_str().unwrap() {
        "copied" => browser
            .eval("navigator.clipboard.readText().catch(() => document.querySelector('tr.why .diff').textContent)"),
        _ => browser.eval("getSelection().toString()"),
    };
    assert_eq!(copied, "- bs = 64k\n+ bs = 32k", "{label}");
}

#[test]
#[ignore = "needs chromium: make test-system"]
fn page_does_not_scroll_horizontally_at_any_width() {
    let Some((mut browser, page)) = open_page(1280) else { return };
    for width in [360, 390, 768, 1280, 1400] {
        browser.open(&page.file, width, "light");
        wait_for_table(&mut browser);
        for state in ["closed", "open"] {
            browser.assert_fits(width, state);
            browser.eval("document.querySelectorAll('details').forEach(e => { e.open = true })");
            browser.eval("document.querySelectorAll('td[data-build=\"2\"]').forEach(cell => cell.click())");
        }
    }
}

#[test]
#[ignore = "needs chromium: make test-system"]
fn figures_of_two_builds_are_not_cut_off_on_a_phone() {
    let Some(mut browser) = browser() else { return };
    let ends = |folder: &std::path::Path| {
        let folders = specimen::write(folder);
        vec![folders[0].clone(), folders[2].clone()]
    };
    // By statistics groups are not decisive, which makes their cells the widest.
    let page = page(ends, Some(ComparisonMethod::Statistical));
    for scripts in [false, true] {
        browser.scripts(scripts);
        browser.open(&page.file, 390, "light");
        if scripts {
            wait_for_table(&mut browser);
        }
        browser.eval("document.querySelectorAll('details').forEach(e => { e.open = true })");
        let tables = browser.eval("document.querySelectorAll('.scroll .checks').length").as_u64().unwrap();
        assert!(tables >= 2, "failures that are not primary, and groups: {tables}");
        let cut = "[...document.querySelectorAll('.scroll:has(.checks)')].filter(e => e.scrollWidth > e.clientWidth) \
                   .map(e => `${e.getAttribute('aria-label')}: ${e.scrollWidth} > ${e.clientWidth}`).join('\\n')";
        assert_eq!(browser.eval(cut), "", "scripts: {scripts}");
    }
}

#[test]
#[ignore = "needs chromium: make test-system"]
fn standard_deviations_are_more_or_less_in_table_and_explanation() {
    let Some(mut browser) = browser() else { return };
    browser.open(&page(specimen::write_deviating, Some(ComparisonMethod::Tolerance)).file, 1280, "light");
    wait_for_table(&mut browser);
    choose(&mut browser, "text", "read-4KiB iops_sec.stddev");
    let cell = browser.eval("document.querySelector('td[data-build]').textContent");
    assert!(cell.as_str().unwrap().ends_with(" 11.46 points more11.76"), "{cell}");
    browser.eval("document.querySelector('td[data-build]').click()");
    let why = browser.eval("document.querySelector('tr.why').textContent");
    assert!(why.as_str().unwrap().contains("11.46 points more of ±5 points"), "{why}");
}

/// Two builds with one check.
fn write_single_check(into: &std::path::Path) -> Vec<PathBuf> {
    let folders = specimen::write(into);
    let ends = [folders[0].clone(), folders[2].clone()];
    for folder in &ends {
        let file = folder.join("Localhost/fio/0000/result.json");
        let mut results: Vec<serde_json::Value> = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        results.truncate(1);
        std::fs::write(&file, serde_json::to_string(&results).unwrap()).unwrap();
        std::fs::remove_dir_all(folder.join("Tuned")).unwrap();
    }
    ends.to_vec()
}

#[test]
#[ignore = "needs chromium: make test-system"]
fn comparison_of_one_check_fits_a_screen() {
    let Some(mut browser) = browser() else { return };
    let page = page(write_single_check, Some(ComparisonMethod::Tolerance));
    for (width, height) in [(1280, 800), (390, 844)] {
        browser.open(&page.file, width, "light");
        wait_for_table(&mut browser);
        browser.assert_fits(width, "one check");
        let used = browser.eval("document.querySelector('main').getBoundingClientRect().bottom").as_f64().unwrap();
        assert!(used <= f64::from(height), "{used} px at a width of {width} px");
        let first = browser.eval("document.querySelector('main svg').getBoundingClientRect().bottom");
        assert!(first.as_f64().unwrap() < 400.0, "the chart is at the top: {first}");
    }
}

#[test]
#[ignore = "needs chromium: make test-system"]
fn all_checks_are_listed_if_all_are_equal() {
    let Some(mut browser) = browser() else { return };
    let equal = |folder: &std::path::Path| {
        let first = specimen::write(folder).swap_remove(0);
        vec![first.clone(), first]
    };
    browser.open(&page(equal, Some(ComparisonMethod::Tolerance)).file, 1280, "light");
    wait_for_table(&mut browser);
    assert_eq!(names(&mut browser).len(), 12, "all primary checks");
}

#[test]
#[ignore = "needs chromium: make test-system"]
fn printing_shows_every_row_and_opens_details() {
    let Some(mut browser) = browser() else { return };
    let page = page(|folder| LARGE_PAGE_BUILDS.write(folder).unwrap(), None);
    browser.open(&page.file, 1280, "light");
    wait_for_table(&mut browser);
    choose(&mut browser, "status", "");
    let rows = "document.querySelectorAll('tr[data-check]').length";
    assert_eq!(browser.eval(rows), 200, "a page of rows");
    browser.eval("dispatchEvent(new Event('beforeprint'))");
    assert_eq!(browser.eval(rows), 2000, "all primary checks");
    assert_eq!(browser.eval("document.querySelectorAll('details:is(.cell, .part):not([open])').length"), 0);
    browser.eval("dispatchEvent(new Event('afterprint'))");
    assert_eq!(browser.eval(rows), 200);
}

#[test]
#[ignore = "needs chromium: make test-system"]
fn eight_thousand_checks_in_ten_builds_are_paged() {
    let Some(mut browser) = browser() else { return };
    let page = page(|folder| LARGE_PAGE_BUILDS.write(folder).unwrap(), None);
    assert!(std::fs::metadata(&page.file).unwrap().len() <= 3_000_000);
    browser.open(&page.file, 1280, "light");
    wait_for_table(&mut browser);
    choose(&mut browser, "status", "");
    choose(&mut browser, "primary", "");
    assert_eq!(browser.eval("document.querySelector('.filters output').textContent"), "8000 of 8000 checks");
    let first = names(&mut browser);
    browser.eval("document.querySelector('.pages button:last-child').click()");
    let second = names(&mut browser);
    assert_eq!((first.len(), second.len()), (200, 200));
    assert!(!first.contains(&second[0]));
    assert!(
        browser.eval("document.querySelector('.pages').textContent").as_str().unwrap().contains("201 to 400 of 8000")
    );
    choose(&mut browser, "text", "profile3 test4 randwrite-8kib slat.stddev");
    assert_eq!(names(&mut browser), ["Profile3/test4/0000:./randwrite-8KiB/latency/slat.stddev in % lower is better"]);
    browser.assert_quiet(&page.file);
}

#[test]
#[ignore = "needs chromium: make test-system"]
fn changes_are_listed_without_scripts() {
    let Some(mut browser) = browser() else { return };
    let page = page(specimen::write, Some(ComparisonMethod::Tolerance));
    browser.scripts(false);
    browser.open(&page.file, 400, "light");
    assert_eq!(browser.eval("document.querySelectorAll('#still tbody tr').length"), 5);
    assert_eq!(browser.eval("document.getElementById('live').hidden"), true);
    assert!(browser.eval("document.querySelector('noscript').textContent").as_str().unwrap().contains("With scripts"));
    browser.assert_fits(400, "without scripts");
    browser.assert_quiet(&page.file);
}

#[test]
#[ignore = "needs chromium: make test-system"]
fn page_follows_the_dark_scheme() {
    let Some((mut browser, page)) = open_page(1280) else { return };
    let backgrounds = "['body', '.live .id', 'td.regressed'].map(name => getComputedStyle(document.querySelector(name)).backgroundColor).join()";
    let light = browser.eval(backgrounds);
    browser.open(&page.file, 1280, "dark");
    wait_for_table(&mut browser);
    let dark = browser.eval(backgrounds);
    for (light, dark) in light.as_str().unwrap().split("),").zip(dark.as_str().unwrap().split("),")) {
        assert_ne!(light, dark);
    }
}
