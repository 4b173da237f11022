//! Hosts set up by a script, and rebooted after it where that was asked for.

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
pub struct ConnectContext<'a> {
    /// The hosts, by the names of their workers.
    pub hosts: &'a [Host],
    /// The program that is their agent.
    pub program: &'a Program,
    /// How they are connected to.
    pub options: &'a ConnectOptions,
}

/// Runs the script on all hosts where it has not run in the boot that they are in, and reboots those that shall. Those where
/// it fails, or that do not come back, leave the crew.
///
/// # Errors
/// When nothing can be recorded.
pub async fn set_up_hosts(
    folder: &Path,
    setup: &HostSetup<'_>,
    ways: &ConnectContext<'_>,
    crew: &mut WorkerPool,
    tell: SetupObserver<'_>,
) -> Result<(), RunError> {
    let mut steps = StepJournal::open(folder)?;
    steps.run_script(ScriptKind::HostSetup, setup.script, setup.limit, crew, tell).await?;
    let Some(limit) = setup.reboot else { return Ok(()) };
    let sha256 = setup.script.sha256();
    let due = |member: &&PooledWorker| {
        let (worker, boot) = (member.worker.name(), &member.facts.boot_id);
        steps.completed_boot(ScriptKind::HostSetup, worker, &sha256, boot) == Some(boot)
    };
    let due = crew.workers.iter().filter(due).map(|member| (member.clone(), Boot::Default)).collect();
    steps.reboot(due, limit, ways, crew, tell).await
}

/// Has the kernels of all hosts run with just these arguments beside their own. Those that cannot leave the crew.
///
/// # Errors
/// When nothing can be recorded.
pub async fn apply_kernel_arguments(
    folder: &Path,
    arguments: &[String],
    limit: Nanos,
    ways: &ConnectContext<'_>,
    crew: &mut WorkerPool,
    tell: SetupObserver<'_>,
) -> Result<(), RunError> {
    let mut due = Vec::new();
    for mut member in crew.workers.clone() {
        let name = &member.worker.name().clone();
        let way = ways.hosts.iter().find(|host| host.name == *name);
        let mut read = CommandLine::read(&member.worker).await;
        // An agent that was lost is no reason to leave its machine as it is.
        if let (Err(_), Some(host)) = (&read, way)
            && let Ok(next) = connect(host, ways.program, ways.options).await
        {
            member = PooledWorker { address: member.address, ..PooledWorker::with_facts(next.worker).await? };
            read = CommandLine::read(&member.worker).await;
        }
        match read {
            Ok(line) => match line.required_boot(arguments) {
                Some(next) if way.is_some() => due.push((member, next)),
                Some(Boot::Kexec(_)) => {
                    exclude_worker(crew, name, LOCAL_REBOOT_REASON, Some(LOCAL_REBOOT_HELP.to_owned()), tell)
                }
                Some(Boot::Default) => tell(SetupEvent::Note(format!(
                    "note: this machine's kernel still has arguments of a run from elsewhere, until its next reboot: {}",
                    line.added().join(" ")
                ))),
                None => {}
            },
            Err(error) => exclude_worker(crew, name, &error.to_string(), None, tell),
        }
    }
    if due.is_empty() { Ok(()) } else { StepJournal::open(folder)?.reboot(due, limit, ways, crew, tell).await }
}

const LOCAL_REBOOT_REASON: &str = "kernel arguments take a reboot, and the run would end with this machine";
const LOCAL_REBOOT_HELP: &str = "name other hosts with --hosts, and start the run from a machine that is not measured";

/// A reboot that came to its end.
struct RebootResult {
    worker: WorkerName,
    from: String,
    result: Result<PooledWorker, RebootError>,
    seconds: f64,
}

impl StepJournal {
    /// Has hosts start their kernels again, all at once.
    async fn reboot(
        &mut self,
        due: Vec<(PooledWorker, Boot)>,
        limit: Nanos,
        ways: &ConnectContext<'_>,
        crew: &mut WorkerPool,
        tell: SetupObserver<'_>,
    ) -> Result<(), RunError> {
        let mut running = FuturesUnordered::new();
        for (member, next) in due {
            let (worker, from) = (member.worker.name().clone(), member.facts.boot_id.clone());
            let Some(host) = ways.hosts.iter().find(|host| host.name == worker) else { continue };
            let command_line = if let Boot::Kexec(line) = &next { Some(line.clone()) } else { None };
            let with = command_line.as_ref().map(|line| format!(" with {line}")).unwrap_or_default();
            tell(SetupEvent::Note(format!("`{worker}` reboots{with}")));
            self.write(JournalEvent::RebootStarted { worker: worker.clone(), boot_id: from.clone(), command_line })?;
            running.push(async move {
                let start = Instant::now();
                let result = reboot_worker(member, host, &from, &next, limit, ways).await;
                RebootResult { worker, from, result, seconds: start.elapsed().as_secs_f64() }
            });
        }
        while let Some(RebootResult { worker, from, result, seconds }) = running.next().await {
            self.write(JournalEvent::RebootEnded(RebootStep {
                worker: worker.clone(),
                boot_id: from,
                next_boot_id: result.as_ref().ok().map(|member| member.facts.boot_id.clone()),
                outcome: StepOutcome::of(&result),
                seconds,
            }))?;
            match result {
                Ok(back) => {
                    tell(SetupEvent::Note(format!("`{worker}` is back after {seconds:.0} s")));
                    crew.workers.iter_mut().filter(|it| it.worker.name() == &worker).for_each(|it| *it = back.clone());
                }
                Err(error) => exclude_worker(crew, &worker, &error.to_string(), error.help(), tell),
            }
        }
        Ok(())
    }
}

/// The same member after a reboot of its host.
async fn reboot_worker(
    member: PooledWorker,
    host: &Host,
    boot: &str,
    next: &Boot,
    limit: Nanos,
    ways: &ConnectContext<'_>,
) -> Result<PooledWorker, RebootError> {
    let PooledWorker { worker, address, .. } = member;
    let connected = reboot(worker, boot, next, host, ways.program, ways.options, limit).await?;
    Ok(PooledWorker { address, ..PooledWorker::with_facts(connected.worker).await? })
}
