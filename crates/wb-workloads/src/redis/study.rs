//! Evaluation of a sample: values, and the gates that compare the work with the server's own counts.

use wb_model::Class;
use wb_model::outcome::Gate;
use wb_test::{Artefacts, Measurement, Rejection};

use super::output::{BenchmarkResult, ServerInfo, parse_benchmark};
use super::params::{RedisCommand, RedisParams};
use super::{BENCHMARK, REQUESTS, SNAPSHOT_NAMES};

pub(super) fn study(params: &RedisParams, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
    let requests: u64 = artefacts.json(REQUESTS)?;
    let [start, before, after] = SNAPSHOT_NAMES.map(|name| artefacts.text(name).map(|text| ServerInfo::parse(&text)));
    let (start, before, after) = (start?, before?, after?);
    let result = parse_benchmark(&artefacts.text(&format!("{BENCHMARK}.stdout"))?)?;
    let elapsed = artefacts.process_seconds(BENCHMARK)?.unwrap_or_default();

    let mut measurement = Measurement::default()
        .with_value(Class::Throughput, "requests", result.requests_per_second)
        .with_value(Class::Latency, "p50", result.p50)
        .with_value(Class::Latency, "p95", result.p95)
        .with_value(Class::Latency, "p99", result.p99)
        .with_duration(requests as f64 / result.requests_per_second);
    let cpu = (after.cpu_seconds()? - before.cpu_seconds()?).max(0.0);
    measurement.set(Class::Resource, "server-cpu-per-request", cpu * 1e9 / requests.max(1) as f64);
    measurement.set(Class::Resource, "server-memory", after.number("used_memory_peak")?);

    check_state(&mut measurement, params, requests, &start, &before)?;
    check_work(&mut measurement, params, requests, &result, &after)?;
    check_possible(&mut measurement, params, requests, &result, elapsed);
    measurement.add_provenance("redis", after.text("redis_version")?);
    measurement.add_provenance("allocator", after.text("mem_allocator")?);
    measurement.add_provenance("requests", requests);
    Ok(measurement)
}

/// Checks that the server started empty, and was filled with exactly the required data.
fn check_state(
    measurement: &mut Measurement,
    params: &RedisParams,
    requests: u64,
    start: &ServerInfo,
    before: &ServerInfo,
) -> Result<(), Rejection> {
    let keys = start.number("keys")?;
    measurement.require(keys == 0.0, Gate::State, || format!("the new server had {keys} keys, expected none"));
    let (keys, list) = match params.redis_command() {
        RedisCommand::Get => (params.keyspace, 0),
        RedisCommand::Lpop => (1, requests),
        RedisCommand::Set | RedisCommand::Lpush | RedisCommand::Sadd => (0, 0),
    };
    for (quantity, expected) in [("keys", keys), ("list", list)] {
        let actual = before.number(quantity)?;
        measurement.require(actual == expected as f64, Gate::State, || {
            format!("{quantity}: expected {expected} before the benchmark, found {actual}")
        });
    }
    Ok(())
}

/// Checks that the server counted the requested number of requests, and has the data that they create.
fn check_work(
    measurement: &mut Measurement,
    params: &RedisParams,
    requests: u64,
    result: &BenchmarkResult,
    after: &ServerInfo,
) -> Result<(), Rejection> {
    let command = params.redis_command();
    let name = command.name();
    measurement.require(result.test.eq_ignore_ascii_case(name), Gate::Work, || {
        format!("requested {name}, measured {}", result.test)
    });
    let stat = |figure: &str| after.command_stat(name, figure);
    let (calls, failed) = (stat("calls")?, stat("failed_calls")? + stat("rejected_calls")?);
    measurement.require(calls == requests && failed == 0, Gate::Work, || {
        format!("the server counted {calls} of {requests} {name} requests, {failed} of them failed")
    });
    let mut check_range = |quantity: &str, min: u64, max: u64| {
        let actual = after.number(quantity)?;
        measurement.require((min as f64..=max as f64).contains(&actual), Gate::Work, || {
            format!("{quantity}: expected {min} to {max} after {requests} {name} requests, found {actual}")
        });
        Ok(())
    };
    let distinct = distinct_keys(params.keyspace, requests);
    match command {
        RedisCommand::Get => {
            check_range("keyspace_hits", requests, requests)?;
            check_range("keyspace_misses", 0, 0)?;
            check_range("keys", params.keyspace, params.keyspace)
        }
        RedisCommand::Lpop => check_range("list", 0, 0),
        RedisCommand::Lpush => check_range("list", requests, requests),
        RedisCommand::Set => check_range("keys", distinct.0, distinct.1),
        RedisCommand::Sadd => check_range("set", distinct.0, distinct.1),
    }
}

