//! Human-readable properties of the machines of a run.

use std::collections::BTreeSet;

use wb_model::{Facts, Unit, WorkerName};
use wb_record::host_title;

/// Names and values, in display order.
pub type PropertyRows = Vec<(String, String)>;

/// A single machine has one row per property; several have one row each, which lists the workers with equal properties.
pub fn describe_all<'a>(facts: impl Iterator<Item = (&'a WorkerName, &'a Facts)>) -> PropertyRows {
    let mut machines: Vec<(BTreeSet<&WorkerName>, PropertyRows)> = Vec::new();
    for (worker, facts) in facts {
        let described = describe(facts);
        match machines.iter_mut().find(|(_, existing)| *existing == described) {
            Some((workers, _)) => drop(workers.insert(worker)),
            None => machines.push((BTreeSet::from([worker]), described)),
        }
    }
    let row = |(workers, described): (BTreeSet<&WorkerName>, PropertyRows)| {
        let (host, others): (Vec<_>, Vec<_>) = described.into_iter().partition(|(name, _)| name == "host");
        let host = host.into_iter().map(|(_, host)| host).next().unwrap_or_default();
        let others: Vec<String> = others.into_iter().map(|(name, text)| format!("{name} {text}")).collect();
        (host_title(&workers, &host), others.join(" · "))
    };
    match &machines[..] {
        [] => PropertyRows::new(),
        [(workers, described)] if workers.len() == 1 => described.clone(),
        _ => machines.into_iter().map(row).collect(),
    }
}

/// Describes a machine, in display order; unknown properties are omitted.
pub fn describe(facts: &Facts) -> PropertyRows {
    let size =
        |bytes: wb_model::Bytes| Some(Unit::new("B").quantity(bytes.0 as f64).to_string()).filter(|_| bytes.0 > 0);
    let text = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let properties = [
        ("host", text(&facts.hostname)),
        ("CPU", text(&facts.cpu_model)),
        ("CPUs", facts.topology()),
        ("last-level cache", size(facts.last_level_cache())),
        ("memory", size(facts.memory)),
        ("kernel", text(&format!("{} {}", facts.kernel, facts.arch))),
    ];
    let mut rows: PropertyRows =
        properties.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?))).collect();
    if let Some(hypervisor) = &facts.hypervisor {
        rows.push(("hypervisor".to_owned(), hypervisor.clone()));
    }
    if facts.emulated {
        rows.push((
            "emulated".to_owned(),
            "instructions are emulated by software: the figures do not represent any hardware".to_owned(),
        ));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_properties_of_a_machine_are_omitted() {
        assert_eq!(describe(&Facts::default()), []);
        let facts = Facts { hostname: "vm".to_owned(), kernel: "6.1".to_owned(), ..Facts::default() };
        let rows = [("host", "vm"), ("kernel", "6.1")].map(|(name, text)| (name.to_owned(), text.to_owned()));
        assert_eq!(describe(&facts), rows);
        let other = Facts { hostname: "vm2".to_owned(), kernel: "6.2".to_owned(), emulated: true, ..Facts::default() };
        let all = |facts: [(&str, &Facts); 3]| {
            let named = facts.map(|(name, facts)| (WorkerName::new(name).unwrap(), facts));
            describe_all(named.iter().map(|(name, facts)| (name, *facts)))
        };
        assert_eq!(all([("a", &facts), ("a", &facts), ("a", &facts)]), rows);
        let alike = [("a, b (vm)".to_owned(), "kernel 6.1".to_owned())];
        assert_eq!(all([("a", &facts), ("b", &facts), ("local", &facts)]), alike);
        let both = all([("b", &facts), ("vm2", &other), ("a", &facts)]);
        assert_eq!(both[0], ("a, b (vm)".to_owned(), "kernel 6.1".to_owned()));
        assert!(both[1].0 == "vm2" && both[1].1.starts_with("kernel 6.2 · emulated "), "{both:?}");
    }
}
