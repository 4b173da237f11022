//! Contention on an emulated machine: mechanisms and ratios, never absolute speed.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod guest;
mod steps;

use std::time::Instant;

use guest::Guest;
use steps::Lengths;
use wb_agent::Worker;
use wb_contention_worker::iocost_params::IocostParams;
use wb_contention_worker::{ContentionError, Needs, Preparation, PreparedWorker};
use wb_test_vm::GuestError;

#[test]
fn machine_without_controllers_of_cgroup_v2_is_refused() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let worker = Worker::local(env!("CARGO_BIN_EXE_wb-tests-agent").as_ref()).await.unwrap();
        match PreparedWorker::new(&worker, &Preparation::new("/var/tmp", Needs::Everything)).await {
            Err(refused @ ContentionError::NoControllers) => {
                assert!(refused.to_string().starts_with("no cgroup v2 with controllers"), "{refused}");
            }
            Err(ContentionError::NoDevice { .. }) => wb_test_skip::skip!("cgroup v1 alone: /var/tmp is on no device"),
            Err(ContentionError::MissedRequirements(_)) | Ok(_) => {
                wb_test_skip::skip!("cgroup v1 alone: this machine has controllers of v2");
            }
            Err(other) => panic!("{other}"),
        }
        worker.close().await.unwrap();
    });
}

#[test]
#[ignore = "boots an emulated machine: make test-contention"]
fn contention_has_the_expected_effects_in_a_guest() {
    run(&Lengths::SHORT);
}

#[test]
#[ignore = "measures with full lengths in an emulated machine: half an hour"]
fn soak_contention_has_the_expected_effects_with_full_lengths() {
    run(&Lengths::FULL);
}

fn run(lengths: &Lengths) {
    let mut guest = match Guest::start() {
        Err(missing @ (GuestError::Missing { .. } | GuestError::NoImage(_))) => {
            return wb_test_skip::skip!("contention in a guest: {missing}");
        }
        guest => guest.unwrap(),
    };
    let start = Instant::now();
    let done = |step: &str| println!("== {step}: after {:.0} s", start.elapsed().as_secs_f64());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let worker = guest.connect().await;
        steps::requirements(&worker).await;
        done("requirements are checked");
        let (worker, params) = power_cut(&mut guest, worker, lengths).await;
        done("the device is measured, with a power cut");
        let before = steps::settings(&worker).await;
        steps::latency(&worker).await;
        done("latencies are counted");
        steps::enforcement(&worker, &params, lengths).await;
        done("weights are enforced");
        steps::vrate(&worker, &params).await;
        done("a vrate is waited for");
        steps::protection(&worker, lengths).await;
        done("a neighbour is protected");
        steps::faults(&worker, &params).await;
        steps::out_of_memory(&worker).await;
        done("faults are reported");
        assert_eq!(steps::settings(&worker).await, before);
        worker.close().await.unwrap();
    });
}

/// Measures the device, cuts the power in the middle, and goes on after the machine has booted again.
async fn power_cut(guest: &mut Guest, worker: Worker, lengths: &Lengths) -> (Worker, IocostParams) {
    let before = steps::settings(&worker).await;
    let mut progress = steps::params_until_power_cut(&worker, lengths, || guest.machine.kill()).await;
    drop(worker);
    guest.machine.restart().unwrap();
    guest.shell(guest::MOUNT);
    let worker = guest.connect().await;
    let recovered = worker.recovery_report().await.unwrap();
    assert!(!recovered.reverted.is_empty() && recovered.unreverted.is_none(), "{recovered:?}");
    let left = format!("{}\n", steps::TEST_FILE);
    assert_eq!(steps::settings(&worker).await.replace(&left, ""), before);
    let params = steps::params(&worker, &mut progress, lengths).await;
    assert_eq!(steps::settings(&worker).await, before);
    (worker, params)
}
