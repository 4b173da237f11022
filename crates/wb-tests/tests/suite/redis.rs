//! Short samples with the real redis.

use wb_model::ParamValue;
use wb_test::Failure;

use crate::common::{Cell, has, text, with_cell};

/// Calls `body` with a cell of few requests over few keys; skipped without redis.
fn with_redis(given: &[(&str, ParamValue)], body: impl AsyncFnOnce(Cell)) {
    if !(has("redis-server") && has("redis-benchmark") && has("redis-cli")) {
        return;
    }
    let small =
        [("requests", text("5000")), ("keyspace", ParamValue::Integer(500)), ("clients", ParamValue::Integer(5))];
    let defaults = small.iter().filter(|(name, _)| given.iter().all(|(other, _)| other != name));
    let all: Vec<(&str, ParamValue)> = defaults.chain(given).cloned().collect();
    with_cell("redis", &all, body);
}

#[test]
fn every_command_executes_the_requested_number_of_requests() {
    for command in ["set", "get", "lpush", "lpop", "sadd"] {
        with_redis(&[("command", text(command))], async |cell| {
            assert_eq!(cell.why_unsupported(), None);
            let sample = cell.sample().await.unwrap();
            assert!(sample.assert_valid().value("throughput/requests") > 0.0, "{command}");
            let [p50, p95, p99] = ["p50", "p95", "p99"].map(|name| sample.value(&format!("latency/{name}")));
            assert!(0.0 < p50 && p50 <= p95 && p95 <= p99, "{command}: {p50} {p95} {p99}");
            assert!(sample.value("resource/server-memory") > 500_000.0);
            assert_eq!(sample.work, Some(5000));
            assert!(sample.text("server.log").contains("Redis is now ready to exit"), "{command}");
        });
    }
}

#[test]
fn a_calibrated_number_of_requests_is_reused() {
    for command in ["set", "lpop"] {
        let given = [("command", text(command)), ("requests", text("auto")), ("pipeline", ParamValue::Integer(16))];
        with_redis(&given, async |cell| {
            let first = cell.sample().await.unwrap();
            let requests = first.assert_valid().work.unwrap();
            assert!(requests > 1000 && requests.is_multiple_of(16), "{requests}");
            assert!(first.has("calibration.stdout"));
            let again = cell.sample_with_work(Some(requests)).await.unwrap();
            assert_eq!(again.assert_valid().work, Some(requests));
            assert!(!again.has("calibration.stdout"));
        });
    }
}

// The least number of requests takes less than a tick of the clock of redis-benchmark.
#[test]
fn one_client_is_calibrated_although_the_first_trial_is_too_short() {
    let given = [("command", text("get")), ("requests", text("auto")), ("clients", ParamValue::Integer(1))];
    with_redis(&given, async |cell| {
        assert!(cell.sample().await.unwrap().assert_valid().work.unwrap() > 100);
    });
}

#[test]
fn server_and_benchmark_follow_the_placement() {
    with_redis(&[("command", text("set")), ("placement", text("same-cpu"))], async |mut cell| {
        let sample = cell.sample().await.unwrap();
        assert_eq!(sample.assert_valid().findings, [""; 0]);
        for name in ["benchmark", "server"] {
            let text = sample.text(&format!("{name}.process.json"));
            let process: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(process["placement"]["cpus"].as_array().unwrap().len(), 1, "{name}");
            assert_eq!(process["placement"]["cpus"], process["effective"]["cpus"], "{name}");
        }

        cell.set("placement", text("same-node"));
        match cell.why_unsupported() {
            Some(reason) => wb_test_skip::skip!("same-node: {reason}"),
            None => assert_eq!(cell.sample().await.unwrap().assert_valid().findings, [""; 0]),
        }
        cell.set("placement", text("cross-node"));
        match cell.why_unsupported() {
            Some(reason) => assert!(reason.contains("only one NUMA node"), "{reason}"),
            None => assert_eq!(cell.sample().await.unwrap().assert_valid().findings, [""; 0]),
        }
    });
}

#[test]
fn a_port_in_use_is_reported() {
    with_redis(&[("command", text("set"))], async |mut cell| {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        cell.set("port", ParamValue::Integer(port.into()));
        let Err(Failure::Crashed { status }) = cell.sample().await else { panic!() };
        assert!(status.starts_with("redis-server: exit status 1 before it replied"), "{status}");
        drop(listener);
        cell.sample().await.unwrap().assert_valid();
    });
}

#[test]
fn requests_that_exceed_the_memory_are_unsupported() {
    let given = [("command", text("lpop")), ("requests", text("1000000000")), ("data-size", text("1m"))];
    with_redis(&given, async |cell| {
        let reason = cell.why_unsupported().unwrap();
        assert!(reason.contains("GiB available"), "{reason}");
    });
}
