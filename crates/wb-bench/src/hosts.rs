//! Overhead of hosts: a controller and hosts with an sshd each, in network namespaces of this machine, connected as any
//! other host. They share the CPUs of this machine, and its clock, by which start times can be compared exactly.

use crate::bench_env::BenchEnv;
use crate::benchmark::{BenchFigure, Benchmark, FigureBound};
use futures_util::future::try_join_all;
use procfs::process::Process as ProcfsProcess;
use rustix::time::{ClockId, clock_gettime};
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::Path;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};
use std::{env, fs, thread};
use wb_agent::{Command as AgentCommand, Worker, start_synchronized};
use wb_fleet::{ConnectOptions, Inventory, Program, connect_all};
use wb_model::Nanos;
use wb_record::{Journal, JournalEvent};
use wb_test_net::{Host, SshHosts};

/// Number of hosts: the most that one controller supports.
const HOSTS: u8 = 32;
/// Number of simultaneous starts of a process on every host.
const STARTS: usize = 51;
/// Samples of a test that does nothing.
const SAMPLES: usize = 51;
/// Number and length of the samples during which an agent is observed.
const AGENT_SAMPLES: (usize, Duration) = (5, Duration::from_secs(10));
/// The default interval of telemetry.
const TELEMETRY_INTERVAL: Nanos = Nanos(1_000_000_000);
/// Number and length of the observations of idle hosts; each spans several keep-alive messages.
const IDLE_SAMPLES: (usize, Duration) = (5, Duration::from_secs(20));

/// A test that does nothing: the whole time of an attempt is overhead.
const NOTHING: &str = r#"
name = "nothing"
summary = "no workload; overhead of a sample"
version = 1
command = ["echo", "figure: 1"]

[[metric]]
name = "figure"
class = "throughput"
unit = "1/s"
primary = true
regex = 'figure: (\S+)'
"#;

pub(crate) fn benchmarks(env: &BenchEnv) -> Vec<Benchmark<'_>> {
    let hosts = Rc::new(LazyHosts { env, hosts: OnceCell::new() });
    let row = |name, measure: fn(&LazyHosts<'_>) -> Result<Vec<BenchFigure>, String>| {
        let hosts = Rc::clone(&hosts);
        Benchmark::new(name, move || measure(&hosts))
    };
    vec![
        row("hosts, process start on 32 hosts", |hosts| start_skew(hosts, HOSTS)),
        row("hosts, process start on one host per CPU", |hosts| {
            let cpus = thread::available_parallelism().map_or(1, usize::from);
            start_skew(hosts, u8::try_from(cpus).unwrap_or(HOSTS).clamp(2, HOSTS))
        }),
        row("hosts, sample over ssh", sample_overhead),
        row("hosts, agent during a sample of 10 s", agent_overhead),
        row("hosts, 32 idle hosts", idle_hosts_overhead),
    ]
}

/// Measures the time from the first to the last start of processes that are released together.
fn start_skew(hosts: &LazyHosts<'_>, host_count: u8) -> Result<Vec<BenchFigure>, String> {
    let (mut actual, mut reported, mut errors, mut running) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    hosts.with_workers(host_count, async |workers| {
        for _ in 0..STARTS {
            let groups = try_join_all(workers.iter().map(Worker::new_group)).await.map_err(to_message)?;
            let date = || AgentCommand::new(["date", "+%s%N"]);
            let processes =
                try_join_all(groups.iter().map(|group| group.spawn_suspended(date()))).await.map_err(to_message)?;
            let start = start_synchronized(&processes.iter().collect::<Vec<_>>()).await.map_err(to_message)?;
            let ended = try_join_all(processes.iter().map(|process| process.wait(None))).await.map_err(to_message)?;
            try_join_all(groups.into_iter().map(|group| group.close())).await.map_err(to_message)?;
            let dates = ended.iter().map(|ended| String::from_utf8_lossy(&ended.stdout).trim().parse());
            let dates = dates.collect::<Result<Vec<u64>, _>>().map_err(to_message)?;
            let error = start.starts.iter().map(|process| process.clock.error_ns).max().unwrap_or(0);
            actual.push(range_ms(ended.iter().map(|ended| ended.started_ns)));
            reported.push(start.skew().0 as f64 / 1e6);
            errors.push(error as f64 / 1e6);
            running.push(range_ms(dates.into_iter()));
        }
        Ok(())
    })?;
    Ok(vec![
        BenchFigure::median("first to last start", &actual, "ms", Some(FigureBound::Below(5.0)))?,
        BenchFigure::median("first to last start as reported with a sample", &reported, "ms", None)?,
        BenchFigure::median("largest clock error", &errors, "ms", None)?,
        BenchFigure::median("first to last running process, all on this machine's CPUs", &running, "ms", None)?,
    ])
}

