//! Facts about the machine and the device, for the header of each result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_agent::Worker;
use wb_model::Bytes;
use wb_sys::cgroup::io_cost::{IocostModel, IocostQos, IocostState};
use wb_sys::proc::swaps;

use super::device::BlockDevice;
use super::files::read_or_empty;
use super::memory_profile::MemoryShare;
use super::prepared_worker::PreparedWorker;
use super::{ContentionError, requirements};

/// The machine, its memory and the device that is measured
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SystemInfo {
    /// Kernel release
    pub kernel: String,
    /// Number of CPUs
    pub cpus: usize,
    /// Memory
    pub memory: Bytes,
    /// Size of all swap areas
    pub swap: Bytes,
    /// `vm.swappiness`
    pub swappiness: u32,
    /// The memory profile
    pub memory_share: MemoryShare,
    /// The device
    pub device: BlockDevice,
    /// Whether the I/O cost controller controls the device
    pub iocost: bool,
    /// Whether another controller does
    pub other_io_controller: bool,
    /// The model of the device; absent if the controller was never used for it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<IocostModel>,
    /// Its targets
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qos: Option<IocostQos>,
}

impl SystemInfo {
    /// Reads the facts, with the settings that are in force.
    ///
    /// # Errors
    /// If the worker is lost, or a file of the kernel is invalid.
    pub async fn read(prepared: &PreparedWorker, memory_share: MemoryShare) -> Result<Self, ContentionError> {
        let worker = prepared.worker();
        let facts = worker.facts().await?;
        let areas = read_or_empty(worker, "/proc/swaps").await?;
        let invalid = |line: &str| ContentionError::output("/proc/swaps", format!("invalid line `{line}`"));
        let mut swap = 0;
        for area in swaps::areas(&areas) {
            swap += area.map_err(invalid)?.size.0;
        }
        let swappiness = read_or_empty(worker, "/proc/sys/vm/swappiness").await?;
        let swappiness = swappiness.parse().map_err(|error| ContentionError::output("vm.swappiness", error))?;
        let state = iocost_state(worker, prepared.device()).await?;
        let device = BlockDevice::named(worker, &prepared.device().name).await?;
        let missed = &prepared.requirements().missed;
        Ok(Self {
            kernel: facts.kernel,
            cpus: facts.cpus.len(),
            memory: facts.memory,
            swap: Bytes(swap),
            swappiness,
            memory_share,
            device,
            iocost: state.is_some_and(|state| state.enabled),
            other_io_controller: missed.contains_key(&requirements::Requirement::NoOtherIoController),
            model: state.map(|state| state.model),
            qos: state.map(|state| state.qos),
        })
    }
}

/// The state of the I/O cost controller for a device; `None` if it was never used for it.
///
/// # Errors
/// If the worker is lost.
pub async fn iocost_state(worker: &Worker, device: &BlockDevice) -> Result<Option<IocostState>, ContentionError> {
    let Some(mount) = requirements::controller_mount(worker).await? else { return Ok(None) };
    let model = read_or_empty(worker, &format!("{}/io.cost.model", mount.point)).await?;
    let qos = read_or_empty(worker, &format!("{}/io.cost.qos", mount.point)).await?;
    Ok(IocostState::parse(&model, &qos, &device.number))
}
