//! Tests of an experiment's variants on the terminal and on the page.

mod specimen;

use wb_model::{Class, Direction, MetricKey, Unit};
use wb_report::compare::experiment_text;
use wb_report::page::{RunExtras, html};
use wb_report::text::{Style, summary};
use wb_results::experiment::{ComparedMetric, Experiment};

use crate::chromium::{PageFile, browser};
use crate::parsed_page::{Element, Page, words};
use specimen::{experiment, study};

fn page() -> String {
    html(&study(), &RunExtras { experiment: Some(experiment()), ..RunExtras::default() }).unwrap()
}

#[test]
fn primary_metrics_that_are_not_judged_are_named() {
    let mut experiment = experiment();
    let Experiment::Variants(variants) = &mut experiment else { unreachable!("the specimen has variants") };
    variants.criterion.other_metrics = vec![MetricKey::new(Class::Latency, "p99")];
    let text = experiment_text(&experiment, Style { width: 130, colour: false, is_terminal: true });
    assert!(text.contains("only throughput/mflops is judged, not latency/p99"), "{text}");
}

#[test]
fn each_metric_of_a_case_has_a_table() {
    let mut experiment = experiment();
    let Experiment::Variants(variants) = &mut experiment else { unreachable!("the specimen has variants") };
    let mut latency = variants.cases[0].clone();
    latency.metric = Some(ComparedMetric {
        metric: MetricKey::new(Class::Latency, "p99"),
        unit: Unit::new("ns"),
        direction: Direction::Lower,
    });
    variants.cases.push(latency);
    let text = experiment_text(&experiment, Style { width: 130, colour: false, is_terminal: true });
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains("Gflops") && !line.contains("base")).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"

    file=/dev/sda,grid=M
    huge is param:huge-pages=always; quiet is knob:scaling-governor=performance
    throughput/mflops, higher is better  samples       median  ratio       interval       p  verdict     0.89      1      1.12
    latency/p99, lower is better  samples   median  ratio       interval       p  verdict     0.89      1      1.12
    huge                                9  4.73 µs  1.108  1.090 – 1.125  0.0479  faster                │      ━━●━
    quiet                               9  4.24 µs  0.994  0.977 – 1.009  1.0000  equivalent          ━●┿━
    decided after 9 blocks

      throughput/mflops, latency/p99
        differences within +5 / -4.76 % do not matter; p corrected for 2 comparisons (Benjamini–Hochberg), false discovery rate at
        most 5 %
    ");
    let page = html(&study(), &RunExtras { experiment: Some(experiment), ..RunExtras::default() }).unwrap();
    let captions = Page::new(page).texts("table.variants caption");
    assert!(captions[0].starts_with("throughput/mflops, higher is better: ratio of each variant"), "{captions:?}");
    assert!(captions[1].starts_with("latency/p99, lower is better: ratio of each variant"), "{captions:?}");
}

#[test]
fn wide_terminal_shows_ratios_on_one_scale() {
    insta::assert_snapshot!(experiment_text(&experiment(), Style { width: 130, colour: false, is_terminal: true }), @r"

    file=/dev/sda,grid=M
    huge is param:huge-pages=always; quiet is knob:scaling-governor=performance
    variant  samples       median  ratio       interval       p  verdict     0.89      1      1.12
    base           9  4.27 Gflops      –              –       –  reference             ●
    huge           9  4.73 Gflops  1.108  1.090 – 1.125  0.0479  faster                │      ━━●━
    quiet          9  4.24 Gflops  0.994  0.977 – 1.009  1.0000  equivalent          ━●┿━
    decided after 9 blocks

      throughput/mflops
        higher is better; differences within +5 / -4.76 % do not matter; p corrected for 2 comparisons (Benjamini–Hochberg), false
        discovery rate at most 5 %
    ");
}

#[test]
fn narrow_terminal_shows_only_numbers() {
    insta::assert_snapshot!(experiment_text(&experiment(), Style { width: 80, colour: false, is_terminal: true }), @r"

    file=/dev/sda,grid=M
    huge is param:huge-pages=always; quiet is knob:scaling-governor=performance
    variant  samples       median  ratio       interval       p  verdict
    base           9  4.27 Gflops      –              –       –  reference
    huge           9  4.73 Gflops  1.108  1.090 – 1.125  0.0479  faster
    quiet          9  4.24 Gflops  0.994  0.977 – 1.009  1.0000  equivalent
    decided after 9 blocks

      throughput/mflops
        higher is better; differences within +5 / -4.76 % do not matter; p corrected
        for 2 comparisons (Benjamini–Hochberg), false discovery rate at most 5 %
    ");
}

#[test]
fn variants_share_a_group_and_a_scale() {
    let text = summary(&study(), Style { width: 80, colour: false, is_terminal: true });
    let table: String = text.lines().take(5).map(|line| format!("{line}\n")).collect();
    insta::assert_snapshot!(table, @r"
                  median                  spread  n  outcome
    himeno · grid=M · mflops, higher is better
      base   4.20 Gflops  [-0.4, +0.6 %]   0.2 %  9  measured
      huge   4.65 Gflops  [-0.4, +0.6 %]   0.2 %  9  measured
      quiet  4.17 Gflops  [-0.4, +0.6 %]   0.2 %  9  measured
    ");
}

#[test]
fn page_draws_each_variant_beside_its_numbers() {
    let page = Page::new(page());
    let rows = page.texts("table.variants tr.variant");
    assert!(rows[0].starts_with("base 9 4.") && rows[0].ends_with(" Gflops – – – ○ reference"), "{rows:?}");
    assert!(rows[1].starts_with("huge 9 4.7") && rows[1].contains(" 1.1"), "{rows:?}");
    assert!(rows[1].ends_with("▲ faster") && rows[2].ends_with("= equivalent"), "{rows:?}");
    assert_eq!(page.count("table.variants tr.variant svg .band"), 3, "each plot shows the range of negligible ratios");
    assert_eq!(page.count("table.variants tr.variant svg .interval"), 2);
    assert_eq!(page.count("table.variants tr.axis svg"), 1);
    let follows = |title: &&Element<'_>| title.prev_siblings().any(|node| node.attribute("id") == Some("experiment"));
    assert_eq!(words(*page.all("h3").iter().find(follows).unwrap()), "file=/dev/sda,grid=M");
    assert_eq!(page.count("table.overview tr.group"), 1, "one group, one scale");
}

#[test]
#[ignore = "needs chromium: make test-system"]
fn table_of_variants_fits_every_width_without_scrolling() {
    let Some(mut browser) = browser() else { return };
    let page = PageFile::write(&page());
    for width in [360, 390, 768, 1280] {
        browser.open(&page.file, width, "light");
        browser.assert_fits(width, "closed");
        let overflowing = format!(
            "[...document.querySelectorAll('table.variants tr.variant *')].filter(element => \
             element.getBoundingClientRect().right > {width}).length"
        );
        assert_eq!(browser.eval(&overflowing), 0, "at {width}");
        let scrolled = "document.querySelector('table.variants').closest('.scroll')";
        assert_eq!(browser.eval(&format!("{scrolled} === null")), true);
        let bars = "new Set([...document.querySelectorAll('table.variants .bar svg')].map(bar => { \
                    const box = bar.getBoundingClientRect(); return `${box.left} ${box.width}`; })).size";
        assert_eq!(browser.eval(bars), 1, "the bars are not on one scale at {width}");
    }
}