fn sample_overhead(hosts: &LazyHosts<'_>) -> Result<Vec<BenchFigure>, String> {
    let ssh_hosts = hosts.hosts()?;
    let (ssh, config) = (ssh_hosts.path("ssh"), ssh_hosts.path("config"));
    let address = address(Host(1));
    let args = ["--hosts", &address, "--ssh-config", &config.display().to_string()].map(str::to_owned);
    Ok(vec![
        BenchFigure::median(
            "attempt minus its process",
            &attempt_overheads(hosts, "there", &args, ssh.parent())?,
            "ms",
            Some(FigureBound::Below(50.0)),
        )?,
        BenchFigure::median(
            "attempt minus its process, without ssh",
            &attempt_overheads(hosts, "here", &[], None)?,
            "ms",
            None,
        )?,
    ])
}

/// Milliseconds of each attempt of one run, minus those of its process. `first` goes to the front of `PATH`.
fn attempt_overheads(
    hosts: &LazyHosts<'_>,
    name: &str,
    args: &[String],
    first: Option<&Path>,
) -> Result<Vec<f64>, String> {
    let (tests, run) = (hosts.env.folder().join("tests"), hosts.env.folder().join(name));
    fs::create_dir_all(&tests).and_then(|()| fs::write(tests.join("nothing.toml"), NOTHING)).map_err(to_message)?;
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = first.map(Path::to_owned).into_iter().chain(env::split_paths(&path));
    let mut command = Command::new(hosts.env.weighbridge_program()?);
    command.args(["run", "nothing", "--quiet", "--min-time", "1ms", "--warm-up", "0"]);
    command.args(["--samples", &SAMPLES.to_string()]).args(args).arg("--tests-d").arg(&tests).arg("--into").arg(&run);
    command.env("PATH", env::join_paths(folders).map_err(to_message)?).stdout(Stdio::null());
    let status = command.status().map_err(to_message)?;
    // Attempts that short are noisy, so the run may exit with 3 (not converged).
    if !matches!(status.code(), Some(0 | 3)) {
        return Err(format!("weighbridge run ended with {status}"));
    }
    let lines = Journal::read(&run, &run.join("journal.jsonl")).map_err(to_message)?;
    let overheads = lines.into_iter().filter_map(|line| match line.event {
        JournalEvent::AttemptEnded(attempt) => Some((attempt.seconds - attempt.workload_seconds) * 1e3),
        _ => None,
    });
    Ok(overheads.collect())
}

/// Measures the memory and CPU time of an agent while a sample runs that needs nothing from it.
fn agent_overhead(hosts: &LazyHosts<'_>) -> Result<Vec<BenchFigure>, String> {
    let (mut anonymous, mut peak, mut cpu) = (Vec::new(), Vec::new(), Vec::new());
    hosts.with_workers(1, async |workers| {
        let agent = ProcfsProcess::new(hosts.agent(Host(1))?).map_err(to_message)?;
        for _ in 0..AGENT_SAMPLES.0 {
            let group = workers[0].new_group().await.map_err(to_message)?;
            let recording = group.record(TELEMETRY_INTERVAL).await.map_err(to_message)?;
            let (start, before) = (Instant::now(), cpu_ns(&agent)?);
            let sleep = AgentCommand::new(["sleep", &AGENT_SAMPLES.1.as_secs().to_string()]);
            group.spawn(sleep).await.map_err(to_message)?.wait(None).await.map_err(to_message)?;
            cpu.push(percent_of_elapsed(cpu_ns(&agent)? - before, start));
            recording.finish().await.map_err(to_message)?;
            let status = agent.status().map_err(to_message)?;
            let megabytes = |kib: Option<u64>| {
                kib.map(|kib| kib as f64 * 1024.0 / 1e6).ok_or("missing memory in the process status")
            };
            anonymous.push(megabytes(status.rssanon)?);
            peak.push(megabytes(status.vmhwm)?);
            group.close().await.map_err(to_message)?;
        }
        Ok(())
    })?;
    Ok(vec![
        BenchFigure::median("anonymous memory", &anonymous, "MB", Some(FigureBound::Below(10.0)))?,
        BenchFigure::median("peak memory, with the program's shared file pages", &peak, "MB", None)?,
        BenchFigure::median("CPU, of one core", &cpu, "%", Some(FigureBound::Below(0.2)))?,
    ])
}

