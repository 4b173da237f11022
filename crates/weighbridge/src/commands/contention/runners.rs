//! Where runners of stages are connected.

use wb_contention::Bench;
use wb_contention::runner::{Runners, StageRunner};

/// The runners of this program.
pub(super) struct BuiltInRunners;

impl Runners for BuiltInRunners {
    fn runner_for(&mut self, bench: Bench) -> Option<Box<dyn StageRunner>> {
        match bench {
            Bench::Storage | Bench::IocostParams | Bench::HashdParams | Bench::Protection => None,
            // They consist of the others.
            Bench::IocostQos | Bench::IocostTune => None,
        }
    }
}
