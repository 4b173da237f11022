//! `protection`: its checkpoint has the hogs, or the footprints, that are done.

use std::collections::BTreeMap;

use wb_contention::HashdParameters;
use wb_contention::measurement::{
    HogRun, Measurement, MemHogMeasurement, MemHogTuneMeasurement, Period, ProtectedFootprint,
};
use wb_contention::report::ReportFolder;
use wb_contention::runner::{StageContext, StageError, StageFailure};
use wb_contention::spec::{HogSpeed, MemHog, MemHogTune};
use wb_contention::stage::Stage;
use wb_contention::system::TimeScale;
use wb_model::Nanos;
use wb_tests::contention::protection::{self, ProtectionConfig, ProtectionRecord, TuneConfig, TuneRecord};
use wb_tests::contention::protection_study::{contended_from, lost_by_second};
use wb_tests::contention::{Balloon, ContentionError, MemoryShare, PreparedWorker};

use super::checkpoint::{self, CheckpointWriter};
use super::observer::{DeviceObserver, add_hashd, hashd_seconds};
use super::sizing::workload;
use super::{ContentionSession, scaled};

/// How long hashd is observed without a hog, at least.
const MIN_BASELINE: Nanos = Nanos(5_000_000_000);

/// hashd beside hogs.
pub(super) async fn measure(
    session: &ContentionSession,
    stage: &Stage,
    hog: &MemHog,
    context: &mut StageContext<'_>,
) -> Result<Measurement, StageError> {
    let mut record: ProtectionRecord = checkpoint::read(context)?.unwrap_or_default();
    let load = HogLoad { load: hog.load, speed: hog.speed, loops: hog.loops };
    let config = config(session, stage, load)?;
    let reports = context.reports().clone();
    beside_hogs(session, stage, context, async |prepared, checkpoints| {
        protection::measure(prepared, &config, &mut record, |record| checkpoints.write(record)).await.map(drop)
    })
    .await?;
    Ok(Measurement::MemHog(measurement(&record, &reports)?))
}

/// Smaller and smaller footprints beside hogs.
pub(super) async fn tune(
    session: &ContentionSession,
    stage: &Stage,
    hog: &MemHogTune,
    context: &mut StageContext<'_>,
) -> Result<Measurement, StageError> {
    let mut record: TuneRecord = checkpoint::read(context)?.unwrap_or_default();
    let config = config(session, stage, HogLoad { load: hog.load, speed: hog.speed, loops: 1 })?;
    let tune = TuneConfig {
        size_max: hog.size_max,
        size_min: hog.size_min,
        intervals: hog.intvs,
        isolation_percentile: hog.isol_pct.percent(),
        isolation_threshold: hog.isol_thr,
    };
    let reports = context.reports().clone();
    beside_hogs(session, stage, context, async |prepared, checkpoints| {
        protection::tune(prepared, &config, &tune, &mut record, |record| checkpoints.write(record)).await
    })
    .await?;
    let protected = match (record.size, &record.last) {
        (Some(size), Some(last)) => Some(ProtectedFootprint { size, run: measurement(last, &reports)? }),
        _ => None,
    };
    Ok(Measurement::MemHogTune(MemHogTuneMeasurement { protected }))
}

/// Prepares the worker, observes its device, and leaves the workload and the hog the memory of the profile, while
/// something is measured.
async fn beside_hogs(
    session: &ContentionSession,
    stage: &Stage,
    context: &mut StageContext<'_>,
    measure: impl AsyncFnOnce(&PreparedWorker, &mut CheckpointWriter<'_, '_>) -> Result<(), ContentionError>,
) -> Result<(), StageError> {
    let memory = available_memory(session, stage, context).await?;
    let prepared = session.prepare(stage, Some(memory.share), context).await?;
    let measured = async {
        let mut observer = DeviceObserver::start(&prepared, context.reports()).await?;
        let balloon = Balloon::inflate(&prepared, memory.balloon()).await.map_err(|error| session.failure(error))?;
        let mut checkpoints = CheckpointWriter::new(context);
        let measured = observer.observe(measure(&prepared, &mut checkpoints)).await;
        balloon.deflate().await.map_err(|error| session.failure(error))?;
        observer.finish().await?;
        measured?.map_err(|error| session.failure(error))?;
        checkpoints.finish()
    };
    let measured = measured.await;
    session.finish(prepared, stage, measured).await
}

/// The share of the profile. What is available is determined before memory is protected.
async fn available_memory(
    session: &ContentionSession,
    stage: &Stage,
    context: &mut StageContext<'_>,
) -> Result<MemoryShare, StageError> {
    let profile = stage.conditions.mem_profile;
    if let Some(avail) = session.available_memory() {
        return session.share_of(avail, profile);
    }
    let prepared = session.prepare(stage, None, context).await?;
    let memory = session.memory_share(&prepared, profile).await;
    session.finish(prepared, stage, memory).await
}

struct HogLoad {
    load: f64,
    speed: HogSpeed,
    loops: u32,
}

