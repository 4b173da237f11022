//! A fake machine: what its stages measure follows from their definitions and conditions alone.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use async_trait::async_trait;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use wb_contention::BenchSpec;
use wb_contention::execute::{SequenceError, SequenceOptions, SequenceProgress, SequenceRequest, execute};
use wb_contention::measurement::{
    FootprintProbe, HogRun, Measurement, MemHogMeasurement, MemHogTuneMeasurement, Period, StorageMeasurement,
};
use wb_contention::report::{HashdStats, IoStats, IocostStats, PerSecondReport};
use wb_contention::runner::{Checkpoint, Runners, StageContext, StageError, StageFailure, StageRunner};
use wb_contention::stage::{Stage, Work};
use wb_model::{Bytes, IocostModel, IocostQos};
use wb_record::{Invocation, RunFolder};
use wb_results::contention::{
    Bench, BenchResult, Device, HashdParameters, IocostParameters, MemoryProfile, QosOverride, SystemInfo,
};

/// The first second of every stage, and how many there are.
const FIRST: u64 = 1_700_000_000;
pub(crate) const SECONDS: u64 = 8;

pub(crate) const MODEL: [u64; 6] = [2_992_129_542, 337_745, 370_705, 2_232_405_244, 260_917, 256_225];

pub(crate) fn iocost() -> IocostParameters {
    let qos = IocostQos { rpct: 95.0, rlat: 11_649, wpct: 95.0, wlat: 12_681, min: 8.83, max: 100.0 };
    IocostParameters { model: IocostModel::from_array(MODEL), qos }
}

pub(crate) fn hashd() -> HashdParameters {
    HashdParameters {
        hash_size: Bytes(1_258_291),
        rps_max: 1000.0,
        mem_size: Bytes(16 << 30),
        chunk_pages: 25,
        log_bps: Bytes(1_100_794),
        fake_cpu_load: false,
    }
}

pub(crate) fn system() -> SystemInfo {
    SystemInfo {
        kernel: "6.1.0".to_owned(),
        nr_cpus: 16,
        memory: Bytes(32 << 30),
        swap: Bytes(16 << 30),
        swappiness: 60,
        zswap: false,
        profile: None,
        passive: "none".parse().unwrap(),
        device: Device {
            name: "nvme0n1".to_owned(),
            number: "259:5".to_owned(),
            model: "Fake SSD".to_owned(),
            firmware: "1".to_owned(),
            size: Bytes(477 << 30),
            scheduler: "none".to_owned(),
            wbt: false,
            other_controller: false,
        },
        iocost: None,
        time_scale: None,
        missed_requirements: Vec::new(),
        merged: Vec::new(),
    }
}

/// What happens when a stage is executed, besides what it measures.
pub(crate) trait Script {
    /// Called after each thing that lasts: a report, a checkpoint, a progress message.
    fn after_step(&mut self);
    /// Called before each second of a stage.
    fn before_second(&mut self, stage: &Stage, second: u64) -> Result<(), StageFailure>;
}

/// Nothing happens.
pub(crate) struct Undisturbed;

impl Script for Undisturbed {
    fn after_step(&mut self) {}
    fn before_second(&mut self, _: &Stage, _: u64) -> Result<(), StageFailure> {
        Ok(())
    }
}

/// The folder of a fake run, and what its machine is like.
pub(crate) struct FakeMachine {
    pub(crate) run: PathBuf,
    /// The folder of committed parameters.
    pub(crate) dir: PathBuf,
    pub(crate) system: SystemInfo,
    pub(crate) mem_profile: Option<u32>,
    pub(crate) unavailable: Option<Bench>,
    /// Requirements that `--force` overrides in stages of `storage`.
    pub(crate) missed_requirements: Vec<String>,
    /// Lines of what was executed.
    pub(crate) log: Vec<String>,
}

impl FakeMachine {
    pub(crate) fn at(run: &Path) -> Self {
        let (run, dir) = (run.to_owned(), run.with_extension("d"));
        Self {
            run,
            dir,
            system: system(),
            mem_profile: Some(16),
            unavailable: None,
            missed_requirements: Vec::new(),
            log: Vec::new(),
        }
    }

