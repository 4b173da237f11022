//! Sets up hosts by a script, and reboots them if requested.

use std::path::Path;
use std::time::Instant;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use wb_fleet::{ConnectOptions, Host, Program, connect};
use wb_model::{Nanos, WorkerName};
use wb_profile::boot::{Boot, CommandLine};
use wb_profile::reboot::{RebootError, reboot};
use wb_profile::script::Script;
use wb_record::JournalEvent;
use wb_record::steps::{RebootStep, ScriptKind, StepOutcome};

use super::{SetupEvent, SetupObserver, StepJournal, exclude_worker};
use crate::{PooledWorker, RunError, WorkerPool};

pub struct HostSetup<'a> {
    pub script: &'a Script,
    /// Time limit of the script.
    pub limit: Nanos,
    /// Time limit of a reboot after the script; none without a reboot.
    pub reboot: Option<Nanos>,
}

/// How to connect to hosts again after a reboot. Not needed where only the machine of the controller measures.
pub struct ConnectContext<'a> {
    /// The hosts, by the names of their workers.
    pub hosts: &'a [Host],
    /// The program to deploy as their agent.
    pub program: &'a Program,
    pub options: &'a ConnectOptions,
}

/// The host of a worker, with how to connect to it; `None` for the machine of the controller.
fn find_host<'a>(
    context: Option<&'a ConnectContext<'a>>,
    worker: &WorkerName,
) -> Option<(&'a Host, &'a ConnectContext<'a>)> {
    let context = context?;
    context.hosts.iter().find(|host| host.name == *worker).map(|host| (host, context))
}

/// Runs the script on all hosts where it has not run in the current boot, and reboots them if requested. Hosts where it
/// fails, or that do not come back, are removed from the pool.
pub async fn set_up_hosts(
    folder: &Path,
    setup: &HostSetup<'_>,
    context: Option<&ConnectContext<'_>>,
    pool: &mut WorkerPool,
    report: SetupObserver<'_>,
) -> Result<(), RunError> {
    let mut steps = StepJournal::open(folder)?;
    steps.run_script(ScriptKind::HostSetup, setup.script, setup.limit, pool, report).await?;
    let Some(limit) = setup.reboot else { return Ok(()) };
    let sha256 = setup.script.sha256();
    let is_due = |member: &&PooledWorker| {
        let (worker, boot) = (member.worker.name(), &member.facts.boot_id);
        steps.completed_boot(ScriptKind::HostSetup, worker, &sha256, boot) == Some(boot)
    };
    let due = pool.workers.iter().filter(is_due).map(|member| (member.clone(), Boot::Default)).collect();
    steps.reboot(due, limit, context, pool, report).await
}

/// Makes the kernels of all hosts run with exactly these arguments in addition to their own, rebooting where necessary.
/// Hosts where that fails are removed from the pool.
pub async fn apply_kernel_arguments(
    folder: &Path,
    arguments: &[String],
    limit: Nanos,
    context: Option<&ConnectContext<'_>>,
    pool: &mut WorkerPool,
    report: SetupObserver<'_>,
) -> Result<(), RunError> {
    let mut due = Vec::new();
    for mut member in pool.workers.clone() {
        let name = &member.worker.name().clone();
        let host = find_host(context, name);
        let mut command_line = CommandLine::read(&member.worker).await;
        // If the agent was lost, connect again; if that fails, its loss is the reason that is reported.
        if let (Err(_), Some((host, context))) = (&command_line, host)
            && let Ok(next) = connect(host, context.program, context.options).await
            && let Ok(next) = PooledWorker::with_facts(next.worker).await
        {
            member = PooledWorker { address: member.address, ..next };
            replace_worker(pool, &member);
            command_line = CommandLine::read(&member.worker).await;
        }
        match command_line {
            Ok(line) => match line.required_boot(arguments) {
                Some(next) if host.is_some() => due.push((member, next)),
                Some(Boot::Kexec(_)) => {
                    exclude_worker(pool, name, LOCAL_REBOOT_REASON, Some(LOCAL_REBOOT_HELP.to_owned()), report)
                }
                Some(Boot::Default) => report(SetupEvent::Progress(format!(
                    "note: this machine keeps kernel parameters that a run from another machine added, until its next \
                     reboot: {}",
                    line.added().join(" ")
                ))),
                None => {}
            },
            Err(error) => exclude_worker(pool, name, &error.to_string(), None, report),
        }
    }
    if due.is_empty() { Ok(()) } else { StepJournal::open(folder)?.reboot(due, limit, context, pool, report).await }
}

