//! The stages of a bench.

use wb_results::contention::{Bench, HashdParameters, IocostParameters, QosOverride, SystemInfo, TimeScale};

use super::Job;
use crate::Parameters;
use crate::benches::iocost_qos::stages::QosStage;
use crate::conditions::{Conditions, conditions_on};
use crate::spec::{
    HashdParamsProperties, IocostQosProperties, Properties, ProtectionProperties, Scenario, StorageProperties,
};
use crate::stage::{IocostState, SizingWork, Stage, StageDefinition, Work, passive_of};

/// What the stages of a bench depend on besides its specification.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JobContext<'a> {
    pub(crate) system: &'a SystemInfo,
    /// In GiB.
    pub(crate) mem_profile: Option<u32>,
    pub(crate) parameters: Parameters,
    /// From 0 to 1.
    pub(crate) random: f64,
    pub(crate) time_scale: Option<TimeScale>,
}

pub(crate) enum JobStages<'a> {
    /// Stages that do not depend on each other, each with its name in lists.
    Independent(Vec<(String, Stage)>),
    Qos(&'a IocostQosProperties, Vec<QosStage>),
    /// None: it follows from another bench.
    Derived,
}

impl JobContext<'_> {
    /// The shift of the vrates of a bench, in percent.
    pub(crate) fn shift(&self, properties: &IocostQosProperties) -> f64 {
        wb_model::io_cost::round_hundredths(properties.shift(self.random))
    }

    pub(crate) fn stages<'a>(&self, job: &'a Job) -> JobStages<'a> {
        let iocost = self.parameters.iocost;
        JobStages::Independent(match &job.spec.properties {
            Properties::IocostParams(_) => {
                let definition = self.definition(job, Work::IocostParams, IocostState::AsIs);
                vec![("io.cost model and QoS".to_owned(), self.stage(job, Bench::IocostParams, definition, None, None))]
            }
            Properties::HashdParams(properties) => vec![self.sizing(job, properties)],
            Properties::Storage(properties) => vec![self.storage(job, properties)],
            Properties::Protection(properties) => self.scenarios(job, properties),
            Properties::IocostQos(properties) => {
                return JobStages::Qos(properties, QosStage::all(properties, self.shift(properties), iocost));
            }
            Properties::IocostTune(_) => return JobStages::Derived,
        })
    }

    fn sizing(&self, job: &Job, properties: &HashdParamsProperties) -> (String, Stage) {
        let work = SizingWork {
            fake_cpu_load: properties.fake_cpu_load,
            rps_max: properties.effective_rps_max(),
            requests: properties.requests,
        };
        let definition = self.definition(job, Work::HashdParams(work), IocostState::AsIs);
        ("parameters of hashd".to_owned(), self.stage(job, Bench::HashdParams, definition, None, None))
    }

    fn storage(&self, job: &Job, properties: &StorageProperties) -> (String, Stage) {
        let work = Work::Storage(properties.work);
        let definition = self.definition(job, work, self.own_iocost());
        ("supported footprint".to_owned(), self.stage(job, Bench::Storage, definition, self.parameters.iocost, None))
    }

    fn scenarios(&self, job: &Job, properties: &ProtectionProperties) -> Vec<(String, Stage)> {
        let stage = |(scenario, index): (Scenario, usize)| {
            let (name, work) = match scenario {
                Scenario::MemHog(hog) => ("mem-hog", Work::MemHog(hog)),
                Scenario::MemHogTune(tune) => ("mem-hog-tune", Work::MemHogTune(tune)),
            };
            let definition = self.definition(job, work, self.own_iocost());
            let Parameters { iocost, hashd } = self.parameters;
            (format!("[{index:02}] {name}"), self.stage(job, Bench::Protection, definition, iocost, hashd))
        };
        properties.all_scenarios().into_iter().zip(0..).map(stage).collect()
    }

    /// io.cost with the parameters in force; without any, it stays as it is.
    fn own_iocost(&self) -> IocostState {
        match self.parameters.iocost {
            Some(_) => IocostState::On(QosOverride::default()),
            None => IocostState::AsIs,
        }
    }

    fn definition(&self, job: &Job, work: Work, iocost: IocostState) -> StageDefinition {
        StageDefinition { work, iocost, passive: passive_of(&job.spec) }
    }

    pub(crate) fn stage(
        &self,
        job: &Job,
        bench: Bench,
        definition: StageDefinition,
        iocost: Option<IocostParameters>,
        hashd: Option<HashdParameters>,
    ) -> Stage {
        let conditions = conditions_on(self.system, bench, self.mem_profile, iocost, hashd);
        let conditions = Conditions { time_scale: self.time_scale, ..conditions };
        Stage { instance: job.instance.clone(), definition, conditions }
    }
}
