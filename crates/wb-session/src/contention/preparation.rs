//! From a stage to how its worker is prepared.

use wb_contention::runner::StageFailure;
use wb_contention::stage::{IocostState, Stage, Work};
use wb_contention_worker::{Enforcement, IoControl, Needs, Preparation, Slice, SliceSettings, protection, storage};
use wb_model::Bytes;
use wb_results::contention::{Passive, PassiveArea};

use super::ContentionOptions;

/// How the worker is prepared for a stage. `protected` is the memory of the workload that a hog must not take. Fails if
/// io.cost is to be enabled and its parameters are unknown.
pub(super) fn preparation(
    stage: &Stage,
    options: &ContentionOptions,
    protected: Option<Bytes>,
) -> Result<Preparation, StageFailure> {
    Ok(Preparation {
        folder: options.dir.display().to_string(),
        device: Some(options.device.clone()),
        needs: needs(stage),
        enforcement: enforcement(&stage.definition.passive),
        force: options.force,
        accept_iocost: options.iocost_from_sys,
        io_control: io_control(stage)?,
        swappiness: options.swappiness,
        slices: slices(&stage.definition.work, protected),
    })
}

fn needs(stage: &Stage) -> Needs {
    match (&stage.definition.work, stage.definition.iocost) {
        (Work::IocostParams, _) => Needs::Device,
        (Work::MemHog(_) | Work::MemHogTune(_), _) | (_, IocostState::On(_)) => Needs::Everything,
        (Work::HashdParams(_) | Work::Storage(_), IocostState::AsIs | IocostState::Off) => Needs::Memory,
    }
}

fn io_control(stage: &Stage) -> Result<IoControl, StageFailure> {
    Ok(match (&stage.definition.work, stage.definition.iocost) {
        // The device alone is measured.
        (Work::IocostParams, _) | (_, IocostState::Off) => IoControl::Off,
        (_, IocostState::AsIs) => IoControl::Unchanged,
        (_, IocostState::On(_)) => {
            let missing = || StageFailure::Machine {
                reason: "io.cost has no parameters: run `iocost-params` before, or give --iocost-from-sys".to_owned(),
            };
            let parameters = stage.iocost().ok_or_else(missing)?;
            IoControl::On(parameters.model, parameters.qos)
        }
    })
}

fn slices(work: &Work, protected: Option<Bytes>) -> Vec<(Slice, SliceSettings)> {
    match work {
        Work::IocostParams => Vec::new(),
        Work::HashdParams(_) | Work::Storage(_) => storage::slices(),
        Work::MemHog(_) | Work::MemHogTune(_) => {
            protection::slices(protected).into_iter().chain([storage::balloon_slice()]).collect()
        }
    }
}

pub(super) fn enforcement(passive: &Passive) -> Enforcement {
    let is_set = |area| !passive.contains(area);
    Enforcement {
        critical: is_set(PassiveArea::Everything),
        cpu: is_set(PassiveArea::Cpu),
        memory: is_set(PassiveArea::Mem),
        file_system: is_set(PassiveArea::Fs),
        io: is_set(PassiveArea::Io),
        oomd: is_set(PassiveArea::Oomd),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use wb_contention::spec::default_mem_hog;
    use wb_results::contention::QosOverride;

    use super::super::test_stage::{options, stage};
    use super::*;

    #[test]
    fn passive_areas_are_left_alone() {
        let enforced = |text: &str| enforcement(&text.parse().unwrap());
        assert_eq!(enforced("none"), Enforcement::ALL);
        assert_eq!(enforced("all"), Enforcement::CRITICAL_ONLY);
        assert_eq!(enforced("ALL"), Enforcement::NONE);
        assert_eq!(enforced("io/mem"), Enforcement { io: false, memory: false, ..Enforcement::ALL });
    }

    #[test]
    fn the_controller_of_io_is_as_the_stage_requires() {
        let control = |work, iocost| preparation(&stage(work, iocost), &options(), None).map(|one| one.io_control);
        let on = IocostState::On(QosOverride::fixed_vrate(75.0));
        assert_eq!(control(Work::IocostParams, IocostState::AsIs), Ok(IoControl::Off));
        assert_eq!(control(Work::MemHog(default_mem_hog()), IocostState::AsIs), Ok(IoControl::Unchanged));
        let Ok(IoControl::On(model, qos)) = control(Work::MemHog(default_mem_hog()), on) else { unreachable!() };
        assert_eq!((model.rbps, qos.min, qos.max), (1, 75.0, 75.0));
        let mut unknown = stage(Work::MemHog(default_mem_hog()), on);
        unknown.conditions.base_model = None;
        assert!(preparation(&unknown, &options(), None).is_err());
    }

    #[test]
    fn a_stage_needs_what_it_uses() {
        let on = IocostState::On(QosOverride::default());
        assert_eq!(needs(&stage(Work::IocostParams, IocostState::AsIs)), Needs::Device);
        assert_eq!(needs(&stage(Work::MemHog(default_mem_hog()), IocostState::AsIs)), Needs::Everything);
        assert_eq!(needs(&stage(Work::MemHog(default_mem_hog()), on)), Needs::Everything);
    }
}
