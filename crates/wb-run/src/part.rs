//! One team's part in a sample: taken on its workers, whatever happens on others.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::watch;
use wb_agent::{Command, Recorded, Recording};
use wb_model::{Bytes, Found, Nanos, Purpose, Scope, Team, WorkerName};
use wb_plan::Sampling;
use wb_sys::telemetry::Thresholds;
use wb_tests::attempt::{Record, lost};
use wb_tests::meeting::Seat;
use wb_tests::test::{AnyPrepared, knobs_of};
use wb_tests::{Attempt, Failure, Site};

use crate::cells::Measuring;
use crate::crew::{Crew, Member};
use crate::other_runs;
use crate::tools::Running;

/// What a team prepared for all samples of a cell, and where that lives.
pub(crate) type Prepared = Option<(Site, AnyPrepared)>;

/// With what parts are taken.
#[derive(Clone, Copy)]
pub(crate) struct Means<'a> {
    pub(crate) crew: &'a Crew,
    pub(crate) sampling: &'a Sampling,
    pub(crate) cancel: &'a watch::Receiver<bool>,
    /// How much more standard output each part may record.
    pub(crate) stdout_room: Bytes,
}

/// What was seen around a sample.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) disturbances: Vec<String>,
    /// Other runs that were under way, by machine.
    pub(crate) other_runs: BTreeSet<(WorkerName, wb_agent::Holder)>,
}

/// A part that was taken.
pub(crate) struct Part {
    pub(crate) result: Result<(), Failure>,
    pub(crate) record: Record,
    pub(crate) seen: Seen,
    pub(crate) prepared: Prepared,
}

impl Part {
    fn failed(failure: Failure, prepared: Prepared) -> Self {
        Self { result: Err(failure), record: Record::default(), seen: Seen::default(), prepared }
    }
}

/// Which sample of a cell.
#[derive(Clone, Copy)]
pub(crate) struct Which {
    pub(crate) purpose: Purpose,
    pub(crate) sample: u32,
    /// The work that the team did before.
    pub(crate) work: Option<u64>,
}

impl Means<'_> {
    /// Takes a team's part. Whatever happens, nothing that it started is left on its workers.
    pub(crate) async fn part(
        self,
        cell: &Measuring,
        team: &Team,
        seat: Option<Seat>,
        which: Which,
        prepared: Prepared,
    ) -> Part {
        let site = match self.site(cell, team, seat).await {
            Ok(site) => site,
            Err(failure) => return Part::failed(failure, prepared),
        };
        if let Err(failure) = made_ready(cell, &site).await {
            let _ = torn_down(site).await;
            return Part::failed(failure, prepared);
        }
        let mut attempt = Attempt::new(site, which.purpose, which.sample, self.sampling.min_time, which.work);
        attempt.stdout_room = self.stdout_room;
        let (result, prepared) = self.prepared_sample(cell, team, &mut attempt, prepared).await;
        let (site, mut record) = attempt.into_parts();
        let result = match torn_down(site).await {
            Ok(findings) => {
                record.findings.extend(findings);
                result
            }
            Err(failure) => result.and(Err(failure)),
        };
        match result {
            Ok(seen) => Part { result: Ok(()), record, seen, prepared },
            Err(failure) => Part { result: Err(failure), record, seen: Seen::default(), prepared },
        }
    }

    /// Takes down what was prepared for all samples of a cell.
    pub(crate) async fn clean_up(self, cell: &Measuring, prepared: Prepared) -> Result<(), Failure> {
        let Some((site, prepared)) = prepared else { return Ok(()) };
        let cleaned = cell.test.cleanup(&cell.cell.params, prepared, &site).await;
        torn_down(site).await?;
        cleaned
    }

    /// The site of a team: with its servers' workers, where these are others.
    async fn site(self, cell: &Measuring, team: &Team, seat: Option<Seat>) -> Result<Site, Failure> {
        let mut others = Vec::new();
        for other in team.others() {
            others.push(self.one(cell, team, other).await?);
        }
        Ok(Site { others, seat, ..self.one(cell, team, &team.worker).await? })
    }

    async fn one(self, cell: &Measuring, team: &Team, name: &WorkerName) -> Result<Site, Failure> {
        let gone = || Failure::refused(format!("there is no worker `{name}`"));
        let Member { worker, facts, address } = self.crew.get(name).ok_or_else(gone)?;
        let group = worker.group_with(found(cell)?).await.map_err(lost)?;
        let limit = self.sampling.limit(Nanos(cell.cell.estimate.0.max(self.sampling.min_time.0)));
        let site = Site::new(group, Arc::clone(facts), cell.placement.clone(), limit, self.cancel.clone());
        Ok(Site { team: team.clone(), address: address.clone(), ..site })
    }

    /// Prepares as the test's scope wants, samples, and takes down what does not outlive the sample.
    async fn prepared_sample(
        self,
        cell: &Measuring,
        team: &Team,
        attempt: &mut Attempt,
        kept: Prepared,
    ) -> (Result<Seen, Failure>, Prepared) {
        let (test, params) = (&cell.test, &cell.cell.params);
        if cell.cell.scope == Scope::Sample {
            let sampled = async {
                let mut prepared = test.prepare(params, &attempt.site).await?;
                let sampled = self.sample(cell, &mut prepared, attempt).await;
                let cleaned = test.cleanup(params, prepared, &attempt.site).await;
                sampled.and_then(|seen| cleaned.map(|()| seen))
            };
            return (sampled.await, None);
        }
        let fresh = async {
            let site = self.site(cell, team, None).await?;
            let prepared = test.prepare(params, &site).await?;
            Ok((site, prepared))
        };
        let (site, mut prepared) = match kept {
            Some(kept) => kept,
            None => match fresh.await {
                Ok(fresh) => fresh,
                Err(failure) => return (Err(failure), None),
            },
        };
        let sampled = self.sample(cell, &mut prepared, attempt).await;
        if sampled.is_ok() {
            return (sampled, Some((site, prepared)));
        }
        // What failed may have left it broken: the next attempt prepares anew.
        let _ = self.clean_up(cell, Some((site, prepared))).await;
        (sampled, None)
    }

    /// Takes the sample itself, with user tools and telemetry around it on all workers of the team; what was seen of it.
    async fn sample(
        self,
        cell: &Measuring,
        prepared: &mut AnyPrepared,
        attempt: &mut Attempt,
    ) -> Result<Seen, Failure> {
        let interval = self.sampling.telemetry_interval;
        let tools = Running::start(attempt.site.worker(), &cell.cell.tools).await?;
        let mut recordings: Vec<(WorkerName, Recording)> = Vec::new();
        for site in std::iter::once(&attempt.site).chain(&attempt.site.others) {
            recordings.push((site.worker().name().clone(), site.group.record(interval).await.map_err(lost)?));
        }
        let sampled = cell.test.sample(&cell.cell.params, prepared, attempt).await;
        let mut finished = Vec::new();
        for (name, recording) in recordings {
            finished.push((name, recording.finish().await.map_err(lost)));
        }
        if let Some(tools) = tools {
            tools.finish_into(attempt).await?;
        }
        let mut seen = Seen::default();
        for (at, (worker, recorded)) in finished.into_iter().enumerate() {
            let recorded = recorded?;
            let elsewhere = (at > 0).then_some(&worker);
            seen.disturbances.extend(keep(attempt, elsewhere, &recorded));
            seen.other_runs.extend(recorded.other_runs.into_iter().map(|run| (worker.clone(), run)));
        }
        sampled.map(|()| seen)
    }
}

