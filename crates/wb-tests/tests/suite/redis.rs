//! Short samples with the real redis.

use crate::common::{Cell, has, text, with_cell};
use wb_model::ParamValue;
use wb_tests::Failure;

/// A cell of few requests among few keys; nothing where redis is not there.
fn with_redis(given: &[(&str, ParamValue)], something: impl AsyncFnOnce(Cell)) {
    if !(has("redis-server") && has("redis-benchmark") && has("redis-cli")) {
        return;
    }
    let small =
        [("requests", text("5000")), ("keyspace", ParamValue::Integer(500)), ("clients", ParamValue::Integer(5))];
    let kept = small.iter().filter(|(name, _)| given.iter().all(|(other, _)| other != name));
    let all: Vec<(&str, ParamValue)> = kept.chain(given).cloned().collect();
    with_cell("redis", &all, something);
}

#[test]
fn every_command_does_the_work_that_the_server_counts() {
    for command in ["set", "get", "lpush", "lpop", "sadd"] {
        with_redis(&[("command", text(command))], async |cell| {
            assert_eq!(cell.why_unsupported(), None);
            let sample = cell.sample().await.unwrap();
            assert!(sample.is_valid().value("throughput/requests") > 0.0, "{command}");
            let [p50, p95, p99] = ["p50", "p95", "p99"].map(|name| sample.value(&format!("latency/{name}")));
            assert!(0.0 < p50 && p50 <= p95 && p95 <= p99, "{command}: {p50} {p95} {p99}");
            assert!(sample.value("resource/server-memory") > 500_000.0);
            assert_eq!(sample.work, Some(5000));
            assert!(sample.text("server.log").contains("Redis is now ready to exit"), "{command}");
        });
    }
}

#[test]
fn requests_fill_the_time_in_whole_pipelines_and_are_the_same_again() {
    for command in ["set", "lpop"] {
        let given = [("command", text(command)), ("requests", text("auto")), ("pipeline", ParamValue::Integer(16))];
        with_redis(&given, async |cell| {
            let first = cell.sample().await.unwrap();
            let requests = first.is_valid().work.unwrap();
            assert!(requests > 1000 && requests.is_multiple_of(16), "{requests}");
            assert!(first.has("calibration.stdout"));
            let again = cell.sample_of(Some(requests)).await.unwrap();
            assert_eq!(again.is_valid().work, Some(requests));
            assert!(!again.has("calibration.stdout"));
        });
    }
}

#[test]
fn one_client_is_calibrated_though_its_first_requests_take_no_time_that_is_measured() {
    let given = [("command", text("get")), ("requests", text("auto")), ("clients", ParamValue::Integer(1))];
    with_redis(&given, async |cell| {
        assert!(cell.sample().await.unwrap().is_valid().work.unwrap() > 100);
    });
}

#[test]
fn server_and_benchmark_run_where_the_placement_says() {
    with_redis(&[("command", text("set")), ("placement", text("same-cpu"))], async |mut cell| {
        let sample = cell.sample().await.unwrap();
        assert_eq!(sample.is_valid().findings, [""; 0]);
        for name in ["benchmark", "server"] {
            let text = sample.text(&format!("{name}.process.json"));
            let process: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(process["placement"]["cpus"].as_array().unwrap().len(), 1, "{name}");
            assert_eq!(process["placement"]["cpus"], process["verified"]["cpus"], "{name}");
        }

        cell.set("placement", text("same-node"));
        match cell.why_unsupported() {
            Some(why) => eprintln!("SKIPPED: same-node: {why}"),
            None => assert_eq!(cell.sample().await.unwrap().is_valid().findings, [""; 0]),
        }
        cell.set("placement", text("cross-node"));
        match cell.why_unsupported() {
            Some(why) => assert!(why.contains("only one node"), "{why}"),
            None => assert_eq!(cell.sample().await.unwrap().is_valid().findings, [""; 0]),
        }
    });
}

#[test]
fn a_port_that_is_in_use_is_told_at_once() {
    with_redis(&[("command", text("set"))], async |mut cell| {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        cell.set("port", ParamValue::Integer(port.into()));
        let Err(Failure::Crashed { status }) = cell.sample().await else { panic!() };
        assert!(status.starts_with("redis-server: exit status 1 before it answered"), "{status}");
        drop(taken);
        cell.sample().await.unwrap().is_valid();
    });
}

#[test]
fn what_memory_has_no_room_for_is_unsupported() {
    let given = [("command", text("lpop")), ("requests", text("1000000000")), ("data-size", text("1m"))];
    with_redis(&given, async |cell| {
        let why = cell.why_unsupported().unwrap();
        assert!(why.contains("GiB are available"), "{why}");
    });
}
