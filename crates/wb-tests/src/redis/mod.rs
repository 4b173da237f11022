//! redis: a server of one's own for every sample, asked by redis-benchmark.
//!
//! Start with [`Params`]; then `server` starts, fills and ends the server, `output` reads what both programs say, and
//! `study` judges it.

mod output;
mod params;
mod server;
mod study;

use std::collections::BTreeMap;

use async_trait::async_trait;
use wb_agent::Command;
use wb_model::{Facts, Metric, Nanos, ParamValue, Params as Given, Placement, Requirement, Scope};

use crate::{Artefacts, Attempt, Failure, Measurement, Rejection, TestInfo, TypedTest, WorkerContext, native};
use params::RedisCommand;
use server::{LOG, RedisServer};

pub use params::Params;

/// Redis: an in-memory store over a socket, one thread, bound by system calls and the path between two processes.
pub struct Redis;

/// Under these names it is kept what the server says of itself: new, filled, and after the benchmark.
const SNAPSHOT_NAMES: [&str; 3] = ["start.info", "before.info", "after.info"];
/// How many requests there were to be.
const REQUESTS: &str = "requests.json";
/// Under this name the output of redis-benchmark is kept.
const BENCHMARK: &str = "benchmark";

#[async_trait]
impl TypedTest for Redis {
    type Params = Params;
    type Prepared = ();

    fn info(&self) -> TestInfo {
        TestInfo {
            name: "redis",
            summary: "requests of an in-memory store; server and client on one machine",
            version: 1,
            scope: Scope::Sample,
        }
    }

    fn requires(&self, _: &Params) -> Vec<Requirement> {
        vec![
            Requirement::new("redis-server", "redis-server", &["--version"]),
            Requirement::new("redis-benchmark", "redis-tools", &["--version"]),
            Requirement::new("redis-cli", "redis-tools", &["--version"]),
        ]
    }

    fn resolve(&self, _: &Given, _: &Facts) -> BTreeMap<String, Vec<ParamValue>> {
        let all = RedisCommand::ALL.iter().map(|verb| ParamValue::Text(verb.name().to_owned())).collect();
        BTreeMap::from([("command".to_owned(), all)])
    }

    fn unsupported(&self, params: &Params, placement: &Placement, facts: &Facts) -> Option<String> {
        let values = (params.data_size.0 == 0).then(|| "`data-size`: a value has at least 1 byte".to_owned());
        let memory = || native::unsupported_memory(params.memory_bytes(params.requested().unwrap_or(1)), facts);
        values.or_else(|| params::select_cpus(*params.placement, &placement.cpus, facts).err()).or_else(memory)
    }

    fn estimate(&self, params: &Params, min_time: Nanos) -> Nanos {
        // What a core of today does; start and end of the server, and filling it.
        let rate = 80_000.0 * f64::from(params.pipeline.min(8));
        let asking = params.requested().map_or(min_time.seconds() * 1.05, |requests| requests as f64 / rate);
        let filled = match params.redis_command() {
            RedisCommand::Get => params.keyspace as f64,
            RedisCommand::Lpop => params.requested().map_or(asking * rate, |requests| requests as f64),
            RedisCommand::Set | RedisCommand::Lpush | RedisCommand::Sadd => 0.0,
        };
        Nanos::from_seconds(asking + filled / 1e6 + 0.3)
    }

    fn metrics(&self, _: &Params) -> Vec<Metric> {
        let latencies = ["p50", "p95", "p99"].map(|name| Metric::latency(name, "ns"));
        let resources = [Metric::resource("server-cpu-per-request", "ns"), Metric::resource("server-memory", "B")];
        let first = [Metric::throughput("requests", "requests/s").primary()];
        first.into_iter().chain(latencies).chain(resources).collect()
    }

    async fn prepare(&self, _: &Params, _: &WorkerContext) -> Result<(), Failure> {
        Ok(())
    }

    async fn sample(&self, params: &Params, (): &mut (), attempt: &mut Attempt) -> Result<(), Failure> {
        let placement = &attempt.context.placement;
        let cpus = params::select_cpus(*params.placement, &placement.cpus, &attempt.context.facts)
            .map_err(Failure::refused)?;
        let (server_cpu, benchmark_cpu) = cpus.unzip();
        let mut placement = placement.clone();
        placement.cpus = benchmark_cpu.map_or(placement.cpus, |cpu| vec![cpu]);

        let requests = match params.requested().or(attempt.work) {
            Some(requests) => requests,
            None => calibrate(params, server_cpu, &placement, attempt).await?,
        };
        attempt.add_artefact(REQUESTS, requests.to_string());
        let server = RedisServer::start(params, server_cpu, "server", &attempt.context).await?;
        let measured = measure(&server, params, requests, &placement, attempt).await;
        if measured.is_err() {
            attempt.add_artefact(LOG, server.log().await);
        }
        measured?;
        let log = server.shut_down(&attempt.context).await?;
        attempt.add_artefact(LOG, log);
        attempt.record_work(requests);
        Ok(())
    }