fn config(session: &ContentionSession, stage: &Stage, hog: HogLoad) -> Result<ProtectionConfig, StageFailure> {
    let unknown = |what: &str| StageFailure::Machine { reason: format!("the parameters of {what} are unknown") };
    let hashd: HashdParameters = stage.conditions.hashd.ok_or_else(|| unknown("hashd"))?;
    let iocost = stage.conditions.base_model.ok_or_else(|| unknown("io.cost"))?;
    let full = ProtectionConfig {
        load: hog.load,
        loops: hog.loops,
        hog_growth: (iocost.model.wbps as f64 * hog.speed.factor()) as u64,
        ..ProtectionConfig::new(workload(&hashd, &session.options), iocost.model.wbps)
    };
    Ok(shortened(full, stage.conditions.time_scale))
}

/// Shortens the times of a trial. What is observed without a hog has a minimum, because the rates beside hogs are
/// relative to it.
fn shortened(full: ProtectionConfig, scale: Option<TimeScale>) -> ProtectionConfig {
    let baseline = scaled(full.baseline, scale).max(MIN_BASELINE);
    ProtectionConfig { baseline, hog_time: scaled(full.hog_time, scale), ..full }
}

/// The periods of a record, to whose reports hashd is added.
fn measurement(record: &ProtectionRecord, reports: &ReportFolder) -> Result<MemHogMeasurement, StageError> {
    let alone = hashd_seconds(&record.baseline);
    let base_period = period(alone.keys().copied())
        .ok_or_else(|| StageFailure::Workload { reason: "hashd was not observed without the hog".to_owned() })?;
    add_hashd(reports, base_period, &alone, &BTreeMap::new())?;
    let mut runs = Vec::new();
    for run in &record.runs {
        let seconds = hashd_seconds(&run.hashd);
        let begin = run.unix_start + contended_from(run);
        let end = run.unix_start + run.io.last().map_or(0.0, |usage| usage.time);
        let with_hog = (begin as u64)..=(end as u64);
        let observed = seconds.keys().copied().filter(|second| with_hog.contains(second));
        // If hashd ended at once, there is a single second, without it.
        let period = period(observed).unwrap_or(Period { first: begin as u64, last: begin as u64 });
        add_hashd(reports, period, &seconds, &lost_by_second(run))?;
        let missing = |after: f64| (run.duration - after).max(0.0).ceil() as u64;
        let failure = run.failure.as_ref().map(|(after, reason)| (reason.clone(), missing(*after)));
        runs.push(HogRun { period, failure });
    }
    Ok(MemHogMeasurement { base_period, base_rps: record.target, runs })
}

fn period(seconds: impl Iterator<Item = u64> + Clone) -> Option<Period> {
    Some(Period { first: seconds.clone().min()?, last: seconds.max()? })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use wb_contention::report::{IoStats, PerSecondReport};
    use wb_hashd::{HashdConfig, HashdReport};
    use wb_tests::contention::protection::{HogRun as RecordedRun, IoUsage};

    use super::*;

    fn reports(seconds: std::ops::RangeInclusive<u64>) -> Vec<HashdReport> {
        let report = |second| HashdReport { unix_time: second as f64, done: second * 10, ..HashdReport::default() };
        seconds.map(report).collect()
    }

    #[test]
    fn trial_shortens_all_times_but_keeps_a_baseline() {
        let full = ProtectionConfig::new(HashdConfig::default(), 1 << 30);
        let times = |scale: Option<&str>| {
            let config = shortened(full.clone(), scale.map(|scale| scale.parse().unwrap()));
            [config.baseline, config.hog_time].map(|time| time.0 / 1_000_000_000)
        };
        assert_eq!(times(None), [15, 300]);
        assert_eq!(times(Some("0.5")), [7, 150]);
        assert_eq!(times(Some("0.01")), [5, 3]);
    }

    #[test]
    fn periods_are_the_seconds_alone_and_those_in_which_memory_is_scarce() {
        let folder = tempfile::tempdir().unwrap();
        let folder = ReportFolder::at(folder.path());
        for second in 1000..1040 {
            let (read, write) = (IoStats::default(), IoStats::default());
            folder.write(&PerSecondReport { second, hashd: None, read, write, cost: None, uncounted: 0 }).unwrap();
        }
        let usage = |time, swap| IoUsage { time, vrate: 1.0, total: 0.0, hog: 0.0, hog_memory: 0, swap };
        let run = RecordedRun {
            hashd: reports(1010..=1035),
            start: 10.0,
            unix_start: 1010.5,
            hog: Vec::new(),
            io: vec![usage(1.0, 0), usage(5.0, 100 << 20), usage(20.0, 200 << 20)],
            duration: 30.0,
            failure: Some((20.0, "killed".to_owned())),
        };
        let record = ProtectionRecord { target: 10.0, baseline: reports(1000..=1008), runs: vec![run] };
        let measured = measurement(&record, &folder).unwrap();
        assert_eq!(measured.base_period, Period { first: 1000, last: 1007 });
        assert_eq!(measured.runs[0].period, Period { first: 1015, last: 1030 });
        assert_eq!(measured.runs[0].failure, Some(("killed".to_owned(), 10)));
        let with_hashd = |period| folder.read(period).unwrap().seconds.iter().filter(|one| one.hashd.is_some()).count();
        assert_eq!(with_hashd(Period { first: 1000, last: 1039 }), 8 + 16);
        let empty = ProtectionRecord { baseline: Vec::new(), ..record };
        assert!(measurement(&empty, &folder).is_err());
    }
}
