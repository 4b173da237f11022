//! Measures the stages of contention benches on a worker.
//!
//! ```text
//! Stage ─▶ preparation ─▶ PreparedWorker ─▶ iocost_params, hashd_params, storage, protection ─▶ Measurement
//!                                                 │                  │
//!                                            checkpoints      observer: a report per second
//! ```
//!
//! What is measured and how is in `wb_contention_worker`, what a sequence is in `wb_contention`; this module connects
//! them. Start with [`WorkerRunners`].

mod checkpoint;
mod dependencies;
mod failure;
mod hashd_params;
mod iocost_params;
mod memory;
mod observer;
mod preparation;
mod protection;
mod sizing;
mod storage;
#[cfg(test)]
mod test_stage;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests;

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;

use async_trait::async_trait;
use tokio::sync::{OnceCell, watch};
use wb_agent::{Worker, WorkerError};
use wb_contention::execute::SequenceRequest;
use wb_contention::measurement::Measurement;
use wb_contention::runner::{Runners, StageContext, StageError, StageFailure, StageRunner};
use wb_contention::stage::{Stage, Work};
use wb_contention::vrate_bounds;
use wb_contention_worker::{ContentionError, PreparedWorker, system, vrate};
use wb_model::{Bytes, Nanos};
use wb_results::contention::{Bench, TimeScale};
use wb_sys::clock::suspended_time;

pub use self::dependencies::{Dependency, DependencyState, dependencies};
use self::failure::{failure, names, worker_failure};
use crate::error::SessionError;
use crate::measure::cancel_on_signals;
use crate::worker_program::worker_program;

/// What all stages of a sequence are measured with.
#[derive(Debug, Clone)]
struct ContentionOptions {
    /// This program, whose `agent` and `exec` are started.
    program: PathBuf,
    /// Folder of files, on the device.
    dir: PathBuf,
    device: String,
    /// Available memory, if the user knows it.
    mem_avail: Option<Bytes>,
    swappiness: u32,
    force: bool,
    iocost_from_sys: bool,
    seed: u64,
}

/// Runners of every kind of stage on this machine. Its agent is started for the first stage.
pub struct WorkerRunners(Rc<ContentionSession>);

struct ContentionSession {
    options: ContentionOptions,
    worker: OnceCell<Worker>,
    /// Available memory, once it is determined.
    mem_avail: Cell<Option<Bytes>>,
    /// Whether the user has interrupted the sequence, from the first stage on.
    cancelled: std::cell::OnceCell<watch::Receiver<bool>>,
}

impl WorkerRunners {
    pub fn local(request: &SequenceRequest) -> Result<Self, SessionError> {
        let dir = &request.options.dir;
        let options = ContentionOptions {
            program: worker_program()?,
            dir: std::path::absolute(dir).map_err(SessionError::file("locate", dir))?,
            device: request.system.device.name.clone(),
            mem_avail: request.options.mem_avail,
            swappiness: request.options.swappiness,
            force: request.options.force,
            iocost_from_sys: request.options.iocost_from_sys,
            seed: request.seed,
        };
        Ok(Self(Rc::new(ContentionSession {
            options,
            worker: OnceCell::new(),
            mem_avail: Cell::new(None),
            cancelled: std::cell::OnceCell::new(),
        })))
    }

    /// Ends the agent, and waits until it has restored the machine.
    pub async fn close(self) -> Result<(), WorkerError> {
        match Rc::into_inner(self.0).and_then(|session| session.worker.into_inner()) {
            Some(worker) => worker.close().await,
            None => Ok(()),
        }
    }
}

impl Runners for WorkerRunners {
    fn runner_for(&mut self, bench: Bench) -> Option<Box<dyn StageRunner>> {
        match bench {
            Bench::IocostParams | Bench::HashdParams | Bench::Storage | Bench::Protection => {
                Some(Box::new(WorkerRunner(self.0.clone())))
            }
            // The first is `storage` and `protection` under each setting, the second follows from it.
            Bench::IocostQos | Bench::IocostTune => None,
        }
    }
}

struct WorkerRunner(Rc<ContentionSession>);

