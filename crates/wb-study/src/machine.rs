//! A worker's facts as a reader wants them.

use wb_model::{Facts, Unit, counted};

/// What describes a machine, in the order to show.
pub fn describe(facts: &Facts) -> Vec<(String, String)> {
    let size = |bytes: wb_model::Bytes| Unit::new("B").figure(bytes.0 as f64).to_string();
    let cores = facts.one_cpu_per_core().len();
    let packages = facts.cpus.iter().map(|cpu| cpu.package).collect::<std::collections::BTreeSet<_>>().len();
    let parts = [counted(cores, "core"), counted(packages, "package"), counted(facts.nodes.len(), "NUMA node")];
    let mut rows = vec![
        ("host".to_owned(), facts.hostname.clone()),
        ("CPU".to_owned(), facts.cpu_model.clone()),
        ("CPUs".to_owned(), format!("{} on {}", facts.cpus.len(), parts.join(", "))),
        ("last-level cache".to_owned(), size(facts.last_level_cache())),
        ("memory".to_owned(), size(facts.memory)),
        ("kernel".to_owned(), format!("{} {}", facts.kernel, facts.arch)),
    ];
    if let Some(hypervisor) = &facts.hypervisor {
        rows.push(("hypervisor".to_owned(), hypervisor.clone()));
    }
    if facts.emulated {
        rows.push((
            "emulated".to_owned(),
            "instructions are emulated by software: not a figure of any hardware".to_owned(),
        ));
    }
    rows
}
