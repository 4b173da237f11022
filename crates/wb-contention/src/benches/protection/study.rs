//! `protection`: isolation, latency impact and work conservation.

use wb_results::contention::{HogAnswer, HogTuneAnswer, MemHog, MemHogTune, PERCENTILES, ScenarioAnswer};

use crate::distribution;
use crate::measurement::{MemHogMeasurement, MemHogTuneMeasurement};
use crate::report::{HashdStats, IocostStats, Reports};
use crate::stage::StageKey;
use crate::study::{StudyError, StudySource, figures};

/// In nanoseconds.
const SECOND: f64 = 1e9;

pub(crate) fn mem_hog(
    source: &StudySource<'_>,
    stage: &StageKey,
    scenario_properties: MemHog,
    measurement: &MemHogMeasurement,
) -> Result<ScenarioAnswer, StudyError> {
    Ok(ScenarioAnswer::MemHog { scenario_properties, answer: combined(source, &[(stage, measurement)])? })
}

pub(crate) fn mem_hog_tune(
    source: &StudySource<'_>,
    stage: &StageKey,
    properties: &MemHogTune,
    measurement: &MemHogTuneMeasurement,
) -> Result<HogTuneAnswer, StudyError> {
    let hog = measurement.shown().map(|probe| combined(source, &[(stage, &probe.run)])).transpose()?;
    let size = measurement.protected.as_ref().map(|protected| protected.size);
    Ok(HogTuneAnswer { properties: *properties, size, hog, failures: measurement.failures.clone() })
}

/// Several measurements together: each second relates to its own measurement's rate and latency without the hog.
pub(crate) fn combined(
    source: &StudySource<'_>,
    measurements: &[(&StageKey, &MemHogMeasurement)],
) -> Result<HogAnswer, StudyError> {
    let mut seconds = HogSeconds::default();
    for (stage, measurement) in measurements {
        seconds.add(source, stage, measurement)?;
    }
    let no_reports = || StudyError::NoReports { stage: measurements[0].0.clone(), what: "protection" };
    let base = distribution::summarize_values(&seconds.base_latencies, &[]).ok_or_else(no_reports)?;
    let reports = figures::joined(seconds.reports);
    let vrate = figures::vrate(&reports);
    Ok(HogAnswer {
        base_rps: seconds.base_rps / measurements.len() as f64,
        base_latency: base.mean,
        base_latency_stdev: base.stdev,
        isolation: distribution::summarize_values(&seconds.isolation, &PERCENTILES).ok_or_else(no_reports)?,
        latency_impact: distribution::summarize_values(&seconds.impact, &PERCENTILES).ok_or_else(no_reports)?,
        work_conservation: work_conservation(reports.seconds.iter().filter_map(|report| report.cost)),
        latency: figures::latencies(&reports),
        vrate: vrate.map(|vrate| (vrate.mean, vrate.stdev)),
        failures: seconds.failures,
        missing: figures::missing(&reports),
    })
}

#[derive(Default)]
struct HogSeconds {
    base_rps: f64,
    base_latencies: Vec<f64>,
    isolation: Vec<f64>,
    impact: Vec<f64>,
    failures: Vec<String>,
    reports: Vec<Reports>,
}

impl HogSeconds {
    fn add(
        &mut self,
        source: &StudySource<'_>,
        stage: &StageKey,
        measurement: &MemHogMeasurement,
    ) -> Result<(), StudyError> {
        let base = source.read(stage, measurement.base_period)?;
        let latencies: Vec<f64> =
            base.seconds.iter().filter_map(|report| Some(report.hashd?.latency * SECOND)).collect();
        let Some(base_latency) = distribution::summarize_values(&latencies, &[]) else {
            return Err(StudyError::NoReports { stage: stage.clone(), what: "hashd without the hog" });
        };
        self.base_rps += measurement.base_rps;
        self.base_latencies.extend(latencies);
        for run in &measurement.runs {
            let reports = source.read(stage, run.period)?;
            let base = HogBaseline { rps: measurement.base_rps, latency: base_latency.mean };
            for (isolation, impact) in base.compare(&reports) {
                self.isolation.push(isolation);
                self.impact.push(impact);
            }
            self.reports.push(reports);
            if let Some((reason, lost)) = &run.failure {
                self.failures.push(reason.clone());
                // What was not measured because hashd could not be kept alive was not isolated at all.
                self.isolation.extend((0..*lost).map(|_| 0.0));
                self.impact.extend((0..*lost).map(|_| 1.0));
            }
        }
        Ok(())
    }
}