#[async_trait(?Send)]
impl StageRunner for WorkerRunner {
    async fn run(&mut self, stage: &Stage, context: &mut StageContext<'_>) -> Result<Measurement, StageError> {
        let mut cancelled = self.0.cancelled.get_or_init(cancel_on_signals).clone();
        let before = suspended_time();
        let measured = tokio::select! {
            measured = self.0.measure(stage, context) => measured,
            _ = cancelled.changed() => return Err(StageFailure::Cancelled.into()),
        };
        match suspended_time().saturating_sub(before).as_secs() {
            0 => measured,
            seconds => Err(StageFailure::Suspended { seconds }.into()),
        }
    }
}

impl ContentionSession {
    async fn measure(&self, stage: &Stage, context: &mut StageContext<'_>) -> Result<Measurement, StageError> {
        match &stage.definition.work {
            Work::IocostParams => iocost_params::measure(self, stage, context).await,
            Work::HashdParams(work) => hashd_params::measure(self, stage, work, context).await,
            Work::Storage(work) => storage::measure(self, stage, work, context).await,
            Work::MemHog(hog) => protection::measure(self, stage, hog, context).await,
            Work::MemHogTune(tune) => protection::tune(self, stage, tune, context).await,
        }
    }

    async fn worker(&self) -> Result<&Worker, StageError> {
        let start = async || Worker::local(&self.options.program).await;
        self.worker.get_or_try_init(start).await.map_err(|error| worker_failure(&error))
    }

    /// Prepares the worker for a stage, and records the requirements that it does not meet.
    async fn prepare(
        &self,
        stage: &Stage,
        protected: Option<Bytes>,
        context: &mut StageContext<'_>,
    ) -> Result<PreparedWorker, StageError> {
        let worker = self.worker().await?;
        let dir = &self.options.dir;
        std::fs::create_dir_all(dir)
            .map_err(|error| StageFailure::Machine { reason: format!("{}: {error}", dir.display()) })?;
        let preparation = preparation::preparation(stage, &self.options, protected)?;
        let prepared = PreparedWorker::new(worker, &preparation).await.map_err(|error| self.failure(error))?;
        let unmet = names(prepared.requirements());
        if !unmet.is_empty() {
            context.record_unmet_requirements(unmet)?;
        }
        Ok(prepared)
    }

    /// Waits until the vrate is within the bounds of a stage, before anything is measured.
    async fn settle_vrate(&self, prepared: &PreparedWorker, stage: &Stage) -> Result<(), StageError> {
        let Some(expected) = stage.iocost().filter(|_| prepared.enforcement().io) else { return Ok(()) };
        vrate::settle(prepared, &vrate_bounds(expected.qos)).await.map_err(|error| self.failure(error))
    }

    /// Restores the machine after a measurement. If both fail, returns the failure of the measurement.
    async fn finish<T>(
        &self,
        prepared: PreparedWorker,
        stage: &Stage,
        measured: Result<T, StageError>,
    ) -> Result<T, StageError> {
        let unchanged = self.require_iocost(&prepared, stage).await;
        let restored = prepared.finish().await;
        let measured = measured?;
        unchanged?;
        restored.map_err(|error| self.failure(error))?;
        Ok(measured)
    }

    /// Fails if io.cost has other parameters than those of the stage: another program has changed them.
    async fn require_iocost(&self, prepared: &PreparedWorker, stage: &Stage) -> Result<(), StageError> {
        let Some(expected) = stage.iocost().filter(|_| prepared.enforcement().io) else { return Ok(()) };
        let state = system::iocost_state(prepared.worker(), prepared.device()).await;
        let state = state.map_err(|error| self.failure(error))?;
        let found = state.filter(|state| state.enabled).map(|state| state.qos.to_string());
        if found == Some(expected.qos.to_string()) {
            return Ok(());
        }
        Err(StageFailure::IocostInUse { device: self.options.device.clone() }.into())
    }

    fn failure(&self, error: ContentionError) -> StageError {
        failure(error, &self.options.device)
    }
}

/// A duration, shortened for a trial.
fn scaled(duration: Nanos, scale: Option<TimeScale>) -> Nanos {
    Nanos((duration.0 as f64 * scale.map_or(1.0, TimeScale::factor)) as u64)
}