    pub(crate) fn request(&self, specs: &str) -> SequenceRequest {
        let options = SequenceOptions {
            dir: self.dir.clone(),
            dev: None,
            mem_profile: self.mem_profile,
            mem_avail: None,
            iocost_qos: QosOverride::default(),
            swappiness: 60,
            force: false,
            iocost_from_sys: false,
            time_scale: None,
        };
        SequenceRequest {
            specs: specs.split(' ').map(|spec| BenchSpec::parse(spec).unwrap()).collect(),
            parameters: options.parameters_file().read().unwrap(),
            options,
            system: self.system.clone(),
            seed: 7,
        }
    }

    /// Executes a sequence, and logs what happens.
    pub(crate) fn execute(
        &mut self,
        specs: &str,
        script: impl Script + 'static,
    ) -> Result<Vec<BenchResult>, SequenceError> {
        let run = RunFolder::create(&self.run)?;
        run.add_invocation(invocation(specs))?;
        let script: Rc<RefCell<dyn Script>> = Rc::new(RefCell::new(script));
        let mut runners = FakeRunners {
            script: script.clone(),
            unavailable: self.unavailable,
            missed_requirements: self.missed_requirements.clone(),
        };
        let request = self.request(specs);
        let log = &mut self.log;
        let mut progress = |step: SequenceProgress<'_>| {
            log.extend(describe(step));
            script.borrow_mut().after_step();
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(execute(request, &run, &mut runners, &mut progress))
    }
}

fn describe(step: SequenceProgress<'_>) -> Vec<String> {
    match step {
        SequenceProgress::BenchPlanned(plan) => {
            let stage = |stage: &wb_contention::sequence::PlannedStage| {
                let reasons: Vec<String> = stage.mismatches.iter().map(|one| format!("  not reused: {one}")).collect();
                std::iter::once(format!("{}{stage}", plan.instance)).chain(reasons).collect::<Vec<_>>()
            };
            plan.stages.iter().flat_map(stage).collect()
        }
        SequenceProgress::StageStarted { label, resumed, .. } => {
            vec![format!("  {} {label}", if resumed { "resume" } else { "start" })]
        }
        SequenceProgress::StageFailed { label, failure, next, .. } => {
            vec![format!("  {label} failed: {failure}: {next:?}")]
        }
        SequenceProgress::BenchEnded { result, was_present, .. } => {
            vec![format!("{} {}", if was_present { "present" } else { "ended" }, result.instance)]
        }
        SequenceProgress::StageEnded { .. } | SequenceProgress::Applied(_) | SequenceProgress::Committed(_) => {
            Vec::new()
        }
    }
}

/// The invocation of a run that executes a sequence.
pub(crate) fn invocation(specs: &str) -> Invocation {
    Invocation {
        started: "2026-01-01T00:00:00Z".to_owned(),
        version: "0".to_owned(),
        program_sha256: "0".to_owned(),
        agent_sha256: None,
        command: Vec::new(),
        plan: specs.to_owned(),
        plan_text: None,
        sampling: serde_json::Value::Null,
        seed: 7,
        cells: Vec::new(),
        facts: Default::default(),
        hosts: Default::default(),
        metadata: Default::default(),
    }
}

struct FakeRunners {
    script: Rc<RefCell<dyn Script>>,
    unavailable: Option<Bench>,
    missed_requirements: Vec<String>,
}

impl Runners for FakeRunners {
    fn runner_for(&mut self, bench: Bench) -> Option<Box<dyn StageRunner>> {
        let Self { script, missed_requirements, .. } = self;
        let runner = FakeRunner { script: script.clone(), missed_requirements: missed_requirements.clone() };
        (self.unavailable != Some(bench)).then(|| Box::new(runner) as _)
    }
}

struct FakeRunner {
    script: Rc<RefCell<dyn Script>>,
    missed_requirements: Vec<String>,
}

