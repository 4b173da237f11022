//! `iocost-qos`: footprint and isolation under each setting.

use wb_results::contention::{IocostParameters, QosAnswer, QosFigures, QosOverride, QosStageAnswer};

use super::stages::QosStage;
use crate::benches::{protection, storage};
use crate::measurement::{Measurement, MemHogMeasurement, Period};
use crate::record::{EndedBench, RecordedStage};
use crate::spec::IocostQosProperties;
use crate::stage::{IocostState, StageKey};
use crate::study::{StudyError, StudySource, figures};

pub(crate) fn study(
    source: &StudySource<'_>,
    end: &EndedBench,
    properties: &IocostQosProperties,
) -> Result<QosAnswer, StudyError> {
    let recorded: Vec<(&StageKey, &RecordedStage)> =
        end.stages.iter().filter_map(|key| Some((key, source.history.stage(key)?))).collect();
    let base = recorded.first().and_then(|(_, stage)| stage.start.conditions.base_model);
    let Some(base) = base else { return Err(StudyError::no_result(&end.instance, "the baseline")) };
    let mem_profile = recorded.first().and_then(|(_, stage)| stage.start.conditions.mem_profile);
    let mut stages = Vec::new();
    for stage in QosStage::all(properties, end.shift, Some(base)) {
        let found = setting(source, &recorded, stage.change, base)?.map(Box::new);
        stages.push(QosStageAnswer { change: stage.change, found });
    }
    if stages.first().is_none_or(|stage| stage.found.is_none()) {
        return Err(StudyError::no_result(&end.instance, "the baseline"));
    }
    let IocostQosProperties { isol_pct, isol_thr, .. } = *properties;
    Ok(QosAnswer { base, mem_profile, isol_pct, isol_thr, stages })
}

/// The figures of a setting; `None` if it was left out.
fn setting(
    source: &StudySource<'_>,
    recorded: &[(&StageKey, &RecordedStage)],
    change: Option<QosOverride>,
    base: IocostParameters,
) -> Result<Option<QosFigures>, StudyError> {
    let iocost = change.map_or(IocostState::Off, IocostState::On);
    let own = || recorded.iter().filter(|(_, stage)| stage.start.definition.iocost == iocost);
    let storage_stage = own().find_map(|(key, stage)| match &stage.measurement {
        Some(Measurement::Storage(measurement)) => Some((*key, measurement)),
        _ => None,
    });
    let Some((storage_key, measured)) = storage_stage else { return Ok(None) };
    let storage = storage::study::study(source, storage_key, measured)?;
    let tuned = own().find_map(|(key, stage)| match (&stage.measurement, source.work(key)) {
        (Some(Measurement::MemHogTune(measurement)), Some(crate::stage::Work::MemHogTune(properties))) => {
            Some((*key, properties, measurement))
        }
        _ => None,
    });
    let protection = tuned
        .map(|(key, properties, measured)| protection::study::mem_hog_tune(source, key, properties, measured))
        .transpose()?;
    let mut parts = vec![source.read(storage_key, measured.period)?];
    if let Some((key, _, tune)) = tuned {
        for period in tune.shown().into_iter().flat_map(|probe| periods(&probe.run)) {
            parts.push(source.read(key, period)?);
        }
    }
    let all = figures::joined(parts);
    let size = protection.as_ref().and_then(|protection| protection.size);
    Ok(Some(QosFigures {
        amof: size.map(|size| size.0 as f64 / storage.usage),
        vrate: change.and_then(|_| figures::vrate(&all)),
        vrate_outside: change.map_or(0.0, |change| figures::vrate_outside(&all, change.apply(base.qos))),
        latency: figures::latencies(&all),
        missing: figures::missing(&all),
        storage,
        protection,
    }))
}

fn periods(run: &MemHogMeasurement) -> impl Iterator<Item = Period> + '_ {
    std::iter::once(run.base_period).chain(run.runs.iter().map(|run| run.period))
}
