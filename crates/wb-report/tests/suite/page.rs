//! Tests of the page of the specimen, a study with every element.

use crate::parsed_page::{Element, Page, elements, words};
use crate::specimen;
use wb_report::chart::{CurveChart, svg};
use wb_report::page::html;

fn page() -> Page {
    let study = specimen::study();
    Page::new(html(&study, &specimen::extras(&study)).unwrap())
}

#[test]
fn every_cell_has_an_overview_row_and_details() {
    let page = page();
    let cells = specimen::study().cells.len();
    assert_eq!(page.count("table.overview tr.cell"), cells);
    assert_eq!(page.count("details.cell"), cells);
    for link in page.all("table.overview a") {
        let target = link.attribute("href").unwrap();
        assert_eq!(page.count(target), 1, "{target}");
    }
    let line = words(page.all("table.overview tr.cell")[1]);
    assert!(line.starts_with("grid=M, isa=avx2, threads=1 3.34 Gflops [-4.4, +2.2 %]"), "{line}");
    assert!(line.ends_with("1.6 % 9 ● measured ▲ 2 disturbed"), "{line}");
    let rows = page.texts("table.overview tr.cell");
    assert_eq!(rows.iter().filter(|row| row.contains("✕ 1 invalid")).count(), 1, "{rows:#?}");
}

#[test]
fn page_has_no_external_resources() {
    let page = page();
    assert_eq!(page.count("img, iframe, object, embed, script[src], base, source"), 0);
    assert!(page.all("link").iter().all(|link| link.attribute("href") == Some("data:,")));
    for element in page.all("[href], [src], [action], [data], [poster]") {
        for name in ["href", "src", "action", "data", "poster"] {
            let target = element.attribute(name).unwrap_or("#");
            assert!(target.starts_with('#') || target == "data:,", "{name}={target}");
        }
    }
    for word in ["@import", "url(", "http:", "https:", "fetch(", "XMLHttpRequest"] {
        assert!(!page.text.contains(word), "{word}");
    }
}

#[test]
fn texts_do_not_become_markup() {
    let page = page();
    assert_eq!(page.count("script"), 1);
    assert!(!page.text.contains("<script>alert"));
    assert!(words(page.all("table.overview")[0]).contains("operation=<script>alert(1)</script>"));
    assert!(page.all("dd").into_iter().any(|text| words(text) == "WB-12 <after the BIOS update>"));
}

#[test]
fn charts_have_a_title_a_description_and_unique_ids() {
    let page = page();
    assert!(page.count("figure svg") > 20);
    let mut seen = std::collections::BTreeSet::new();
    for id in page.all("[id]").into_iter().map(|element| element.attribute("id").unwrap()) {
        assert!(seen.insert(id), "duplicate id {id}");
    }
    for chart in page.all("figure svg[role=img]") {
        for id in chart.attribute("aria-labelledby").unwrap().split(' ') {
            assert!(!words(page.all(&format!("#{id}"))[0]).is_empty());
        }
    }
}

#[test]
fn tables_have_scopes_and_captions() {
    let page = page();
    assert_eq!(page.count("th"), page.count("th[scope]"));
    assert_eq!(page.count("table") - page.count("table.overview"), page.count("table > caption"));
    assert_eq!(page.count("h1"), 1);
}

#[test]
fn group_with_tenfold_differences_has_a_logarithmic_scale() {
    let page = page();
    let sections = page.all("section.group");
    let section = |name: &str| {
        let section = sections.iter().find(|section| words(elements(**section, "h2")[0]) == name).unwrap();
        words(*section)
    };
    assert!(section("ramspeed").contains("GB/s, logarithmic"));
    assert!(!section("linpack").contains("logarithmic"));
}

#[test]
fn each_sample_status_has_its_own_shape() {
    let page = page();
    for shape in ["circle.counted", "path.disturbed", "circle.warm-up", "path.invalid", "line.without-value"] {
        assert!(page.count(&format!("figure .wide svg {shape}")) > 0, "{shape}");
    }
    let matches =
        |title: &Element<'_>| words(*title).starts_with("sample 5 at 0:40; crashed (redis-benchmark: exit status 1");
    assert!(page.all("svg g > title").iter().any(matches));
}

#[test]
fn study_without_cells_is_rendered() {
    let mut study = specimen::study();
    (study.cells, study.environment_changes, study.conclusions) = (vec![], vec![], vec![]);
    let text = html(&study, &Default::default()).unwrap();
    assert!(text.contains("No recorded property changed"));
}

#[test]
fn chart_file_is_self_contained() {
    let study = specimen::study();
    let curve = study.cells.iter().flat_map(|cell| &cell.curves).next().unwrap();
    let file = svg(&CurveChart(curve), 640.0);
    assert!(file.starts_with("<svg ") && file.contains("xmlns=\"http://www.w3.org/2000/svg\""));
    assert!(!file.contains("var(--"), "a colour depends on the page");
    assert!(!file.contains("NaN") && !file.contains("inf"));
}
