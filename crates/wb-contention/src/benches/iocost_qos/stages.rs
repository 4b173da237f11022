//! The stages of `iocost-qos`: for each setting, `storage` and then the protection of the footprint that it found.

use wb_model::Bytes;
use wb_results::contention::{Bench, HashdParameters, IocostParameters, MemHogTune, QosOverride};

use crate::iocost::min_vrate;
use crate::measurement::StorageMeasurement;
use crate::sequence::{Job, JobContext};
use crate::spec::{IocostQosProperties, StorageWork, default_mem_hog_tune};
use crate::stage::{IocostState, Stage, StageDefinition, Work, passive_of};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct QosStage {
    /// 0 is without io.cost.
    pub(crate) index: usize,
    /// `None`: io.cost is disabled.
    pub(crate) change: Option<QosOverride>,
    pub(crate) throttle: Throttle,
}

/// Whether a setting leaves the device fast enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Throttle {
    Acceptable,
    /// The lowest vrate was too low, and has been raised.
    MinRaised,
    /// The highest vrate is too low: the setting is left out.
    TooMuch,
}

impl QosStage {
    /// The baseline without io.cost, then the settings. Without a model, none is left out.
    pub(crate) fn all(properties: &IocostQosProperties, shift: f64, base: Option<IocostParameters>) -> Vec<Self> {
        let min_vrate = base.filter(|_| !properties.ignore_min_perf).map(|base| min_vrate(base.model));
        let baseline = Self { index: 0, change: None, throttle: Throttle::Acceptable };
        let settings = properties.all_settings(shift).into_iter().zip(1..).map(|(change, index)| {
            let (change, throttle) = limit(change, min_vrate.unwrap_or_default());
            Self { index, change: Some(change), throttle }
        });
        std::iter::once(baseline).chain(settings).collect()
    }

    /// Its name in lists: `[01] rpct=95.00 … [min=75.00] [max=75.00]`.
    pub(crate) fn label(&self, base: Option<IocostParameters>) -> String {
        let setting = match (self.change, base) {
            (None, _) => "iocost=off".to_owned(),
            (Some(change), Some(base)) => change.describe(base.qos),
            (Some(change), None) => describe_changes(&change),
        };
        format!("[{:02}] {setting}", self.index)
    }

    fn iocost(&self) -> IocostState {
        self.change.map_or(IocostState::Off, IocostState::On)
    }

    pub(crate) fn storage(&self, job: &Job, properties: &IocostQosProperties, context: &JobContext<'_>) -> Stage {
        let loops = if self.index == 0 { properties.storage_base_loops } else { properties.storage.loops };
        let work = StorageWork { loops, ..properties.storage };
        self.stage(job, Work::Storage(work), context, None)
    }

    /// The protection of the footprint that its `storage` found: from four fifths of the memory to the footprint.
    pub(crate) fn protection(
        &self,
        job: &Job,
        properties: &IocostQosProperties,
        storage: &StorageMeasurement,
        context: &JobContext<'_>,
    ) -> Stage {
        let footprint = storage.mean_size();
        let smallest = Bytes(storage.memory.share.0 / 5 * 4).min(footprint);
        let tune = MemHogTune {
            isol_pct: properties.isol_pct,
            isol_thr: properties.isol_thr,
            ..default_mem_hog_tune(smallest, footprint)
        };
        let hashd = storage.hashd_at_footprint();
        self.stage(job, Work::MemHogTune(tune), context, Some(hashd))
    }

    fn stage(&self, job: &Job, work: Work, context: &JobContext<'_>, hashd: Option<HashdParameters>) -> Stage {
        let definition = StageDefinition { work, iocost: self.iocost(), passive: passive_of(&job.spec) };
        context.stage(job, Bench::IocostQos, definition, context.parameters.iocost, hashd)
    }
}

/// Leaves out a setting whose highest vrate is too low, and raises a lowest one.
fn limit(change: QosOverride, min_vrate: f64) -> (QosOverride, Throttle) {
    match (change.min, change.max) {
        (_, Some(max)) if max < min_vrate => (change, Throttle::TooMuch),
        (Some(min), _) if min < min_vrate => (QosOverride { min: Some(min_vrate), ..change }, Throttle::MinRaised),
        _ => (change, Throttle::Acceptable),
    }
}

/// Changes of a QoS that is not known yet.
fn describe_changes(change: &QosOverride) -> String {
    let percent = |name: &str, value: Option<f64>| value.map(|value| format!("[{name}={value:.2}]"));
    let latency = |name: &str, value: Option<u64>| value.map(|value| format!("[{name}={value}]"));
    let changes = [
        percent("rpct", change.rpct),
        latency("rlat", change.rlat),
        percent("wpct", change.wpct),
        latency("wlat", change.wlat),
        percent("min", change.min),
        percent("max", change.max),
    ];
    let words: Vec<String> = changes.into_iter().flatten().collect();
    if words.is_empty() { "as iocost-params finds".to_owned() } else { words.join(" ") }
}

#[cfg(test)]
mod tests {
    use wb_model::{IocostModel, IocostQos};

    use super::*;

    #[test]
    fn settings_that_throttle_too_much_are_left_out_and_low_ends_are_raised() {
        // The slowest parameter is four times that of a slow hard disk.
        let model = IocostModel::from_array([1 << 30, 1120, 9999, 1 << 30, 9999, 9999]);
        let qos = IocostQos { rpct: 50.0, rlat: 217, wpct: 50.0, wlat: 161, min: 1.0, max: 100.0 };
        let ranged = QosOverride { min: Some(10.0), max: Some(60.0), ..QosOverride::default() };
        let settings = vec![QosOverride::fixed_vrate(25.0), QosOverride::fixed_vrate(24.0), ranged];
        let properties = IocostQosProperties { settings, ..IocostQosProperties::default() };
        let base = Some(IocostParameters { model, qos });
        let throttles = |properties: &IocostQosProperties| {
            QosStage::all(properties, 0.0, base).iter().map(|stage| stage.throttle).collect::<Vec<_>>()
        };
        use Throttle::{Acceptable, MinRaised, TooMuch};
        assert_eq!(throttles(&properties), [Acceptable, Acceptable, TooMuch, MinRaised]);
        let stages = QosStage::all(&properties, 0.0, base);
        assert_eq!(stages[3].label(base), "[03] rpct=50.00 rlat=217 wpct=50.00 wlat=161 [min=25.00] [max=60.00]");
        let all = IocostQosProperties { ignore_min_perf: true, ..properties };
        assert_eq!(throttles(&all), [Acceptable; 4]);
    }
}
