//! One attempt at a sample: made on the worker, and on the device before anything else happens.

use std::fs;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;
use wb_agent::{Command, Worker};
use wb_model::{AttemptOutcome, Facts, Found, Nanos, Purpose, Scope};
use wb_plan::Sampling;
use wb_record::journal::Ended;
use wb_record::{Artefact, Event, History, Journal, RecordError, RunFolder};
use wb_study::Studied;
use wb_sys::telemetry::Thresholds;
use wb_tests::attempt::{Record, lost};
use wb_tests::test::knobs_of;
use wb_tests::{Attempt, Failure, Site};

use crate::RunError;
use crate::cells::Measuring;
use crate::tools::Running;

/// What attempts are made with.
pub struct Bench {
    /// Where.
    pub worker: Worker,
    /// What that is.
    pub facts: Arc<Facts>,
    /// How samples are taken.
    pub sampling: Sampling,
    /// Becomes true when the user wants to end.
    pub cancel: watch::Receiver<bool>,
    /// Where everything is recorded.
    pub run: RunFolder,
    /// The journal of that.
    pub journal: Journal,
    /// What the journal adds up to.
    pub history: History,
}

/// What the processes of a cell find.
fn found(cell: &Measuring) -> Result<Found, Failure> {
    let env = cell.surroundings.variables().map_err(Failure::refused)?;
    Ok(Found { env, programs: cell.cell.programs.clone() })
}

/// Sets the cell's knobs until the site's group is torn down, and runs what is to be run before each attempt: where and
/// how the system places it, since it is not measured.
async fn made_ready(cell: &Measuring, site: &Site) -> Result<(), Failure> {
    let knobs = knobs_of(&cell.cell.params);
    if !knobs.is_empty() {
        site.group.tune(knobs).await.map_err(lost)?;
    }
    let Some(line) = &cell.surroundings.before else { return Ok(()) };
    site.succeed(Command::new(["sh", "-c", line])).await.map(drop)
}

/// How a sample was taken.
struct Taken {
    result: Result<(), Failure>,
    record: Record,
    disturbances: Vec<String>,
}

impl Bench {
    /// Makes an attempt and records it.
    pub async fn attempt(&mut self, cell: &mut Measuring, purpose: Purpose, sample: u32) -> Result<(), RunError> {
        let id = cell.cell.id.clone();
        let number = self.history.next_attempt(&id, purpose, sample);
        let folder = self.run.path().join(RunFolder::attempt(&id, purpose, sample, number));
        let create = |source| RecordError::Io { what: "create", path: folder.clone(), source };
        fs::create_dir_all(&folder).map_err(create)?;
        let key = cell.definition.key.clone();
        self.write(Event::AttemptStarted { cell: id.clone(), key: key.clone(), purpose, sample, attempt: number })?;

        let start = Instant::now();
        let Taken { result, record, disturbances } = self.take(cell, purpose, sample).await?;
        let seconds = start.elapsed().as_secs_f64();

        let write = |(path, bytes): &(String, Vec<u8>)| Artefact::write(&folder, path, bytes);
        let artefacts = record.artefacts.iter().map(write).collect::<Result<_, _>>()?;
        self.write(Event::AttemptEnded(Ended {
            cell: id.clone(),
            key,
            purpose,
            sample,
            attempt: number,
            outcome: result.map_or_else(|failure| failure.outcome(), |()| AttemptOutcome::Completed),
            seconds,
            workload_seconds: record.workload_seconds,
            work: record.work,
            disturbances,
            findings: record.findings,
            artefacts,
        }))?;
        let ended = self.history.attempts(&id).last().cloned();
        cell.studied_add(ended);
        Ok(())
    }

    /// Writes an event and adds it to the history.
    pub fn write(&mut self, event: Event) -> Result<(), RunError> {
        let line = self.journal.write(event)?;
        self.history.add(&self.run, &line, false);
        Ok(())
    }

