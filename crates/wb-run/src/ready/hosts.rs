//! Hosts set up by a script, and rebooted after it where that was asked for.

use std::path::Path;
use std::time::Instant;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use wb_fleet::{Host, Options, Program};
use wb_model::{Nanos, WorkerName};
use wb_profile::reboot::{RebootError, reboot};
use wb_profile::script::Script;
use wb_record::Event;
use wb_record::steps::{RebootEnded, ScriptKind, StepOutcome};

use super::{Steps, Tell, Told, leave_out};
use crate::{Crew, Member, RunError};

/// How hosts are set up.
pub struct HostSetup<'a> {
    /// The script.
    pub script: &'a Script,
    /// How long it may take.
    pub limit: Nanos,
    /// Whether the host reboots after it, and how long that may take.
    pub reboot: Option<Nanos>,
}

/// The ways to hosts, to go once more.
pub struct Ways<'a> {
    /// The hosts, by the names of their workers.
    pub hosts: &'a [Host],
    /// The program that is their agent.
    pub program: &'a Program,
    /// How they are connected to.
    pub options: &'a Options,
}

/// Runs the script on all hosts where it has not run in the boot that they are in, and reboots those that shall. Those where
/// it fails, or that do not come back, leave the crew.
///
/// # Errors
/// When nothing can be recorded.
pub async fn set_up_hosts(
    folder: &Path,
    setup: &HostSetup<'_>,
    ways: &Ways<'_>,
    crew: &mut Crew,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    let mut steps = Steps::open(folder)?;
    steps.run_script(ScriptKind::HostSetup, setup.script, setup.limit, crew, tell).await?;
    match setup.reboot {
        Some(limit) => steps.reboot(setup, limit, ways, crew, tell).await,
        None => Ok(()),
    }
}

/// A reboot that came to its end.
struct Back {
    worker: WorkerName,
    from: String,
    result: Result<Member, RebootError>,
    seconds: f64,
}

impl Steps {
    /// Reboots the hosts that are in the boot in which the script ran.
    async fn reboot(
        &mut self,
        setup: &HostSetup<'_>,
        limit: Nanos,
        ways: &Ways<'_>,
        crew: &mut Crew,
        tell: Tell<'_>,
    ) -> Result<(), RunError> {
        let sha256 = setup.script.sha256();
        let due = |member: &&Member| {
            let (worker, boot) = (member.worker.name(), &member.facts.boot_id);
            self.ran_in(ScriptKind::HostSetup, worker, &sha256, boot) == Some(boot)
        };
        let due: Vec<Member> = crew.members.iter().filter(due).cloned().collect();
        let mut running = FuturesUnordered::new();
        for member in due {
            let (worker, from) = (member.worker.name().clone(), member.facts.boot_id.clone());
            let Some(host) = ways.hosts.iter().find(|host| host.name == worker) else { continue };
            self.write(Event::RebootStarted { worker: worker.clone(), boot_id: from.clone() })?;
            tell(Told::Note(format!("`{worker}` reboots")));
            running.push(async move {
                let start = Instant::now();
                let result = again(member, host, &from, limit, ways).await;
                Back { worker, from, result, seconds: start.elapsed().as_secs_f64() }
            });
        }
        while let Some(Back { worker, from, result, seconds }) = running.next().await {
            self.write(Event::RebootEnded(RebootEnded {
                worker: worker.clone(),
                boot_id: from,
                next_boot_id: result.as_ref().ok().map(|member| member.facts.boot_id.clone()),
                outcome: StepOutcome::of(&result),
                seconds,
            }))?;
            match result {
                Ok(back) => {
                    tell(Told::Note(format!("`{worker}` is back after {seconds:.0} s")));
                    crew.members.iter_mut().filter(|it| it.worker.name() == &worker).for_each(|it| *it = back.clone());
                }
                Err(error) => leave_out(crew, &worker, &error.to_string(), error.help(), tell),
            }
        }
        Ok(())
    }
}

/// The same member after a reboot of its host.
async fn again(member: Member, host: &Host, boot: &str, limit: Nanos, ways: &Ways<'_>) -> Result<Member, RebootError> {
    let Member { worker, address, .. } = member;
    let connected = reboot(worker, boot, host, ways.program, ways.options, limit).await?;
    Ok(Member { address, ..Member::of(connected.worker).await? })
}
