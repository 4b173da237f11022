//! The rate of io.cost after its bounds have changed.
//!
//! The kernel moves it by at most 4 % per period, and only in periods in which a group was throttled or latencies
//! exceeded their limits (`ioc_adjust_base_vrate` of `block/blk-iocost.c`). The rate of an idle device stays that of
//! the setting before, and a bench would measure it for its first seconds, or longer.

use std::ops::RangeInclusive;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use wb_agent::signal::SIGKILL;
use wb_agent::{Command, Process};

use super::ContentionError;
use super::prepared_worker::{PreparedWorker, Slice};

/// Limit of the wait: from 100 to 1 % are 113 periods, of at most a second each.
const LIMIT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(200);
/// Readers of the device with their block size: more load than any device can serve at once.
const READERS: usize = 8;
const BLOCK: &str = "bs=1M";

/// Reads from the device until its vrate is within bounds, in percent. A rate that is not there in time, as on a device
/// that cannot reach its lower bound, is left to what is measured.
pub async fn settle(prepared: &PreparedWorker, bounds: &RangeInclusive<f64>) -> Result<(), ContentionError> {
    let read = async || {
        let figures = prepared.io_stat(prepared.cgroup_point()).await?;
        Ok(figures.get("cost.vrate").and_then(|vrate| vrate.parse().ok()))
    };
    if is_settled(read().await?, bounds) {
        return Ok(());
    }
    let mut readers = Vec::new();
    for _ in 0..READERS {
        readers.push(start_reader(prepared).await?);
    }
    let waited = wait(bounds, LIMIT, read).await;
    for reader in readers {
        reader.signal(SIGKILL).await?;
        reader.wait(None).await?;
    }
    waited
}

/// Without a rate from the kernel there is nothing to wait for.
fn is_settled(vrate: Option<f64>, bounds: &RangeInclusive<f64>) -> bool {
    vrate.is_none_or(|vrate| bounds.contains(&vrate))
}

async fn start_reader(prepared: &PreparedWorker) -> Result<Process, ContentionError> {
    // `!` stands for the separator of folders.
    let device = format!("if=/dev/{}", prepared.device().name.replace('!', "/"));
    let command = Command::new(["dd", &device, "of=/dev/null", BLOCK, "iflag=direct", "status=none"]);
    prepared.spawn(Slice::Workload, command).await
}

async fn wait(
    bounds: &RangeInclusive<f64>,
    limit: Duration,
    read: impl AsyncFn() -> Result<Option<f64>, ContentionError>,
) -> Result<(), ContentionError> {
    let start = Instant::now();
    while !is_settled(read().await?, bounds) && start.elapsed() < limit {
        sleep(POLL).await;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// How long a rate is waited for that changes by 4 % with each reading.
    async fn waited(from: f64, bounds: RangeInclusive<f64>, step: f64) -> Duration {
        let vrate = Cell::new(from);
        let start = Instant::now();
        wait(&bounds, LIMIT, async || Ok(Some(vrate.replace(vrate.get() * step)))).await.unwrap();
        start.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_is_waited_for_until_it_is_within_its_bounds_or_the_limit_is_over() {
        assert_eq!(waited(50.0, 49.0..=51.0, 1.0).await, Duration::ZERO);
        // 0.96^34 is the first power below a quarter.
        assert_eq!(waited(100.0, 24.0..=25.0, 0.96).await, POLL * 34);
        assert_eq!(waited(20.0, 75.0..=76.0, 1.0).await, LIMIT);
        let start = Instant::now();
        wait(&(1.0..=2.0), LIMIT, async || Ok(None)).await.unwrap();
        assert_eq!(start.elapsed(), Duration::ZERO, "without io.cost nothing is waited for");
    }
}
