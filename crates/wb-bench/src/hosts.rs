//! What hosts cost: a controller and hosts with an sshd each, in network namespaces of this machine, as the fleet reaches
//! any other. They share this machine's CPUs, and its clock, by which starts are told exactly.

use crate::{
    bench_env::BenchEnv,
    limits::{BenchFigure, FigureBound, LimitCheck},
};
use futures_util::future::try_join_all;
use procfs::process::Process as Seen;
use rustix::time::{ClockId, clock_gettime};
use std::{
    cell::OnceCell,
    collections::BTreeSet,
    env,
    fmt::Display,
    fs,
    path::Path,
    process::{Command, Stdio},
    rc::Rc,
    thread,
    time::{Duration, Instant},
};
use wb_agent::{Command as Line, Worker, start_synchronized};
use wb_fleet::{ConnectOptions, Inventory, Program, connect_all};
use wb_lab::{Host, SshHosts};
use wb_model::Nanos;
use wb_record::{Journal, JournalEvent};
use wb_stats::Samples;

/// As many as one controller is held to.
const HOSTS: u8 = 32;
/// Starts of one process on each of them.
const STARTS: usize = 51;
/// Samples of a test that does nothing.
const SAMPLES: usize = 51;
/// How often an agent is looked at through a sample, and how long that is.
const AGENT_SAMPLES: (usize, Duration) = (5, Duration::from_secs(10));
/// The time between two readings of telemetry, as it is by default.
const INTERVAL: Nanos = Nanos(1_000_000_000);
/// How often idle hosts are looked at, and how long: some words are said in it.
const IDLE_SAMPLES: (usize, Duration) = (5, Duration::from_secs(20));

/// A test that does nothing: all of an attempt at it is overhead.
const NOTHING: &str = r#"
name = "nothing"
summary = "nothing; what a sample costs beside its workload"
version = 1
command = ["echo", "figure: 1"]

[[metric]]
name = "figure"
class = "throughput"
unit = "1/s"
primary = true
regex = 'figure: (\S+)'
"#;

pub(crate) fn limits(place: &BenchEnv) -> Vec<LimitCheck<'_>> {
    let fleet = Rc::new(LazyHosts { place, hosts: OnceCell::new() });
    let row = |name, take: fn(&LazyHosts<'_>) -> Result<Vec<BenchFigure>, String>| {
        let fleet = Rc::clone(&fleet);
        LimitCheck::new(name, move || take(&fleet))
    };
    vec![
        row("hosts, a start on 32", |fleet| start_spread(fleet, HOSTS)),
        row("hosts, a start on as many as there are CPUs", |fleet| {
            let cpus = thread::available_parallelism().map_or(1, usize::from);
            start_spread(fleet, u8::try_from(cpus).unwrap_or(HOSTS).clamp(2, HOSTS))
        }),
        row("hosts, a sample over ssh", sample_overhead),
        row("hosts, an agent through a sample of 10 s", agent_cost),
        row("hosts, 32 that are idle", idle_cost),
    ]
}

/// How far the starts of processes that are let go together lie apart.
fn start_spread(fleet: &LazyHosts<'_>, hosts: u8) -> Result<Vec<BenchFigure>, String> {
    let (mut true_starts, mut told, mut errors, mut own) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    fleet.with_workers(hosts, async |workers| {
        for _ in 0..STARTS {
            let groups = try_join_all(workers.iter().map(Worker::new_group)).await.map_err(to_message)?;
            let date = || Line::new(["date", "+%s%N"]);
            let held = try_join_all(groups.iter().map(|group| group.spawn_held(date()))).await.map_err(to_message)?;
            let together = start_synchronized(&held.iter().collect::<Vec<_>>()).await.map_err(to_message)?;
            let ended = try_join_all(held.iter().map(|process| process.wait(None))).await.map_err(to_message)?;
            try_join_all(groups.into_iter().map(|group| group.teardown())).await.map_err(to_message)?;
            let dates = ended.iter().map(|ended| String::from_utf8_lossy(&ended.stdout).trim().parse());
            let dates = dates.collect::<Result<Vec<u64>, _>>().map_err(to_message)?;
            let error = together.starts.iter().map(|start| start.clock.error_ns).max().unwrap_or(0);
            true_starts.push(spread(ended.iter().map(|ended| ended.started_ns)));
            told.push(together.spread().0 as f64 / 1e6);
            errors.push(error as f64 / 1e6);
            own.push(spread(dates.into_iter()));
        }
        Ok(())
    })?;
    Ok(vec![
        median_figure("first to last start", &true_starts, "ms", Some(5.0))?,
        median_figure("the same as it is told with a sample", &told, "ms", None)?,
        median_figure("largest error of a clock", &errors, "ms", None)?,
        median_figure("first to last process that runs, all on the CPUs here", &own, "ms", None)?,
    ])
}

