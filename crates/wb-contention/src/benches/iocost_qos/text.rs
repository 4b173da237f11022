//! `iocost-qos`.

use std::fmt::Write;

use wb_results::contention::{
    Distribution, LatencyKind, LatencyTable, PERCENTILES, Percentile, QosAnswer, QosFigures, QosStageAnswer, at_profile,
};

use crate::benches::{protection, storage};
use crate::figures::{percent, underlined};
use crate::format::{Detail, latency};
use crate::spec::FormatOptions;

pub(crate) fn text(answer: &QosAnswer, detail: Detail, options: &FormatOptions) -> String {
    let mut text = String::new();
    if detail == Detail::Full {
        for (index, stage) in answer.stages.iter().enumerate() {
            if let Some(figures) = &stage.found {
                text += &stage_text(answer, index, stage, figures, options);
            }
        }
        text += &format!("{}\n", underlined("Summary", '='));
    }
    text += &settings(answer);
    text += &format!("\n{}", overview(answer));
    for (title, kind) in [("RLAT", LatencyKind::Read), ("WLAT", LatencyKind::Write)] {
        text += &format!("\n{}", latencies(answer, title, kind));
    }
    text
}

fn setting_text(answer: &QosAnswer, stage: &QosStageAnswer) -> String {
    match &stage.change {
        None => {
            format!("iocost=off mem_profile={}", answer.mem_profile.map_or("off".to_owned(), |one| one.to_string()))
        }
        Some(change) => change.describe(answer.base.qos),
    }
}

fn settings(answer: &QosAnswer) -> String {
    let line =
        |(index, stage): (usize, &QosStageAnswer)| format!("[{index:02}] QoS: {}\n", setting_text(answer, stage));
    answer.stages.iter().enumerate().map(line).collect()
}

fn stage_text(
    answer: &QosAnswer,
    index: usize,
    stage: &QosStageAnswer,
    figures: &QosFigures,
    options: &FormatOptions,
) -> String {
    let detail = if options.sub_full { Detail::Full } else { Detail::Summary };
    let mut text = format!("{}QoS: {}\n\n", underlined(&format!("RUN {index:02}"), '='), setting_text(answer, stage));
    let part = |name: &str, body: String| format!("{}{body}\n", underlined(&format!("RUN {index:02} - {name}"), '-'));
    text += &part("Storage", storage::text::body(&figures.storage, detail, options));
    let protection = figures.protection.as_ref().map(|protection| protection::text::tune_text(protection, detail));
    text += &part("Protection", protection.unwrap_or_else(|| "FAIL\n".to_owned()));
    let mut result = latency::text(&figures.latency, Detail::Full);
    if let Some(vrate) = &figures.vrate {
        result += &format!("\n{}\n{}", vrate_line(vrate), result_lines(answer, figures, vrate));
    }
    text + &part("Result", result)
}

fn vrate_line(vrate: &Distribution) -> String {
    let percentiles = PERCENTILES.iter().filter_map(|one| Some(format!("p{one}={:.2}", vrate.get(*one)?)));
    let words: Vec<String> = percentiles.collect();
    format!("vrate: {} mean={:.2} stdev={:.2}\n", words.join(" "), vrate.mean, vrate.stdev)
}

