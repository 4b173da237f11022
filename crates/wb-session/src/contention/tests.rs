//! Stages on a simulated worker.

use std::path::Path;
use std::sync::{Arc, Mutex};

use wb_agent::Command;
use wb_agent::protocol::Request;
use wb_contention::execute::{SequenceError, SequenceOptions, SequenceRequest, execute};
use wb_contention::{BenchSpec, Parameters};
use wb_model::WorkerName;
use wb_record::{Invocation, RunFolder};
use wb_results::contention::{Answer, BenchResult, Device, QosOverride, SystemInfo};
use wb_test_worker::{FakeAgent, FakeProcess};

use super::*;

/// The names of started programs.
type Started = Arc<Mutex<Vec<String>>>;

/// A machine without control groups, whose fio does 1000 operations per second.
fn machine(started: &Started) -> FakeAgent {
    let started = started.clone();
    FakeAgent::new(WorkerName::local(), move |command: &Command| {
        let program = command.argv[0].clone();
        started.lock().unwrap().push(program.clone());
        match program.as_str() {
            "fio" => FakeProcess::printing(report()),
            "stat" => FakeProcess::printing("99999999 4096\n"),
            "systemctl" => FakeProcess::failing(3, ""),
            _ => FakeProcess::printing(""),
        }
    })
}

fn report() -> String {
    let latency = serde_json::json!({ "max": 1e6, "mean": 1e6, "N": 60_000, "bins": { "1000000": 60_000 } });
    let operation = serde_json::json!({
        "io_bytes": 240_000_000, "total_ios": 60_000, "runtime": 60_000, "slat_ns": latency, "clat_ns": latency, "lat_ns": latency,
    });
    let job = serde_json::json!({
        "jobname": "load", "error": 0, "read": operation, "write": operation, "usr_cpu": 1.0, "sys_cpu": 1.0,
    });
    serde_json::json!({ "fio version": "fio-3.33", "jobs": [job] }).to_string()
}

fn system() -> SystemInfo {
    SystemInfo {
        kernel: "6.1.0".to_owned(),
        nr_cpus: 2,
        memory: Bytes(8 << 30),
        swap: Bytes(0),
        swappiness: 60,
        zswap: false,
        profile: None,
        passive: "none".parse().unwrap(),
        device: Device {
            name: "nvme0n1".to_owned(),
            number: "259:0".to_owned(),
            model: "Fake SSD".to_owned(),
            firmware: "1".to_owned(),
            size: Bytes(1 << 40),
            scheduler: "none".to_owned(),
            wbt: false,
            other_controller: false,
        },
        iocost: None,
        time_scale: None,
        missed_requirements: Vec::new(),
        merged: Vec::new(),
    }
}

async fn run(folder: &Path, agent: &FakeAgent, spec: &str) -> Result<Vec<BenchResult>, SequenceError> {
    let worker = agent.worker();
    worker.put("/sys/class/block/nvme0n1/dev", b"259:0\n", 0o444).await.unwrap();
    let dir = folder.join("d");
    let options = SequenceOptions {
        dir: dir.clone(),
        dev: None,
        mem_profile: Some(1),
        mem_avail: None,
        iocost_qos: QosOverride::default(),
        swappiness: 60,
        force: false,
        iocost_from_sys: false,
        time_scale: None,
    };
    let specs = vec![BenchSpec::parse(spec).unwrap()];
    let request = SequenceRequest { specs, options, system: system(), parameters: Parameters::default(), seed: 7 };
    let session = ContentionSession {
        options: ContentionOptions { dir, ..test_stage::options() },
        worker: OnceCell::new_with(Some(worker)),
        mem_avail: Cell::new(None),
        cancelled: std::cell::OnceCell::new(),
    };
    let run = RunFolder::create(&folder.join("R")).unwrap();
    run.add_invocation(invocation()).unwrap();
    execute(request, &run, &mut WorkerRunners(Rc::new(session)), &mut |_| ()).await
}

fn invocation() -> Invocation {
    Invocation {
        started: "2026-01-01T00:00:00Z".to_owned(),
        version: "0".to_owned(),
        program_sha256: "0".to_owned(),
        agent_sha256: None,
        command: Vec::new(),
        plan: String::new(),
        plan_text: None,
        sampling: serde_json::Value::Null,
        seed: 7,
        cells: Vec::new(),
        facts: Default::default(),
        hosts: Default::default(),
        metadata: Default::default(),
    }
}

fn count(started: &Started, program: &str) -> usize {
    started.lock().unwrap().iter().filter(|name| *name == program).count()
}

#[tokio::test(start_paused = true)]
async fn loads_that_are_done_are_not_repeated_after_the_worker_was_lost() {
    let folder = tempfile::tempdir().unwrap();
    let started = Started::default();
    let agent = machine(&started);
    let seen = started.clone();
    agent.disconnect_at(move |request| {
        let is_fio = matches!(request, Request::Spawn(call) if call.command.argv[0] == "fio");
        is_fio && count(&seen, "fio") == 3
    });
    let lost = run(folder.path(), &agent, "iocost-params").await.unwrap_err();
    let SequenceError::Stage { failure: StageFailure::Machine { reason }, .. } = &lost else { panic!("{lost}") };
    assert!(reason.contains("the cable was pulled"), "{reason}");

    let resumed = Started::default();
    let results = run(folder.path(), &machine(&resumed), "iocost-params").await.unwrap();
    assert_eq!((count(&started, "fio"), count(&resumed, "fio")), (3, 5));
    let Answer::IocostParams(found) = &results[0].answer else { panic!("{results:?}") };
    assert_eq!(found.model.to_array(), [4_000_000, 1000, 1000, 4_000_000, 1000, 1000]);
    assert_eq!((found.qos.rlat, found.qos.wlat), (1500, 1500));
    let again = Started::default();
    assert_eq!(run(folder.path(), &machine(&again), "iocost-params").await.unwrap(), results);
    assert_eq!(again.lock().unwrap().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn benches_of_memory_need_control_groups() {
    let folder = tempfile::tempdir().unwrap();
    let agent = machine(&Started::default());
    for bench in ["hashd-params", "storage"] {
        let failed = run(folder.path(), &agent, bench).await.unwrap_err();
        assert!(matches!(failed, SequenceError::Stage { failure: StageFailure::CgroupV1, .. }), "{failed}");
    }
    assert_eq!(agent.open_groups(), 0);
}
