//! A stage and options for tests.

use wb_contention::conditions::{Conditions, current_versions};
use wb_contention::stage::{IocostState, Stage, StageDefinition, Work};
use wb_model::{Bytes, IocostModel, IocostQos};
use wb_results::contention::{Bench, Instance, InstanceLabel, IocostParameters, Passive};

use super::ContentionOptions;

pub(super) fn options() -> ContentionOptions {
    ContentionOptions {
        program: "/weighbridge".into(),
        dir: "/measured".into(),
        device: "nvme0n1".to_owned(),
        mem_avail: None,
        swappiness: 60,
        force: false,
        iocost_from_sys: false,
        seed: 7,
    }
}

pub(super) fn stage(work: Work, iocost: IocostState) -> Stage {
    let qos = IocostQos { rpct: 95.0, rlat: 1, wpct: 95.0, wlat: 1, min: 50.0, max: 100.0 };
    Stage {
        instance: Instance { bench: Bench::Protection, label: InstanceLabel::Position(1) },
        definition: StageDefinition { work, iocost, passive: Passive::default() },
        conditions: Conditions {
            device: ("disk".to_owned(), String::new(), Bytes(1 << 40)),
            mem_profile: Some(1),
            kernel: "6.1".to_owned(),
            versions: current_versions(Bench::Protection),
            base_model: Some(IocostParameters { model: IocostModel::from_array([1, 2, 3, 4, 5, 6]), qos }),
            hashd: None,
            time_scale: None,
        },
    }
}