fn result_lines(answer: &QosAnswer, figures: &QosFigures, vrate: &Distribution) -> String {
    let base = answer.stages.first().and_then(|stage| stage.found.as_ref()).map(|base| base.storage.mof);
    let relative = |factor: f64| base.map(|base| format!("({:.3}x)", factor / base)).unwrap_or_default();
    let (mof, profile) = (figures.storage.mof, at_profile(answer.mem_profile));
    let relation = if figures.storage.is_lower_bound { ">=" } else { "=" };
    let mut text = format!(
        "QoS result: MOF{relation}{mof:.3}{profile}{} vrate={:.2}:{:.2} missing={}%\n",
        relative(mof),
        vrate.mean,
        vrate.stdev,
        percent(figures.missing)
    );
    // Writing to a string does not fail.
    let amof = figures.amof.map(|amof| format!("{amof:.3}{profile}{}", relative(amof)));
    let _ = match figures.hog() {
        Some(hog) => writeln!(
            text,
            "            aMOF={} isol-{}={}% lat_imp={}%:{} work_csv={}",
            amof.unwrap_or_else(|| "FAIL".to_owned()),
            answer.isol_pct,
            hog.isolation.get(answer.isol_pct).map_or("-".to_owned(), percent),
            percent(hog.latency_impact.mean),
            percent(hog.latency_impact.stdev),
            hog.work_conservation.map_or("-".to_owned(), |conserved| format!("{}%", percent(conserved)))
        ),
        None => writeln!(text, "            aMOF=FAIL isol=FAIL lat_imp=FAIL work_csv=FAIL"),
    };
    text
}

fn overview(answer: &QosAnswer) -> String {
    let mut text = format!("         MOF     aMOF  isol-{}%       lat-imp%  work-csv%  missing%\n", answer.isol_pct);
    for (index, stage) in answer.stages.iter().enumerate() {
        let _ = match &stage.found {
            None => writeln!(text, "[{index:02}]  SKIP"),
            Some(figures) => writeln!(text, "[{index:02}] {}", overview_line(figures, answer.isol_pct)),
        };
    }
    text
}

fn overview_line(figures: &QosFigures, isol_pct: Percentile) -> String {
    let hundredfold = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{:.1}", value * 100.0));
    let hog = figures.hog();
    let amof = figures.amof.map_or("FAIL".to_owned(), |amof| format!("{amof:.3}"));
    let impact = |part: fn(&Distribution) -> f64| hundredfold(hog.map(|hog| part(&hog.latency_impact)));
    let mut remarks = String::new();
    if figures.storage.is_lower_bound {
        remarks.push_str("  MOF is a lower bound");
    }
    if !figures.is_valid() {
        let outside = percent(figures.vrate_outside);
        remarks += &format!("  invalid: the vrate was outside its bounds for {outside}% of the time");
    }
    format!(
        "{:>7.3}  {amof:>7}     {:>5}  {:>6}:{:>6}      {:>5}     {:>5}{remarks}",
        figures.storage.mof,
        hundredfold(hog.and_then(|hog| hog.isolation.get(isol_pct))),
        impact(|impact| impact.mean),
        impact(|impact| impact.stdev),
        hundredfold(hog.and_then(|hog| hog.work_conservation)),
        hundredfold(Some(figures.missing))
    )
}

/// Mean, standard deviation and maximum of latencies, a line for each setting.
fn latencies(answer: &QosAnswer, title: &str, kind: LatencyKind) -> String {
    let columns = [Percentile::P50, Percentile::P90, Percentile::P99, Percentile::MAX];
    let mut text = format!("{title:<4}");
    for column in columns {
        let _ = write!(text, "  {:>17}", column.label());
    }
    text.push('\n');
    for (index, stage) in answer.stages.iter().enumerate() {
        let _ = write!(text, "[{index:02}]");
        let table = stage.found.as_ref().map(|figures| figures.latency.get(kind));
        let _ = match table {
            None => write!(text, "  SKIP"),
            Some(None) => write!(text, "  none"),
            Some(Some(table)) => {
                columns.iter().try_for_each(|column| write!(text, "  {}", latency_cell(table, *column)))
            }
        };
        text.push('\n');
    }
    text
}

/// `MEAN:STDEV/MAX` in 17 columns.
fn latency_cell(table: &LatencyTable, row: Percentile) -> String {
    use crate::figures::duration;
    let Some(row) = table.rows.get(&row) else { return format!("{:>17}", "-") };
    let max = row.over_time.get(Percentile::MAX).unwrap_or(row.over_time.mean);
    format!("{:>5}:{:>5}/{:>5}", duration(row.over_time.mean), duration(row.over_time.stdev), duration(max))
}
