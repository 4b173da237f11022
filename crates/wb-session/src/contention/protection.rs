//! `protection`: its checkpoint has the hogs, or the footprints, that are done.

use std::collections::BTreeMap;

use wb_contention::distribution;
use wb_contention::measurement::{
    FootprintProbe, HogRun, Measurement, MemHogMeasurement, MemHogTuneMeasurement, Period,
};
use wb_contention::report::ReportFolder;
use wb_contention::runner::{StageContext, StageError, StageFailure};
use wb_contention::stage::Stage;
use wb_contention_worker::protection::{
    self, ProbeOutcome, ProtectionConfig, ProtectionRecord, TuneConfig, TuneRecord,
};
use wb_contention_worker::protection_study::{contended_from, lost_by_second};
use wb_contention_worker::{Balloon, ContentionError, MemoryShare, PreparedWorker};
use wb_model::{Bytes, Nanos};
use wb_results::contention::{HashdParameters, HogSpeed, MemHog, MemHogTune, MemoryProfile, TimeScale};

use super::checkpoint::{self, CheckpointWriter};
use super::observer::{DeviceObserver, add_hashd, hashd_seconds};
use super::sizing::workload;
use super::{ContentionSession, memory, scaled};

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
    let memory = beside_hogs(session, stage, context, async |prepared, checkpoints| {
        protection::measure(prepared, &config, &mut record, |record| checkpoints.write(record)).await.map(drop)
    })
    .await?;
    Ok(Measurement::MemHog(measurement(&record, memory, &reports)?))
}

/// Smaller and smaller footprints beside hogs.
pub(super) async fn tune(
    session: &ContentionSession,
    stage: &Stage,
    hog: &MemHogTune,
    context: &mut StageContext<'_>,
) -> Result<Measurement, StageError> {
    let mut record: TuneRecord = checkpoint::read(context)?.unwrap_or_default();
    let load = HogLoad { load: hog.load, speed: hog.speed, loops: 1 };
    let config = shortened(full_config(session, stage, load)?.probing(), stage.conditions.time_scale);
    let tune = TuneConfig {
        size_max: hog.size_max,
        size_min: hog.size_min,
        intervals: hog.intvs,
        isolation_percentile: hog.isol_pct.percent(),
        isolation_threshold: hog.isol_thr,
    };
    let reports = context.reports().clone();
    // What decides is the figure that is printed.
    let percentile = |isolation: &[f64]| distribution::summarize_values(isolation, &[hog.isol_pct])?.get(hog.isol_pct);
    let memory = beside_hogs(session, stage, context, async |prepared, checkpoints| {
        let probe = async |size, early_failure| protection::probe(prepared, &config, size, early_failure).await;
        let checkpoint = |record: &TuneRecord| checkpoints.write(record);
        protection::tune(&config, &tune, &mut record, probe, percentile, checkpoint).await
    })
    .await?;
    Ok(Measurement::MemHogTune(tuned(&record, memory, &reports)?))
}

fn tuned(
    record: &TuneRecord,
    memory: MemoryProfile,
    reports: &ReportFolder,
) -> Result<MemHogTuneMeasurement, StageError> {
    let probe = |(size, last): &(Bytes, ProtectionRecord)| -> Result<FootprintProbe, StageError> {
        Ok(FootprintProbe { size: *size, run: measurement(last, memory, reports)? })
    };
    let last = record.last.as_ref().map(probe).transpose()?;
    let (protected, last_failed) = if record.size.is_some() { (last, None) } else { (None, last) };
    let failures = record.tried.iter().filter_map(|(size, outcome)| match outcome {
        ProbeOutcome::Failed(reason) => Some(format!("{size}: {reason}")),
        ProbeOutcome::EarlyFailure => Some(format!("{size}: too many seconds below the threshold")),
        ProbeOutcome::NoContention => Some(format!("{size}: {}", ContentionError::NoContention)),
        ProbeOutcome::Isolation(_) => None,
    });
    Ok(MemHogTuneMeasurement { protected, last_failed, failures: failures.collect() })
}

