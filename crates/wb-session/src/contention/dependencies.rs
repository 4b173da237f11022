//! What contention benches require of this machine, and whether it is here. Changes nothing.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use wb_agent::Worker;
use wb_contention::BenchSpec;
use wb_contention_worker::{BlockDevice, Enforcement, Needs, Requirement, requirements};
use wb_results::contention::Bench;

use super::preparation::enforcement;
use crate::error::SessionError;
use crate::worker_program::worker_program;

/// A requirement of contention benches on this machine
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Dependency {
    /// Its name, as with `--force` in headers of results
    pub requirement: Requirement,
    /// The benches that require it
    pub benches: Vec<Bench>,
    /// Whether it is met
    pub state: DependencyState,
    /// What was found in its place
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<String>,
}

/// Whether a requirement is met
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DependencyState {
    /// It is
    Met,
    /// It is not, and benches set it while they measure
    SetByBenches,
    /// It is not: benches are refused without `--force`
    Missed,
    /// It is not: benches are refused even with `--force`
    Indispensable,
}

/// Checks what benches require of this machine, with files in a folder on a device.
pub async fn dependencies(specs: &[BenchSpec], dir: &Path, device: &str) -> Result<Vec<Dependency>, SessionError> {
    let worker = Worker::local(&worker_program()?).await?;
    let checked = check(&worker, specs, dir, device).await;
    let closed = worker.close().await;
    let checked = checked?;
    closed?;
    Ok(checked)
}

async fn check(
    worker: &Worker,
    specs: &[BenchSpec],
    dir: &Path,
    device: &str,
) -> Result<Vec<Dependency>, SessionError> {
    let device = BlockDevice::named(worker, device).await?;
    let dir = std::path::absolute(dir).map_err(SessionError::file("locate", dir))?;
    let folder = dir.display().to_string();
    // Everything is checked, to tell what is there from what is set.
    let report = requirements::check(worker, &device, &folder, Needs::Everything, Enforcement::NONE, false).await?;
    let describe = |requirement: Requirement| {
        let requires = |spec: &&BenchSpec| needs(spec.bench()).includes(requirement);
        let requiring: Vec<&BenchSpec> = specs.iter().filter(requires).collect();
        let found = report.missed.get(&requirement).cloned().unwrap_or_default();
        let is_set = |spec: &&BenchSpec| requirement.is_set_by(enforcement(&spec.passive.clone().unwrap_or_default()));
        let is_indispensable =
            |spec: &&BenchSpec| requirements::indispensable(needs(spec.bench())).contains(&requirement);
        let state = match () {
            () if found.is_empty() => DependencyState::Met,
            () if requiring.iter().any(is_indispensable) => DependencyState::Indispensable,
            () if requiring.iter().all(is_set) => DependencyState::SetByBenches,
            () => DependencyState::Missed,
        };
        let mut benches: Vec<Bench> = requiring.iter().map(|spec| spec.bench()).collect();
        benches.dedup();
        (!benches.is_empty()).then_some(Dependency { requirement, benches, state, found })
    };
    Ok(Requirement::ALL.into_iter().filter_map(describe).collect())
}

fn needs(bench: Bench) -> Needs {
    match bench {
        Bench::IocostParams => Needs::Device,
        Bench::HashdParams | Bench::Storage => Needs::Memory,
        Bench::IocostQos | Bench::IocostTune | Bench::Protection => Needs::Everything,
    }
}