/// Records what was watched, of another worker under its name; what disturbed the sample.
fn keep(attempt: &mut Attempt, other: Option<&WorkerName>, recorded: &Recorded) -> Vec<String> {
    let Recorded { telemetry, other_runs } = recorded;
    let file = other.map_or("telemetry.json".to_owned(), |name| format!("telemetry@{name}.json"));
    attempt.keep(&file, serde_json::to_vec(telemetry).unwrap_or_default());
    let told = |text: String| other.map_or(text.clone(), |name| format!("{name}: {text}"));
    for run in other_runs {
        attempt.noticed(told(other_runs::finding(run)));
    }
    let disturbance = telemetry.disturbance(&Thresholds::default());
    for finding in &disturbance.findings {
        attempt.noticed(told(finding.to_string()));
    }
    disturbance.marks.iter().map(|mark| told(mark.to_string())).collect()
}

/// What the processes of a cell find.
fn found(cell: &Measuring) -> Result<Found, Failure> {
    let env = cell.surroundings.variables().map_err(Failure::refused)?;
    Ok(Found { env, programs: cell.cell.programs.clone() })
}

/// Sets the cell's knobs until the site's groups are torn down, and runs what is to be run before each attempt: where and
/// how the system places it, since it is not measured.
async fn made_ready(cell: &Measuring, site: &Site) -> Result<(), Failure> {
    let knobs = knobs_of(&cell.cell.params);
    for site in std::iter::once(site).chain(&site.others) {
        if !knobs.is_empty() {
            site.group.tune(knobs.clone()).await.map_err(lost)?;
        }
        if let Some(line) = &cell.surroundings.before {
            site.succeed(Command::new(["sh", "-c", line])).await?;
        }
    }
    Ok(())
}

/// Ends all that runs on a site; what is to be told of that.
async fn torn_down(site: Site) -> Result<Vec<String>, Failure> {
    let mut findings = Vec::new();
    let mut failure = None;
    for group in std::iter::once(site.group).chain(site.others.into_iter().map(|other| other.group)) {
        match group.teardown().await {
            Ok(teardown) if teardown.left.is_empty() => {}
            Ok(teardown) => findings.push(format!("processes that not even SIGKILL ends: {:?}", teardown.left)),
            Err(error) => failure = Some(lost(error)),
        }
    }
    failure.map_or(Ok(findings), Err)
}