    /// Takes a sample on the worker. Whatever happens, nothing that it started is left there.
    async fn take(&self, cell: &mut Measuring, purpose: Purpose, sample: u32) -> Result<Taken, RunError> {
        let site = match self.site(cell).await {
            Ok(site) => site,
            Err(failure) => {
                return Ok(Taken { result: Err(failure), record: Record::default(), disturbances: Vec::new() });
            }
        };
        if let Err(failure) = made_ready(cell, &site).await {
            let _ = site.group.teardown().await;
            return Ok(Taken { result: Err(failure), record: Record::default(), disturbances: Vec::new() });
        }
        let mut attempt = Attempt::new(site, purpose, sample, self.sampling.min_time, cell.work());
        let result = self.prepared_sample(cell, &mut attempt).await;
        let (site, mut record) = attempt.into_parts();
        let teardown = site.group.teardown().await;
        if let Ok(teardown) = &teardown
            && !teardown.left.is_empty()
        {
            record.findings.push(format!("processes that not even SIGKILL ends: {:?}", teardown.left));
        }
        let result = result.and_then(|disturbances| teardown.map(|_| disturbances).map_err(lost));
        Ok(match result {
            Ok(disturbances) => Taken { result: Ok(()), record, disturbances },
            Err(failure) => Taken { result: Err(failure), record, disturbances: Vec::new() },
        })
    }

    async fn site(&self, cell: &Measuring) -> Result<Site, Failure> {
        let estimate = cell.cell.estimate;
        Ok(Site {
            group: self.worker.group_with(found(cell)?).await.map_err(lost)?,
            facts: self.facts.clone(),
            placement: cell.placement.clone(),
            limit: self.sampling.limit(Nanos(estimate.0.max(self.sampling.min_time.0))),
            cancel: self.cancel.clone(),
        })
    }

    /// Prepares as the test's scope wants, samples, and takes down what does not outlive the sample.
    async fn prepared_sample(&self, cell: &mut Measuring, attempt: &mut Attempt) -> Result<Vec<String>, Failure> {
        let (test, params) = (cell.test.clone(), cell.cell.params.clone());
        match cell.cell.scope {
            Scope::Sample => {
                let mut prepared = test.prepare(&params, &attempt.site).await?;
                let sampled = self.sample(cell, &mut prepared, attempt).await;
                let cleaned = test.cleanup(&params, prepared, &attempt.site).await;
                let disturbances = sampled?;
                cleaned?;
                Ok(disturbances)
            }
            Scope::Cell => {
                let (site, mut prepared) = match cell.prepared.take() {
                    Some(prepared) => prepared,
                    None => {
                        let site = self.site(cell).await?;
                        let prepared = test.prepare(&params, &site).await?;
                        (site, prepared)
                    }
                };
                let sampled = self.sample(cell, &mut prepared, attempt).await;
                if sampled.is_ok() {
                    cell.prepared = Some((site, prepared));
                } else {
                    // What failed may have left it broken: the next attempt prepares anew.
                    let _ = test.cleanup(&params, prepared, &site).await;
                    let _ = site.group.teardown().await;
                }
                sampled
            }
        }
    }

    /// Takes the sample itself, with user tools and telemetry around it; what disturbed it.
    async fn sample(
        &self,
        cell: &Measuring,
        prepared: &mut wb_tests::test::AnyPrepared,
        attempt: &mut Attempt,
    ) -> Result<Vec<String>, Failure> {
        let tools = Running::start(&self.worker, &cell.cell.tools).await?;
        let recording = attempt.site.group.record(self.sampling.telemetry_interval).await.map_err(lost)?;
        let sampled = cell.test.sample(&cell.cell.params, prepared, attempt).await;
        let telemetry = recording.finish().await.map_err(lost);
        if let Some(tools) = tools {
            tools.finish_into(attempt).await?;
        }
        let telemetry = telemetry?;
        attempt.keep("telemetry.json", serde_json::to_vec(&telemetry).unwrap_or_default());
        let disturbance = telemetry.disturbance(&Thresholds::default());
        for finding in &disturbance.findings {
            attempt.noticed(finding.to_string());
        }
        sampled?;
        Ok(disturbance.marks.iter().map(ToString::to_string).collect())
    }

    /// Takes down what a cell's test prepared for all its samples.
    pub async fn clean_up(&self, cell: &mut Measuring) -> Result<(), Failure> {
        let Some((site, prepared)) = cell.prepared.take() else { return Ok(()) };
        let cleaned = cell.test.cleanup(&cell.cell.params, prepared, &site).await;
        site.group.teardown().await.map_err(lost)?;
        cleaned
    }
}

impl Measuring {
    fn studied_add(&mut self, ended: Option<wb_record::Attempt>) {
        if let Some(attempt) = ended {
            let studied = Studied::of(self.test.as_ref(), &self.cell.params, attempt);
            self.add(studied);
        }
    }
}