const LOCAL_REBOOT_REASON: &str = "changing kernel parameters requires a reboot, which would end a run on this machine";
const LOCAL_REBOOT_HELP: &str = "name other hosts with --hosts, and start the run from a machine that is not measured";

struct RebootResult {
    worker: WorkerName,
    from: String,
    result: Result<PooledWorker, RebootError>,
    seconds: f64,
}

impl StepJournal {
    /// Reboots hosts concurrently.
    async fn reboot(
        &mut self,
        due: Vec<(PooledWorker, Boot)>,
        limit: Nanos,
        context: Option<&ConnectContext<'_>>,
        pool: &mut WorkerPool,
        report: SetupObserver<'_>,
    ) -> Result<(), RunError> {
        let mut running = FuturesUnordered::new();
        for (member, next) in due {
            let (worker, from) = (member.worker.name().clone(), member.facts.boot_id.clone());
            let Some((host, context)) = find_host(context, &worker) else {
                report(SetupEvent::Progress(format!("note: `{worker}` is not rebooted: that would end this run")));
                continue;
            };
            let command_line = if let Boot::Kexec(line) = &next { Some(line.clone()) } else { None };
            let suffix =
                command_line.as_ref().map(|line| format!(" with the kernel command line `{line}`")).unwrap_or_default();
            report(SetupEvent::Progress(format!("`{worker}` reboots{suffix}")));
            self.write(JournalEvent::RebootStarted { worker: worker.clone(), boot_id: from.clone(), command_line })?;
            running.push(async move {
                let start = Instant::now();
                let result = reboot_worker(member, host, &from, &next, limit, context).await;
                RebootResult { worker, from, result, seconds: start.elapsed().as_secs_f64() }
            });
        }
        while let Some(RebootResult { worker, from, result, seconds }) = running.next().await {
            self.write(JournalEvent::RebootEnded(RebootStep {
                worker: worker.clone(),
                boot_id: from,
                next_boot_id: result.as_ref().ok().map(|member| member.facts.boot_id.clone()),
                outcome: StepOutcome::from_result(&result),
                seconds,
            }))?;
            match result {
                Ok(rebooted) => {
                    report(SetupEvent::Progress(format!("`{worker}` is back after {seconds:.0} s")));
                    replace_worker(pool, &rebooted);
                }
                Err(error) => exclude_worker(pool, &worker, &error.to_string(), error.help(), report),
            }
        }
        Ok(())
    }
}

/// Puts a worker that was connected again in the place of the lost one.
fn replace_worker(pool: &mut WorkerPool, next: &PooledWorker) {
    let lost = pool.workers.iter_mut().filter(|member| member.worker.name() == next.worker.name());
    lost.for_each(|member| *member = next.clone());
}

/// Reboots the host of a worker and connects to it again.
async fn reboot_worker(
    member: PooledWorker,
    host: &Host,
    boot: &str,
    next: &Boot,
    limit: Nanos,
    context: &ConnectContext<'_>,
) -> Result<PooledWorker, RebootError> {
    let PooledWorker { worker, address, .. } = member;
    let connected = reboot(worker, boot, next, host, context.program, context.options, limit).await?;
    Ok(PooledWorker { address, ..PooledWorker::with_facts(connected.worker).await? })
}
