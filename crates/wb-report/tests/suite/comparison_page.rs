//! The page of a comparison, as it is without scripts, and the data for the script.

use std::io::Read;

use crate::comparison::specimen::{self, FOREIGN, HOSTILE};
use crate::comparison::{How, compared, read};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::read::DeflateDecoder;
use scraper::{ElementRef, Html, Selector};
use serde_json::Value;
use wb_compare::comparison::ComparisonMethod;
use wb_compare::tolerance::score::Weights;
use wb_report::compare::{PageOptions, html};

struct Page {
    text: String,
    parsed: Html,
}

const PLAIN: PageOptions<'_> = PageOptions { charts: true, environments: true, notes: &[], fail_on_gain: false };

/// The page of the made builds by tolerances.
fn page(options: &PageOptions<'_>) -> Page {
    let folder = tempfile::tempdir().unwrap();
    let builds = read(&specimen::write(folder.path()));
    let how = How { method: Some(ComparisonMethod::Tolerance), ..How::default() };
    let text = compared(&builds, &how, |outcome, history| html(outcome, history, options)).unwrap();
    Page::of(text)
}

impl Page {
    /// Cells that stand beside each other are told apart by a space.
    fn of(text: String) -> Self {
        let spaced =
            ["<td", "<small", "<dd"].iter().fold(text.clone(), |text, tag| text.replace(tag, &format!(" {tag}")));
        Self { parsed: Html::parse_document(&spaced), text }
    }

