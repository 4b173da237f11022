//! redis: a new server for every sample, measured by redis-benchmark.
//!
//! Start with [`RedisParams`]; then `server` starts, fills and stops the server, `output` parses the output of both
//! programs, and `study` evaluates it.

mod output;
mod params;
mod server;
mod study;

use std::collections::BTreeMap;

use async_trait::async_trait;
use wb_agent::Command;
use wb_model::{Facts, Metric, Nanos, ParamValue, Params, Placement, Requirement, Scope};

use crate::native;
use params::RedisCommand;
use server::{LOG, RedisServer};
use wb_test::{Artefacts, Attempt, Failure, Measurement, Rejection, TestInfo, TypedTest, WorkerContext};

pub use params::RedisParams;

/// Redis: a single-threaded in-memory store over a socket; bound by system calls and communication of two processes.
pub struct Redis;

/// Artefact names of the server's statistics: after its start, after filling, and after the benchmark.
const SNAPSHOT_NAMES: [&str; 3] = ["start.info", "before.info", "after.info"];
/// Artefact with the requested number of requests.
const REQUESTS: &str = "requests.json";
const BENCHMARK: &str = "benchmark";

#[async_trait]
impl TypedTest for Redis {
    type Params = RedisParams;
    type Prepared = ();

    fn info(&self) -> TestInfo {
        TestInfo {
            name: "redis",
            summary: "requests of an in-memory store; server and client on one machine",
            version: 1,
            scope: Scope::Sample,
            is_native: false,
        }
    }

    fn requires(&self, _: &RedisParams) -> Vec<Requirement> {
        vec![
            Requirement::new("redis-server", "redis-server", &["--version"]),
            Requirement::new("redis-benchmark", "redis-tools", &["--version"]),
            Requirement::new("redis-cli", "redis-tools", &["--version"]),
        ]
    }

    fn resolve(&self, _: &Params, _: &Facts) -> BTreeMap<String, Vec<ParamValue>> {
        let all = RedisCommand::ALL.iter().map(|command| ParamValue::Text(command.name().to_owned())).collect();
        BTreeMap::from([("command".to_owned(), all)])
    }

    fn unsupported(&self, params: &RedisParams, placement: &Placement, facts: &Facts) -> Option<String> {
        let values = (params.data_size.0 == 0).then(|| "invalid `data-size`: expected at least 1 byte".to_owned());
        let memory = || native::unsupported_memory(params.memory_bytes(params.requested().unwrap_or(1)), facts);
        values.or_else(|| params::select_cpus(*params.placement, &placement.cpus, facts).err()).or_else(memory)
    }

    fn shortening(&self, params: &RedisParams) -> &'static str {
        match params.requested() {
            Some(_) => "set `requests=auto`, which fills --min-time",
            None => wb_test::test::LOWER_MIN_TIME,
        }
    }

    fn estimate(&self, params: &RedisParams, min_time: Nanos) -> Nanos {
        // Throughput of a current core; plus start, stop and filling of the server.
        let rate = 80_000.0 * f64::from(params.pipeline.min(8));
        let measuring = params.requested().map_or(min_time.seconds() * 1.05, |requests| requests as f64 / rate);
        let filled = match params.redis_command() {
            RedisCommand::Get => params.keyspace as f64,
            RedisCommand::Lpop => params.requested().map_or(measuring * rate, |requests| requests as f64),
            RedisCommand::Set | RedisCommand::Lpush | RedisCommand::Sadd => 0.0,
        };
        Nanos::from_seconds(measuring + filled / 1e6 + 0.3)
    }

    fn metrics(&self, _: &RedisParams) -> Vec<Metric> {
        let latencies = ["p50", "p95", "p99"].map(|name| Metric::latency(name, "ns"));
        let resources = [Metric::resource("server-cpu-per-request", "ns"), Metric::resource("server-memory", "B")];
        let first = [Metric::throughput("requests", "requests/s").primary()];
        first.into_iter().chain(latencies).chain(resources).collect()
    }

    async fn prepare(&self, _: &RedisParams, _: &WorkerContext) -> Result<(), Failure> {
        Ok(())
    }

    async fn sample(&self, params: &RedisParams, (): &mut (), attempt: &mut Attempt) -> Result<(), Failure> {
        let placement = &attempt.context.placement;
        let cpus = params::select_cpus(*params.placement, &placement.cpus, &attempt.context.facts)
            .map_err(Failure::refused)?;
        let (server_cpus, benchmark_cpus) = cpus.unzip();
        let mut placement = placement.clone();
        placement.cpus = benchmark_cpus.unwrap_or(placement.cpus);
        let server_cpus = server_cpus.as_deref();

        let requests = match params.requested().or(attempt.work) {
            Some(requests) => requests,
            None => calibrate(params, server_cpus, &placement, attempt).await?,
        };
        attempt.add_artefact(REQUESTS, requests.to_string());
        let server = RedisServer::start(params, server_cpus, "server", &attempt.context).await?;
        let result = measure(&server, params, requests, &placement, attempt).await;
        if result.is_err() {
            attempt.add_artefact(LOG, server.log().await);
        }
        result?;
        let log = server.shut_down(&attempt.context).await?;
        attempt.add_artefact(LOG, log);
        attempt.record_work(requests);
        Ok(())
    }

    fn study(&self, params: &RedisParams, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
        study::study(params, artefacts)
    }
}

