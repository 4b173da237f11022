//! Merges parsed result files into the builds.

use wb_results::comparison::Statistic;

use super::folder::ResultFile;
use super::parsed_result::ParsedResult;
use super::warning::WarningKind;
use super::{RunIndex, SourceError};
use crate::build::{Builds, InternedCell, InternedMetric, MetricReading, ParamSetId, TestError};
use crate::interner::Symbol;

/// Adds a file's metrics to its run; returns a warning about metrics that the run already had.
pub(super) fn merge(
    builds: &mut Builds,
    run_index: RunIndex,
    profile: &str,
    file: &ResultFile,
    parsed: &ParsedResult,
) -> Result<Option<WarningKind>, SourceError> {
    let names: Vec<Symbol> = parsed.names.iter().map(|text| builds.names.intern(text)).collect();
    let translate = |name: &Symbol| names[name.index()];
    let params: Vec<u32> = parsed
        .params
        .iter()
        .map(|set| {
            builds.params.insert_full(set.iter().map(|(name, value)| (translate(name), translate(value))).collect()).0
                as u32
        })
        .collect();
    let errors = parsed.errors.iter().map(|(case, message)| TestError {
        location: format!("{profile}/{}/{}:{}", file.test, file.serial, parsed.names.resolve(*case)),
        message: message.clone(),
    });
    let [profile, test, serial] = [profile, &file.test, &file.serial].map(|text| builds.names.intern(text));
    let run = &mut builds.list[run_index.build].runs[run_index.run];
    run.errors.extend(errors);
    run.sample_counts = [run.sample_counts, parsed.sample_counts].into_iter().flatten().reduce(std::ops::Add::add);
    let before = run.samples.len();
    run.samples.extend_from_slice(&parsed.samples);
    run.schedule.times.extend_from_slice(&parsed.times);
    if run.samples.len().max(builds.rows.len() + parsed.metrics.len()) > u32::MAX as usize {
        return Err(SourceError::TooMuch(file.path.clone()));
    }
    let (mut repeated, mut first) = (0, None);
    for metric in &parsed.metrics {
        let (case, name) = (translate(&metric.case), translate(&metric.metric));
        let key = InternedMetric {
            id_format: parsed.id_format,
            profile,
            test,
            serial,
            case,
            class: metric.class,
            metric: name,
        };
        let row = builds.rows.insert_full(key).0;
        if let Some(unit) = &metric.unit {
            builds.units.resize(builds.units.len().max(row + 1), None);
            builds.units[row] = Some(translate(unit));
        }
        let reading = MetricReading {
            mean: metric.mean,
            stddev_percent: metric.stddev_percent,
            primary: metric.primary,
            threshold: metric.threshold,
            params: ParamSetId(params[metric.params]),
            disturbed: metric.disturbed,
            failures: metric.failures,
            findings: metric.findings.as_ref().map(translate),
            first_sample: (before + metric.samples.start) as u32,
            samples: metric.samples.len() as u32,
        };
        if run.readings.len() <= row {
            run.readings.resize(row + 1, None);
        }
        if run.readings[row].replace(reading).is_some() {
            repeated += 1;
            first.get_or_insert(crate::build::MetricIndex(row as u32));
        }
    }
    for (case, programs) in &parsed.programs {
        let cell = InternedCell { profile, test, serial, case: translate(case) };
        run.programs.insert(cell, programs.iter().map(|(name, value)| (translate(name), translate(value))).collect());
    }
    for (class, metric, direction) in &parsed.directions {
        let metric = builds.names.resolve(translate(metric)).to_owned();
        builds.directions.set(Some(*class), wb_model::strip_worker(&metric), *direction);
    }
    Ok(first.map(|row| WarningKind::Repeated { metrics: repeated, first: builds.id(row, Statistic::Mean).to_string() }))
}
