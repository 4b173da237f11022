//! Tests of a comparison's box plots.

use crate::comparison::{read, specimen};
use wb_compare::Builds;
use wb_report::compare::{Plot, plots};

fn builds() -> Builds {
    let folder = tempfile::tempdir().unwrap();
    read(&specimen::write(folder.path()))
}

fn named<'a>(plots: &'a [Plot], name: &str) -> &'a Plot {
    let names: Vec<&str> = plots.iter().map(|plot| plot.name.as_str()).collect();
    plots.iter().find(|plot| plot.name == name).unwrap_or_else(|| panic!("{name} is not among {names:?}"))
}

#[test]
fn each_metric_of_a_test_has_a_plot_with_a_box_for_each_case_and_build() {
    let plots = plots(&builds(), |_| false);
    assert_eq!(plots.len(), 4);
    let iops = named(&plots, "Localhost-fio-0000-throughput-iops_sec").svg();
    assert_eq!(iops.matches("class=\"box\"").count(), 14, "five cases, one of them not in the last build");
    assert_eq!(iops.matches("class=\"middle\"").count(), 14, "each against the first build");
    assert!(iops.contains("&lt;/script&gt;&lt;img src=x") && !iops.contains("<img"), "{iops}");
    assert!(!iops.contains("logarithmic") && !iops.contains("NaN"));
    named(&plots, "Tuned-od_d__test-0000-latency-lat");
}

#[test]
fn tenfold_differences_have_a_logarithmic_scale_and_baselines_are_lines() {
    let builds = builds();
    let plots = plots(&builds, |id| id.starts_with("Tuned/") && id.ends_with("/throughput/iops_sec.mean"));
    assert_eq!(plots.len(), 3, "a baseline is not a box");
    let iops = named(&plots, "Localhost-fio-0000-throughput-iops_sec").svg();
    assert_eq!(iops.matches("class=\"baseline\"").count(), 1);
    assert!(iops.contains("Tuned/od&lt;d&gt;&quot;test run-1"), "{iops}");
    assert!(iops.contains("logarithmic"), "from 50 to 1000");
    assert!(!named(&plots, "Localhost-fio-0000-latency-lat").svg().contains("class=\"baseline\""), "of another class");
}

#[test]
fn png_contains_the_text() {
    let plots = plots(&builds(), |_| false);
    let plot = named(&plots, "Localhost-fio-0000-throughput-iops_sec");
    let png = plot.png().unwrap();
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    let width = u32::from_be_bytes(png[16..20].try_into().unwrap());
    assert_eq!(width, 1720);
    let ink = |svg: &str| {
        let pixels = resvg::tiny_skia::Pixmap::decode_png(&wb_report::chart::png(svg).unwrap()).unwrap();
        pixels.pixels().iter().filter(|pixel| pixel.red() < 80).count()
    };
    let text = r##"<svg xmlns="http://www.w3.org/2000/svg" width="200" height="20"><rect width="200" height="20" fill="#fff"/>
        <text x="0" y="14" font-family="Arial, sans-serif">no server needs a font</text></svg>"##;
    assert!(ink(text) > 500, "letters are drawn independently of installed fonts");
}

#[test]
fn charts_that_are_too_large_are_refused() {
    let tall = r#"<svg xmlns="http://www.w3.org/2000/svg" width="900" height="900000"/>"#;
    let error = wb_report::chart::png(tall).unwrap_err().to_string();
    assert!(error.starts_with("the chart of 900 × 900000 pixels is too large"), "{error}");
}
