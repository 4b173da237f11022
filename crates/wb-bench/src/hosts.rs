//! What hosts cost: a controller and hosts with an sshd each, in network namespaces of this machine, as the fleet reaches
//! any other. They share this machine's CPUs, and its clock, by which starts are told exactly.

use crate::{
    limits::{Bound, Figure, Limit},
    place::Place,
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
use wb_agent::{Command as Line, Worker, start_together};
use wb_fleet::{Inventory, Options, Program, connect_all};
use wb_lab::{Host, SshHosts};
use wb_model::Nanos;
use wb_record::{Event, Journal};
use wb_stats::Samples;

/// As many as one controller is held to.
const HOSTS: u8 = 32;
/// Starts of one process on each of them.
const STARTS: usize = 51;
/// Samples of a test that does nothing.
const SAMPLES: usize = 51;
/// How often an agent is looked at through a sample, and how long that is.
const WATCHED: (usize, Duration) = (5, Duration::from_secs(10));
/// The time between two readings of telemetry, as it is by default.
const INTERVAL: Nanos = Nanos(1_000_000_000);
/// How often idle hosts are looked at, and how long: some words are said in it.
const IDLE: (usize, Duration) = (5, Duration::from_secs(20));

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

pub(crate) fn limits(place: &Place) -> Vec<Limit<'_>> {
    let fleet = Rc::new(Fleet { place, hosts: OnceCell::new() });
    let row = |name, take: fn(&Fleet<'_>) -> Result<Vec<Figure>, String>| {
        let fleet = Rc::clone(&fleet);
        Limit::new(name, move || take(&fleet))
    };
    vec![
        row("hosts, a start on 32", |fleet| starts(fleet, HOSTS)),
        row("hosts, a start on as many as there are CPUs", |fleet| {
            let cpus = thread::available_parallelism().map_or(1, usize::from);
            starts(fleet, u8::try_from(cpus).unwrap_or(HOSTS).clamp(2, HOSTS))
        }),
        row("hosts, a sample over ssh", samples),
        row("hosts, an agent through a sample of 10 s", agent),
        row("hosts, 32 that are idle", idle),
    ]
}

/// How far the starts of processes that are let go together lie apart.
fn starts(fleet: &Fleet<'_>, hosts: u8) -> Result<Vec<Figure>, String> {
    let (mut true_starts, mut told, mut errors, mut own) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    fleet.with(hosts, async |workers| {
        for _ in 0..STARTS {
            let groups = try_join_all(workers.iter().map(Worker::group)).await.map_err(said)?;
            let date = || Line::new(["date", "+%s%N"]);
            let held = try_join_all(groups.iter().map(|group| group.spawn_held(date()))).await.map_err(said)?;
            let together = start_together(&held.iter().collect::<Vec<_>>()).await.map_err(said)?;
            let ended = try_join_all(held.iter().map(|process| process.wait(None))).await.map_err(said)?;
            try_join_all(groups.into_iter().map(|group| group.teardown())).await.map_err(said)?;
            let dates = ended.iter().map(|ended| String::from_utf8_lossy(&ended.stdout).trim().parse());
            let dates = dates.collect::<Result<Vec<u64>, _>>().map_err(said)?;
            let error = together.starts.iter().map(|start| start.clock.error_ns).max().unwrap_or(0);
            true_starts.push(spread(ended.iter().map(|ended| ended.started_ns)));
            told.push(together.spread().0 as f64 / 1e6);
            errors.push(error as f64 / 1e6);
            own.push(spread(dates.into_iter()));
        }
        Ok(())
    })?;
    Ok(vec![
        told_as("first to last start", &true_starts, "ms", Some(5.0))?,
        told_as("the same as it is told with a sample", &told, "ms", None)?,
        told_as("largest error of a clock", &errors, "ms", None)?,
        told_as("first to last process that runs, all on the CPUs here", &own, "ms", None)?,
    ])
}

/// What attempts take beside their process, on a host and on this machine.
fn samples(fleet: &Fleet<'_>) -> Result<Vec<Figure>, String> {
    let hosts = fleet.hosts()?;
    let (ssh, config) = (hosts.path("ssh"), hosts.path("config"));
    let word = address(Host(1));
    let there = ["--hosts", &word, "--ssh-config", &config.display().to_string()].map(str::to_owned);
    Ok(vec![
        told_as("an attempt less its process", &overhead(fleet, "there", &there, ssh.parent())?, "ms", Some(50.0))?,
        told_as("the same without ssh", &overhead(fleet, "here", &[], None)?, "ms", None)?,
    ])
}

/// Milliseconds of each attempt in one run, less those of its process. `first` is searched for programs before others.
fn overhead(fleet: &Fleet<'_>, name: &str, args: &[String], first: Option<&Path>) -> Result<Vec<f64>, String> {
    let (tests, run) = (fleet.place.folder().join("tests"), fleet.place.folder().join(name));
    fs::create_dir_all(&tests).and_then(|()| fs::write(tests.join("nothing.toml"), NOTHING)).map_err(said)?;
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = first.map(Path::to_owned).into_iter().chain(env::split_paths(&path));
    let mut command = Command::new(fleet.place.weighbridge()?);
    command.args(["run", "nothing", "--quiet", "--min-time", "1ms", "--warm-up", "0"]);
    command.args(["--samples", &SAMPLES.to_string()]).args(args).arg("--tests-d").arg(&tests).arg("--into").arg(&run);
    command.env("PATH", env::join_paths(folders).map_err(said)?).stdout(Stdio::null());
    let ended = command.status().map_err(said)?;
    // What is that short is noisy, and the program says so with 3.
    if !matches!(ended.code(), Some(0 | 3)) {
        return Err(format!("weighbridge run ended with {ended}"));
    }
    let lines = Journal::read(&run.join("journal.jsonl")).map_err(said)?;
    let beside = lines.into_iter().filter_map(|line| match line.event {
        Event::AttemptEnded(attempt) => Some((attempt.seconds - attempt.workload_seconds) * 1e3),
        _ => None,
    });
    Ok(beside.collect())
}