/// Prepares the worker, observes its device, and leaves the workload and the hog the memory of the profile, while
/// something is measured.
async fn beside_hogs(
    session: &ContentionSession,
    stage: &Stage,
    context: &mut StageContext<'_>,
    measure: impl AsyncFnOnce(&PreparedWorker, &mut CheckpointWriter<'_, '_>) -> Result<(), ContentionError>,
) -> Result<MemoryProfile, StageError> {
    let memory = available_memory(session, stage, context).await?;
    let prepared = session.prepare(stage, Some(memory.share), context).await?;
    let measured = async {
        session.settle_vrate(&prepared, stage).await?;
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
    session.finish(prepared, stage, measured).await?;
    Ok(memory::recorded(memory))
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
    Ok(shortened(full_config(session, stage, hog)?, stage.conditions.time_scale))
}

fn full_config(session: &ContentionSession, stage: &Stage, hog: HogLoad) -> Result<ProtectionConfig, StageFailure> {
    let unknown = |what: &str| StageFailure::Machine { reason: format!("the parameters of {what} are unknown") };
    let hashd: HashdParameters = stage.conditions.hashd.ok_or_else(|| unknown("hashd"))?;
    let iocost = stage.conditions.base_model.ok_or_else(|| unknown("io.cost"))?;
    Ok(ProtectionConfig {
        load: hog.load,
        loops: hog.loops,
        hog_growth: (iocost.model.wbps as f64 * hog.speed.factor()) as u64,
        ..ProtectionConfig::new(workload(&hashd, &session.options), iocost.model.wbps)
    })
}

/// Shortens the times of a trial. What is observed without a hog has a minimum, because the rates beside hogs are
/// relative to it.
fn shortened(full: ProtectionConfig, scale: Option<TimeScale>) -> ProtectionConfig {
    let baseline = scaled(full.baseline, scale).max(MIN_BASELINE);
    let contended_time = full.contended_time.map(|time| scaled(time, scale));
    ProtectionConfig { baseline, hog_time: scaled(full.hog_time, scale), contended_time, ..full }
}

/// The periods of a record, to whose reports hashd is added.
fn measurement(
    record: &ProtectionRecord,
    memory: MemoryProfile,
    reports: &ReportFolder,
) -> Result<MemHogMeasurement, StageError> {
    let alone = hashd_seconds(&record.baseline);
    let base_period = period(alone.keys().copied())
        .ok_or_else(|| StageFailure::Workload { reason: "hashd was not observed without the hog".to_owned() })?;
    add_hashd(reports, base_period, &alone, &BTreeMap::new())?;
    let mut runs = Vec::new();
    for run in &record.runs {
        let seconds = hashd_seconds(&run.hashd);
        // A run without contention has failed, so that only what follows counts.
        let begin =
            run.unix_start + contended_from(run).or(run.failure.as_ref().map(|(after, _)| *after)).unwrap_or(0.0);
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
    Ok(MemHogMeasurement { base_period, base_rps: record.target, runs, memory: Some(memory) })
}

fn period(seconds: impl Iterator<Item = u64> + Clone) -> Option<Period> {
    Some(Period { first: seconds.clone().min()?, last: seconds.max()? })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use wb_contention::report::{IoStats, PerSecondReport};
    use wb_contention_worker::protection::{HogRun as RecordedRun, IoUsage};
    use wb_hashd::{HashdConfig, HashdReport};

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
            folder
                .write(&PerSecondReport {
                    second,
                    hashd: None,
                    read,
                    write,
                    cost: None,
                    uncounted: 0,
                    resources: BTreeMap::new(),
                })
                .unwrap();
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
        let memory = MemoryProfile { profile: Some(1), avail: Bytes(4), share: Bytes(3), target: Bytes(2) };
        let measured = measurement(&record, memory, &folder).unwrap();
        assert_eq!(measured.base_period, Period { first: 1000, last: 1007 });
        assert_eq!(measured.runs[0].period, Period { first: 1015, last: 1030 });
        assert_eq!(measured.runs[0].failure, Some(("killed".to_owned(), 10)));
        let with_hashd = |period| folder.read(period).unwrap().seconds.iter().filter(|one| one.hashd.is_some()).count();
        assert_eq!(with_hashd(Period { first: 1000, last: 1039 }), 8 + 16);
        let empty = ProtectionRecord { baseline: Vec::new(), ..record.clone() };
        assert!(measurement(&empty, memory, &folder).is_err());
        // The last footprint stays, protected or not, and those without a measurement have their reasons.
        let tried = vec![(Bytes(7), ProbeOutcome::EarlyFailure), (Bytes(6), ProbeOutcome::Isolation(0.5))];
        let mut tune = TuneRecord { tried, size: None, last: Some((Bytes(6), record)) };
        let failed = tuned(&tune, memory, &folder).unwrap();
        assert_eq!((failed.protected.is_some(), failed.last_failed.unwrap().size), (false, Bytes(6)));
        assert_eq!(failed.failures.len(), 1, "{:?}", failed.failures);
        tune.size = Some(Bytes(6));
        let found = tuned(&tune, memory, &folder).unwrap();
        assert_eq!((found.protected.unwrap().size, found.last_failed.is_some()), (Bytes(6), false));
    }
}
