//! `iocost-tune`.

use std::fmt::Write;

use wb_results::contention::{
    FittedSeries, LatencyKind, Series, SolutionAnswer, SolvedQos, TimeScale, TuneAnswer, at_profile,
};

use crate::figures::{duration, percent, size, underlined};
use crate::format::Detail;

pub(crate) fn text(answer: &TuneAnswer, detail: Detail) -> String {
    let mut text = String::new();
    if detail == Detail::Full {
        text += &format!("{}\n", underlined("Series over the vrate", '='));
        for (series, fitted) in &answer.series {
            text += &series_line(&answer.series_label(*series), fitted, *series);
        }
        text.push('\n');
    }
    text += &format!("{}\n", underlined("Solutions", '='));
    for solution in &answer.solutions {
        text += &format!("{}\n", solution_text(solution, answer));
    }
    if !answer.remarks.is_empty() {
        text += &format!("{}\n", underlined("Remarks", '='));
        answer.remarks.iter().for_each(|remark| text += &format!("* {remark}\n"));
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// A value of a series: latencies with their unit, ratios in percent.
fn value(series: Series, value: f64) -> String {
    match series {
        Series::Mof | Series::Amof | Series::AmofDelta => format!("{value:.3}"),
        Series::Latency(..) => duration(value),
        _ => format!("{}%", percent(value)),
    }
}

/// The range, the extremes, the knees and the error of a line.
fn series_line(label: &str, fitted: &FittedSeries, series: Series) -> String {
    let Some(line) = &fitted.line else { return format!("{label:<16} no values\n") };
    let (first, last) = line.range();
    let (low, high) = line.extremes();
    let mut text = format!("{label:<16} vrate {first:.1}-{last:.1}: ");
    // Writing to a string does not fail.
    let _ = if line.is_flat() {
        write!(text, "mean={}", value(series, low))
    } else {
        write!(text, "min={} max={}", value(series, low), value(series, high))
    };
    let inner = line.points().get(1..line.points().len().saturating_sub(1)).unwrap_or_default();
    if !inner.is_empty() {
        let knees: Vec<String> = inner.iter().map(|point| format!("{:.1}", point.x)).collect();
        let _ = write!(text, " knees={}", knees.join(","));
    }
    let _ = write!(text, " err={} points={}", value(series, fitted.error), fitted.points.len());
    if !fitted.rejected.is_empty() {
        let _ = write!(text, " rejected={}", fitted.rejected.len());
    }
    text + "\n"
}

fn solution_text(solution: &SolutionAnswer, answer: &TuneAnswer) -> String {
    let head = format!("[{}] {}\n", solution.solution.name, solution.solution.target);
    match &solution.solved {
        None => format!("{head}  no solution\n"),
        Some(solved) => head + &solved_text(solved, answer),
    }
}

fn solved_text(solved: &SolvedQos, answer: &TuneAnswer) -> String {
    let figure = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
    let mut text = format!(
        "  info: scale={}% MOF={}{} aMOF={} aMOF-delta={} isol-{}={}\n",
        percent(solved.scale),
        figure(solved.mof),
        at_profile(answer.mem_profile),
        figure(solved.amof),
        figure(solved.amof_delta),
        answer.isol_pct,
        solved.isolation.map_or("-".to_owned(), |isolation| format!("{}%", percent(isolation)))
    );
    for (name, kind) in [("rlat", LatencyKind::Read), ("wlat", LatencyKind::Write)] {
        let _ = write!(text, "  {name}:");
        for (percentile, time) in Series::SOLUTION_LATENCIES {
            let latency = solved.latencies.get(&Series::Latency(kind, percentile, time));
            let latency = latency.map_or("-".to_owned(), |latency| duration(*latency));
            let _ = write!(text, " {percentile}-{time}={latency:>5}");
        }
        text.push('\n');
    }
    text + &format!("  model: {}\n  qos: {}\n", solved.model, solved.qos)
}

pub(crate) fn high_level(answer: &TuneAnswer, time_scale: Option<TimeScale>) -> String {
    let points = answer.series.get(&Series::Mof).map_or(0, |mof| mof.points.len() + mof.rejected.len());
    let range = |value: fn(&SolvedQos) -> Option<f64>| {
        let values = answer.solutions.iter().filter_map(|solution| value(solution.solved.as_ref()?));
        let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        if low > high { "-".to_owned() } else { format!("[{low:.3},{high:.3}]") }
    };
    let model = answer.base.model;
    let scales = answer.solutions.iter().map(|solution| {
        let scale = solution.solved.as_ref().map_or("none".to_owned(), |solved| format!("{}%", percent(solved.scale)));
        format!("{}={scale}", solution.solution.name)
    });
    let scales: Vec<String> = scales.collect();
    let trial = time_scale.map(|scale| format!(" trial: durations times {}; the figures mean nothing", scale.factor()));
    let trial = trial.unwrap_or_default();
    format!(
        "[iocost-tune result]{trial}\n\n{points} points, MOF={}, aMOF={}\n\
         base model: rbps={} rseqiops={} rrandiops={} wbps={} wseqiops={} wrandiops={}\nsolutions: {}\n",
        range(|solved| solved.mof),
        range(|solved| solved.amof),
        size(model.rbps as f64),
        model.rseqiops,
        model.rrandiops,
        size(model.wbps as f64),
        model.wseqiops,
        model.wrandiops,
        scales.join(" ")
    )
}