/// Range of the number of distinct keys among random requests: nine tenths of the expectation, and the maximum.
fn distinct_keys(keyspace: u64, requests: u64) -> (u64, u64) {
    let space = keyspace as f64;
    let missing = (requests as f64 * (-1.0 / space).ln_1p()).exp();
    let expected = space * (1.0 - if keyspace == 1 { 0.0 } else { missing });
    ((0.9 * expected).floor() as u64, keyspace.min(requests))
}

/// Checks that times and rates agree with each other and with an independent clock.
fn check_possible(
    measurement: &mut Measurement,
    params: &RedisParams,
    requests: u64,
    result: &BenchmarkResult,
    elapsed: f64,
) {
    let BenchmarkResult { requests_per_second: rate, average, min, p50, p95, p99, max, .. } = *result;
    let seconds = requests as f64 / rate;
    measurement.require(seconds <= elapsed * 1.01, Gate::Plausibility, || {
        format!("{requests} requests at {rate} requests/s take {seconds:.3} s, but the benchmark ran {elapsed:.3} s")
    });
    measurement.require(min <= p50 && p50 <= p95 && p95 <= p99 && p99 <= max, Gate::Output, || {
        format!("latencies are out of order: min {min} ns, p50 {p50} ns, p95 {p95} ns, p99 {p99} ns, max {max} ns")
    });
    // Little's law: requests in flight are the rate times the mean latency. Much less than the connections allow means
    // that the client was busy; a thousandth means that a figure is in another unit.
    let in_flight = rate * average / 1e9;
    let limit = f64::from(params.clients) * f64::from(params.pipeline);
    let is_steady = requests as f64 >= 20.0 * limit;
    measurement.require(!is_steady || (limit / 300.0..=limit * 1.25).contains(&in_flight), Gate::Plausibility, || {
        format!("{rate} requests/s of {average} ns each are {in_flight:.3} requests in flight, expected about {limit}")
    });
}

#[cfg(test)]
mod tests {
    use wb_model::Validity;

    use super::*;
    use wb_test_artefacts::{artefact_folder, failed_gate, value};

    const HEADER: &str = r#""test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms""#;

