//! The state of the I/O cost controller of a worker.

use wb_agent::Worker;
use wb_sys::cgroup::io_cost::IocostState;

use super::device::BlockDevice;
use super::files::read_or_empty;
use super::{ContentionError, requirements};

/// The state of the I/O cost controller for a device; `None` if it was never used for it.
pub async fn iocost_state(worker: &Worker, device: &BlockDevice) -> Result<Option<IocostState>, ContentionError> {
    let Some(mount) = requirements::controller_mount(worker).await? else { return Ok(None) };
    let model = read_or_empty(worker, &format!("{}/io.cost.model", mount.point)).await?;
    let qos = read_or_empty(worker, &format!("{}/io.cost.qos", mount.point)).await?;
    Ok(IocostState::parse(&model, &qos, &device.number))
}