#[async_trait(?Send)]
impl StageRunner for FakeRunner {
    async fn run(&mut self, stage: &Stage, context: &mut StageContext<'_>) -> Result<Measurement, StageError> {
        if let Work::MemHog(_) = stage.definition.work {
            context.record_unmet_requirements(vec!["oomd".to_owned()])?;
        }
        if let (Work::Storage(_), false) = (&stage.definition.work, self.missed_requirements.is_empty()) {
            context.record_unmet_requirements(self.missed_requirements.clone())?;
        }
        let start = context.resume_from().and_then(|checkpoint| checkpoint.0["next"].as_u64()).unwrap_or(0);
        for second in start..SECONDS {
            self.script.borrow_mut().before_second(stage, second)?;
            context.report(&report(stage, second))?;
            self.script.borrow_mut().after_step();
            context.checkpoint(Checkpoint(serde_json::json!({ "next": second + 1 })))?;
            self.script.borrow_mut().after_step();
        }
        Ok(measurement(stage))
    }
}

/// The vrate of a stage, in percent; that of an unlimited device is 130.
fn vrate(stage: &Stage) -> f64 {
    stage.iocost().map_or(130.0, |iocost| iocost.qos.max)
}

fn report(stage: &Stage, second: u64) -> PerSecondReport {
    let key = stage.key().to_string();
    let seed = u64::from_str_radix(&key, 16).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ second);
    let mut io = || IoStats {
        bytes: random.random_range(1_000_000..9_000_000),
        latencies: (0..6).map(|bucket| (5_000 << bucket, random.random_range(0..100))).collect(),
    };
    let (read, write) = (io(), io());
    let isolated = if second >= 3 && vrate(stage) > 80.0 { 850 } else { 1000 };
    let hashd =
        HashdStats { done: second * isolated, latency: 0.05 + random.random_range(0.0..0.01), memory: Bytes(11 << 30) };
    let cost = stage.iocost().map(|iocost| IocostStats { vrate: iocost.qos.max, usage: 0.7, unused: 0.3, lost: 0.1 });
    PerSecondReport {
        second: FIRST + second,
        hashd: Some(hashd),
        read,
        write,
        cost,
        uncounted: 0,
        resources: Default::default(),
    }
}

fn memory() -> MemoryProfile {
    MemoryProfile { profile: Some(16), avail: Bytes(30 << 30), share: Bytes(12 << 30), target: Bytes(11 << 30) }
}

fn measurement(stage: &Stage) -> Measurement {
    let period = Period { first: FIRST, last: FIRST + SECONDS - 1 };
    let hog = |period: Period| MemHogMeasurement {
        base_period: Period { first: FIRST, last: FIRST + 2 },
        base_rps: 1000.0,
        runs: vec![HogRun { period: Period { first: FIRST + 3, ..period }, failure: None }],
        memory: Some(memory()),
    };
    let footprint = |vrate: f64| Bytes((11.0 * f64::from(1 << 30) * (1.0 + vrate / 250.0)) as u64);
    match &stage.definition.work {
        Work::IocostParams => Measurement::IocostParams(iocost()),
        Work::HashdParams(_) => Measurement::HashdParams(hashd()),
        Work::Storage(work) => Measurement::Storage(StorageMeasurement {
            period,
            final_periods: vec![Period { first: FIRST + 5, ..period }],
            memory: memory(),
            hashd: hashd(),
            usages: vec![Bytes(11 << 30); work.loops as usize],
            sizes: vec![footprint(vrate(stage)); work.loops as usize],
            largest: Some(Bytes(48 << 30)),
        }),
        Work::MemHog(_) => Measurement::MemHog(hog(period)),
        Work::MemHogTune(tune) => Measurement::MemHogTune(MemHogTuneMeasurement {
            protected: (vrate(stage) < 110.0).then(|| FootprintProbe { size: tune.size_max, run: hog(period) }),
            last_failed: (vrate(stage) >= 110.0).then(|| FootprintProbe { size: tune.size_min, run: hog(period) }),
            failures: Vec::new(),
        }),
    }
}

/// The text of each result file of a run.
pub(crate) fn result_texts(run: &Path) -> Vec<(String, String)> {
    let run = RunFolder::open(run).unwrap();
    let files = wb_contention::execute::result_files(&run).unwrap();
    files.into_iter().map(|(instance, path)| (instance.to_string(), std::fs::read_to_string(path).unwrap())).collect()
}
