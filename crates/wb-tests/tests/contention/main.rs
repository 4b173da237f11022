//! Contention on an emulated machine: mechanisms and ratios, never absolute speed.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod guest;
mod sizing;
mod steps;

use std::time::Instant;

use guest::Guest;

/// Whether missing tools may be skipped: not where everything is required.
#[test]
#[ignore = "boots an emulated machine: ten minutes"]
fn mechanisms_work_in_a_guest() {
    if let Ok(dev) = std::env::var("WB_DEV") {
        let guest = guest::Dev::new(dev);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for step in std::env::var("WB_STEPS").unwrap().split(',') {
            let start = Instant::now();
            runtime.block_on(async {
                let worker = guest.connect().await;
                match step {
                    "requirements" => steps::requirements(&worker).await,
                    "params" => drop(steps::params(&worker).await),
                    "enforcement" => steps::enforcement(&worker, &steps::dev_params()).await,
                    "protection" => steps::protection(&worker, &steps::dev_params()).await,
                    "latency" => steps::latency(&worker).await,
                    "stage" => steps::stage(&worker, &steps::dev_params()).await,
                    other => panic!("{other}"),
                }
                worker.close().await.unwrap();
            });
            println!("{step}: {:.1} s", start.elapsed().as_secs_f64());
        }
        return;
    }
    let _ = Guest::start();
}
