//! Tests of a comparison's page without scripts, and of the data for its script.

use std::io::Read;

use crate::comparison::specimen::{self, FOREIGN, HOSTILE};
use crate::comparison::{CompareOptions, compare, read};
use crate::parsed_page::{Page, elements, words};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::read::DeflateDecoder;
use serde_json::Value;
use wb_compare::Builds;
use wb_compare::comparison::{FailOn, Strictness};
use wb_compare::run_perf::tolerance::score::Weights;
use wb_report::compare::{PageOptions, html};
use wb_results::comparison::ComparisonMethod;

/// Nothing but regressions fails.
const NO_MORE: FailOn = FailOn { gain: false, missing: false, strictness: Strictness::Regressions };

pub(crate) const PLAIN: PageOptions<'_> =
    PageOptions { charts: true, environments: true, notes: &[], criteria: &[], fail_on: NO_MORE };

/// Builds compared by tolerances.
fn by_tolerance() -> CompareOptions {
    CompareOptions { method: Some(ComparisonMethod::Tolerance), ..CompareOptions::default() }
}

/// The page of the specimen compared by tolerances.
fn page(options: &PageOptions<'_>) -> Page {
    page_of(&specimen(), &by_tolerance(), options)
}

/// The page of a comparison.
fn page_of(builds: &Builds, how: &CompareOptions, options: &PageOptions<'_>) -> Page {
    Page::new(compare(builds, how, |outcome, history| html(outcome, history, options)).unwrap())
}

fn specimen() -> Builds {
    let folder = tempfile::tempdir().unwrap();
    read(&specimen::write(folder.path()))
}