/// What attempts take beside their process, on a host and on this machine.
fn sample_overhead(fleet: &LazyHosts<'_>) -> Result<Vec<BenchFigure>, String> {
    let hosts = fleet.hosts()?;
    let (ssh, config) = (hosts.path("ssh"), hosts.path("config"));
    let word = address(Host(1));
    let there = ["--hosts", &word, "--ssh-config", &config.display().to_string()].map(str::to_owned);
    Ok(vec![
        median_figure(
            "an attempt less its process",
            &attempt_overheads(fleet, "there", &there, ssh.parent())?,
            "ms",
            Some(50.0),
        )?,
        median_figure("the same without ssh", &attempt_overheads(fleet, "here", &[], None)?, "ms", None)?,
    ])
}

/// Milliseconds of each attempt in one run, less those of its process. `first` is searched for programs before others.
fn attempt_overheads(
    fleet: &LazyHosts<'_>,
    name: &str,
    args: &[String],
    first: Option<&Path>,
) -> Result<Vec<f64>, String> {
    let (tests, run) = (fleet.place.folder().join("tests"), fleet.place.folder().join(name));
    fs::create_dir_all(&tests).and_then(|()| fs::write(tests.join("nothing.toml"), NOTHING)).map_err(to_message)?;
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = first.map(Path::to_owned).into_iter().chain(env::split_paths(&path));
    let mut command = Command::new(fleet.place.weighbridge_program()?);
    command.args(["run", "nothing", "--quiet", "--min-time", "1ms", "--warm-up", "0"]);
    command.args(["--samples", &SAMPLES.to_string()]).args(args).arg("--tests-d").arg(&tests).arg("--into").arg(&run);
    command.env("PATH", env::join_paths(folders).map_err(to_message)?).stdout(Stdio::null());
    let ended = command.status().map_err(to_message)?;
    // What is that short is noisy, and the program says so with 3.
    if !matches!(ended.code(), Some(0 | 3)) {
        return Err(format!("weighbridge run ended with {ended}"));
    }
    let lines = Journal::read(&run.join("journal.jsonl")).map_err(to_message)?;
    let beside = lines.into_iter().filter_map(|line| match line.event {
        JournalEvent::AttemptEnded(attempt) => Some((attempt.seconds - attempt.workload_seconds) * 1e3),
        _ => None,
    });
    Ok(beside.collect())
}

/// What an agent holds and uses while a sample runs that leaves it alone.
fn agent_cost(fleet: &LazyHosts<'_>) -> Result<Vec<BenchFigure>, String> {
    let (mut own, mut all, mut cpu) = (Vec::new(), Vec::new(), Vec::new());
    fleet.with_workers(1, async |workers| {
        let agent = Seen::new(fleet.agent(Host(1))?).map_err(to_message)?;
        for _ in 0..AGENT_SAMPLES.0 {
            let group = workers[0].new_group().await.map_err(to_message)?;
            let recording = group.record(INTERVAL).await.map_err(to_message)?;
            let (start, before) = (Instant::now(), cpu_ns(&agent)?);
            let sleep = Line::new(["sleep", &AGENT_SAMPLES.1.as_secs().to_string()]);
            group.spawn(sleep).await.map_err(to_message)?.wait(None).await.map_err(to_message)?;
            cpu.push(share(cpu_ns(&agent)? - before, start));
            recording.finish().await.map_err(to_message)?;
            let status = agent.status().map_err(to_message)?;
            let megabytes = |kib: Option<u64>| kib.map(|kib| kib as f64 * 1024.0 / 1e6).ok_or("no memory is told");
            own.push(megabytes(status.rssanon)?);
            all.push(megabytes(status.vmhwm)?);
            group.teardown().await.map_err(to_message)?;
        }
        Ok(())
    })?;
    Ok(vec![
        median_figure("memory of its own (anonymous)", &own, "MB", Some(10.0))?,
        median_figure("the same with the pages of the program's file, which all that run it share", &all, "MB", None)?,
        median_figure("of one core", &cpu, "%", Some(0.2))?,
    ])
}

/// What hosts that do nothing cost the controller: this process, and one ssh for each.
fn idle_cost(fleet: &LazyHosts<'_>) -> Result<Vec<BenchFigure>, String> {
    let (mut all, mut own) = (Vec::new(), Vec::new());
    fleet.with_workers(HOSTS, async |_| {
        let clients = ssh_clients()?;
        if clients.len() != usize::from(HOSTS) {
            return Err(format!("{} ssh clients for {HOSTS} hosts", clients.len()));
        }
        let of_clients = || clients.iter().map(cpu_ns).sum::<Result<u64, String>>();
        for _ in 0..IDLE_SAMPLES.0 {
            let (start, before) = (Instant::now(), (own_cpu_ns(), of_clients()?));
            tokio::time::sleep(IDLE_SAMPLES.1).await;
            let (ours, theirs) = (own_cpu_ns() - before.0, of_clients()? - before.1);
            all.push(share(ours + theirs, start));
            own.push(share(ours, start));
        }
        Ok(())
    })?;
    Ok(vec![
        median_figure("controller and its ssh clients, of one core", &all, "%", Some(1.0))?,
        median_figure("of that the controller", &own, "%", None)?,
    ])
}

