//! The page of a study with one of everything.

use crate::specimen;
use scraper::{ElementRef, Html, Selector};
use wb_report::chart::{CurveChart, svg};
use wb_report::page::html;

struct Page {
    text: String,
    parsed: Html,
}

fn page() -> Page {
    let study = specimen::study();
    let text = html(&study, &specimen::extras(&study)).unwrap();
    Page { parsed: Html::parse_document(&text), text }
}

impl Page {
    fn all(&self, selector: &str) -> Vec<ElementRef<'_>> {
        self.parsed.select(&Selector::parse(selector).unwrap()).collect()
    }

    fn count(&self, selector: &str) -> usize {
        self.all(selector).len()
    }
}

fn words(element: ElementRef<'_>) -> String {
    element.text().collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_cell_has_a_line_in_the_overview_and_a_place_in_full() {
    let page = page();
    let cells = specimen::study().cells.len();
    assert_eq!(page.count("table.overview tr.cell"), cells);
    assert_eq!(page.count("details.cell"), cells);
    for link in page.all("table.overview a") {
        let target = link.attr("href").unwrap();
        assert_eq!(page.count(target), 1, "{target}");
    }
    let line = words(page.all("table.overview tr.cell")[1]);
    assert!(line.starts_with("grid=M, isa=avx2, threads=1 3.34 Gflops ±2.2 %"), "{line}");
    assert!(line.ends_with("1.6 % 9 ● measured ▲ 2 disturbed"), "{line}");
}

#[test]
fn nothing_on_the_page_comes_from_elsewhere() {
    let page = page();
    assert_eq!(page.count("link:not([href='data:,']), img, iframe, object, embed, script[src], base, source"), 0);
    for element in page.all("[href], [src], [action], [data], [poster]") {
        for name in ["href", "src", "action", "data", "poster"] {
            let target = element.attr(name).unwrap_or("#");
            assert!(target.starts_with('#') || target == "data:,", "{name}={target}");
        }
    }
    for word in ["@import", "url(", "http:", "https:", "fetch(", "XMLHttpRequest"] {
        assert!(!page.text.contains(word), "{word}");
    }
}

#[test]
fn no_text_becomes_markup() {
    let page = page();
    assert_eq!(page.count("script"), 1);
    assert!(!page.text.contains("<script>alert"));
    assert!(words(page.all("table.overview")[0]).contains("operation=<script>alert(1)</script>"));
    assert!(page.all("dd").into_iter().any(|text| words(text) == "WB-12 <after the BIOS update>"));
}

#[test]
fn charts_have_a_title_and_a_description_that_are_theirs_alone() {
    let page = page();
    assert!(page.count("figure svg") > 20);
    let mut seen = std::collections::BTreeSet::new();
    for id in page.all("[id]").into_iter().map(|element| element.attr("id").unwrap()) {
        assert!(seen.insert(id), "two elements are called {id}");
    }
    for chart in page.all("figure svg[role=img]") {
        for id in chart.attr("aria-labelledby").unwrap().split(' ') {
            assert!(!words(page.all(&format!("#{id}"))[0]).is_empty());
        }
    }
}

#[test]
fn tables_say_what_their_rows_and_columns_are() {
    let page = page();
    assert_eq!(page.count("th:not([scope])"), 0);
    assert_eq!(page.count("table:not(.overview)"), page.count("table > caption"));
    assert_eq!(page.count("h1"), 1);
}

#[test]
fn a_group_whose_medians_differ_tenfold_is_drawn_on_a_logarithmic_scale() {
    let page = page();
    let sections = page.all("section.group");
    let section = |name: &str| {
        let title = Selector::parse("h2").unwrap();
        sections.iter().find(|section| words(section.select(&title).next().unwrap()) == name).unwrap()
    };
    assert!(section("ramspeed").html().contains("GB/s, logarithmic"));
    assert!(!section("linpack").html().contains("logarithmic"));
}

#[test]
fn each_fate_of_a_sample_has_a_shape_of_its_own() {
    let page = page();
    for fate in ["circle.counted", "path.disturbed", "circle.warm-up", "path.invalid", "line.without-value"] {
        assert!(page.count(&format!("figure .wide svg {fate}")) > 0, "{fate}");
    }
    let told =
        |title: &ElementRef<'_>| words(*title).starts_with("sample 5 at 0:40; crashed (redis-benchmark: exit status 1");
    assert!(page.all("svg g > title").iter().any(told));
}

#[test]
fn a_study_without_cells_is_a_page_too() {
    let mut study = specimen::study();
    (study.cells, study.environment_changes, study.conclusions) = (vec![], vec![], vec![]);
    let text = html(&study, &Default::default()).unwrap();
    assert!(text.contains("Nothing that is watched changed"));
}

#[test]
fn a_chart_stands_alone_as_a_file() {
    let study = specimen::study();
    let curve = study.cells.iter().flat_map(|cell| &cell.curves).next().unwrap();
    let file = svg(&CurveChart(curve), 640.0);
    assert!(file.starts_with("<svg ") && file.contains("xmlns=\"http://www.w3.org/2000/svg\""));
    assert!(!file.contains("var(--"), "a colour is left to the page");
    assert!(!file.contains("NaN") && !file.contains("inf"));
}