async fn measure(
    server: &RedisServer,
    params: &RedisParams,
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

fn benchmark_command(server: &RedisServer, params: &RedisParams, requests: u64) -> Command {
    let RedisParams { clients, pipeline, data_size, keyspace, .. } = params;
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

/// Determines on a separate server how many requests fill the sample's time.
async fn calibrate(
    params: &RedisParams,
    server_cpus: Option<&[u32]>,
    placement: &Placement,
    attempt: &mut Attempt,
) -> Result<u64, Failure> {
    /// Share of the sample's time that the last try takes at least.
    const SHARE: f64 = 0.1;
    const MAX_TRIES: u32 = 8;
    /// Fewer requests take less than a tick of the benchmark's clock.
    const MIN_REQUESTS: u64 = 2000;
    const GROWTH: f64 = 50.0;
    let context = &attempt.context;
    let seconds = attempt.min_time.seconds();
    let max = max_requests(params, &context.facts);
    let server = RedisServer::start(params, server_cpus, "calibration", context).await?;
    let first = (u64::from(params.clients) * u64::from(params.pipeline) * 20).max(MIN_REQUESTS);
    let mut requests = params.round_to_pipeline(first.min(max));
    let (mut rate, mut stdout) = (0.0, Vec::new());
    let (mut readings, mut first_rate) = (0, 0.0);
    for _ in 0..MAX_TRIES {
        server.fill(params, requests, context).await?;
        stdout = context.run(benchmark_command(&server, params, requests).placement(placement.clone())).await?;
        let output = String::from_utf8_lossy(&stdout);
        let elapsed = if output::is_too_short(&output) {
            0.0
        } else {
            let result = output::parse_benchmark(&output).map_err(|rejection| Failure::crashed(rejection.figures))?;
            rate = result.requests_per_second;
            requests as f64 / rate.max(1.0)
        };
        if elapsed >= SHARE * seconds || requests >= max {
            // The first reading that is long enough may have been delayed: a second one is as long, and the faster counts.
            if rate > 0.0 && readings == 0 {
                (readings, first_rate) = (1, rate);
                continue;
            }
            rate = rate.max(first_rate);
            break;
        }
        let factor = (1.5 * SHARE * seconds / elapsed).clamp(2.0, GROWTH);
        requests = params.round_to_pipeline(((requests as f64 * factor) as u64).min(max));
    }
    server.shut_down(context).await?;
    attempt.add_artefact("calibration.stdout", stdout);
    // Margin for faster runs.
    const MARGIN: f64 = 1.05;
    if rate == 0.0 {
        return Ok(requests);
    }
    Ok(params.round_to_pipeline(((rate * seconds * MARGIN) as u64).min(max)))
}

/// Largest number of requests whose data fits into half of the available memory.
fn max_requests(params: &RedisParams, facts: &Facts) -> u64 {
    let room = facts.memory_available.0 / 2;
    let mut requests = 1 << 40;
    while requests > 1 && params.memory_bytes(requests) > room {
        requests /= 2;
    }
    requests
}