    fn study(&self, params: &Params, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
        study::study(params, artefacts)
    }
}

/// Measures on a server that is new, and keeps what the server says of itself on the way.
async fn measure(
    server: &RedisServer,
    params: &Params,
    requests: u64,
    placement: &Placement,
    attempt: &mut Attempt,
) -> Result<(), Failure> {
    let [start, before, after] = SNAPSHOT_NAMES;
    attempt.add_artefact(start, server.snapshot(&attempt.context).await?);
    server.fill(params, requests, &attempt.context).await?;
    attempt.add_artefact(before, server.snapshot(&attempt.context).await?);
    attempt.run(BENCHMARK, benchmark_command(server, params, requests).placement(placement.clone())).await?;
    server.record(attempt).await?;
    attempt.add_artefact(after, server.snapshot(&attempt.context).await?);
    Ok(())
}

fn benchmark_command(server: &RedisServer, params: &Params, requests: u64) -> Command {
    let Params { clients, pipeline, data_size, keyspace, .. } = params;
    let figures = [
        ("-n", requests),
        ("-c", u64::from(*clients)),
        ("-P", u64::from(*pipeline)),
        ("-d", data_size.0),
        ("-r", *keyspace),
    ];
    let command = server.address().iter().fold(Command::new(["redis-benchmark"]), Command::arg);
    let command = command.arg("-t").arg(params.redis_command().name());
    figures.iter().fold(command, |command, (flag, value)| command.arg(*flag).arg(value.to_string())).arg("--csv")
}

/// How many requests fill the sample's time, found out on a server of its own.
async fn calibrate(
    params: &Params,
    server_cpu: Option<u32>,
    placement: &Placement,
    attempt: &mut Attempt,
) -> Result<u64, Failure> {
    /// The last try takes this share of the time, at least.
    const SHARE: f64 = 0.1;
    const TRIES: u32 = 8;
    /// Fewer are over before the benchmark's clock moves.
    const FEWEST: u64 = 2000;
    /// From one try to the next there are so many times as many at most.
    const GROWTH: f64 = 50.0;
    let site = &attempt.context;
    let seconds = attempt.min_time.seconds();
    let most = max_requests(params, &site.facts);
    let server = RedisServer::start(params, server_cpu, "calibration", site).await?;
    let first = (u64::from(params.clients) * u64::from(params.pipeline) * 20).max(FEWEST);
    let mut requests = params.round_to_pipeline(first.min(most));
    let (mut rate, mut printed) = (0.0, Vec::new());
    for _ in 0..TRIES {
        server.fill(params, requests, site).await?;
        printed = site.run(benchmark_command(&server, params, requests).placement(placement.clone())).await?;
        let said = String::from_utf8_lossy(&printed);
        let took = if output::is_too_short(&said) {
            0.0
        } else {
            let read = output::parse_benchmark(&said).map_err(|rejected| Failure::crashed(rejected.figures))?;
            rate = read.requests_per_second;
            requests as f64 / rate.max(1.0)
        };
        if took >= SHARE * seconds || requests >= most {
            break;
        }
        let factor = (1.5 * SHARE * seconds / took).clamp(2.0, GROWTH);
        requests = params.round_to_pipeline(((requests as f64 * factor) as u64).min(most));
    }
    server.shut_down(site).await?;
    attempt.add_artefact("calibration.stdout", printed);
    // No two runs are equally fast.
    const MARGIN: f64 = 1.05;
    if rate == 0.0 {
        return Ok(requests);
    }
    Ok(params.round_to_pipeline(((rate * seconds * MARGIN) as u64).min(most)))
}

/// As many requests as half of the memory has room for.
fn max_requests(params: &Params, facts: &Facts) -> u64 {
    let room = facts.memory_available.0 / 2;
    let mut most = 1 << 40;
    while most > 1 && params.memory_bytes(most) > room {
        most /= 2;
    }
    most
}