/// The decoded data for the script.
fn data(page: &Page) -> Value {
    let compressed = BASE64_STANDARD.decode(words(page.all("#data")[0])).unwrap();
    let mut text = String::new();
    DeflateDecoder::new(&compressed[..]).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn every_primary_check_that_changed_in_any_build_has_a_row() {
    let page = page(&PLAIN);
    let rows = page.texts("#still tbody tr");
    assert_eq!(rows.len(), 5, "{rows:#?}");
    let read = "Localhost/fio/0000:./read-4KiB/throughput/iops_sec.mean";
    assert_eq!(rows[0], format!("{read} higher is better 1000 950 to 1050 = +0.30 1003 ✕ −20.00 800"));
    let hostile = rows.iter().find(|row| row.contains("alert(1)")).unwrap();
    assert!(hostile.ends_with("300 285 to 315 ✕ −16.67 250 = +0.33 301"), "{hostile}");
    assert!(
        rows.iter().any(|row| row.starts_with("Localhost/fio/0000:./write-4KiB") && row.ends_with("∅ –")),
        "{rows:#?}"
    );
}

#[test]
fn standard_deviations_are_more_or_less_in_every_table() {
    let folder = tempfile::tempdir().unwrap();
    let builds = read(&specimen::write_deviating(folder.path()));
    for method in [None, Some(ComparisonMethod::Tolerance)] {
        let page = page_of(&builds, &CompareOptions { method, ..CompareOptions::default() }, &PLAIN);
        let rows = page.texts("#still tbody tr");
        let row = rows.iter().find(|row| row.contains("read-4KiB/throughput/iops_sec.stddev"));
        assert!(row.is_some_and(|row| row.ends_with(" 11.46 points more 11.76")), "{rows:#?}");
    }
}

#[test]
fn gains_are_listed_whether_or_not_they_fail() {
    for gain in [false, true] {
        let rows = page(&PageOptions { fail_on: FailOn { gain, ..PLAIN.fail_on }, ..PLAIN }).texts("#still tbody tr");
        let gain = rows.iter().find(|row| row.contains("read-64KiB")).unwrap();
        assert!(gain.ends_with("500 475 to 525 ✔ +12.00 Δ 560 ✔ +24.00 620"), "{gain}");
    }
}

#[test]
fn systems_of_first_and_last_build_are_shown_side_by_side() {
    let page = page(&PLAIN);
    assert_eq!(page.texts("table.systems thead th"), ["property", "old", "new"]);
    assert_eq!(page.texts("table.systems tr.differing"), ["kernel 6.1 6.2 </code><script>alert(2)</script>"]);
}

#[test]
fn names_do_not_become_markup_or_external_links() {
    let page = page(&PLAIN);
    assert_eq!(page.count("img, iframe, object, embed, base, [onerror], [onclick]"), 0);
    assert!(page.all("link").iter().all(|link| link.attribute("href") == Some("data:,")));
    assert_eq!(page.count("script"), 2, "the script and its data");
    assert!(page.texts("th.id").iter().any(|name| name.contains(HOSTILE)));
    assert!(data(&page)["ids"].as_array().unwrap().iter().any(|id| id.as_str().unwrap().contains(FOREIGN)));
    for word in ["@import", "url(", "fetch(", "import(", "XMLHttpRequest", "<script>alert", "hunter2"] {
        assert!(!page.text.contains(word), "{word}");
    }
    for element in page.all("[href], [src], [action]") {
        let target = ["href", "src", "action"].iter().find_map(|name| element.attribute(*name)).unwrap();
        let link = element.has_tag_name("a") && target.starts_with("https://");
        assert!(target.starts_with('#') || target == "data:," || link, "{target}");
        assert!(!link || element.attribute("rel") == Some("noopener noreferrer"), "{target}");
    }
}

#[test]
fn builds_link_to_the_urls_in_their_metadata() {
    let page = page(&PLAIN);
    assert_eq!(page.count("table.builds a[href='https://ci.example/1']"), 1);
    let targets: Vec<_> = page.all("table.builds a").iter().map(|link| link.attribute("href").unwrap()).collect();
    assert!(targets.iter().all(|target| !target.contains("javascript")), "{targets:?}");
    assert_eq!(page.count("section[aria-labelledby=builds] a[href='https://machines.example/anvil']"), 1);
    assert_eq!(page.count("section[aria-labelledby=builds] a[href='https://machines.example/sledge']"), 1);
    let facts = page.texts("section[aria-labelledby=builds] dl.facts div");
    assert!(facts.contains(&"distro Debian 12".to_owned()), "common properties are shown once: {facts:?}");
    let rows = page.texts("table.builds tbody tr");
    assert_eq!(rows[0], "old the reference 0 <i>nightly 0</i> A A");
    assert!(rows[1].starts_with("between ") && rows[1].contains(" 1 0 "), "{rows:?}");
    assert!(rows[1].ends_with(" 1 <i>nightly 1</i> A B"), "{rows:?}");
}

#[test]
fn checks_that_only_a_later_build_has_are_new_and_no_failures() {
    let folder = tempfile::tempdir().unwrap();
    let [old, _, new] = &specimen::write(folder.path())[..] else { panic!() };
    let page = page_of(&read(&[new.clone(), old.clone()]), &by_tolerance(), &PLAIN);
    let rows = page.texts("table.builds tbody tr");
    // The reference ended in an error, and one check is worse.
    assert!(rows[1].contains(" 2 2 new "), "mean and standard deviation: {rows:?}");
}

#[test]
fn environments_are_letters_with_their_differences() {
    let page = page(&PLAIN);
    assert_eq!(page.texts("table.builds td.letter"), ["A", "A", "A", "B", "B", "C"], "the world and the tests");
    assert_eq!(
        page.texts("section[aria-labelledby=environments] details.cell summary")[0],
        "B against A 1 difference: kernel 1 · new"
    );
    let rows = page.texts("table.changes tbody tr");
    assert_eq!(rows[..2], ["kernel 1 difference", "6.1 6.2 </code><script>alert(2)</script>"]);
    // The complete record of each letter can be copied.
    let records = page.texts("details.record");
    assert_eq!(records.len(), 2 + 3, "{records:#?}");
    assert!(records[0].starts_with("A as recorded JSON · old, between"), "{}", records[0]);
    assert!(records[1].contains(r#""kernel": "6.2 </code><script>alert(2)</script>\nsmt on"#), "{}", records[1]);
    assert!(page.texts("code").contains(&"run-perf --default-password *** --hosts anvil -- fio".to_owned()));
}

#[test]
fn environment_of_tests_shows_differing_parameters_and_cases() {
    let page = page(&PLAIN);
    let summaries = page.texts("section[aria-labelledby=environments] details.cell summary");
    let expected = [
        "B against A 1 difference: Localhost/fio/0000 1 · between",
        "C against A 1 difference: Localhost/fio/0000 1 · new",
        "C against B 2 differences: Localhost/fio/0000 2 · new",
    ];
    assert_eq!(summaries[1..], expected);
    let tables = page.texts("section[aria-labelledby=environments] details.cell table tbody");
    assert_eq!(tables[1], "Localhost/fio/0000 1 difference bs (1 cell) 64k 32k");
    assert_eq!(tables[2], "Localhost/fio/0000 1 difference cases on one side only write-4KiB nothing");
    let record = &page.texts("details.record")[2];
    assert!(record.contains(r#""read-64KiB": { "bs": "64k" }"#) && record.contains("old"), "{record}");
}

#[test]
fn failures_that_are_not_primary_are_listed_separately() {
    let folder = tempfile::tempdir().unwrap();
    let folders = specimen::write(folder.path());
    let latency = |folder: &std::path::Path, case: &str, from: &str, to: &str| {
        let file = folder.join("Localhost/fio/0000/result.json");
        let mut results: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let iterations = results.as_array_mut().unwrap();
        let iteration = iterations.iter_mut().find(|iteration| iteration["iteration_name"] == case).unwrap();
        let metrics = &mut iteration["iteration_data"]["latency"];
        *metrics = serde_json::from_str(&metrics.to_string().replace(from, to)).unwrap();
        std::fs::write(&file, results.to_string()).unwrap();
    };
    latency(&folders[1], "read-64KiB", r#""mean":20.0"#, r#""mean":24.0"#);
    let builds = read(&folders);
    let page = page_of(&builds, &by_tolerance(), &PLAIN);
    let heads = page.texts("table.builds thead th");
    let column = heads.iter().position(|head| head == "not primary, failed").unwrap();
    let rows = page.all("table.builds tbody tr");
    let cells: Vec<_> = rows[1..].iter().map(|row| words(elements(*row, "tr > *")[column])).collect();
    assert_eq!(
        cells,
        ["1", "3"],
        "one is slower in between; in the last build two are slower or incomparable and one is missing"
    );
    let rows = page.texts("#others tbody tr");
    assert_eq!(rows.len(), 4, "{rows:#?}");
    let lat = "Localhost/fio/0000:./read-4KiB/latency/lat.mean";
    assert_eq!(rows[0], format!("{lat} lower is better 10 9.5 to 10.5 = +1.00 10.1 ✕ +25.00 12.5"));
    assert!(rows[3].contains("read-64KiB") && rows[3].ends_with("20 19 to 21 ✕ +20.00 Δ 24 = +0.00 20"), "{rows:#?}");
    assert!(
        page.texts("#still tbody tr").iter().all(|row| !row.contains("/latency/")),
        "the list above has only primary checks"
    );
}

#[test]
fn each_check_has_its_model_and_tolerated_range() {
    let folder = tempfile::tempdir().unwrap();
    let id = "Localhost/fio/0000:./read-4KiB/throughput/iops_sec.mean";
    let file = folder.path().join("<b>model.json");
    std::fs::write(&file, format!(r#"{{"{id}": [0.125, -124]}}"#)).unwrap();
    let models = vec![wb_compare::ToleranceModel::read(&file).unwrap()];
    let page = page_of(&specimen(), &CompareOptions { models, ..by_tolerance() }, &PLAIN);
    let rows = page.texts("#still tbody tr");
    assert_eq!(rows[0], format!("{id} higher is better 1000 952 to 1032 <b>model.json = +1.38 1003 ✕ −24.00 800"));
    assert!(rows[1].ends_with("500 475 to 525 ✔ +12.00 Δ 560 ✔ +24.00 620"), "no model has it: {}", rows[1]);
    let fact = format!("model {}, covers 1 of 24 checks (1 of 12 primary)", file.display());
    assert!(page.texts("section[aria-labelledby=builds] dl.facts div").contains(&fact), "{fact}");
    let data = data(&page);
    let index = data["ids"].as_array().unwrap().iter().position(|listed| listed == id).unwrap();
    assert_eq!((&data["models"][0], &data["model_indices"][index]), (&"<b>model.json".into(), &serde_json::json!([0])));
    assert_eq!((&data["least"][index], &data["most"][index]), (&Value::from(952), &Value::from(1032)));
    let parts = data["cells"][1]["parts"][0][1].as_array().unwrap();
    let names: Vec<&str> = parts.iter().map(|part| part[0].as_str().unwrap()).collect();
    assert_eq!(names, ["<b>model.json", "raw"]);
}

#[test]
fn each_test_of_each_profile_has_a_trend_chart() {
    let page = page(&PLAIN);
    let titles = page.texts("section[aria-labelledby=trends] svg[role=img] > title");
    let expected =
        ["improvements of Localhost/fio over the builds", "improvements of Tuned/od<d>\"test over the builds"];
    assert_eq!(titles[..], expected);
    let descriptions = page.texts("section[aria-labelledby=trends] svg[role=img] > desc");
    assert_eq!(
        descriptions[0],
        "between: median +0.00 %, −16.67 to +12.00 %, 1 improved, 3 equivalent, 1 regressed; \
         new: median +0.17 %, −20.00 to +24.00 %, 1 improved, 2 equivalent, 1 regressed, 1 missing, invalid or incomparable"
    );
}

#[test]
fn two_builds_have_no_trends_and_the_spread_of_more_checks_than_the_first_chart_shows() {
    let folder = tempfile::tempdir().unwrap();
    let folders = specimen::write(folder.path());
    let few = page_of(&read(&[folders[0].clone(), folders[2].clone()]), &by_tolerance(), &PLAIN);
    assert_eq!(few.count("section[aria-labelledby=trends], section[aria-labelledby=spread]"), 0);
    assert_eq!(
        few.texts("section[aria-labelledby=differences] svg[role=img] .case").len(),
        2 * 5,
        "all that are compared"
    );
    let large = wb_test_data::LARGE_PAGE_BUILDS.write(folder.path()).unwrap();
    let many = page_of(&read(&large[..2]), &by_tolerance(), &PLAIN);
    assert_eq!(many.count("section[aria-labelledby=trends]"), 0);
    let titles = many.texts("section[aria-labelledby=spread] svg[role=img] > title");
    assert!(titles.iter().any(|title| title.starts_with("differences by profile and test, ")), "{titles:?}");
}

#[test]
fn the_page_begins_with_a_sentence_and_the_differences() {
    let page = page(&PLAIN);
    let parts: Vec<&str> =
        page.all("main > section").iter().map(|part| part.attribute("aria-labelledby").unwrap()).collect();
    assert_eq!(parts[..2], ["differences", "checks"]);
    let chart = &page.texts("section[aria-labelledby=differences] svg[role=img] > desc")[0];
    let expected = "Localhost/fio read-4KiB (iops_sec), higher is better: regressed, ✕ −20.00 %; \
                    Localhost/fio read-64KiB (iops_sec), higher is better: improved, ";
    assert!(chart.starts_with(expected), "{chart}");
}

#[test]
fn totals_groups_and_errors_are_shown() {
    let page = page(&PLAIN);
    let tally = "Builds 1 regressed, 1 improved, 2 missing, 1 error; 5 checks and 5 standard deviations compared";
    assert_eq!(page.texts("section[aria-labelledby=builds] summary"), [tally]);
    let headline = &page.texts(".headline")[0];
    assert!(headline.starts_with("✕ new is 20.0 % slower in fio read-4KiB (iops_sec), and "), "{headline}");
    let heads = page.texts("table.totals thead th");
    let rows = page.all("table.totals tbody tr");
    let last: Vec<_> = elements(*rows.last().unwrap(), "tr > *").into_iter().map(words).collect();
    let count = |name: &str| last[heads.iter().position(|head| head == name).unwrap()].clone();
    assert_eq!(["improved", "regressed", "missing", "errors"].map(count), ["1", "1", "2", "1"]);
    assert_eq!(page.texts("table.errors tbody tr"), ["new Tuned/uperf/* <b>no server</b>"]);
    assert!(
        page.texts("table.checks th.id").iter().any(|id| id == "Localhost/fio/0000:./read-*/throughput/iops_sec.mean")
    );
}

#[test]
fn data_has_every_check_in_every_build() {
    let data = data(&page(&PLAIN));
    let ids: Vec<&str> = data["ids"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    assert_eq!(ids.len(), 24);
    let index = |part: &str| ids.iter().position(|id| id.contains(part) && id.ends_with("iops_sec.mean")).unwrap();
    let kind = |part: &str, build: usize| {
        let decided = data["cells"][build]["verdicts"].as_str().unwrap().as_bytes()[index(part)];
        data["kinds"][usize::from(decided - b'0')]["word"].as_str().unwrap().to_owned()
    };
    assert_eq!((kind("read-4KiB", 0), kind("read-4KiB", 1)), ("equivalent".to_owned(), "regressed".to_owned()));
    assert_eq!((kind("write-4KiB", 0), kind("write-4KiB", 1)), ("equivalent".to_owned(), "missing".to_owned()));
    let values: Vec<&Value> = (0..3).map(|build| &data["values"][build][index("write-4KiB")]).collect();
    assert_eq!(values, [&Value::from(700), &Value::from(700), &Value::Null]);
    assert_eq!(data["cells"][1]["score"][index("read-4KiB")], -20);
    let differing = &data["cells"][0]["differences"][0];
    assert_eq!(differing[0].as_u64().map(|check| ids[check as usize].contains("read-64KiB")), Some(true));
    assert_eq!(data["differences"][0][0]["name"], "bs");
    assert_eq!(data["tolerance"], serde_json::json!([5]), "a value common to all checks is stored once");
}

#[test]
fn differences_have_intervals_if_statistics_decide() {
    let statistics = CompareOptions { method: Some(ComparisonMethod::Statistical), ..CompareOptions::default() };
    let page = page_of(&specimen(), &statistics, &PLAIN);
    let row = &page.texts("#still tbody tr")[0];
    assert!(row.contains("read-4KiB") && row.contains("= shift +0.30 ±0.4 1003 ✕ shift −20.00 ±14 800"), "{row}");
    let data = data(&page);
    let read =
        data["ids"].as_array().unwrap().iter().position(|id| id.as_str().unwrap().contains("read-4KiB")).unwrap();
    let last = &data["cells"][1];
    let [low, ratio, high] = ["low", "ratio", "high"].map(|name| last[name][read].as_f64().unwrap());
    assert!(low < ratio && ratio < high && (ratio + 20.0).abs() < 0.01, "{low} {ratio} {high}");
    assert_eq!(
        (&last["methods"].as_str().unwrap()[read..=read], &last["samples"][0]),
        ("s", &serde_json::json!([10, 10]))
    );
}

// Of inconclusive groups the page said that they had regressed or improved.
#[test]
fn groups_are_listed_as_what_their_verdicts_are() {
    let statistics = CompareOptions { method: Some(ComparisonMethod::Statistical), ..CompareOptions::default() };
    let page = page_of(&specimen(), &statistics, &PLAIN);
    let headings = page.texts("section[aria-labelledby=groups] summary");
    assert_eq!(headings[0], "Groups 5 different or inconclusive in a build, not decisive");
    let tables = page.texts("section[aria-labelledby=groups] caption");
    assert_eq!(tables[0], "groups that are different or inconclusive in a build");
    let verdicts = page.texts("section[aria-labelledby=groups] abbr");
    assert!(verdicts.iter().all(|symbol| symbol == "?" || symbol == "="), "{verdicts:?}");
}

#[test]
fn scores_with_several_parts_list_them() {
    let weights = Weights { builds_average: 1.0, ..Weights::default() };
    let data = data(&page_of(&specimen(), &CompareOptions { weights, ..by_tolerance() }, &PLAIN));
    assert_eq!(data["cells"][0]["parts"], serde_json::json!([]), "history is used only for the last build");
    let parts = &data["cells"][1]["parts"][0][1];
    let names: Vec<&str> = parts.as_array().unwrap().iter().map(|part| part[0].as_str().unwrap()).collect();
    assert_eq!(names, ["raw", "average over the builds, twice"]);
}

#[test]
fn environments_can_be_omitted() {
    let details = "section[aria-labelledby=environments] details.cell";
    assert_eq!(page(&PageOptions { environments: false, ..PLAIN }).count(details), 0);
    assert!(page(&PLAIN).count(details) > 0);
}

#[test]
fn charts_can_be_omitted() {
    let without_charts = page(&PageOptions { charts: false, ..PLAIN });
    assert_eq!(without_charts.count("figure"), 0);
    let with_charts = page(&PLAIN);
    assert_eq!(
        with_charts.count("figure"),
        1 + 1 + 2 + 2,
        "each check, counts, differences by build and by profile, which has one test each, and each test"
    );
    for chart in with_charts.all("figure svg[role=img]") {
        for id in chart.attribute("aria-labelledby").unwrap().split(' ') {
            assert!(!with_charts.texts(&format!("#{id}"))[0].is_empty());
        }
    }
}

#[test]
fn tables_are_accessible_and_ids_unique() {
    let page = page(&PLAIN);
    assert_eq!(page.count("th"), page.count("th[scope]"));
    assert_eq!(page.count("table"), page.count("table > caption"));
    assert_eq!(page.count("h1"), 1);
    let mut seen = std::collections::BTreeSet::new();
    for element in page.all("[id]") {
        assert!(seen.insert(element.attribute("id").unwrap()), "duplicate id {:?}", element.attribute("id"));
    }
}

#[test]
fn page_of_equal_builds_has_no_failures_and_shows_notes() {
    let folder = tempfile::tempdir().unwrap();
    let folders = specimen::write(folder.path());
    let builds = read(&[folders[0].clone(), folders[0].clone()]);
    let notes = ["old/x/result.json: is <malformed> and was skipped".to_owned()];
    let options = PageOptions { notes: &notes, ..PLAIN };
    let page = page_of(&builds, &CompareOptions::default(), &options);
    assert!(page.texts("#still p")[0].starts_with("Every primary check is equivalent in every build, or at most"));
    assert!(page.texts(".headline")[0].starts_with("✔ "), "{:?}", page.texts(".headline"));
    let tally = "Builds no relevant difference; 6 checks and 6 standard deviations compared";
    assert_eq!(page.texts("section[aria-labelledby=builds] summary"), [tally]);
    assert_eq!(page.texts("section ul li"), notes);
}