struct HogBaseline {
    rps: f64,
    /// Mean, in nanoseconds.
    latency: f64,
}

impl HogBaseline {
    /// Isolation and latency impact between each two reports with hashd, once for each second between them: requests
    /// completed per second, relative to the rate without the hog, at most 1; latency relative to that without, less 1.
    fn compare(&self, reports: &Reports) -> Vec<(f64, f64)> {
        let hashd: Vec<(u64, HashdStats)> =
            reports.seconds.iter().filter_map(|report| Some((report.second, report.hashd?))).collect();
        let between = |pair: &[(u64, HashdStats)]| {
            let seconds = pair[1].0 - pair[0].0;
            let rate = pair[1].1.done.saturating_sub(pair[0].1.done) as f64 / seconds as f64;
            let impact = (pair[1].1.latency * SECOND / self.latency - 1.0).max(0.0);
            std::iter::repeat_n(((rate / self.rps).clamp(0.0, 1.0), impact), seconds as usize)
        };
        hashd.windows(2).flat_map(between).collect()
    }
}

/// U / (U + min(unused, lost)): what was left unused counts as far as somebody lost it. `None` without io.cost.
fn work_conservation(seconds: impl Iterator<Item = IocostStats>) -> Option<f64> {
    let add = |(usage, unused, lost): (f64, f64, f64), second: IocostStats| {
        (usage + second.usage, unused + second.unused, lost + second.lost)
    };
    let (usage, unused, lost) =
        seconds.map(Some).fold(None, |sum, second| Some(add(sum.unwrap_or_default(), second?)))?;
    let possible = usage + f64::min(unused, lost);
    Some(if possible > 0.0 { usage / possible } else { 1.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{IoStats, PerSecondReport};
    use wb_model::Bytes;

    fn report(second: u64, done: u64, latency: f64) -> PerSecondReport {
        let hashd = Some(HashdStats { done, latency, memory: Bytes(0) });
        PerSecondReport {
            second,
            hashd,
            read: IoStats::default(),
            write: IoStats::default(),
            cost: None,
            uncounted: 0,
            resources: Default::default(),
        }
    }

    #[test]
    fn isolation_and_impact_relate_to_hashd_without_the_hog_and_repeat_for_missing_seconds() {
        let seconds = vec![
            report(1, 100, 0.5),
            report(2, 200, 0.5),
            report(3, 250, 1.0),
            report(5, 290, 2.0),
            report(6, 900, 0.25),
        ];
        let reports = Reports { seconds, ..Reports::default() };
        let base = HogBaseline { rps: 100.0, latency: 0.5 * SECOND };
        let (isolation, impact): (Vec<f64>, Vec<f64>) = base.compare(&reports).into_iter().unzip();
        assert_eq!(isolation, [1.0, 0.5, 0.2, 0.2, 1.0]);
        assert_eq!(impact, [0.0, 1.0, 3.0, 3.0, 0.0]);
    }

    #[test]
    fn unused_device_time_counts_as_far_as_it_was_lost() {
        let second = |usage, unused, lost| IocostStats { vrate: 100.0, usage, unused, lost };
        assert_eq!(work_conservation([second(0.6, 0.4, 0.2), second(0.6, 0.4, 0.0)].into_iter()), Some(1.2 / 1.4));
        assert_eq!(work_conservation([second(1.0, 0.0, 5.0)].into_iter()), Some(1.0));
        assert_eq!(work_conservation(std::iter::empty()), None);
    }
}