/// Measures the CPU time that idle hosts cost the controller: this process, and one ssh client per host.
fn idle_hosts_overhead(hosts: &LazyHosts<'_>) -> Result<Vec<BenchFigure>, String> {
    let (mut total, mut controller) = (Vec::new(), Vec::new());
    hosts.with_workers(HOSTS, async |_| {
        let clients = ssh_clients()?;
        if clients.len() != usize::from(HOSTS) {
            return Err(format!("expected {HOSTS} ssh clients for as many hosts, found {}", clients.len()));
        }
        let of_clients = || clients.iter().map(cpu_ns).sum::<Result<u64, String>>();
        for _ in 0..IDLE_SAMPLES.0 {
            let (start, before) = (Instant::now(), (own_cpu_ns(), of_clients()?));
            tokio::time::sleep(IDLE_SAMPLES.1).await;
            let (own_ns, clients_ns) = (own_cpu_ns() - before.0, of_clients()? - before.1);
            total.push(percent_of_elapsed(own_ns + clients_ns, start));
            controller.push(percent_of_elapsed(own_ns, start));
        }
        Ok(())
    })?;
    Ok(vec![
        BenchFigure::median("controller and its ssh clients, of one core", &total, "%", Some(FigureBound::Below(1.0)))?,
        BenchFigure::median("controller alone, of one core", &controller, "%", None)?,
    ])
}

/// The hosts of all benchmarks, created when the first one needs them.
struct LazyHosts<'a> {
    env: &'a BenchEnv,
    hosts: OnceCell<Option<SshHosts>>,
}

impl LazyHosts<'_> {
    fn hosts(&self) -> Result<&SshHosts, String> {
        let hosts = self.hosts.get_or_init(|| SshHosts::new(HOSTS)).as_ref();
        hosts.ok_or_else(|| "cannot create hosts: root, iproute2 and openssh-server are required".to_owned())
    }

    fn with_workers<T>(&self, count: u8, work: impl AsyncFnOnce(&[Worker]) -> Result<T, String>) -> Result<T, String> {
        let program = Program::read(&self.env.agent_program()?).map_err(to_message)?;
        let hosts = self.hosts()?;
        let options = ConnectOptions {
            ssh: hosts.path("ssh"),
            ssh_config: Some(hosts.path("config")),
            ..ConnectOptions::default()
        };
        let addresses: Vec<String> = (1..=count).map(|host| address(Host(host))).collect();
        let selected = Inventory::default().select(&addresses).map_err(to_message)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(to_message)?;
        runtime.block_on(async {
            let connected = connect_all(&selected, &program, &options).await.into_iter();
            let workers = connected.map(|host| host.map(|host| host.worker));
            let workers = workers.collect::<Result<Vec<Worker>, _>>().map_err(to_message)?;
            let result = work(&workers).await;
            try_join_all(workers.into_iter().map(Worker::close)).await.map_err(to_message)?;
            result
        })
    }

    fn agent(&self, host: Host) -> Result<i32, String> {
        let is_agent = |pid: &i32| {
            let line = ProcfsProcess::new(*pid).and_then(|process| process.cmdline()).unwrap_or_default();
            matches!(&line[..], [program, agent, ..] if program.ends_with("weighbridge") && agent == "agent")
        };
        let mut processes = self.hosts()?.network.processes(host).into_iter().map(u32::cast_signed);
        processes.find(is_agent).ok_or_else(|| "missing agent process on the host".to_owned())
    }
}

fn address(host: Host) -> String {
    format!("host{}:{}", host.0, host.v4())
}

/// CPU time of a single-threaded process from the scheduler's statistics; clock ticks are too coarse.
fn cpu_ns(process: &ProcfsProcess) -> Result<u64, String> {
    process.schedstat().map(|stat| stat.sum_exec_runtime).map_err(to_message)
}

/// CPU time of this process, including threads that have exited.
fn own_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// The running ssh clients that threads of this process have started.
fn ssh_clients() -> Result<Vec<ProcfsProcess>, String> {
    let mut pids = BTreeSet::new();
    for task in ProcfsProcess::myself().and_then(|process| process.tasks()).map_err(to_message)? {
        pids.extend(task.and_then(|task| task.children()).map_err(to_message)?);
    }
    let is_ssh = |child: &ProcfsProcess| child.stat().is_ok_and(|stat| stat.comm == "ssh");
    Ok(pids.into_iter().filter_map(|pid| ProcfsProcess::new(pid.cast_signed()).ok()).filter(is_ssh).collect())
}

fn percent_of_elapsed(nanoseconds: u64, start: Instant) -> f64 {
    nanoseconds as f64 / start.elapsed().as_nanos() as f64 * 100.0
}

fn range_ms(times_ns: impl Iterator<Item = u64> + Clone) -> f64 {
    let (first, last) = (times_ns.clone().min().unwrap_or(0), times_ns.max().unwrap_or(0));
    (last - first) as f64 / 1e6
}

fn to_message(error: impl Display) -> String {
    error.to_string()
}