    fn all(&self, selector: &str) -> Vec<ElementRef<'_>> {
        self.parsed.select(&Selector::parse(selector).unwrap()).collect()
    }

    fn count(&self, selector: &str) -> usize {
        self.all(selector).len()
    }

    /// What the elements say.
    fn told(&self, selector: &str) -> Vec<String> {
        self.all(selector).into_iter().map(words).collect()
    }

    /// What the script is given.
    fn data(&self) -> Value {
        let packed = BASE64_STANDARD.decode(words(self.all("#data")[0])).unwrap();
        let mut text = String::new();
        DeflateDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

fn words(element: ElementRef<'_>) -> String {
    element.text().collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_primary_check_that_got_worse_or_better_in_any_build_has_a_row() {
    let page = page(&PLAIN);
    let rows = page.told("#still tbody tr");
    assert_eq!(rows.len(), 5, "{rows:#?}");
    let read = "Localhost/fio/0000:./read-4KiB/throughput/iops_sec.mean";
    assert_eq!(rows[0], format!("{read} 1000 950 to 1050 = +0.30 1003 ✕ −20.00 800"));
    let hostile = rows.iter().find(|row| row.contains("alert(1)")).unwrap();
    assert!(hostile.ends_with("300 285 to 315 ✕ −16.67 250 = +0.33 301"), "{hostile}");
    assert!(
        rows.iter().any(|row| row.starts_with("Localhost/fio/0000:./write-4KiB") && row.ends_with("∅ –")),
        "{rows:#?}"
    );
}

#[test]
fn gains_are_listed_whether_or_not_they_fail() {
    for fail_on_gain in [false, true] {
        let rows = page(&PageOptions { fail_on_gain, ..PLAIN }).told("#still tbody tr");
        let gain = rows.iter().find(|row| row.contains("read-64KiB")).unwrap();
        assert!(gain.ends_with("500 475 to 525 ✔ +12.00 Δ 560 ✔ +24.00 620"), "{gain}");
    }
}

#[test]
fn the_systems_of_the_first_build_and_the_last_stand_side_by_side() {
    let page = page(&PLAIN);
    assert_eq!(page.told("table.systems thead th"), ["property", "old", "new"]);
    assert_eq!(page.told("table.systems tr.differing"), ["kernel 6.1 6.2 </code><script>alert(2)</script>"]);
}

#[test]
fn no_name_becomes_markup_or_leads_out_of_the_page() {
    let page = page(&PLAIN);
    assert_eq!(page.count("img, iframe, object, embed, base, link:not([href='data:,']), [onerror], [onclick]"), 0);
    assert_eq!(page.count("script"), 2, "the script and its data");
    assert!(page.told("th.id").iter().any(|name| name.contains(HOSTILE)));
    assert!(page.data()["ids"].as_array().unwrap().iter().any(|id| id.as_str().unwrap().contains(FOREIGN)));
    for word in ["@import", "url(", "fetch(", "import(", "XMLHttpRequest", "<script>alert", "hunter2"] {
        assert!(!page.text.contains(word), "{word}");
    }
    for element in page.all("[href], [src], [action]") {
        let target = ["href", "src", "action"].iter().find_map(|name| element.attr(name)).unwrap();
        let link = element.value().name() == "a" && target.starts_with("https://");
        assert!(target.starts_with('#') || target == "data:," || link, "{target}");
        assert!(!link || element.attr("rel") == Some("noopener noreferrer"), "{target}");
    }
}

#[test]
fn builds_lead_where_their_metadata_says() {
    let page = page(&PLAIN);
    assert_eq!(page.count("table.builds a[href='https://ci.example/1']"), 1);
    assert_eq!(page.count("table.builds a[href*='javascript']"), 0);
    assert_eq!(page.count("header a[href='https://machines.example/anvil']"), 1);
    assert_eq!(page.count("header a[href='https://machines.example/sledge']"), 1);
    let facts = page.told("header dl.facts div");
    assert!(facts.contains(&"distro Debian 12".to_owned()), "what is the same stands once: {facts:?}");
    let rows = page.told("table.builds tbody tr");
    assert_eq!(rows[0], "old the reference 0 <i>nightly 0</i> A A");
    assert!(rows[1].starts_with("between ") && rows[1].contains(" 1 0 "), "{rows:?}");
    assert!(rows[1].ends_with(" 1 <i>nightly 1</i> A B"), "{rows:?}");
}

#[test]
fn environments_are_letters_and_tell_in_what_they_differ() {
    let page = page(&PLAIN);
    assert_eq!(page.told("table.builds td.letter"), ["A", "A", "A", "B", "B", "C"], "of the world and of the tests");
    assert_eq!(
        page.told("section[aria-labelledby=environments] details.cell summary")[0],
        "B against A 1 difference: kernel 1 · new"
    );
    let rows = page.told("table.changes tbody tr");
    assert_eq!(rows[..2], ["kernel 1 difference", "6.1 6.2 </code><script>alert(2)</script>"]);
    // Everything of each letter, to copy.
    let records = page.told("details.record");
    assert_eq!(records.len(), 2 + 3, "{records:#?}");
    assert!(records[0].starts_with("A as recorded JSON · old, between"), "{}", records[0]);
    assert!(records[1].contains(r#""kernel": "6.2 </code><script>alert(2)</script>\nsmt on"#), "{}", records[1]);
    assert!(page.told("code").contains(&"run-perf --default-password *** --hosts anvil -- fio".to_owned()));
}

#[test]
fn the_environment_of_the_tests_tells_which_parameters_and_cases_differ() {
    let page = page(&PLAIN);
    let summaries = page.told("section[aria-labelledby=environments] details.cell summary");
    let expected = [
        "B against A 1 difference: Localhost/fio/0000 1 · between",
        "C against A 1 difference: Localhost/fio/0000 1 · new",
        "C against B 2 differences: Localhost/fio/0000 2 · new",
    ];
    assert_eq!(summaries[1..], expected);
    let tables = page.told("section[aria-labelledby=environments] details.cell table tbody");
    assert_eq!(tables[1], "Localhost/fio/0000 1 difference bs (1 cell) 64k 32k");
    assert_eq!(tables[2], "Localhost/fio/0000 1 difference cases on one side alone write-4KiB nothing");
    let record = &page.told("details.record")[2];
    assert!(record.contains(r#""read-64KiB": { "bs": "64k" }"#) && record.contains("old"), "{record}");
}

#[test]
fn failures_that_are_not_primary_stand_apart() {
    let folder = tempfile::tempdir().unwrap();
    let folders = specimen::write(folder.path());
    let latency = |folder: &std::path::Path, case: &str, from: &str, to: &str| {
        let file = folder.join("Localhost/fio/0000/result.json");
        let mut all: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let of_case = all.as_array_mut().unwrap().iter_mut().find(|it| it["iteration_name"] == case).unwrap();
        let metrics = &mut of_case["iteration_data"]["latency"];
        *metrics = serde_json::from_str(&metrics.to_string().replace(from, to)).unwrap();
        std::fs::write(&file, all.to_string()).unwrap();
    };
    latency(&folders[1], "read-64KiB", r#""mean":20.0"#, r#""mean":24.0"#);
    let builds = read(&folders);
    let how = How { method: Some(ComparisonMethod::Tolerance), ..How::default() };
    let text = compared(&builds, &how, |outcome, history| html(outcome, history, &PLAIN)).unwrap();
    let page = Page::of(text);
    let heads = page.told("table.builds thead th");
    let column = heads.iter().position(|head| head == "not primary, failed").unwrap();
    let cells = page.told(&format!("table.builds tbody tr:not(:first-child) > :nth-child({})", column + 1));
    assert_eq!(cells, ["1", "3"], "one is slower between; in the last one is slower and one is missing");
    let rows = page.told("section[aria-labelledby=checks] details tbody tr");
    assert_eq!(rows.len(), 4, "{rows:#?}");
    let lat = "Localhost/fio/0000:./read-4KiB/latency/lat.mean";
    assert_eq!(rows[0], format!("{lat} 10 9.5 to 10.5 = +1.00 10.1 ✕ +25.00 12.5"));
    assert!(rows[3].contains("read-64KiB") && rows[3].ends_with("20 19 to 21 ✕ +20.00 Δ 24 = +0.00 20"), "{rows:#?}");
    assert!(
        page.told("#still tbody tr").iter().all(|row| !row.contains("/latency/")),
        "primary ones stand above alone"
    );
}

#[test]
fn the_model_and_the_range_that_it_tolerates_stand_with_each_check() {
    let folder = tempfile::tempdir().unwrap();
    let builds = read(&specimen::write(folder.path()));
    let id = "Localhost/fio/0000:./read-4KiB/throughput/iops_sec.mean";
    let file = folder.path().join("<b>model.json");
    std::fs::write(&file, format!(r#"{{"{id}": [0.125, -124]}}"#)).unwrap();
    let models = vec![wb_compare::ToleranceModel::read(&file).unwrap()];
    let how = How { method: Some(ComparisonMethod::Tolerance), models, ..How::default() };
    let text = compared(&builds, &how, |outcome, history| html(outcome, history, &PLAIN)).unwrap();
    let page = Page::of(text);
    let rows = page.told("#still tbody tr");
    assert_eq!(rows[0], format!("{id} 1000 952 to 1032 <b>model.json = +1.38 1003 ✕ −24.00 800"));
    assert!(rows[1].ends_with("500 475 to 525 ✔ +12.00 Δ 560 ✔ +24.00 620"), "no model knows it: {}", rows[1]);
    let fact = format!("model {}, knows 1 of 24 checks (1 of 12 primary)", file.display());
    assert!(page.told("header dl.facts div").contains(&fact), "{fact}");
    let data = page.data();
    let at = data["ids"].as_array().unwrap().iter().position(|it| it == id).unwrap();
    assert_eq!((&data["models"][0], &data["known_by"][at]), (&"<b>model.json".into(), &serde_json::json!([0])));
    assert_eq!((&data["least"][at], &data["most"][at]), (&Value::from(952), &Value::from(1032)));
    let parts = data["cells"][1]["parts"][0][1].as_array().unwrap();
    let names: Vec<&str> = parts.iter().map(|part| part[0].as_str().unwrap()).collect();
    assert_eq!(names, ["<b>model.json", "raw"]);
}

#[test]
fn each_test_of_each_profile_has_a_chart_over_the_builds() {
    let page = page(&PLAIN);
    let titles = page.told("section[aria-labelledby=trends] svg[role=img] > title");
    let expected = ["gains of Localhost/fio over the builds", "gains of Tuned/od<d>\"test over the builds"];
    assert_eq!(titles[..], expected);
    let described = page.told("section[aria-labelledby=trends] svg[role=img] > desc");
    assert_eq!(
        described[0],
        "between: median +0.00 %, -16.67 to +12.00 %, 1 gains, 3 equals, 1 losses; \
         new: median +0.17 %, -20.00 to +24.00 %, 1 gains, 2 equals, 1 losses, 1 missing, invalid or defined otherwise"
    );
    let folder = tempfile::tempdir().unwrap();
    let folders = specimen::write(folder.path());
    let builds = read(&[folders[0].clone(), folders[2].clone()]);
    let text = compared(&builds, &How::default(), |outcome, history| html(outcome, history, &PLAIN)).unwrap();
    let two = Page::of(text);
    assert_eq!(two.count("section[aria-labelledby=trends]"), 0, "two builds are no series");
    let titles = two.told("section[aria-labelledby=spread] svg[role=img] > title");
    assert!(titles.contains(&"differences by profile and test, new".to_owned()), "{titles:?}");
}

#[test]
fn totals_groups_and_errors_are_told() {
    let page = page(&PLAIN);
    assert_eq!(page.told(".tally"), ["✕ 1 loss, 1 gain, 2 missing, 1 error; 10 primary checks compared"]);
    let heads = page.told("table.totals thead th");
    let last = page.told("table.totals tbody tr:last-child > *");
    let count = |name: &str| last[heads.iter().position(|head| head == name).unwrap()].clone();
    assert_eq!(["gains", "losses", "missing", "errors"].map(count), ["1", "1", "2", "1"]);
    assert_eq!(page.told("table.errors tbody tr"), ["new Tuned/uperf/* <b>no server</b>"]);
    assert!(
        page.told("table.checks th.id").iter().any(|id| id == "Localhost/fio/0000:./read-*/throughput/iops_sec.mean")
    );
}

#[test]
fn the_data_have_every_check_in_every_build() {
    let data = page(&PLAIN).data();
    let ids: Vec<&str> = data["ids"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    assert_eq!(ids.len(), 24);
    let at = |part: &str| ids.iter().position(|id| id.contains(part) && id.ends_with("iops_sec.mean")).unwrap();
    let kind = |part: &str, build: usize| {
        let decided = data["cells"][build]["decided"].as_str().unwrap().as_bytes()[at(part)];
        data["kinds"][usize::from(decided - b'0')]["word"].as_str().unwrap().to_owned()
    };
    assert_eq!((kind("read-4KiB", 0), kind("read-4KiB", 1)), ("equal".to_owned(), "loss".to_owned()));
    assert_eq!((kind("write-4KiB", 0), kind("write-4KiB", 1)), ("equal".to_owned(), "missing".to_owned()));
    let values: Vec<&Value> = (0..3).map(|build| &data["values"][build][at("write-4KiB")]).collect();
    assert_eq!(values, [&Value::from(700), &Value::from(700), &Value::Null]);
    assert_eq!(data["cells"][1]["score"][at("read-4KiB")], -20);
    let differing = &data["cells"][0]["differences"][0];
    assert_eq!(differing[0].as_u64().map(|at| ids[at as usize].contains("read-64KiB")), Some(true));
    assert_eq!(data["differences"][0][0]["name"], "bs");
    assert_eq!(data["tolerance"], serde_json::json!([5]), "what is alike in all checks stands once");
}

#[test]
fn intervals_stand_beside_differences_where_statistics_decide() {
    let folder = tempfile::tempdir().unwrap();
    let builds = read(&specimen::write(folder.path()));
    let text = compared(&builds, &How::default(), |outcome, history| html(outcome, history, &PLAIN)).unwrap();
    let page = Page::of(text);
    let row = &page.told("#still tbody tr")[0];
    assert!(row.contains("write-4KiB") && row.contains("= +0.00 ±0.4 700"), "{row}");
    let data = page.data();
    let read =
        data["ids"].as_array().unwrap().iter().position(|id| id.as_str().unwrap().contains("read-4KiB")).unwrap();
    let last = &data["cells"][1];
    let [low, ratio, high] = ["low", "ratio", "high"].map(|name| last[name][read].as_f64().unwrap());
    assert!(low < ratio && ratio < high && (ratio + 20.0).abs() < 0.01, "{low} {ratio} {high}");
    assert_eq!((&last["by"].as_str().unwrap()[read..=read], &last["before"][0]), ("s", &Value::from(10)));
}

#[test]
fn what_a_score_is_made_of_is_told_where_it_has_parts() {
    let folder = tempfile::tempdir().unwrap();
    let builds = read(&specimen::write(folder.path()));
    let weights = Weights { builds_average: 1.0, ..Weights::default() };
    let how = How { method: Some(ComparisonMethod::Tolerance), weights, ..How::default() };
    let text = compared(&builds, &how, |outcome, history| html(outcome, history, &PLAIN)).unwrap();
    let data = Page::of(text).data();
    assert_eq!(data["cells"][0]["parts"], serde_json::json!([]), "history counts for the last build alone");
    let parts = &data["cells"][1]["parts"][0][1];
    let names: Vec<&str> = parts.as_array().unwrap().iter().map(|part| part[0].as_str().unwrap()).collect();
    assert_eq!(names, ["raw", "average over the builds, twice"]);
}

#[test]
fn environments_can_be_left_out() {
    let details = "section[aria-labelledby=environments] details.cell";
    assert_eq!(page(&PageOptions { environments: false, ..PLAIN }).count(details), 0);
    assert!(page(&PLAIN).count(details) > 0);
}

#[test]
fn charts_can_be_left_out() {
    let without = page(&PageOptions { charts: false, ..PLAIN });
    assert_eq!(without.count("figure"), 0);
    let with = page(&PLAIN);
    assert_eq!(with.count("figure"), 5 + 2, "counts, differences by build, profile, test and metric, and each test");
    for chart in with.all("figure svg[role=img]") {
        for id in chart.attr("aria-labelledby").unwrap().split(' ') {
            assert!(!with.told(&format!("#{id}"))[0].is_empty());
        }
    }
}

#[test]
fn tables_say_what_their_rows_and_columns_are() {
    let page = page(&PLAIN);
    assert_eq!(page.count("th:not([scope])"), 0);
    assert_eq!(page.count("table"), page.count("table > caption"));
    assert_eq!(page.count("h1"), 1);
    let mut seen = std::collections::BTreeSet::new();
    for element in page.all("[id]") {
        assert!(seen.insert(element.attr("id").unwrap()), "two elements are called {:?}", element.attr("id"));
    }
}

#[test]
fn builds_that_are_alike_make_a_page_without_failures_and_notes_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let folders = specimen::write(folder.path());
    let builds = read(&[folders[0].clone(), folders[0].clone()]);
    let notes = ["old/x/result.json: is <malformed> and is left out".to_owned()];
    let options = PageOptions { notes: &notes, ..PLAIN };
    let text = compared(&builds, &How::default(), |outcome, history| html(outcome, history, &options)).unwrap();
    let page = Page::of(text);
    assert!(page.told("#still p")[0].starts_with("No primary check got worse or better in any build."));
    assert!(page.told(".tally")[0].starts_with("✔ no difference that counts; 12 primary checks compared"));
    assert_eq!(page.told("section ul li"), notes);
}