/// The hosts of all rows, made when the first of them needs any.
struct LazyHosts<'a> {
    place: &'a BenchEnv,
    hosts: OnceCell<Option<SshHosts>>,
}

impl LazyHosts<'_> {
    fn hosts(&self) -> Result<&SshHosts, String> {
        let hosts = self.hosts.get_or_init(|| SshHosts::new(HOSTS)).as_ref();
        hosts.ok_or_else(|| "there can be no hosts here: they need root, iproute2 and openssh-server".to_owned())
    }

    /// Connects to so many of them, and lets them go after the work.
    fn with_workers<T>(&self, count: u8, work: impl AsyncFnOnce(&[Worker]) -> Result<T, String>) -> Result<T, String> {
        let program = Program::read(&self.place.weighbridge_program()?).map_err(to_message)?;
        let hosts = self.hosts()?;
        let options = ConnectOptions {
            ssh: hosts.path("ssh"),
            ssh_config: Some(hosts.path("config")),
            ..ConnectOptions::default()
        };
        let words: Vec<String> = (1..=count).map(|host| address(Host(host))).collect();
        let chosen = Inventory::default().select(&words).map_err(to_message)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(to_message)?;
        runtime.block_on(async {
            let connected = connect_all(&chosen, &program, &options).await.into_iter();
            let workers = connected.map(|one| one.map(|one| one.worker));
            let workers = workers.collect::<Result<Vec<Worker>, _>>().map_err(to_message)?;
            let done = work(&workers).await;
            try_join_all(workers.into_iter().map(Worker::close)).await.map_err(to_message)?;
            done
        })
    }

    /// The process that is the agent on a host.
    fn agent(&self, host: Host) -> Result<i32, String> {
        let is_agent = |pid: &i32| {
            let line = Seen::new(*pid).and_then(|process| process.cmdline()).unwrap_or_default();
            matches!(&line[..], [program, agent, ..] if program.ends_with("weighbridge") && agent == "agent")
        };
        let mut processes = self.hosts()?.lab.processes(host).into_iter().map(u32::cast_signed);
        processes.find(is_agent).ok_or_else(|| "there is no agent on the host".to_owned())
    }
}

fn address(host: Host) -> String {
    format!("host{}:{}", host.0, host.v4())
}

/// CPU time of a process of one thread, as the scheduler counts it: ticks are too coarse.
fn cpu_ns(process: &Seen) -> Result<u64, String> {
    process.schedstat().map(|stat| stat.sum_exec_runtime).map_err(to_message)
}

/// CPU time of this process, threads that have ended included.
fn own_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// The ssh that threads of this process have started and that are there.
fn ssh_clients() -> Result<Vec<Seen>, String> {
    let mut pids = BTreeSet::new();
    for task in Seen::myself().and_then(|us| us.tasks()).map_err(to_message)? {
        pids.extend(task.and_then(|task| task.children()).map_err(to_message)?);
    }
    let is_ssh = |child: &Seen| child.stat().is_ok_and(|stat| stat.comm == "ssh");
    Ok(pids.into_iter().filter_map(|pid| Seen::new(pid.cast_signed()).ok()).filter(is_ssh).collect())
}

/// Nanoseconds since a start, in percent of it.
fn share(nanoseconds: u64, start: Instant) -> f64 {
    nanoseconds as f64 / start.elapsed().as_nanos() as f64 * 100.0
}

/// From the first to the last, in milliseconds.
fn spread(times_ns: impl Iterator<Item = u64> + Clone) -> f64 {
    let (first, last) = (times_ns.clone().min().unwrap_or(0), times_ns.max().unwrap_or(0));
    (last - first) as f64 / 1e6
}

/// The median against a limit, told with the worst.
fn median_figure(what: &str, values: &[f64], unit: &'static str, limit: Option<f64>) -> Result<BenchFigure, String> {
    let values = Samples::new(values).map_err(to_message)?;
    let what = format!("{what}, median of {} (at most {:.3} {unit})", values.count(), values.max());
    Ok(BenchFigure::new(what, values.median(), unit, limit.map(FigureBound::Below)))
}

fn to_message(error: impl Display) -> String {
    error.to_string()
}