/// What an agent holds and uses while a sample runs that leaves it alone.
fn agent(fleet: &Fleet<'_>) -> Result<Vec<Figure>, String> {
    let (mut own, mut all, mut cpu) = (Vec::new(), Vec::new(), Vec::new());
    fleet.with(1, async |workers| {
        let agent = Seen::new(fleet.agent(Host(1))?).map_err(said)?;
        for _ in 0..WATCHED.0 {
            let group = workers[0].group().await.map_err(said)?;
            let recording = group.record(INTERVAL).await.map_err(said)?;
            let (start, before) = (Instant::now(), cpu_ns(&agent)?);
            let sleep = Line::new(["sleep", &WATCHED.1.as_secs().to_string()]);
            group.spawn(sleep).await.map_err(said)?.wait(None).await.map_err(said)?;
            cpu.push(share(cpu_ns(&agent)? - before, start));
            recording.finish().await.map_err(said)?;
            let status = agent.status().map_err(said)?;
            let megabytes = |kib: Option<u64>| kib.map(|kib| kib as f64 * 1024.0 / 1e6).ok_or("no memory is told");
            own.push(megabytes(status.rssanon)?);
            all.push(megabytes(status.vmhwm)?);
            group.teardown().await.map_err(said)?;
        }
        Ok(())
    })?;
    Ok(vec![
        told_as("memory of its own (anonymous)", &own, "MB", Some(10.0))?,
        told_as("the same with the pages of the program's file, which all that run it share", &all, "MB", None)?,
        told_as("of one core", &cpu, "%", Some(0.2))?,
    ])
}

/// What hosts that do nothing cost the controller: this process, and one ssh for each.
fn idle(fleet: &Fleet<'_>) -> Result<Vec<Figure>, String> {
    let (mut all, mut own) = (Vec::new(), Vec::new());
    fleet.with(HOSTS, async |_| {
        let clients = clients()?;
        if clients.len() != usize::from(HOSTS) {
            return Err(format!("{} ssh clients for {HOSTS} hosts", clients.len()));
        }
        let of_clients = || clients.iter().map(cpu_ns).sum::<Result<u64, String>>();
        for _ in 0..IDLE.0 {
            let (start, before) = (Instant::now(), (own_cpu_ns(), of_clients()?));
            tokio::time::sleep(IDLE.1).await;
            let (ours, theirs) = (own_cpu_ns() - before.0, of_clients()? - before.1);
            all.push(share(ours + theirs, start));
            own.push(share(ours, start));
        }
        Ok(())
    })?;
    Ok(vec![
        told_as("controller and its ssh clients, of one core", &all, "%", Some(1.0))?,
        told_as("of that the controller", &own, "%", None)?,
    ])
}

/// The hosts of all rows, made when the first of them needs any.
struct Fleet<'a> {
    place: &'a Place,
    hosts: OnceCell<Option<SshHosts>>,
}

impl Fleet<'_> {
    fn hosts(&self) -> Result<&SshHosts, String> {
        let hosts = self.hosts.get_or_init(|| SshHosts::new(HOSTS)).as_ref();
        hosts.ok_or_else(|| "there can be no hosts here: they need root, iproute2 and openssh-server".to_owned())
    }

    /// Connects to so many of them, and lets them go after the work.
    fn with<T>(&self, count: u8, work: impl AsyncFnOnce(&[Worker]) -> Result<T, String>) -> Result<T, String> {
        let program = Program::read(&self.place.weighbridge()?).map_err(said)?;
        let hosts = self.hosts()?;
        let options = Options { ssh: hosts.path("ssh"), ssh_config: Some(hosts.path("config")), ..Options::default() };
        let words: Vec<String> = (1..=count).map(|host| address(Host(host))).collect();
        let chosen = Inventory::default().select(&words).map_err(said)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(said)?;
        runtime.block_on(async {
            let connected = connect_all(&chosen, &program, &options).await.into_iter();
            let workers = connected.map(|one| one.map(|one| one.worker));
            let workers = workers.collect::<Result<Vec<Worker>, _>>().map_err(said)?;
            let done = work(&workers).await;
            try_join_all(workers.into_iter().map(Worker::close)).await.map_err(said)?;
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
    process.schedstat().map(|stat| stat.sum_exec_runtime).map_err(said)
}

/// CPU time of this process, threads that have ended included.
fn own_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// The ssh that threads of this process have started and that are there.
fn clients() -> Result<Vec<Seen>, String> {
    let mut pids = BTreeSet::new();
    for task in Seen::myself().and_then(|us| us.tasks()).map_err(said)? {
        pids.extend(task.and_then(|task| task.children()).map_err(said)?);
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
fn told_as(what: &str, values: &[f64], unit: &'static str, limit: Option<f64>) -> Result<Figure, String> {
    let values = Samples::new(values).map_err(said)?;
    let what = format!("{what}, median of {} (at most {:.3} {unit})", values.count(), values.max());
    Ok(Figure::new(what, values.median(), unit, limit.map(Bound::Below)))
}

fn said(error: impl Display) -> String {
    error.to_string()
}