    /// Artefacts of a correct sample of 10000 GETs among 100 keys.
    fn files() -> Vec<(&'static str, String)> {
        let info = |keys: u64, hits: u64, cpu: &str, stats: &str| {
            format!(
                "redis_version:7.0.15\nmem_allocator:jemalloc-5.3.0\nused_memory_peak:2000000\nused_cpu_user:{cpu}\n\
                 used_cpu_sys:0.0\nkeyspace_hits:{hits}\nkeyspace_misses:0\n{stats}keys:{keys}\nlist:0\nset:0\n"
            )
        };
        let stats = "cmdstat_get:calls=10000,usec=9000,usec_per_call=0.9,rejected_calls=0,failed_calls=0\n";
        vec![
            ("requests.json", "10000".to_owned()),
            ("start.info", info(0, 0, "0.01", "")),
            ("before.info", info(100, 0, "0.02", "")),
            ("after.info", info(100, 10000, "0.12", stats)),
            ("benchmark.process.json", r#"{"elapsed-seconds":0.11}"#.to_owned()),
            (
                "benchmark.stdout",
                format!("{HEADER}\n\"GET\",\"100000.00\",\"0.400\",\"0.1\",\"0.3\",\"0.9\",\"1.5\",\"4.0\"\n"),
            ),
        ]
    }

    fn study_of(params: &RedisParams, files: &[(&str, String)]) -> Result<Measurement, Rejection> {
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        study(params, &Artefacts::new(artefact_folder(&files).path()))
    }

    fn params() -> RedisParams {
        RedisParams { command: Some(RedisCommand::Get), keyspace: 100, ..RedisParams::default() }
    }

    fn changed(name: &str, from: &str, to: &str) -> Result<Measurement, Rejection> {
        let mut files = files();
        let file = files.iter_mut().find(|(file, _)| *file == name).unwrap();
        let text = file.1.replace(from, to);
        assert_ne!(text, file.1, "{from}");
        file.1 = text;
        study_of(&params(), &files)
    }

    #[test]
    fn a_correct_sample_is_valid() {
        let measurement = study_of(&params(), &files()).unwrap();
        assert_eq!(measurement.validity, Validity::Valid);
        assert_eq!(value(&measurement, "throughput/requests"), 100_000.0);
        assert_eq!(value(&measurement, "latency/p99"), 1_500_000.0);
        assert!((value(&measurement, "resource/server-cpu-per-request") - 10_000.0).abs() < 1e-6);
        assert_eq!(measurement.provenance["redis"], "7.0.15");
    }

    #[test]
    fn misses_are_not_counted_as_work() {
        let measurement = changed("after.info", "keyspace_hits:10000", "keyspace_hits:9999").unwrap();
        let Validity::Invalid { gate: Gate::Work, figures } = measurement.validity else { panic!() };
        assert_eq!(figures, "keyspace_hits: expected 10000 to 10000 after 10000 get requests, found 9999");
    }

    #[test]
    fn samples_that_contradict_the_server_are_invalid() {
        for (file, from, to, gate) in [
            ("start.info", "keys:0", "keys:5", Gate::State),
            ("before.info", "keys:100", "keys:99", Gate::State),
            ("before.info", "list:0", "list:3", Gate::State),
            ("after.info", "keyspace_misses:0", "keyspace_misses:1", Gate::Work),
            ("after.info", "calls=10000,", "calls=9950,", Gate::Work),
            ("after.info", "failed_calls=0", "failed_calls=3", Gate::Work),
            ("benchmark.stdout", "\"GET\"", "\"SET\"", Gate::Work),
            ("benchmark.stdout", "100000.00", "100000000.00", Gate::Plausibility),
            ("benchmark.stdout", "100000.00", "100.00", Gate::Plausibility),
            ("benchmark.stdout", "\"0.400\"", "\"400\"", Gate::Plausibility),
            ("benchmark.stdout", "\"0.400\"", "\"0.0004\"", Gate::Plausibility),
            ("benchmark.stdout", "\"1.5\"", "\"0.5\"", Gate::Output),
        ] {
            assert_eq!(failed_gate(&changed(file, from, to).unwrap()), Some(gate), "{from} → {to}");
        }
    }

    #[test]
    fn invalid_artefacts_are_rejected() {
        for (file, from, to) in [
            ("requests.json", "10000", "many"),
            ("after.info", "used_memory_peak", "rubbish"),
            ("after.info", "calls=10000", "calls=x"),
            ("benchmark.stdout", "100000.00", "nan"),
            ("benchmark.stdout", "\"GET\"", "Killed"),
            ("benchmark.process.json", "{", "["),
        ] {
            assert_eq!(changed(file, from, to).unwrap_err().gate, Gate::Output, "{from} → {to}");
        }
        for index in 0..files().len() {
            let mut files = files();
            files.remove(index);
            assert_eq!(study_of(&params(), &files).unwrap_err().gate, Gate::Output);
        }
    }

    #[test]
    fn the_range_of_distinct_keys_follows_the_expectation() {
        assert_eq!(distinct_keys(1, 1000), (0, 1));
        assert_eq!(distinct_keys(100_000, 100_000), (56_891, 100_000));
        assert_eq!(distinct_keys(1_000_000_000, 10).1, 10);
        assert_eq!(distinct_keys(10, 1_000_000), (9, 10));
    }
}
