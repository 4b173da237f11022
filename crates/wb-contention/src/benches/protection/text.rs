//! `protection`.

use std::fmt::Write;

use wb_results::contention::{
    Distribution, HogAnswer, HogTuneAnswer, MemHogTune, PERCENTILES, ProtectionAnswer, ScenarioAnswer,
};

use crate::figures::{duration, percent, size, underlined};
use crate::format::{Detail, latency};

pub(crate) fn text(answer: &ProtectionAnswer, detail: Detail) -> String {
    let mut text = String::new();
    let count = answer.scenarios.len();
    for (index, scenario) in answer.scenarios.iter().enumerate() {
        // In a summary, the combined figures stand for the scenarios.
        let is_combined = answer.combined.is_some() && matches!(scenario, ScenarioAnswer::MemHog { .. });
        if detail == Detail::Summary && is_combined {
            continue;
        }
        let (name, body) = match scenario {
            ScenarioAnswer::MemHog { scenario_properties: hog, answer } => {
                let params = format!("Params: loops={} load={} speed={}\n\n", hog.loops, hog.load, hog.speed);
                ("mem-hog", params + &hog_text(answer, detail))
            }
            ScenarioAnswer::MemHogTune(answer) => ("mem-hog-tune", tune_text(answer, detail)),
        };
        text += &format!("{}\n{body}\n", underlined(&format!("Scenario {}/{count} - {name}", index + 1), '='));
    }
    if let Some(combined) = &answer.combined {
        text += &format!("{}\n{}\n", underlined("All scenarios mem-hog", '='), hog_text(combined, detail));
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

pub(crate) fn tune_text(answer: &HogTuneAnswer, detail: Detail) -> String {
    let MemHogTune { load, speed, size_min, size_max, intvs, isol_pct, isol_thr } = &answer.properties;
    let [min, max] = [size_min, size_max].map(|bytes| size(bytes.0 as f64));
    let mut text = match detail {
        Detail::Full => format!("Params: load={load} speed={speed} size=[{min}, {max}] intvs={intvs}\n\n"),
        Detail::Summary => String::new(),
    };
    let threshold = percent(*isol_thr);
    let result = match (&answer.hog, answer.size) {
        (Some(hog), Some(protected)) => {
            text.push_str(&hog_text(hog, detail));
            let protected = size(protected.0 as f64);
            format!("        footprint {protected}/{max} can be protected at isol-{isol_pct} >= {threshold}%\n")
        }
        (hog, _) => {
            text.extend(hog.as_ref().map(|hog| hog_text(hog, detail)));
            format!("Result: no footprint in [{min}, {max}] keeps isol-{isol_pct} above {threshold}%\n")
        }
    };
    let failures = answer.failures.iter().map(|failure| format!("        failed: {failure}\n"));
    text + &result + &failures.collect::<String>()
}

fn hog_text(answer: &HogAnswer, detail: Detail) -> String {
    let HogAnswer { isolation, latency_impact, failures, .. } = answer;
    let mut text = match detail {
        Detail::Full => info(answer),
        Detail::Summary => String::new(),
    };
    text += &latency::text(&answer.latency, detail);
    text.push_str("\nIsolation and request latency impact, over the seconds:\n\n");
    text += &distributions(&[("isol%", isolation), ("lat-imp%", latency_impact)]);
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "\nResult: isol={}:{}% lat_imp={}%:{} work_csv={} missing={}%",
        percent(isolation.mean),
        percent(isolation.stdev),
        percent(latency_impact.mean),
        percent(latency_impact.stdev),
        answer.work_conservation.map_or("-".to_owned(), |conserved| format!("{}%", percent(conserved))),
        percent(answer.missing)
    );
    for failure in failures {
        let _ = writeln!(text, "        failed: {failure}");
    }
    text
}

fn info(answer: &HogAnswer) -> String {
    let HogAnswer { base_rps, base_latency, base_latency_stdev, vrate, .. } = answer;
    let [latency, stdev] = [base_latency, base_latency_stdev].map(|latency| duration(*latency));
    let vrate = vrate.map(|(mean, stdev)| format!(" vrate={mean:.2}:{stdev:.2}")).unwrap_or_default();
    format!("Info: baseline_rps={base_rps:.2} baseline_lat={latency}:{stdev}{vrate}\n\n")
}

fn distributions(rows: &[(&str, &Distribution)]) -> String {
    let mut text = " ".repeat(8);
    for head in PERCENTILES.iter().map(|percentile| percentile.label()).chain(["mean", "stdev"].map(str::to_owned)) {
        let _ = write!(text, " {head:>5}");
    }
    for (name, distribution) in rows {
        let _ = write!(text, "\n{name:<8}");
        let percentiles = PERCENTILES.iter().map(|percentile| distribution.get(*percentile));
        for value in percentiles.chain([distribution.mean, distribution.stdev].map(Some)) {
            let _ = write!(text, " {:>5}", value.map_or("-".to_owned(), percent));
        }
    }
    text + "\n"
}
